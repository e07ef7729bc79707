"""Learners under exact budgets and costs: they keep them, come close to the plan that knows, and ignore the unit of cost."""

from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError, ModelError

RNG = np.random.default_rng(0)
GROUPS = np.arange(12) % 3
ARMS = rmab.Arms.of_groups(RNG.dirichlet(np.full(3, 0.6), size=(3, 3, 2)), GROUPS)
REWARD = RNG.uniform(size=(3, 3, 2))[GROUPS]
COST = np.array([1.0, 2.0, 3.5])[GROUPS]
LEARNERS: list[tuple[str, dict[str, Any]]] = [("ucmd", {}), ("thompson", {}), ("rmab-ucrl", {"version": "finite"})]


def game(episodes: int = 30, budget: Any = 9.0, **kind: Any) -> rmab.Task:
    problem = rmab.Problem(ARMS, 0, budget, 8, **kind)
    return rmab.Task.from_rewards(problem, np.broadcast_to(REWARD, (episodes, *REWARD.shape)), low=0, high=1)


def earned(task: rmab.Task, name: str, options: dict[str, Any]) -> np.ndarray:
    return np.asarray(rmab.run(task, rmab.make_learner(name, **options), seed=0).reward)


@pytest.mark.parametrize(("name", "options"), LEARNERS)
@pytest.mark.parametrize("kind", [{"exact": True, "budget": 7}, {"cost": COST}])
def test_they_earn_most_of_what_the_plan_that_knows_earns(name: str, options: dict[str, Any], kind: dict[str, Any]) -> None:
    task = game(**kind)
    policies = (rmab.planners.lagrangian_index(task.problem, REWARD), rmab.planners.random_policy(task.problem))
    rng = np.random.default_rng(0)
    known, blind = (rmab.simulate_many(task.problem, one, REWARD, rng, 400).mean for one in policies)
    assert earned(task, name, options)[-15:].mean() > blind + 0.7 * (known - blind)


@pytest.mark.parametrize(("name", "options"), [*LEARNERS, ("rmab-ucrl", {})])
def test_the_unit_of_the_costs_has_no_effect(name: str, options: dict[str, Any]) -> None:
    one, other = game(6, cost=COST), game(6, 9.0 * 1024, cost=COST * 1024)
    np.testing.assert_array_equal(earned(one, name, options), earned(other, name, options))


def test_equal_costs_are_a_number_of_arms() -> None:
    for name, options in LEARNERS:
        np.testing.assert_array_equal(
            earned(game(6, 4), name, options), earned(game(6, 4 * 2.5 + 2.0, cost=2.5), name, options)
        )


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(ModelError, match="all arms must be active at some step"):
        rmab.make_learner("ucmd").begin(game(2, [3, 12, 3, 3, 3, 3, 3, 3], exact=True).view())
    with pytest.raises(ModelError, match="ucmd supports budgets of at most B arms of cost 1, but this budget has costs"):
        rmab.make_learner("ucmd", step="lazy").begin(game(2, cost=COST).view())


def test_feedback_is_checked_against_costs_and_exact_budgets() -> None:
    view, states = game(2, cost=COST).view(), np.zeros((9, 12), dtype=int)
    actions = np.zeros((8, 12), dtype=bool)
    actions[3, [2, 5, 8]] = True  # three arms, 3.5 each
    rewards = np.full(REWARD.shape, np.nan)
    with pytest.raises(FeedbackError, match=r"step 3: arms that cost 10\.5 are active, the budget is 9"):
        rmab.Feedback(0, states, actions, rewards).check(view, 0)
    cheap = game(2, 0.9, cost=0.1 * COST).view()  # five arms for less than a budget of one
    actions[3] = np.isin(np.arange(12), [0, 3, 6, 9, 1])
    with pytest.raises(FeedbackError, match="reward"):
        rmab.Feedback(0, states, actions, rewards).check(cheap, 0)  # the budget is kept; the rewards are not there
    with pytest.raises(FeedbackError, match="step 0: 0 arms are active, the budget is exactly 7") as caught:
        rmab.Feedback(0, states, actions, rewards).check(game(2, 7, exact=True).view(), 0)
    assert caught.value.code == "budget-unused"
    with pytest.raises(FeedbackError, match="budget"):
        rmab.Feedback(0, states, actions, rewards, budget=2.5).check(game(2, 4).view(), 0)
