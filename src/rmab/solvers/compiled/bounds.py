"""Occupancies of a fixed policy over all kernels of their boxes: the largest, the smallest, and dilated bonuses."""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.optimism import Rows, best_mean, rank


@compiled
def occupancy_bounds(
    rows: Rows, phase_of: IntArray, share: FloatArray, start: FloatArray, wanted: BoolArray, sign: float, bound: FloatArray
) -> None:
    """Comp-UOB (Jin et al. 2020, Algorithm 3): bound (C,H,S,2), the most (sign 1) or least (-1) mass of every pair.

    A share (C,H,S) of each state's mass is active; start (C,S) masses; phase_of (H,). Only the nodes wanted (C,H,S)
    are computed: one backward induction each, from the indicator of the node to the start. The set has one box per pair and
    step, so every step may take its own kernel.
    """
    blocks, horizon, states = share.shape
    values, order, phases = np.empty((blocks, 2, states)), np.arange(states), rows.spare.shape[0] // blocks
    for n in range(blocks):
        for last in range(horizon):
            for target in range(states):
                bound[n, last, target] = 0.0
                if not wanted[n, last, target]:
                    continue
                values[n, last % 2] = 0.0
                values[n, last % 2, target] = sign
                for h in range(last - 1, -1, -1):
                    coming, cell = (h + 1) % 2, n * phases + phase_of[h]
                    rank(values, n, coming, order)
                    for s in range(states):
                        passive = best_mean(rows, cell, s, 0, values, n, coming, order)
                        busy = best_mean(rows, cell, s, 1, values, n, coming, order)
                        values[n, h % 2, s] = (1.0 - share[n, h, s]) * passive + share[n, h, s] * busy
                reached = 0.0
                for s in range(states):
                    reached += start[n, s] * values[n, 0, s]
                reached *= sign
                bound[n, last, target, 0] = (1.0 - share[n, last, target]) * reached
                bound[n, last, target, 1] = share[n, last, target] * reached


@compiled
def dilated_bonus(
    rows: Rows, phase_of: IntArray, share: FloatArray, local: FloatArray, factor: float, bonus: FloatArray
) -> None:
    """Bonus (C,H,S,2) of Luo et al. 2021: local (C,H,S), plus factor times the best mean over the boxes of the next."""
    blocks, horizon, states = share.shape
    values, order, phases = np.empty((blocks, 2, states)), np.arange(states), rows.spare.shape[0] // blocks
    for n in range(blocks):
        values[n, horizon % 2] = 0.0
        for h in range(horizon - 1, -1, -1):
            coming, cell = (h + 1) % 2, n * phases + phase_of[h]
            rank(values, n, coming, order)
            for s in range(states):
                passive = best_mean(rows, cell, s, 0, values, n, coming, order)
                busy = best_mean(rows, cell, s, 1, values, n, coming, order)
                bonus[n, h, s, 0] = local[n, h, s] + factor * passive
                bonus[n, h, s, 1] = local[n, h, s] + factor * busy
                values[n, h % 2, s] = (1.0 - share[n, h, s]) * bonus[n, h, s, 0] + share[n, h, s] * bonus[n, h, s, 1]
