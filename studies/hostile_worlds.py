"""Worlds made to break `ucmd`: each goes against an assumption of one of its components. Small, so that many can be played.

Arms move as those of `worlds.py`. Unless something else is said, there are 12 arms, a budget of 4, 20 steps and 40 episodes.
"""

import numpy as np
from worlds import EVEN, HELPED, HURT, Maker, answers, by_state, chain

import rmab

N, B, H, T = 12, 4, 20, 40
TOP = np.array([0.0, 0.0, 1.0])


def world(
    kernels: np.ndarray, rewards: np.ndarray, budget: int = B, high: float | None = None, **options: object
) -> rmab.Task:
    """Return a task of 20 steps with these rewards (T, N, 3, 2), declared to be between 0 and `high`, or their most."""
    problem = rmab.Problem(rmab.Arms(kernels), 1, budget, H, **options)
    return rmab.Task.from_rewards(problem, rewards, low=0.0, high=float(rewards.max()) if high is None else high)


def kernels_of(rng: np.random.Generator, helped: int = 8, others: tuple[float, float] = EVEN) -> np.ndarray:
    """(N, 3, 2, 3) kernels: activation helps so many arms, drawn at random."""
    return chain(rng, answers(rng.permutation(N) < helped, others))


def noise(rng: np.random.Generator, episodes: int = T) -> np.ndarray:
    """(T, N) a quality of every arm times noise."""
    return rng.uniform(0.2, 1.0, N) * rng.uniform(0.7, 1.3, (episodes, N))


def heavy_tails(seed: int) -> rmab.Task:
    """Pay is a quality times a Pareto variable of tail index 1.5, so that the range is far wider than what is usual."""
    rng = np.random.default_rng(seed)
    return world(kernels_of(rng), by_state(rng.uniform(0.2, 1.0, N) * (1 + rng.pareto(1.5, (T, N)))))


def wide_range(seed: int) -> rmab.Task:
    """A week in which every arm pays on two days, under a declared range that is 40 times too wide."""
    rng = np.random.default_rng(seed)
    days = rng.random((7, N)).argsort(axis=0) < 2
    factors = np.where(days, 1.0, 0.1)[np.arange(70) % 7] * rng.uniform(0.5, 1.0, N)
    return world(kernels_of(rng), by_state(factors), high=40.0)


def moved_week(seed: int) -> rmab.Task:
    """A week that is moved by three days after 28 episodes, and again after 49."""
    rng = np.random.default_rng(seed)
    days = rng.random((7, N)).argsort(axis=0) < 2
    t = np.arange(70)
    return world(kernels_of(rng), by_state(np.where(days, 1.0, 0.1)[(t + 3 * (t >= 28) + 3 * (t >= 49)) % 7]))


def opposite_pairs(seed: int) -> rmab.Task:
    """Arms in pairs: in every episode a coin decides which of the two pays."""
    rng = np.random.default_rng(seed)
    coin = rng.random((T, N // 2)) < 0.5
    factors = np.concatenate([coin, ~coin], axis=1) * np.tile(rng.uniform(0.2, 1.0, N // 2), 2)
    return world(kernels_of(rng), by_state(factors))


def leaders(seed: int) -> rmab.Task:
    """Half of the arms follow the other half two episodes later; the leaders' qualities switch at random."""
    rng = np.random.default_rng(seed)
    lead = np.where(np.cumsum(rng.random((T + 2, N // 2)) < 0.15, axis=0) % 2 == 0, 1.0, 0.2)
    return world(kernels_of(rng), by_state(np.concatenate([lead[2:], lead[:-2]], axis=1)))


def two_regimes(seed: int) -> rmab.Task:
    """Two sets of kernels that come back in turns of six episodes: activation helps one half, then the other."""
    rng = np.random.default_rng(seed)
    half = rng.permutation(N) < N // 2
    both = [chain(np.random.default_rng(seed + 1), answers(one)) for one in (half, ~half)]
    task = world(both[0], by_state(np.ones((T, N))))
    for turn, t in enumerate(range(6, T, 6), 1):
        task = task.changed(t, rmab.Problem(rmab.Arms(both[turn % 2]), 1, B, H))
    return task


def slow_drift(seed: int) -> rmab.Task:
    """Kernels that change a little after every episode, from one half that is helped to the other."""
    rng = np.random.default_rng(seed)
    half = rng.permutation(N) < N // 2
    both = [chain(np.random.default_rng(seed + 1), answers(one)) for one in (half, ~half)]
    task = world(both[0], by_state(np.ones((T, N))))
    for t in range(1, T):
        mixed = both[0] + (both[1] - both[0]) * t / (T - 1)
        task = task.changed(t, rmab.Problem(rmab.Arms(mixed), 1, B, H))
    return task


def seasonal_jackpots(seed: int) -> rmab.Task:
    """Slow chains of three states whose top pays in one episode of seven, another one for each arm; a little else."""
    rng = np.random.default_rng(seed)
    active = np.where(rng.permutation(N)[:, np.newaxis] < 8, (0.25, 0.05), (0.1, 0.1))
    table = chain(rng, active)
    rewards = np.where(rng.integers(7, size=N) == np.arange(70)[:, np.newaxis] % 7, 1.0, 0.02)
    return world(table, rewards[:, :, np.newaxis, np.newaxis] * np.broadcast_to(TOP[:, np.newaxis], (3, 2)))


def late_benefit(seed: int) -> rmab.Task:
    """Activation hurts every arm for 15 episodes, then helps most: an arm that rests must be tried again."""
    rng = np.random.default_rng(seed)
    before, after = chain(rng, answers(np.zeros(N, dtype=bool), HURT)), kernels_of(rng)
    return world(before, by_state(noise(rng))).changed(15, rmab.Problem(rmab.Arms(after), 1, B, H))


def worse_first(seed: int) -> rmab.Task:
    """Activation takes an arm from 0 through a state that pays less than nothing does to the one that pays: invest first."""
    rng = np.random.default_rng(seed)
    table = np.zeros((N, 3, 2, 3))
    up = rng.uniform(0.2, 0.8, N)
    table[:, 0, 0, 0] = 1.0
    table[:, 0, 1, 1], table[:, 0, 1, 0] = 0.9, 0.1
    table[:, 1, 1, 2], table[:, 1, 1, 1] = up, 1 - up
    table[:, 1, 0, 0], table[:, 1, 0, 1] = 0.7, 0.3
    table[:, 2, :, 2], table[:, 2, :, 0] = 0.9, 0.1
    rewards = noise(rng)[:, :, np.newaxis, np.newaxis] * np.array([0.3, 0.0, 1.0])[:, np.newaxis] * np.ones(2)
    return world(table, rewards, 6)


def opposite_profiles(seed: int) -> rmab.Task:
    """Half of the arms pay in the highest state, half in the lowest; activation moves some up and some down."""
    rng = np.random.default_rng(seed)
    rewards = by_state(noise(rng))
    high = rng.permutation(N) < N // 2
    rewards[:, ~high] = rewards[:, ~high, ::-1]
    active = np.where(rng.random((N, 1)) < 0.5, HELPED, HURT)
    return world(chain(rng, active), rewards)


def few_useful(seed: int) -> rmab.Task:
    """A budget of 8 where activation helps 3 arms, less in every episode, and hurts 4."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    kind = np.where(order < 3, 0, np.where(order < 7, 1, 2))
    own, task = np.random.default_rng(seed + 1), None
    base, drawn = np.array([HELPED, HURT, EVEN])[kind], own.integers(2**31)
    for t in range(T):
        fade = np.where(kind[:, np.newaxis] == 0, np.exp(-t / 15), 1.0)
        table = chain(np.random.default_rng(drawn), np.array(EVEN) + fade * (base - np.array(EVEN)))
        problem = rmab.Problem(rmab.Arms(table), 1, 8, H)
        task = world(table, by_state(noise(rng)), 8) if task is None else task.changed(t, problem)
    assert task is not None
    return task


HOSTILE: dict[str, Maker] = {
    "heavy tails": heavy_tails,
    "week, wide range": wide_range,
    "week that moves": moved_week,
    "opposite pairs": opposite_pairs,
    "leaders": leaders,
    "two regimes": two_regimes,
    "slow drift": slow_drift,
    "seasonal jackpots": seasonal_jackpots,
    "late benefit": late_benefit,
    "worse first": worse_first,
    "opposite profiles": opposite_profiles,
    "few useful": few_useful,
}
