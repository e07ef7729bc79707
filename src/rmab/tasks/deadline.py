"""Deadline scheduling (Xiong & Li 2024, case study 2): choose which electric vehicles to charge.

The state of a charging spot is (D, L): D slots until the vehicle leaves, L units of load left; (0, 0) is an empty spot.
Charging lowers L by one. When a vehicle leaves, or while the spot is empty, a new one arrives with probability .7. Charging
pays .5 per unit, and a vehicle that leaves with load left costs .2 times its square.

There are 120 states instead of the paper's 109 = 12 * 9 + 1, which omits vehicles that are charged but still parked.
Adversaries act equally on all arms of a class, like tariffs: one factor on the pay and another on the penalty.

This module has the paper's numbers and heuristic policies; `rmab.tasks.charging` builds the tasks.
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
    """(2, S, 2) pay for charging and penalty for load left at departure, as in the paper."""
    return np.asarray(parts_of(_paper(), MOST_SLOTS, MOST_LOAD)[:, 0])


def least_laxity_first(problem: Problem) -> IndexPolicy:
    """Return the policy that charges the vehicles with the least laxity D - L first, and never charged or empty spots.

    Parameters
    ----------
    problem : Problem
        Charging spots, as in the task `deadline`, with any number of slots and units; other arms raise ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at each step.

    Examples
    --------
    >>> import rmab
    >>> spots = rmab.make_task("deadline", arms=4, budget=1, horizon=5, episodes=2)
    >>> rmab.tasks.deadline.least_laxity_first(spots.problem).table.shape
    (4, 120)
    """
    spots = vehicles(problem, "least_laxity_first")
    most = sum(max(one) for one in zip(*spots, strict=True))
    return _rank_states(problem, [most - (d - load) if load else 0 for d, load in spots])


def earliest_deadline_first(problem: Problem) -> IndexPolicy:
    """Return the policy that charges the vehicles with the earliest deadline first, and never charged or empty spots.

    Parameters
    ----------
    problem : Problem
        Charging spots, as in the task `deadline`, with any number of slots and units; other arms raise ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at each step.

    Examples
    --------
    >>> import rmab
    >>> rmab.tasks.deadline.earliest_deadline_first(rmab.make_task("deadline").problem).table.shape
    (100, 120)
    """
    spots = vehicles(problem, "earliest_deadline_first")
    slots = max(d for d, _ in spots)
    return _rank_states(problem, [slots + 1 - d if load else 0 for d, load in spots])


def deadline_whittle(
    problem: Problem, *, discount: float | None = None, pay: float = PAY, penalty: float = PENALTY
) -> WhittleResult:
    """Return the Whittle indices of charging spots in closed form (Yu, Xu & Tong 2018).

    The index is 0 if L = 0, the pay if 0 < L < D, and otherwise the pay plus the discounted saving at departure:
    penalty discount^(D-1) ((L-D+1)^2 - (L-D)^2). With discount 1 it is the limit: the time of charging a vehicle
    with laxity then does not matter, and every price in a range is an index.

    Parameters
    ----------
    problem : Problem
        Charging spots, as in the task `deadline`, with any number of slots and units; other arms, and more than one phase,
        raise ModelError.
    discount : float, optional
        In [0, 1]; the problem's by default.
    pay, penalty : float, optional
        Pay of a unit, minus the price of its energy, and penalty factor of the squared units left; by default the paper's.

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
        why = f"the closed form is for one phase, the problem has {problem.phases}"
        raise ModelError(f"deadline_whittle: {why}; use rmab.planners.lagrangian_index")
    index = np.zeros(len(spots))
    for s, (d, load) in enumerate(spots):
        if load > 0:
            late = (load - d + 1) ** 2 - (load - d) ** 2 if load >= d else 0
            index[s] = pay + penalty * ahead ** (d - 1) * late
    count = problem.arms.count
    return WhittleResult(frozen(np.tile(index, (count, 1))), frozen(np.ones(count, dtype=bool)), problem)


def _rank_states(problem: Problem, index: list[int]) -> IndexPolicy:
    return IndexPolicy.of(problem, np.tile(np.array(index, dtype=float), (problem.arms.count, 1)), rule="at-most")
