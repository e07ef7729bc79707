"""Every planner's policy respects the budget and stays below the bound; each has the property that defines it."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import reference
import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.policy import Policy, Rule
from strategies import ROUNDINGS, RULES, problems, random_problem, rewards


def planned(problem: Problem, reward: FloatArray) -> dict[str, Policy]:
    plan = rmab.solvers.solve_fluid(problem, reward)
    return {
        "occupancy": rmab.planners.occupancy_index(problem, reward, fluid=plan),
        "occupancy, at most": rmab.planners.occupancy_index(problem, reward, fluid=plan, rule="at-most"),
        "occupancy, dependent": rmab.planners.occupancy_index(
            problem, reward, fluid=plan, rounding="dependent", rule="at-most"
        ),
        "lagrangian": rmab.planners.lagrangian_index(problem, reward, fluid=plan),
        "lagrangian, at most": rmab.planners.lagrangian_index(problem, reward, fluid=plan, rule="at-most"),
        "myopic": rmab.planners.myopic_index(problem, reward),
        "round robin": rmab.planners.round_robin(problem),
        "random": rmab.planners.random_policy(problem),
        "LP-update": rmab.planners.LpUpdate(problem, reward),
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
    optimum, bound = reference.optimal_value(problem, reward), rmab.solvers.solve_fluid(problem, reward).bound
    assert optimum <= bound + 1e-9
    for name, policy in planned(problem, reward).items():
        rounds = 300 if name == "LP-update" else 4000
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds)
        assert batch.mean <= optimum + 4 * batch.stderr, name


@pytest.mark.slow
def test_good_planners_come_close_to_the_exact_optimum() -> None:
    problem, reward = random_problem(8, count=4, states=3, horizon=6, budget=2)
    optimum = reference.optimal_value(problem, reward)
    for policy in (rmab.planners.lagrangian_index(problem, reward), rmab.planners.LpUpdate(problem, reward)):
        batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 1500)
        assert batch.mean >= 0.97 * optimum - 4 * batch.stderr


@pytest.mark.parametrize("rule", RULES)
def test_rule_and_rounding_reach_the_policy(rule: Rule) -> None:
    problem, reward = random_problem(9, count=3, states=3, horizon=4, budget=1)
    for planner in (rmab.planners.lagrangian_index, rmab.planners.myopic_index, rmab.planners.occupancy_index):
        policy = planner(problem, reward, rule=rule)
        assert (policy.rule, policy.rounding) == (rule, "top")
        assert planner(problem, reward).rule == ("fill" if planner is rmab.planners.occupancy_index else "auto")
    for rounding in ROUNDINGS:
        policy = rmab.planners.occupancy_index(problem, reward, rule=rule, rounding=rounding)
        assert (policy.rule, policy.rounding) == (rule, rounding)


def test_the_budget_of_the_problem_reaches_the_policy() -> None:
    problem, reward = random_problem(9, count=5, states=3, horizon=4, budget=3)
    policies = [p for p in planned(problem, reward).values() if isinstance(p, rmab.IndexPolicy)]
    assert [policy.budget for policy in policies] == [3] * 8
    assert (rmab.planners.random_policy(problem).rule, rmab.planners.round_robin(problem).rule) == ("fill", "at-most")


@pytest.mark.parametrize("planner", [rmab.planners.lagrangian_index, rmab.planners.occupancy_index])
def test_the_plan_of_another_problem_or_reward_is_refused(planner: Callable[..., rmab.IndexPolicy]) -> None:
    problem, reward = random_problem(9, count=3, states=3, horizon=4, budget=1)
    arms, start = problem.arms, problem.start
    others = [Problem(arms, start, 2, 4), Problem(arms, start, 1, 5), Problem(arms, (start + 1) % 3, 1, 4)]
    others.append(Problem(Arms(arms.kernels[::-1]), start, 1, 4))
    plans = [rmab.solvers.solve_fluid(other, reward) for other in others] + [
        rmab.solvers.solve_fluid(problem, reward + 0.01)
    ]
    for plan in plans:
        with pytest.raises(ModelError, match="fluid: it belongs to another problem or reward"):
            planner(problem, reward, fluid=plan)
    same = planner(problem, reward, fluid=rmab.solvers.solve_fluid(Problem(arms, start, 1, 4), reward))
    np.testing.assert_array_equal(same.table, planner(problem, reward).table)


@pytest.mark.parametrize("rule", RULES)
def test_lagrangian_index_comes_close_to_the_bound_under_any_rule(rule: Rule) -> None:
    task = rmab.make_task("cpap")
    plan = rmab.solvers.solve_fluid(task.problem, task.base_reward)
    policy = rmab.planners.lagrangian_index(task.problem, task.base_reward, fluid=plan, rule=rule)
    batch = rmab.simulate_many(task.problem, policy, task.base_reward, np.random.default_rng(0), 100)
    assert batch.mean >= 0.99 * plan.bound


def test_lagrangian_index_is_the_advantage_of_plain_dynamic_programming() -> None:
    problem, reward = random_problem(9, count=3, states=3, horizon=4, budget=1)
    plan = rmab.solvers.solve_fluid(problem, reward)
    table = rmab.planners.lagrangian_index(problem, reward, fluid=plan).table
    for n in range(3):
        priced = reward[n] - plan.prices[:, np.newaxis, np.newaxis] * np.array([0.0, 1.0])
        _, quality = reference.backward(problem.arms.kernels[n], priced, 4)
        np.testing.assert_allclose(table[n], quality[..., 1] - quality[..., 0] + plan.prices[:, np.newaxis], atol=1e-9)


def test_occupancy_index_is_the_paper_s_ratio_and_zero_without_mass() -> None:
    problem, reward = random_problem(10, count=4, states=3, horizon=5, budget=1)
    plan = rmab.solvers.solve_fluid(problem, reward)
    mass = plan.occupancy.sum(axis=3)
    table = rmab.planners.occupancy_index(problem, reward, fluid=plan).table
    np.testing.assert_allclose(table * mass, plan.occupancy[..., 1], atol=1e-12)
    assert (table[mass == 0] == 0).all()
    assert (mass[:, 0] == 0).any()  # the start pins the first step, so the case above does occur


def test_myopic_index_by_hand() -> None:
    # One arm: from state 0 activation moves to state 1 for sure, passive stays. Passive pay 0 and 4, active pay 1 and 2.
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    problem = Problem(Arms(kernel[np.newaxis]), 0, 1, 2)
    index = rmab.planners.myopic_index(problem, [[[0.0, 1.0], [4.0, 2.0]]]).table
    np.testing.assert_allclose(index, [[[1 + 4, -2], [1, -2]]])
    short = rmab.planners.myopic_index(problem, [[[0.0, 1.0], [4.0, 2.0]]], lookahead=False).table
    np.testing.assert_allclose(short, [[[1, -2], [1, -2]]])


def test_round_robin_visits_all_arms_in_turn_across_episodes() -> None:
    problem, reward = random_problem(11, count=5, states=2, horizon=4, budget=2)
    turns = [
        np.flatnonzero(row).tolist()
        for t in range(2)
        for row in rmab.simulate(
            problem, rmab.planners.round_robin(problem, episode=t), reward, np.random.default_rng(0)
        ).actions
    ]
    assert turns == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4], [0, 1], [2, 3], [0, 4]]


def test_random_policy_activates_every_set_equally_often() -> None:
    problem, reward = random_problem(12, count=4, states=2, horizon=3000, budget=2)
    actions = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(1)).actions
    _, counts = np.unique(actions, axis=0, return_counts=True)
    assert (actions.sum(axis=1) == 2).all()
    assert counts.size == 6
    assert (np.abs(counts - 500) < 5 * np.sqrt(500)).all()


PLANNERS = ("occupancy_index", "lagrangian_index", "myopic_index", "LpUpdate", "whittle_index", "finite_whittle_index")
REWARDED = {f"planners.{name}": getattr(rmab.planners, name) for name in (*PLANNERS, "stationary_index", "IdPolicy", "Ftva")}
REWARDED |= {f"solvers.{name}": getattr(rmab.solvers, name) for name in ("solve_fluid", "solve_average_fluid")}


@pytest.mark.parametrize("name", REWARDED)
def test_a_task_in_place_of_a_problem_is_refused_with_the_right_call(name: str) -> None:
    task = rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1)
    call = f"rmab.{name}(task.problem, task.base_reward)"
    line = f"{name.partition('.')[2]} needs a problem and a reward, got Task; for a task, call {call}"
    with pytest.raises(ModelError, match=f"^{re.escape(line)}$"):
        REWARDED[name](task, task.base_reward)
    REWARDED[name](task.problem, task.base_reward)


@pytest.mark.parametrize("name", ["round_robin", "random_policy"])
def test_what_is_no_problem_is_refused(name: str) -> None:
    line = rf"^{name} needs a problem, got list; for a task, call rmab\.planners\.{name}\(task\.problem\)$"
    with pytest.raises(ModelError, match=line):
        getattr(rmab.planners, name)([1, 2])


def test_results_are_shown_in_one_short_line() -> None:
    problem, reward = random_problem(0, count=3, states=3, horizon=5, budget=1)
    kernels = problem.arms.kernels
    shown = {
        "Fluid(value ": rmab.solvers.solve_fluid(problem, reward),
        "OptimisticFluid(value ": rmab.solvers.solve_optimistic_fluid(kernels, kernels, reward, problem.start, 1, 5),
        "Projection(3 arms, 5 steps, 3 states, ": rmab.solvers.project(
            np.ones((3, 5, 3, 2, 3)), kernels, kernels, problem.start, 1
        ),
        "WhittleResult(3 arms, 3 states, ": rmab.planners.whittle_index(problem, reward),
        "LpUpdate(Problem(": rmab.planners.LpUpdate(problem, reward),
        "AverageFluid(value ": rmab.solvers.solve_average_fluid(problem, reward),
        "IdPolicy(Problem(": rmab.planners.IdPolicy(problem, reward),
        "Ftva(Problem(": rmab.planners.Ftva(problem, reward),
        "FtvaEpisode(Problem(": rmab.planners.Ftva(problem, reward).begin(problem.start, np.random.default_rng(0)),
    }
    for begin, result in shown.items():
        assert repr(result).startswith(begin)
        assert len(repr(result)) < 120
        assert "\n" not in repr(result)


class TestAsLearners:
    """Planners take part in runs and studies."""

    @pytest.mark.parametrize("name", ["myopic", "whittle", "lagrangian"])
    @pytest.mark.parametrize("task", ["cpap@switching", "deadline@adaptive"])
    def test_they_play_the_policy_of_the_summed_rewards(self, name: str, task: str) -> None:
        game = rmab.make_task(task, arms=6, budget=2, horizon=7, episodes=3)
        fixed = not game.adversary.adaptive
        rewards = sum(game.reward(t) for t in range(3)) if fixed else 3 * game.base_reward
        policies = {
            "myopic": lambda: rmab.planners.myopic_index(game.problem, rewards),
            "whittle": lambda: rmab.planners.finite_whittle_index(game.problem, rewards).policy(),
            "lagrangian": lambda: rmab.planners.lagrangian_index(game.problem, rewards),
        }
        run = rmab.run(game, name, seed=2)
        assert run.privileged == "knows the kernels and the rewards of all episodes"
        for t in range(3):
            rng = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(100, t)))
            episode = rmab.simulate(game.problem, policies[name](), run.rewards[t], rng)
            assert episode.reward == run.reward[t]

    def test_round_robin_goes_on_where_it_stopped_and_is_nobody_s_secret(self) -> None:
        game = rmab.make_task("cpap", arms=6, budget=4, horizon=2, episodes=3)
        learner = rmab.make_learner("round-robin")
        assert not learner.privileged
        state = learner.begin(game.view())
        for t in range(3):
            table = learner.plan(state).policy.table
            assert np.array_equal(table, rmab.planners.round_robin(game.problem, episode=t).table)
            rng = np.random.default_rng(t)
            episode = rmab.simulate(game.problem, learner.plan(state).policy, game.reward(t), rng)
            state = learner.learn(state, rmab.Feedback.reveal(game.view(), t, episode, game.reward(t)))
        assert rmab.run(game, "round-robin").activations.tolist() == [8, 8, 8]

    def test_one_that_was_not_informed_is_refused(self) -> None:
        with pytest.raises(rmab.errors.ModelError, match="whittle must be informed of the problem first"):
            rmab.make_learner("whittle").begin(rmab.make_task("cpap").view())
