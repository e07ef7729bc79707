"""The fluid bound is certified by its own numbers: feasibility, weak duality, exact enumeration where possible."""

from types import SimpleNamespace

import highspy
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import reference
import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import SolverError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.solvers.fluid import fluid as fluid_module, highs as highs_module
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.fluid import certify
from rmab.solvers.fluid.highs import FluidLp
from strategies import problems, random_problem, rewards

pytestmark = pytest.mark.compiled


def flow_violation(problem: Problem, occupancy: FloatArray) -> float:
    """Return the largest violation of start and flow, in the words of the LP."""
    inflow = np.einsum("nhsa,nsay->nhy", occupancy, problem.arms.kernels)[:, :-1]
    start = np.eye(problem.arms.states)[problem.start]
    expected = np.concatenate([start[:, np.newaxis], inflow], axis=1)
    return float(np.abs(occupancy.sum(axis=3) - expected).max())


def random_feasible(problem: Problem, rng: np.random.Generator) -> FloatArray:
    """Return the occupancy of random activation probabilities whose sum stays within the budget in every state."""
    arms, ratio = problem.arms, problem.budget / problem.arms.count
    chances = rng.random((arms.count, problem.horizon, arms.states)) * ratio
    return np.stack([reference.occupancy(k, s, c) for k, s, c in zip(arms.kernels, problem.start, chances, strict=True)])


@given(st.data())
@settings(max_examples=60)
def test_occupancy_is_feasible_and_the_gap_is_closed(data: st.DataObject) -> None:
    problem = data.draw(problems())
    reward = data.draw(rewards(problem))
    plan = rmab.solvers.solve_fluid(problem, reward)
    occupancy = plan.occupancy
    assert (occupancy >= 0).all()
    assert flow_violation(problem, occupancy) < 1e-12
    assert (occupancy[..., 1].sum(axis=(0, 2)) <= problem.budget + 1e-9).all()
    assert (plan.prices >= 0).all()
    assert -1e-9 <= plan.gap <= 1e-6
    np.testing.assert_allclose((occupancy * reward[:, np.newaxis]).sum(), plan.value, atol=1e-9)


@given(st.data(), st.integers(0, 1000))
@settings(max_examples=30)
def test_no_feasible_policy_beats_the_bound_at_any_prices(data: st.DataObject, seed: int) -> None:
    problem = data.draw(problems())
    reward = data.draw(rewards(problem))
    rng = np.random.default_rng(seed)
    value = (random_feasible(problem, rng) * reward[:, np.newaxis]).sum()
    any_prices = rng.exponential(size=problem.horizon)
    blocks = Blocks.of(problem, reward)
    assert value <= rmab.solvers.solve_fluid(problem, reward).bound + 1e-9
    assert value <= blocks.bound(any_prices, problem.budgets) + 1e-9
    assert rmab.solvers.solve_fluid(problem, reward).value <= blocks.bound(any_prices, problem.budgets) + 1e-6


@given(st.data())
@settings(max_examples=25)
def test_the_joint_optimum_lies_between_policies_and_the_bound(data: st.DataObject) -> None:
    problem = data.draw(problems(max_arms=3, max_states=3, max_horizon=4))
    reward = data.draw(rewards(problem))
    assert reference.optimal_value(problem, reward) <= rmab.solvers.solve_fluid(problem, reward).bound + 1e-9


def test_one_arm_without_budget_pressure_is_plain_dynamic_programming() -> None:
    problem, reward = random_problem(3, count=1, states=4, horizon=7, budget=1)
    values, _ = reference.backward(problem.arms.kernels[0], reward[0], 7)
    plan = rmab.solvers.solve_fluid(problem, reward)
    assert plan.value == pytest.approx(values[0, problem.start[0]], rel=1e-12)
    np.testing.assert_allclose(plan.prices, 0, atol=1e-12)


def test_budget_zero_is_the_passive_value() -> None:
    problem, reward = random_problem(4, count=3, states=3, horizon=5, budget=0)
    passive = [
        reference.backward(k[:, [0, 0]], r[:, [0, 0]], 5)[0] for k, r in zip(problem.arms.kernels, reward, strict=True)
    ]
    expected = sum(v[0, s] for v, s in zip(passive, problem.start, strict=True))
    assert rmab.solvers.solve_fluid(problem, reward).value == pytest.approx(expected, rel=1e-12)


def test_a_hand_computed_case() -> None:
    # Two arms, one state, one activation: the arm that pays 3 is chosen over the one that pays 1, at both steps;
    # one more activation would add 1.
    problem = Problem(Arms(np.ones((2, 1, 2, 1))), 0, 1, 2)
    plan = rmab.solvers.solve_fluid(problem, [[[0.0, 1.0]], [[0.0, 3.0]]])
    assert plan.value == plan.bound == 6.0
    assert plan.gap == 0.0
    assert ((plan.prices >= 1) & (plan.prices <= 3)).all()
    np.testing.assert_allclose(plan.occupancy[:, :, 0, 1], [[0, 0], [1, 1]])


def test_groups_change_the_work_but_not_the_answer() -> None:
    rng = np.random.default_rng(5)
    table = rng.dirichlet(np.ones(3), size=(2, 3, 2))[[0, 0, 0, 1, 1]]
    start, reward = [0, 1, 1, 2, 0], rng.random((2, 3, 2))[[0, 0, 0, 1, 1]]
    alone = Problem(Arms(table), start, 2, 6)
    pooled = Problem(Arms(table, groups="aaabb"), start, 2, 6)
    assert len(Blocks.of(alone, reward).kernels) == 5
    assert len(Blocks.of(pooled, reward).kernels) == 2
    one, other = rmab.solvers.solve_fluid(alone, reward), rmab.solvers.solve_fluid(pooled, reward)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert flow_violation(pooled, other.occupancy) < 1e-12
    np.testing.assert_allclose((other.occupancy * reward[:, np.newaxis]).sum(), other.value, rtol=1e-9)


def test_arms_of_a_group_with_different_rewards_stay_apart() -> None:
    reward = np.zeros((3, 2, 2))
    reward[:, :, 1] = [[1, 1], [1, 1], [5, 5]]
    arms = Arms.identical(np.full((2, 2, 2), 0.5), 3)
    blocks = Blocks.of(Problem(arms, 0, 1, 2), reward)
    assert len(blocks.kernels) == 2
    np.testing.assert_allclose(blocks.start.sum(axis=1)[blocks.block_of], [2, 2, 1])
    assert rmab.solvers.solve_fluid(Problem(arms, 0, 1, 2), reward).value == pytest.approx(10.0)


def test_a_gap_that_cannot_be_certified_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, reward = random_problem(6, count=4, states=3, horizon=4, budget=1)

    def sloppy(program: object) -> tuple[FloatArray, FloatArray]:
        return np.ones((4, 4, 3, 2)), np.zeros(4)

    monkeypatch.setattr(FluidLp, "solve", sloppy)
    with pytest.raises(SolverError, match=r"certified gap is .* above the tolerance 1\.00e-06"):
        rmab.solvers.solve_fluid(problem, reward, method="highs")
    assert rmab.solvers.solve_fluid(problem, reward).method == "newton"  # it takes over


class Lost:
    """Stands for a solver that fails."""

    def __init__(self, *args: object, **options: object) -> None:
        raise SolverError("fluid LP: lost")


@pytest.mark.parametrize(("count", "first", "other"), [(4, "FluidLp", "newton"), (40, "SoftPath", "highs")])
def test_the_other_solver_takes_over_where_one_fails(
    monkeypatch: pytest.MonkeyPatch, count: int, first: str, other: str
) -> None:
    problem, reward = random_problem(6, count=count, states=3, horizon=4, budget=1)
    usual = rmab.solvers.solve_fluid(problem, reward)
    solvers = {"FluidLp": highs_module, "SoftPath": fluid_module}  # where each is looked up
    monkeypatch.setattr(solvers.pop(first), first, Lost)
    plan = rmab.solvers.solve_fluid(problem, reward)
    assert {usual.method, plan.method} == {"highs", "newton"}
    assert plan.method == other
    assert plan.value == pytest.approx(usual.value, rel=2e-6)
    with pytest.raises(SolverError, match=r"^fluid LP: lost$"):
        rmab.solvers.solve_fluid(problem, reward, method=usual.method)  # it was asked for
    monkeypatch.setattr(fluid_module, "PATIENCE", 100)
    if other == "highs":
        with pytest.raises(SolverError, match=r"^fluid LP: lost$"):
            rmab.solvers.solve_fluid(problem, reward)
    monkeypatch.setattr(fluid_module, "PATIENCE", 10**9)
    for name, module in solvers.items():
        monkeypatch.setattr(module, name, Lost)
    with pytest.raises(SolverError, match=rf"^fluid LP: lost \({usual.method}\); fluid LP: lost \({other}\)$"):
        rmab.solvers.solve_fluid(problem, reward)


def lone_arm(reward: list[float]) -> tuple[Problem, Blocks]:
    """One arm in one state for two steps, budget 1: what it earns is what its shares say."""
    problem = Problem(Arms(np.ones((1, 1, 2, 1))), 0, 1, 2)
    return problem, Blocks.of(problem, np.array([[reward]]))


def shared(share: float) -> FloatArray:
    """Return the occupancy (1, 2, 1, 2) of a lone arm that is active with this probability at both steps."""
    return np.broadcast_to([1 - share, share], (1, 2, 1, 2)).copy()


@pytest.mark.parametrize(
    ("reward", "share", "gap"),
    [
        ([0.0, 3.0], 0.999, 1e-3),
        ([0.0, 3e-8], 0.999, 1e-3),
        ([0.0, 3e9], 0.999, 1e-3),
        ([-3.0, 0.0], 0.999, 1e-3),  # the bound is 0, and 6 above the least that can be earned
        ([-3.0, -6.0], 0.001, 1e-3),
        ([1000.0, 1003.0], 0.999, 1e-3),
    ],
)
def test_a_gap_is_refused_just_above_the_tolerance_only(
    reward: list[float], share: float, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmab.solvers.fluid.fluid.steer", lambda *_: None)  # it would mend the plan
    problem, blocks = lone_arm(reward)
    plan = certify(problem, blocks, shared(share), np.zeros(2), gap * 1.001, "highs")
    assert plan.gap == pytest.approx(gap, rel=1e-9)
    with pytest.raises(SolverError, match=rf"certified gap is {gap:.2e}, above the tolerance"):
        certify(problem, blocks, shared(share), np.zeros(2), gap * 0.999, "highs")


@pytest.mark.parametrize(
    ("price", "message"),
    [(3.5, "certified gap"), (np.nan, "prices are negative or not finite"), (-1.0, "prices are negative")],
)
def test_wrong_prices_are_refused(price: float, message: str) -> None:
    problem, blocks = lone_arm([0.0, 3.0])
    with pytest.raises(SolverError, match=message):
        certify(problem, blocks, shared(1.0), np.full(2, price), 1e-6, "highs")


def test_mass_that_the_solver_only_left_behind_is_no_plan() -> None:
    problem, reward = random_problem(6, count=1, states=3, horizon=2, budget=1)
    blocks = Blocks.of(problem, reward)
    occupancy = np.zeros((1, 2, 3, 2))
    occupancy[0, :, 0] = [0.25, 0.75]
    occupancy[0, :, 1] = [0.0, 1e-13]
    occupancy[0, :, 2] = [0.0, 1e-11]
    plan = certify(problem, blocks, occupancy, np.zeros(2), np.inf, "highs")
    np.testing.assert_allclose(plan.share, [[[0.75, 0, 1]] * 2])
    table = rmab.planners.occupancy_index(problem, reward, fluid=plan).table
    np.testing.assert_allclose(table, [[[0.75, 0, 1]] * 2])


@pytest.mark.parametrize("scale", [1e6, 1e-8, 1e9])
def test_the_value_scales_with_the_rewards(scale: float) -> None:
    task = rmab.make_task("cpap-adherence", arms=6, budget=3, horizon=10)
    plan, scaled = (rmab.solvers.solve_fluid(task.problem, task.base_reward * factor) for factor in (1.0, scale))
    assert scaled.value == pytest.approx(scale * plan.value, rel=1e-9)
    assert scaled.bound == pytest.approx(scale * plan.bound, rel=1e-9)
    assert scaled.gap < 1e-9


def test_nothing_to_earn() -> None:
    problem, reward = random_problem(7, count=4, states=3, horizon=5, budget=2)
    plan = rmab.solvers.solve_fluid(problem, 0 * reward)
    assert (plan.value, plan.bound, plan.gap) == (0, 0, 0)


def answering(values: FloatArray, duals: FloatArray, status: highspy.HighsModelStatus) -> SimpleNamespace:
    """Stand in for HiGHS with a given answer."""
    return SimpleNamespace(
        run=lambda: highspy.HighsStatus.kOk,
        getModelStatus=lambda: status,
        modelStatusToString=lambda status: status.name,
        getSolution=lambda: SimpleNamespace(col_value=values, row_dual=duals),
    )


def test_masses_and_prices_below_zero_are_clipped() -> None:
    _, blocks = lone_arm([0.0, 4.0])
    program = FluidLp(blocks)
    optimal = highspy.HighsModelStatus.kOptimal
    program.highs = answering(np.array([-1e-10, 1, 0.25, 0.75]), np.array([9, 9, -1e-10, 0.5]), optimal)
    occupancy, prices = program.solve()
    assert occupancy.tolist() == [[[[0, 1]], [[0.25, 0.75]]]]
    assert prices.tolist() == [0, 2]


def test_an_end_without_an_optimum_is_an_error() -> None:
    _, blocks = lone_arm([0.0, 4.0])
    program = FluidLp(blocks)
    program.highs = answering(np.zeros(4), np.zeros(4), highspy.HighsModelStatus.kIterationLimit)
    program.highs.clearSolver = lambda: None  # it is asked again, by another method
    program.highs.setOptionValue = lambda *_: highspy.HighsStatus.kOk
    with pytest.raises(SolverError, match="fluid LP: HiGHS ended with kIterationLimit"):
        program.solve()


def test_only_large_programmes_use_the_interior_point_method(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, reward = random_problem(7, count=3, states=2, horizon=4, budget=1)
    blocks, columns = Blocks.of(problem, reward), 3 * 2 * (1 + 2 * 3)  # one start state, then both
    chosen = []
    for large in (columns, columns - 1):
        monkeypatch.setattr("rmab.solvers.fluid.highs.LARGE", large)
        chosen.append(FluidLp(blocks).highs.getOptionValue("solver")[1])
    assert chosen == ["choose", "ipm"]


def test_a_refused_solver_option_is_an_error() -> None:
    problem, reward = random_problem(6, count=2, states=2, horizon=2, budget=1)
    program = FluidLp(Blocks.of(problem, reward))
    with pytest.raises(SolverError, match="HiGHS rejected option solver = nonsense"):
        program._set("solver", "nonsense")


def test_interior_point_and_simplex_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, reward = random_problem(7, count=6, states=4, horizon=8, budget=2)
    simplex = rmab.solvers.solve_fluid(problem, reward)
    monkeypatch.setattr("rmab.solvers.fluid.highs.LARGE", 0)
    interior = rmab.solvers.solve_fluid(problem, reward)
    assert interior.value == pytest.approx(simplex.value, rel=1e-8)
