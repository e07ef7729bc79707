"""Backward induction and occupancies, computed by hand: known kernels, boxes, idle steps, shares cut down to the budget."""

import numpy as np
import pytest

from rmab.common.arrays import FloatArray
from rmab.solvers.compiled.dynamics import backward, forward
from rmab.solvers.compiled.optimism import best_values
from rmab.solvers.transitions import TransitionSets

pytestmark = pytest.mark.compiled


def test_values_and_advantages_by_hand() -> None:
    """Block 0 stays where it is, and changes places when active. Block 1 goes anywhere."""
    kernels = np.zeros((2, 2, 2, 2))
    kernels[0, :, 0], kernels[0, :, 1] = np.eye(2), np.eye(2)[::-1]
    kernels[1] = [[[0.25, 0.75], [0.5, 0.5]], [[1.0, 0.0], [0.1, 0.9]]]
    reward = np.array([[[1.0, 5.0], [2.0, 0.0]], [[0.0, 8.0], [10.0, 6.0]]])
    values, advantage = np.full((2, 3, 2), np.nan), np.full((2, 2, 2), np.nan)
    backward(kernels, reward, np.zeros(2, dtype=np.int64), np.array([3.0, 4.0]), values, advantage)
    # Block 0, last step at price 4: 1 or 5 - 4; 2 or 0 - 4. First step at price 3: 1 + 1 or 5 - 3 + 2; 2 + 2 or 0 - 3 + 1.
    np.testing.assert_allclose(values[0], [[4, 4], [1, 2], [0, 0]], rtol=1e-15)
    np.testing.assert_allclose(advantage[0], [[2, -6], [0, -6]], rtol=1e-15)
    # Block 1, last step: 0 or 8 - 4; 10 or 6 - 4. First step: 0 + 1 + 7.5 or 8 - 3 + 2 + 5; 10 + 4 or 6 - 3 + 0.4 + 9.
    np.testing.assert_allclose(values[1], [[12, 14], [4, 10], [0, 0]], rtol=1e-15)
    np.testing.assert_allclose(advantage[1], [[3.5, -1.6], [4, -8]], rtol=1e-14)


def test_values_of_three_states_by_hand() -> None:
    """One block that goes round, 0-1-2-0, when active; two steps without a price."""
    kernels = np.stack([np.eye(3), np.roll(np.eye(3), 1, axis=1)], axis=1)[np.newaxis]
    values, advantage = np.full((1, 3, 3), np.nan), np.full((1, 2, 3), np.nan)
    backward(
        kernels,
        np.array([[[0.0, 1.0], [2.0, 0.0], [3.0, 0.0]]]),
        np.zeros(2, dtype=np.int64),
        np.zeros(2),
        values,
        advantage,
    )
    # Last step: 0 or 1; 2 or 0; 3 or 0. First step: 0 + 1 or 1 + 2; 2 + 2 or 0 + 3; 3 + 3 or 0 + 1.
    np.testing.assert_array_equal(values[0], [[3, 4, 6], [1, 2, 3], [0, 0, 0]])
    np.testing.assert_array_equal(advantage[0], [[2, -1, -5], [1, -2, -3]])


KERNELS = np.zeros((2, 1, 2, 2, 2))
KERNELS[0, 0] = [[[0.8, 0.2], [0.4, 0.6]], [[0.5, 0.5], [1.0, 0.0]]]
KERNELS[1, 0] = [[[0.3, 0.7], [0.6, 0.4]], [[0.0, 1.0], [1.0, 0.0]]]
START = np.array([[2.0, 0.0], [0.0, 1.0]])  # two arms in state 0, one in state 1


def followed(kernels: FloatArray, budget: list[float], share: FloatArray) -> FloatArray:
    """Return the occupancy, from memory that holds anything."""
    occupancy, phases = np.full((*share.shape, 2), np.nan), kernels.shape[1]
    phase_of = np.arange(len(budget)) if phases > 1 else np.zeros(len(budget), dtype=np.int64)
    forward(kernels.reshape(-1, *kernels.shape[2:]), phase_of, START, np.array(budget), share, occupancy)
    return occupancy


def test_an_occupancy_by_hand() -> None:
    share = np.array([[[0.75, 0.3], [0.5, 0.1]], [[0.9, 0.5], [1.0, 0.2]]])
    occupancy = followed(KERNELS, [1.0, 2.0], share)
    # First step: 2 * 0.75 + 0.5 = 2 would be active, and 1 may be: all shares are halved, also those of empty states.
    np.testing.assert_allclose(share[:, 0], [[0.375, 0.15], [0.45, 0.25]], rtol=1e-15)
    np.testing.assert_allclose(occupancy[:, 0], [[[1.25, 0.75], [0, 0]], [[0, 0], [0.75, 0.25]]], rtol=1e-15)
    # Then block 0 has 1.25 * 0.8 + 0.75 * 0.4 = 1.3 and 0.25 + 0.45 = 0.7, block 1 has 0.25 and 0.75. The budget is enough.
    np.testing.assert_array_equal(share[:, 1], [[0.5, 0.1], [1.0, 0.2]])
    np.testing.assert_allclose(occupancy[:, 1], [[[0.65, 0.65], [0.63, 0.07]], [[0, 0.25], [0.6, 0.15]]], rtol=1e-14)


def test_kernels_may_be_the_same_at_every_step() -> None:
    """Block 0, always passive: 2, then 1.6 and 0.4, then 1.6 * 0.8 + 0.4 * 0.5 = 1.48 and 0.52."""
    occupancy = followed(KERNELS, [9.0, 9.0, 9.0], np.zeros((2, 3, 2)))
    np.testing.assert_allclose(occupancy[0, :, :, 0], [[2, 0], [1.6, 0.4], [1.48, 0.52]], rtol=1e-14)
    np.testing.assert_array_equal(occupancy[1, :, :, 0], [[0, 1], [0, 1], [0, 1]])


def test_kernels_may_change_from_step_to_step() -> None:
    stay = np.eye(2)[:, np.newaxis].repeat(2, axis=1)
    kernels = np.stack([[stay[::-1], stay, stay[::-1]]] * 2)
    occupancy = followed(kernels, [9.0, 9.0, 9.0], np.full((2, 3, 2), 0.5))
    # Both change places after the first step, and stay after the second; what comes after the third is not followed.
    np.testing.assert_array_equal(occupancy[0, :, :, 1], [[1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(occupancy[1, :, :, 1], [[0, 0.5], [0.5, 0], [0.5, 0]])
    np.testing.assert_array_equal(occupancy[..., 0], occupancy[..., 1])


def test_a_budget_of_zero_needs_no_division() -> None:
    """Nobody wants to be active at the first step, and nobody may be; at the second step somebody wants to."""
    share = np.array([[[0.0, 0.0], [0.5, 0.5]], [[0.0, 0.0], [0.5, 0.5]]])
    occupancy = followed(KERNELS, [0.0, 0.0], share)
    np.testing.assert_array_equal(share, 0.0)
    np.testing.assert_array_equal(occupancy[..., 1], 0.0)
    np.testing.assert_allclose(occupancy[:, 1, :, 0], [[1.6, 0.4], [0, 1]], rtol=1e-15)


# One block of three states. After the last step nothing comes: at price 1, values are 0 or 1 - 1; 4 or 2 - 1; 2 or 2.5 - 1.
# So states are best in the order 1, 2, 0, with values 4, 2 and 0.
REWARD = np.array([[0.0, 1.0], [4.0, 2.0], [2.0, 2.5]])
LOW = np.array([[[0.2, 0.1, 0.0], [0.0, 0.5, 0.5]], [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[0.5, 0.0, 0.1], [0.0, 0.0, 0.0]]])
HIGH = np.array(
    [
        [[0.5, 0.6, 1.0], [0.0, 0.5, 0.5]],  # passive: 0.3 is taken, 0.5 more goes to state 1 and 0.2 to state 2: 2.8
        [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]],  # known: 0; anything: 4
        [[0.9, 0.3, 1.0], [1.0, 0.0, 0.25]],  # 0.3 more to state 1 and 0.1 to state 2: 1.6; state 1 is impossible: 0.5
    ]
)


def best(prices: list[float], idle: list[bool]) -> tuple[FloatArray, FloatArray]:
    """Return the values (2, 3, 3) of the block above and of its mirror image, and the prices."""
    low, high = (np.stack([table, table[::-1, :, ::-1]]) for table in (LOW, HIGH))
    values, paid = np.full((2, 3, 3), np.nan), np.array(prices)
    best_values(
        TransitionSets.boxes(low, high).rows,
        np.stack([REWARD, REWARD[::-1]]),
        np.zeros(len(idle), dtype=np.int64),
        np.array(idle),
        paid,
        values,
    )
    np.testing.assert_array_equal(values[1], values[0, :, ::-1])
    return values[0], paid


def test_the_best_kernels_of_boxes_by_hand() -> None:
    values, prices = best([0.5, 1.0], [False, False])
    # First step, at price 0.5: 0 + 2.8 or 1 + 3 - 0.5; 4 + 0 or 2 + 4 - 0.5; 2 + 1.6 or 2.5 + 0.5 - 0.5.
    np.testing.assert_allclose(values, [[3.5, 5.5, 3.6], [0, 4, 2], [0, 0, 0]], rtol=1e-14)
    np.testing.assert_array_equal(prices, [0.5, 1.0])


def test_idle_steps_have_the_least_price_at_which_nobody_is_active() -> None:
    values, prices = best([99.0, 99.0], [True, True])
    np.testing.assert_allclose(values, [[2.8, 4, 3.6], [0, 4, 2], [0, 0, 0]], rtol=1e-14)
    # Being active is worth 1.2, 2 and -0.6 more at the first step; 1, -2 and 0.5 at the second.
    np.testing.assert_allclose(prices, [2.0, 1.0], rtol=1e-14)


def test_the_price_of_a_step_at_which_nobody_would_be_active_is_zero() -> None:
    values, prices = np.empty((1, 2, 1)), np.array([7.0])
    rows = TransitionSets.known(np.ones((1, 1, 2, 1))).rows
    best_values(rows, np.array([[[1.0, 0.5]]]), np.array([0]), np.array([True]), prices, values)
    assert prices[0] == 0.0
    assert values[0, 0, 0] == 1.0


def test_boxes_that_hold_a_distribution_only_up_to_rounding() -> None:
    """All of the box is taken, and nothing beyond the last state: 1/2 * 1 + (1/2 - 5e-10) * 3."""
    high = np.full((1, 2, 2, 2), [0.5, 0.5 - 5e-10])
    values = np.empty((1, 3, 2))
    reward = np.array([[[1.0, 1.0], [3.0, 3.0]]])
    best_values(
        TransitionSets.boxes(0 * high, high).rows,
        reward,
        np.zeros(2, dtype=np.int64),
        np.zeros(2, dtype=bool),
        np.zeros(2),
        values,
    )
    np.testing.assert_allclose(values[0, 0] - reward[0, :, 0], 2 - 1.5e-9, rtol=1e-14)
