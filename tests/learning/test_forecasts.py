"""Forecasts against a twin in plain Python, pair by pair, and on rewards whose best forecast is known."""

from typing import Any

import numpy as np
import pytest

import rmab
from episodes import ended, view_of
from rmab.learning import Forecast, Observations, Pools

RATES = (1.0, 0.9, 0.7, 0.0)
FADING, SHRINK, UNSURE, STEADY, PROVEN = 0.98, 4.0, 0.3, 2.0, 7.0
FORGETS = np.array(RATES * 2) < 1


class Twin:
    """One row in lists and dicts: every value that a pair paid is kept, and every mean is computed anew."""

    def __init__(self, rates: tuple[float, ...] = RATES) -> None:
        self.rates, self.seen, self.levels = rates, {}, []  # pair -> [(episode, value)], [(episode, level)]
        self.profile, self.strength, self.squares = {}, {}, []
        self.forecast: dict[Any, float] = {}
        self.off: dict[Any, list[float]] = {}

    def predictions(self, pair: Any, hope: float | None = None) -> list[float]:
        own = [faded([v for _, v in self.seen[pair]], rate) for rate in self.rates]
        if not self.levels or (pair not in self.strength and hope is None):
            return own + own  # nothing is known of a level, or of the pair's part in it
        if pair not in self.strength:
            return own + [hope] * len(own)
        level = [faded([v for _, v in self.levels], rate) for rate in self.rates]
        return own + [min(max(self.profile[pair] * one, 0.0), 1.0) for one in level]

    def take_in(self, episode: int, values: dict[Any, float]) -> None:
        known = [pair for pair in values if pair in self.seen]
        if known:
            off = [[(values[pair] - guess) ** 2 for guess in self.predictions(pair)] for pair in known]
            self.squares.append(np.mean(off, axis=0))
            for pair in known:
                self.off.setdefault(pair, []).append((values[pair] - self.forecast[pair]) ** 2)
        shaped = [pair for pair in values if pair in self.strength]
        norm = sum(self.profile[pair] ** 2 for pair in shaped)
        level = sum(values[pair] * self.profile[pair] for pair in shaped) / norm if norm > 1e-6 else None
        if level is None and not self.levels and max(values.values()) > 0.05:
            level = 1.0
        if level is not None:
            self.levels.append((episode, level))
        for pair, value in values.items():
            self.seen.setdefault(pair, []).append((episode, value))
            if level is not None and level > 0.05:
                pairs = self.strength.setdefault(pair, [])
                pairs.append((level, value))
                self.profile[pair] = sum(k * v for k, v in pairs) / sum(k * k for k, _ in pairs)


def faded(values: list[float], rate: float) -> float:
    """Return the mean of values whose weights fade at the rate from the last to the first."""
    weights = [rate**age if age else 1.0 for age in range(len(values))][::-1]
    return float(np.dot(weights, values) / np.sum(weights))


def look_ahead(twins: list[Twin], episode: int, optimism: float) -> list[dict[Any, tuple[float, float]]]:
    """Return the forecast of every pair, and with optimism, by row."""
    decay = [np.array([FADING**k for k in range(len(one.squares))][::-1]) for one in twins]
    checks = [one.sum() for one in decay]
    errors = [w @ np.array(one.squares) if len(w) else np.zeros(8) for one, w in zip(twins, decay, strict=True)]
    common = sum(errors) / sum(checks) if sum(checks) else np.full(8, UNSURE**2)
    scores = [(e + SHRINK * common) / (n + SHRINK) for e, n in zip(errors, checks, strict=True)]
    noisiest = max([s.min() for s, n in zip(scores, checks, strict=True) if n], default=UNSURE**2)
    found = []
    for one, score, n in zip(twins, scores, checks, strict=True):
        weight = np.exp(-0.5 * min(n + SHRINK, 60) * (score / max(score.min(), 1e-12) - 1) - STEADY * FORGETS)
        weight /= weight.sum()
        proven = weight * np.exp(-PROVEN * FORGETS)
        proven /= proven.sum()
        moving = proven[FORGETS].sum() / weight[FORGETS].sum()  # what is left of the weight of those that forget
        noise = (n * score.min() + SHRINK * noisiest) / (n + SHRINK)
        row: dict[Any, tuple[float, float]] = {}
        telling = [pair for pair in one.seen if not one.levels or pair in one.strength]
        hope = 1.0
        for pair in telling + [pair for pair in one.seen if pair not in telling]:
            values = one.seen[pair]
            if len(row) == len(telling):
                mean = float(np.mean([likely for likely, _ in row.values()])) if row else 0.0
                hope = mean + (1 - mean) / (len(telling) + 1)
            guess = float(weight @ one.predictions(pair, hope))
            past = one.levels if one.levels else values
            ages = [episode - values[-1][0]] * 4 + [episode - past[-1][0]] * 4
            numbers = [sum(r**k if k else 1 for k in range(len(values))) for r in RATES]
            numbers += [sum(r**k if k else 1 for k in range(len(past))) for r in RATES]
            if one.levels and pair not in one.strength:
                ages[4:] = [0] * 4  # a hope needs no optimism
            doubts = [
                (optimism**2 * np.log(episode + 3) / m + moving * (1 - r) ** 2 * age) * (age > 0)
                for m, r, age in zip(numbers, RATES * 2, ages, strict=True)
            ]
            off = one.off.get(pair, [])
            fade = np.array([FADING**k for k in range(len(off))][::-1])
            error = ((fade @ np.array(off) if off else 0.0) + noise) / (fade.sum() + 1)
            row[pair] = (guess, min(guess + np.sqrt(error * (weight @ doubts)), 1.0))
            one.forecast[pair] = guess
        found.append(row)
    return found


def told(pools: Pools, values: np.ndarray) -> Observations:
    return Observations(np.zeros(pools.support.shape, dtype=np.int64), values, np.ones(values.shape))


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_forecasts_are_those_of_the_twin(seed: int) -> None:
    """Rows that are noise, move together, or jump; pairs are seen at random."""
    rng = np.random.default_rng(seed)
    pools = Pools.of(view_of(3, 2, 4))
    part, twins = Forecast(doubt=0, seasons=(), shocks=False), [Twin() for _ in range(3)]
    memory: Any = part.begin(pools)
    base = rng.uniform(0.1, 0.6, size=(3, 2, 2))
    for t in range(25):
        factor = np.array([rng.uniform(0.5, 1.5), 1.5 if t % 7 < 4 else 0.3, 0.0 if t < 3 or 8 < t < 12 else 1.0])
        values = np.where(rng.random(base.shape) < 0.6, base * factor[:, None, None], np.nan)
        values[0] *= rng.uniform(0.8, 1.2, size=(2, 2))
        estimate = part.learn(memory, ended(pools, told(pools, values), t))
        memory = estimate.memory
        for n, twin in enumerate(twins):
            seen = {(s, a): float(values[n, s, a]) for s, a in np.ndindex(2, 2) if not np.isnan(values[n, s, a])}
            if seen:
                twin.take_in(t, seen)
        expected = look_ahead(twins, t, 0.3)
        for n, row in enumerate(expected):
            for (s, a), (likely, ahead) in row.items():
                assert estimate.likely[n, s, a] == pytest.approx(likely, abs=1e-9)
                assert estimate.ahead[n, s, a] == pytest.approx(ahead, abs=1e-9)


def forecast(rewards: np.ndarray, seen: Any, what: str = "likely", **options: Any) -> np.ndarray:
    """(T, S, 2) the forecasts of one arm that is paid these rewards (T, S, 2), where seen(t) says which pairs were seen."""
    pools = Pools.of(view_of(1, rewards.shape[1], 4))
    part = Forecast(**options)
    memory: Any = part.begin(pools)
    found = []
    for t, paid in enumerate(rewards):
        estimate = part.learn(memory, ended(pools, told(pools, np.where(seen(t), paid, np.nan)[np.newaxis]), t))
        memory = estimate.memory
        found.append(np.array(getattr(estimate, what)[0]))
    return np.array(found)


def everything(t: int) -> np.ndarray:
    return np.ones((2, 2), dtype=bool)


def test_noise_is_averaged_and_regimes_are_followed() -> None:
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.2, 0.8, size=(80, 2, 2))
    off = forecast(noise, everything)[20:] - 0.5
    assert np.sqrt((off**2).mean()) < 0.06  # the last value alone would be off by 0.17
    regimes = np.repeat(rng.random((8, 2, 2)), 10, axis=0)
    late = forecast(regimes, everything).reshape(8, 10, 2, 2)[:, 4:]
    np.testing.assert_allclose(late, np.repeat(regimes[::10][:, np.newaxis], 6, axis=1), atol=0.02)


def test_a_pair_that_was_seen_only_when_nothing_was_paid_is_hoped_for() -> None:
    """All pairs of an arm pay 0 on some days. One that was there on such days alone must not be given up."""
    days = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    rewards = days[:, np.newaxis, np.newaxis] * np.array([[0.1, 0.2], [0.3, 0.9]])
    seen = lambda t: np.array([[True, True], [True, days[t] == 0]])  # noqa: E731
    found = forecast(rewards, seen)
    assert found[-1, 1, 1] > 0.2  # it was seen three times, and paid 0 each time
    assert forecast(rewards, seen, together=False)[-1, 1, 1] < 0.01
    nothing = forecast(np.zeros((8, 2, 2)), everything)
    assert nothing[-1].max() == 0.0  # an arm that never paid is not hoped for


def test_one_pair_tells_about_the_others_of_an_arm_that_moves_as_one() -> None:
    """Pairs pay .1, .2, .3, .4 times a level that jumps; one of them is seen in every episode."""
    rng = np.random.default_rng(1)
    profile = np.array([[0.1, 0.2], [0.3, 0.4]])
    rewards = np.repeat(rng.uniform(0.3, 2.0, 16), 5)[:, np.newaxis, np.newaxis] * profile
    one = rng.integers(4, size=80)

    def seen(t: int) -> np.ndarray:
        return everything(t) if t < 5 else np.arange(4).reshape(2, 2) == one[t]

    found = [forecast(rewards, seen, together=this) for this in (True, False)]
    off = [np.sqrt(((one - rewards)[40:] ** 2).mean()) for one in found]
    assert off[0] < 0.06
    assert off[1] > 2 * off[0]


def test_a_surprise_makes_the_rest_of_an_arm_unknown_again() -> None:
    quiet = np.full((20, 2, 2), 0.2)
    quiet[15:] = 0.9
    half = np.array([[True, False], [False, False]])

    def seen(t: int) -> np.ndarray:
        return everything(t) if t < 15 else half

    doubting, trusting = (forecast(quiet, seen, "ahead", doubt=one, together=False)[15] for one in (4.0, 0.0))
    assert (trusting[~half] < 0.3).all()
    assert (doubting[~half] > 0.6).all()  # the mean of what is known, and half of what is missing to 1


@pytest.mark.parametrize("together", [True, False])
def test_pairs_never_seen_are_hoped_for_the_less_the_more_is_known(together: bool) -> None:
    only = np.array([[True, False], [False, False]])
    most = np.array([[True, True], [True, False]])

    def first(seen: np.ndarray, what: str) -> np.ndarray:
        return forecast(np.full((1, 2, 2), 0.2), lambda t: seen, what, together=together)[0]

    np.testing.assert_allclose(first(only, "ahead"), [[0.2, 0.6], [0.6, 0.6]])
    np.testing.assert_allclose(first(most, "ahead")[1, 1], 0.2 + 0.8 / 4)
    for seen in (only, most):  # optimism is not part of the expectation
        np.testing.assert_allclose(first(seen, "likely"), 0.2)


def test_arms_that_are_paid_alike_share_their_optimism() -> None:
    hoped = []
    for arms in (1, 4):
        pools = Pools.of(view_of(arms, 2, 4, groups=np.zeros(arms, dtype=np.int64), pooled_rewards=True))
        part, memory = Forecast(), Forecast().begin(pools)
        for t, paid in enumerate((0.2, 0.4, 0.3)):
            values = np.full((1, 2, 2), paid)
            values[0, 0, 0] = np.nan if t else paid
            estimate = part.learn(memory, ended(pools, told(pools, values), t))
            memory = estimate.memory
        hoped.append(estimate.ahead[0, 0, 0] - estimate.likely[0, 0, 0])
    assert hoped[0] == pytest.approx(4 * hoped[1])


@pytest.mark.parametrize("rates", [(), (1.2,), (-0.1, 1.0)])
def test_rates_out_of_range_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(rmab.errors.ModelError, match="Forecast: rates must be one or more numbers from 0 to 1"):
        Forecast(rates=rates)
