"""The compiled dual against its twin in NumPy, its gradient and its Newton step against finite differences.

The only tests that reach into the solver: they hold its state at a point of their choice.
"""

from collections.abc import Callable

import numpy as np
import pytest

from instances import Instance, alike_instance, random_instance, timed_instance
from reference import projection_dual
from rmab.common.arrays import BoolArray, FloatArray
from rmab.solvers.projection import compact
from rmab.solvers.projection.dual_newton import DualNewton
from rmab.solvers.projection.newton import new_solve

pytestmark = pytest.mark.compiled

STEP = 1e-6


def few_successors(seed: int, shape: tuple[int, int, int], **options: object) -> Instance:
    """Most states have one to three successors; all may follow the first one."""
    few, all_of_them = (random_instance(seed, shape, support=support, **options) for support in (0.04, 1.0))
    first = np.arange(shape[2])[:, None, None] == 0
    low = np.where(first, all_of_them.low, few.low)
    high = None if few.high is None else np.where(first, all_of_them.high, few.high)
    return few.but(low=low, high=high, reference=np.where(first, all_of_them.reference, few.reference), start=[0] * shape[0])


KINDS = {
    "box": random_instance(0, (2, 4, 3), weights=[1.0, 2.5]),
    "wide box": random_instance(1, (2, 4, 3), width=0.8),
    "known": random_instance(2, (2, 4, 3), width=0.0),
    "everything": random_instance(3, (2, 4, 3)).but(low=np.zeros((2, 3, 2, 3)), high=np.ones((2, 3, 2, 3))),
    "zeros": random_instance(4, (2, 4, 4), support=0.5, weights=[1.0, 2.5]),
    "zeros, wide": random_instance(5, (2, 4, 4), support=0.5, width=0.8),
    "idle steps": random_instance(6, (2, 4, 3), budget=[0.3, 0.0, 0.5, 0.0]),
    "one state": random_instance(7, (2, 4, 1)),
    "one step": random_instance(8, (3, 1, 3)),
    "many states": random_instance(9, (1, 3, 14), width=0.1),
    "many states, zeros": random_instance(10, (1, 3, 14), width=0.2, support=0.5),
    "many states, known": random_instance(28, (1, 3, 14), width=0.0),
    "many states, alike": alike_instance(29, (1, 3, 14), weights=[2.5]),
    "many states, alike, idle": alike_instance(30, (2, 4, 17), own=2, budget=[0.3, 0.0, 0.5, 0.1]),
    "ball": random_instance(11, (2, 4, 3), radius=0.3, weights=[1.0, 2.5]),
    "small ball": random_instance(12, (2, 4, 3), radius=0.01),
    "ball of radius 0": random_instance(13, (2, 4, 3), radius=0.0),
    "ball of everything": random_instance(14, (2, 4, 3), radius=2.5),
    "ball with zeros": random_instance(15, (2, 4, 4), radius=0.3, support=0.5),
    "ball, many states": random_instance(16, (1, 3, 14), radius=0.3),
    "few successors": few_successors(17, (1, 4, 17), width=0.1, weights=[2.5]),
    "few successors, wide, idle": few_successors(18, (1, 4, 16), width=0.8, budget=[0.3, 0.0, 50.0, 0.1]),
    "few successors, two arms": few_successors(19, (2, 3, 14), weights=[1.0, 2.5]),
    "few successors, ball": few_successors(20, (1, 3, 17), radius=0.2),
    "phases": timed_instance(21, (2, 4, 3), 2, weights=[1.0, 2.5]),
    "phases, zeros, idle": timed_instance(22, (2, 5, 4), 3, support=0.5, budget=[0.3, 0.0, 0.5, 0.0, 0.2]),
    "phases, ball": timed_instance(23, (2, 4, 3), 3, radius=0.3, weights=[1.0, 2.5]),
    "phases, many states": timed_instance(24, (1, 3, 14), 2, width=0.2, support=0.5),
    "phases, few successors": timed_instance(25, (1, 4, 20), 2, support=0.01, weights=[2.5]),
    "phases, few successors, two arms": timed_instance(26, (2, 3, 20), 2, support=0.01),
    "costs": random_instance(31, (2, 4, 3), weights=[1.0, 2.5]).but(cost=[0.4, 1.7]),
    "costs, long": random_instance(32, (2, 14, 2)).but(cost=[0.4, 1.7]),
    "costs, alike": alike_instance(33, (2, 3, 14)).but(cost=[0.4, 1.7]),
    "costs, few successors": few_successors(34, (2, 3, 14), weights=[1.0, 2.5]).but(cost=[0.4, 1.7]),
    "costs, ball": random_instance(35, (2, 3, 14), radius=0.3).but(cost=[0.4, 1.7]),
    "start by chance": random_instance(27, (2, 4, 3)).but(start=[[0.2, 0.8, 0.0], [0.3, 0.3, 0.4]]),
}


COMPACT = [name for name in KINDS if ("alike" in name or "few" in name) and "ball" not in name]


@pytest.fixture(params=[*((name, False) for name in KINDS), *((name, True) for name in COMPACT)], ids=str)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Solver":
    """The solver of an instance: on all numbers, or on compact rows and with exact Newton steps."""
    monkeypatch.setattr(compact, "accuracy", lambda _: 1e-11)
    name, on_compact_rows = request.param
    return Solver(KINDS[name], compact.CompactNewton if on_compact_rows else new_solve)


class Solver:
    """The solver's state, and a stacked dual point (potentials of nodes that can carry mass, prices that are free)."""

    def __init__(self, instance: Instance, kind: Callable[..., DualNewton] = new_solve) -> None:
        self.program, self.limit = instance.program, instance.limit
        reach = self.program.reach
        self.state = kind(self.program, reach / reach.sum(axis=2, keepdims=True))
        self.nodes: BoolArray = reach
        self.free: BoolArray = self.program.binds

    @property
    def potentials(self) -> FloatArray:
        """(N,H,S) of the solver's point."""
        return self.state.by_arm(self.state.v)[:, :-1]

    def random_point(self, seed: int) -> FloatArray:
        """Return a point near the one that the solver starts from, with every price positive."""
        rng = np.random.default_rng(seed)
        v = self.potentials + 0.3 * rng.normal(size=self.nodes.shape)
        return np.concatenate([v[self.nodes], 0.1 + rng.random(self.free.sum())])

    def split(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return potentials (N,H+1,S) and prices (H,)."""
        arms, horizon, states = self.nodes.shape
        v, prices = np.zeros((arms, horizon + 1, states)), np.zeros(horizon)
        v[:, :-1][self.nodes] = point[: self.nodes.sum()]
        prices[self.free] = point[self.nodes.sum() :]
        return v, prices

    def evaluate(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the dual function and its gradient, and leave the solver's state there."""
        v, prices = self.split(point)
        self.state.v, self.state.prices = self.state.from_arms(v), prices
        self.state.look()
        weighted = self.program.weights[:, None, None] * self.state.by_arm(self.state.gradient)
        return self.state.value, np.concatenate([weighted[self.nodes], (self.limit - self.state.used)[self.free]])

    def differences(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian by central differences of the value and of the gradient."""
        gradient, hessian = np.empty(point.size), np.empty((point.size, point.size))
        for i, shift in enumerate(STEP * np.eye(point.size)):
            (above, up), (below, down) = self.evaluate(point + shift), self.evaluate(point - shift)
            gradient[i], hessian[i] = (above - below) / (2 * STEP), (up - down) / (2 * STEP)
        return gradient, hessian


@pytest.mark.slow
def test_dual_is_that_of_its_twin(case: Solver) -> None:
    """At several points in a row, some twice: what is kept from one evaluation must not colour the next."""
    solver = case
    reach, idle = solver.nodes, solver.program.idle
    points = [solver.random_point(seed) for seed in range(3)]
    start = solver.random_point(0) * 1.0
    start[: reach.sum()] = solver.potentials[reach]
    far = points[2] + np.where(np.arange(points[2].size) < reach.sum(), 3.0 * np.sin(np.arange(points[2].size)), 0.0)
    for point in (points[0], points[1], points[0], far, points[2], start, start, far, points[1]):
        value, _ = solver.evaluate(point)
        v, prices = solver.split(point)
        slow = projection_dual(solver.program, solver.limit, v[:, :-1], prices)
        state = solver.state
        np.testing.assert_allclose(value, slow.value, rtol=1e-10)
        gradient, phi, mass = map(state.by_arm, (state.gradient, state.primal.phi, state.primal.mass))
        kernel = state.kernel()
        np.testing.assert_allclose(gradient, slow.gradient, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(state.used, slow.used, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.flow, np.abs(slow.gradient).max(), rtol=1e-9)
        live = np.stack([reach, reach & ~idle[:, None]], axis=3)
        np.testing.assert_allclose(kernel[live], slow.kernel[live], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(phi[live], slow.phi[live], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(mass[live], slow.mass[live], rtol=1e-9)


def test_gradient_is_the_slope_of_the_dual(case: Solver) -> None:
    solver = case
    point = solver.random_point(1)
    slopes, _ = solver.differences(point)
    _, gradient = solver.evaluate(point)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)
    assert np.abs(gradient).max() > 0.01


def test_newton_step_solves_the_system_of_the_hessian(case: Solver) -> None:
    solver = case
    point = solver.random_point(2)
    _, hessian = solver.differences(point)
    _, gradient = solver.evaluate(point)
    price_step, slope = solver.state.newton_step(own=True)
    potential_step = solver.state.by_arm(solver.state.step)[solver.nodes]
    step = np.concatenate([potential_step, price_step[solver.free]])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-5, atol=1e-6)
    assert np.linalg.eigvalsh(hessian + hessian.T).min() > 0
    np.testing.assert_allclose(hessian @ step, -gradient, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(step).max()))
    np.testing.assert_allclose(slope, gradient[: potential_step.size] @ potential_step, rtol=1e-9)
    assert (price_step[~solver.free] == 0).all()


def test_a_price_at_zero_with_money_left_stays_there() -> None:
    solver = Solver(random_instance(0, (2, 4, 3), budget=[0.1, 50.0, 0.1, 50.0]))
    point = solver.random_point(0)
    point[-3] = point[-1] = 0.0
    solver.evaluate(point)
    price_step, _ = solver.state.newton_step(own=True)
    assert (price_step[[1, 3]] == 0).all()
    assert (price_step[[0, 2]] != 0).all()
