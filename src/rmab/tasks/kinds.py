"""Synthetic tasks with one difficulty each: harm by activation, changing dynamics, irrelevant phases, and long chains.

The first three have arms of three states that pay by their state, 0, .5 and 1, active or not. A passive arm moves up and
down by one, with probability about .3 each. If activation helps an arm, it moves up with about .6 and down with about .1; if
it hurts, the reverse. The probabilities of each arm vary by up to .05. All arms start in the middle. The numbers are ours.

    harm    activation hurts `hurt` of the arms: the best policy leaves budget unused. With hurt=0 and a budget for all,
            the best policy activates all arms (slack).
    drift   activation helps one half of the arms and has no effect on the others; half-way the halves swap. Rewards are
            fixed. O1, O2, O3 and the random policy are those of each stretch.
    clock   activation helps one half of the arms. `phases` phases are declared. They do not differ (idle), unless `spread`
            is above 0: then an arm pays 1 - spread times as much in every other phase, alternating between the halves.

    swim    chains that pay only at the far end

Each arm is a chain of S states, after RiverSwim of Strehl & Littman (2008): an active arm moves up by one with a
probability drawn for the arm, and stays otherwise; a passive arm moves down by one with probability `drift`. Only the last
state pays, 1 for each step in which the arm is active there. Being passive in the first state pays `trap`, a safe
alternative. A policy that spreads the budget over all arms never reaches the end, and so never learns its reward.

    P(s, 1, min(s + 1, S - 1)) = p_n        P(s, 1, s) += 1 - p_n        p_n uniform on [forward - 0.1, forward + 0.1]
    P(s, 0, max(s - 1, 0))     = drift      P(s, 0, s) += 1 - drift
    r(S - 1, 1) = 1                         r(0, 0) = trap               all other pairs 0

All arms start in the first state. The numbers are ours.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, BoolArray, Budget, Episodes, FloatArray, Horizon, check_memory, share
from rmab.errors import ModelError
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, Task, model_rng

PAYS = np.array([0.0, 0.5, 1.0])  # by state
EVEN, HELPED, HURT = (0.3, 0.3), (0.6, 0.1), (0.1, 0.6)  # probabilities to move up and down
VARIES = 0.05  # maximum variation of the probabilities of an arm
HIGH = 1.5  # maximum reward of a step, under any factor
SPREAD = 0.1  # variation of the probability to move up, around its mean
FORWARD = "mean probability that an active arm moves up"


def harm(
    seed: int,
    *,
    arms: ArmCount = 20,
    budget: Budget = 10,
    horizon: Horizon = 50,
    hurt: Annotated[int, Field(ge=0, description="number of arms that activation hurts")] = 15,
) -> Posed:
    """Build arms of which activation hurts some, so that the best policy leaves budget unused."""
    if hurt > arms:
        raise ModelError(f"hurt must be at most {arms} (the number of arms), got {hurt}")
    rng = model_rng(seed)
    kernels = _kernels(rng, np.arange(arms) >= hurt, HURT)
    return Problem(Arms(kernels), 1, budget, horizon), RewardModel(_pays(arms)[np.newaxis], 0.0, HIGH)


def drift(seed: int, *, arms: ArmCount = 20, budget: Budget = 10, horizon: Horizon = 50, episodes: Episodes = 50) -> Task:
    """Build arms whose response to activation changes half-way: the helped half swaps."""
    check_memory(f"a task of {episodes} episodes", 64.0 * episodes * arms)
    first = np.arange(arms) < arms // 2
    before, after = (
        Problem(Arms(_kernels(model_rng(seed), helped, EVEN)), 1, budget, horizon) for helped in (first, ~first)
    )
    rewards = np.broadcast_to(_pays(arms), (episodes, arms, 3, 2))
    task = Task.from_rewards(before, rewards, low=0, high=1, name="drift")
    return task.changed(episodes // 2, after) if episodes > 1 else task


def clock(
    seed: int,
    *,
    arms: ArmCount = 20,
    budget: Budget = 5,
    horizon: Horizon = 48,
    phases: Annotated[int, Field(ge=1, description="number of declared phases")] = 12,
    spread: Annotated[float, share("share of the reward that is missing in every other phase")] = 0.0,
) -> Posed:
    """Build arms with declared phases, which may all be equal."""
    if phases > horizon:
        raise ModelError(f"phases must be at most {horizon} (the horizon), got {phases}")
    check_memory(f"a task of {arms} arms", 500.0 * arms * phases)
    half = np.arange(arms) < arms // 2
    kernels = _kernels(model_rng(seed), np.arange(arms) % 2 == 0, EVEN)
    low = half[:, np.newaxis] == (np.arange(phases) % 2 == 0)
    pays = _pays(arms)[:, np.newaxis] * np.where(low, 1.0 - spread, 1.0)[..., np.newaxis, np.newaxis]
    several = np.repeat(kernels[:, np.newaxis], phases, axis=1)
    phase_of = np.arange(horizon) * phases // horizon
    return Problem(Arms(several), 1, budget, horizon, phase_of), RewardModel(pays[np.newaxis], 0.0, HIGH)


def swim(
    seed: int,
    *,
    arms: ArmCount = 10,
    budget: Budget = 3,
    horizon: Horizon = 30,
    states: Annotated[int, Field(ge=2, description="length of the chain")] = 4,
    forward: Annotated[float, Field(ge=SPREAD, le=1 - SPREAD, description=FORWARD)] = 0.6,
    drift: Annotated[float, share("probability that a passive arm moves down")] = 0.6,
    trap: Annotated[float, Field(ge=0, lt=1, description="reward for being passive in the first state")] = 0.0,
) -> Posed:
    """Build chains that pay only at the far end, after several right actions in a row."""
    check_memory(f"a task of {arms} arms", 64.0 * arms * states**2)
    speed = model_rng(seed).uniform(forward - SPREAD, forward + SPREAD, arms)
    pays = np.zeros((states, 2))
    pays[0, 0], pays[-1, 1] = trap, 1.0
    stakes = RewardModel(np.broadcast_to(pays, (1, arms, states, 2)), 0.0, HIGH)
    return Problem(Arms(chains(states, speed, drift)), 0, budget, horizon), stakes


def _pays(arms: int) -> FloatArray:
    """(N, S, 2) rewards of the states."""
    return np.tile(PAYS[:, np.newaxis], (arms, 1, 2))


def _kernels(rng: np.random.Generator, helped: BoolArray, others: tuple[float, float]) -> FloatArray:
    """(N, S, 2, S) kernels of arms that activation helps, and of others with these probabilities of up and down."""
    check_memory(f"a task of {helped.size} arms", 500.0 * helped.size)
    passive = np.tile(EVEN, (helped.size, 1))
    active = np.where(helped[:, np.newaxis], HELPED, others)
    moves = np.stack([passive, active], axis=1) + rng.uniform(-VARIES, VARIES, (helped.size, 2, 2))
    return _walks(3, moves[..., 0], moves[..., 1])


def chains(states: int, speed: FloatArray, drift: float) -> FloatArray:
    """(N, S, 2, S) kernels of chains that move up with these probabilities (N,) if active, and down with `drift` if not."""
    never = np.zeros(speed.size)
    return _walks(states, np.stack([never, speed], axis=1), np.stack([never + drift, never], axis=1))


def _walks(states: int, up: FloatArray, down: FloatArray) -> FloatArray:
    """(N, S, 2, S) kernels that move up and down by one with these probabilities (N, 2) by action, and stay at the ends."""
    table, here = np.zeros((len(up), states, 2, states)), np.arange(states)
    for a in range(2):
        table[:, here, a, here] = 1.0 - up[:, a : a + 1] - down[:, a : a + 1]
        table[:, here, a, np.minimum(here + 1, states - 1)] += up[:, a : a + 1]
        table[:, here, a, np.maximum(here - 1, 0)] += down[:, a : a + 1]
    return table
