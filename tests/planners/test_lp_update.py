"""LP-update: a pure function of step, states and generator, whose plan is the fluid LP's and whose rounding keeps it."""

import pickle
from itertools import combinations

import numpy as np
import pytest

import rmab
from rmab.common.arrays import BoolArray, FloatArray
from rmab.errors import PolicyError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.policy import Policy
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.highs import FluidLp
from strategies import random_problem


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_it_is_reproducible_whatever_ran_before_and_after_pickling() -> None:
    problem, reward = random_problem(13, count=6, states=3, horizon=8, budget=2)
    policy = rmab.planners.LpUpdate(problem, reward)

    def play(chosen: Policy) -> tuple[FloatArray, float]:
        run = rmab.simulate(problem, chosen, reward, rng(5))
        return run.actions, run.reward

    first = play(policy)
    rmab.simulate(problem, policy, reward, rng(6))
    for again in (policy, pickle.loads(pickle.dumps(policy)), rmab.planners.LpUpdate(problem, reward)):
        actions, total = play(again)
        np.testing.assert_array_equal(actions, first[0])
        assert total == first[1]


def test_it_solves_the_rest_of_the_episode_from_the_states_at_hand() -> None:
    # The re-solved value from step h equals a fresh fluid LP of the shorter problem started in those states.
    problem, reward = random_problem(14, count=4, states=3, horizon=6, budget=2)
    policy = rmab.planners.LpUpdate(problem, reward)
    policy.act(0, problem.start, rng(0))
    states = np.array([2, 0, 1, 1])
    policy.act(2, states, rng(0))
    short = Problem(problem.arms, states, 2, 4)
    program = policy._free[0]
    found = program.units.whole(program.highs.getObjectiveValue(), np.ones(4), np.zeros(4, dtype=int))
    assert found == pytest.approx(rmab.solvers.solve_fluid(short, reward).value, rel=1e-9)


def degenerate(name: str) -> tuple[Problem, FloatArray]:
    """Return problems with many optimal plans, so that a solver's memory would show in its choice."""
    if name == "cpap-adherence":
        task = rmab.make_task(name, arms=6, budget=3, horizon=12)
        return task.problem, task.base_reward
    task = rmab.make_task("cpap", arms=10, budget=5, horizon=8)
    if name == "zero or one":
        return task.problem, rng(1).integers(0, 2, task.base_reward.shape).astype(float)
    return task.problem, task.base_reward


@pytest.mark.parametrize("name", ["cpap-adherence", "cpap", "zero or one"])
@pytest.mark.parametrize("seed", [2, 4])
def test_the_action_depends_on_step_states_and_generator_alone(name: str, seed: int) -> None:
    problem, reward = degenerate(name)
    used, luck = rmab.planners.LpUpdate(problem, reward), rng(seed)
    for h in range(problem.horizon):
        stray, states = luck.integers(problem.arms.states, size=(2, problem.arms.count))
        fresh = rmab.planners.LpUpdate(problem, reward).act(h, states, rng(h))
        used.act(h, stray, rng(3))
        np.testing.assert_array_equal(used.act(h, states, rng(h)), fresh)
        used.act(int(luck.integers(problem.horizon)), stray, rng(4))
        np.testing.assert_array_equal(used.act(h, states, rng(h)), fresh)


def test_each_programme_starts_from_the_basis_of_the_plan() -> None:
    task = rmab.make_task("cpap", horizon=20)
    problem, reward = task.problem, task.base_reward
    states = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, rng()).states[5].astype(int)
    policy = rmab.planners.LpUpdate(problem, reward)
    policy.act(5, states, rng())
    cold = FluidLp(Blocks.of(Problem(problem.arms, states, 10, 15), reward))
    cold.solve()
    pivots = [program.highs.getInfo().simplex_iteration_count for program in (policy._free[0], cold)]
    assert pivots[0] < pivots[1] / 5


def draws(policy: rmab.planners.LpUpdate, h: int, states: list[int], times: int) -> BoolArray:
    luck = rng(5)
    return np.stack([policy.act(h, np.array(states), luck) for _ in range(times)])


def test_counts_of_a_group_are_the_planned_masses_rounded_and_right_on_average() -> None:
    luck, own, states = rng(223), [0] * 6 + [1] * 6, [0, 0, 0, 1, 1, 1] * 2
    kernels, reward = luck.dirichlet(np.ones(2), size=(2, 2, 2))[own], luck.normal(size=(2, 2, 2))[own]
    problem = Problem(Arms(kernels, groups=own), 0, 3, 6)
    plan = rmab.solvers.solve_fluid(Problem(problem.arms, states, 3, 4), reward)
    mass = plan.share[:, 0] * plan.blocks.start
    split = np.abs(mass - np.round(mass)) > 0.1
    assert (split & (plan.blocks.start > 1)).sum() == 2  # the plan does split two cells, of three arms each
    active = draws(rmab.planners.LpUpdate(problem, reward), 2, states, 2000)
    assert (active.sum(axis=1) <= 3).all()
    counts = active.reshape(-1, 2, 2, 3).sum(axis=3)  # by group and state
    assert ((counts == np.floor(mass + 1e-9)) | (counts == np.ceil(mass - 1e-9))).all()
    error = np.sqrt((mass % 1) * (1 - mass % 1) / 2000)
    np.testing.assert_array_less(np.abs(counts.mean(axis=0) - mass), 4 * error + 1e-6)
    share = plan.share[:, 0].repeat(3)  # of each arm
    np.testing.assert_array_less(np.abs(active.mean(axis=0) - share), 4 * np.sqrt(share * (1 - share) / 2000) + 1e-6)


def test_within_a_block_and_state_every_set_is_equally_likely() -> None:
    problem = Problem(Arms.identical(np.ones((1, 2, 1)), 4), 0, 2, 1)
    active = draws(rmab.planners.LpUpdate(problem, [[[0.0, 1.0]]] * 4), 0, [0] * 4, 1200)
    sets, counts = np.unique(active, axis=0, return_counts=True)
    assert {tuple(np.flatnonzero(row)) for row in sets} == set(combinations(range(4), 2))
    assert (np.abs(counts - 200) < 4 * np.sqrt(200)).all()


def test_states_out_of_reach_have_a_plan_too() -> None:
    # Nothing moves and all arms start in state 0, where nothing pays; in state 1 arms 0 and 2 pay most.
    stays = np.repeat(np.eye(2)[:, np.newaxis], 2, axis=1)
    problem = Problem(Arms([stays] * 4), 0, 2, 5)
    reward = np.zeros((4, 2, 2))
    reward[:, 1, 1] = [5.0, 1.0, 4.0, 2.0]
    states = np.ones(4, dtype=int)
    short = rmab.planners.LpUpdate(Problem(problem.arms, states, 2, 2), reward)
    for h, policy in ((3, rmab.planners.LpUpdate(problem, reward)), (0, short)):
        assert policy.act(h, states, rng()).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("h", "states", "message"),
    [
        (-1, [0, 0], r"step must be in 0\.\.3, got -1"),
        (4, [0, 0], r"step must be in 0\.\.3, got 4"),
        (0, [0, 3], r"arm 1 is in state 3, expected 0\.\.2"),
        (0, [-1, 0], r"arm 0 is in state -1, expected 0\.\.2"),
        (0, [0], r"states must be 2 integers, one per arm, got shape \(1,\)"),
        (0, [0.0, 1.0], "states must be 2 integers, one per arm, .* of float64"),
        (1.5, [0, 0], r"step must be in 0\.\.3, got 1\.5"),
        (True, [0, 0], r"step must be in 0\.\.3, got True"),
    ],
)
def test_a_wrong_step_or_states_are_refused(h: int, states: list[int], message: str) -> None:
    policy = rmab.planners.LpUpdate(*random_problem(15, count=2, states=3, horizon=4, budget=1))
    with pytest.raises(PolicyError, match=message):
        policy.act(h, np.array(states), rng())


def test_states_may_be_a_list() -> None:
    policy = rmab.planners.LpUpdate(*random_problem(15, count=2, states=3, horizon=4, budget=1))
    listed = policy.act(1, [0, 2], rng())  # type: ignore[arg-type]
    np.testing.assert_array_equal(listed, policy.act(1, np.array([0, 2]), rng()))
