"""The fluid bound (Xiong & Li 2024, Section 5.2): the budget holds on average, which no policy can beat.

The result is certified, with any solver: the occupancy is rebuilt by following its policy through the
kernels, so it is feasible to rounding; and the bound is the dual value of the prices, from backward induction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, ReadOnly, as_tolerance, check_memory, expect, frozen, sealed
from rmab.errors import ModelError, SolverError
from rmab.model import Problem, by_step, cells, split_cells
from rmab.solvers.checks import checked_table
from rmab.solvers.compiled.dynamics import forward, steer
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.path import SoftPath
from rmab.solvers.transitions import TransitionSets

Method = Literal["auto", "highs", "newton"]

SMALL = 500  # variables up to which HiGHS is faster
# Steps per state of all blocks, and in all, beyond which 'newton' takes long: it has as many unknowns. From 250 steps on
# HiGHS is up to twice as fast, but its vertex gives poor indices: conveyor at 400 steps earns half with them.
LONG, STEPS = 20, 800
PATIENCE = 200_000  # variables beyond which HiGHS is not tried after 'newton' failed: it may take hours
NO_MASS = 1e-12  # rounding error of a mass that the plan does not use


@dataclass(frozen=True, eq=False)
class Fluid(ReadOnly):
    """Solution of the fluid LP, as `rmab.solvers.solve_fluid` returns it.

    Attributes
    ----------
    value : float
        Reward of the occupancy.
    bound : float
        The dual value: no policy within the budget earns more.
    prices : (H,) float array
        Price of an activation, or of a unit of cost, at each step: the most that one more can add to the bound, in
        rewards of that step. Negative if an exact budget forces harmful activations.
    gap : float
        bound - value, relative to the larger of the bound and the widest range of one arm's rewards, all counted from each
        arm's least reward (in a phase): certified. A constant added to the rewards of an arm does not change it.
    method : {'highs', 'newton'}
        The solver that found the plan.
    share : (C, H, S) float array
        For each block of identical arms, the active share of the mass by step and state.
    problem : Problem
        The problem.
    blocks : Blocks
        The arms that were planned together; `blocks.block_of` (N,) is the block of each.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> plan = rmab.solvers.solve_fluid(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3)
    >>> plan.prices.round(3)  # one more activation at the last step is worth nothing
    array([0.468, 0.42 , 0.3  , 0.   ])
    """

    value: float
    bound: float
    prices: FloatArray
    gap: float
    share: FloatArray
    problem: Problem
    blocks: Blocks
    method: str

    def __repr__(self) -> str:
        return f"Fluid(value {self.value:.6g}, bound {self.bound:.6g}, gap {self.gap:.0e}, {self.prices.size} steps)"

    @property
    def occupancy(self) -> FloatArray:
        """(N, H, S, 2) probability of arm n being in state s under action a at step h; built on demand."""
        arms, horizon = self.problem.arms, self.problem.horizon
        check_memory(f"the occupancy of {arms.count} arms and {horizon} steps", 16.0 * arms.count * horizon * arms.states)
        occupancy = np.empty((arms.count, horizon, arms.states, 2))
        start, phase_of = self.problem.start_masses, self.problem.phase_of
        unbounded = np.full(horizon, np.inf)
        for n in range(arms.count):
            block, g = self.blocks.block_of[n], arms.group_of[n]
            kernel, share = cells(arms.group_kernels[g : g + 1], arms.phases), self.share[block : block + 1].copy()
            forward(sealed(kernel), phase_of, sealed(start[n : n + 1]), unbounded, share, occupancy[n : n + 1])
        return frozen(occupancy)

    @property
    def advantage(self) -> FloatArray:
        """(C, H, S) gain of activating over staying passive: Q(s,1) - Q(s,0) when later activations cost their prices,
        before the price of the step itself is paid.
        """
        return self.blocks.advantage(self.prices)

    def check_made_for(self, problem: Problem, reward: FloatArray) -> None:
        """Raise ModelError unless this is the plan of this problem and reward (N * K, S, 2)."""
        if self.problem != problem or not self.blocks.same_rewards(Blocks.of(problem, reward)):
            raise ModelError("fluid: it belongs to another problem or reward")


def solve_fluid(problem: Problem, reward: ArrayLike, *, method: Method = "auto", tolerance: float = 1e-6) -> Fluid:
    """Solve the fluid LP: the best plan, and a bound on what any policy earns, when the budget holds on average.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon. Arms that share group and reward are planned together.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    method : {'auto', 'highs', 'newton'}
        'highs' solves the LP as a whole and ends in a vertex, exact to rounding. 'newton' follows the softened dual and
        ends inside the set of optimal plans and prices, where indices are better. 'auto' uses the first for small
        problems and for few arms over very many steps, otherwise the second; if one fails, the other. `Fluid.method`
        is the one that was used.
    tolerance : float
        Largest certified gap, relative. Rounding may keep 'newton' from tolerances below 1e-7.

    Returns
    -------
    Fluid
        Value, bound, prices and shares.

    Raises
    ------
    ModelError
        If an argument is wrong.
    SolverError
        If the gap cannot be certified.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> rmab.solvers.solve_fluid(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3)
    Fluid(value 2.376, bound 2.376, gap ..., 4 steps)
    """
    if not isinstance(method, str) or method not in get_args(Method):
        raise ModelError(f"method must be one of {', '.join(get_args(Method))}, got {method!r:.40}")
    wanted = as_tolerance(tolerance, "tolerance")
    blocks = Blocks.of(problem, checked_table(problem, reward, "solvers.solve_fluid"))
    size = 2 * blocks.start.size * problem.horizon
    check_memory(f"the fluid LP of {size:.3g} variables", 16.0 * size)
    ordered, place = blocks.in_canonical_order()
    found = _solve_by(problem, ordered, method, wanted)
    return replace(found, share=frozen(found.share[place]), blocks=blocks)


def _solve_by(problem: Problem, blocks: Blocks, method: str, tolerance: float) -> Fluid:
    """Solve by any method."""
    if method != "auto":
        return _solve(problem, blocks, method, tolerance)
    size = 2 * blocks.start.size * problem.horizon
    long = size <= PATIENCE and problem.horizon > max(LONG * blocks.start.size, STEPS)
    first, other = ("highs", "newton") if size <= SMALL or long else ("newton", "highs")
    try:
        return _solve(problem, blocks, first, tolerance)
    except SolverError as error:
        if other == "highs" and size > PATIENCE:
            raise
        try:
            return _solve(problem, blocks, other, tolerance)
        except SolverError as again:
            raise SolverError(f"{error} ({first}); {again} ({other})") from again


def fluid_of(problem: Problem, reward: FloatArray, given: Fluid | None) -> Fluid:
    """Return the fluid plan of this problem and reward (N * K, S, 2): the given one, if it matches, or a new one."""
    if given is None:
        return solve_fluid(problem, split_cells(reward, problem.phases))
    expect(given, Fluid, "fluid")
    given.check_made_for(problem, reward)
    return given


def _solve(problem: Problem, blocks: Blocks, method: str, tolerance: float) -> Fluid:
    """Solve by one method, 'highs' or 'newton'."""
    if method == "newton":
        kernels = blocks.kernels.copy()  # writable, like those of boxes: code is compiled for one kind only
        sets = TransitionSets(kernels, kernels)
        model = (sets, blocks.reward, blocks.start, blocks.budget, blocks.phase_of, problem.discounts)
        path = SoftPath(*model, exact=blocks.exact, most=blocks.most)
        path.solve(tolerance * min(blocks.span, 1.0))
        return certify(problem, blocks, path.occupancy, path.prices, tolerance, method)
    from rmab.solvers.fluid.highs import FluidLp  # noqa: PLC0415  (for small problems, or if 'newton' fails)

    occupancy, prices = FluidLp(blocks, problem.discounts).solve()
    return certify(problem, blocks, occupancy, prices, tolerance, method)


def certify(
    problem: Problem, blocks: Blocks, occupancy: FloatArray, prices: FloatArray, tolerance: float, method: str
) -> Fluid:
    """Turn a solver's occupancy (C,H,S,2) and prices (H,) into a feasible one with a proven gap, or raise SolverError."""
    if not np.isfinite(prices).all() or (not blocks.exact and prices.min() < 0):
        raise SolverError("fluid LP: the solver's prices are negative or not finite, so there is no bound")
    mass = occupancy.sum(axis=3)
    share = np.divide(occupancy[..., 1], mass, out=np.zeros_like(mass), where=mass > NO_MASS)
    np.clip(share, 0.0, 1.0, out=share)
    units, budget = blocks.units(), blocks.budget * problem.discounts
    own = replace(blocks, reward=frozen(units.reward))
    values, _ = own.values(prices / units.scale)
    bound = float((own.start * values[:, 0]).sum() + budget @ (prices / units.scale))
    feasible, plan, value = np.empty_like(occupancy), share.copy(), -np.inf
    if not blocks.exact:
        forward(own.kernels, own.phase_of, own.start, budget, plan, feasible)
        value = float((feasible * by_step(own.reward, own.count, own.phase_of)).sum())
    if not units.gap(bound, value, blocks.span) <= tolerance:
        plan, least = share, -np.inf if blocks.exact else 0.0
        steer(own.kernels, own.phase_of, own.reward, own.phase_of, own.start, budget, least, values, plan, feasible)
        value = float((feasible * by_step(own.reward, own.count, own.phase_of)).sum())
    gap = units.gap(bound, value, blocks.span)
    if not gap <= tolerance:
        raise SolverError(f"fluid LP: the certified gap is {gap:.2e}, above the tolerance {tolerance:.2e}")
    if blocks.exact:
        plan[:, blocks.phase_of != problem.phase_of] = 1.0  # if all arms must be active
    elif (barred := blocks.barred) is not None:
        plan[barred] = 0.0
    masses = blocks.start.sum(axis=1)
    earned, most = (units.whole(one, masses, blocks.phase_of, problem.discounts) for one in (value, bound))
    base = blocks.base(problem.discounts)
    return Fluid(earned + base, most + base, frozen(prices), gap, frozen(plan), problem, blocks, method)
