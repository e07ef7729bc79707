"""Steps per second of the environments: `python benchmarks/gym.py`.

A step is one step of one round: all its arms move. Compared are one environment, a `SyncVectorEnv` of many, our vectorised
environment of as many, and the simulator, where an index policy decides in compiled code, too. Actions are made beforehand,
within the budget; every figure includes the beginnings of episodes.
"""

import time

import gymnasium
import numpy as np
from numpy.typing import NDArray

import rmab
import rmab.gym

ROUNDS = (8, 64, 512)
TASKS = {"cpap": {"adversary": "switching"}, "deadline": {"adversary": "switching"}}
SECONDS = 1.5  # of every measurement


def actions_of(task: rmab.Task, rounds: int) -> NDArray[np.int8]:
    """(64, R, N) requests that fill the smallest budget, drawn at random."""
    rng, arms = np.random.default_rng(0), task.problem.arms.count
    order = rng.random((64, rounds, arms)).argsort(axis=2)
    return (order < task.problem.budgets.min()).astype(np.int8)


def rate(env: gymnasium.Env | gymnasium.vector.VectorEnv, actions: NDArray[np.int8], rounds: int) -> float:
    """Return steps per second of an environment; a vectorised one begins its episodes by itself."""
    env.reset(seed=0)
    env.step(actions[0])
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        over = env.step(actions[done % 64])[2]
        done += 1
        if rounds == 0 and over:
            env.reset()
    return done * max(rounds, 1) / (time.perf_counter() - begin)


def simulated(task: rmab.Task) -> float:
    """Return steps per second of `simulate_many` under a fixed index, on one thread."""
    table = np.random.default_rng(0).random((task.problem.arms.count, task.problem.arms.states))
    policy, reward = rmab.IndexPolicy(table, task.problem.budget), task.reward(0)
    rmab.simulate_many(task.problem, policy, reward, np.random.default_rng(0), 2, threads=1)
    begin, rounds = time.perf_counter(), 200_000 // task.problem.horizon
    rmab.simulate_many(task.problem, policy, reward, np.random.default_rng(0), rounds, threads=1)
    return rounds * task.problem.horizon / (time.perf_counter() - begin)


def main() -> None:
    """Print a table."""
    print("steps of one round per second, in thousands\n")
    print("| task | rounds | one environment | SyncVectorEnv | ours | times | simulator |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, options in TASKS.items():
        kwargs = {**options, "bound": False}
        single = gymnasium.make(f"rmab/{name}-v0", **kwargs)
        task: rmab.Task = single.unwrapped.task
        one, most = rate(single, actions_of(task, 1)[:, 0], 0), simulated(task)
        for rounds in ROUNDS:
            actions = actions_of(task, rounds)
            plain = gymnasium.make_vec(f"rmab/{name}-v0", rounds, vectorization_mode="sync", **kwargs)
            ours = gymnasium.make_vec(f"rmab/{name}-v0", rounds, **kwargs)
            a, b = rate(plain, actions, rounds), rate(ours, actions, rounds)
            figures = " | ".join(f"{1e-3 * figure:,.0f}" for figure in (one, a, b))
            print(f"| {name} | {rounds} | {figures} | {b / a:.0f} | {1e-3 * most:,.0f} |")


if __name__ == "__main__":
    main()
