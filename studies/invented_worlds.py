"""Worlds by somebody who did not write `ucmd`, to find where it breaks: ten kinds of response, pay and size.

Unless something else is said, there are 20 arms, a budget of 5, 30 steps and 40 episodes.
"""

import numpy as np
from worlds import EVEN, HELPED, Maker, answers, by_state, chain

import rmab

N, B, H, T = 20, 5, 30, 40


def world(kernels: np.ndarray, rewards: np.ndarray, budget: int = B, start: int = 1, horizon: int = H) -> rmab.Task:
    """Return a task with these rewards (T, N, S, 2), whose range is declared as it is, with 0."""
    problem = rmab.Problem(rmab.Arms(kernels), start, budget, horizon)
    return rmab.Task.from_rewards(problem, rewards, low=float(min(rewards.min(), 0.0)), high=float(rewards.max()))


def noise(rng: np.random.Generator, episodes: int = T, arms: int = N) -> np.ndarray:
    """(T, N) a quality of every arm times noise."""
    return rng.uniform(0.3, 1.0, arms) * rng.uniform(0.8, 1.2, (episodes, arms))


def paid(factors: np.ndarray, by: list[float]) -> np.ndarray:
    """(T, N, S, 2) pay by state, active or not, under factors (T, N)."""
    return factors[:, :, np.newaxis, np.newaxis] * np.repeat(np.array(by)[:, np.newaxis], 2, axis=1)


def cures_that_last(seed: int) -> rmab.Task:
    """Activation cures for a number of steps from 1 to 5 that belongs to the arm; then it is ill again."""
    rng = np.random.default_rng(seed)
    kernels, lasts, cured = np.zeros((N, 6, 2, 6)), rng.integers(1, 6, N), rng.uniform(0.2, 0.9, N)
    kernels[:, 0, :, 0] = 1.0
    kernels[:, 0, 1, 0] -= cured
    kernels[np.arange(N), 0, 1, lasts] = cured
    for s in range(1, 6):
        kernels[:, s, :, s - 1] = 1.0
    return world(kernels, paid(noise(rng), [0, 1, 1, 1, 1, 1]), start=0)


def arms_leave(seed: int) -> rmab.Task:
    """Arms leave for the rest of the episode; activation keeps ten of them, and drives the others away."""
    rng = np.random.default_rng(seed)
    leave, factor = rng.uniform(0.05, 0.2, N), np.where(rng.permutation(N) < 10, 0.15, 1.6)
    kernels = np.zeros((N, 3, 2, 3))
    kernels[:, 0, :, 0] = 1.0
    for a, (gone, up) in enumerate(((leave, 0.3), (leave * factor, 0.4))):
        kernels[:, 1:, a, 0] = gone[:, np.newaxis]
        kernels[:, 1, a, 2], kernels[:, 1, a, 1] = (1 - gone) * up, (1 - gone) * (1 - up)
        kernels[:, 2, a, 1], kernels[:, 2, a, 2] = (1 - gone) * 0.3, (1 - gone) * 0.7
    return world(kernels, paid(noise(rng), [0, 0.5, 1]))


def hidden_clusters(seed: int) -> rmab.Task:
    """Five hidden clusters of arms; the pay of each moves by a factor of its own, an autoregressive process."""
    rng = np.random.default_rng(seed)
    of, mood = rng.integers(5, size=N), rng.normal(size=(T, 5))
    for t in range(1, T):
        mood[t] = 0.9 * mood[t - 1] + 0.44 * mood[t]
    return world(
        chain(rng, answers(rng.permutation(N) < 12)), by_state(np.exp(0.8 * mood)[:, of] * rng.uniform(0.5, 1.0, N))
    )


def fines(seed: int) -> rmab.Task:
    """Arms decay, activation repairs; to activate an arm that is not broken is fined, twice its pay if it is as new."""
    rng = np.random.default_rng(seed)
    decay, repair, here = rng.uniform(0.1, 0.4, (N, 1)), rng.uniform(0.3, 0.9, (N, 1)), np.arange(3)
    kernels = np.zeros((N, 3, 2, 3))
    kernels[:, here, 0, here], kernels[:, here, 1, here] = 1 - decay, 1 - repair
    kernels[:, here, 0, np.maximum(here - 1, 0)] += decay
    kernels[:, :, 1, 2] += repair
    factors = noise(rng)
    rewards = paid(factors, [0, 0.4, 1])
    rewards[..., 1] -= factors[..., np.newaxis] * np.array([0, 0.5, 2])
    return world(kernels, rewards, budget=8)


def habits(seed: int) -> rmab.Task:
    """Each activation in a row helps less, rest restores the answer: well or ill times three degrees of habit."""
    rng = np.random.default_rng(seed)
    effect, kernels = rng.uniform(0.5, 0.95, N), np.zeros((N, 6, 2, 6))
    for well, (stays, room) in enumerate(((0.15, 0.8), (0.75, 0.22))):
        for habit, left in enumerate((1.0, 0.4, 0.05)):
            for a, after in enumerate((max(habit - 1, 0), min(habit + 1, 2))):
                chance = np.minimum(stays + a * effect * left * room, 0.97)
                kernels[:, 3 * well + habit, a, 3 + after], kernels[:, 3 * well + habit, a, after] = chance, 1 - chance
    return world(kernels, paid(noise(rng), [0, 0, 0, 1, 1, 1]), start=0)


def half_shifts(seed: int) -> rmab.Task:
    """At one episode that nobody knows, half of the arms exchange what they pay."""
    rng = np.random.default_rng(seed)
    quality, half, when = np.tile(rng.uniform(0.1, 1.0, N) ** 2, (T, 1)), rng.permutation(N)[: N // 2], rng.integers(10, 30)
    quality[when:, half] = quality[when:][:, rng.permutation(half)]
    return world(chain(rng, answers(rng.permutation(N) < 14)), by_state(quality * rng.uniform(0.6, 1.4, (T, N))))


def effect_of_the_day(seed: int) -> rmab.Task:
    """How well activation works is drawn for every episode, for all arms together: a shock of kernels."""
    rng = np.random.default_rng(seed)
    helped, drawn = rng.permutation(N) < 10, rng.integers(2**31)
    rewards, task = by_state(noise(rng)), None
    for t, works in enumerate(rng.uniform(-0.3, 1.0, T)):
        active = np.where(helped[:, np.newaxis], np.array(EVEN) + works * (np.array(HELPED) - np.array(EVEN)), EVEN)
        kernels = chain(np.random.default_rng(drawn), active)
        problem = rmab.Problem(rmab.Arms(kernels), 1, B, H)
        task = world(kernels, rewards) if task is None else task.changed(t, problem)
    assert task is not None
    return task


def needle(seed: int) -> rmab.Task:
    """One arm of 60 pays well, after three activations in a row; the others pay a little at once. 60 episodes, budget 3."""
    rng = np.random.default_rng(seed)
    kernels = np.zeros((60, 4, 2, 4))
    for s in range(4):
        kernels[:, s, 0, max(s - 1, 0)] = 1.0
        kernels[:, s, 1, s] = 0.1
        kernels[:, s, 1, min(s + 1, 3)] += 0.9
    rewards = np.zeros((60, 60, 4, 2))
    rewards[:, :, 0, 1] = 0.05 * rng.uniform(0.5, 1.5, (60, 60))
    rewards[:, rng.integers(60), 3] = 1.0
    return world(kernels, rewards, budget=3, start=0, horizon=20)


def ladders(seed: int) -> rmab.Task:
    """Chains of 2 to 7 steps, which pay only at their end, and the more the longer they are. 12 arms, budget 3, 40 steps."""
    rng = np.random.default_rng(seed)
    ends, kernels, rewards = rng.integers(2, 8, 12), np.zeros((12, 8, 2, 8)), np.zeros((50, 12, 8, 2))
    for n, end in enumerate(ends):
        for s in range(8):
            kernels[n, s, :, max(s - 1, 0)] += (0.8, 0.2)
            kernels[n, s, 0, s] += 0.2
            kernels[n, s, 1, min(s + 1, end)] += 0.8
        rewards[:, n, end:] = end**2 / 49 * rng.uniform(0.8, 1.2, (50, 1, 1))
    return world(kernels, rewards, budget=3, start=0, horizon=40)


def flash(seed: int) -> rmab.Task:
    """Eight episodes of ten steps, 40 arms, a budget of two: 160 decisions in all."""
    rng = np.random.default_rng(seed)
    rewards = by_state(rng.uniform(0.1, 1.0, 40) * rng.uniform(0.8, 1.2, (8, 40)))
    return world(chain(rng, answers(rng.permutation(40) < 15)), rewards, budget=2, horizon=10)


INVENTED: dict[str, Maker] = {
    "cures that last": cures_that_last,
    "arms leave": arms_leave,
    "hidden clusters": hidden_clusters,
    "fines": fines,
    "habits": habits,
    "half shifts": half_shifts,
    "effect of the day": effect_of_the_day,
    "needle": needle,
    "ladders": ladders,
    "flash": flash,
}
