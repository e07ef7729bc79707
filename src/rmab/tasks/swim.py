"""Chains that need several right moves in a row: who is pushed upstream now.

Every arm is a chain of S states, after the river swimmer of Strehl & Littman (2008): an active arm moves up by one with a
probability of its own, and stays otherwise; a passive one is carried down by one with probability `drift`. Only the last
state pays, 1 for each step in which the arm is active there. Being passive in the first one pays `trap`, which makes it safe
to do nothing. Who spreads the budget over all arms gets none of them to the end, and who has never been there does not know
what it pays.

    P(s, 1, min(s + 1, S - 1)) = p_n        P(s, 1, s) += 1 - p_n        p_n uniform on [forward - 0.1, forward + 0.1]
    P(s, 0, max(s - 1, 0))     = drift      P(s, 0, s) += 1 - drift
    r(S - 1, 1) = 1                         r(0, 0) = trap               all other pairs 0

All arms start in the first state. The numbers are ours.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.model.adversaries import make_adversary
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.rewards import RewardModel
from rmab.tasks.definition import Task
from rmab.tasks.options import number, share, whole

SPREAD = 0.1  # of the probability to move up, around its mean
HIGH = 1.5  # most that a step pays


def swim(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 10,
    budget: int = 3,
    horizon: int = 30,
    episodes: int = 60,
    states: Annotated[int, whole("length of the chain, at least 2")] = 4,
    forward: Annotated[float, share("mean probability that an active arm moves up, from 0.1 to 0.9")] = 0.6,
    drift: Annotated[float, share("probability that a passive arm is carried down")] = 0.6,
    trap: Annotated[float, number("pay for being passive in the first state, less than 1")] = 0.0,
) -> Task:
    """Chains that pay at the far end alone: arms that need several right moves in a row."""
    if states < 2:
        raise ModelError(f"states must be at least 2, got {states}")
    if not SPREAD <= forward <= 1.0 - SPREAD:
        raise ModelError(f"forward must be from {SPREAD:g} to {1 - SPREAD:g}, got {forward:g}")
    if not 0 <= trap < 1:
        raise ModelError(f"trap must be 0 or more and less than 1, the pay of the far end, got {trap:g}")
    check_memory(f"a task of {arms} arms", 64.0 * arms * states**2)
    model_seed, adversary_seed = seeds.spawn(2)
    speed = np.random.default_rng(model_seed).uniform(forward - SPREAD, forward + SPREAD, arms)
    pays = np.zeros((states, 2))
    pays[0, 0], pays[-1, 1] = trap, 1.0
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, states, 2)), 0.0, HIGH)
    opponent = make_adversary(against, stakes, episodes, np.random.default_rng(adversary_seed))
    return Task(f"swim@{against}", Problem(Arms(kernels(states, speed, drift)), 0, budget, horizon), opponent)


def kernels(states: int, speed: FloatArray, drift: float) -> FloatArray:
    """(N, S, 2, S) chains whose arms move up with these probabilities (N,) when active, and down with `drift` otherwise."""
    table, here = np.zeros((speed.size, states, 2, states)), np.arange(states)
    table[:, here, 0, here] = 1.0 - drift
    table[:, here, 0, np.maximum(here - 1, 0)] += drift
    table[:, here, 1, here] = 1.0 - speed[:, np.newaxis]
    table[:, here, 1, np.minimum(here + 1, states - 1)] += speed[:, np.newaxis]
    return table
