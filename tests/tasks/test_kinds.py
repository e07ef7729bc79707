"""Worlds in which a programme must rest, notice a change, or ignore the clock."""

import numpy as np
import pytest

import rmab
from rmab.errors import ModelError
from rmab.runs import Comparators


def best(task: rmab.Task, active: np.ndarray) -> float:
    """Return what an episode earns on average where these arms (N,) are always active, from the kernels alone."""
    arms, mass, earned = np.arange(active.size), np.eye(3)[task.problem.start], 0.0
    rows = task.problem.arms.kernels[arms, :, active.astype(int)]
    for _ in range(task.problem.horizon):
        earned += float((mass * task.base_reward[arms, :, active.astype(int)]).sum())
        mass = np.einsum("ns,nsy->ny", mass, rows)
    return earned


def test_harm_is_worst_where_the_budget_is_spent() -> None:
    task = rmab.make_task("harm", budget=20, episodes=2)
    helped = np.arange(20) >= 15
    bound = Comparators(task.problem, task.base_reward[np.newaxis]).o1()[0]
    assert best(task, helped) == pytest.approx(bound, rel=1e-3)
    assert best(task, np.ones(20, bool)) < best(task, np.zeros(20, bool)) < best(task, helped)


def test_slack_is_best_where_all_are_active() -> None:
    task = rmab.make_task("harm", hurt=0, budget=20, episodes=2)
    comparators = Comparators(task.problem, task.base_reward[np.newaxis])
    assert comparators.random()[0] == pytest.approx(comparators.o1()[0], rel=1e-6)
    with pytest.raises(ModelError, match="hurt must be at most 20"):
        rmab.make_task("harm", hurt=21)


def test_drift_exchanges_who_is_helped() -> None:
    task = rmab.make_task("drift", episodes=8)
    at, after = task.change
    assert at == 4
    assert task.problem_at(3) is task.problem
    assert task.problem_at(4) is after

    def up(problem: rmab.Problem) -> np.ndarray:
        kernels = problem.arms.kernels
        return kernels[:, 0, 1, 1] - kernels[:, 0, 0, 1] > 0.15

    np.testing.assert_array_equal(up(task.problem), np.arange(20) < 10)
    np.testing.assert_array_equal(up(after), np.arange(20) >= 10)
    np.testing.assert_array_equal(task.problem.arms.kernels[:, :, 0], after.arms.kernels[:, :, 0])


def test_arms_move_by_the_kernels_of_their_stretch() -> None:
    stay, go = (np.broadcast_to(np.eye(2)[::step][:, np.newaxis], (1, 2, 2, 2)) for step in (1, -1))
    before, after = (rmab.Problem(rmab.Arms(kernels), 0, 1, 1) for kernels in (stay, go))
    pays = np.zeros((4, 1, 2, 2))
    pays[:, :, 0] = 1.0
    problem, later = (rmab.Problem(one.arms, 0, 1, 3) for one in (before, after))
    task = rmab.Task.from_rewards(problem, pays).changed(2, later)
    run = rmab.run(task, "random")
    np.testing.assert_array_equal(run.reward, [3, 3, 2, 2])  # it stays in state 0, then leaves it and comes back
    np.testing.assert_allclose(run.comparators.o1(), run.reward)
    np.testing.assert_allclose(run.comparators.random(), run.reward)
    assert np.isnan(run.terms()).all()


@pytest.mark.parametrize("episode", [0, 8])
def test_a_change_is_within_the_task(episode: int) -> None:
    task = rmab.make_task("drift", episodes=8)
    with pytest.raises(ModelError, match=r"in episode 1\.\.7"):
        task.changed(episode, task.change[1])


def test_a_change_is_one_of_kernels_alone() -> None:
    task = rmab.make_task("drift", episodes=8)
    with pytest.raises(ModelError, match="must be the same"):
        task.changed(3, rmab.make_task("drift", episodes=8, budget=3).problem)
    for refused in (task.to_fields, lambda: task.repeated(2), lambda: rmab.gym.RmabEnv(task)):
        with pytest.raises(ModelError, match="kernels change"):
            refused()


def test_idle_phases_are_alike_and_others_are_not() -> None:
    idle, differ = (rmab.make_task("clock", spread=spread).base_reward for spread in (0.0, 0.5))
    assert idle.shape == (20, 12, 3, 2)
    np.testing.assert_array_equal(idle, np.broadcast_to(idle[:, :1], idle.shape))
    np.testing.assert_allclose(differ[:10, 0], 0.5 * differ[:10, 1])
    np.testing.assert_allclose(differ[10:, 1], 0.5 * differ[10:, 0])
    with pytest.raises(ModelError, match="phases must be at most 48"):
        rmab.make_task("clock", phases=49)
