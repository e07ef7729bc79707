"""Counts of transitions, of groups and of single arms."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import IntArray
from rmab.logs.log import Log


def counted(log: Log, group_of: IntArray, groups: int) -> IntArray:
    """(G, S, 2, S) the transitions of every group."""
    moves, states = log.transitions, len(log.state_names)
    place = ((group_of[moves.arm] * states + moves.state) * 2 + moves.action) * states + moves.after
    return np.bincount(place, minlength=groups * states * 2 * states).reshape(groups, states, 2, states)


def by_arm(log: Log) -> IntArray:
    """(N, S, 2, S) the transitions of every arm."""
    return counted(log, np.arange(len(log.arms)), len(log.arms))
