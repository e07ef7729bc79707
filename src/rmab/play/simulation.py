"""The only episode loop of the library: a policy plays a problem, and the budget is checked at every step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.common.checks import as_integer, check_rng, expect
from rmab.common.cores import cores
from rmab.common.memory import check_memory
from rmab.errors import BudgetExceeded, ModelError, PolicyError
from rmab.model.problem import Problem, checked_reward
from rmab.model.time import shape_of
from rmab.play.compiled.episodes import begin, index_episodes, step
from rmab.play.outcomes import Batch, Trajectory
from rmab.play.policy import IndexPolicy, Policy, for_episode

NO_ODDS, NOWHERE = frozen(np.empty((0, 0))), frozen(np.empty(0, dtype=np.int64))
MOST_THREADS = 64  # more are of no use, and a system may refuse them
PIECE = 1024  # rounds that a thread takes at a time: enough to hide the overhead, few enough to share the work


def simulate(problem: Problem, policy: Policy, reward: ArrayLike, rng: np.random.Generator) -> Trajectory:
    """Play one episode and return what happened.

    The same state of the generator gives the same episode. Arms have the same luck under every policy.

    Parameters
    ----------
    problem : Problem
        The arms, their start states, the budget and the horizon.
    policy : Policy
        An `IndexPolicy`, or any object with a method ``act(h, states, rng)``; if it has a method ``begin(states, rng)``,
        what that returns plays the episode.
    reward : array_like of float, shape (N, S, 2) or (N, K, S, 2)
        What each arm pays per step, by state and action, and by phase where it depends on the time.
    rng : numpy.random.Generator
        For instance ``numpy.random.default_rng(0)``.

    Returns
    -------
    Trajectory
        States (H+1, N), actions (H, N) and the total reward.

    Raises
    ------
    BudgetExceeded
        If the policy activates more arms than the budget allows; it has the step and the count.
    PolicyError, ModelError
        If the policy's table or decision, or another argument, is malformed.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> stay = rmab.Arms.identical([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]], 3)
    >>> problem = rmab.Problem(stay, start=0, budget=1, horizon=3)
    >>> rmab.simulate(problem, rmab.planners.random_policy(problem), np.ones((3, 2, 2)), np.random.default_rng(0))
    Trajectory(3 steps, 3 arms, reward 9)
    """
    table = _checked(problem, policy, reward, rng)
    streams = streams_of(rng, 1)
    check_memory(f"simulate, {_said(problem)},", 5.0 * problem.arms.count * (problem.horizon + 1))
    states = np.empty((1, problem.horizon + 1, problem.arms.count), dtype=np.int32)
    actions = np.empty((1, problem.horizon, problem.arms.count), dtype=bool)
    rewards, _ = _play(problem, policy, table, streams, states, actions)
    return Trajectory(frozen(states[0]), frozen(actions[0]), float(rewards[0]))


def simulate_many(
    problem: Problem,
    policy: Policy,
    reward: ArrayLike,
    rng: np.random.Generator,
    rounds: int,
    *,
    threads: int | None = None,
) -> Batch:
    """Play many episodes and keep only the reward and the activations of each.

    Parameters
    ----------
    problem, policy, reward, rng
        As in `simulate`, whose episode is the first of these.
    rounds : int
        The number of episodes, at least 1.
    threads : int, optional
        How many threads run an `IndexPolicy`; by default, the number of usable cores. Other policies run in one thread.
        No more than 64 are started. The result does not depend on it.

    Returns
    -------
    Batch
        Rewards (rounds,) and activations (rounds,).

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> game = rmab.make_task("cpap")
    >>> policy = rmab.planners.random_policy(game.problem)
    >>> batch = rmab.simulate_many(game.problem, policy, game.base_reward, np.random.default_rng(0), 100)
    >>> batch.rewards.shape
    (100,)
    """
    table = _checked(problem, policy, reward, rng)
    number = as_integer(rounds, "rounds")
    workers = cores() if threads is None else as_integer(threads, "threads")
    if number < 1 or workers < 1:
        raise ModelError(f"rounds and threads must be at least 1, got {number} and {workers}")
    check_memory(f"simulate_many of {number} episodes", 16.0 * number)
    rewards, activations = np.empty(number), np.empty(number, dtype=np.int64)

    def play(piece: tuple[int, NDArray[np.uint64]]) -> None:
        part = slice(piece[0], piece[0] + len(piece[1]))
        rewards[part], activations[part] = _play(problem, policy, table, piece[1])

    if workers == 1 or type(policy) is not IndexPolicy:  # in this thread, so that Ctrl-C stops it at once
        for first in range(0, number, PIECE):
            play((first, streams_of(rng, min(PIECE, number - first))))
        return Batch(frozen(rewards), frozen(activations))
    size = min(PIECE, -(-number // workers))
    with ThreadPoolExecutor(min(workers, MOST_THREADS)) as pool:
        for first in range(0, number, workers * size):  # seeds are made for a few pieces at a time
            streams = streams_of(rng, min(workers * size, number - first))
            for _ in pool.map(play, [(first + at, streams[at : at + size]) for at in range(0, len(streams), size)]):
                pass
    return Batch(frozen(rewards), frozen(activations))


def visit_rates(problem: Problem, policy: Policy, rng: np.random.Generator, rounds: int) -> FloatArray:
    """(N, H, S, 2) in what fraction of `rounds` episodes arm n is in state s and takes action a at step h."""
    count, states, horizon = problem.arms.count, problem.arms.states, problem.horizon
    table = _checked(problem, policy, np.zeros((count, states, 2)), rng)
    number = as_integer(rounds, "rounds")
    if number < 1:
        raise ModelError(f"rounds must be at least 1, got {number}")
    check_memory(f"visit rates of {number} episodes, {_said(problem)},", 13.0 * number * count * (horizon + 1))
    where = np.empty((number, horizon + 1, count), dtype=np.int32)
    active = np.empty((number, horizon, count), dtype=bool)
    _play(problem, policy, table, streams_of(rng, number), where, active)
    node = np.arange(count) * horizon + np.arange(horizon)[:, np.newaxis]  # (H, N)
    place = (node * states + where[:, :-1]) * 2 + active
    rates = np.bincount(place.reshape(-1), minlength=count * horizon * states * 2) / number
    return np.asarray(rates.reshape(count, horizon, states, 2))


def simulate_visits(problem: Problem, policy: Policy, key: int, rounds: range) -> FloatArray:
    """(N, S, 2) visits of every pair, summed over the episodes r that `simulate` plays with default_rng((key, r)).

    With phases, (N, K, S, 2). A visit counts what a reward of its step does, which is less than 1 where it is discounted.
    """
    count, states, phases = problem.arms.count, problem.arms.states, problem.phases
    nothing = _checked(problem, policy, np.zeros((count, states, 2)), np.random.default_rng(key))
    check_memory(f"visits of {len(rounds)} episodes, {_said(problem)},", 13.0 * len(rounds) * count * (problem.horizon + 1))
    seen = np.empty((len(rounds), problem.horizon + 1, count), dtype=np.int32)
    actions = np.empty((len(rounds), problem.horizon, count), dtype=bool)
    _play(problem, policy, nothing, _numbered_streams(key, rounds.stop)[rounds.start :], seen, actions)
    cell = np.arange(count) * phases + problem.phase_of[:, np.newaxis]  # (H, N)
    visits, worth = np.zeros(count * phases * states * 2), np.repeat(problem.discounts, count)
    for where, active in zip(seen, actions, strict=True):
        pairs = 2 * (cell * states + where[:-1]) + active
        visits += np.bincount(pairs.reshape(-1), weights=worth, minlength=visits.size)
    return visits.reshape(shape_of(phases, count, states, 2))


def _checked(problem: Problem, policy: Policy, reward: ArrayLike, rng: np.random.Generator) -> FloatArray:
    if not isinstance(policy, Policy):
        raise PolicyError(f"a policy needs a method act(h, states, rng), {type(policy).__name__} has none")
    check_rng(rng)
    expect(problem, Problem, "problem", "; of a task, it is task.problem")
    return checked_reward(reward, problem)


def _said(problem: Problem) -> str:
    return f"{problem.arms.count} arms and {problem.horizon} steps"


def streams_of(rng: np.random.Generator, rounds: int) -> NDArray[np.uint64]:
    """(R, 2, 4) seeds of two streams per round, one for the arms and one for the policy."""
    return rng.integers(0, 2**64, size=(rounds, 2, 4), dtype=np.uint64)


@lru_cache(maxsize=4)
def _numbered_streams(key: int, rounds: int) -> NDArray[np.uint64]:
    """(R, 2, 4) seeds of rounds k with default_rng((key, k)); kept, because making them costs more than a small episode."""
    return frozen(np.concatenate([streams_of(np.random.default_rng((key, k)), 1) for k in range(rounds)]))


def _play(
    problem: Problem,
    policy: Policy,
    reward: FloatArray,
    streams: NDArray[np.uint64],
    states: NDArray[np.int32] | None = None,
    actions: BoolArray | None = None,
) -> tuple[FloatArray, IntArray]:
    """Play one episode per stream and return rewards and activations; record states and actions if arrays are given."""
    if states is None or actions is None:
        states, actions = np.empty((0, 0, 0), dtype=np.int32), np.empty((0, 0, 0), dtype=bool)
    rewards, activations = np.empty(len(streams)), np.empty(len(streams), dtype=np.int64)
    arms = problem.arms
    if type(policy) is not IndexPolicy:  # a subclass may decide otherwise
        for r, (arm_stream, policy_stream) in enumerate(streams.copy()):
            seen = (states[r], actions[r]) if len(states) else None
            rewards[r], activations[r] = _episode(problem, policy, reward, arm_stream, policy_stream, seen)
        return rewards, activations
    table = policy.by_step(problem.horizon)
    if table.shape != (problem.horizon, arms.count, arms.states):
        raise PolicyError(f"table has shape {policy.table.shape}, the problem has {arms!r}, horizon {problem.horizon}")
    time = (problem.phase_of, problem.discounts)
    model = (arms.cumulative, arms.group_of, *start_of(problem), table, phases_first(reward, problem), *time)
    rule = (policy.limits(problem.horizon), policy.floor, policy.rounding == "dependent")
    at, count = index_episodes(*model, problem.budgets, *rule, streams.copy(), rewards, activations, states, actions)
    if at >= 0:
        raise BudgetExceeded(at, count, int(problem.budgets[at]))
    return rewards, activations


def phases_first(reward: FloatArray, problem: Problem) -> FloatArray:
    """(K, N, S, 2) the reward by cell (N * K, S, 2), with phases first: one step reads one table of all arms."""
    by_arm = reward.reshape(problem.arms.count, problem.phases, *reward.shape[1:])
    return np.ascontiguousarray(by_arm.swapaxes(0, 1))


def start_of(problem: Problem) -> tuple[IntArray, FloatArray]:
    """Return the start states (N,), and the running sums of their probabilities (N, S), empty where there is no doubt."""
    if problem.start.ndim == 1:
        return problem.start, NO_ODDS  # type: ignore[return-value]
    sums = np.cumsum(problem.start, axis=1)
    sums[sums >= sums[:, -1:]] = 1.0  # as in Arms.cumulative: no gap below 1
    return NOWHERE, frozen(np.asarray(sums, dtype=np.float64))


def _episode(
    problem: Problem,
    policy: Policy,
    reward: FloatArray,
    arm_stream: NDArray[np.uint64],
    policy_stream: NDArray[np.uint64],
    seen: tuple[NDArray[np.int32], BoolArray] | None,
) -> tuple[float, int]:
    """Play one episode of any policy: as `index_episodes`, but the policy decides in Python."""
    rng = np.random.default_rng(policy_stream)
    states = np.empty(problem.arms.count, dtype=np.int64)
    begin(*start_of(problem), arm_stream, states)
    player = for_episode(policy, states.copy(), rng)
    arms, rewards, total, used = problem.arms, phases_first(reward, problem), 0.0, 0
    for h in range(problem.horizon):
        active = _checked_action(player.act(h, states.copy(), rng), h, problem)
        used += int(active.sum())
        if seen is not None:
            seen[0][h], seen[1][h] = states, active
        phase = problem.phase_of[h]
        paid = step(states, active, arms.cumulative[phase], arms.group_of, rewards[phase], arm_stream)
        total += problem.discounts[h] * paid
    if seen is not None:
        seen[0][problem.horizon] = states
    return total, used


def _checked_action(action: ArrayLike, h: int, problem: Problem) -> BoolArray:
    try:
        given = np.asarray(action)
    except ValueError as error:
        raise PolicyError(f"step {h}: the policy returned no array of actions ({error})") from error
    if given.shape != (problem.arms.count,):
        raise PolicyError(f"step {h}: the policy returned shape {given.shape}, not ({problem.arms.count},)")
    if given.dtype != np.bool_:
        for n in np.flatnonzero((given != 0) & (given != 1))[:1]:
            raise PolicyError(f"step {h}: the action of arm {n} must be 0 or 1, got {given[n]}")
        given = given.astype(bool)
    count = int(given.sum())
    if count > problem.budgets[h]:
        raise BudgetExceeded(h, count, int(problem.budgets[h]))
    return given
