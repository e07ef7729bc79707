"""Deadline scheduling (Xiong & Li 2024, case study 2): charging spots for electric vehicles, and which to charge now.

The state of a spot is (D, L): D slots until the vehicle leaves, L units of load left; (0, 0) is an empty spot. Charging
lowers L by one. When a vehicle leaves, or while the spot is empty, a new one comes with probability .7. Charging pays .5 a
unit, and a vehicle that leaves with load left costs .2 times its square.

There are 120 states, not the paper's 109 = 12 * 9 + 1, which leaves out vehicles that are charged but still parked.
Adversaries act on all arms of a class alike, as tariffs do: one factor on the pay and another on the penalty.

Here are the paper's numbers, and rules for charging; `rmab.tasks.charging` makes the tasks.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, as_share, frozen
from rmab.errors import ModelError
from rmab.model import Problem
from rmab.planners.whittle import WhittleResult
from rmab.play import IndexPolicy
from rmab.tasks.spots import MOST_LOAD, MOST_SLOTS, Spots, kernel as kernel_of, reward_parts as parts_of, states_of, vehicles

__all__ = ["deadline_whittle", "earliest_deadline_first", "least_laxity_first"]

ARRIVAL = 0.7
PAY, PENALTY = 0.5, 0.2
STATES = states_of(MOST_SLOTS, MOST_LOAD)


def _paper() -> Spots:
    one = np.ones(1)
    return Spots(1, ARRIVAL * one, None, PAY * one, PENALTY * one)


def kernel() -> FloatArray:
    """(S, 2, S) kernel of one of the paper's spots."""
    return np.asarray(kernel_of(_paper(), MOST_SLOTS, MOST_LOAD)[0])


def reward_parts() -> FloatArray:
    """(2, S, 2): the paper's pay for charging, and penalty for load left at departure."""
    return np.asarray(parts_of(_paper(), MOST_SLOTS, MOST_LOAD)[:, 0])


def least_laxity_first(problem: Problem) -> IndexPolicy:
    """Charge the vehicles with the fewest slots to spare, D - L, first; charged and empty spots never.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`, of any number of slots and units; other arms are a ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at every step.

    Examples
    --------
    >>> import rmab
    >>> spots = rmab.make_task("deadline", arms=4, budget=1, horizon=5, episodes=2)
    >>> rmab.tasks.deadline.least_laxity_first(spots.problem).table.shape
    (4, 120)
    """
    spots = vehicles(problem, "least_laxity_first")
    most = sum(max(one) for one in zip(*spots, strict=True))
    return _ranked(problem, [most - (d - load) if load else 0 for d, load in spots])


def earliest_deadline_first(problem: Problem) -> IndexPolicy:
    """Charge the vehicles that leave first; charged and empty spots never.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`, of any number of slots and units; other arms are a ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at every step.

    Examples
    --------
    >>> import rmab
    >>> rmab.tasks.deadline.earliest_deadline_first(rmab.make_task("deadline").problem).table.shape
    (100, 120)
    """
    spots = vehicles(problem, "earliest_deadline_first")
    slots = max(d for d, _ in spots)
    return _ranked(problem, [slots + 1 - d if load else 0 for d, load in spots])


def deadline_whittle(
    problem: Problem, *, discount: float | None = None, pay: float = PAY, penalty: float = PENALTY
) -> WhittleResult:
    """Return the Whittle indices of charging spots in closed form (Yu, Xu & Tong 2018).

    The index is 0 if L = 0, the pay if 0 < L < D, and otherwise the pay plus what the unit saves at departure, discounted:
    penalty discount^(D-1) ((L-D+1)^2 - (L-D)^2). With discount 1 it is the limit: then it does not matter when a vehicle
    with slots to spare is charged, and every price in a range is an index.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`, of any number of slots and units; other arms, and more than one phase,
        are a ModelError.
    discount : float, optional
        In [0, 1]; the problem's by default.
    pay, penalty : float, optional
        What a unit pays, less its energy, and what a departure costs, times the square of the units left; the paper's.

    Returns
    -------
    Whittle
        With an index of shape (N, S).

    Examples
    --------
    >>> import rmab
    >>> spots = rmab.make_task("deadline", arms=4, budget=1, horizon=5, episodes=2)
    >>> rmab.tasks.deadline.deadline_whittle(spots.problem).index.shape
    (4, 120)
    """
    if not np.isfinite([pay, penalty]).all() or penalty < 0:
        raise ModelError(f"pay and penalty must be numbers, and penalty 0 or more, got {pay!r:.40} and {penalty!r:.40}")
    spots = vehicles(problem, "deadline_whittle")
    ahead = problem.discount if discount is None else as_share(discount, "discount")
    if problem.phases > 1:
        told = "the closed form is for spots that do not depend on the time"
        raise ModelError(
            f"deadline_whittle: {told}, these have {problem.phases} phases; rmab.planners.lagrangian_index plans them"
        )
    index = np.zeros(len(spots))
    for s, (d, load) in enumerate(spots):
        if load > 0:
            late = (load - d + 1) ** 2 - (load - d) ** 2 if load >= d else 0
            index[s] = pay + penalty * ahead ** (d - 1) * late
    count = problem.arms.count
    return WhittleResult(frozen(np.tile(index, (count, 1))), frozen(np.ones(count, dtype=bool)), problem)


def _ranked(problem: Problem, index: list[int]) -> IndexPolicy:
    return IndexPolicy.of(problem, np.tile(np.array(index, dtype=float), (problem.arms.count, 1)), rule="at-most")
