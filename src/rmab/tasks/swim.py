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
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon, check_memory, share
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, model_rng

SPREAD = 0.1  # of the probability to move up, around its mean
HIGH = 1.5  # most that a step pays
FORWARD = "mean probability that an active arm moves up"


def swim(
    seed: int,
    *,
    arms: ArmCount = 10,
    budget: Budget = 3,
    horizon: Horizon = 30,
    states: Annotated[int, Field(ge=2, description="length of the chain")] = 4,
    forward: Annotated[float, Field(ge=SPREAD, le=1 - SPREAD, description=FORWARD)] = 0.6,
    drift: Annotated[float, share("probability that a passive arm is carried down")] = 0.6,
    trap: Annotated[float, Field(ge=0, lt=1, description="pay for being passive in the first state")] = 0.0,
) -> Posed:
    """Chains that pay at the far end alone: arms that need several right moves in a row."""
    check_memory(f"a task of {arms} arms", 64.0 * arms * states**2)
    speed = model_rng(seed).uniform(forward - SPREAD, forward + SPREAD, arms)
    pays = np.zeros((states, 2))
    pays[0, 0], pays[-1, 1] = trap, 1.0
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, states, 2)), 0.0, HIGH)
    return Problem(Arms(kernels(states, speed, drift)), 0, budget, horizon), stakes


def kernels(states: int, speed: FloatArray, drift: float) -> FloatArray:
    """(N, S, 2, S) chains whose arms move up with these probabilities (N,) when active, and down with `drift` otherwise."""
    table, here = np.zeros((speed.size, states, 2, states)), np.arange(states)
    table[:, here, 0, here] = 1.0 - drift
    table[:, here, 0, np.maximum(here - 1, 0)] += drift
    table[:, here, 1, here] = 1.0 - speed[:, np.newaxis]
    table[:, here, 1, np.minimum(here + 1, states - 1)] += speed[:, np.newaxis]
    return table
