"""Who learns together: arms of a group share dynamics; where they are paid alike, too, one block of the programme."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.model.view import View
from rmab.play.feedback import Feedback

__all__ = ["Observed", "Pools", "share_of"]

NO_MASS = 1e-12  # states with less have index 0, as the paper's index is not defined there


@dataclass(frozen=True, eq=False)
class Observed:
    """One episode, pooled: counts (G,S,2,S) of transitions; per kind of reward, values (R,S,2) in [0, 1], NaN where not
    revealed, and visits (R,S,2) per arm.
    """

    counts: IntArray
    values: FloatArray
    visits: FloatArray


@dataclass(frozen=True, eq=False)
class Pools:
    """G groups of like dynamics, R kinds of reward, C blocks: arms alike in group, kind and start.

    group_of, kind_of, block_of  (N,) of every arm.    group, kind, start  (C,) of every block; weights (C,) its arms.
    real      (G,S) the states that a group has; support (G,S,2,S) transitions that are not declared impossible.
    zero      (R,S,2) pairs whose reward is known to be zero; floor is what zero is after rewards are mapped to [0, 1].
    """

    group_of: IntArray
    kind_of: IntArray
    block_of: IntArray
    group: IntArray
    kind: IntArray
    start: IntArray
    weights: FloatArray
    real: BoolArray
    support: BoolArray
    zero: BoolArray
    floor: float

    @classmethod
    @lru_cache(maxsize=16)  # a view cannot change, and is asked for several times an episode
    def of(cls, view: View) -> "Pools":
        """Pool the arms of a view as far as it declares them alike."""
        alone = np.arange(view.arms)
        groups = alone if view.groups is None else view.groups
        kinds = groups if view.pooled_rewards else alone
        keys = np.column_stack([groups, kinds, view.start])
        _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        block_of = block_of.reshape(-1)
        member = np.unique(groups, return_index=True)[1]
        sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
        real = np.arange(view.states) < sizes[member, np.newaxis]  # (G, S)
        support = np.broadcast_to(real[:, np.newaxis, np.newaxis, :], (member.size, view.states, 2, view.states)).copy()
        if view.support is not None:
            support &= view.support[member]
        support |= ~real[:, :, np.newaxis, np.newaxis] & np.eye(view.states, dtype=bool)[:, np.newaxis]  # padding stays put
        zero = np.zeros((int(kinds.max()) + 1, view.states, 2), dtype=bool)
        zero[..., 0] = view.passive_zero
        floor = -view.low / (view.high - view.low)
        weights = np.bincount(block_of).astype(np.float64)
        blocks = (groups[first], kinds[first], view.start[first], weights)
        return cls(groups, kinds, block_of, *blocks, real, support, zero, floor)

    @property
    def group_of_kind(self) -> IntArray:
        """(R,) the group of each kind of reward."""
        return self.group_of[np.unique(self.kind_of, return_index=True)[1]]

    def in_own_units(self, view: View, values: FloatArray) -> FloatArray:
        """(N, S, 2) rewards of every arm, from values (R,S,2) that were mapped to [0, 1]."""
        return view.low + (view.high - view.low) * values[self.kind_of]

    def index_of(self, mass: FloatArray) -> FloatArray:
        """(N, H, S) eq. importance-index: `share_of` the masses (C,H,S,2), arm by arm."""
        return share_of(mass)[self.block_of]

    def observe(self, view: View, feedback: Feedback) -> Observed:
        """Count and pool what was seen."""
        states, actions = feedback.states, feedback.actions.astype(np.int64)
        shape = self.support.shape
        arm = np.broadcast_to(np.arange(view.arms), actions.shape)
        moves = np.ravel_multi_index((self.group_of[arm], states[:-1], actions, states[1:]), shape)
        counts = np.bincount(moves.reshape(-1), minlength=int(np.prod(shape))).reshape(shape)
        pairs = np.ravel_multi_index((self.kind_of[arm], states[:-1], actions), self.zero.shape)
        visits = np.bincount(pairs.reshape(-1), minlength=self.zero.size).reshape(self.zero.shape)
        values = np.full(self.zero.shape, np.nan)
        np.fmax.at(values, self.kind_of, (feedback.rewards - view.low) / (view.high - view.low))
        values[self.zero] = self.floor
        return Observed(counts, np.clip(values, 0.0, 1.0), visits / np.bincount(self.kind_of)[:, np.newaxis, np.newaxis])


def share_of(mass: FloatArray) -> FloatArray:
    """(C, H, S) the active part of each node's mass (C,H,S,2); 0 where there is none."""
    total = mass.sum(axis=3)
    index = np.where(total > NO_MASS, mass[..., 1] / np.maximum(total, NO_MASS), 0.0)
    return np.asarray(np.clip(index, 0.0, 1.0))
