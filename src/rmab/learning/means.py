"""Running means of rewards: all that was seen, one value per visit; or only what the last episodes showed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays
from rmab.learning.pools import Observed, Pools

__all__ = ["add_to_means", "begin_means", "mean_reward", "times_seen"]


def begin_means(pools: Pools, window: int = 0) -> dict[str, NDArray[Any]]:
    """Return the memory before the first episode: one running sum, or a ring of `window` episodes."""
    shape = (max(window, 1), *pools.zero.shape)
    return {"seen": np.zeros(shape), "paid": np.zeros(shape)}


def add_to_means(memory: Arrays, observed: Observed, episode: int, window: int = 0) -> dict[str, NDArray[Any]]:
    """Take in one episode (from 0): visits whose reward was shown, and what they were paid."""
    shown = ~np.isnan(observed.values)
    slot = episode % window if window else 0
    added = {"seen": observed.visits * shown, "paid": observed.visits * np.where(shown, observed.values, 0.0)}
    new = {name: memory[name].copy() for name in added}
    for name, sums in added.items():
        new[name][slot] = sums if window else sums + new[name][slot]
    return new


def mean_reward(memory: Arrays) -> FloatArray:
    """(R, S, 2) means in [0, 1]; 1 where nothing was seen."""
    number, paid = memory["seen"].sum(axis=0), memory["paid"].sum(axis=0)
    return np.asarray(np.divide(paid, number, out=np.ones_like(paid), where=number > 0))


def times_seen(pools: Pools, memory: Arrays) -> IntArray:
    """(R, S, 2) how many visits of all arms of a kind had their reward shown; the memory counts them per arm."""
    arms = np.bincount(pools.kind_of)[:, np.newaxis, np.newaxis]
    return np.asarray(np.rint(memory["seen"].sum(axis=0) * arms), dtype=np.int64)
