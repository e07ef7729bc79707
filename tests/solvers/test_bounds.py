"""Comp-UOB and the dilated bonus: brute force over the vertices of the sets, linear programmes, hand-computed numbers."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from rmab.common.arrays import FloatArray, IntArray
from rmab.solvers.compiled.bounds import dilated_bonus, occupancy_bounds
from rmab.solvers.transitions import TransitionSets

pytestmark = pytest.mark.compiled


def boxes(seed: int, blocks: int, states: int, width: float = 0.3) -> tuple[FloatArray, FloatArray]:
    """Random boxes (C,S,2,S) that hold a kernel; some entries are impossible."""
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(states), size=(blocks, states, 2))
    low = np.maximum(kernel - width * rng.random(kernel.shape), 0.0)
    high = np.minimum(kernel + width * rng.random(kernel.shape), 1.0)
    if states > 2:  # what cannot happen goes to the next state instead
        kernel[:, 0, :, 1] += kernel[:, 0, :, 0]
        high[:, 0, :, 1] = np.minimum(high[:, 0, :, 1] + high[:, 0, :, 0], 1.0)
        low[:, 0, :, 0] = high[:, 0, :, 0] = 0.0
    return low, high


def one_phase(share: FloatArray) -> IntArray:
    return np.zeros(share.shape[1], dtype=np.int64)


def computed(low: FloatArray, high: FloatArray, share: FloatArray, start: list[int], sign: float) -> FloatArray:
    bound, wanted = np.empty((*share.shape, 2)), np.ones(share.shape, dtype=bool)
    begins = np.eye(low.shape[1])[start]
    occupancy_bounds(TransitionSets(low, high).rows, one_phase(share), share, begins, wanted, sign, bound)
    return bound


def vertices(low: FloatArray, high: FloatArray) -> list[FloatArray]:
    """Return the vertices of {low <= p <= high, sum p = 1}: all entries but one at an end."""
    found = []
    for loose in range(low.size):
        for ends in product((0, 1), repeat=low.size - 1):
            p = np.insert(np.where(ends, np.delete(high, loose), np.delete(low, loose)), loose, 0.0)
            p[loose] = 1.0 - p.sum()
            if low[loose] - 1e-12 <= p[loose] <= high[loose] + 1e-12:
                found.append(p)
    return found


def occupancy(rows: FloatArray, share: FloatArray, start: int) -> FloatArray:
    """(H,S,2) by definition, from rows (H-1,S,2,S) and shares (H,S)."""
    horizon, states = share.shape
    q, law = np.zeros((horizon, states, 2)), np.eye(states)[start]
    for h in range(horizon):
        q[h] = law[:, None] * np.stack([1 - share[h], share[h]], axis=1)
        if h + 1 < horizon:
            law = np.einsum("sa,say->y", q[h], rows[h])
    return q


@pytest.mark.parametrize(("states", "horizon"), [(2, 3), (3, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_those_of_all_vertices(seed: int, states: int, horizon: int) -> None:
    low, high = boxes(seed, 1, states)
    share = np.random.default_rng(seed).random((1, horizon, states))
    start = seed % states
    choices = [vertices(low[0, s, a], high[0, s, a]) for _, s, a in np.ndindex(horizon - 1, states, 2)]
    if states == 3:  # with two steps only the rows of the start matter
        choices = [some if i // 2 == start else some[:1] for i, some in enumerate(choices)]
    most, least = np.zeros((horizon, states, 2)), np.ones((horizon, states, 2))
    for rows in product(*choices):
        q = occupancy(np.array(rows).reshape(horizon - 1, states, 2, states), share[0], start)
        most, least = np.maximum(most, q), np.minimum(least, q)
    np.testing.assert_allclose(computed(low, high, share, [start], 1.0)[0], most, atol=1e-12)
    np.testing.assert_allclose(computed(low, high, share, [start], -1.0)[0], least, atol=1e-12)


def programme(
    low: FloatArray, high: FloatArray, share: FloatArray, start: int, target: tuple[int, int], sign: float
) -> float:
    """Return the most or least mass of a node by a linear programme over z (H,S,2,S), with HiGHS."""
    horizon, states = share.shape
    at = np.arange(horizon * states * 2 * states).reshape(horizon, states, 2, states)
    equal, right, less = [], [], []
    for h, s in np.ndindex(horizon, states):
        row = np.zeros(at.size)
        row[at[h, s]] += 1.0
        if h > 0:
            row[at[h - 1, :, :, s]] -= 1.0
        equal.append(row)
        right.append(float(h == 0 and s == start))
        ratio = np.zeros(at.size)  # (1 - share) active = share passive
        ratio[at[h, s, 1]], ratio[at[h, s, 0]] = 1 - share[h, s], -share[h, s]
        equal.append(ratio)
        right.append(0.0)
        for a, y in np.ndindex(2, states):
            for bound, side in ((high, 1.0), (low, -1.0)):
                row = np.zeros(at.size)
                row[at[h, s, a]] -= side * bound[s, a, y]
                row[at[h, s, a, y]] += side
                less.append(row)
    gain = np.zeros(at.size)
    gain[at[target]] = -sign
    answer = linprog(gain, np.array(less), np.zeros(len(less)), np.array(equal), right, bounds=(0, None))
    assert answer.status == 0
    return float(-sign * answer.fun)


@pytest.mark.parametrize("seed", range(2))
def test_bounds_are_those_of_a_linear_programme(seed: int) -> None:
    low, high = boxes(seed + 10, 2, 3)
    share = np.random.default_rng(seed).random((2, 4, 3))
    share[0, 1, 1], share[1, 2, 0] = 0.0, 1.0
    for sign in (1.0, -1.0):
        bound = computed(low, high, share, [0, 2], sign)
        for c, h, s in [(0, 3, 0), (0, 3, 1), (1, 3, 2), (1, 2, 0), (0, 1, 1), (1, 0, 2), (1, 0, 0)]:
            value = programme(low[c], high[c], share[c], [0, 2][c], (h, s), sign)
            assert bound[c, h, s].sum() == pytest.approx(value, abs=1e-9)
            assert bound[c, h, s, 1] == pytest.approx(share[c, h, s] * value, abs=1e-9)


def test_bounds_of_a_known_kernel_are_its_occupancy_and_only_what_is_wanted_is_computed() -> None:
    rng = np.random.default_rng(4)
    kernel, share = rng.dirichlet(np.ones(3), size=(1, 3, 2)), rng.random((1, 5, 3))
    q = occupancy(np.repeat(kernel, 4, axis=0), share[0], 1)
    for sign in (1.0, -1.0):
        np.testing.assert_allclose(computed(kernel, kernel, share, [1], sign)[0], q, atol=1e-14)
    bound, wanted = np.full((1, 5, 3, 2), 9.0), np.zeros((1, 5, 3), dtype=bool)
    wanted[0, 3, 2] = True
    begins = np.eye(kernel.shape[1])[[1]]
    occupancy_bounds(TransitionSets(kernel, kernel).rows, one_phase(share), share, begins, wanted, 1.0, bound)
    np.testing.assert_allclose(bound[0], np.where(wanted[0, ..., None], q, 0.0), atol=1e-14)


def test_bounds_by_hand() -> None:
    """From 0 one may move with probability .2 to .5; 1 is never left. After two moves: 1 - (1 - p)^2."""
    low, high = np.zeros((1, 2, 2, 2)), np.zeros((1, 2, 2, 2))
    low[0, 0, :, :], high[0, 0, :, :] = [0.5, 0.2], [0.8, 0.5]
    low[0, 1, :, 1] = high[0, 1, :, 1] = 1.0
    share = np.full((1, 3, 2), 0.25)
    most, least = computed(low, high, share, [0], 1.0), computed(low, high, share, [0], -1.0)
    np.testing.assert_allclose(most[0, 2, 1], [0.75 * 0.75, 0.25 * 0.75], rtol=1e-14)
    np.testing.assert_allclose(least[0, 2, 1], [0.75 * 0.36, 0.25 * 0.36], rtol=1e-14)
    np.testing.assert_allclose(most[0, 2, 0].sum(), 0.64, rtol=1e-14)


def bonus_twin(low: FloatArray, high: FloatArray, share: FloatArray, local: FloatArray, factor: float) -> FloatArray:
    """(H,S,2) the recursion of Luo et al., the maximum taken over all vertices."""
    horizon, states = share.shape
    bonus = np.zeros((horizon + 1, states, 2))
    for h in range(horizon - 1, -1, -1):
        for s, a in np.ndindex(states, 2):
            best = -np.inf
            for p in vertices(low[s, a], high[s, a]):
                mean = 0.0
                for y in range(states):
                    following = share[h + 1] if h + 1 < horizon else np.zeros(states)
                    mean += p[y] * ((1 - following[y]) * bonus[h + 1, y, 0] + following[y] * bonus[h + 1, y, 1])
                best = max(best, mean)
            bonus[h, s, a] = local[h, s] + factor * best
    return bonus[:horizon]


@pytest.mark.parametrize("seed", range(3))
def test_the_dilated_bonus_is_the_literal_recursion(seed: int) -> None:
    low, high = boxes(seed + 20, 2, 3)
    rng = np.random.default_rng(seed)
    share, local = rng.random((2, 6, 3)), rng.random((2, 6, 3))
    bonus = np.empty((2, 6, 3, 2))
    dilated_bonus(TransitionSets(low, high).rows, one_phase(share), share, local, 1 + 1 / 6, bonus)
    for c in range(2):
        np.testing.assert_allclose(bonus[c], bonus_twin(low[c], high[c], share[c], local[c], 1 + 1 / 6), rtol=1e-12)


def test_the_dilated_bonus_by_hand() -> None:
    """Two states, a local bonus in state 1 only: 1 at every step; state 0 moves there with probability up to .5, 1 stays."""
    low, high = np.zeros((1, 2, 2, 2)), np.zeros((1, 2, 2, 2))
    low[0, 0, :, :], high[0, 0, :, :] = [0.5, 0.2], [0.8, 0.5]
    low[0, 1, :, 1] = high[0, 1, :, 1] = 1.0
    local = np.zeros((1, 3, 2))
    local[0, :, 1] = 1.0
    bonus = np.empty((1, 3, 2, 2))
    share = np.full((1, 3, 2), 0.3)
    dilated_bonus(TransitionSets(low, high).rows, one_phase(share), share, local, 4 / 3, bonus)
    # State 1: 1, 1 + 4/3 = 7/3, 1 + 4/3 * 7/3 = 37/9. State 0: 0, 4/3 * .5 = 2/3, 4/3 * (.5 * 2/3 + .5 * 7/3) = 2.
    np.testing.assert_allclose(bonus[0, ::-1, 1, 0], [1, 7 / 3, 37 / 9], rtol=1e-14)
    np.testing.assert_allclose(bonus[0, ::-1, 0, 1], [0, 2 / 3, 2], rtol=1e-14)
