"""Every planner's policy respects the budget and stays below the bound; each has the property that defines it."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import rmab
from rmab.arrays import FloatArray
from rmab.policy import Policy
from rmab.problem import Arms, Problem
from strategies import problems, random_problem, rewards


def planned(problem: Problem, reward: FloatArray) -> dict[str, Policy]:
    plan = rmab.fluid(problem, reward)
    return {
        "occupancy": rmab.occupancy_index(problem, reward, plan=plan),
        "occupancy, at most": rmab.occupancy_index(problem, reward, plan=plan, rule="at-most"),
        "occupancy, dependent": rmab.occupancy_index(problem, reward, plan=plan, rounding="dependent", rule="at-most"),
        "lagrangian": rmab.lagrangian_index(problem, reward, plan=plan),
        "lagrangian, at most": rmab.lagrangian_index(problem, reward, plan=plan, rule="at-most"),
        "myopic": rmab.myopic_index(problem, reward),
        "round robin": rmab.round_robin(problem),
        "random": rmab.random_policy(problem),
        "LP-update": rmab.LpUpdate(problem, reward),
    }


@given(st.data())
@settings(max_examples=25)
def test_every_planner_keeps_the_budget(data: st.DataObject) -> None:
    problem = data.draw(problems())
    reward = data.draw(rewards(problem))
    for name, policy in planned(problem, reward).items():
        run = rmab.simulate(problem, policy, reward, np.random.default_rng(0))
        assert (run.actions.sum(axis=1) <= problem.budget).all(), name


@pytest.mark.parametrize("seed", range(3))
def test_exact_optimum_and_bound_hold_for_every_planner(seed: int) -> None:
    problem, reward = random_problem(seed, count=3, states=3, horizon=5, budget=1)
    optimum, bound = reference.optimal_value(problem, reward), rmab.fluid(problem, reward).bound
    assert optimum <= bound + 1e-9
    for name, policy in planned(problem, reward).items():
        rounds = 300 if name == "LP-update" else 4000
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds)
        assert batch.mean <= optimum + 4 * batch.stderr, name


def test_good_planners_come_close_to_the_exact_optimum() -> None:
    problem, reward = random_problem(8, count=4, states=3, horizon=6, budget=2)
    optimum = reference.optimal_value(problem, reward)
    for policy in (rmab.lagrangian_index(problem, reward), rmab.LpUpdate(problem, reward)):
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 1500)
        assert batch.mean >= 0.97 * optimum - 4 * batch.stderr


def test_lagrangian_index_is_the_advantage_of_plain_dynamic_programming() -> None:
    problem, reward = random_problem(9, count=3, states=3, horizon=4, budget=1)
    plan = rmab.fluid(problem, reward)
    table = rmab.lagrangian_index(problem, reward, plan=plan).table
    for n in range(3):
        priced = reward[n] - plan.prices[:, np.newaxis, np.newaxis] * np.array([0.0, 1.0])
        _, quality = reference.backward(problem.arms.kernels[n], priced, 4)
        np.testing.assert_allclose(table[n], quality[..., 1] - quality[..., 0] + plan.prices[:, np.newaxis], atol=1e-9)


def test_occupancy_index_is_the_paper_s_ratio_and_zero_without_mass() -> None:
    problem, reward = random_problem(10, count=4, states=3, horizon=5, budget=1)
    plan = rmab.fluid(problem, reward)
    mass = plan.occupancy.sum(axis=3)
    table = rmab.occupancy_index(problem, reward, plan=plan).table
    np.testing.assert_allclose(table * mass, plan.occupancy[..., 1], atol=1e-12)
    assert (table[mass == 0] == 0).all()
    assert (mass[:, 0] == 0).any()  # the start pins the first step, so the case above does occur


def test_myopic_index_by_hand() -> None:
    # One arm: from state 0 activation moves to state 1 for sure, passive stays. Passive pay 0 and 4, active pay 1 and 2.
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    problem = Problem(Arms(kernel[np.newaxis]), 0, 1, 2)
    index = rmab.myopic_index(problem, [[[0.0, 1.0], [4.0, 2.0]]]).table
    np.testing.assert_allclose(index, [[[1 + 4, 2 - 4], [1, -2]]])


def test_round_robin_visits_all_arms_in_turn_across_episodes() -> None:
    problem, reward = random_problem(11, count=5, states=2, horizon=4, budget=2)
    turns = [
        np.flatnonzero(row).tolist()
        for t in range(2)
        for row in rmab.simulate(problem, rmab.round_robin(problem, episode=t), reward, np.random.default_rng(0)).actions
    ]
    assert turns == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4], [0, 1], [2, 3], [0, 4]]


def test_random_policy_activates_every_set_equally_often() -> None:
    problem, reward = random_problem(12, count=4, states=2, horizon=3000, budget=2)
    actions = rmab.simulate(problem, rmab.random_policy(problem), reward, np.random.default_rng(1)).actions
    _, counts = np.unique(actions, axis=0, return_counts=True)
    assert (actions.sum(axis=1) == 2).all()
    assert counts.size == 6
    assert (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


def test_lp_update_is_reproducible_whatever_ran_before_and_after_pickling() -> None:
    problem, reward = random_problem(13, count=6, states=3, horizon=8, budget=2)
    policy = rmab.LpUpdate(problem, reward)

    def play(chosen: Policy) -> tuple[FloatArray, float]:
        run = rmab.simulate(problem, chosen, reward, np.random.default_rng(5))
        return run.actions, run.reward

    first = play(policy)
    rmab.simulate(problem, policy, reward, np.random.default_rng(6))
    for again in (policy, pickle.loads(pickle.dumps(policy)), rmab.LpUpdate(problem, reward)):
        actions, total = play(again)
        np.testing.assert_array_equal(actions, first[0])
        assert total == first[1]


def test_lp_update_solves_the_rest_of_the_episode_from_the_states_at_hand() -> None:
    # The re-solved value from step h equals a fresh fluid LP of the shorter problem started in those states.
    problem, reward = random_problem(14, count=4, states=3, horizon=6, budget=2)
    policy = rmab.LpUpdate(problem, reward)
    policy.act(0, problem.start, np.random.default_rng(0))
    states = np.array([2, 0, 1, 1])
    policy.act(2, states, np.random.default_rng(0))
    short = Problem(problem.arms, states, 2, 4)
    assert policy._program[0].highs.getObjectiveValue() * policy._program[0].scale == pytest.approx(
        rmab.fluid(short, reward).value, rel=1e-9
    )
