"""Rest, replay, pooled phases, types of arms and what others pay: against twins in plain Python."""

import math
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import ended, view_of
from literal import fit_by_hand
from rmab.learning import Estimated, Forecast, Observations, Pools
from rmab.learning.compiled.patterns import add_others
from rmab.learning.components import priced
from rmab.learning.components.estimated import _of_types
from rmab.play.simulation import play_episode
from rmab.runs.running import Game

PLAIN: dict[str, Any] = {"doubt": 0, "seasons": (), "shocks": False, "alike": False}


def advantages(kernels: np.ndarray, reward: np.ndarray, prices: np.ndarray, beta: float, rate: float) -> np.ndarray:
    """(N, H, S) what activation is worth before its price: softened backward induction, arm by arm and state by state."""
    arms, states = reward.shape[:2]
    found = np.empty((arms, prices.size, states))
    for n in range(arms):
        ahead = [0.0] * states
        for h in reversed(range(prices.size)):
            value = [[reward[n, s, a] + float(np.dot(kernels[n, s, a], ahead)) for a in range(2)] for s in range(states)]
            for s, (passive, active) in enumerate(value):
                found[n, h, s] = active - passive
                soft = 1 - rate + rate * math.exp(beta * (active - passive - prices[h]))
                ahead[s] = passive + math.log(soft) / beta
    return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(2))
def test_arms_rest_where_activation_is_worth_less_than_nothing(seed: int) -> None:
    """After some episodes of `harm`, what was activated five times and is worth less than nothing rests, nothing else."""
    task = rmab.make_task("harm", seed=seed, arms=8, hurt=5, budget=6, horizon=6, episodes=9)
    learner: Any = rmab.make_learner("ucmd", probes={"every": 0.0})
    run = rmab.run(task, learner, seed=seed)
    state, pools = run.state, Pools.of(run.state.view)
    known = state.of("step")
    assert known["trusted"]
    kernels = learner.confidence.after(pools, state.of("sets"), state.arrays["sets.counts"], state.episode).low
    beta, prices = float(known["forecast.beta"]), known["forecast.prices"]
    worth = advantages(kernels, known["forecast.reward"], prices, beta, 6 / 8)
    table, rested = learner.plan(state).policy.table, 0
    for n, h, s in np.ndindex(worth.shape):
        often = state.arrays["sets.counts"][n, s, 1].sum() >= 5
        if abs(beta * worth[n, h, s]) > 0.02:  # a share within a thousandth of that of nothing is not called less
            assert (table[n, h, s] == -1.0) == (often and worth[n, h, s] < 0), (n, h, s)
            rested += table[n, h, s] == -1.0
    assert 0 < rested < worth.size


@pytest.mark.parametrize("budget", [5, [8, 2, 6]])
def test_a_quarter_rests_in_the_first_episode_where_most_may_be_active(budget: Any) -> None:
    view = view_of(9, 1, 3, budget=np.asarray(budget) if isinstance(budget, list) else budget)
    learner = rmab.make_learner("ucmd")
    table = learner.plan(learner.begin(view)).policy.table
    many = np.broadcast_to(budget, 3)
    assert [int((table[:, h] == -1.0).sum()) for h in range(3)] == [2 if 2 * one > 9 else 0 for one in many]


@pytest.mark.compiled
def test_shares_are_drawn_once_that_has_earned_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gains of replays are added up, nine tenths of them from episode to episode, and held against what came true."""
    gains = [0.02, 0.4, -0.6, 3.0, 0.0, -4.0, 0.1]
    later = iter(gains)
    monkeypatch.setattr(priced, "gain_of_drawing", lambda *_: next(later))
    learner, total, drawn = rmab.make_learner("ucmd", trust=0.0), 0.0, []
    task = rmab.make_task("cpap@noisy", arms=6, budget=2, horizon=8, episodes=8)
    game = Game(task, [0])
    state = learner.begin(game.view)
    for t, gain in enumerate([0.0, *gains]):  # there is nothing to replay in the first episode
        policy = learner.plan(state).policy
        streams = game.begin(t, policy)
        state = learner.learn(state, game.feedback(play_episode(task.problem, policy, game.reward(), streams[:, :2])))
        total = 0.9 * total + gain
        known = state.of("step")
        assert float(known["drawing"]) == pytest.approx(total)
        drawn.append(total > 0.05 * max(float(known["realised"]), 0.0))
        assert (learner.plan(state).policy.rounding == "dependent") == drawn[-1]
    assert {True, False} == set(drawn)


def told(pools: Pools, values: np.ndarray) -> Observations:
    return Observations(np.zeros(pools.support.shape, dtype=np.int64), values, np.ones(values.shape))


class Phases:
    """Forecasts of arms in K phases, of each by itself and of all as one, weighed by their errors: all in lists."""

    def __init__(self, arms: int, phases: int) -> None:
        self.phases, self.errors = phases, [[] for _ in range(arms * phases)]

    def guesses(self, alone: Any, pooled: np.ndarray) -> list[np.ndarray]:
        """Of every row (R, P): by itself, the same as in all phases, and in proportion to what is known of its arm."""
        likely, times = alone["likely"].reshape(len(self.errors), -1), np.minimum(alone["times"], 20)
        same, fit = np.empty(likely.shape), np.empty(likely.shape)
        for n, row in enumerate(pooled.reshape(len(pooled), -1)):
            own = slice(n * self.phases, (n + 1) * self.phases)
            same[own] = row
            fit[own] = fit_by_hand(likely[own], times.reshape(likely.shape)[own], row)[0]
        return [likely, same, fit]

    def check(self, values: np.ndarray, alone: Any, pooled: np.ndarray) -> None:
        guesses, times = self.guesses(alone, pooled), alone["times"].reshape(len(values), -1)
        for r, row in enumerate(values.reshape(len(values), -1)):
            pairs = [p for p in range(row.size) if not np.isnan(row[p]) and times[r, p] > 0]
            if pairs:
                self.errors[r].append([np.mean([(row[p] - one[r, p]) ** 2 for p in pairs]) for one in guesses])

    def forecast(self, alone: Any, pooled: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """(R, P) where pairs were ever seen; seen (N, P): how often in any phase."""
        fading = [sum(0.98**k for k in range(len(own))) for own in self.errors]
        sums = [sum((0.98**k * np.array(one) for k, one in enumerate(own[::-1])), np.zeros(3)) for own in self.errors]
        everybody, guesses = sum(sums) / max(sum(fading), 1e-300), self.guesses(alone, pooled)
        found, times = guesses[0].copy(), alone["times"].reshape(guesses[0].shape)
        for r in range(len(found)):
            number = fading[r] + 4
            score = (sums[r] + 4 * everybody) / number
            weight = np.exp(-0.5 * min(number, 60) * (score / max(score.min(), 1e-12) - 1))
            weight /= weight.sum()
            for p in range(found.shape[1]):
                own, one, other = (table[r, p] for table in guesses)
                if times[r, p] > 0:
                    found[r, p] = weight @ [own, one, other]
                elif seen[r // self.phases, p] > 0:  # the phases that were seen count as much as their forecasts deserve
                    both = weight[1] + weight[2]
                    sure = min(both / weight[0], 1.0)
                    found[r, p] = own + sure * (weight[1] * (one - own) + weight[2] * (other - own)) / both
        return found


@pytest.mark.compiled
@pytest.mark.parametrize("spread", [0.0, 0.6])
def test_phases_are_pooled_as_by_the_twin(spread: float) -> None:
    """Two arms in three phases, the same or not; few pairs are seen, and one never in one phase."""
    rng, phases = np.random.default_rng(int(10 * spread)), 3
    pools = Pools.of(view_of(2, 2, 6, phases=phases, phase_of=np.arange(6) % phases))
    whole = Pools.of(view_of(2, 2, 6))
    part, single = Forecast(**PLAIN), Forecast(**PLAIN, phases=False)
    memory: Any = part.begin(pools)
    alone: Any = single.begin(pools)
    pooled: Any = single.begin(whole)
    twin, pays = Phases(2, phases), np.repeat(rng.uniform(0.2, 0.6, (2, 2, 2)), phases, axis=0)
    pays *= rng.uniform(1 - spread, 1 + spread, pays.shape)
    moved = 0.0
    for t in range(15):
        values = np.where(rng.random(pays.shape) < 0.4, pays * rng.uniform(0.9, 1.1, pays.shape), np.nan)
        values[1, 0, 1] = np.nan
        values[2, 0, 1] = pays[2, 0, 1]
        twin.check(values, alone, pooled["likely"])
        by_phase = values.reshape(2, phases, 2, 2)
        number = (~np.isnan(by_phase)).sum(axis=1)
        mean = np.where(number > 0, np.nansum(by_phase, axis=1) / np.maximum(number, 1), np.nan)
        alone = single.learn(alone, ended(pools, told(pools, values), t)).memory
        pooled = single.learn(pooled, ended(whole, told(whole, mean), t)).memory
        estimate = part.learn(memory, ended(pools, told(pools, values), t))
        memory = estimate.memory
        expected = twin.forecast(alone, pooled["likely"], pooled["times"].reshape(2, -1))
        np.testing.assert_allclose(estimate.likely.reshape(expected.shape), expected, atol=1e-9)
        moved = max(moved, float(np.abs(expected - alone["likely"].reshape(expected.shape)).max()))
    assert moved > 0.05
    assert alone["times"][1, 0, 1] == 0 < pooled["times"][0, 0, 1]


@pytest.mark.compiled
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_kernels_of_phases_are_those_of_the_twin(spread: float) -> None:
    """Three groups in two phases, whose kernels do not differ, or do: the likeliest prior of five transitions is taken."""
    rng, phases, groups, states = np.random.default_rng(2), 2, 3, 2
    pools = Pools.of(view_of(groups, states, 4, phases=phases, phase_of=np.array([0, 1, 0, 1])))
    part, priors = Estimated(priors=(1.0, 20.0), changes=False), (1.0, 20.0)
    memory: Any = part.begin(pools)
    rows, other = (rng.dirichlet(np.ones(states), (groups, phases, states, 2)) for _ in range(2))
    rows = (1 - spread) * rows[:, :1] + spread * other
    counts = np.zeros((groups, phases, states, 2, states))
    likely: dict[Any, float] = {}

    def common(row: np.ndarray) -> np.ndarray:
        return (row + 1 / states) / (row.sum() + 1) if row.sum() < 10 else row / row.sum()

    def mean(way: str, g: int, k: int, s: int, a: int) -> np.ndarray:
        if way == "group":
            return common(counts[:, k, s, a].sum(axis=0))
        own = counts[g, :, s, a].sum(axis=0)
        return (own + 4 * common(counts[:, :, s, a].sum(axis=(0, 1)))) / (own.sum() + 4)

    for t in range(8):
        seen = rng.multinomial(rng.integers(0, 6, rows.shape[:-1]), rows).astype(np.int64)
        for way in ("phases", "group"):
            for prior in priors:
                for g, k, s, a in np.ndindex(groups, phases, states, 2):
                    before = counts[g, k, s, a]
                    chance = (before + prior * mean(way, g, k, s, a)) / (before.sum() + prior)
                    fit = float(seen[g, k, s, a] @ np.log(np.maximum(chance, 1e-6)))
                    likely[a, way, prior] = likely.get((a, way, prior), 0.0) + fit
        counts += seen
        observed = Observations(seen.reshape(-1, states, 2, states), np.zeros((6, 2, 2)), np.zeros((6, 2, 2)))
        memory = part.learn(memory, observed)
        kernels = part.after(pools, memory, memory["counts"], t + 1).low.reshape(counts.shape)
        best = [max(((w, p) for w in ("phases", "group") for p in priors), key=lambda one: likely[a, *one]) for a in (0, 1)]
        for g, k, s, a in np.ndindex(groups, phases, states, 2):
            way, prior = best[a]
            row = (counts[g, k, s, a] + prior * mean(way, g, k, s, a)) / (counts[g, k, s, a].sum() + prior)
            np.testing.assert_allclose(kernels[g, k, s, a], row, atol=1e-12)
    assert spread > 0 or {way for way, _ in best} == {"phases"}


@pytest.mark.parametrize("seed", range(3))
def test_what_others_pay_is_weighed_as_by_the_twin(seed: int) -> None:
    """Arms in proportion, with noise; some pairs were never seen, and one arm has shown nothing."""
    rng = np.random.default_rng(seed)
    pays = np.outer(rng.uniform(0.3, 0.9, 6), rng.uniform(0.2, 1.0, 4)) * rng.uniform(0.8, 1.2, (6, 4))
    times, zero = rng.integers(0, 25, (6, 4)) * (rng.random((6, 4)) < 0.7), rng.random((6, 4)) < 0.1
    times[5] = 0
    number = np.where(zero, 0, np.minimum(times, 20)).astype(float)
    likely = np.where(number > 0, pays, 0.4)
    ahead = np.where(number > 0, likely, 0.8)
    mean = np.array([number[:, p] @ likely[:, p] / max(number[:, p].sum(), 1) for p in range(4)])
    fit, sure = fit_by_hand(likely, number, mean)
    off = plain = 0.0
    for n, row in enumerate(number):
        known = [p for p in range(4) if row[p] > 0]
        if len(known) > 1:
            own = sum(likely[n, p] for p in known) / len(known)
            off += sum(row[p] * (likely[n, p] - fit[n, p]) ** 2 for p in known)
            plain += sum(row[p] * (likely[n, p] - own) ** 2 for p in known)
    expected, hoped = likely.copy(), ahead.copy()
    for n, p in np.ndindex(6, 4):
        if number[n, p] == 0 and not zero[n, p] and number[n].any() and number[:, p].any():
            part = 1 - sure[n] * (1 - min(off / plain, 1))
            expected[n, p] = part * likely[n, p] + (1 - part) * fit[n, p]
            hoped[n, p] = min(expected[n, p] + math.sqrt(part) * (ahead[n, p] - likely[n, p]), 1.0)
    found = likely.copy()
    add_others(found, ahead, times, zero)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(ahead, hoped, atol=1e-12)
    assert (expected != likely).any()


def mixture(counts: np.ndarray, rounds: int = 15) -> np.ndarray:
    """(G, S, 2, S) what is expected of groups of four types: a mixture of distributions, fitted with loops over groups."""
    groups, states = counts.shape[:2]
    mean = np.array([[row / row.sum() for row in pair] for pair in counts.sum(axis=0)])
    unlike = np.array([(one - one.sum(axis=2, keepdims=True) * mean).reshape(-1) for one in counts])
    variance = sum((one.sum(axis=2, keepdims=True) * mean * (1 - mean)).reshape(-1) for one in counts)
    unlike /= np.sqrt(np.maximum(variance, 1.0))
    score = unlike @ np.linalg.svd(unlike)[2][0]
    cuts = [np.quantile(score, q) for q in (0.25, 0.5, 0.75)]
    weight = [[float(sum(cut < one for cut in cuts) == c) for c in range(4)] for one in score]
    for _ in range(rounds):
        kernels = [sum((weight[n][c] * counts[n] for n in range(groups)), mean.copy()) for c in range(4)]
        kernels = [one / one.sum(axis=2, keepdims=True) for one in kernels]
        size = [1 + sum(own[c] for own in weight) for c in range(4)]
        for n in range(groups):
            logs = [math.log(size[c]) + float((counts[n] * np.log(np.maximum(kernels[c], 1e-9))).sum()) for c in range(4)]
            odds = [math.exp(one - max(logs)) for one in logs]
            weight[n] = [one / sum(odds) for one in odds]
    return np.array([sum(weight[n][c] * kernels[c] for c in range(4)) for n in range(groups)]).reshape(-1, states, 2, states)


@pytest.mark.parametrize("seed", range(3))
def test_types_of_groups_are_those_of_the_twin(seed: int) -> None:
    """70 groups of three types; a shuffled order changes nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), (3, 3, 2))[rng.integers(3, size=70)]
    counts = rng.multinomial(rng.integers(3, 12, rows.shape[:-1]), rows)
    common = np.broadcast_to(counts.sum(axis=0) / counts.sum(axis=(0, 3))[..., np.newaxis], counts.shape)
    found, order = _of_types(counts, common), rng.permutation(70)
    np.testing.assert_allclose(found, mixture(counts), atol=1e-6)
    np.testing.assert_allclose(_of_types(counts[order], common), found[order], atol=1e-9)
    assert np.abs(found - rows).mean() < 0.5 * np.abs(common - rows).mean()


@pytest.mark.compiled
@pytest.mark.parametrize("typed", [True, False])
def test_types_are_used_where_they_predict_better(typed: bool) -> None:
    """80 groups, of two types or of one; few transitions of each are seen."""
    rng, pools = np.random.default_rng(4), Pools.of(view_of(80, 2, 4))
    rows = rng.dirichlet(np.ones(2), (2, 2, 2))[rng.integers(2, size=80) * typed]
    off = {}
    for options in ({}, {"types": False}):
        part, draws = Estimated(changes=False, **options), np.random.default_rng(5)
        memory: Any = part.begin(pools)
        for _ in range(4):
            seen = draws.multinomial(np.full((80, 2, 2), 2), rows).astype(np.int64)
            memory = part.learn(memory, Observations(seen, np.zeros((80, 2, 2)), np.zeros((80, 2, 2))))
        off[bool(options)] = float(np.abs(part.after(pools, memory, memory["counts"], 4).low - rows).mean())
    assert off[False] < 0.6 * off[True] if typed else off[False] < 1.1 * off[True]
    assert [len(Estimated().begin(Pools.of(view_of(arms, 2, 4)))["fit"]) for arms in (63, 64, 100_000)] == [1, 2, 1]
