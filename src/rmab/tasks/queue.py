"""Queues that share servers (Larrañaga, Ayesta & Verloop 2015): which of them are served now.

Every arm is a queue, its state the number of customers, 0 to S - 1. In a step one comes with probability `arrival` (and is
turned away where the queue is full), one who is served leaves with probability `service` if the queue is active, and each
who is there gives up with probability `abandonment`: at most one of these happens, as in the uniformised M/M/1+M queue.
Every customer costs `cost` for each step of waiting.

The form is theirs, cut off at S - 1; the default numbers are ours. For a queue that is not cut off they show Whittle's index
of average reward to be cost * service / abandonment, however many there are, and come (the c mu / theta rule); the closer
to the end, the less it is here. The costs are negative rewards.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon, check_memory, share
from rmab.errors import ModelError
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed


def queue(
    *,
    arms: ArmCount = 50,
    budget: Budget = 15,
    horizon: Horizon = 100,
    states: Annotated[int, Field(ge=2, description="number of states: 0 to S - 1 customers")] = 11,
    arrival: Annotated[float, share("probability that a customer comes")] = 0.2,
    service: Annotated[float, share("probability that one who is served leaves")] = 0.3,
    abandonment: Annotated[float, share("probability of each customer to give up")] = 0.05,
    cost: Annotated[float, Field(gt=0, description="cost of a customer for a step")] = 1.0,
) -> Posed:
    """Queues of impatient customers, and which are served (in the form of Larrañaga, Ayesta & Verloop 2015)."""
    busiest = arrival + service + (states - 1) * abandonment
    if busiest > 1 + 1e-12:
        total = "arrival + service + (states - 1) * abandonment"
        raise ModelError(f"{total} must be 1 at most, as at most one thing happens in a step, got {busiest:g}")
    check_memory(f"a task of {arms} arms", 100.0 * arms * states + 64.0 * states**2)
    pays = np.repeat(-cost * np.arange(states)[:, np.newaxis], 2, axis=1)
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, states, 2)), 2 * pays.min(), 0.0, units=np.zeros(arms))
    queues = Arms.identical(kernel(states, arrival, service, abandonment), arms)
    return Problem(queues, 0, budget, horizon), stakes


def kernel(states: int, arrival: float, service: float, abandonment: float) -> FloatArray:
    """(S, 2, S) how the number of customers moves: by one at most."""
    table, some = np.zeros((states, 2, states)), np.arange(1, states)
    table[some - 1, :, some] = arrival
    table[some, :, some - 1] = (abandonment * some)[:, np.newaxis] + [0.0, service]
    stay = np.arange(states)
    table[stay, :, stay] = np.maximum(1.0 - table.sum(axis=2), 0.0)
    return table
