"""Softened plans of blocks of identical arms, from plain arrays; called by `soften` and learners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import (
    Element,
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_tolerance,
    cached_property,
    check_memory,
    frozen,
)
from rmab.errors import ModelError
from rmab.solvers.checks import Units
from rmab.solvers.priced.compiled.passes import node_values, occupy
from rmab.solvers.priced.compiled.program import Program
from rmab.solvers.priced.program import Plans, make_program, of_blocks, units_of
from rmab.solvers.priced.search import Search

FAINTEST = 1e-10  # smallest weight of the rewards of the last step: later prices would be rounding
STEEPEST = 1e10  # beta times the range of the rewards, beyond which exponents have few digits left
FLATTEST = 1e-200  # ... and below which they have none
DEAREST = 1e3  # prices to begin with, per step and range of the rewards: from far below, all plans are passive


@dataclass(frozen=True, eq=False)
class Priced(ReadOnly):
    """A softened plan of blocks of identical arms, as `soften_blocks` returns it.

    Attributes
    ----------
    value : float
        Reward of the plan less the cost of entropy: the objective, at a flow within the budget.
    bound : float
        The dual value: no flow within the budget has more.
    gap : float
        bound - value, relative to the larger of the bound and the widest range of one arm's rewards, all counted from each
        arm's least reward (in a phase): certified. A constant added to the rewards of an arm does not change it.
    prices : (H,) float array
        Price of an activation at each step: the most that one more can add to the bound.
    use : (H,) float array
        Mean number of active arms at each step: at most the budget, up to rounding (1e-9, relative).
    beta : float
        The inverse temperature.
    passes, curvatures : int
        Number of evaluations of all plans (a backward and a forward pass each), and of second-derivative matrices.
    curvature : (H, H) float array, or None
        Approximate derivative of the use of each step in each price, for the next solve. None if a start at given
        prices was already optimal.
    units : Units
        Normalised rewards.
    program : Program
        The programme.
    discounts : (H,) float array
        Weight of the rewards of every step.
    plans : Plans
        The shares, in the solver's layout.
    """

    value: float
    bound: float
    gap: float
    prices: FloatArray
    use: FloatArray
    beta: float
    passes: int
    curvatures: int
    curvature: FloatArray | None
    units: Units
    program: Program
    discounts: FloatArray
    plans: Plans

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g}, bound {self.bound:.6g}, gap {self.gap:.0e}, {self.prices.size} steps"
        return f"{type(self).__name__}({numbers}, {self.passes} passes)"

    @cached_property
    def share(self) -> FloatArray:
        """(C, H, S) the active share of a block's mass by step and state, also in states that are never visited.

        In unreachable states, `soften_blocks` replaces rewards by the least one, `soften` uses them.
        """
        return frozen(self.plans.by_block(*self._point))

    @property
    def _point(self) -> tuple[float, FloatArray]:
        """Beta in units of the rewards, and the prices that go with it (H,)."""
        return self.beta * self.units.scale, self.beta * self.prices

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Blocks, steps and states."""
        return self.plans.blocks, self.prices.size, self.program.start.shape[1]

    @property
    def values(self) -> FloatArray:
        """(C, H, S) the softened value of every state from each step on, prices paid; built on demand."""
        (blocks, horizon, states), program = self._sizes, self.program
        batches, _, lanes = program.start.shape
        nodes = np.empty((batches, horizon, states * lanes))
        node_values(program, *self._point, nodes)
        values = of_blocks(nodes, program, blocks)
        values /= self.beta
        least = self.units.least.reshape(blocks, -1)[:, program.phase_of]
        discount = self.discounts[1] if horizon > 1 else 1.0
        rest = np.zeros(blocks)
        for h in range(horizon - 1, -1, -1):
            rest = least[:, h] + discount * rest
            values[:, h] += rest[:, np.newaxis]
        return frozen(values)

    def visits(self, *, uniform: bool = False) -> FloatArray:
        """(C * K, S, 2) the mean visits of each cell, state and action in an episode.

        They are discounted, and summed over the arms of a block. uniform: of the uniform policy instead.
        """
        return self.plans.visits(*self._point, uniform=uniform)

    @property
    def mass(self) -> FloatArray:
        """(C, H, S, 2) the mass of each block in a state under an action at a step, discounted; built on demand."""
        blocks, _, states = self._sizes
        start = self.program.start.transpose(0, 2, 1).reshape(-1, states)[:blocks]
        return self._occupancy(np.arange(blocks), np.ascontiguousarray(start))

    def _occupancy(self, block_of: IntArray, start: FloatArray) -> FloatArray:
        """(N, H, S, 2) the occupancy of arms of these blocks (N,), from these masses (N, S)."""
        _, horizon, states = self._sizes
        check_memory(f"the occupancy of {len(start)} arms and {horizon} steps", 16.0 * len(start) * horizon * states)
        occupancy = np.empty((len(start), horizon, states, 2))
        occupy(self.program, block_of, start, self.share, occupancy)
        return frozen(occupancy)


class Warm(NamedTuple):
    """The starting point of a solve: prices (H,) and curvature (H, H) of an earlier plan, if any."""

    prices: FloatArray
    curvature: FloatArray | None = None


def soften_blocks(
    kernels: FloatArray,
    reward: FloatArray,
    start: FloatArray,
    budget: FloatArray,
    beta: float,
    *,
    kernel_of: IntArray | None = None,
    phase_of: IntArray | None = None,
    discounts: FloatArray | None = None,
    exact: bool = False,
    warm: Priced | Warm | ArrayLike | None = None,
    tolerance: float = 1e-6,
    everywhere: bool = False,
    most: float | None = None,
) -> Priced:
    """Like `soften`, for blocks of identical arms given as arrays: C blocks, K phases, by cell (`rmab.model.time`).

    Only shapes and indices are checked: rows of kernels must be distributions, rewards
    finite. Arrays may be read-only.

    Parameters
    ----------
    kernels : (G, S, 2, S) float array
        Kernels, each of which may serve several cells.
    reward : (C * K, S, 2) float array
        Reward of each cell.
    start : (C, S) float array
        The number of arms of each block in each state.
    budget : (H,) float array
        Largest mean number of active arms at each step.
    beta, warm, tolerance
        As in `soften`.
    kernel_of : (C * K,) int array, optional
        The kernel of every cell; by default, each has its own.
    phase_of : (H,) int array, optional
        The phase of every step; by default there is one.
    discounts : (H,) float array, optional
        Weight of the rewards of every step; the kernels must already be discounted, as those of `Blocks` are.
    exact : bool
        Whether the budget must be used exactly; prices may then be negative.
    everywhere : bool, default False
        Whether to plan in unreachable states as in all others.
    most : float, optional
        The largest possible mass if kernels do not preserve it, as those of `rmab.solvers.fluid.state_costs`.

    Returns
    -------
    Priced
        Value, bound, prices and shares.

    Examples
    --------
    >>> kernels = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]]]])
    >>> soften_blocks(kernels, np.array([[[0.0, 0.0], [1.0, 1.0]]]), np.array([[3.0, 0.0]]), np.ones(4), 3.0)
    Priced(value 3.92414, bound 3.92414, gap ..., 4 steps, ... passes)
    """
    kernel_of = np.arange(len(kernels)) if kernel_of is None else kernel_of
    phase_of = np.zeros(budget.size, dtype=np.int64) if phase_of is None else phase_of
    discounts = np.ones(budget.size) if discounts is None else discounts
    inverse, wanted = as_tolerance(beta, "beta"), as_tolerance(tolerance, "tolerance")
    if discounts[-1] < FAINTEST:
        few = int(np.argmax(discounts < FAINTEST))
        raise ModelError(f"soften: rewards after {few} steps count less than {FAINTEST:.0e}; plan for at most {few} steps")
    prices, curvature = _begun(warm, budget.size, exact=exact)
    (blocks, states), horizon = start.shape, budget.size
    numbers = 8.0 * (2.0 * blocks * horizon * states + 3.0 * horizon**2 + 3.0 * kernel_of.size * states**2)
    check_memory(f"the priced step of {blocks} blocks, {states} states and {horizon} steps", numbers)
    _check_fit(kernels, kernel_of, reward, start, budget, phase_of)
    kernels, start = _writable(kernels), _writable(start)
    kernel_of, phase_of = _writable(kernel_of), _writable(phase_of)
    widest = float((reward.max(axis=(1, 2)) - reward.min(axis=(1, 2))).max()) or 1.0
    if inverse * widest < FLATTEST:
        raise _unusable(inverse, widest, "flat", FLATTEST)
    units = units_of(kernels, kernel_of, reward, start, phase_of, everywhere=everywhere, shift=most is None)
    if inverse * units.scale > STEEPEST and not units.reward.any():  # decisions do not matter from here: any unit will do
        units = replace(units, scale=1.0 / inverse)
    inverse = max(inverse, FLATTEST / units.scale)  # rewards may differ far less here than elsewhere
    eta = inverse * units.scale
    if eta > STEEPEST:
        raise _unusable(inverse, units.scale, "steep", STEEPEST)
    program = make_program(kernels, kernel_of, units.reward, start, budget, phase_of, most)
    del kernels  # they are in the program, and may be large
    search = Search(
        program, blocks, budget * discounts, exact=exact, most=most
    )  # masses are discounted, and so is what they may use
    if prices is not None:
        dearest = DEAREST * budget.size * units.scale
        prices = np.clip(prices, -dearest, dearest) / units.scale
    point, matrix = search.solve(eta, wanted, prices, None if curvature is None else curvature / inverse)
    phi, _, missing = search.standing(point)
    bound, value = phi / eta, (phi - missing) / eta
    origin = units.origin(start.sum(axis=1), phase_of, discounts)
    earned, most = (units.scale * one + origin for one in (value, bound))
    use = point.use / np.maximum(discounts, 1e-300)
    answer = (earned, most, units.gap(bound, value), point.prices / inverse, use, inverse)
    for array in answer[3:5]:
        frozen(array)
    curvature = None if matrix is None else frozen(matrix * inverse)
    return Priced(*answer, search.passes, search.curvatures, curvature, units, program, discounts, search.plans)


def _check_fit(
    kernels: FloatArray, of: IntArray, reward: FloatArray, start: FloatArray, budget: FloatArray, phase: IntArray
) -> None:
    """Raise ModelError if shapes do not fit or indices are out of range: compiled code does not check."""
    states = kernels.shape[-1]
    fits = kernels.shape == (len(kernels), states, 2, states) and start.shape == (len(start), states) and budget.ndim == 1
    if not fits or phase.shape != budget.shape or of.ndim != 1 or of.size == 0 or of.size % len(start):
        shapes = f"kernels {kernels.shape}, start {start.shape}, budget {budget.shape}, kernel_of {of.shape}"
        raise ModelError(f"soften_blocks: shapes do not fit, got {shapes}, phase_of {phase.shape}")
    if reward.shape != (of.size, states, 2):
        raise ModelError(f"soften_blocks: reward must have shape {(of.size, states, 2)}, got {reward.shape}")
    for name, index, count in (("kernel_of", of, len(kernels)), ("phase_of", phase, of.size // len(start))):
        if index.dtype.kind not in "iu" or index.min(initial=0) < 0 or index.max(initial=0) >= count:
            raise ModelError(f"soften_blocks: {name} must be whole numbers in 0..{count - 1}, got {index!r:.60}")


def _unusable(beta: float, widest: float, how: str, limit: float) -> ModelError:
    given = f"beta: {beta:.3g} times the range of the rewards, {widest:.3g},"
    return ModelError(f"{given} is too {how} to compute with; the limit is {limit:.0e}")


def _begun(
    warm: Priced | Warm | ArrayLike | None, horizon: int, *, exact: bool
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return initial prices (H,) and the curvature (H,H) there, if any; ModelError if they do not fit."""
    if warm is None:
        return None, None
    prices = warm.prices if isinstance(warm, Priced | Warm) else as_floats(warm, "warm")
    if prices.ndim != 1 or prices.size < horizon:
        raise ModelError(f"warm must be an earlier plan, or prices (H,) = ({horizon},), got {prices.shape}")
    if not np.isfinite(prices).all() or (not exact and (prices < 0).any()):
        raise ModelError(f"warm: prices must be {'' if exact else '0 or more, and '}finite")
    kept = warm.curvature if isinstance(warm, Priced | Warm) else None
    return prices[-horizon:], None if kept is None else kept[-horizon:, -horizon:]


def _writable(array: NDArray[Element]) -> NDArray[Element]:
    """Return the array, or a copy of one that is read-only: code is compiled for one kind only."""
    return array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
