"""Colored-UCRL2 against a slow twin, the exact optimum of the joint process, and numbers by hand."""

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import reference
import rmab
from episodes import view_of
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, PolicyError
from rmab.learning.algorithms.colored_ucrl2 import JointPolicy, color_widths, joint_sets
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.feedback import Feedback
from rmab.solvers.compiled.balls import joint_plan
from strategies import random_problem

pytestmark = pytest.mark.compiled


def best_row(mean: FloatArray, radius: float, worth: FloatArray) -> FloatArray:
    """Return the best row within the L1 ball, entry by entry from the definition in UCRL2 (Jaksch et al., Figure 2)."""
    row = mean.astype(float).copy()
    best = max(range(len(row)), key=lambda y: worth[y])
    row[best] = min(1.0, row[best] + radius / 2)
    for y in sorted(range(len(row)), key=lambda y: worth[y]):
        if row.sum() > 1:
            row[y] = max(0.0, 1.0 - (row.sum() - row[y]))
    return row


def single_values(mean: FloatArray, radius: FloatArray, reward: FloatArray, horizon: int, budget: int) -> FloatArray:
    """(H+1, S) optimistic backward induction of one arm by itself."""
    values = np.zeros((horizon + 1, len(reward)))
    for h in range(horizon - 1, -1, -1):
        for s in range(len(reward)):
            options = [reward[s, a] + best_row(mean[s, a], radius[s, a], values[h + 1]) @ values[h + 1] for a in (0, 1)]
            values[h, s] = max(options[: 1 + budget])
    return values


def planned(problem: Problem, mean: FloatArray, radius: FloatArray, reward: FloatArray) -> tuple[FloatArray, Any, Any]:
    arms, states, horizon = problem.arms.count, problem.arms.states, problem.horizon
    values, choice = np.empty((horizon + 1, states**arms)), np.zeros((horizon, states**arms), dtype=np.int64)
    sets = joint_sets(view_of(arms, states, horizon, budget=problem.budget), 0)
    joint_plan(mean, radius, np.ones(mean.shape, dtype=bool), reward, sets, 2, values, choice)
    return values, choice, sets


@pytest.mark.parametrize("budget", [0, 1])
@pytest.mark.parametrize("seed", range(5))
def test_one_arm_is_plain_optimistic_planning(seed: int, budget: int) -> None:
    problem, reward = random_problem(seed, count=1, states=4, horizon=6, budget=budget)
    rng = np.random.default_rng(seed)
    radius = rng.uniform(0, 1.5, size=(1, 4, 2))
    values, _, _ = planned(problem, problem.arms.kernels, radius, reward)
    np.testing.assert_allclose(values, single_values(problem.arms.kernels[0], radius[0], reward[0], 6, budget), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_known_kernels_give_the_exact_optimum(seed: int) -> None:
    problem, reward = random_problem(seed, count=3, states=3, horizon=4, budget=2)
    values, choice, sets = planned(problem, problem.arms.kernels, np.zeros((3, 3, 2)), reward)
    place = np.ravel_multi_index(tuple(problem.start), (3, 3, 3))
    assert values[0, place] == pytest.approx(reference.optimal_value(problem, reward))
    batch = rmab.simulate_many(problem, JointPolicy(choice, sets, 3), reward, np.random.default_rng(0), 3000)
    assert abs(batch.mean - values[0, place]) < 4 * batch.stderr


def test_balls_only_raise_values_up_to_what_all_kernels_allow() -> None:
    problem, reward = random_problem(1, count=2, states=3, horizon=4, budget=1)
    kernels = problem.arms.kernels
    last, _, _ = planned(problem, kernels, np.zeros((2, 3, 2)), reward)
    for wide in (0.2, 0.8, 2.0):
        values, _, _ = planned(problem, kernels, np.full((2, 3, 2), wide), reward)
        assert (values >= last - 1e-12).all()
        last = values
    # Anything is possible: brute force over where each arm goes, for every step.
    best = np.zeros(9)
    for _ in range(4):
        ahead = best.max()
        best = np.array(
            [
                max(reward[0, s, a] + reward[1, y, b] for a, b in ((0, 0), (0, 1), (1, 0))) + ahead
                for s, y in itertools.product(range(3), repeat=2)
            ]
        )
    np.testing.assert_allclose(last[0], best)


def test_the_learner_of_one_arm_is_ucrl2() -> None:
    """Its values are those of the twin, from its own counts and the widths of the paper."""
    problem, reward = random_problem(3, count=1, states=3, horizon=40, budget=1)
    task = rmab.Task.from_rewards(problem, np.repeat(reward[np.newaxis], 6, axis=0), low=0.0, high=1.0, feedback="full")
    learner = rmab.make_learner("colored-ucrl2", optimism=0.05, epsilon=0.2)
    state = learner.begin(task.view())
    for t in range(5):
        assert state.episode == t
        trajectory = rmab.simulate(problem, learner.plan(state).policy, reward, np.random.default_rng(t))
        state = learner.learn(state, Feedback.reveal(task.view(), t, trajectory, reward))
        counts = state.arrays["counts"][0]
        if not np.array_equal(state.arrays["epoch"][0], counts.sum(axis=2)):
            continue  # the plan is an older one
        visits = counts.sum(axis=2)
        log = math.log(2 * 6 * (t + 1) * 40 / 0.2)
        wide = np.where(visits > 0, np.minimum(0.05 * np.sqrt(56 * 3 * log / np.maximum(visits, 1)), 2), 2)
        more = np.where(visits > 0, np.minimum(0.05 * np.sqrt(7 * log / 2 / np.maximum(visits, 1)), 1), 1)
        mean = np.where(visits[..., np.newaxis] > 0, counts / np.maximum(visits, 1)[..., np.newaxis], 1 / 3)
        paid = np.where(state.arrays["seen"][0, 0] > 0, reward[0], 1.0)
        values = single_values(mean, wide, np.minimum(paid + more, 1), 40, 1)
        np.testing.assert_allclose(state.arrays["value"], values[0], atol=1e-9)


def test_widths_by_hand() -> None:
    view = view_of(3, 2, 5)
    visits = np.zeros((3, 2, 2), dtype=np.int64)
    visits[1, 0, 1], visits[2, 0, 0] = 10_000, 400
    radius, width = color_widths(view, visits, visits // 2, 2, 0.1, 1.0)
    log = math.log(2 * 12 * 10 / 0.1)  # 12 colours, 10 steps so far
    assert radius[1, 0, 1] == pytest.approx(math.sqrt(56 * 2 * log / 10_000))
    assert width[2, 0, 0] == pytest.approx(math.sqrt(7 * log / 400))  # half of the 400 were shown
    assert (radius[0] == 2).all()
    assert (width[0] == 1).all()


def test_a_plan_is_kept_until_a_count_has_doubled() -> None:
    problem = Problem(Arms(np.ones((1, 1, 2, 1))), 0, 1, 4)
    task = rmab.Task.from_rewards(problem, np.full((12, 1, 1, 2), 0.5), low=0, high=1)
    learner = rmab.make_learner("colored-ucrl2")
    state, epochs = learner.begin(task.view()), []
    for t in range(12):
        actions = np.ones((4, 1))
        rewards = np.array([[[np.nan, 0.5]]])
        state = learner.learn(state, Feedback(t, np.zeros((5, 1)), actions, rewards))
        epochs.append(int(state.arrays["epoch"][0, 0, 1]))
    assert epochs == [4, 8, 8, 16, 16, 16, 16, 32, 32, 32, 32, 32]


def test_all_sets_within_the_budget_the_largest_first() -> None:
    sets = joint_sets(view_of(4, 2, budget=2), 0)
    assert len({tuple(row) for row in sets.tolist()}) == 1 + 4 + 6
    np.testing.assert_array_equal(sets.sum(axis=1), [2] * 6 + [1] * 4 + [0])
    assert not np.array_equal(sets, joint_sets(view_of(4, 2, budget=2), 1))


def test_large_tasks_are_refused_by_size() -> None:
    message = (
        r"colored-ucrl2 plans for all arms jointly: 3\^20 = 3486784401 joint states and 616666 sets of arms are too many"
    )
    with pytest.raises(ModelError, match=message):
        rmab.run("cpap", "colored-ucrl2")
    many = view_of(4, 8, budget=2)
    with pytest.raises(ModelError, match=r"8\^4 = 4096 joint states and 11 sets of arms are too many for \d+ steps"):
        rmab.make_learner("colored-ucrl2").begin(many, 0)


def test_the_policy_looks_its_state_up() -> None:
    choice = np.array([[0, 1, 2, 1]])
    policy = JointPolicy(choice, np.array([[True, False], [False, True], [False, False]]), 2)
    for states, active in (
        ([0, 0], [True, False]),
        ([0, 1], [False, True]),
        ([1, 0], [False, False]),
        ([1, 1], [False, True]),
    ):
        for one in (policy, pickle.loads(pickle.dumps(policy))):
            assert one.act(0, np.array(states), np.random.default_rng(0)).tolist() == active
    with pytest.raises(PolicyError, match="step must be in"):
        policy.act(1, np.array([0, 0]), np.random.default_rng(0))
