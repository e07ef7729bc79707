"""Simulation of a policy on a problem; the budget is checked at each step."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, FloatArray, IntArray, as_integer, check_memory, check_rng, cores, expect, frozen, sealed
from rmab.errors import BudgetExceeded, ModelError, PolicyError
from rmab.model import Problem, checked_reward, costs_in, rows_of, shape_of
from rmab.play.compiled.episodes import index_episodes
from rmab.play.index_policy import IndexPolicy
from rmab.play.policy import Policy
from rmab.play.trajectory import Batch, Trajectory, pairs_of

EMPTY, NOWHERE = frozen(np.empty((0, 0))), frozen(np.empty(0, dtype=np.int64))
MOST_THREADS = 64  # more are not useful, and a system may refuse them
PIECE = 1024  # rounds per work item of a thread: enough to hide the overhead, few enough to balance the load


def simulate(problem: Problem, policy: Policy, reward: ArrayLike, rng: np.random.Generator) -> Trajectory:
    """Simulate one episode and return its trajectory.

    The same state of the generator gives the same episode. Arms have the same random stream under every policy.

    Parameters
    ----------
    problem : Problem
        The arms, their start states, the budget and the horizon.
    policy : Policy
        An `IndexPolicy`, or any object with a method ``act(h, states, rng)``; if it has a method ``begin(states, rng)``,
        the object that this returns plays the episode.
    reward : array_like of float, shape (N, S, 2) or (N, K, S, 2)
        Reward of each arm per step, by state and action, and by phase if it depends on the time.
    rng : numpy.random.Generator
        For example ``numpy.random.default_rng(0)``.

    Returns
    -------
    Trajectory
        States (H+1, N), actions (H, N) and the total reward.

    Raises
    ------
    BudgetExceeded
        If the policy activates more arms than the budget allows; with the step and the count.
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
    table = _checked_arguments(problem, reward, rng)
    check_memory(f"simulate, {_sizes_of(problem)},", 5.0 * problem.arms.count * (problem.horizon + 1))
    return play_episode(problem, policy, table, random_streams(rng, 1))


def simulate_many(
    problem: Problem, policy: Policy, reward: ArrayLike, rng: np.random.Generator, rounds: int, *, threads: int | None = None
) -> Batch:
    """Simulate many episodes and return the reward and the number of activations of each.

    Parameters
    ----------
    problem, policy, reward, rng
        As in `simulate`, whose episode is the first of these.
    rounds : int
        Number of episodes, at least 1.
    threads : int, optional
        Number of threads for an `IndexPolicy`; by default, the number of usable cores. Other policies run in one thread.
        At most 64 are started. The result does not depend on it.

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
    table = _checked_arguments(problem, reward, rng)
    number = as_integer(rounds, "rounds")
    workers = cores() if threads is None else as_integer(threads, "threads")
    if number < 1 or workers < 1:
        raise ModelError(f"rounds and threads must be at least 1, got {number} and {workers}")
    check_memory(f"simulate_many of {number} episodes", 16.0 * number)
    rewards, activations = np.empty(number), np.empty(number, dtype=np.int64)

    def play(piece: tuple[int, NDArray[np.uint64]]) -> None:
        part = slice(piece[0], piece[0] + len(piece[1]))
        rewards[part], activations[part] = _play(problem, policy, table, piece[1])[1]

    if workers == 1 or type(policy) is not IndexPolicy:  # in this thread, so that Ctrl-C stops it immediately
        for first in range(0, number, PIECE):
            play((first, random_streams(rng, min(PIECE, number - first))))
        return Batch(frozen(rewards), frozen(activations))
    size = min(PIECE, -(-number // workers))
    with ThreadPoolExecutor(min(workers, MOST_THREADS)) as pool:
        for first in range(0, number, workers * size):  # creates the seeds of a few pieces at a time
            streams = random_streams(rng, min(workers * size, number - first))
            for _ in pool.map(play, [(first + at, streams[at : at + size]) for at in range(0, len(streams), size)]):
                pass
    return Batch(frozen(rewards), frozen(activations))


def visit_rates(problem: Problem, policy: Policy, rng: np.random.Generator, rounds: int) -> FloatArray:
    """(N, H, S, 2) fraction of `rounds` episodes in which arm n is in state s with action a at step h."""
    count, states, horizon = problem.arms.count, problem.arms.states, problem.horizon
    table = _checked_arguments(problem, np.zeros((count, states, 2)), rng)
    number = as_integer(rounds, "rounds")
    if number < 1:
        raise ModelError(f"rounds must be at least 1, got {number}")
    check_memory(f"visit rates of {number} episodes, {_sizes_of(problem)},", 13.0 * number * count * (horizon + 1))
    seen, _ = _play(problem, policy, table, random_streams(rng, number), record=True)
    place = pairs_of(*seen, (horizon, states), np.arange(horizon))  # every step is a phase
    rates = np.bincount(place.reshape(-1), minlength=count * horizon * states * 2) / number
    return np.asarray(rates.reshape(count, horizon, states, 2))


def simulate_visits(problem: Problem, policy: Policy, key: int, rounds: range) -> FloatArray:
    """(N, S, 2) visits of each pair, summed over the episodes r that `simulate` plays with default_rng((key, r)).

    With phases, (N, K, S, 2). Visits are weighted by the discount of their step.
    """
    count, states, phases = problem.arms.count, problem.arms.states, problem.phases
    nothing = _checked_arguments(problem, np.zeros((count, states, 2)), np.random.default_rng(key))
    size = 13.0 * len(rounds) * count * (problem.horizon + 1)
    check_memory(f"visits of {len(rounds)} episodes, {_sizes_of(problem)},", size)
    seen, _ = _play(problem, policy, nothing, _numbered_streams(key, rounds.stop)[rounds.start :], record=True)
    visits, worth = np.zeros(count * phases * states * 2), np.repeat(problem.discounts, count)
    for one in zip(*seen, strict=True):
        pairs = pairs_of(*one, (phases, states), problem.phase_of)
        visits += np.bincount(pairs.reshape(-1), weights=worth, minlength=visits.size)
    return visits.reshape(shape_of(phases, count, states, 2))


def _checked_arguments(problem: Problem, reward: ArrayLike, rng: np.random.Generator) -> FloatArray:
    check_rng(rng)
    expect(problem, Problem, "problem", "; for a task, use task.problem")
    return checked_reward(reward, problem)


def _sizes_of(problem: Problem) -> str:
    return f"{problem.arms.count} arms and {problem.horizon} steps"


def random_streams(rng: np.random.Generator, rounds: int) -> NDArray[np.uint64]:
    """(R, 2, 4) seeds of two streams per round, one for the arms and one for the policy."""
    return rng.integers(0, 2**64, size=(rounds, 2, 4), dtype=np.uint64)


@lru_cache(maxsize=4)
def _numbered_streams(key: int, rounds: int) -> NDArray[np.uint64]:
    """(R, 2, 4) seeds of rounds k with default_rng((key, k)); cached, as creating them costs more than a small episode."""
    return frozen(np.concatenate([random_streams(np.random.default_rng((key, k)), 1) for k in range(rounds)]))


def play_episode(problem: Problem, policy: Policy, reward: FloatArray, streams: NDArray[np.uint64]) -> Trajectory:
    """Play an episode with checked arguments: rewards (N, [K,] S, 2), and streams (1, 2, 4) of arms and policy."""
    (states, actions), (rewards, _) = _play(problem, policy, reward, streams, record=True)
    return Trajectory(frozen(states[0]), frozen(actions[0]), float(rewards[0]))


class Ranking(NamedTuple):
    """An index policy as compiled code reads it: table (H, C, S), the floor, and whether shares are drawn."""

    table: FloatArray
    floor: float
    dependent: bool


def rankings_rewards(
    problem: Problem, rankings: Sequence[Ranking], row_of: IntArray, reward: FloatArray, streams: NDArray[np.uint64]
) -> FloatArray:
    """(P, R) the total rewards of the episodes that `play_episode` plays with each of P policies, with streams (R, 2, 4).

    row_of (N,) is the row of every arm in the tables: arms with the same indices need not have their own. The policies have
    the problem's budget and costs.
    """
    rounds, (limit, least, cost) = len(streams), budget_of(problem)
    paid, spending = phases_first(reward, problem), (limit, least, cost, limit, cost)
    seen, earned = (np.empty((0, 0, 0), np.int32), np.empty((0, 0, 0), bool)), np.empty((len(rankings), rounds))
    for ranking, rewards in zip(rankings, earned, strict=True):
        _run(problem, ranking, row_of, paid, spending, streams, (rewards, np.empty(rounds, dtype=np.int64)), seen)
    return earned


def _play(
    problem: Problem, policy: Policy, reward: FloatArray, streams: NDArray[np.uint64], *, record: bool = False
) -> tuple[tuple[NDArray[np.int32], BoolArray], tuple[FloatArray, IntArray]]:
    """Play one episode per stream; return states (R, H+1, N) and actions (R, H, N) if recorded, rewards and activations."""
    arms, horizon, rounds = problem.arms, problem.horizon, len(streams) if record else 0
    states, actions = np.empty((rounds, horizon + 1, arms.count), np.int32), np.empty((rounds, horizon, arms.count), bool)
    rewards, activations = np.empty(len(streams)), np.empty(len(streams), dtype=np.int64)
    seen, earned = (states, actions), (rewards, activations)
    if type(policy) is not IndexPolicy:  # a subclass may decide differently
        if not isinstance(policy, Policy):
            raise PolicyError(f"a policy needs a method act(h, states, rng), {type(policy).__name__} has none")
        from rmab.play.rounds import Rounds, play_steps  # noqa: PLC0415  (it imports this module)

        single = Rounds(problem)
        for r, stream in enumerate(streams):
            played = play_steps(single, policy, reward, stream)
            rewards[r], activations[r] = played.reward, played.actions.sum()
            if record:
                states[r], actions[r] = played.states, played.actions
        return seen, earned
    table = policy.by_step(horizon)
    if table.shape != (horizon, arms.count, arms.states):
        raise PolicyError(f"table has shape {policy.table.shape}, the problem has {arms!r}, horizon {horizon}")
    spending, row_of = (*budget_of(problem), *policy.spending(horizon)), frozen(np.arange(arms.count))
    ranking = Ranking(table, policy.floor, policy.rounding == "dependent")
    _run(problem, ranking, row_of, phases_first(reward, problem), spending, streams, earned, seen)
    return seen, earned


def _run(
    problem: Problem,
    ranking: Ranking,
    row_of: IntArray,
    reward: FloatArray,
    spending: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
    streams: NDArray[np.uint64],
    earned: tuple[FloatArray, IntArray],
    seen: tuple[NDArray[np.int32], BoolArray],
) -> None:
    """Play an index policy in compiled code, reward (K, N, S, 2); raise PolicyError if it does not keep the budget."""
    arms, (table, floor, dependent) = problem.arms, ranking
    model = (arms.cumulative, arms.group_of, *start_of(problem), table, row_of, reward)
    time, rule = (problem.phase_of, problem.discounts), (floor, dependent)
    last = (np.empty(arms.count, dtype=bool), np.empty(arms.count, dtype=np.int64))
    if (at := index_episodes(*model, *time, *spending, *rule, streams.copy(), *last, *earned, *seen)) >= 0:
        raise budget_error(problem, at, *last)


def budget_of(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the maximum and minimum cost of the active arms at each step (H,), and the costs (1 or K, N, 1 or S).

    If all costs are equal, budgets are numbers of arms, and the costs are empty.
    """
    budget = frozen((problem.slots if problem.weights is None else problem.budgets).astype(np.float64))
    return budget, budget if problem.exact else frozen(np.zeros(budget.size)), rows_of(problem.weights)


def budget_error(problem: Problem, step: int, active: BoolArray, states: IntArray) -> PolicyError:
    """Return the error for a step at which the active arms (N,), in states (N,), are not within the budget."""
    count, limit = int(np.count_nonzero(active)), problem.budgets[step].item()
    if problem.exact and count < problem.slots[step]:
        wanted = problem.slots[step]
        wrong = f"step {step}: the policy activates {count} arms, the budget is exactly {wanted}; use rule 'fill'"
        return PolicyError(wrong, code="budget-unused", step=step)
    if problem.cost is not None:
        return BudgetExceeded(step, float(active @ costs_in(problem.cost, problem.phase_of[step], states)), limit, "costs")
    return BudgetExceeded(step, count, limit)


def phases_first(reward: FloatArray, problem: Problem) -> FloatArray:
    """(K, N, S, 2) reward (N, [K,] S, 2) with phases first, read-only, so that a step reads one table of all arms."""
    by_arm = reward.reshape(problem.arms.count, problem.phases, problem.arms.states, 2)
    return sealed(np.ascontiguousarray(by_arm.swapaxes(0, 1)))


def start_of(problem: Problem) -> tuple[IntArray, FloatArray]:
    """Return the start states (N,), and the cumulative sums of their probabilities (N, S), empty if they are fixed."""
    if problem.start.ndim == 1:
        return problem.start, EMPTY  # type: ignore[return-value]
    sums = np.cumsum(problem.start, axis=1)
    sums[sums >= sums[:, -1:]] = 1.0  # as in Arms.cumulative: no gap below 1
    return NOWHERE, frozen(np.asarray(sums, dtype=np.float64))
