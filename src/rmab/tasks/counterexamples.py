"""Small counterexamples to theorems of Xiong & Li (2024), and problems that need more than top-B.

On the first two their regret theorem (Section 5.1) fails, each because of a different step of its proof. Both have one
state, one arm may be active, being passive pays nothing, and nothing is random, so every number here can be computed by
hand. Their rewards are fixed, so they take no adversary.

`greener`  The first arm always pays 2 - sqrt(2) = .586, the second nothing. The proof claims that the reward estimator
    exceeds the truth by at most delta, on average. But an unvisited pair is estimated as 1, and this excess does not
    fade: the plan moves towards the passive arm until it is activated. The two are activated in inverse proportion to how
    fast the plan moves. With estimated passive rewards, as in the formula, activating the first moves the plan by 2 - .586
    against it, activating the second by 2 for it: the first is active .586 of the time, and .586 * .414 = .243 is lost at
    every step, forever. With declared zeros it is 1 - .586 and 1: .707 of the time, and .172 is lost.

`turns`  The arms pay 1 in turns, episode by episode. The proof assumes that the index policy follows the plan. The plan of
mirror descent stays near one half each, which would earn a half per step, like every fixed policy. But the B highest
indices are all or nothing: after the first arm paid, the plan slightly prefers it, so it is active when the second pays.
With full information all of the half is lost, forever, if the first episode pays one half (`first=0.5`): then the plan
prefers the arm that paid last after every episode. If it pays 1, the plan is back at a tie after every other episode. In
exact arithmetic the tie is broken at random, and .25 per step is lost. Rounding errors break the tie one way or the other,
depending on the rate and so on T: anything between nothing (T = 1,200) and .5 (T = 400) is lost. Dependent rounding earns
the half at any length.

`split`  A small problem whose best plan activates a share of each of two kinds of arm at the same step.

    There are two steps and budget 10. The best plan earns 16: it activates 0.6 of A and 0.4 of B at the first step.

    10 arms A: if activated in state 0 they go to state 2, where activating pays 1; otherwise to state 1, which pays nothing.
    10 arms B: activating in state 0 pays 0.5, and nothing pays later.   4 arms C: they go to state 2, which pays 2.

    So the second step has room for 6 of A beside the 4 of C: more of A is useless, and B pays 0.5. Top-B ranks the shares
    and activates all of A, which earns at most 14. As A and C both have index 1, ties reduce this to
    2 * 4 * 10/14 + 10 * 10/14 = 12.86, for any number of copies of the arms: Theorem 1 needs dependent rounding here.

`two-way`  One arm without an effective budget: a plain Markov decision process.

    The two states follow each other at random, independent of the action. In the first, where the arm starts, being active
    pays .9 and being passive .1; in the second it is the reverse. With two steps the best policy earns 1.8 per episode,
    always active 1.4, always passive .6. Learners need the rule `at-most`, as `fill` would use the whole budget; `random`
    uses it, and is always active here.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rmab.common import Episodes, FloatArray, Horizon, check_memory, share
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, Task

WORST = 2.0 - 2.0**0.5  # maximises r (1 - r) / (2 - r), the loss per step with declared zeros


def greener(
    *,
    episodes: Episodes = 400,
    horizon: Horizon = 5,
    pays: Annotated[float, share("reward of the first arm; the second pays nothing")] = WORST,
) -> Task:
    """Build two arms of which one pays: the paper's estimator always returns to the other, and its theorem fails."""
    rewards = _nothing(episodes)
    rewards[:, 0, 0, 1] = pays
    return _task("greener", rewards, horizon)


def turns(
    *,
    episodes: Episodes = 400,
    horizon: Horizon = 5,
    first: Annotated[float, share("reward of the first episode; with 0.5 no plan ever ties")] = 1.0,
) -> Task:
    """Build two arms that pay in turns: the highest indices are late, and the paper's theorem fails."""
    rewards = _nothing(episodes)
    rewards[0::2, 0, 0, 1] = rewards[1::2, 1, 0, 1] = 1.0
    rewards[0] *= first
    return _task("turns", rewards, horizon)


def split() -> Posed:
    """Build a problem whose best plan splits a step between two kinds of arm, so that top-B loses (Theorem 1)."""
    kind = np.repeat([0, 1, 2], (10, 10, 4))
    kernels, pays = np.zeros((3, 3, 2, 3)), np.zeros((3, 3, 2))
    kernels[:, 1:, :, 1] = 1.0
    kernels[0, 0, 0, 1] = kernels[0, 0, 1, 2] = 1.0
    kernels[1, 0, :, 1] = kernels[2, 0, :, 2] = 1.0
    pays[0, 2, 1], pays[1, 0, 1], pays[2, 2, 1] = 1.0, 0.5, 2.0
    problem = Problem(Arms(kernels[kind], groups=kind), 0, 10, 2)
    return problem, RewardModel(pays[kind][np.newaxis], 0.0, 3.0)


def two_way(*, episodes: Episodes = 200, horizon: Horizon = 2) -> Task:
    """Build one arm that should be active in one of its two states: a plain Markov decision process."""
    check_memory(f"a task of {episodes} episodes", 64.0 * episodes)
    problem = Problem(Arms(np.full((1, 2, 2, 2), 0.5)), 0, 1, horizon)
    rewards = np.broadcast_to([[0.1, 0.9], [0.9, 0.1]], (episodes, 1, 2, 2))
    return Task.from_rewards(problem, rewards, low=0, high=1, name="two-way")


def _nothing(episodes: int) -> FloatArray:
    """(T, 2, 1, 2) rewards of zero."""
    check_memory(f"a task of {episodes} episodes", 64.0 * episodes)
    return np.zeros((episodes, 2, 1, 2))


def _task(name: str, rewards: FloatArray, horizon: int) -> Task:
    problem = Problem(Arms(np.ones((2, 1, 2, 1))), 0, 1, horizon)
    return Task.from_rewards(problem, rewards, low=0, high=1, passive_zero=True, name=name)
