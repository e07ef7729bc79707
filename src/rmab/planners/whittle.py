"""Whittle indices: the price of activation at which a state's two actions are worth the same.

Endless horizon, discounted or average, or a finite one: `rmab.solvers.whittle` computes the indices of one arm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, ReadOnly, frozen
from rmab.errors import ModelError
from rmab.model.problem import Problem, checked_reward
from rmab.play.policy import IndexPolicy, Rule
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.whittle.index import arm_whittle, arm_whittle_finite

__all__ = ["Whittle", "whittle", "whittle_finite"]


@dataclass(frozen=True, eq=False)
class Whittle(ReadOnly):
    """Whittle indices of a problem's arms.

    index      (N, S) for an endless horizon, (N, H, S) for a finite one; 0 in padded states.
               Where a range of prices leaves both actions equally good, one of them; the highest, if the horizon is finite.
    indexable  (N,) whether raising the price only ever makes states passive. Where it does not, a state's index is the last
               price at which it becomes passive (finite horizon), or that at which the sweep makes it passive.
    """

    index: FloatArray
    indexable: BoolArray
    budget: int

    def policy(self, *, rule: Rule = "fill") -> IndexPolicy:
        """Activate the arms of highest index; with rule 'at-most', only where activating is worth something."""
        return IndexPolicy(self.index, self.budget, rule=rule)


def whittle(problem: Problem, reward: ArrayLike, *, discount: float = 1.0) -> Whittle:
    """Return the indices of an endless horizon for a reward (N, S, 2): discounted, or of average reward (discount 1).

    The average needs arms that have one recurrent class, whatever is active: ModelError names the arm that has more.
    """
    if not 0.0 <= discount <= 1.0:
        raise ModelError(f"discount must be in [0, 1], got {discount}")
    blocks = Blocks.of(problem, checked_reward(reward, problem))
    index, indexable = np.zeros((len(blocks.kernels), problem.arms.states)), np.ones(len(blocks.kernels), dtype=bool)
    for n in np.unique(blocks.block_of, return_index=True)[1]:
        c, size = blocks.block_of[n], problem.arms.real_states[n]
        try:
            index[c, :size], indexable[c] = arm_whittle(
                blocks.kernels[c, :size, :, :size], blocks.reward[c, :size], discount
            )
        except ModelError as error:
            raise ModelError(f"arm {n}: {error}") from error
    return _spread(index, indexable, problem, blocks)


def whittle_finite(problem: Problem, reward: ArrayLike) -> Whittle:
    """Return the indices of every step for a reward (N, S, 2), exactly: the price is the same from that step to the last."""
    blocks = Blocks.of(problem, checked_reward(reward, problem))
    index = np.zeros((len(blocks.kernels), problem.horizon, problem.arms.states))
    indexable = np.ones(len(blocks.kernels), dtype=bool)
    for n in np.unique(blocks.block_of, return_index=True)[1]:
        c, size = blocks.block_of[n], problem.arms.real_states[n]
        kernel, own = blocks.kernels[c, :size, :, :size], blocks.reward[c, :size]
        index[c, :, :size], indexable[c] = arm_whittle_finite(kernel, own, problem.horizon)
    return _spread(index, indexable, problem, blocks)


def _spread(index: FloatArray, indexable: BoolArray, problem: Problem, blocks: Blocks) -> Whittle:
    """Give every arm what its block has."""
    return Whittle(frozen(index[blocks.block_of]), frozen(indexable[blocks.block_of]), problem.budget)
