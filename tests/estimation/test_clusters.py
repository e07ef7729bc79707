"""Clusters of arms by a mixture of Markov chains: recovered where they are separable, counted by BIC, stable by seed."""

import numpy as np
import pytest

import rmab
from logs import mothers, read, table
from rmab.estimation.clusters import best_mixture, count_by_arm, mixture


def separable(arms: int, weeks: int, rng: np.random.Generator) -> tuple[rmab.data.Log, np.ndarray]:
    kernels = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]], [[0.5, 0.5], [0.95, 0.05]]])
    kind, rows = rng.integers(0, 3, arms), []
    for n in range(arms):
        state = int(rng.integers(2))
        for week in range(weeks):
            rows.append((f"n{n}", week, f"s{state}", int(rng.random() < 0.2)))
            state = int(rng.random() < kernels[kind[n], state, 1])
    return read(table(*rows)), kind


def adjusted_rand(one: np.ndarray, other: np.ndarray) -> float:
    """Hubert & Arabie 1985."""
    cross = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(cross, (one, other), 1)
    pairs = lambda x: (x * (x - 1) / 2).sum()  # noqa: E731
    both, rows, columns = pairs(cross), pairs(cross.sum(axis=1)), pairs(cross.sum(axis=0))
    expected = rows * columns / pairs(np.array([one.size]))
    return float((both - expected) / ((rows + columns) / 2 - expected))


def test_clusters_are_recovered_counted_by_bic_and_stable_by_seed() -> None:
    log, kind = separable(150, 60, np.random.default_rng(0))
    fitted = rmab.data.fit(log, reward={"s1": 1}, clusters="auto", seed=4)
    assert len(fitted.groups) == 3
    assert adjusted_rand(fitted.group_of, kind) > 0.9
    assert np.array_equal(rmab.data.fit(log, reward={"s1": 1}, clusters="auto", seed=4).group_of, fitted.group_of)
    other = rmab.data.fit(log, reward={"s1": 1}, clusters="auto", seed=5)
    assert adjusted_rand(other.group_of, fitted.group_of) == 1.0
    assert np.array_equal(other.group_of, fitted.group_of)  # named by size, not by luck


def test_arms_alike_are_one_cluster() -> None:
    counts = count_by_arm(mothers(200, 30, groups=()).log)
    assert best_mixture(counts, 0).count == 1


def test_em_never_lowers_the_likelihood_of_more_clusters() -> None:
    log, _ = separable(60, 30, np.random.default_rng(1))
    counts = count_by_arm(log)
    values = [mixture(counts, k, 0).likelihood for k in (1, 2, 3)]
    assert values == sorted(values)
    with pytest.raises(rmab.errors.ModelError, match="clusters must be"):
        rmab.data.fit(log, reward={"s1": 1}, clusters=0)


def drawn(number: int, arms: int, weeks: int, states: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts (N, S, 2, S) of arms in clusters of random kernels, who belongs where, and what one who knew them would say."""
    rng = np.random.default_rng((number, arms, states, seed))
    kernels, kind = rng.dirichlet(np.ones(states), (number, states, 2)), rng.integers(0, number, arms)
    counts, now, everyone = np.zeros((arms, states, 2, states)), rng.integers(0, states, arms), np.arange(arms)
    for _ in range(weeks):
        act = (rng.random(arms) < 0.3).astype(int)
        sums = kernels[kind, now, act].cumsum(axis=1)
        after = np.minimum((rng.random(arms)[:, np.newaxis] > sums).sum(axis=1), states - 1)
        np.add.at(counts, (everyone, now, act, after), 1)
        now = after
    told = counts.reshape(arms, -1) @ np.log(np.maximum(kernels, 1e-12)).reshape(number, -1).T
    return counts, kind, told.argmax(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 5, 8])
def test_random_clusters_are_found_as_well_as_by_one_who_knew_their_kernels(number: int) -> None:
    for seed in range(2):
        counts, kind, known = drawn(number, 300, 50, 3, seed)
        found, again = best_mixture(counts, 0), best_mixture(counts, 1)
        labels, others = found.share.argmax(axis=1), again.share.argmax(axis=1)
        assert found.count == again.count == number
        assert adjusted_rand(known, kind) > 0.95  # so they are separable
        assert adjusted_rand(labels, kind) > max(0.9, adjusted_rand(known, kind) - 0.03)
        assert adjusted_rand(labels, others) > 0.98


def test_a_state_that_nobody_was_seen_leaving_does_not_break_clusters() -> None:
    counts = drawn(2, 60, 40, 2, 0)[0]
    wide = np.zeros((60, 3, 2, 3))
    wide[:, :2, :, :2] = counts
    with np.errstate(all="raise", under="ignore"):
        found = best_mixture(wide, 0)
    assert np.isfinite(found.likelihood)
    assert np.array_equal(found.share.argmax(axis=1), best_mixture(counts, 0).share.argmax(axis=1))
