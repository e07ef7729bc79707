"""Softened plans: against CVXPY, finite differences and closed forms; feasible, and worth what they say."""

import numpy as np
import pytest
from scipy.special import expit

import rmab
from rmab.errors import ModelError, SolverError
from rmab.solvers.priced.blocks import soften_blocks
from rmab.solvers.priced.compiled.curvature import curve
from rmab.solvers.priced.compiled.steps import soften as soften_nodes
from rmab.solvers.priced.program import make_program
from rmab.solvers.priced.search import Search
from softened import Case, clarabel, earned, some_case
from strategies import random_problem

pytestmark = pytest.mark.compiled


def search_of(case: Case) -> Search:
    of = np.arange(len(case.kernels))
    program = make_program(case.kernels, of, case.reward, case.start, case.budget, case.phase_of)
    return Search(program, len(case.start), case.budget)


@pytest.mark.parametrize("seed", range(12))
def test_equals_an_independent_solver(seed: int) -> None:
    case = some_case(seed)
    plan, other = case.solve(tolerance=1e-9), clarabel(case)
    assert plan.value == pytest.approx(other.value, abs=1e-6 * max(abs(other.value), 1))
    assert plan.bound >= other.value - 1e-6 * max(abs(other.value), 1)
    total = other.mass.sum(axis=3)
    visited = total > 1e-3
    np.testing.assert_allclose(plan.share[visited], (other.mass[..., 1] / np.maximum(total, 1e-300))[visited], atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_prices_where_they_are_unique(seed: int) -> None:
    case = some_case(100 + seed, beta=2.0, plain=True)  # every step is open: mass could go either way, and prices are unique
    np.testing.assert_allclose(case.solve(tolerance=1e-9).prices, clarabel(case).prices, atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_value_use_and_gap_are_what_they_say(seed: int) -> None:
    case = some_case(seed, beta=10.0 ** (seed % 10 - 3), most=5)
    plan = case.solve()
    value, use = earned(case, plan.share)
    np.testing.assert_allclose(plan.use, use, atol=1e-9)
    assert (use <= case.budget * (1 + 1e-9)).all()
    assert value == pytest.approx(plan.value, abs=2e-6 * max(abs(value), 1))
    assert plan.value <= plan.bound
    assert 0 <= plan.gap <= 1e-6
    assert (plan.prices >= 0).all()


def test_shares_and_values_follow_the_formulas() -> None:
    case = some_case(3, beta=4.0)
    plan = case.solve()
    ahead = np.zeros((len(case.start), case.start.shape[1]))
    for h in range(case.budget.size - 1, -1, -1):
        rho = case.uniform[h]
        cells = [case.cell(c, h) for c in range(len(case.start))]
        worth = case.reward[cells] + np.einsum("csay,cy->csa", case.kernels[cells], ahead)
        worth[..., 1] -= plan.prices[h]
        spread = np.log((1 - rho) * np.exp(4.0 * worth[..., 0]) + rho * np.exp(4.0 * worth[..., 1]))
        share = rho * np.exp(4.0 * worth[..., 1] - spread)
        np.testing.assert_allclose(plan.share[:, h], share, atol=1e-12)
        ahead = spread / 4.0
        np.testing.assert_allclose(plan.values[:, h], ahead, atol=1e-11)
    assert float((case.start * ahead).sum() + case.budget @ plan.prices) == pytest.approx(plan.bound, rel=1e-12)


def test_states_that_nobody_can_come_to_are_planned_for_as_all_others() -> None:
    """Backward induction at the prices of the answer says what is done in every state."""
    kernels = np.zeros((4, 3, 2, 3))
    kernels[:, 0, :, 0] = kernels[:, 1, 0, 2] = kernels[:, 2, 0, 1] = kernels[:, 1, 1, 1] = kernels[:, 2, 1, 0] = 1.0
    reward = np.random.default_rng(0).normal(size=(4, 3, 2))
    reward[0, 2, 1], reward[1, 2, 1] = 1e140, -1e140  # nobody gets these
    plan = rmab.solvers.soften(rmab.Problem(rmab.Arms(kernels), 0, [1, 2, 0, 3], 4), reward, beta=2)
    ahead = np.zeros((4, 3))
    for h in range(3, -1, -1):
        worth = reward + np.einsum("nsay,ny->nsa", kernels, ahead) - [0, plan.prices[h]]
        rate = [1, 2, 0, 3][h] / 4
        share = rate / (rate + (1 - rate) * np.exp(np.clip(2 * (worth[..., 0] - worth[..., 1]), -700, 700)))
        np.testing.assert_allclose(plan.shares[:, h], share, atol=1e-9)
        ahead = (np.logaddexp(np.log(1 - rate) + 2 * worth[..., 0], np.log(max(rate, 1e-300)) + 2 * worth[..., 1])) / 2
        ahead = worth[..., 0] if rate == 0 else ahead
        np.testing.assert_allclose(plan.values[plan.blocks.block_of, h][2:], ahead[2:], atol=1e-9)
    assert 0 <= plan.gap <= 1e-6


@pytest.mark.parametrize("eta", [0.3, 4.0, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_gradient_and_curvature_against_differences(seed: int, eta: float) -> None:
    case = some_case(seed + 50, plain=True, most=5)
    search, horizon, blocks = search_of(case), case.budget.size, len(case.start)
    prices, step = eta * np.random.default_rng(seed).uniform(0, 1, horizon), 1e-5
    use = search.at(eta, prices).use
    hessian = np.empty((horizon, horizon))
    curve(search.program, np.arange(blocks), np.ones(blocks), 0.0, 0.0, search.plans.share, hessian, np.empty(horizon))
    exact = (np.triu(hessian) + np.triu(hessian, 1).T)[::-1, ::-1]
    for h in range(horizon):
        more, less = (search.at(eta, prices + sign * step * np.eye(horizon)[h]) for sign in (1, -1))
        assert (more.value - less.value) / (2 * step) == pytest.approx(-use[h], abs=1e-7)
        np.testing.assert_allclose((less.use - more.use) / (2 * step), exact[h], atol=1e-7)
    search.at(eta, prices)
    np.testing.assert_allclose(search.exact(search.at(eta, prices)), exact, atol=0.02 * np.abs(exact).max())


def test_a_sample_of_blocks_stands_for_all() -> None:
    rng = np.random.default_rng(0)
    blocks, horizon = 3000, 8
    kernels = rng.dirichlet(np.ones(3), size=(blocks, 3, 2))
    start = np.eye(3)[rng.integers(0, 3, blocks)] * rng.choice([1.0, 1.0, 50.0], size=(blocks, 1))
    budget = np.full(horizon, 0.3 * start.sum())
    case = Case(kernels, rng.random((blocks, 3, 2)), start, budget, np.zeros(horizon, np.int64), 1.0)
    search = search_of(case)
    point = search.at(20.0, np.full(horizon, 12.0))
    chosen, weight = search.sampled()
    assert chosen.size <= 600
    sampled = search.exact(point)
    search.sampled = lambda: (np.arange(blocks), np.ones(blocks))  # type: ignore[method-assign]
    whole = search.exact(point)
    np.testing.assert_allclose(np.diag(sampled), np.diag(whole), rtol=0.05)
    np.testing.assert_allclose(sampled, whole, atol=0.05 * whole.max())
    assert (weight > 0).all()


def test_vectorised_functions_have_all_digits() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(-600, 600, 10_001), rng.normal(0, 1, 1000), 10.0 ** rng.uniform(-12, 2, 1000), [0.0]])
    for uniform in (1e-9, 0.3, 0.5, 0.99):
        share, soft = np.empty(x.size), np.empty(x.size)
        soften_nodes(x, uniform, np.empty((2, x.size)), share, soft)
        odds = np.log(uniform / (1 - uniform))
        np.testing.assert_allclose(share, expit(x + odds), rtol=1e-13)
        small = np.abs(x) < 0.5
        np.testing.assert_allclose(soft[small], np.log1p(uniform * np.expm1(x[small])), rtol=1e-11, atol=1e-25)
        far = np.logaddexp(np.log1p(-uniform), np.log(uniform) + x)
        np.testing.assert_allclose(soft[~small], far[~small], rtol=1e-12, atol=2e-16)


def test_one_step_in_closed_form() -> None:
    """Two arms with advantages 1 and 0, one activation: by symmetry the price is 1/2."""
    problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1))), 0, 1, 1)
    plan = rmab.solvers.soften(problem, [[[0, 1]], [[0, 0]]], beta=3, tolerance=1e-10)
    assert plan.prices[0] == pytest.approx(0.5, abs=1e-8)
    np.testing.assert_allclose(plan.share[:, 0, 0], expit([1.5, -1.5]), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_becomes_the_fluid_plan_as_beta_grows(seed: int) -> None:
    problem, reward = random_problem(seed, 5, 3, 6, 2)
    best, last = rmab.solvers.solve_fluid(problem, reward), -np.inf
    for beta in (1.0, 10.0, 1e3, 1e6):
        plan = rmab.solvers.soften(problem, reward, beta)
        assert last - 1e-5 <= plan.value <= best.bound + 1e-5
        last = plan.value
    assert last == pytest.approx(best.value, rel=1e-4)
    assert (plan.occupancy * reward[:, np.newaxis]).sum() == pytest.approx(best.value, rel=1e-4)


def test_becomes_uniform_as_beta_vanishes() -> None:
    problem, reward = random_problem(1, 5, 3, 6, 2)
    plan = rmab.solvers.soften(problem, reward, 1e-3)
    np.testing.assert_allclose(plan.share, 0.4, atol=2e-3)


@pytest.mark.parametrize("beta", [1e-6, 1e-12, 1e-16, 1e-30, 1e-190])
def test_prices_have_a_limit_as_beta_vanishes(beta: float) -> None:
    """It is what one more activation of the uniform policy is worth: the mean advantage at that step."""
    for seed in range(12):
        problem, reward = random_problem(seed, 7, 3, 6, 2)
        paid = reward + np.array([0.0, 1.0])
        plan = rmab.solvers.soften(problem, paid, beta, tolerance=1e-12)
        uniform, mass = 2 / 7, problem.start_masses
        ahead, worth = np.zeros((7, 3)), []
        for _ in range(6):
            each = paid + np.einsum("nsay,ny->nsa", problem.arms.kernels, ahead)
            worth.append(each[..., 1] - each[..., 0])
            ahead = (1 - uniform) * each[..., 0] + uniform * each[..., 1]
        for h, gain in enumerate(reversed(worth)):
            assert plan.prices[h] == pytest.approx((mass * gain).sum() / 7, abs=3e-4)
            rows = (1 - uniform) * problem.arms.kernels[:, :, 0] + uniform * problem.arms.kernels[:, :, 1]
            mass = np.einsum("ns,nsy->ny", mass, rows)
        assert plan.value == pytest.approx((problem.start_masses * ahead).sum(), abs=1e-4)
        np.testing.assert_allclose(plan.use, 2, rtol=1e-9)


@pytest.mark.parametrize("seed", [6, 16, 26, 42, 59])
def test_rewards_that_differ_by_rounding_alone(seed: int) -> None:
    """0.1 + 0.2 is not 0.3: nothing is at stake, and the plan is uniform."""
    problem, _ = random_problem(seed, 11, 3, 8, 3)
    reward = np.where(np.random.default_rng(seed).random((11, 3, 2)) < 0.5, 0.3, 0.1 + 0.2)
    for beta in (1e-3, 1e-2, 1.0, 1e2, 1e3):
        plan = rmab.solvers.soften(problem, reward, beta)
        np.testing.assert_allclose(plan.share, 3 / 11, rtol=1e-9)
        assert plan.value == pytest.approx(0.3 * 8 * 11, rel=1e-14)


def test_occupancy_and_mass_are_flows() -> None:
    arms = rmab.Arms.identical(np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2)), 6)
    problem = rmab.Problem(arms, [0, 0, 1, 1, 2, 2], [2, 0, 6, 1], 4)
    plan = rmab.solvers.soften(problem, np.broadcast_to(np.random.default_rng(1).normal(size=(3, 2)), (6, 3, 2)), beta=5)
    assert plan.share.shape == (1, 4, 3)
    assert plan.shares.shape == (6, 4, 3)
    flow = plan.occupancy
    assert flow.shape == (6, 4, 3, 2)
    np.testing.assert_allclose(flow[:, 0].sum(axis=2), problem.start_masses)
    np.testing.assert_allclose(flow[:, 1:].sum(axis=3), np.einsum("nhsa,nsay->nhy", flow[:, :-1], arms.kernels), atol=1e-12)
    np.testing.assert_allclose(flow[..., 1].sum(axis=(0, 2)), plan.use, atol=1e-12)
    np.testing.assert_allclose(plan.mass.sum(axis=0), flow.sum(axis=0), atol=1e-12)
    assert plan.use[1] == 0
    assert (plan.prices[1:3] == 0).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"beta": 0}, "beta must be a positive number, got 0"),
        ({"beta": float("nan")}, "beta must be a positive number"),
        ({"beta": "hot"}, "beta must be a positive number, got 'hot'"),
        ({"beta": 1e12}, "is too steep to compute with; the limit is 1e"),
        ({"beta": 1e-300}, "is too flat to compute with; the limit is 1e-200"),
        ({"tolerance": 0}, "tolerance must be a positive number"),
        ({"warm": [0.1]}, "warm must be an earlier plan, or prices"),
        ({"warm": [0.1, -1, 0]}, "warm: prices must be 0 or more"),
        ({"warm": [0.1, np.inf, 0]}, "warm: prices must be 0 or more"),
        ({"warm": "last"}, "warm: not an array of numbers"),
        ({"reward": np.zeros((3, 2))}, "reward must have shape"),
        ({"problem": rmab.make_task}, "soften needs a problem and a reward, got function"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict[str, object], words: str) -> None:
    problem, reward = random_problem(0, 3, 2, 3, 1)
    right = {"problem": problem, "reward": reward, "beta": 1.0}
    with pytest.raises(ModelError, match=words.replace("(", r"\(")) as error:
        rmab.solvers.soften(**{**right, **wrong})
    assert "\n" not in str(error.value)


def test_wrong_shapes_of_blocks_are_named() -> None:
    kernels, start, budget = np.full((2, 2, 2, 2), 0.5), np.ones((2, 2)), np.ones(3)
    with pytest.raises(ModelError, match="reward must have shape"):
        soften_blocks(kernels, np.zeros((2, 2)), start, budget, 1.0)
    with pytest.raises(ModelError, match="shapes do not fit"):
        soften_blocks(kernels, np.zeros((2, 2, 2)), np.ones((3, 2)), budget, 1.0)
    with pytest.raises(ModelError, match=r"phase_of must be whole numbers in 0..0"):
        soften_blocks(kernels, np.zeros((2, 2, 2)), start, budget, 1.0, phase_of=np.array([0, 1, 2]))


def test_a_gap_that_cannot_be_had_is_an_error() -> None:
    problem, reward = random_problem(0, 4, 3, 5, 2)
    with pytest.raises(SolverError, match=r"priced step: .*, not proven to the tolerance 1\.00e-15") as error:
        rmab.solvers.soften(problem, reward, 1e6, tolerance=1e-15)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", [[-1], [1], [2**62], [0.0], [0.5]])
def test_indices_of_blocks_are_checked_before_compiled_code_uses_them(wrong) -> None:
    kernels, start, budget = np.full((1, 2, 2, 2), 0.5), np.ones((1, 2)), np.ones(3)
    for given in ({"kernel_of": np.array(wrong)}, {"phase_of": np.array(wrong * 3)}):
        with pytest.raises(ModelError, match=f"^soften_blocks: {next(iter(given))} must be whole numbers in 0..0, got"):
            soften_blocks(kernels, np.zeros((1, 2, 2)), start, budget, 1.0, **given)


def worthless_end(scale: float) -> tuple[rmab.Problem, np.ndarray]:
    """Return four arms that pay in state 0 until they end in state 1, where nothing is at stake."""
    kernel = [[[0.5, 0.5], [0.9, 0.1]], [[0.0, 1.0], [0.0, 1.0]]]
    return rmab.Problem(rmab.Arms.identical(kernel, 4), 0, 2, 6), np.broadcast_to([[scale] * 2, [0.0] * 2], (4, 2, 2))


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12])
def test_rolling_plans_where_nothing_is_at_stake_any_more(scale: float) -> None:
    problem, reward = worthless_end(scale)
    policy = rmab.planners.Rolling(problem, reward)
    assert policy.act(3, np.ones(4, dtype=int), np.random.default_rng(0)).sum() == 2
    earned = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 20).rewards / scale
    reference = rmab.simulate_many(*_with_unit(problem), np.random.default_rng(0), 20).rewards
    np.testing.assert_allclose(earned, reference)


def _with_unit(problem: rmab.Problem) -> tuple[rmab.Problem, rmab.Policy, np.ndarray]:
    reward = worthless_end(1.0)[1]
    return problem, rmab.planners.Rolling(problem, reward), reward


def test_the_limits_of_beta_are_those_of_the_whole_problem_not_of_the_states_at_hand() -> None:
    problem, _ = worthless_end(1.0)
    late = rmab.Problem(problem.arms, 1, 2, 6)
    reward = np.broadcast_to([[1.0, 1.0], [0.0, 1e-150]], (4, 2, 2))
    plan = rmab.solvers.soften(late, reward, beta=1e-200)
    np.testing.assert_allclose(plan.value, 6 * 2 * 1e-150)
    np.testing.assert_allclose(plan.share[0, :, 1], 0.5)
    with pytest.raises(ModelError, match="too flat to compute with; the limit is 1e-200"):
        rmab.solvers.soften(late, reward, beta=1e-201)
