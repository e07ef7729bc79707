"""Who gets an action over the periods ahead, group by group, and who never does: by simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray
from rmab.estimation.fit import Fit
from rmab.planners.indices import lagrangian_index
from rmab.play import simulate

EPISODES = 4


@dataclass(frozen=True)
class Reach:
    """Actions that a group gets.

    Attributes
    ----------
    group : str
        Name of the group.
    arms : int
        Number of arms.
    now : int
        Number of them on the list.
    each : float
        Actions that one of them gets over the horizon, on average.
    never : float
        Share of them that gets none.
    """

    group: str
    arms: int
    now: int
    each: float
    never: float


def estimate_reach(fit: Fit, budget: int, horizon: int, listed: BoolArray, *, seed: int = 0) -> list[Reach]:
    """Return who gets an action by the plan of a model, group by group; listed (N',): who is on the list now."""
    problem = fit.problem(budget, horizon)
    policy = lagrangian_index(problem, fit.reward)
    group, count = fit.group_of[fit.present], len(fit.groups)
    turns, never = np.zeros(group.size), np.zeros(group.size)
    for k in range(EPISODES):
        acted = simulate(problem, policy, fit.reward, np.random.default_rng((seed, 5, k))).actions.sum(axis=0)
        turns += acted / EPISODES
        never += (acted == 0) / EPISODES
    sizes, now = (np.bincount(one, minlength=count) for one in (group, group[listed]))
    each, lost = (np.bincount(group, weights=one, minlength=count) / np.maximum(sizes, 1) for one in (turns, never))
    rows = zip(fit.groups, sizes.tolist(), now.tolist(), each.tolist(), lost.tolist(), strict=True)
    return [Reach(*row) for row in rows if row[1]]
