"""Seasons, common shocks and pooled phases against twins in plain Python, and rest."""

from typing import Any

import numpy as np
import pytest

import rmab
from episodes import ended, view_of
from rmab.errors import ModelError
from rmab.learning import Forecast, Observations, Pools, Priced, Ucmd

LAGS = (2, 3)
PLAIN = {"doubt": 0, "seasons": (), "shocks": False}


def told(pools: Pools, values: np.ndarray) -> Observations:
    return Observations(np.zeros(pools.support.shape, dtype=np.int64), values, np.ones(values.shape))


class Twin:
    """All rows in lists: every level and every value over a level is kept, and every mean is computed anew."""

    def __init__(self, rows: int) -> None:
        self.levels: list[dict[int, float]] = [{} for _ in range(rows)]  # by episode
        self.over: dict[Any, list[tuple[float, float]]] = {}  # pair -> [(common level, value)]
        self.squares: list[list[np.ndarray]] = [[] for _ in range(rows)]

    def quality(self, pair: Any) -> float | None:
        found = self.over.get(pair)
        return sum(c * v for c, v in found) / sum(c * c for c, _ in found) if found else None

    def ago(self, r: int, t: int, lag: int) -> float | None:
        past = [self.levels[r][s] for s in range(t - lag, max(t - 2 * max(LAGS), 0) - 1, -lag) if s in self.levels[r]]
        weights = [0.7**k for k in range(len(past))]
        return float(np.dot(weights, past) / sum(weights)) if past else None

    def guesses(self, r: int, pair: Any, t: int, before: Any, plain: float, common: float | None) -> list[float]:
        shape = before["profile"][pair] if before["strength"][pair] > 0 else None
        found = [plain]
        for lag in LAGS:
            level = self.ago(r, t, lag)
            found.append(plain if level is None or shape is None else min(shape * level, 1.0))
        quality = self.quality(pair)
        return [*found, plain if common is None or quality is None else min(quality * common, 1.0)]

    def take_in(self, t: int, values: dict[Any, float], before: Any, plain: np.ndarray) -> None:
        known = {pair: self.quality(pair) for pair in values if self.quality(pair) is not None}
        learned = []
        for r in range(len(self.levels)):
            own = {pair: value for pair, value in values.items() if pair[0] == r}
            others = [pair for pair in known if pair[0] != r]
            norm = sum(known[pair] ** 2 for pair in others)
            common = sum(values[pair] * known[pair] for pair in others) / norm if norm > 1e-6 else None
            checked = [pair for pair in own if before["times"][pair] > 0]
            if checked:
                off = [[(own[p] - g) ** 2 for g in self.guesses(r, p, t, before, plain[p], common)] for p in checked]
                self.squares[r].append(np.mean(off, axis=0))
            shaped = [pair for pair in own if before["strength"][pair] > 0]
            norm = sum(before["profile"][pair] ** 2 for pair in shaped)
            if norm > 1e-6:
                self.levels[r][t] = sum(own[pair] * before["profile"][pair] for pair in shaped) / norm
            elif own and before["leveled"][r] == 0 and max(own.values()) > 0.05:
                self.levels[r][t] = 1.0
            level = 1.0 if not known else common
            learned += [(pair, level, value) for pair, value in own.items() if level is not None and level > 0.05]
        for pair, level, value in learned:
            self.over.setdefault(pair, []).append((level, value))

    def forecast(self, t: int, after: Any, plain: np.ndarray) -> np.ndarray:
        decay = [np.array([0.98**k for k in range(len(own))][::-1]) for own in self.squares]
        errors = [w @ np.array(own) if own else np.zeros(4) for w, own in zip(decay, self.squares, strict=True)]
        trials = sum(w.sum() for w in decay)
        everybody = sum(errors) / trials if trials else np.zeros(4)
        known = [pair for pair in self.over if after["times"][pair] > 0]
        norm = sum(self.quality(pair) ** 2 for pair in known)
        common = sum(plain[pair] * self.quality(pair) for pair in known) / norm if norm > 1e-6 else None
        prior, found = np.exp([0, -3 - np.log(2), -3 - np.log(2), -4]), plain.copy()
        for r, (w, error) in enumerate(zip(decay, errors, strict=True)):
            number = w.sum() + 4.0
            score = (error + 4.0 * everybody) / number
            weight = prior * np.exp(-0.5 * min(number, 60.0) * (score / max(score.min(), 1e-12) - 1))
            for s, a in np.ndindex(plain.shape[1:]):
                if after["times"][r, s, a] > 0:
                    guesses = self.guesses(r, (r, s, a), t + 1, after, plain[r, s, a], common)
                    found[r, s, a] = weight @ guesses / weight.sum()
        return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(4))
def test_seasons_and_shocks_are_those_of_the_twin(seed: int) -> None:
    """Rows that alternate, that share a shock, and that are noise; pairs are seen at random."""
    rng = np.random.default_rng(seed)
    pools = Pools.of(view_of(3, 2, 4))
    part, base, twin = Forecast(doubt=0, seasons=LAGS), Forecast(**PLAIN), Twin(3)
    memory: Any = part.begin(pools)
    simple: Any = base.begin(pools)
    pays = rng.uniform(0.1, 0.6, size=(3, 2, 2))
    for t in range(20):
        shock = rng.uniform(0.2, 1.5)
        factor = np.array([1.5 if t % 2 else 0.3, shock, shock * rng.uniform(0.9, 1.1)])
        values = np.where(rng.random(pays.shape) < 0.6, pays * factor[:, None, None], np.nan)
        seen = {at: float(values[at]) for at in np.ndindex(values.shape) if not np.isnan(values[at])}
        twin.take_in(t, seen, simple, simple["likely"])
        episode = ended(pools, told(pools, values), t)
        simple = base.learn(simple, episode).memory
        estimate = part.learn(memory, episode)
        memory = estimate.memory
        expected = twin.forecast(t, simple, simple["likely"])
        np.testing.assert_allclose(estimate.likely, expected, atol=1e-9)
        assert (memory["spread"] <= simple["spread"] + 1e-12).all()


@pytest.mark.compiled
@pytest.mark.parametrize("wide", [1, 40])
def test_a_season_is_predicted_and_can_be_declared(wide: int) -> None:
    """Also where the range of rewards is declared 40 times too wide."""
    pools, paid = Pools.of(view_of(1, 1, 1)), [(0.9 if t % 7 < 2 else 0.1) / wide for t in range(29)]
    off = {}
    for name, options in {"found": {}, "declared": {"seasons": (7,)}, "none": {"seasons": ()}}.items():
        part = Forecast(**options)
        memory: Any = part.begin(pools)
        errors = []
        for t, value in enumerate(paid[:-1]):
            estimate = part.learn(memory, ended(pools, told(pools, np.array([[[np.nan, value]]])), t))
            memory = estimate.memory
            errors.append(abs(estimate.likely[0, 0, 1] - paid[t + 1]))
        off[name] = np.mean(errors[21:])
    assert max(off["found"], off["declared"]) < 0.05 / wide < off["none"]
    with pytest.raises(ModelError, match="seasons must be whole numbers from 2 to 14"):
        Forecast(seasons=(15,))


@pytest.mark.compiled
def test_who_was_seen_on_a_good_day_is_not_taken_for_good() -> None:
    """Two arms of the same quality, one seen on rich days alone; a third that is always seen shows what the day was."""
    pools, guesses = Pools.of(view_of(3, 1, 1)), {}
    for shocks in (True, False):
        part = Forecast(shocks=shocks, seasons=(), doubt=0)
        memory: Any = part.begin(pools)
        for t in range(40):
            rich = (7 * t) % 5 < 2
            values = np.full((3, 1, 2), np.nan)
            values[2, 0, 1] = values[0 if rich else 1, 0, 1] = 0.8 if rich else 0.2
            estimate = part.learn(memory, ended(pools, told(pools, values), t))
            memory = estimate.memory
        guesses[shocks] = estimate.likely[:2, 0, 1]
    assert guesses[False][0] > guesses[False][1] + 0.5
    assert abs(guesses[True][0] - guesses[True][1]) < 0.1


@pytest.mark.compiled
@pytest.mark.parametrize("alike", [True, False])
def test_phases_are_pooled_where_they_are_alike(alike: bool) -> None:
    view = view_of(1, 1, 2, phases=2, phase_of=np.array([0, 1]))
    pools, rng = Pools.of(view), np.random.default_rng(0)
    part = Forecast(seasons=(), shocks=False)
    memory: Any = part.begin(pools)
    for t in range(30):
        values = np.full((2, 1, 2), np.nan)
        values[0, 0, 1] = 0.6 + rng.uniform(-0.1, 0.1)
        if t < 20 and not alike:
            values[1, 0, 1] = 0.2 + rng.uniform(-0.1, 0.1)
        estimate = part.learn(memory, ended(pools, told(pools, values), t))
        memory = estimate.memory
    assert estimate.likely[1, 0, 1] == pytest.approx(0.6 if alike else 0.2, abs=0.06)
    assert "pool_means" in memory
    assert "pool_means" not in Forecast(phases=False).begin(pools)


@pytest.mark.parametrize("passive", ["zero", "as-active", "unknown"])
def test_passive_pay_that_is_never_revealed_is_declared(passive: Any) -> None:
    pools = Pools.of(view_of(1, 2, 4, feedback="active", low=-1.0))
    part = Forecast(passive=passive)
    if passive == "unknown":
        with pytest.warns(UserWarning, match="cannot be learned"):
            memory: Any = part.begin(pools)
    else:
        memory = part.begin(pools)
    values = np.full((1, 2, 2), np.nan)
    values[0, :, 1] = 0.3, 0.9
    estimate = part.learn(memory, ended(pools, told(pools, values), 0))
    expected = {"zero": [pools.floor] * 2, "as-active": [0.3, 0.9], "unknown": [0.0, 0.0]}[passive]
    for table in (estimate.gain, estimate.ahead, estimate.likely):
        np.testing.assert_allclose(table[0, :, 0], expected)


@pytest.mark.compiled
def test_arms_rest_where_activation_hurts() -> None:
    task = rmab.make_task("harm", episodes=12, budget=20, horizon=20)
    resting, filling = (rmab.run(task, Ucmd(step=Priced(rest=rest)), seed=1) for rest in (True, False))
    assert (filling.activations == 20 * 20).all()
    assert resting.activations[-4:].max() < 0.6 * 20 * 20
    assert resting.relative_to_random() < 0.6 < filling.relative_to_random()


def test_nobody_rests_where_forecasts_are_not_trusted() -> None:
    pools, memory = Pools.of(view_of(2, 1, 3)), {"trusted": np.array(False)}  # the plan of the past need not be there
    assert Priced().worthless(memory, pools) is None
