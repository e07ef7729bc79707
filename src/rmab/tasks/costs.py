"""Arms that cost: machines that wear out, and queues. The costs are negative rewards.

Machine maintenance (Glazebrook, Mitchell & Ansell 2005): which of the worn machines are repaired now.

Every state is a wear, 0 (as new) to S - 1. A machine that runs (passive) wears by one with probability `wear`; the worst
state stays. Running costs rise with the square of the wear, up to `cost` in the worst state. A repair (active) stops the
machine, costs `fee`, and makes it as new with probability `success`; otherwise its wear stays.

The form is that of their deteriorating machines, in discrete time; the default numbers are ours. Under the policy that
repairs from wear x on, a cycle has x / wear steps of running and 1 / success of repair on average. So its average costs C(x)
and repairs f(x) have closed forms, and so has Whittle's index of average reward, where it rises with the wear:
    W(x) = (C(x+1) - C(x)) / (f(x) - f(x+1))

Queues that share servers (Larrañaga, Ayesta & Verloop 2015): which of them are served now.

Every arm is a queue, its state the number of customers, 0 to S - 1. In a step one comes with probability `arrival` (and is
turned away where the queue is full), one who is served leaves with probability `service` if the queue is active, and each
who is there gives up with probability `abandonment`: at most one of these happens, as in the uniformised M/M/1+M queue.
Every customer costs `cost` for each step of waiting.

The form is theirs, cut off at S - 1; the default numbers are ours. For a queue that is not cut off they show Whittle's index
of average reward to be cost * service / abandonment, however many there are, and come (the c mu / theta rule); the closer
to the end, the less it is here.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon, check_memory, share
from rmab.errors import ModelError
from rmab.tasks.definition import Posed, pose_alike


def machine(
    *,
    arms: ArmCount = 50,
    budget: Budget = 10,
    horizon: Horizon = 100,
    states: Annotated[int, Field(ge=2, description="number of wears")] = 6,
    wear: Annotated[float, share("probability that a running machine wears by one")] = 0.3,
    success: Annotated[float, share("probability that a repair makes it as new")] = 0.9,
    cost: Annotated[float, Field(ge=0, description="cost of running in the worst state for a step")] = 1.0,
    fee: Annotated[float, Field(ge=0, description="cost of trying to repair for a step")] = 0.2,
) -> Posed:
    """Machines that wear out, and who is repaired (in the form of Glazebrook, Mitchell & Ansell 2005)."""
    if cost + fee == 0:
        raise ModelError("cost and fee must not both be 0")
    check_memory(f"a task of {arms} arms", 100.0 * arms * states + 64.0 * states**2)
    pays = np.stack([-cost * (np.arange(states) / (states - 1)) ** 2, np.full(states, -fee)], axis=1)
    return pose_alike(_wear_kernel(states, wear, success), pays, arms, budget, horizon)


def _wear_kernel(states: int, wear: float, success: float) -> FloatArray:
    """(S, 2, S) how the wear of a machine moves."""
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
    return pose_alike(_queue_kernel(states, arrival, service, abandonment), pays, arms, budget, horizon)


def _queue_kernel(states: int, arrival: float, service: float, abandonment: float) -> FloatArray:
    """(S, 2, S) how the number of customers moves: by one at most."""
    table, some = np.zeros((states, 2, states)), np.arange(1, states)
    table[some - 1, :, some] = arrival
    table[some, :, some - 1] = (abandonment * some)[:, np.newaxis] + [0.0, service]
    stay = np.arange(states)
    table[stay, :, stay] = np.maximum(1.0 - table.sum(axis=2), 0.0)
    return table
