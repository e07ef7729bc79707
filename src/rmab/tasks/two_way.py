"""Two-way: one arm, and no budget to speak of, so that a learner for Markov decision processes is at home.

Two states that follow each other at random, whatever is done. In the first, where it begins, being active pays .9 and being
passive .1; in the second it is the other way round. With two steps the best policy earns 1.8 an episode, to be active always
1.4, never .6. The arm may always be active, and need not be: learners need the rule `at-most`, as `fill` would use up the
budget; `random` fills it, and is always active here.
"""

from __future__ import annotations

import numpy as np

from rmab.common import Episodes, Horizon, check_memory
from rmab.model import Arms, Problem
from rmab.tasks.definition import Task

PAYS = ((0.1, 0.9), (0.9, 0.1))


def two_way(*, episodes: Episodes = 200, horizon: Horizon = 2) -> Task:
    """One arm that should be active in one of its two states: a plain decision process, for rivals made for one."""
    check_memory(f"a task of {episodes} episodes", 64.0 * episodes)
    problem = Problem(Arms(np.full((1, 2, 2, 2), 0.5)), 0, 1, horizon)
    rewards = np.broadcast_to(np.array(PAYS), (episodes, 1, 2, 2))
    return Task.from_rewards(problem, rewards, low=0, high=1, name="two-way")
