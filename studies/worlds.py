"""Further kinds of worlds, which no component was made for: arms of three states, each world in a few lines.

Arms move up and down by one state, passive ones with probability about .3 each, active ones up with about .6 and down with
about .1 if activation helps them. Unless something else is said, there are 20 arms, a budget of 5, 50 steps and 50 episodes.
"""

from collections.abc import Callable

import numpy as np

import rmab

N, B, H, T = 20, 5, 50, 50
PAYS = np.array([0.0, 0.5, 1.0])
EVEN, HELPED, HURT = (0.3, 0.3), (0.6, 0.1), (0.1, 0.6)
Maker = Callable[[int], rmab.Task]


def chain(rng: np.random.Generator, active: np.ndarray) -> np.ndarray:
    """(N, 3, 2, 3) kernels of arms that move up and down with these probabilities (N, 2) if active."""
    moves = np.stack([np.tile(EVEN, (len(active), 1)), active], axis=1) + rng.uniform(-0.05, 0.05, (len(active), 2, 2))
    table, here = np.zeros((len(active), 3, 2, 3)), np.arange(3)
    for a in range(2):
        up, down = moves[:, a, :1], moves[:, a, 1:]
        table[:, here, a, here] = 1.0 - up - down
        table[:, here, a, np.minimum(here + 1, 2)] += up
        table[:, here, a, np.maximum(here - 1, 0)] += down
    return table


def answers(helped: np.ndarray, others: tuple[float, float] = EVEN) -> np.ndarray:
    """(N, 2) how active arms move."""
    return np.where(helped[:, np.newaxis], HELPED, others)


def by_state(factors: np.ndarray) -> np.ndarray:
    """(T, N, 3, 2) pay by state, active or not, under factors (T, N)."""
    return factors[:, :, np.newaxis, np.newaxis] * np.broadcast_to(PAYS[:, np.newaxis], (3, 2))


def world(kernels: np.ndarray, rewards: np.ndarray, budget: int | np.ndarray = B, **options: object) -> rmab.Task:
    """Return a task of 50 steps with these rewards (T, N, 3, 2), declared to be between 0 and their most."""
    problem = rmab.Problem(rmab.Arms(kernels), 1, budget, H, **options)
    return rmab.Task.from_rewards(problem, rewards, low=0.0, high=float(rewards.max()))


def noise(rng: np.random.Generator, episodes: int = T, arms: int = N) -> np.ndarray:
    """(T, N) a quality of every arm times noise."""
    return rng.uniform(0.3, 1.0, arms) * rng.uniform(0.7, 1.3, (episodes, arms))


def breaks(seed: int) -> rmab.Task:
    """Arms pay when they are used, and break by it: ready, tired or broken; only rest repairs them."""
    rng = np.random.default_rng(seed)
    wear, repair = rng.uniform(0.3, 0.9, N), rng.uniform(0.1, 0.5, N)
    table = np.zeros((N, 3, 2, 3))
    for s in range(3):  # 2 is ready, 0 is broken
        table[:, s, 1, max(s - 1, 0)] += wear
        table[:, s, 1, s] += 1 - wear
        table[:, s, 0, min(s + 1, 2)] += repair
        table[:, s, 0, s] += 1 - repair
    rewards = np.zeros((T, N, 3, 2))
    rewards[..., 1] = noise(rng)[:, :, np.newaxis] * np.array([0.0, 0.7, 1.0])
    return world(table, rewards)


def delayed(seed: int) -> rmab.Task:
    """Activation pays nothing: it starts an arm, which pays some steps later, in a state that it leaves by itself."""
    rng = np.random.default_rng(seed)
    start, finish = rng.uniform(0.2, 0.9, N), rng.uniform(0.2, 0.6, N)
    table = np.zeros((N, 3, 2, 3))
    table[:, 0, 0, 0], table[:, 2, :, 0] = 1.0, 1.0
    table[:, 0, 1, 1], table[:, 0, 1, 0] = start, 1 - start
    table[:, 1, :, 2], table[:, 1, :, 1] = finish[:, None], 1 - finish[:, None]
    rewards = np.zeros((T, N, 3, 2))
    rewards[:, :, 2] = noise(rng)[:, :, np.newaxis]
    return world(table, rewards)


def two_shocks(seed: int) -> rmab.Task:
    """Two halves of the arms, each with a common shock of its own per episode."""
    rng = np.random.default_rng(seed)
    half = rng.permutation(N) < N // 2
    shock = np.where(half, rng.uniform(0.0, 1.5, (T, 1)), rng.uniform(0.0, 1.5, (T, 1)))
    return world(chain(rng, answers(rng.permutation(N) < N // 2)), by_state(shock * rng.uniform(0.5, 1.0, N)))


def added_shock(seed: int) -> rmab.Task:
    """A common shock that is added to what every state pays, instead of a factor."""
    rng = np.random.default_rng(seed)
    rewards = by_state(noise(rng)) + rng.uniform(0.0, 1.0, (T, 1, 1, 1))
    return world(chain(rng, answers(rng.permutation(N) < N // 2)), rewards)


def some_drift(seed: int) -> rmab.Task:
    """After 20 episodes three of the arms that activation helps no longer answer, and three others begin to."""
    rng = np.random.default_rng(seed)
    first = rng.permutation(N) < 6
    after = first.copy()
    after[np.flatnonzero(first)[:3]], after[np.flatnonzero(~first)[:3]] = False, True
    kernels = [chain(np.random.default_rng(seed + 1), answers(one)) for one in (first, after)]
    task = world(kernels[0], by_state(np.ones((T, N))))
    return task.changed(20, rmab.Problem(rmab.Arms(kernels[1]), 1, B, H))


def new_kernels(seed: int) -> rmab.Task:
    """All kernels are drawn again half-way."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(3), size=(2, N, 3, 2))
    task = world(kernels[0], np.broadcast_to(rng.random((N, 3, 2)), (T, N, 3, 2)))
    return task.changed(T // 2, rmab.Problem(rmab.Arms(kernels[1]), 1, B, H))


def join_late(seed: int) -> rmab.Task:
    """Half of the arms are absent for 20 episodes: they stay where they are, and pay nothing there."""
    rng = np.random.default_rng(seed)
    kernels, late = chain(rng, answers(rng.permutation(N) < N // 2)), rng.permutation(N) < N // 2
    before, rewards = kernels.copy(), by_state(noise(rng))
    before[late] = np.eye(3)[:, np.newaxis]
    rewards[:20, late] = 0.0
    return world(before, rewards).changed(20, rmab.Problem(rmab.Arms(kernels), 1, B, H))


def season_by_phase(seed: int) -> rmab.Task:
    """Two phases of an episode; every arm pays in one of them, on three episodes of seven."""
    rng = np.random.default_rng(seed)
    days, phase = rng.random((7, N)).argsort(axis=0) < 3, rng.integers(2, size=N)
    pays = by_state(np.where(days, 1.0, 0.1)[np.arange(T) % 7])[:, :, np.newaxis]
    rewards = pays * np.where(phase[:, np.newaxis] == np.arange(2), 1.0, 0.2)[:, :, np.newaxis, np.newaxis]
    kernels = np.repeat(chain(rng, answers(rng.permutation(N) < 12))[:, np.newaxis], 2, axis=1)
    return world(kernels, rewards, phase_of=np.arange(H) * 2 // H)


def budget_varies(seed: int) -> rmab.Task:
    """The budget is 1, 12 or nothing, in turns of four steps."""
    rng = np.random.default_rng(seed)
    budget = np.array([1, 12, 0])[np.arange(H) // 4 % 3]
    return world(chain(rng, answers(rng.permutation(N) < 10)), by_state(noise(rng)), budget)


def sparse_harm(seed: int) -> rmab.Task:
    """An arm pays in one episode of five, drawn for it, and activation hurts half of the arms."""
    rng = np.random.default_rng(seed)
    factors = (rng.random((T, N)) < 0.2) * rng.uniform(0.5, 1.0, N)
    return world(chain(rng, answers(rng.permutation(N) < 10, HURT)), by_state(factors), 10)


def flipped(seed: int) -> rmab.Task:
    """Half-way, what the highest state paid is paid by the lowest, and the other way round."""
    rng = np.random.default_rng(seed)
    rewards = by_state(noise(rng))
    rewards[T // 2 :] = rewards[T // 2 :, :, ::-1]
    active = np.where(rng.random((N, 1)) < 0.5, HELPED, HURT)
    return world(chain(rng, active), rewards)


def long_season(seed: int) -> rmab.Task:
    """A season of 20 episodes, in 60: longer than any that is looked for."""
    rng = np.random.default_rng(seed)
    factors = np.where(rng.random((20, N)) < 0.3, 1.0, 0.1)[np.arange(60) % 20]
    return world(chain(rng, answers(rng.permutation(N) < 12)), by_state(factors))


def fading(seed: int) -> rmab.Task:
    """Pay fades from episode to episode, faster for better arms."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.3, 1.0, N)
    factors = first * np.exp(-np.arange(T)[:, np.newaxis] * first**2 / 15) * rng.uniform(0.9, 1.1, (T, N))
    return world(chain(rng, answers(rng.permutation(N) < 12)), by_state(factors))


def coins(seed: int) -> rmab.Task:
    """200 arms of one state that pay 0 or 1 when they are active: a bandit of many arms."""
    rng = np.random.default_rng(seed)
    rewards = np.zeros((60, 200, 1, 2))
    rewards[..., 0, 1] = rng.random((60, 200)) < rng.beta(1, 3, 200)
    problem = rmab.Problem(rmab.Arms(np.ones((200, 1, 2, 1))), 0, 20, 5)
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1, passive_zero=True)


def jackpot(seed: int) -> rmab.Task:
    """Half of the arms pay .2, the others 1 in one episode of three."""
    rng = np.random.default_rng(seed)
    safe = rng.permutation(N) < N // 2
    return world(chain(rng, answers(rng.permutation(N) < 12)), by_state(np.where(safe, 0.2, rng.random((T, N)) < 1 / 3)))


def cold_start(seed: int) -> rmab.Task:
    """2,000 arms of four undeclared types, five episodes."""
    rng = np.random.default_rng(seed)
    kind, arms = rng.integers(4, size=2000), 2000
    active = np.array([HELPED, (0.45, 0.2), EVEN, (0.2, 0.4)])[kind]
    quality = np.array([0.4, 1.0, 0.8, 0.6])[kind] * rng.uniform(0.9, 1.1, arms)
    rewards = by_state(quality * rng.uniform(0.7, 1.3, (5, arms)))
    problem = rmab.Problem(rmab.Arms(chain(rng, active)), 1, 400, 20)
    return rmab.Task.from_rewards(problem, rewards, low=0.0, high=float(rewards.max()))


WORLDS: dict[str, Maker] = {
    "arms that break": breaks,
    "delayed pay": delayed,
    "two shocks": two_shocks,
    "added shock": added_shock,
    "drift of some": some_drift,
    "new kernels": new_kernels,
    "arms join late": join_late,
    "season by phase": season_by_phase,
    "budget varies": budget_varies,
    "sparse pay, harm": sparse_harm,
    "states flip": flipped,
    "season of 20": long_season,
    "pay fades": fading,
    "200 coins": coins,
    "jackpot": jackpot,
    "cold start": cold_start,
}
