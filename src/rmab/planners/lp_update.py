"""LP-update (Gast, Gaujal & Yan, 2023): at every step, solve the fluid LP again from the states that really occurred."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.model.problem import Problem, checked_reward
from rmab.play.policy import check_place
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.highs import FluidProgram

__all__ = ["LpUpdate"]


@dataclass(frozen=True, eq=False)
class LpUpdate:
    """A policy that re-plans at every step h for steps h..H-1, and carries out the first step of the plan.

    What the plan splits within a block and state is rounded by systematic sampling in a random order, block by block and
    state by state: each count is the planned mass rounded up or down, and all together never exceed the budget. H linear
    programmes an episode, each started from the basis of the whole one.
    """

    problem: Problem
    reward: FloatArray
    blocks: Blocks = field(init=False)
    _program: list[FluidProgram] = field(init=False, repr=False)

    def __init__(self, problem: Problem, reward: ArrayLike) -> None:
        table = checked_reward(reward, problem)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "reward", frozen(table))
        object.__setattr__(self, "blocks", Blocks.of(problem, table))
        object.__setattr__(self, "_program", [])

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Solve from these states (N,) at step h and activate what the plan activates now."""
        now, arms = np.asarray(states), self.problem.arms
        check_place(h, now, arms.count, self.problem.horizon, arms.states)
        if not self._program:
            size = (self.problem.budget, self.problem.horizon)
            self._program.append(FluidProgram(self.blocks, *size, anywhere=True))
        block_of = self.blocks.block_of
        masses = np.zeros_like(self.blocks.start)
        np.add.at(masses, (block_of, now), 1.0)
        planned, _ = self._program[0].solve_from(h, masses)
        share = planned[:, h, :, 1] / np.maximum(masses, 1.0)
        order = np.lexsort((rng.random(now.size), now, block_of))
        reached = np.floor(np.cumsum(share[block_of, now][order]) + rng.random())
        chosen = np.diff(np.minimum(reached, self.problem.budget), prepend=0.0) > 0
        active = np.zeros(now.size, dtype=bool)
        active[order[chosen]] = True
        return active

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the question, not the solver's memory of it."""
        return type(self), (self.problem, self.reward)
