"""LP-update (Gast, Gaujal & Yan, 2023): at every step, solve the fluid LP again from the states that really occurred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.common.checks import check_rng
from rmab.model.problem import Problem
from rmab.model.time import parted
from rmab.play.policy import checked_states
from rmab.play.rounding import systematic
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.highs import FluidLp


@dataclass(frozen=True, eq=False)
class LpUpdate:
    """A policy that solves the fluid LP anew at every step, from the states at hand, and takes the plan's first step.

    What the plan splits within a block and state is rounded by systematic sampling in a random order, block by block and
    state by state: each count is the planned mass rounded up or down, and all together never exceed the budget. An episode
    takes H LPs, each started from the basis of the whole one. Threads may share a policy: each call has a solver to itself.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, where it depends on the time.

    Raises
    ------
    ModelError
        Where this is no problem, or the reward does not fit it.

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

    problem: Problem
    reward: FloatArray
    blocks: Blocks = field(init=False)
    _free: list[FluidLp] = field(init=False, repr=False)  # solvers that no call uses just now

    def __init__(self, problem: Problem, reward: ArrayLike) -> None:
        table = checked_table(problem, reward, "planners.LpUpdate")
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "reward", frozen(parted(table, problem.phases)))
        object.__setattr__(self, "blocks", Blocks.of(problem, table))
        object.__setattr__(self, "_free", [])

    def __repr__(self) -> str:
        return f"LpUpdate({self.problem!r})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Solve from these states (N,) at step h and activate what the plan activates now."""
        check_rng(rng)
        arms = self.problem.arms
        now = checked_states(h, states, arms.count, self.problem.horizon, arms.states)
        block_of = self.blocks.block_of
        masses = np.zeros_like(self.blocks.start)
        np.add.at(masses, (block_of, now), 1.0)
        planned = self._planned(h, masses)
        share = planned[:, h, :, 1] / np.maximum(masses, 1.0)
        return systematic(share[block_of, now], block_of * arms.states + now, int(self.problem.budgets[h]), rng)

    def _planned(self, h: int, masses: FloatArray) -> FloatArray:
        """(C, H, S, 2) the plan from step h on, where the masses (C, S) are; a solver that failed is not used again."""
        try:
            lp = self._free.pop()  # pop and append are atomic: no two threads get the same
        except IndexError:
            lp = FluidLp(self.blocks, self.problem.budgets, self.problem.discounts, anywhere=True)
        planned, _ = lp.solve_from(h, masses)
        self._free.append(lp)
        return planned

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the question, not the solver's memory of it."""
        return type(self), (self.problem, self.reward)
