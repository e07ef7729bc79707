"""Plans that are recomputed at every step, from the current states: LP-update, and the rolling plan.

LP-update (Gast, Gaujal & Yan, 2023) solves the fluid LP of the rest of the episode. The rolling plan is quicker: it plans
ahead over a window, after which the value of a state is that of
the fluid plan of the whole episode. Its plan is softened (`soften`), so that it is a smooth function of the
prices and starts from those of the step before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from rmab.common import BoolArray, FloatArray, IntArray, as_integer, frozen
from rmab.errors import ModelError, SolverError
from rmab.model import Problem
from rmab.planners.contract import check_states
from rmab.planners.question import QuestionPolicy, checked_answer, question_format, systematic
from rmab.solvers.checks import checked_table
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.fluid import Fluid, fluid_of
from rmab.solvers.priced.blocks import FAINTEST, soften_blocks
from rmab.solvers.priced.program import units_of

Window = Annotated[int, Field(ge=1, description="number of steps to plan ahead")]
WINDOW = 10  # steps
STEEPNESS = 100.0  # beta times the typical value of a decision: three times or a third of it earn about the same
NARROW = 1e-2  # smallest assumed value of a decision, relative to the range of the rewards
STEEPEST = 1e6  # ... of the current rewards
SOFTEST = 0.1  # smallest factor on beta if a plan cannot be certified
TOLERANCE = 1e-3  # relative tolerance of softened plans: rounding to whole arms costs more


class LpUpdate(QuestionPolicy):
    """A policy that solves the fluid LP again at every step, from the current states, and executes the plan's first step.

    Fractional shares within a block and state are rounded by systematic sampling in a random order, block by block and
    state by state: each count is the planned mass rounded up or down, and the total never exceeds the budget. An episode
    takes H LPs, each started from the basis of the whole one. Threads may share a policy: each call has its own solver.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.

    Raises
    ------
    ModelError
        If an argument is wrong.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> import numpy as np
    >>> policy = rmab.planners.LpUpdate(problem, reward)
    >>> int(policy.act(0, np.array([0, 0, 1]), np.random.default_rng(0)).sum())
    1
    """

    _free: list[Any]  # idle solvers

    FORMAT = question_format("rmab policy lp-update")

    def __init__(self, problem: Problem, reward: ArrayLike) -> None:
        self._hold(problem, checked_table(problem, reward, "planners.LpUpdate"))

    def _prepare(self) -> None:
        self._set(_free=[])

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Solve from these states (N,) at step h and execute the plan's first step."""
        now = check_states(self.problem, h, states, rng)
        masses = self.blocks.count_arms(now, h)
        plan = self._plan(h, masses)[:, h, :, 1]
        return self.round_shares(np.divide(plan, masses, out=np.zeros_like(masses), where=masses > 0), h, now, rng)

    def _plan(self, h: int, masses: FloatArray) -> FloatArray:
        """(C, H, S, 2) the plan from step h on, from masses (C, S); a solver that failed is not used again."""
        try:
            lp = self._free.pop()  # pop and append are atomic: no two threads get the same solver
        except IndexError:
            from rmab.solvers.fluid.highs import FluidLp  # noqa: PLC0415  (HiGHS takes long to import)

            lp = FluidLp(self.blocks, self.problem.discounts, anywhere=True)
        occupancy: FloatArray = lp.solve_from(h, masses)[0]
        self._free.append(lp)
        return occupancy


class Rolling(QuestionPolicy):
    """A policy that plans the next steps again at every step, from the current states, and executes the first step.

    Fractional shares within a block and state are rounded by systematic sampling, as in `LpUpdate`. Threads may share a
    policy: the memory of an episode, its prices, is in the object that `begin` returns. The constructor compiles what
    decisions need, unless that is on disk (`rmab warm` puts it there); it takes up to a minute.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    window : int, default 10
        Number of steps to plan ahead; fewer near the end.
    fluid : Fluid, optional
        The fluid plan of this problem and reward, to save the solve.

    Raises
    ------
    ModelError
        If an argument is wrong, or the plan belongs to another problem or reward.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> policy = rmab.planners.Rolling(problem, reward)
    >>> int(policy.act(0, np.array([0, 0, 1]), np.random.default_rng(0)).sum())
    1
    """

    window: int
    prices: FloatArray  # (H,) of the fluid plan
    _ahead: FloatArray  # (C, H+1, S) the value of a state from a step on, at these prices
    _beta: float

    ANSWER = ("window", "prices")
    FORMAT = question_format("rmab policy rolling", *ANSWER)

    def __init__(self, problem: Problem, reward: ArrayLike, *, window: Window = WINDOW, fluid: Fluid | None = None) -> None:
        table = checked_table(problem, reward, "planners.Rolling")
        steps = _checked_window(window)  # before the solve
        self._hold(problem, table, window=steps, prices=fluid_of(problem, table, fluid).prices)

    def _prepare(self) -> None:
        least = -np.inf if self.problem.exact else 0.0
        prices = checked_answer(self.prices, "prices", (self.problem.horizon,), least=least)
        values, worth = self.blocks.values(prices)
        beta = STEEPNESS / max(_decision_value(self.blocks, worth), NARROW * self.blocks.units().scale)
        self._set(window=_checked_window(self.window), prices=prices, _ahead=frozen(values), _beta=beta)
        _compile()

    def __repr__(self) -> str:
        return f"Rolling({self.problem!r}, window {self.window})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Plan from these states (N,) at step h and execute the plan's first step."""
        return RollingEpisode(self).act(h, states, rng)

    def begin(self, states: IntArray, rng: np.random.Generator) -> RollingEpisode:  # noqa: ARG002
        """Return the policy of one episode, which remembers its prices from step to step."""
        return RollingEpisode(self)

    def shares(self, h: int, masses: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(C, S) the share of the masses (C, S) to activate at step h, and the prices (W,) of this and the next steps.

        prices (W,): the starting point.
        """
        blocks, problem = self.blocks, self.problem
        steps, last = slice(h, h + prices.size), h + prices.size - 1
        kernel_of, pays = _with_last(blocks, int(blocks.phase_of[last]), self._ahead[:, last + 1])
        phase_of = blocks.phase_of[steps].copy()
        phase_of[-1] = blocks.phases
        time: dict[str, Any] = {"phase_of": phase_of, "discounts": problem.discounts[: prices.size]}
        limits, first = blocks.budget[steps].copy(), self._beta
        if first * float(np.ptp(pays)) > STEEPEST:  # decisions may matter far more here than from the start
            here = units_of(blocks.kernels, kernel_of, pays, masses, phase_of, shift=blocks.most is None).scale
            first = min(first, STEEPEST / here)
        beta = first
        while True:
            try:
                given: dict[str, Any] = {
                    **time,
                    "kernel_of": kernel_of,
                    "warm": prices,
                    "tolerance": TOLERANCE,
                    "exact": blocks.exact,
                    "most": blocks.most,
                }
                found = soften_blocks(blocks.kernels, pays, masses, limits, beta, **given)
            except SolverError:
                if beta < SOFTEST * first:
                    raise
                beta /= 4.0  # a softer plan is a smoother programme
            else:
                return found.share[:, 0], found.prices


class RollingEpisode:
    """One episode of a rolling plan: the prices of its last step are where the next one begins."""

    def __init__(self, rolling: Rolling) -> None:
        self.rolling = rolling
        self.prices, self.step = np.empty(0), -1

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Plan from these states (N,) at step h and execute the plan's first step."""
        now = check_states(self.rolling.problem, h, states, rng)
        share, self.prices = self.rolling.shares(h, self.rolling.blocks.count_arms(now, h), self._first_prices(h))
        self.step = h
        return self.rolling.round_shares(share, h, now, rng)

    def _first_prices(self, h: int) -> FloatArray:
        """(W,) initial prices: those of the last step, shifted, if there are any; otherwise the whole plan's."""
        rolling, problem = self.rolling, self.rolling.problem
        ahead = int((problem.discounts >= FAINTEST).sum())  # later rewards count next to nothing
        prices = rolling.prices[h : h + min(rolling.window, problem.horizon - h, ahead)].copy()
        if self.step == h - 1 and h > 0:
            prices[: self.prices.size - 1] = self.prices[1:]
        return prices


def _decision_value(blocks: Blocks, worth: FloatArray) -> float:
    """Return the typical value of a decision: the root mean square over arms and steps, if all take the better action.

    worth (C, H, S): gain of activating, less its price. Rewards may range much farther: a penalty that every plan avoids, or
    that no plan can avoid, does not matter.
    """
    share, mass = (worth > 0).astype(np.float64), np.empty((*worth.shape, 2))
    forward(blocks.kernels, blocks.phase_of, blocks.start, np.full(blocks.horizon, np.inf), share, mass)
    total, widest = mass.sum(axis=3), float(np.abs(worth).max())
    if widest == 0.0:
        return 0.0
    return widest * float(np.sqrt((total * (worth / widest) ** 2).sum() / total.sum()))  # squares of prices may overflow


def _with_last(blocks: Blocks, phase: int, ahead: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the kernel and the reward of every cell, with one more phase: the last step of this phase, after which a state
    has the value `ahead` (C, S).
    """
    count, phases, states = blocks.count, blocks.phases, ahead.shape[1]
    kernel_of = np.arange(count * phases).reshape(count, phases)
    pays = blocks.reward.reshape(count, phases, states, 2)
    last = pays[:, phase] + np.einsum("csay,cy->csa", blocks.kernels[kernel_of[:, phase]], ahead)
    every = np.concatenate([pays, last[:, np.newaxis]], axis=1).reshape(-1, states, 2)
    return np.append(kernel_of, kernel_of[:, phase : phase + 1], axis=1).reshape(-1), every


@lru_cache(maxsize=1)
def _compile() -> None:
    """Plan a small problem, so that a controller's first decision does not wait for compilation."""
    kernels = np.array([[[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]]]] * 2)
    reward, start, budget = np.array([[[0.0, 0.0], [1.0, 1.0]]] * 2), np.array([[3.0, 0.0], [1.0, 1.0]]), np.ones(4)
    plan = soften_blocks(frozen(kernels), reward, start, budget, 30.0, warm=np.full(4, 0.1), tolerance=TOLERANCE)
    systematic(plan.share[0, 0, [0, 0, 0]], np.zeros(3, dtype=np.int64), 1, np.random.default_rng(0))


def _checked_window(window: object) -> int:
    steps = as_integer(window, "window")
    if steps < 1:
        raise ModelError(f"window must be at least 1, got {steps}")
    return steps
