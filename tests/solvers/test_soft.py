"""The softened plans: rows that are best for value plus entropy, derivatives against differences, feasible answers."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from rmab.common.arrays import FloatArray
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.compiled.optimism import best_values
from rmab.solvers.fluid.path import SoftPath, solve_regularised
from rmab.solvers.transitions import TransitionSets

pytestmark = pytest.mark.compiled

BUDGET = np.array([1.2, 0.0, 0.7, 50.0, 1.5, 2.0])  # one step idle, one with more than there is


class Case(NamedTuple):
    """Boxes low..high, reward, start masses."""

    low: FloatArray
    high: FloatArray
    reward: FloatArray
    start: FloatArray

    def path(self, budget: FloatArray = BUDGET) -> SoftPath:
        return SoftPath(
            TransitionSets(self.low, self.high), self.reward, self.start, budget, np.zeros(budget.size, dtype=np.int64)
        )


def some_boxes(width: float, seed: int = 0, arms: int = 3, states: int = 4) -> Case:
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    kernel[0, 0, 0] = [0.5, 0.5, 0, 0]  # zeros, and a row that is known
    low, high = np.maximum(kernel - width, 0), np.minimum(kernel + width, 1) * (kernel > 0)
    low[-1, 2], high[-1, 2] = kernel[-1, 2], kernel[-1, 2]
    start = np.zeros((arms, states))
    start[:, 0] = rng.random(arms) + 0.5
    return Case(low, high, rng.normal(size=(arms, states, 2)), start)


def point(path: SoftPath, seed: int = 1) -> FloatArray:
    return np.random.default_rng(seed).normal(1.0, 1.0, size=path.budget.size)


@pytest.mark.parametrize("width", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("eta", [0.3, 4.0])
def test_gradient_and_hessian_against_differences(width: float, eta: float) -> None:
    path = some_boxes(width).path()
    prices, step = point(path), 1e-5
    _, gradient = path.evaluate(eta, prices)
    hessian, mixed = path.curvature(prices)
    for place, h in enumerate(path.open):
        moved = [prices + sign * step * np.eye(prices.size)[h] for sign in (1, -1)]
        (more, up), (less, down) = (path.evaluate(eta, where) for where in moved)
        assert (more - less) / (2 * step) == pytest.approx(gradient[place], abs=1e-8)
        np.testing.assert_allclose((up - down) / (2 * step), hessian[place], atol=1e-8)
    slopes = [path.evaluate(eta + sign * step, prices)[1] for sign in (1, -1)]
    np.testing.assert_allclose((slopes[0] - slopes[1]) / (2 * step), mixed, atol=1e-7)


@pytest.mark.parametrize("eta", [0.5, 30.0])
def test_a_chosen_row_is_best_for_value_plus_entropy(eta: float) -> None:
    boxes = some_boxes(0.2, arms=1)
    path = boxes.path(np.array([0.4, 0.4]))
    path.evaluate(eta, np.array([0.3, 0.2]))
    values = path.values[0, 1]
    for s, a in np.ndindex(4, 2):
        low, high = boxes.low[0, s, a], boxes.high[0, s, a]
        free = high > low

        def worth(p: FloatArray, low: FloatArray = low, high: FloatArray = high, free: FloatArray = free) -> float:
            room = (high - low)[free]
            part = np.clip((p - low)[free] / room, 1e-300, 1 - 1e-16)
            return float(p @ values - room @ (part * np.log(part) + (1 - part) * np.log1p(-part)))

        chosen = path.kernels[0, s, a]
        assert chosen.sum() == pytest.approx(1, abs=1e-14)
        assert ((chosen >= low) & (chosen <= high)).all()
        whole = LinearConstraint(np.ones(4), 1, 1)
        other = minimize(lambda p: -worth(p), chosen, bounds=list(zip(low, high, strict=True)), constraints=whole)
        assert worth(other.x / other.x.sum()) <= worth(chosen) + 1e-9


@pytest.mark.parametrize("eta", [1.0, 1e3, 1e9])
def test_rows_sum_to_one_at_any_temperature_and_tend_to_the_greedy_value(eta: float) -> None:
    path = some_boxes(0.3, seed=3).path()
    prices = np.abs(point(path)) * eta
    path.evaluate(eta, prices)
    np.testing.assert_allclose(path.kernels.sum(axis=3), 1, atol=1e-13)
    hard, idle = np.empty_like(path.values), path.idle
    best_values(path.rows, path.unit_reward, path.phase_of, idle, prices / eta, hard)
    above = path.values / eta - hard
    assert (above >= -1e-9).all()
    assert above.max() <= 6 * (np.log(2) + 4) / eta + 1e-9


@pytest.mark.parametrize("width", [0.0, 0.2])
def test_the_certified_gap_is_that_of_the_answer(width: float) -> None:
    boxes = some_boxes(width, seed=5)
    path = boxes.path()
    path.solve(1e-6)
    values = np.zeros(boxes.start.shape)
    for h in range(BUDGET.size - 1, -1, -1):  # plain backward induction, each row greedy in its box
        order = np.argsort(-values, axis=1)
        mean = np.empty((*boxes.start.shape, 2))
        for n, s, a in np.ndindex(mean.shape):
            p = boxes.low[n, s, a].copy()
            for y in order[n]:
                p[y] += min(boxes.high[n, s, a, y] - p[y], 1 - p.sum())
            mean[n, s, a] = boxes.reward[n, s, a] + p @ values[n] - a * path.prices[h]
        values = mean.max(axis=2)
    assert path.bound == pytest.approx((boxes.start * values).sum() + BUDGET @ path.prices, rel=1e-12)
    share = np.divide(
        path.occupancy[..., 1],
        path.occupancy.sum(axis=3),
        out=np.zeros(path.share.shape),
        where=path.occupancy.sum(axis=3) > 0,
    )
    again = np.empty_like(path.occupancy)
    forward(path.kernels, path.kernel_of, boxes.start, np.full(BUDGET.size, np.inf), share, again)
    np.testing.assert_allclose(again, path.occupancy, atol=1e-12)
    assert (again[..., 1].sum(axis=(0, 2)) <= BUDGET + 1e-12).all()
    assert path.value == pytest.approx((again * boxes.reward[:, None]).sum(), rel=1e-12)
    assert -1e-12 <= path.gap <= 1e-6


def test_the_price_of_an_idle_step_is_the_least_that_keeps_everybody_passive() -> None:
    boxes, budget = some_boxes(0.0), np.zeros(3)
    path = boxes.path(budget)
    path.solve(1e-6)
    assert path.gap == pytest.approx(0, abs=1e-12)
    assert (path.occupancy[..., 1] == 0).all()
    assert path.prices[2] == pytest.approx(max(0, (boxes.reward[..., 1] - boxes.reward[..., 0]).max()))


def test_a_semidefinite_system_is_solved_where_it_can_be() -> None:
    matrix = np.diag([4.0, 0.0, 1e-9])
    (answer,) = solve_regularised(matrix, np.full(3, 1e-12), np.array([8.0, 0.0, 1e-9]))
    np.testing.assert_allclose(answer, [2, 0, 1], rtol=2e-3)
