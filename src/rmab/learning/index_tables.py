"""Tables of indices from estimated kernels (G,S,2,S) and rewards (R,S,2): executed by index learners."""

from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.learning.pools import Pools
from rmab.model import View, split_cells
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.optimistic import solve_optimistic_fluid
from rmab.solvers.whittle.index import arm_whittle

TOLERANCE = 1e-4  # of the fluid LP: kernels are estimates


def lagrangian_table(pools: Pools, kernels: FloatArray, reward: FloatArray) -> FloatArray:
    """(N, H, S) Lagrangian index under the fluid LP's prices; kernels (C*K,S,2,S) and pay of mass (C*K,S,2)."""
    view = pools.view
    size = (pools.start, pools.budget, view.horizon, pools.weights * pools.cost)
    known, pays = split_cells(kernels, view.phases), split_cells(reward, view.phases)
    kind: dict[str, Any] = {"phase_of": view.phase_of, "exact": view.exact, "tolerance": TOLERANCE}
    prices = solve_optimistic_fluid(known, known, pays, *size, **kind).prices
    blocks = Blocks(kernels, reward, pools.masses, pools.block_of, view.steps, pools.budget)
    return np.asarray(blocks.advantage(prices)[pools.block_of])


def whittle_table(pools: Pools, kernels: FloatArray, reward: FloatArray, discount: float) -> FloatArray:
    """(N, S) discounted Whittle indices; kernels (C,S,2,S) and reward (C,S,2) of every block; 0 in padded states.

    Estimates need not be indexable: then these are the prices at which the sweep makes a state passive.
    """
    index = np.zeros(reward.shape[:2])
    for c, group in enumerate(pools.group):
        size = int(pools.real[group].sum())
        index[c, :size], _ = arm_whittle(kernels[c, :size, :, :size], reward[c, :size], discount)
    return index[pools.block_of]


def infinite_discount(view: View) -> float:
    """Return the discount of an infinite horizon whose mean length is that of an episode: 1 - 1/H."""
    return 1.0 - 1.0 / view.horizon
