"""The Hessian of compact rows, and its preconditioner, as products: for conjugate gradients.

A row of mass m adds m (g g' + J) to the Hessian, g = -e(h,s) + p - a cost e(price h), J = diag(p_F) - p_F p_F' / sigma (see
rows.py), F: what is not pinned. The preconditioner is L A L', where A has the masses of the nodes on its diagonal, and each
price joined to the nodes of its step; L is 1 on the diagonal and -p, averaged over the actions, between steps:

    A[h] = [ diag(m0 + m1)  cost m1 ]         E[h] = - sum over a of m p,   L' = 1 + A^-1 E.
           [ cost m1'       sum cost^2 m1 ]

It is what elimination of step after step leaves where every step passes on its row sums only. It is exact for potentials
that are the same at all nodes, for which the Hessian is nearly singular. A deadline arm takes 20 to 40 products.
"""

from typing import NamedTuple

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray
from rmab.common.compile import compiled
from rmab.solvers.projection.compiled.compact import Compact
from rmab.solvers.projection.compiled.program import Program

LEAST = 1e-280  # mass of a node that counts
SMALLEST = 1e-6  # part of its diagonal entry that is left to a price at least: less where nearly all mass is active


class Curvature(NamedTuple):
    """The rows at a point: mass (N,H,S,2), weighted, and sigma. Of own entries, whole and loose: what p and p_F are beyond
    the common part. loose_mass (N,H,S): the diagonal of J, summed. free (H,): which prices move.
    """

    mass: FloatArray
    sigma: FloatArray
    whole: FloatArray
    loose: FloatArray
    loose_mass: FloatArray
    free: BoolArray


@compiled
def measure(program: Program, compact: Compact, curvature: Curvature) -> None:
    """Write whole, loose and loose_mass."""
    _, tilted, _, alpha, _, begin, counts, _, _, state, _, low, high, p = compact
    mass, _, whole, loose, loose_mass, _ = curvature
    arms, horizon, states = program.reach.shape
    for n in range(arms):
        loose_mass[n] = 0.0
        for h in range(horizon - 1):
            common = 0.0
            for s in range(states):
                for a in range(2):
                    r, multiple, m = ((n * horizon + h) * states + s) * 2 + a, alpha[n, h, s, a], mass[n, h, s, a]
                    if m > 0.0:
                        common += m * multiple
                        for k in range(begin[r], begin[r] + counts[r]):
                            usual = multiple * tilted[n, h, state[k]]
                            whole[k] = p[k] - usual
                            loose[k] = whole[k] if low[k] < p[k] < high[k] else -usual
                            loose_mass[n, h + 1, state[k]] += m * loose[k]
            for y in range(states):
                loose_mass[n, h + 1, y] += common * tilted[n, h, y]


@compiled
def solve_block(
    program: Program, curvature: Curvature, h: int, target: FloatArray, price: float, answer: FloatArray
) -> float:
    """Solve A[h] x = (target[:,h], price): write x of the nodes into answer[:,h], return that of the price."""
    mass, free = curvature.mass, curvature.free
    arms, _, states = target.shape
    diagonal, rest, x = 0.0, 0.0, 0.0
    for n in range(arms if free[h] else 0):
        cost = program.cost[n]
        for s in range(states):
            passive, active = mass[n, h, s, 0], mass[n, h, s, 1]
            if passive + active > LEAST:
                share = active / (passive + active)
                diagonal += cost * cost * active
                rest += cost * cost * passive * share
                price -= cost * share * target[n, h, s]
    if free[h]:
        x = price / max(rest, SMALLEST * diagonal + LEAST)
    for n in range(arms):
        for s in range(states):
            both = mass[n, h, s, 0] + mass[n, h, s, 1]
            answer[n, h, s] = 0.0
            if both > LEAST:
                answer[n, h, s] = (target[n, h, s] - program.cost[n] * mass[n, h, s, 1] * x) / both
    return x


@compiled
def precondition(
    program: Program, compact: Compact, curvature: Curvature, target: FloatArray, prices: FloatArray,
    z: FloatArray, z_prices: FloatArray, product: FloatArray, product_prices: FloatArray,
) -> None:  # fmt: skip
    """Write z (N,H,S) and z_prices (H,), the preconditioned target and prices, and the Hessian's product with them.

    target and prices are overwritten.
    """
    _, tilted, _, alpha, _, begin, counts, _, _, state, _, _, _, _ = compact
    mass, sigma, whole, loose, loose_mass, free = curvature
    arms, horizon, states = target.shape
    ahead, ahead_loose = np.empty((arms, states, 2)), np.empty((arms, states, 2))
    for h in range(horizon - 1):
        x = solve_block(program, curvature, h, target, prices[h], z)
        for n in range(arms):
            common = 0.0
            for s in range(states):
                for a in range(2):
                    m, r = (
                        mass[n, h, s, a] * (z[n, h, s] + a * program.cost[n] * x),
                        ((n * horizon + h) * states + s) * 2 + a,
                    )
                    if m != 0.0:
                        common += m * alpha[n, h, s, a]
                        for k in range(begin[r], begin[r] + counts[r]):
                            target[n, h + 1, state[k]] += m * whole[k]
            for y in range(states):
                target[n, h + 1, y] += common * tilted[n, h, y]
    for h in range(horizon - 1, -1, -1):
        inner = h + 1 < horizon
        for n in range(arms if inner else 0):
            usual = 0.0
            for y in range(states):
                usual += tilted[n, h, y] * z[n, h + 1, y]
            for s in range(states):
                for a in range(2):
                    m, r = mass[n, h, s, a], ((n * horizon + h) * states + s) * 2 + a
                    if m > 0.0:
                        t = alpha[n, h, s, a] * usual
                        f = t
                        for k in range(begin[r], begin[r] + counts[r]):
                            t += whole[k] * z[n, h + 1, state[k]]
                            f += loose[k] * z[n, h + 1, state[k]]
                        ahead[n, s, a], ahead_loose[n, s, a] = t, f
                        target[n, h, s] += m * t
                        prices[h] += m * t * a * program.cost[n]
        x = solve_block(program, curvature, h, target, prices[h], z)
        z_prices[h], product_prices[h] = x, 0.0
        for n in range(arms):
            common = 0.0
            for s in range(states):
                product[n, h, s] = 0.0
                for a in range(2):
                    m, r = mass[n, h, s, a], ((n * horizon + h) * states + s) * 2 + a
                    if not m > 0.0:
                        continue
                    charge = a * program.cost[n]
                    along = m * ((ahead[n, s, a] if inner else 0.0) - z[n, h, s] - charge * x)
                    product[n, h, s] -= along
                    product_prices[h] -= along * charge
                    if inner:
                        total = sigma[n, h, s, a]
                        across = m * ahead_loose[n, s, a] / total if total > 0.0 else 0.0
                        common += (along - across) * alpha[n, h, s, a]
                        for k in range(begin[r], begin[r] + counts[r]):
                            product[n, h + 1, state[k]] += along * whole[k] - across * loose[k]
            for y in range(states if inner else 0):
                product[n, h + 1, y] += common * tilted[n, h, y] + loose_mass[n, h + 1, y] * z[n, h + 1, y]
        if not free[h]:
            product_prices[h] = 0.0
