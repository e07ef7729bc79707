"""LP-update (Gast, Gaujal & Yan, 2023): at every step, solve the fluid LP again from the states that really occurred."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.model import Problem
from rmab.planners.contract import check_states
from rmab.planners.question import QuestionPolicy, question_format
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.highs import FluidLp


class LpUpdate(QuestionPolicy):
    """A policy that solves the fluid LP again at every step, from the states at hand, and takes the plan's first step.

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

    _free: list[FluidLp]  # solvers that no call uses just now

    FORMAT = question_format("rmab policy lp-update")

    def __init__(self, problem: Problem, reward: ArrayLike) -> None:
        self._hold(problem, checked_table(problem, reward, "planners.LpUpdate"))

    def _prepare(self) -> None:
        self._set(_free=[])

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Solve from these states (N,) at step h and activate what the plan activates now."""
        now = check_states(self.problem, h, states, rng)
        masses = self.blocks.count_arms(now)
        plan = self._plan(h, masses)[:, h, :, 1]
        return self.round_shares(np.divide(plan, masses, out=np.zeros_like(masses), where=masses > 0), h, now, rng)

    def _plan(self, h: int, masses: FloatArray) -> FloatArray:
        """(C, H, S, 2) the plan from step h on, where the masses (C, S) are; a solver that failed is not used again."""
        try:
            lp = self._free.pop()  # pop and append are atomic: no two threads get the same
        except IndexError:
            lp = FluidLp(self.blocks, self.problem.discounts, anywhere=True)
        occupancy, _ = lp.solve_from(h, masses)
        self._free.append(lp)
        return occupancy
