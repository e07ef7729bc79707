"""Published examples: what their authors say of them, and the rule that harms nobody just to fill the budget."""

import numpy as np
import pytest

import rmab
from rmab.tasks.published import EXAMPLES, kernel_of

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_task_with_its_own_share_of_active_arms(name: str) -> None:
    example = EXAMPLES[name]
    task = rmab.make_task(f"{name}@iid", seed=1, arms=10, horizon=5, episodes=2)
    assert task.problem.budget == round(10 * example.share)
    assert rmab.make_task(name, arms=10, budget=3).problem.budget == 3
    np.testing.assert_allclose(task.problem.arms.kernels[3], kernel_of(name))
    np.testing.assert_array_equal(task.base_reward[7], example.reward)
    assert task.view().pooled_rewards
    for table in (example.passive, example.active):
        np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=2e-8)  # as published


@pytest.mark.parametrize(
    ("name", "bound"),
    [("conveyor-bait", 0.0129166587636003), ("dirichlet-355", 0.2300109407901556), ("dirichlet-582", 0.1112391001779859)],
)
def test_bounds_of_exact_budgets_are_those_of_their_authors(name: str, bound: float) -> None:
    """Hong, Xie, Chen & Wang (2024): the value of the LP per arm, by a solver with a tolerance of about 1e-7."""
    task = rmab.make_task(name, arms=100, exact=True)
    assert rmab.solvers.solve_average_fluid(task.problem, task.base_reward).bound / 100 == pytest.approx(bound, abs=5e-8)


def test_types_of_arms_are_groups() -> None:
    for name, types, each in (("cpap-dopl", 2, 10), ("armman-dopl", 10, 2)):
        task = rmab.make_task(name)
        assert task.problem.arms.count == types * each
        np.testing.assert_array_equal(task.problem.arms.group_of, np.repeat(np.arange(types), each))
        assert task.view().pooled_rewards


def test_learners_refuse_budgets_that_they_do_not_know() -> None:
    task = rmab.make_task("dirichlet-355", arms=10, horizon=5, episodes=2)
    for name in ("random", "round-robin", "planner"):
        assert (rmab.run(task, name).activations == 6 * 5).all()
    with pytest.raises(rmab.errors.ModelError, match=r"ucmd-armab supports budgets of at most B arms .* is exact"):
        rmab.run(task, "ucmd-armab")


def test_circulant_has_its_known_whittle_indices() -> None:
    """Avrachenkov & Borkar (2022): -.5, .5, 1, -1."""
    task = rmab.make_task("circulant", arms=2, budget=1)
    found = rmab.planners.whittle_index(task.problem, task.base_reward)
    np.testing.assert_allclose(found.index[0], [-0.5, 0.5, 1.0, -1.0], atol=1e-12)
    assert found.indexable.all()


def test_what_is_said_of_indexability() -> None:
    for name, indexable in (("non-indexable", False), ("gast-1", True), ("gast-2", True), ("gast-3", True)):
        task = rmab.make_task(name, arms=2, budget=1)
        assert rmab.planners.whittle_index(task.problem, task.base_reward, discount=0.99).indexable.all() == indexable, name


def earned(name: str, rule: str, horizon: int = 100) -> rmab.Batch:
    task = rmab.make_task(name, horizon=horizon)
    policy = rmab.planners.lagrangian_index(task.problem, task.base_reward, rule=rule)  # type: ignore[arg-type]
    return rmab.simulate_many(task.problem, policy, task.base_reward, np.random.default_rng(0), 100)


@pytest.mark.parametrize("name", ["conveyor", "gast-2", "non-indexable", "non-sa"])
def test_auto_is_at_least_level_with_both_other_rules(name: str) -> None:
    auto = earned(name, "auto")
    for rule in ("fill", "at-most"):
        other = earned(name, rule)
        assert auto.mean >= other.mean - 3 * np.hypot(auto.stderr, other.stderr), rule


def test_filling_the_budget_harms_on_the_conveyor() -> None:
    """Being active in the last states turns arms back: only arms that it does not harm are to be activated."""
    auto, fill = earned("conveyor", "auto", 150), earned("conveyor", "fill", 150)
    assert auto.mean - 4 * auto.stderr > 1.2 * fill.mean


def test_auto_takes_what_is_free_and_leaves_what_harms() -> None:
    states, rng = np.zeros(4, dtype=int), np.random.default_rng(0)
    table = np.array([[2.0], [0.0], [-1e-9], [-0.5]])
    for rule, active in (("fill", [1, 1, 1, 1]), ("at-most", [1, 0, 0, 0]), ("auto", [1, 1, 1, 0])):
        policy = rmab.IndexPolicy(table, 4, rule=rule)  # type: ignore[arg-type]
        np.testing.assert_array_equal(policy.act(0, states, rng), active)
        problem = rmab.Problem(rmab.Arms(np.ones((4, 1, 2, 1))), 0, 4, 1)
        played = rmab.simulate(problem, policy, np.ones((4, 1, 2)), np.random.default_rng(1))
        np.testing.assert_array_equal(played.actions[0], active)


def test_auto_never_exceeds_the_budget() -> None:
    policy = rmab.IndexPolicy(np.zeros((5, 2)), 2, rule="auto")
    assert policy.act(0, np.zeros(5, dtype=int), np.random.default_rng(0)).sum() == 2
