"""Blocks: arms that plan alike (same dynamics, same reward) are solved once, with the mass of all of them.

Exact: from a feasible occupancy of the sum, every arm follows the block's shares from its own start state.

A discount is mass that is lost: with kernels times the discount, the masses of step h, what they earn and the budget that
they may use all count discount ** h of themselves, and values and prices are those of the step itself.
"""

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, frozen, sealed
from rmab.model import Problem, cells
from rmab.solvers.checks import Units, reachable, steps_reached
from rmab.solvers.compiled.dynamics import backward


@dataclass(frozen=True, eq=False)
class Blocks(ReadOnly):
    """C blocks of arms, with K phases: kernels (C*K,S,2,S), discounted, and reward (C*K,S,2) by cell (`rmab.model.time`).

    start (C,S) is the number of arms per state, block_of (N,) the block of every arm, phase_of (H,) the phase of every step.
    """

    kernels: FloatArray
    reward: FloatArray
    start: FloatArray
    block_of: IntArray
    phase_of: IntArray

    @classmethod
    def of(cls, problem: Problem, reward: FloatArray) -> "Blocks":
        """Join the arms that share group and reward (N*K,S,2)."""
        arms, phases = problem.arms, problem.phases
        by_arm = reward.reshape(arms.count, -1)
        if arms.groups is None:
            first, block_of = np.arange(arms.count), np.arange(arms.count)
        elif np.array_equal(by_arm, by_arm[arms.representatives][arms.groups]):  # by far the most common, and quicker
            first, block_of = arms.representatives, arms.groups
        else:
            keys = np.column_stack([arms.groups, np.unique(by_arm, axis=0, return_inverse=True)[1].reshape(-1)])
            _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        start = np.zeros((len(first), arms.states))
        np.add.at(start, block_of.reshape(-1), problem.start_masses)
        kernels = np.ascontiguousarray(cells(arms.group_kernels[arms.group_of[first]], phases))
        kernels = kernels if problem.discount == 1.0 else kernels * problem.discount
        pays = np.ascontiguousarray(by_arm[first].reshape(-1, arms.states, 2))
        return cls(frozen(kernels), frozen(pays), frozen(start), frozen(block_of.reshape(-1)), problem.phase_of)

    @property
    def count(self) -> int:
        """C, the number of blocks."""
        return len(self.start)

    @property
    def phases(self) -> int:
        """K, the number of phases."""
        return len(self.kernels) // len(self.start)

    @property
    def horizon(self) -> int:
        """H, the number of steps."""
        return self.phase_of.size

    @property
    def moves(self) -> BoolArray:
        """(C*K, S, S) which transitions some action allows."""
        return np.asarray(self.kernels.max(axis=2) > 0)

    def reachable(self) -> BoolArray:
        """(C, H, S) whether any policy can bring mass there."""
        return np.stack(list(steps_reached(self.moves, self.start > 0, self.phase_of)), axis=1)

    def values(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Backward induction under prices (H,): values (C, H+1, S) and advantages Q(s,1) - Q(s,0) (C, H, S)."""
        shape = (self.count, prices.size, self.kernels.shape[1])
        values, advantage = np.empty((shape[0], shape[1] + 1, shape[2])), np.empty(shape)
        backward(self.kernels, self.reward, self.phase_of, sealed(prices), values, advantage)
        return values, advantage

    def advantage(self, prices: FloatArray) -> FloatArray:
        """(C, H, S) Q(s,1) - Q(s,0) when later activations cost their prices (H,), that of the step itself not yet paid.

        Rewards are counted from the least of each cell: a constant would only cost digits.
        """
        above = self.reward - self.reward.min(axis=(1, 2), keepdims=True)
        above.setflags(write=self.reward.flags.writeable)  # compiled code exists for one kind
        return replace(self, reward=above).values(prices)[1] + prices[:, np.newaxis]

    def units(self) -> Units:
        """Return the rewards in units of what is at stake, in the states that can be reached."""
        return Units.of(self.reward, reachable(self.moves, self.start > 0, self.phase_of))

    def bound(self, prices: FloatArray, budget: FloatArray) -> float:
        """Return the dual value at these prices >= 0 (H,): no policy within the budget (H,) earns more, by weak duality."""
        values, _ = self.values(prices)
        return float((self.start * values[:, 0]).sum() + budget @ prices)
