"""The projection by an independent solver: the primal programme in CVXPY, solved by Clarabel.

The tightest formulation that we know: nodes that carry no mass are dropped, and so are bounds that cannot bind.
"""

import time
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse

from rmab.common.arrays import FloatArray
from rmab.solvers.projection.compiled.program import Program


@dataclass(frozen=True)
class Answer:
    """z (N,H,S,2,S), budget prices (H,), objective, and the solver's own time, in seconds of the processor."""

    z: FloatArray
    prices: FloatArray
    value: float
    seconds: float


def entries(program: Program) -> tuple[np.ndarray, ...]:
    """Return the coordinates (n, h, s, a, y) of the entries that may carry mass."""
    arms, horizon, states = program.reach.shape
    open_ = np.zeros((arms, horizon, states, 2, states), dtype=bool)
    for n, h, s, a in np.argwhere(np.broadcast_to(program.reach[..., None], (arms, horizon, states, 2))):
        cell = n * program.phases + program.phase[h]
        open_[n, h, s, a, program.successors[cell, s, a, : program.counts[cell, s, a]]] = True
    open_[:, program.idle, :, 1] = False
    return np.nonzero(open_)


def clarabel(program: Program, **options: float) -> Answer:
    """Solve the programme with Clarabel; ball or box."""
    arms, horizon, states = program.reach.shape
    budget = program.budget
    n, h, s, a, y = entries(program)
    cell = n * program.phases + program.phase[h]
    size = n.size
    z = cp.Variable(size, nonneg=True)
    reference = program.reference[n, h, s, a, y]
    weights = program.weights[n]
    node = np.full((arms, horizon, states), -1)
    node[program.reach] = np.arange(program.reach.sum())
    out = sparse.coo_array((np.ones(size), (node[n, h, s], np.arange(size))), shape=(program.reach.sum(), size))
    inner = h + 1 < horizon
    into = sparse.coo_array(
        (np.ones(inner.sum()), (node[n, h + 1 - (~inner), y][inner], np.flatnonzero(inner))), shape=out.shape
    )
    begin = np.zeros(out.shape[0])
    begin[node[:, 0][program.reach[:, 0]]] = program.start[program.reach[:, 0]]
    active = sparse.coo_array(
        ((weights * program.cost[n])[a == 1], (h[a == 1], np.flatnonzero(a == 1))), shape=(horizon, size)
    )
    bounded = active @ z <= budget
    constraints = [(out - into).tocsr() @ z == begin, bounded]
    row = np.unique(np.ravel_multi_index((n, h, s, a), (arms, horizon, states, 2)), return_inverse=True)[1]
    total = sparse.coo_array((np.ones(size), (row, np.arange(size))), shape=(row.max() + 1, size)).tocsr()
    if program.radius is not None:
        off = cp.Variable(size, nonneg=True)
        centre = sparse.diags_array(program.low[cell, s, a, y]) @ total[row]
        deviation = z - centre @ z
        first = np.unique(row, return_index=True)[1]
        radius = sparse.diags_array(program.radius[cell, s, a][first]) @ total
        constraints += [deviation <= off, -deviation <= off, total @ off <= radius @ z]
    else:
        for bound, sign, binds in (
            (program.high, 1, program.high[cell, s, a, y] < 1),
            (program.low, -1, program.low[cell, s, a, y] > 0),
        ):
            k = np.flatnonzero(binds)
            if k.size:
                limit = sparse.diags_array(bound[cell, s, a, y][k]) @ total[row[k]]
                constraints.append(sign * (sparse.eye_array(size).tocsr()[k] - limit) @ z <= 0)
    problem = cp.Problem(cp.Minimize(weights @ cp.kl_div(z, reference)), constraints)
    begin, processor = time.perf_counter(), time.process_time()
    problem.solve(solver=cp.CLARABEL, **options)
    share = min(1.0, (time.process_time() - processor) / (time.perf_counter() - begin))  # Clarabel reads the clock
    full = np.zeros(program.reference.shape)
    full[n, h, s, a, y] = z.value
    dropped = program.weights @ program.reference.sum(axis=(1, 2, 3, 4)) - weights @ reference
    return Answer(
        full, np.asarray(bounded.dual_value), float(problem.value + dropped), share * problem.solver_stats.solve_time
    )
