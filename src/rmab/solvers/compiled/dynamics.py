"""Backward induction under budget prices, and the occupancy that a policy produces."""

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled


@compiled
def backward(
    kernels: FloatArray,
    reward: FloatArray,
    phase_of: IntArray,
    prices: FloatArray,
    values: FloatArray,
    advantage: FloatArray,
) -> None:
    """Solve each block's own decision problem when activating at step h costs prices[h] (H,).

    kernels (C*K,S,2,S), reward (C*K,S,2), by cell; phase_of (H,). Writes values (C,H+1,S), the best reward from step h on,
    and advantage (C,H,S), what activating is worth over staying passive: Q(s,1) - Q(s,0), price included.
    """
    blocks, states, horizon = values.shape[0], values.shape[2], prices.size
    phases = kernels.shape[0] // blocks
    for c in range(blocks):
        values[c, horizon] = 0.0
        for h in range(horizon - 1, -1, -1):
            coming, cell = values[c, h + 1], c * phases + phase_of[h]
            for s in range(states):
                passive, active = reward[cell, s, 0], reward[cell, s, 1] - prices[h]
                for y in range(states):
                    passive += kernels[cell, s, 0, y] * coming[y]
                    active += kernels[cell, s, 1, y] * coming[y]
                values[c, h, s] = max(passive, active)
                advantage[c, h, s] = active - passive


@compiled
def forward(
    kernels: FloatArray,
    phase_of: IntArray,
    start: FloatArray,
    budget: FloatArray,
    share: FloatArray,
    occupancy: FloatArray,
) -> None:
    """Follow the blocks' masses when a share (C,H,S) of each state's mass is activated.

    kernels (C*K,S,2,S) by cell, phase_of (H,); start (C,S) masses; budget (H,). Writes occupancy (C,H,S,2).
    Where the active mass of a step exceeds its budget, the shares of that step are scaled down, in place: what comes out is
    feasible, always.
    """
    blocks, horizon, states = share.shape
    phases = kernels.shape[0] // blocks
    for c in range(blocks):
        for s in range(states):
            occupancy[c, 0, s, 0] = start[c, s]  # the whole mass waits in the passive slot until it is split below
    for h in range(horizon):
        total = 0.0
        for c in range(blocks):
            for s in range(states):
                total += share[c, h, s] * occupancy[c, h, s, 0]
        scale = budget[h] / total if total > budget[h] else 1.0
        for c in range(blocks):
            cell = c * phases + phase_of[h]
            if h + 1 < horizon:
                occupancy[c, h + 1, :, 0] = 0.0
            for s in range(states):
                mass = occupancy[c, h, s, 0]
                share[c, h, s] *= scale
                active = mass * share[c, h, s]
                occupancy[c, h, s, 1] = active
                occupancy[c, h, s, 0] = mass - active
                if h + 1 == horizon or mass == 0.0:
                    continue
                for y in range(states):
                    moved = (mass - active) * kernels[cell, s, 0, y] + active * kernels[cell, s, 1, y]
                    occupancy[c, h + 1, y, 0] += moved
