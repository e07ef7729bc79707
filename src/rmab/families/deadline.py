"""Deadline scheduling (Xiong & Li 2024, case study 2): charging spots for electric vehicles, and which to charge now.

The state of a spot is (D, L): D slots until the vehicle leaves, L units of load left; (0, 0) is an empty spot. Charging
lowers L by one. When a vehicle leaves, or while the spot is empty, a new one comes with probability .7. Charging pays .5 a
unit, and a vehicle that leaves with load left costs .2 times its square.

There are 120 states, not the paper's 109 = 12 * 9 + 1, which leaves out vehicles that are charged but still parked.
Adversaries act on all arms of a class alike, as tariffs do: one factor on the pay and another on the penalty.
"""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import FloatArray, frozen
from rmab.common.checks import as_share, expect
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.families.definition import Task
from rmab.model.adversaries import adversary
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.rewards import RewardModel
from rmab.planners.whittle import Whittle
from rmab.play.policy import IndexPolicy

MOST_SLOTS, MOST_LOAD = 12, 9
ARRIVAL = 0.7
PAY, PENALTY = 0.5, 0.2
RANGE = (-24.3, 0.75)
PARKED = [(d, load) for d in range(1, MOST_SLOTS + 1) for load in range(MOST_LOAD + 1) if (d, load) != (MOST_SLOTS, 0)]
STATES = [(0, 0), *PARKED]
NUMBER = {state: s for s, state in enumerate(STATES)}


def deadline(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 100,
    budget: int = 30,
    horizon: int = 100,
    episodes: int = 100,
    grouped: bool = True,
    known_support: bool = False,
) -> Task:
    """Electric-vehicle charging: 100 identical spots, 30 chargers.

    grouped: declare the spots exchangeable (one class). known_support: declare the impossible transitions.
    """
    check_memory(f"a task of {arms} arms", 128.0 * len(STATES) * arms)  # parts of the rewards, factors, products and sums
    _, adversary_seed = seeds.spawn(2)
    table = kernel()
    support = table > 0 if known_support else None
    names = [f"{d},{load}" if d else "empty" for d, load in STATES]
    spots = Arms.identical(table, arms, state_names=names, support=support)
    if not grouped:
        spots = Arms(spots.kernels, state_names=names, support=spots.support)
    parts = np.broadcast_to(reward_parts()[:, np.newaxis], (2, arms, len(STATES), 2))
    stakes = RewardModel(parts, *RANGE, units=np.zeros(arms))
    opponent = adversary(against, stakes, episodes, np.random.default_rng(adversary_seed))
    return Task(f"deadline@{against}", Problem(spots, 0, budget, horizon), opponent)


def kernel() -> FloatArray:
    """(S, 2, S) kernel of one spot."""
    table = np.zeros((len(STATES), 2, len(STATES)))
    for s, (d, load) in enumerate(STATES):
        for a in (0, 1):
            if d > 1:
                table[s, a, NUMBER[d - 1, max(load - a, 0)]] = 1.0
                continue
            table[s, a, NUMBER[0, 0]] = 1 - ARRIVAL
            for slots in range(1, MOST_SLOTS + 1):
                for needed in range(1, MOST_LOAD + 1):
                    table[s, a, NUMBER[slots, needed]] = ARRIVAL / (MOST_SLOTS * MOST_LOAD)
    return table


def reward_parts() -> FloatArray:
    """(2, S, 2): the pay for charging, and the penalty for load left at departure."""
    parts = np.zeros((2, len(STATES), 2))
    for s, (d, load) in enumerate(STATES):
        for a in (0, 1):
            if load > 0:
                parts[0, s, a] = PAY * a
                parts[1, s, a] = -PENALTY * (load - a) ** 2 if d == 1 else 0.0
    return parts


def least_laxity_first(problem: Problem) -> IndexPolicy:
    """Charge the vehicles with the fewest slots to spare, D - L, first; charged and empty spots come last.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`; arms of another number of states are a ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at every step.

    Examples
    --------
    >>> import rmab
    >>> spots = rmab.task("deadline", arms=4, budget=1, horizon=5, episodes=2)
    >>> rmab.least_laxity_first(spots.problem).table.shape
    (4, 120)
    """
    return _ranked(problem, [MOST_SLOTS + MOST_LOAD - (d - load) if load else 0 for d, load in STATES])


def earliest_deadline_first(problem: Problem) -> IndexPolicy:
    """Charge the vehicles that leave first; charged and empty spots come last.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`; arms of another number of states are a ModelError.

    Returns
    -------
    IndexPolicy
        With a table of shape (N, S), the same at every step.

    Examples
    --------
    >>> import rmab
    >>> rmab.earliest_deadline_first(rmab.task("deadline").problem).table.shape
    (100, 120)
    """
    return _ranked(problem, [MOST_SLOTS + 1 - d if load else 0 for d, load in STATES])


def deadline_whittle(problem: Problem, *, discount: float = 1.0) -> Whittle:
    """Return the Whittle indices of charging spots in closed form (Yu, Xu & Tong 2018).

    The index is 0 if L = 0, .5 if 0 < L < D, and otherwise .5 plus what the unit saves at departure, discounted:
    .2 discount^(D-1) ((L-D+1)^2 - (L-D)^2). With discount 1 it is the limit: then it does not matter when a vehicle with
    slots to spare is charged, and every price in a range is an index.

    Parameters
    ----------
    problem : Problem
        Of charging spots, as in the task `deadline`; arms of another number of states are a ModelError.
    discount : float, optional
        In [0, 1].

    Returns
    -------
    Whittle
        With an index of shape (N, S).

    Examples
    --------
    >>> import rmab
    >>> spots = rmab.task("deadline", arms=4, budget=1, horizon=5, episodes=2)
    >>> rmab.deadline_whittle(spots.problem).index.shape
    (4, 120)
    """
    discount = as_share(discount, "discount")
    _check_spots(problem)
    index = np.zeros(len(STATES))
    for s, (d, load) in enumerate(STATES):
        if load > 0:
            late = (load - d + 1) ** 2 - (load - d) ** 2 if load >= d else 0
            index[s] = PAY + PENALTY * discount ** (d - 1) * late
    count = problem.arms.count
    return Whittle(frozen(np.tile(index, (count, 1))), frozen(np.ones(count, dtype=bool)), problem.budget)


def _check_spots(problem: Problem) -> None:
    expect(problem, Problem, "problem", "; of a task, it is task.problem")
    if problem.arms.states != len(STATES):
        raise ModelError(f"a charging spot has {len(STATES)} states, these arms have {problem.arms.states}")


def _ranked(problem: Problem, index: list[int]) -> IndexPolicy:
    _check_spots(problem)
    return IndexPolicy(np.tile(np.array(index, dtype=float), (problem.arms.count, 1)), problem.budget)
