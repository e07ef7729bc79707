"""Backward induction under budget prices, and the occupancy that a policy produces."""

import numpy as np

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
    """Solve each block's decision problem when activating at step h costs prices[h] (H,).

    kernels (C*K,S,2,S), reward (C*K,S,2), by cell; phase_of (H,). Writes values (C,H+1,S), the best reward from step h on,
    and advantage (C,H,S), the gain of activating over staying passive: Q(s,1) - Q(s,0), price included.
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
    kernels: FloatArray, phase_of: IntArray, start: FloatArray, budget: FloatArray, share: FloatArray, occupancy: FloatArray
) -> None:
    """Follow the blocks' masses when a share (C,H,S) of each state's mass is activated.

    kernels (C*K,S,2,S) by cell, phase_of (H,); start (C,S) masses; budget (H,). Writes occupancy (C,H,S,2).
    Where the active mass of a step exceeds its budget, the shares of that step are scaled down, in place: the result is
    always feasible.
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


@compiled
def steer(
    kernels: FloatArray,
    kernel_of: IntArray,
    reward: FloatArray,
    phase_of: IntArray,
    start: FloatArray,
    budget: FloatArray,
    least: float,
    values: FloatArray,
    share: FloatArray,
    occupancy: FloatArray,
) -> None:
    """Follow the blocks' masses under shares (C,H,S) as `forward` does, but meet every budget (H,) at the least cost.

    Excess is taken from the states with the smallest gain of activating, and missing mass goes to those with the largest,
    if that is more than `least`: 0, or minus infinity if the budget is exact. Gains are measured by the values
    (C,H+1,S) of a dual solution. If the plan needs every activation (a conveyor that runs backward as soon as some are
    missing), scaling all shares down would let errors of rounding grow from step to step.
    kernels (C*L,S,2,S), kernel_of (H,): which of the L; reward (C*K,S,2) by cell.
    """
    blocks, horizon, states = share.shape
    rows, phases = kernels.shape[0] // blocks, reward.shape[0] // blocks
    occupancy[:, 0, :, 0] = start
    worth, active = np.empty(blocks * states), np.empty(blocks * states)
    for h in range(horizon):
        for c in range(blocks):
            cell, row = c * phases + phase_of[h], c * rows + kernel_of[h]
            for s in range(states):
                gain = reward[cell, s, 1] - reward[cell, s, 0]
                for y in range(states):
                    gain += (kernels[row, s, 1, y] - kernels[row, s, 0, y]) * values[c, h + 1, y]
                worth[c * states + s] = gain
                active[c * states + s] = share[c, h, s] * occupancy[c, h, s, 0]
        level(worth, active, occupancy[:, h, :, 0], budget[h], least)
        for c in range(blocks):
            row = c * rows + kernel_of[h]
            if h + 1 < horizon:
                occupancy[c, h + 1, :, 0] = 0.0
            for s in range(states):
                mass = occupancy[c, h, s, 0]
                if mass == 0.0:
                    occupancy[c, h, s, 1] = 0.0
                    continue
                busy = min(active[c * states + s], mass)
                share[c, h, s] = busy / mass
                occupancy[c, h, s, 1] = busy
                occupancy[c, h, s, 0] = mass - busy
                if h + 1 < horizon:
                    for y in range(states):
                        moved = (mass - busy) * kernels[row, s, 0, y] + busy * kernels[row, s, 1, y]
                        occupancy[c, h + 1, y, 0] += moved


@compiled
def level(worth: FloatArray, active: FloatArray, mass: FloatArray, budget: float, least: float) -> None:
    """Change the active part (C*S,) of the masses (C,S) until it is the budget: less where gains are smallest, or more where
    they are largest and above `least`.
    """
    states, missing = mass.shape[1], budget - active.sum()
    if missing == 0.0:
        return
    order = np.argsort(worth)
    for i in range(order.size):
        if missing < 0.0:
            node = order[i]
            cut = min(active[node], -missing)
            active[node] -= cut
            missing += cut
        elif missing > 0.0:
            node = order[order.size - 1 - i]
            if worth[node] <= least:
                break
            more = min(mass[node // states, node % states] - active[node], missing)
            active[node] += more
            missing -= more
        else:
            break
