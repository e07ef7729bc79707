"""Kernels that may change: change points against a twin in plain Python, and what they are for."""

import math
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import view_of
from rmab.errors import ModelError
from rmab.learning import Estimated, Observations, Pools
from rmab.learning.compiled.changes import weigh_changes
from rmab.testing import check_learner

WINDOW = 3


def observed(counts: np.ndarray) -> Observations:
    nothing = np.zeros((len(counts), *counts.shape[1:3]))
    return Observations(counts, nothing, nothing)


class Twin:
    """All episodes in a list; every likelihood is computed again from them, one transition after the other."""

    def __init__(self, priors: tuple[float, ...], groups: int, states: int) -> None:
        self.priors, self.episodes, self.states, self.groups = priors, [], states, groups
        self.base = {(g, a): 0 for g in range(groups) for a in range(2)}  # the episode of its last change
        self.candidates: dict[Any, dict[int, float]] = {at: {} for at in self.base}  # episode -> log ratio
        self.common: list[dict[int, float]] = [{}, {}]  # of all groups together, by action
        self.fit = np.zeros((len(priors), 2))

    def counted(self, first: int, last: int) -> np.ndarray:
        return sum(self.episodes[first:last], np.zeros((self.groups, self.states, 2, self.states)))

    def mean(self) -> np.ndarray:
        now = len(self.episodes)
        total = self.counted(0, now).sum(axis=0)
        for a in range(2):
            kept = np.array([self.counted(self.base[g, a], now)[g, :, a] for g in range(self.groups)])
            whole = self.counted(0, now)[:, :, a]
            lost = kept.sum(axis=(1, 2)) < whole.sum(axis=(1, 2))
            if (lost | (whole.sum(axis=(1, 2)) == 0)).all() and lost.any():  # nobody is as before
                total[:, a] = kept.sum(axis=0)
        found = np.empty(total.shape)
        for s, a in np.ndindex(self.states, 2):
            row, number = total[s, a], total[s, a].sum()
            found[s, a] = (row + 1 / self.states) / (number + 1) if number < 10 else row / number
        return found

    def strength(self) -> list[float]:
        return [self.priors[int(self.fit[:, a].argmax())] for a in range(2)]

    def likelihood(self, seen: np.ndarray, before: np.ndarray, mean: np.ndarray, strength: float) -> float:
        """Of rows (S, S), transition by transition: each counts for the next."""
        total, kept = 0.0, before.astype(float).copy()
        for s, y in np.ndindex(seen.shape):
            for _ in range(int(seen[s, y])):
                vague = 0.99 * mean[s, y] + 0.01 / len(seen)
                total += math.log((kept[s, y] + strength * vague) / (kept[s].sum() + strength))
                kept[s, y] += 1
        return total

    def weights(self) -> dict[Any, dict[int | None, float]]:
        """Of every group and action: how likely each candidate, and none of them."""
        found = {}
        shown = {(at, t): math.log(0.5 + 0.5 * math.exp(r)) for at, own in self.candidates.items() for t, r in own.items()}
        for g, a in self.base:
            starts = range(len(self.episodes) - WINDOW, len(self.episodes))
            missing = math.log(0.5)  # of a group that has changed since, or before the first episode: there is no candidate
            others = {
                t: math.exp(sum(shown.get(((i, a), t), missing) for i in range(self.groups) if i != g) - 3) for t in starts
            }
            everything = 1 + sum(others.values())
            prior = {t: 0.5 * others[t] / everything + math.exp(-5) / everything for t in starts}
            own: dict[int | None, float] = {None: max(1 - sum(prior.values()), 1e-6)}
            own |= {t: prior[t] * math.exp(r) for t, r in self.candidates[g, a].items()}
            found[g, a] = {t: weight / sum(own.values()) for t, weight in own.items()}
        return found

    def take_in(self, seen: np.ndarray) -> None:
        now, mean, strength, weights = len(self.episodes), self.mean(), self.strength(), self.weights()
        fits = np.zeros(self.fit.shape)
        for (g, a), first in self.base.items():
            before = self.counted(first, now)[g, :, a]
            for p, prior in enumerate(self.priors):
                chance = (before + prior * mean[:, a]) / (before.sum(axis=1, keepdims=True) + prior)
                fits[p, a] += float((seen[g, :, a] * np.log(np.maximum(chance, 1e-6))).sum())
        for a in range(2):
            self.judge_common(seen, a, mean, strength[a])
        firsts, oldest = dict(self.base), now - WINDOW
        for g, a in self.base:
            own, since = self.candidates[g, a], self.counted(max(oldest, 0), now)[:, :, a].sum()
            before = sum(self.counted(firsts[i, a], now)[i, :, a].sum() for i in range(self.groups))
            if weights[g, a].get(oldest, 0.0) > 0.5 and before > 2 * since:
                self.base[g, a] = oldest
                own.clear()
            own.pop(oldest, None)
            own[now] = 0.0
            plain = self.likelihood(seen[g, :, a], self.counted(self.base[g, a], now)[g, :, a], mean[:, a], strength[a])
            for t in own:
                own[t] += self.likelihood(seen[g, :, a], self.counted(t, now)[g, :, a], mean[:, a], strength[a]) - plain
        self.fit += fits
        self.episodes.append(seen)
        for a in range(2):
            lead = {t: ratio - max(self.shown(t, a), 0.0) for t, ratio in self.common[a].items()}
            t = max(lead, key=lambda one: lead[one])
            since = self.counted(t, now + 1)[:, :, a].sum()
            before = sum(self.counted(self.base[g, a], now + 1)[g, :, a].sum() for g in range(self.groups))
            if lead[t] > 5 and strength[a] >= 16 and before > 4 * since:
                self.common[a].clear()
                self.common[a][now] = -math.inf
                for g in range(self.groups):
                    self.base[g, a] = t
                    self.candidates[g, a].clear()

    def shown(self, t: int, a: int) -> float:
        """How much speaks for a change of some groups, each to kernels of its own."""
        ratios = (self.candidates[g, a].get(t, -math.inf) for g in range(self.groups))
        return sum(math.log(0.5 + 0.5 * math.exp(one)) for one in ratios)

    def judge_common(self, seen: np.ndarray, a: int, mean: np.ndarray, strength: float) -> None:
        now, own = len(self.episodes), self.common[a]
        own.pop(now - WINDOW, None)
        own[now] = 0.0
        plain = 0.0
        for g in range(self.groups):
            before = self.counted(self.base[g, a], now)[g, :, a]
            plain += self.likelihood(seen[g, :, a], before, mean[:, a], strength)
        for t in own:
            together = self.counted(t, now).sum(axis=0)[:, a]
            own[t] += self.likelihood(seen.sum(axis=0)[:, a], together, mean[:, a], 4.0) - plain

    def kernels(self) -> np.ndarray:
        now, mean, strength, found = len(self.episodes), self.mean(), self.strength(), np.zeros(self.episodes[0].shape)
        for (g, a), own in self.weights().items():
            for t, weight in own.items():
                rows = self.counted(self.base[g, a] if t is None else t, now)[g, :, a]
                found[g, :, a] += (
                    weight * (rows + strength[a] * mean[:, a]) / (rows.sum(axis=1, keepdims=True) + strength[a])
                )
        return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_change_points_are_those_of_the_twin(seed: int) -> None:
    """Three groups of three states: one changes with another at episode 6, one never does; some rows are not visited."""
    rng = np.random.default_rng(seed)
    pools, part, twin = Pools.of(view_of(3, 3, 4)), Estimated(priors=(1.0, 8.0)), Twin((1.0, 8.0), 3, 3)
    rows = rng.dirichlet(np.ones(3), size=(2, 3, 3, 2))
    rows[1, 2] = rows[0, 2]
    memory: Any = part.begin(pools)
    changed = False
    for t in range(12):
        number = rng.integers(0, 12, size=(3, 3, 2))
        counts = rng.multinomial(number, rows[int(t >= 6)]).astype(np.int64)
        memory = part.learn(memory, observed(counts))
        twin.take_in(counts)
        np.testing.assert_allclose(memory["fit"][0], twin.fit, rtol=1e-9)
        kernels = part.after(pools, memory, memory["counts"], t + 1).low
        np.testing.assert_allclose(kernels, twin.kernels(), atol=2e-5)  # weights below 1e-6 are dropped
        changed |= any(first > 0 for first in twin.base.values())
    assert changed
    assert max(twin.base[2, 0], twin.base[2, 1]) < 6  # the steady one did not change with the others


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(3))
def test_a_change_of_all_is_found_by_what_they_show_together(seed: int) -> None:
    """Eight groups that are alike; after ten episodes each shows one transition in three episodes, of other kernels."""
    rng = np.random.default_rng(seed)
    pools, part, twin = Pools.of(view_of(8, 2, 4)), Estimated(priors=(1.0, 256.0)), Twin((1.0, 256.0), 8, 2)
    memory: Any = part.begin(pools)
    for t in range(16):
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        number = np.full(8, 12) if t < 10 else (np.arange(8) + t) % 3 == 0
        counts[:, 0, 1] = rng.multinomial(number, [0.9, 0.1] if t < 10 else [0.1, 0.9])
        memory = part.learn(memory, observed(counts))
        twin.take_in(counts)
        np.testing.assert_allclose(memory["fit"][0], twin.fit, rtol=1e-9, atol=1e-9)
        kernels = part.after(pools, memory, memory["counts"], t + 1).low
        np.testing.assert_allclose(kernels, twin.kernels(), atol=2e-5)
        assert t >= 10 or not any(twin.base.values())
    assert all(twin.base[g, 1] >= 10 for g in range(8))
    assert kernels[:, 0, 1, 1].mean() > 0.6


@pytest.mark.compiled
def test_steady_groups_hardly_ever_change_together() -> None:
    """100 worlds of six groups that are alike, or not, seen often or seldom, in 30 episodes each."""
    pools, part, rng, false = Pools.of(view_of(6, 2, 4)), Estimated(), np.random.default_rng(0), 0
    for _ in range(100):
        up = rng.uniform(0.1, 0.9, size=(2, 2)) + rng.choice([0.0, 0.1]) * rng.uniform(-1, 1, size=(6, 2, 2))
        memory: Any = part.begin(pools)
        for t in range(30):
            number = rng.integers(0, 10 if t < 10 else 2, size=(6, 2, 2))
            memory = part.learn(memory, observed(rng.multinomial(number, np.stack([1 - up, up], axis=3)).astype(np.int64)))
        total, left = (memory[name].sum(axis=(1, 3)) for name in ("counts", "base"))
        false += int((left < total).all(axis=0).any())
    assert false <= 2


@pytest.mark.compiled
def test_a_change_is_followed_at_once_and_told_to_others() -> None:
    """Ten groups change; the eleventh is not visited, and may have changed as well."""
    pools, rng, kernels = Pools.of(view_of(11, 2, 4)), np.random.default_rng(0), {}
    for changes in (True, False):
        part = Estimated(changes=changes, priors=(1.0,))
        memory: Any = part.begin(pools)
        for t in range(9):
            counts = np.zeros(pools.support.shape, dtype=np.int64)
            counts[:, 0, 1] = rng.multinomial(25, [0.8, 0.2] if t < 8 else [0.2, 0.8], size=11)
            if t == 8:
                counts[10] = 0
            memory = part.learn(memory, observed(counts))
        kernels[changes] = part.after(pools, memory, memory["counts"], 9).low[:, 0, 1, 1]
        if changes:
            weight = np.empty((4, 11, 2))
            weigh_changes(np.array(memory["ratio"]), weight)
    assert (kernels[True][:10] > 0.6).all()
    assert (kernels[False][:10] < 0.4).all()
    assert 0.4 < weight[1:, 10, 1].sum() < 0.6  # half of the groups change where something happens to all
    unknown = 3 * (0.5 * math.exp(-3) + math.exp(-5)) / (1 + 3 * math.exp(-3))  # nobody was passive: as likely as a priori
    np.testing.assert_allclose(weight[1:, :, 0].sum(axis=0), unknown)


@pytest.mark.compiled
def test_a_steady_world_is_not_forgotten() -> None:
    pools, rng = Pools.of(view_of(4, 2, 4)), np.random.default_rng(2)
    found = {True: Estimated(), False: Estimated(changes=False)}
    memory: Any = {changes: part.begin(pools) for changes, part in found.items()}
    for _ in range(40):
        seen = observed(rng.multinomial(10, [0.7, 0.3], size=pools.support.shape[:3]).astype(np.int64))
        memory = {changes: part.learn(memory[changes], seen) for changes, part in found.items()}
    one, other = (found[c].after(pools, memory[c], memory[c]["counts"], 40).low for c in (True, False))
    np.testing.assert_allclose(one, other, atol=0.01)


@pytest.mark.compiled
@pytest.mark.parametrize(("spread", "prior"), [(0.0, 256.0), (0.3, 4.0)])
def test_the_more_alike_groups_are_the_more_they_share(spread: float, prior: float) -> None:
    pools, rng, part = Pools.of(view_of(20, 2, 4)), np.random.default_rng(3), Estimated()
    up = np.clip(0.5 + spread * rng.choice([-1, 1], size=(20, 2, 2)), 0, 1)
    memory: Any = part.begin(pools)
    for _ in range(15):
        counts = rng.multinomial(8, np.stack([1 - up, up], axis=3)).astype(np.int64)
        memory = part.learn(memory, observed(counts))
    strengths = np.array(part.priors)[memory["fit"][0].argmax(axis=0)]
    assert (strengths == prior).all() if spread == 0 else (strengths <= prior).all()


def test_priors_are_checked() -> None:
    with pytest.raises(ModelError, match="priors must be one or more numbers"):
        Estimated(priors=(0.0,))


@pytest.mark.compiled
def test_relabelled_groups_have_relabelled_kernels() -> None:
    rng, order = np.random.default_rng(5), np.array([2, 0, 3, 1])
    pools, part = Pools.of(view_of(4, 3, 4)), Estimated()
    one, other = part.begin(pools), part.begin(pools)
    for t in range(8):
        counts = rng.multinomial(9, rng.dirichlet(np.ones(3)), size=(4, 3, 2)).astype(np.int64)
        one, other = part.learn(one, observed(counts)), part.learn(other, observed(counts[order]))
        kernels = [part.after(pools, memory, memory["counts"], t + 1).low for memory in (one, other)]
        np.testing.assert_allclose(kernels[0][order], kernels[1], rtol=1e-9)


@pytest.mark.compiled
def test_drift_is_followed() -> None:
    task = rmab.make_task("drift", episodes=24, horizon=40)
    following, steady = (rmab.run(task, rmab.make_learner("ucmd", changes=one), seed=1) for one in (True, False))
    assert following.relative_to_random() < steady.relative_to_random() - 0.2


@pytest.mark.compiled
def test_arms_that_rest_are_tried_again_where_dynamics_change() -> None:
    """Activation hurts all arms, so that they rest; then it helps them."""
    moves = {one: np.array([[1 - one, one]] * 2) for one in (0.1, 0.5, 0.9)}
    before, after = (np.tile(np.stack([moves[0.5], moves[one]], axis=1), (8, 1, 1, 1)) for one in (0.1, 0.9))
    rewards = np.broadcast_to(np.array([[0.0, 0.0], [1.0, 1.0]]), (30, 8, 2, 2))
    task = rmab.Task.from_rewards(rmab.Problem(rmab.Arms(before), 0, 4, 20), rewards, low=0, high=1)
    task = task.changed(12, rmab.Problem(rmab.Arms(after), 0, 4, 20))
    run = rmab.run(task, "ucmd", seed=1)
    assert (run.activations[5:12] < 20).all()
    assert (run.activations[-8:] == 80).all()


@pytest.mark.slow
@pytest.mark.compiled
def test_the_whole_learner_keeps_the_contract() -> None:
    """Among it: a run that is saved and resumed after every episode is the same run."""
    check_learner(rmab.make_learner("ucmd"))
