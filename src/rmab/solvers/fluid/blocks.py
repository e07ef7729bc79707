"""Blocks: arms that plan alike (same dynamics, same reward) are solved once, with the mass of all of them.

Exact: from a feasible occupancy of the sum, every arm follows the block's shares from its own start state.
"""

from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.model.problem import Problem
from rmab.solvers.compiled.dynamics import backward
from rmab.solvers.units import Units, reachable


@dataclass(frozen=True, eq=False)
class Blocks(ReadOnly):
    """C blocks of arms: kernels (C,S,2,S), reward (C,S,2), start (C,S) number of arms per state, block_of (N,)."""

    kernels: FloatArray
    reward: FloatArray
    start: FloatArray
    block_of: IntArray

    @classmethod
    def of(cls, problem: Problem, reward: FloatArray) -> "Blocks":
        """Join the arms that share group and reward (N,S,2)."""
        arms = problem.arms
        if arms.groups is None:
            first, block_of = np.arange(arms.count), np.arange(arms.count)
        else:
            keys = np.column_stack([arms.groups, np.unique(reward, axis=0, return_inverse=True)[1].reshape(-1)])
            _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        start = np.zeros((len(first), arms.states))
        np.add.at(start, (block_of.reshape(-1), problem.start), 1.0)
        kernels = np.ascontiguousarray(arms.kernels[first])
        return cls(frozen(kernels), frozen(reward[first]), frozen(start), frozen(block_of.reshape(-1)))

    def reachable(self, horizon: int) -> BoolArray:
        """(C, H, S) whether any policy can bring mass there."""
        reach = np.zeros((len(self.kernels), horizon, self.kernels.shape[1]), dtype=bool)
        reach[:, 0] = self.start > 0
        moves = self.kernels.max(axis=2) > 0
        for h in range(1, horizon):
            reach[:, h] = (reach[:, h - 1, :, np.newaxis] & moves).any(axis=1)
        return reach

    def values(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Backward induction under prices (H,): values (C, H+1, S) and advantages Q(s,1) - Q(s,0) (C, H, S)."""
        shape = (len(self.kernels), prices.size, self.kernels.shape[1])
        values, advantage = np.empty((shape[0], shape[1] + 1, shape[2])), np.empty(shape)
        backward(self.kernels, self.reward, prices, values, advantage)
        return values, advantage

    def advantage(self, prices: FloatArray) -> FloatArray:
        """(C, H, S) Q(s,1) - Q(s,0) when later activations cost their prices (H,), that of the step itself not yet paid.

        Rewards are counted from the least of each block: a constant would only cost digits.
        """
        above = self.reward - self.reward.min(axis=(1, 2), keepdims=True)
        above.setflags(write=self.reward.flags.writeable)  # compiled code exists for one kind
        counted = Blocks(self.kernels, above, self.start, self.block_of)
        return counted.values(prices)[1] + prices[:, np.newaxis]

    def units(self, horizon: int) -> Units:
        """Return the rewards in units of what is at stake, in the states that can be reached."""
        return Units.of(self.reward, reachable(self.kernels.max(axis=2) > 0, self.start > 0, horizon))

    def bound(self, prices: FloatArray, budget: float) -> float:
        """Return the dual value at these prices >= 0: no policy within the budget earns more, by weak duality."""
        values, _ = self.values(prices)
        return float((self.start * values[:, 0]).sum() + budget * prices.sum())
