"""Small problems that can be worked out by hand: where theorems of Xiong & Li (2024) fail, or need more than top-B.

On the first two their regret theorem (Section 5.1) fails, each for another step of its proof. Both have one state, one arm
may be active, being passive pays nothing, and nothing is random: every number here can be worked out by hand. They bring
their own rewards, so that there is no adversary to choose.

`greener`  The first arm always pays 2 - sqrt(2) = .586, the second nothing. The proof claims that the reward estimator
    exceeds the truth by delta at most, on average. But a pair that nobody visited is taken to pay 1, and that excess does
    not fade: the arm that is left alone gains on the one that is played, until it is its turn. The two are activated in
    inverse proportion to what they gain on each other. With passive rewards estimated, as the formula has it, playing the
    first moves the plan by 2 - .586 against it, playing the second by 2 for it: the first is played .586 of the time, and
    .586 * .414 = .243 is lost at every step, for ever. With declared zeros it is 1 - .586 and 1: .707 of the time, .172.

`turns` The arms pay 1 in turns, episode by episode. The proof takes for granted that the index policy does what the plan
says. Mirror descent's plan stays near one half each, which would earn a half per step, as every fixed policy does. But the
B highest indices are all or nothing: after the first arm paid the plan leans to it by a hair, so that it is played when the
second pays. With full information all of the half is lost, for ever, if the first episode pays one half (`first=0.5`): then
the plan leans to the arm that paid last after every episode. If it pays 1, the plan is back at a tie after every other
episode. In exact arithmetic lots are drawn there, and .25 a step is lost. Rounding breaks the tie one way or the other, by
the rate and so by T: anything between nothing (T = 1,200) and .5 (T = 400) is lost. Dependent rounding keeps the half at
any length.

`split`  A small problem whose best plan takes a part of each of two like-ranked kinds of arm at the same step.

    Two steps, budget 10, and the best plan earns 16: 0.6 of A and 0.4 of B at the first step.

    10 arms A: activated in state 0 they go to state 2, where activating pays 1; otherwise to state 1, where nothing pays.
    10 arms B: activating in state 0 pays 0.5 at once, and that is all.   4 arms C: they go to state 2, which pays 2.

    So the second step has room for 6 of A beside the 4 of C: more of A is of no use, and B is worth 0.5. Top-B ranks the
    shares and takes all of A: 14 is then the most. As A and C have index 1 both, ties leave 2 * 4 * 10/14 + 10 * 10/14 =
    12.86, however many copies of the arms there are: Theorem 1 needs dependent rounding here.

`two-way`  One arm, and no budget to speak of, so that a learner for Markov decision processes is at home.

    Two states that follow each other at random, whatever is done. In the first, where it begins, being active pays .9 and
    being passive .1; in the second it is the other way round. With two steps the best policy earns 1.8 an episode, to be
    active always 1.4, never .6. The arm may always be active, and need not be: learners need the rule `at-most`, as `fill`
    would use up the budget; `random` fills it, and is always active here.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rmab.common import Episodes, FloatArray, Horizon, check_memory, share
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, Task

WORST = 2.0 - 2.0**0.5  # where r (1 - r) / (2 - r), what is lost per step with declared zeros, is greatest


def greener(
    *,
    episodes: Episodes = 400,
    horizon: Horizon = 5,
    pays: Annotated[float, share("what the first arm pays; the second pays nothing")] = WORST,
) -> Task:
    """Two arms, one pays: where the paper's estimator always returns to the other, and its theorem fails."""
    rewards = _nothing(episodes)
    rewards[:, 0, 0, 1] = pays
    return _task("greener", rewards, horizon)


def turns(
    *,
    episodes: Episodes = 400,
    horizon: Horizon = 5,
    first: Annotated[float, share("what the first episode pays; with 0.5 no plan ever ties")] = 1.0,
) -> Task:
    """Two arms that pay in turns: where the highest indices are late, and the paper's theorem fails."""
    rewards = _nothing(episodes)
    rewards[0::2, 0, 0, 1] = rewards[1::2, 1, 0, 1] = 1.0
    rewards[0] *= first
    return _task("turns", rewards, horizon)


def split() -> Posed:
    """Where top-B keeps its loss: the best plan splits a step between two kinds of arm (Theorem 1)."""
    kind = np.repeat([0, 1, 2], (10, 10, 4))
    kernels, pays = np.zeros((3, 3, 2, 3)), np.zeros((3, 3, 2))
    kernels[:, 1:, :, 1] = 1.0
    kernels[0, 0, 0, 1] = kernels[0, 0, 1, 2] = 1.0
    kernels[1, 0, :, 1] = kernels[2, 0, :, 2] = 1.0
    pays[0, 2, 1], pays[1, 0, 1], pays[2, 2, 1] = 1.0, 0.5, 2.0
    problem = Problem(Arms(kernels[kind], groups=kind), 0, 10, 2)
    return problem, RewardModel(pays[kind][np.newaxis], 0.0, 3.0)


def two_way(*, episodes: Episodes = 200, horizon: Horizon = 2) -> Task:
    """One arm that should be active in one of its two states: a plain decision process, for rivals made for one."""
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
