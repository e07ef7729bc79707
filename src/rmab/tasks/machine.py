"""Machine maintenance (Glazebrook, Mitchell & Ansell 2005): which of the worn machines are repaired now.

Every state is a wear, 0 (as new) to S - 1. A machine that runs (passive) wears by one with probability `wear`; the worst
state stays. Running costs rise with the square of the wear, up to `cost` in the worst state. A repair (active) stops the
machine, costs `fee`, and makes it as new with probability `success`; otherwise its wear stays.

The form is that of their deteriorating machines, in discrete time; the default numbers are ours. Under the policy that
repairs from wear x on, a cycle has x / wear steps of running and 1 / success of repair on average. So its average costs C(x)
and repairs f(x) have closed forms, and so has Whittle's index of average reward, where it rises with the wear:
    W(x) = (C(x+1) - C(x)) / (f(x) - f(x+1))
The costs are negative rewards.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon, check_memory, share
from rmab.errors import ModelError
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed


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
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, states, 2)), 2 * pays.min(), 0.0, units=np.zeros(arms))
    machines = Arms.identical(kernel(states, wear, success), arms)
    return Problem(machines, 0, budget, horizon), stakes


def kernel(states: int, wear: float, success: float) -> FloatArray:
    """(S, 2, S) how the wear of a machine moves."""
    table, all_states = np.zeros((states, 2, states)), np.arange(states)
    table[all_states, 0, all_states] = 1.0 - wear
    table[all_states, 0, np.minimum(all_states + 1, states - 1)] += wear
    table[all_states, 1, all_states] = 1.0 - success
    table[all_states, 1, 0] += success
    return table
