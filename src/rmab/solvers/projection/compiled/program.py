"""The arrays of one projection, in a few tuples: what is asked, what the rows answer, and the factored Hessian."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled

FEW_STATES = 12  # up to so many, eight arms are worked on at a time (`few.py`)
W, V, Q, LOW, HIGH, P = range(6)  # lines of a row's table: reference, potential, w exp(v), bounds or centre, answer


class Program(NamedTuple):
    """What is projected onto what.

    reference (N,H,S,2,S). The confidence sets are boxes low..high (C,S,2,S) where radius is None, and otherwise L1 balls of
    radius (C,S,2) around low. successors (C,S,2,S): the possible next states, in the first counts (C,S,2) places. reach
    (N,H,S): whether mass can get there. budget (H,); idle (H,): it is 0, nobody may be active; binds (H,): it is neither 0
    nor enough for everybody. start (N,S) masses, weights (N,). phase (H,): of every step, one of so many phases. The set of
    row (n,h,s,a) is that of cell n * phases + phase[h] of the C (`rmab.model.time`). cost (N,): of an activation. total: the
    weighted sum of the reference.
    """

    reference: FloatArray
    low: FloatArray
    high: FloatArray
    radius: FloatArray | None
    successors: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    reach: BoolArray
    budget: FloatArray
    idle: BoolArray
    binds: BoolArray
    start: FloatArray
    weights: FloatArray
    phase: IntArray
    phases: int
    cost: FloatArray
    total: float

    @property
    def ball(self) -> bool:
        """Whether the sets are balls."""
        return self.radius is not None


class Primal(NamedTuple):
    """The rows (n,h,s,a) at a dual point: kernel (N,H,S,2,S), and mass (N,H,S,2), so that z = mass kernel.

    phi, sigma, constant (N,H,S,2): what `rows.py` says of a row. gradient (N,H,S): that of every arm's own part of the dual.
    """

    kernel: FloatArray
    constant: FloatArray
    mass: FloatArray
    phi: FloatArray
    sigma: FloatArray
    gradient: FloatArray


class Factors(NamedTuple):
    """Every arm's factored Hessian, upper (N,H,S,S), and its coupling to the prices.

    Price h is coupled to the nodes of step h by leave (N,H,S), and to those of step h+1 by enter (N,H,S).
    """

    upper: FloatArray
    leave: FloatArray
    enter: FloatArray


@compiled
def misfit(
    reference: FloatArray, allowed: BoolArray, reach: BoolArray, idle: BoolArray, phase: IntArray, phases: int
) -> int:
    """Return the flat place of the first entry that no reference (N,H,S,2,S) may have, or -1.

    Entries must be finite and not negative; positive where mass can be: the next state is allowed (C,S,2,S), the node within
    reach (N,H,S), and somebody may be active at step h.
    """
    arms, horizon, states, _, _ = reference.shape
    for n in range(arms):
        for h in range(horizon):
            cell = n * phases + phase[h]
            for s in range(states):
                for a in range(2):
                    live = reach[n, h, s] and not (a == 1 and idle[h])
                    for y in range(states):
                        w = reference[n, h, s, a, y]
                        if not (0.0 <= w < np.inf) or (w == 0.0 and live and allowed[cell, s, a, y]):
                            return (((n * horizon + h) * states + s) * 2 + a) * states + y
    return -1
