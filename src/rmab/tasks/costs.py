"""Arms with costs (negative rewards): machines that wear out, and queues.

Machine maintenance (Glazebrook, Mitchell & Ansell 2005): choose which worn machines to repair.

The state is the wear, 0 (as new) to S - 1. A machine that runs (passive) wears by one with probability `wear`; the worst
state stays. Running costs rise with the square of the wear, up to `cost` in the worst state. A repair (active) stops the
machine, costs `fee`, and makes it as new with probability `success`; otherwise its wear stays.

The form is that of their deteriorating machines, in discrete time; the default numbers are ours. Under the policy that
repairs from wear x on, a cycle has x / wear steps of running and 1 / success of repair on average. So its average costs C(x)
and repairs f(x) have closed forms, and so has Whittle's index of average reward, if it rises with the wear:
    W(x) = (C(x+1) - C(x)) / (f(x) - f(x+1))

Queues that share servers (Larrañaga, Ayesta & Verloop 2015): choose which queues to serve.

Each arm is a queue, and its state is the number of customers, 0 to S - 1. In each step a customer arrives with probability
`arrival` (and is lost if the queue is full), a served customer leaves with probability `service` if the queue is active, and
each waiting customer leaves with probability `abandonment`. At most one of these happens, as in the uniformised M/M/1+M
queue. Each customer costs `cost` per step of waiting.

The form is theirs, truncated at S - 1; the default numbers are ours. Without truncation, Whittle's index of average reward
is cost * service / abandonment in every state and for every arrival rate (the c mu / theta rule); here it is lower near the
end.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon, check_memory, share
from rmab.errors import ModelError
from rmab.tasks.definition import Posed, pose_identical


def machine(
    *,
    arms: ArmCount = 50,
    budget: Budget = 10,
    horizon: Horizon = 100,
    states: Annotated[int, Field(ge=2, description="number of states of wear")] = 6,
    wear: Annotated[float, share("probability that a running machine wears by one")] = 0.3,
    success: Annotated[float, share("probability that a repair makes it as new")] = 0.9,
    cost: Annotated[float, Field(ge=0, description="cost of running in the worst state for a step")] = 1.0,
    fee: Annotated[float, Field(ge=0, description="cost of trying to repair for a step")] = 0.2,
) -> Posed:
    """Build the machine repair task (in the form of Glazebrook, Mitchell & Ansell 2005)."""
    if cost + fee == 0:
        raise ModelError("cost and fee must not both be 0")
    check_memory(f"a task of {arms} arms", 100.0 * arms * states + 64.0 * states**2)
    pays = np.stack([-cost * (np.arange(states) / (states - 1)) ** 2, np.full(states, -fee)], axis=1)
    return pose_identical(_wear_kernel(states, wear, success), pays, arms, budget, horizon)


def _wear_kernel(states: int, wear: float, success: float) -> FloatArray:
    """(S, 2, S) kernel of the wear of a machine."""
    table, all_states = np.zeros((states, 2, states)), np.arange(states)
    table[all_states, 0, all_states] = 1.0 - wear
    table[all_states, 0, np.minimum(all_states + 1, states - 1)] += wear
    table[all_states, 1, all_states] = 1.0 - success
    table[all_states, 1, 0] += success
    return table


def queue(
    *,
    arms: ArmCount = 50,
    budget: Budget = 15,
    horizon: Horizon = 100,
    states: Annotated[int, Field(ge=2, description="number of states: 0 to S - 1 customers")] = 11,
    arrival: Annotated[float, share("probability that a customer arrives")] = 0.2,
    service: Annotated[float, share("probability that a served customer leaves")] = 0.3,
    abandonment: Annotated[float, share("probability that a waiting customer leaves")] = 0.05,
    cost: Annotated[float, Field(gt=0, description="cost of a customer for a step")] = 1.0,
) -> Posed:
    """Build the queueing task (in the form of Larrañaga, Ayesta & Verloop 2015)."""
    busiest = arrival + service + (states - 1) * abandonment
    if busiest > 1 + 1e-12:
        total = "arrival + service + (states - 1) * abandonment"
        raise ModelError(f"{total} must be at most 1, as at most one event happens per step, got {busiest:g}")
    check_memory(f"a task of {arms} arms", 100.0 * arms * states + 64.0 * states**2)
    pays = np.repeat(-cost * np.arange(states)[:, np.newaxis], 2, axis=1)
    return pose_identical(_queue_kernel(states, arrival, service, abandonment), pays, arms, budget, horizon)


def _queue_kernel(states: int, arrival: float, service: float, abandonment: float) -> FloatArray:
    """(S, 2, S) kernel of the number of customers, which changes by at most one."""
    table, some = np.zeros((states, 2, states)), np.arange(1, states)
    table[some - 1, :, some] = arrival
    table[some, :, some - 1] = (abandonment * some)[:, np.newaxis] + [0.0, service]
    stay = np.arange(states)
    table[stay, :, stay] = np.maximum(1.0 - table.sum(axis=2), 0.0)
    return table
