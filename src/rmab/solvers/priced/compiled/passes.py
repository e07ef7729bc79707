"""One evaluation of the priced plans: a backward and a forward pass, batch by batch.

Everything is measured in units of the temperature: rewards times eta, prices times eta, values times eta.
"""

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.compile import compiled
from rmab.solvers.priced.compiled.program import Program, add_means, move
from rmab.solvers.priced.compiled.steps import soften


@compiled
def backward(
    program: Program, m: int, eta: float, prices: FloatArray, work: FloatArray, share: FloatArray, values: FloatArray
) -> None:
    """Softened backward induction of batch m at scaled prices (H,).

    Writes share (H,S*L), the active share of each node's mass, the values of step 0 into work[0], and those of
    all steps into values (H,S*L), unless it is empty. Scratch: work (6,S*L).
    """
    reward, phase_of, uniform = program.reward, program.phase_of, program.uniform
    batches, states, _ = program.start.shape
    horizon, phases, size = phase_of.size, reward.shape[0] // batches, work.shape[1]
    here, ahead, x, soft, scratch = work[0], work[1], work[2], work[3], work[4:]
    for h in range(horizon - 1, -1, -1):
        cell = m * phases + phase_of[h]
        for i in range(size):
            ahead[i] = here[i]
            here[i] = eta * reward[cell, 0, i]
            x[i] = eta * reward[cell, 1, i] - prices[h]
        if h + 1 < horizon:
            add_means(program.rows, cell * states * 2, 2 if uniform[h] > 0.0 else 1, ahead, here, x)
        if uniform[h] > 0.0:
            for i in range(size):
                x[i] -= here[i]
            soften(x, uniform[h], scratch, share[h], soft)
            for i in range(size):
                here[i] += soft[i]
        else:
            share[h] = 0.0
        if values.size > 0:
            for i in range(size):
                values[h, i] = here[i]


@compiled
def evaluate(
    program: Program, first: int, eta: float, prices: FloatArray, share: FloatArray, loose_of: FloatArray, use: FloatArray
) -> float:
    """Compute the plans of the batches from first on at scaled prices (H,): return their value less their payments.

    Writes their share (.,H,S*L); and use (2,H), at every step: the active mass, and the undecided mass.
    loose_of (M,L) has the latter of every block, summed over the steps.
    """
    phase_of, uniform = program.phase_of, program.uniform
    batches, states, lanes = program.start.shape
    horizon, phases, size = phase_of.size, program.reward.shape[0] // batches, states * lanes
    start = program.start.reshape(batches, size)
    ahead, busy, spread, work = np.empty(size), np.empty(size), np.empty(size), np.empty((6, size))
    here, total, none, value = work[0], np.zeros((2, horizon, size)), np.empty((0, 0)), 0.0
    for m in range(first, first + share.shape[0]):
        plan = share[m - first]
        backward(program, m, eta, prices, work, plan, none)
        for i in range(size):
            value += start[m, i] * here[i]
            here[i] = start[m, i]
            spread[i] = 0.0
        for h in range(horizon):
            for i in range(size):
                part = plan[h, i]
                busy[i] = here[i] * part
                here[i] -= busy[i]
                total[0, h, i] += busy[i]
                total[1, h, i] += here[i] * part
                spread[i] += here[i] * part
                ahead[i] = 0.0
            if h + 1 < horizon:
                row = (m * phases + phase_of[h]) * states * 2
                move(program.rows, row, 2 if uniform[h] > 0.0 else 1, here, busy, ahead)
                for i in range(size):
                    here[i] = ahead[i]
        loose_of[m] = 0.0
        for s in range(states):
            for lane in range(lanes):
                loose_of[m, lane] += spread[s * lanes + lane]
    for h in range(horizon):
        use[0, h], use[1, h] = 0.0, 0.0
        for i in range(size):
            use[0, h] += total[0, h, i]
            use[1, h] += total[1, h, i]
    return value


@compiled
def node_values(program: Program, eta: float, prices: FloatArray, values: FloatArray) -> None:
    """Write the values (M,H,S*L) of every node at scaled prices (H,)."""
    size = values.shape[2]
    work, share = np.empty((6, size)), np.empty((prices.size, size))
    for m in range(values.shape[0]):
        backward(program, m, eta, prices, work, share, values[m])


@compiled
def occupy(program: Program, block_of: IntArray, start: FloatArray, share: FloatArray, occupancy: FloatArray) -> None:
    """Write the occupancy (N,H,S,2) of arms that start with these masses (N,S), by the share (C,H,S) of their block."""
    begins, columns, chances = program.rows
    batches, states, lanes = program.start.shape
    horizon, phases = program.phase_of.size, program.reward.shape[0] // batches
    here, ahead = np.empty(states), np.empty(states)
    for n in range(block_of.size):
        m, lane = block_of[n] // lanes, block_of[n] % lanes
        for s in range(states):
            here[s] = start[n, s]
        for h in range(horizon):
            first = (m * phases + program.phase_of[h]) * states * 2
            ahead[:] = 0.0
            for s in range(states):
                busy = here[s] * share[block_of[n], h, s]
                occupancy[n, h, s, 0], occupancy[n, h, s, 1] = here[s] - busy, busy
                for a in range(2):
                    if occupancy[n, h, s, a] > 0.0:
                        for i in range(begins[first + 2 * s + a], begins[first + 2 * s + a + 1]):
                            ahead[columns[i]] += occupancy[n, h, s, a] * chances[i, lane]
            for s in range(states):
                here[s] = ahead[s]


@compiled
def tally(program: Program, first: int, last: int, share: FloatArray, visits: FloatArray) -> None:
    """Write the visits (C*K,S,2) of the cells of blocks from first to last, by their share (.,H,S*L); uniform without it.

    Block `first` begins a batch, the first one of share. Visits are weighted as the masses of the start are, and discounted
    as the kernels are.
    """
    phase_of, uniform = program.phase_of, program.uniform
    batches, states, lanes = program.start.shape
    horizon, phases, size = phase_of.size, program.reward.shape[0] // batches, states * lanes
    start = program.start.reshape(batches, size)
    here, ahead, busy, seen = np.empty(size), np.empty(size), np.empty(size), np.empty((phases, 2, size))
    for m in range(first // lanes, (last + lanes - 1) // lanes):
        for i in range(size):
            here[i] = start[m, i]
            for k in range(phases):
                seen[k, 0, i], seen[k, 1, i] = 0.0, 0.0
        for h in range(horizon):
            k = phase_of[h]
            for i in range(size):
                busy[i] = here[i] * (share[m - first // lanes, h, i] if share.size > 0 else uniform[h])
            for i in range(size):
                here[i] -= busy[i]
                seen[k, 0, i] += here[i]
                seen[k, 1, i] += busy[i]
                ahead[i] = 0.0
            move(program.rows, (m * phases + k) * states * 2, 2, here, busy, ahead)
            for i in range(size):
                here[i] = ahead[i]
        for lane in range(min(lanes, last - m * lanes)):
            cell = (m * lanes + lane) * phases
            for k in range(phases):
                for s in range(states):
                    for a in range(2):
                        visits[cell + k, s, a] = seen[k, a, s * lanes + lane]
