"""Planning along the softened dual, with kernels known or chosen within boxes, against programmes solved as a whole."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, SolverError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.solvers.fluid import path as newton
from rmab.solvers.fluid.optimistic import solve_optimistic_fluid
from strategies import problems, random_problem, rewards


def extended_lp(
    low: FloatArray, high: FloatArray, reward: FloatArray, start: FloatArray, budget: FloatArray, weights: FloatArray
) -> float:
    """Solve the extended LP in z[n,h,s,a,y] as a whole: flow, start, budget, and z within the box times its row's sum."""
    arms, states = low.shape[:2]
    horizon = len(budget)
    shape = (arms, horizon, states, 2, states)
    number = np.arange(np.prod(shape)).reshape(shape)
    equal, target, less, limit = [], [], [], []
    for n, h, s in np.ndindex(arms, horizon, states):
        row = np.zeros(number.size)
        row[number[n, h, s].ravel()] = 1.0
        if h > 0:
            row[number[n, h - 1, :, :, s].ravel()] -= 1.0
        equal.append(row)
        target.append(float(h == 0 and s == start[n]))
        for a, y in np.ndindex(2, states):
            for bound, sign in ((high, 1.0), (low, -1.0)):
                row = np.zeros(number.size)
                row[number[n, h, s, a]] = -sign * bound[n, s, a, y]
                row[number[n, h, s, a, y]] += sign
                less.append(row)
                limit.append(0.0)
    for h in range(horizon):
        row = np.zeros(number.size)
        for n in range(arms):
            row[number[n, h, :, 1].ravel()] = weights[n]
        less.append(row)
        limit.append(budget[h])
    gain = np.broadcast_to((weights[:, None, None] * reward)[:, None, :, :, None], shape).ravel()
    answer = linprog(-gain, A_ub=np.array(less), b_ub=limit, A_eq=np.array(equal), b_eq=target)
    assert answer.status == 0
    return float(-answer.fun)


def boxes(seed: int, arms: int, states: int, width: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    low = np.maximum(kernel - width * rng.random(kernel.shape), 0)
    high = np.minimum(kernel + width * rng.random(kernel.shape), 1)
    return low, high, rng.normal(size=(arms, states, 2)), rng.integers(states, size=arms)


@given(st.data())
@settings(max_examples=40)
def test_the_path_and_the_whole_programme_agree(data: st.DataObject) -> None:
    problem = data.draw(problems())
    reward = data.draw(rewards(problem))
    whole, parts = (
        rmab.solvers.solve_fluid(problem, reward, method="highs"),
        rmab.solvers.solve_fluid(problem, reward, method="newton"),
    )
    scale = max(abs(whole.bound), np.abs(reward).max(), 1e-12)
    assert abs(whole.value - parts.value) <= 2e-6 * scale
    assert parts.value - 1e-9 <= whole.bound
    assert whole.value <= parts.bound + 1e-9 * max(scale, 1)
    assert (parts.prices >= 0).all()


@pytest.mark.parametrize("width", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimistic_value_equals_the_extended_programme(seed: int, width: float) -> None:
    low, high, reward, start = boxes(seed, 2, 3, width)
    budget, weights = np.array([1.0, 0.5, 0.0, 2.0]), np.array([1.0, 2.5])
    answer = rmab.solvers.solve_optimistic_fluid(low, high, reward, start, budget, 4, weights)
    assert answer.value == pytest.approx(extended_lp(low, high, reward, start, budget, weights), rel=2e-6, abs=2e-6)
    assert answer.gap <= 1e-6


@pytest.mark.parametrize("width", [0.0, 0.3, 1.0])
def test_optimistic_answer_is_feasible(width: float) -> None:
    low, high, reward, start = boxes(7, 4, 3, width)
    weights = np.array([1.0, 3.0, 1.0, 2.0])
    answer = rmab.solvers.solve_optimistic_fluid(low, high, reward, start, 1.5, 6, weights)
    assert (answer.kernel >= low[:, None] - 1e-9).all()
    assert (answer.kernel <= high[:, None] + 1e-9).all()
    np.testing.assert_allclose(answer.kernel.sum(axis=4), 1, atol=1e-9)
    inflow = np.einsum("nhsa,nhsay->nhy", answer.mass, answer.kernel)[:, :-1]
    np.testing.assert_allclose(answer.mass.sum(axis=3)[:, 1:], inflow, atol=1e-12)
    np.testing.assert_allclose(answer.mass.sum(axis=3)[:, 0], np.eye(3)[start], atol=1e-12)
    assert (weights @ answer.mass[..., 1].sum(axis=2) <= 1.5 + 1e-12).all()
    earned = (weights[:, None, None, None] * answer.mass * reward[:, None]).sum()
    assert earned == pytest.approx(answer.value, rel=1e-12)
    assert answer.value <= answer.bound + 1e-12


def test_wider_boxes_promise_more_and_points_promise_the_truth() -> None:
    problem, reward = random_problem(5, count=4, states=3, horizon=5, budget=2)
    kernel = problem.arms.kernels
    promised = [
        rmab.solvers.solve_optimistic_fluid(
            np.maximum(kernel - w, 0), np.minimum(kernel + w, 1), reward, problem.start, 2, 5
        ).value
        for w in (0.0, 0.1, 0.3, 1.0)
    ]
    assert promised[0] == pytest.approx(rmab.solvers.solve_fluid(problem, reward).value, rel=2e-6)
    assert promised == sorted(promised)
    assert promised[-1] > promised[0]


def test_weights_stand_for_copies() -> None:
    low, high, reward, start = boxes(3, 2, 2, 0.2)
    once = rmab.solvers.solve_optimistic_fluid(low, high, reward, start, 2, 4, [3, 1])
    copies = [0, 0, 0, 1]
    apart = rmab.solvers.solve_optimistic_fluid(low[copies], high[copies], reward[copies], start[copies], 2, 4)
    assert once.value == pytest.approx(apart.value, rel=2e-6)


def test_auto_follows_the_path_but_for_small_programmes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, reward = random_problem(6, count=3, states=3, horizon=4, budget=1)
    calls: list[str] = []
    solve = newton.SoftPath.solve

    def noted(*arguments: object) -> None:
        calls.append("path")
        solve(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(newton.SoftPath, "solve", noted)
    variables = 3 * 3 * 2 * 4
    monkeypatch.setattr("rmab.solvers.fluid.fluid.SMALL", variables)
    rmab.solvers.solve_fluid(problem, reward)
    assert calls == []
    monkeypatch.setattr("rmab.solvers.fluid.fluid.SMALL", variables - 1)
    rmab.solvers.solve_fluid(problem, reward)
    assert calls == ["path"]


@pytest.mark.parametrize(("limit", "value"), [("LAST", 0), ("FIRST", 0), ("SHORTEST", 10), ("ITERATIONS", 5)])
def test_a_gap_that_stays_open_is_an_error(monkeypatch: pytest.MonkeyPatch, limit: str, value: float) -> None:
    problem, reward = random_problem(6, count=5, states=3, horizon=6, budget=1)
    monkeypatch.setattr(newton, limit, value)
    with pytest.raises(SolverError, match="the path of softened plans was lost; the smallest gap was"):
        rmab.solvers.solve_fluid(problem, reward, method="newton")


@pytest.mark.parametrize("factor", [1e-9, 1e7])
def test_rewards_of_any_size(factor: float) -> None:
    problem, reward = random_problem(8, count=5, states=3, horizon=6, budget=2)
    plain = rmab.solvers.solve_fluid(problem, reward, method="newton").value
    assert rmab.solvers.solve_fluid(problem, factor * reward, method="newton").value == pytest.approx(
        factor * plain, rel=2e-6
    )


def test_nothing_to_earn() -> None:
    problem = Problem(Arms(np.ones((2, 1, 2, 1))), 0, 1, 3)
    assert rmab.solvers.solve_fluid(problem, np.zeros((2, 1, 2)), method="newton").value == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": np.zeros((2, 2))}, r"reward must be finite and have shape \(N, S, 2\)"),
        ({"reward": np.full((1, 2, 2), np.nan)}, "reward must be finite"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"budget": [1, -1]}, "budget: step 1 must be finite and 0 or more, got -1"),
        ({"start": [2]}, r"start\[0\] must be in 0\.\.1"),
        ({"weights": [0]}, "weights must be 1 positive numbers"),
        ({"lower": np.full((1, 2, 2, 2), 0.6)}, "not an interval within|no distribution lies between"),
        ({"upper": np.full((1, 2, 2, 2), 0.2)}, "not an interval within|no distribution lies between"),
        ({"upper": np.full((1, 2, 2, 3), 0.2)}, "lower and upper must both have shape"),
    ],
)
def test_wrong_input_is_refused(change: dict[str, object], message: str) -> None:
    half = np.full((1, 2, 2, 2), 0.5)
    plain = {"lower": half, "upper": half, "reward": np.zeros((1, 2, 2)), "start": [0], "budget": 1, "horizon": 2}
    with pytest.raises(ModelError, match=message):
        rmab.solvers.solve_optimistic_fluid(**{**plain, **change})  # type: ignore[arg-type]


def test_an_unknown_method_is_refused() -> None:
    problem, reward = random_problem(6, count=2, states=2, horizon=2, budget=1)
    with pytest.raises(ModelError, match="method must be one of auto, highs, newton, got 'magic'"):
        rmab.solvers.solve_fluid(problem, reward, method="magic")  # type: ignore[arg-type]


def test_a_budget_that_is_worth_nothing_needs_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rewards alike, anything possible: every plan is optimal, and the answer is there without a step of Newton's."""
    monkeypatch.setattr(newton, "ITERATIONS", -1)
    anything = np.zeros((1, 4, 2, 4)), np.ones((1, 4, 2, 4))
    plan = solve_optimistic_fluid(*anything, np.ones((1, 4, 2)), [0], 3.0, 5, [9.0])
    assert plan.value == pytest.approx(45.0, rel=1e-12)
    assert (plan.prices == 0).all()
    np.testing.assert_allclose(plan.mass[..., 1].sum(axis=2), 1 / 3, rtol=1e-9)  # it is spent all the same
    with pytest.raises(SolverError, match="the path of softened plans was lost"):
        solve_optimistic_fluid(*anything, np.ones((1, 4, 2)) * [0.0, 1.0], [0], 3.0, 5, [9.0])


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_of_zero_is_no_harder_than_any_other(seed: int) -> None:
    """With a gap relative to the bound, rewards that sum to about 0 asked for more digits than there are."""
    problem, reward = random_problem(seed, count=28, states=4, horizon=36, budget=1)
    plain = rmab.solvers.solve_fluid(problem, reward, method="newton", tolerance=1e-7)
    level = rmab.solvers.solve_fluid(problem, reward - plain.bound / (28 * 36), method="newton", tolerance=1e-7)
    assert abs(level.bound) <= 1e-6 * plain.bound
    np.testing.assert_allclose(level.prices, plain.prices, atol=1e-4)
