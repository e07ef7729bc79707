"""Sets of transitions: what they refuse, what compiled code reads of them, and projections onto them."""

import numpy as np
import pytest

import rmab
from instances import random_instance
from rmab.errors import ModelError
from rmab.solvers.projection.project import project_onto
from rmab.solvers.transitions import TransitionSets

KERNELS = np.array([[[[0.9, 0.1], [0.0, 1.0]], [[0.5, 0.5], [0.2, 0.8]]]])


def test_known_kernels_leave_nothing_to_choose_and_list_the_possible_next_states() -> None:
    rows = TransitionSets.known(KERNELS).rows
    assert (rows.spare == 0).all()
    np.testing.assert_array_equal(rows.counts, [[[2, 1], [2, 2]]])
    np.testing.assert_array_equal(rows.successors[0, 0], [[0, 1], [1, 0]])


def test_blocks_are_taken_in_any_order_and_more_than_once() -> None:
    radius, possible = np.array([[[0.1, 0.2], [0.3, 0.4]], [[0.5, 0.6], [0.7, 0.8]]]), np.ones((2, 2, 2, 2), dtype=bool)
    balls = TransitionSets.balls(np.concatenate([KERNELS, KERNELS[:, ::-1]]), radius, possible).take(np.array([1, 0, 1]))
    np.testing.assert_array_equal(balls.centre, np.concatenate([KERNELS[:, ::-1], KERNELS, KERNELS[:, ::-1]]))
    np.testing.assert_allclose(balls.low[1], np.maximum(KERNELS[0] - radius[0, ..., np.newaxis] / 2, 0.0))
    np.testing.assert_allclose(balls.high[1], np.minimum(KERNELS[0] + radius[0, ..., np.newaxis] / 2, 1.0))
    np.testing.assert_array_equal(balls.radius, radius[[1, 0, 1]])
    boxes = TransitionSets.boxes(0 * KERNELS, 0 * KERNELS + 1).take(np.array([0, 0]))
    assert boxes.radius is None
    assert boxes.possible is None
    assert (boxes.rows.spare == 1).all()


def test_a_shape_that_does_not_fit_is_named() -> None:
    with pytest.raises(ModelError, match=r"centre must have shape \(N, S, 2, S\), or \(N, K, S, 2, S\), got \(2, 2\)"):
        TransitionSets.balls(np.eye(2), np.zeros(2))
    with pytest.raises(ModelError, match=r"lower and upper must have shape .* = \(2, 3, 2, 3\), got \(1, 2, 2, 2\)"):
        project_onto(np.ones((2, 4, 3, 2, 3)), TransitionSets.known(KERNELS), [0, 0], 1)


@pytest.mark.parametrize("radius", [None, 0.3])
def test_projections_onto_sets_are_those_of_the_fronts(radius: float | None) -> None:
    instance = random_instance(3, (2, 4, 3), support=0.7, radius=radius)
    if radius is None:
        sets = TransitionSets.boxes(instance.low, instance.high)
    else:
        sets = TransitionSets.balls(instance.low, instance.radius)
    answer = project_onto(instance.reference, sets, instance.start, instance.budget, weights=instance.weights)
    np.testing.assert_array_equal(answer.z, instance.solve().z)


def test_balls_leave_impossible_transitions_at_0() -> None:
    instance = random_instance(3, (2, 4, 3), radius=0.3)
    possible = np.ones((2, 3, 2, 3), dtype=bool)
    possible[:, :, :, 2] = False
    centre = np.where(possible, instance.low, 0.0)
    centre /= centre.sum(axis=3, keepdims=True)
    sets = TransitionSets.balls(centre, instance.radius, possible)
    answer = project_onto(instance.reference, sets, [0, 1], instance.budget)
    masked = rmab.solvers.project_ball(
        instance.reference * possible[:, None], centre, instance.radius, [0, 1], instance.budget
    )
    np.testing.assert_array_equal(answer.z, masked.z)
    assert (answer.z[..., 2] == 0).all()


def test_what_reads_balls_as_boxes_reads_the_boxes_around_them() -> None:
    """Nothing is known: a ball of radius 2 holds every row, and so do the boxes that plans and bounds are made with."""
    balls = TransitionSets.balls(KERNELS, np.full((1, 2, 2), 2.0))
    assert (balls.rows.spare == 1).all()
    assert (balls.low == 0).all()
    assert (balls.high == 1).all()
    some = TransitionSets.balls(KERNELS, np.full((1, 2, 2), 0.4), KERNELS > 0)
    assert some.high[0, 0, 1, 0] == 0  # impossible stays impossible
    with pytest.raises(ModelError, match="possible must be True or False, of shape"):
        TransitionSets.balls(KERNELS, np.full((1, 2, 2), 0.4), "nonsense")  # type: ignore[arg-type]
