"""Softened plans: what must not matter does not, whatever the temperature; warm starts, threads, and layouts in memory."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rmab
from rmab.solvers.checks import reachable
from rmab.solvers.priced import program as layout
from rmab.solvers.priced.blocks import soften_blocks
from rmab.solvers.priced.compiled.program import reach
from softened import Case, earned, some_case
from strategies import problems, random_problem, rewards

pytestmark = pytest.mark.compiled

BETAS = st.floats(-3, 6).map(lambda power: 10.0**power)


@settings(deadline=None, max_examples=60)
@given(st.data(), BETAS)
def test_any_problem_is_solved_and_proven(data: st.DataObject, beta: float) -> None:
    problem = data.draw(problems())
    plan = rmab.solvers.soften(problem, data.draw(rewards(problem)), beta)
    assert (plan.use <= problem.budgets * (1 + 1e-9)).all()
    assert ((plan.share >= 0) & (plan.share <= 1)).all()
    assert 0 <= plan.gap <= 1e-6
    assert plan.value <= plan.bound
    assert plan.values.shape == plan.share.shape


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), BETAS)
def test_the_objective_is_what_it_says(seed: int, beta: float) -> None:
    case = some_case(seed, beta)
    plan = case.solve()
    value, use = earned(case, plan.share)
    assert value == pytest.approx(plan.value, abs=2e-6 * max(abs(value), 1))
    np.testing.assert_allclose(use, plan.use, atol=1e-8)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(-1, 2))
def test_constants_and_units_of_the_reward_do_not_matter(seed: int, power: float) -> None:
    case = some_case(seed, 10.0**power)
    plain = case.solve(tolerance=1e-9)
    shift, scale, arms = 7.0, 250.0, case.start.sum(axis=1)
    other = replace(case, reward=scale * (case.reward + shift), beta=case.beta / scale).solve(tolerance=1e-9)
    assert other.value == pytest.approx(scale * (plain.value + shift * arms.sum() * case.budget.size), rel=1e-8)
    np.testing.assert_allclose(other.prices, scale * plain.prices, atol=1e-4 * scale)
    np.testing.assert_allclose(other.share, plain.share, atol=1e-4)
    stacked = plain.values + shift * np.arange(case.budget.size, 0, -1)[:, np.newaxis]
    np.testing.assert_allclose(other.values, scale * stacked, rtol=1e-6, atol=1e-4 * scale)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_like_arms_apart_or_together(seed: int) -> None:
    case = some_case(seed, plain=True)
    parts = np.random.default_rng(seed).integers(1, 4, len(case.start))
    phases = len(case.kernels) // len(case.start)
    of = np.repeat(np.arange(len(case.start)), parts)
    cells = (of[:, np.newaxis] * phases + np.arange(phases)).reshape(-1)
    apart = replace(case, reward=case.reward[cells], start=(case.start / parts[:, np.newaxis])[of])
    together = case.solve(tolerance=1e-9)
    separate = soften_blocks(
        case.kernels,
        apart.reward,
        apart.start,
        case.budget,
        case.beta,
        kernel_of=cells,
        phase_of=case.phase_of,
        tolerance=1e-9,
    )
    assert separate.value == pytest.approx(together.value, rel=1e-7, abs=1e-7)
    np.testing.assert_allclose(separate.share, together.share[of], atol=1e-4)


def test_grouped_arms_are_planned_once() -> None:
    kernel = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
    reward = np.broadcast_to(np.random.default_rng(1).normal(size=(3, 2)), (6, 3, 2))
    alike = rmab.Problem(rmab.Arms.identical(kernel, 6), [0, 0, 0, 1, 1, 2], 2, 5)
    apart = rmab.Problem(rmab.Arms(np.broadcast_to(kernel, (6, 3, 2, 3))), [0, 0, 0, 1, 1, 2], 2, 5)
    one, many = (rmab.solvers.soften(problem, reward, 8, tolerance=1e-9) for problem in (alike, apart))
    assert one.share.shape[0] == 1
    assert many.share.shape[0] == 6
    assert one.value == pytest.approx(many.value, rel=1e-8)
    np.testing.assert_allclose(one.shares, many.shares, atol=1e-6)
    np.testing.assert_allclose(one.occupancy, many.occupancy, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(-2, 4), st.floats(0, 0.3))
def test_a_warm_start_changes_nothing_but_the_way(seed: int, power: float, change: float) -> None:
    case = some_case(seed, 10.0**power)
    last = case.solve(tolerance=1e-9)
    noise = np.random.default_rng(seed).normal(size=case.reward.shape)
    new = replace(case, reward=case.reward + change * noise)
    cold = new.solve(tolerance=1e-9)
    for start in (last, last.prices):
        warm = new.solve(tolerance=1e-9, warm=start)
        scale = max(abs(cold.value), 1)
        assert warm.value == pytest.approx(cold.value, abs=1e-8 * scale * max(case.budget.size, 1))
        assert warm.bound >= cold.value - 1e-9 * scale
    assert case.solve(tolerance=1e-9, warm=last).passes == 1


def test_warm_starts_are_short() -> None:
    """At most 12 passes on average, where rewards change somewhat from call to call."""
    task, rng = rmab.make_task("cpap"), np.random.default_rng(0)
    problem, reward = task.problem, task.base_reward
    for beta in (1.0, 10.0, 30.0):
        last, passes = rmab.solvers.soften(problem, reward, beta), []
        for _ in range(10):
            last = rmab.solvers.soften(problem, reward * (1 + 0.05 * rng.normal(size=(20, 3, 1))), beta, warm=last)
            passes.append(last.passes)
        assert np.mean(passes) <= 12


def test_the_rest_of_an_episode_begins_with_the_last_plan() -> None:
    problem, reward = random_problem(2, 8, 3, 12, 3)
    whole = rmab.solvers.soften(problem, reward, 10)
    states = (whole.occupancy[:, 4].sum(axis=2)).argmax(axis=1)
    rest = problem.from_step(4, states)
    warm, cold = rmab.solvers.soften(rest, reward, 10, warm=whole), rmab.solvers.soften(rest, reward, 10)
    assert warm.value == pytest.approx(cold.value, rel=1e-5)
    assert warm.passes < cold.passes


@pytest.mark.parametrize("beta", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("budget", [0, 1, 4, [0, 4, 2, 0, 1]])
def test_stress(beta: float, budget: object) -> None:
    """Deterministic kernels, states that cannot be reached, huge rewards there; budgets of nobody and of everybody."""
    kernels = np.zeros((4, 3, 2, 3))
    kernels[:, [0, 1], 0, [1, 0]] = kernels[:, :2, 1, 0] = kernels[:, 2, :, 2] = 1.0
    reward = np.random.default_rng(0).integers(-1, 3, size=(4, 3, 2)).astype(float)
    reward[:, 2] = [1e6, -1e6]
    plan = rmab.solvers.soften(rmab.Problem(rmab.Arms(kernels), 0, budget, 5), reward, beta)
    limit = np.broadcast_to(budget, 5)
    assert (plan.use <= limit * (1 + 1e-9)).all()
    assert (plan.prices[(limit == 0) | (limit == 4)] == 0).all()
    assert (plan.share[:, limit == 0] == 0).all()
    case = Case(kernels, reward, np.eye(3)[[0] * 4], limit.astype(float), np.zeros(5, np.int64), beta)
    assert earned(case, plan.share)[0] == pytest.approx(plan.value, abs=1e-5)


@pytest.mark.parametrize("beta", [1e-3, 5.0, 1e5])
def test_one_arm_and_one_step(beta: float) -> None:
    rng = np.random.default_rng(0)
    arm = rmab.Arms(rng.dirichlet(np.ones(3), size=(1, 3, 2)))
    for budget, horizon in ((1, 6), (0, 6), (1, 1), (0, 1)):
        plan = rmab.solvers.soften(rmab.Problem(arm, 0, budget, horizon), rng.normal(size=(1, 3, 2)), beta)
        assert plan.prices.max() == 0
        assert plan.share.shape == (1, horizon, 3)
        assert plan.share.max() <= budget


def test_enough_for_everybody_forces_nobody() -> None:
    """Where activating harms, a budget of N does not make it happen."""
    problem = rmab.Problem(rmab.Arms(np.ones((3, 1, 2, 1))), 0, 3, 2)
    plan = rmab.solvers.soften(problem, np.full((3, 1, 2), [1.0, 0.0]), 1000)
    assert plan.share.max() < 1e-9
    assert plan.value == pytest.approx(6.0, abs=0.1)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_blocks_in_lanes_or_by_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = some_case(seed)
    many = rng.integers(0, len(case.start), 11)
    phases = len(case.kernels) // len(case.start)
    cells = (many[:, np.newaxis] * phases + np.arange(phases)).reshape(-1)
    wide = replace(case, kernels=case.kernels[cells], reward=rng.normal(size=(cells.size, *case.reward.shape[1:])))
    wide = replace(wide, start=case.start[many])
    plans = []
    for lanes, waste in ((64, 1e9), (4, 1e9), (64, 0.0)):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("WIDE", lanes), ("NARROW", min(lanes, 8)), ("WASTE", waste)):
                patch.setattr(layout, name, value)
            plans.append(wide.solve(tolerance=1e-9))
    assert {plan.program.start.shape[2] for plan in plans} == {11, 4, 1}
    for plan in plans[1:]:
        assert plan.value == pytest.approx(plans[0].value, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(plan.share, plans[0].share, atol=1e-4)
        np.testing.assert_allclose(plan.values, plans[0].values, atol=1e-5 * max(1.0, np.abs(plan.values).max()))


def test_blocks_with_little_in_common_hold_only_what_is_possible() -> None:
    rng = np.random.default_rng(0)
    kernels = np.eye(30)[rng.integers(0, 30, size=(8, 30, 2))]  # each goes its own way
    plan = soften_blocks(kernels, rng.random((8, 30, 2)), np.eye(30)[[0] * 8], np.full(4, 2.0), 5.0)
    assert plan.program.rows.chances.shape == (8 * 30 * 2, 1)
    same = soften_blocks(
        kernels[:1], rng.random((8, 30, 2)), np.eye(30)[[0] * 8], np.full(4, 2.0), 5.0, kernel_of=np.zeros(8, int)
    )
    assert same.program.rows.chances.shape == (30 * 2, 8)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6))
def test_states_within_reach(seed: int) -> None:
    case = some_case(seed)
    found = np.empty(case.reward.shape[:2], dtype=bool)
    reach(case.kernels, np.arange(len(case.kernels)), case.start, case.phase_of, found)
    expected = reachable(case.kernels.max(axis=2) > 0, case.start > 0, case.phase_of)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    from rmab.common import processes as threads

    monkeypatch.setattr("rmab.solvers.priced.search.PIECE", 1)
    monkeypatch.setattr(layout, "WIDE", 2)
    monkeypatch.setattr(layout, "NARROW", 2)
    problem, reward = random_problem(0, 9, 3, 5, 3)
    usual = rmab.solvers.soften(problem, reward, 10)
    monkeypatch.setattr("rmab.common.processes.cores", lambda: count)
    threads.pool.cache_clear()
    try:
        other = rmab.solvers.soften(problem, reward, 10)
    finally:
        threads.pool().shutdown()
        threads.pool.cache_clear()
    np.testing.assert_array_equal(other.share, usual.share)
    assert other.value == usual.value


def test_any_prices_may_be_begun_with() -> None:
    problem, reward = random_problem(4, 5, 3, 6, 2)
    usual = rmab.solvers.soften(problem, reward, 20, tolerance=1e-8)
    for prices in (np.zeros(6), np.full(6, 1e3), np.full(6, 1e300), np.arange(9.0)):
        other = rmab.solvers.soften(problem, reward, 20, warm=prices, tolerance=1e-8)
        assert other.value == pytest.approx(usual.value, rel=1e-7)
        np.testing.assert_allclose(other.share, usual.share, atol=1e-4)


def test_plans_can_be_sent_and_gone_on_from() -> None:
    problem, reward = random_problem(4, 5, 3, 6, 2)
    plan = rmab.solvers.soften(problem, reward, 20)
    copy = pickle.loads(pickle.dumps(plan))
    assert repr(copy) == repr(plan)
    np.testing.assert_array_equal(copy.values, plan.values)
    assert not copy.share.flags.writeable
    assert rmab.solvers.soften(problem, reward, 20, warm=copy).passes == 1


def test_what_is_given_is_not_changed_and_answers_are_read_only() -> None:
    case = some_case(5)
    copies = [one.copy() for one in (case.kernels, case.reward, case.start, case.budget)]
    first = case.solve()
    curvature = first.curvature.copy()
    replace(case, reward=case.reward + 0.1).solve(warm=first)
    for one, copy in zip((case.kernels, case.reward, case.start, case.budget), copies, strict=True):
        np.testing.assert_array_equal(one, copy)
    np.testing.assert_array_equal(first.curvature, curvature)
    for array in (first.share, first.prices, first.use, first.curvature, first.values, first.mass):
        assert not array.flags.writeable


def test_prices_that_no_reward_could_pay_are_a_start_like_any_other() -> None:
    """A rolling plan may carry prices over to states from which hardly anything can be earned; their ratio overflows."""
    kernels = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]]]])
    reward, start = 1e-190 * np.array([[[0.0, 0.0], [1.0, 1.0]]]), np.array([[3.0, 0.0]])
    cold = soften_blocks(kernels, reward, start, np.ones(4), 3e190)
    warm = soften_blocks(kernels, reward, start, np.ones(4), 3e190, warm=np.full(4, 1e150))
    assert warm.value == pytest.approx(cold.value, rel=1e-5)
