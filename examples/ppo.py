"""Train an agent of stable-baselines3, and compare it with `ucmd` and the planners; docs/gymnasium.md has the results.

It needs `pip install 'rmab[gym]' stable-baselines3`, one core and some minutes: `python examples/ppo.py --steps
300000`.

All are scored on the same games: all episodes of the task in order, with the same seeds. `ucmd` learns while it is
scored, without prior knowledge; so does PPO "in the same episodes". PPO "after" a number of steps has trained on
earlier games against the same rewards. Planners know the kernels and the summed rewards.
"""

import argparse
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm

import rmab
import rmab.gym

TASK, ADVERSARY = "cpap", "switching"
SEEDS = (1, 2, 3)  # of the games that are scored; training has others


def environment() -> gymnasium.Env:
    """Return the environment: a score for every arm, the highest are active."""
    return rmab.gym.ScoreAction(gymnasium.make(f"rmab/{TASK}-v0", adversary=ADVERSARY, bound=False))


def agent(env: gymnasium.Env, seed: int, scale: float) -> BaseAlgorithm:
    """Return a new agent, whose rewards are scaled to about 1 a step."""
    scaled = gymnasium.wrappers.TransformReward(env, lambda reward: reward / scale)
    return PPO("MultiInputPolicy", scaled, n_steps=500, batch_size=100, gamma=0.95, seed=seed, device="cpu")


def scored(model: BaseAlgorithm, seed: int) -> NDArray[np.float64]:
    """(T,) what a trained agent earns in every episode of a game."""
    env = environment()
    earned = np.zeros(env.unwrapped.task.episodes)
    for t in range(earned.size):
        observation, _ = env.reset(seed=seed) if t == 0 else env.reset()
        over = False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, over, _, _ = env.step(action)
            earned[t] += reward
    return earned


def while_learning(seed: int, scale: float) -> float:
    """Return what an agent earns in one game in which it learns from nothing."""
    recorded = gymnasium.wrappers.RecordEpisodeStatistics(environment(), buffer_length=10_000)
    task = recorded.unwrapped.task
    recorded.reset(seed=seed)
    model = agent(recorded, seed, scale)
    model.set_random_seed(seed)
    model.learn(task.episodes * task.problem.horizon)
    return float(np.sum(list(recorded.return_queue)[: task.episodes]))


def main() -> None:
    """Train, score everybody, and print a table."""
    parser = argparse.ArgumentParser(description="Compare PPO with ucmd and the planners.")
    parser.add_argument("--steps", type=int, default=300_000, help="of training")
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    env = gymnasium.make(f"rmab/{TASK}-v0", adversary=ADVERSARY, bound=False)
    task: rmab.Task = env.unwrapped.task
    bound = sum(rmab.solvers.solve_fluid(task.problem, task.reward(t)).bound for t in range(task.episodes))
    scale = bound / (task.episodes * task.problem.horizon)

    trained = agent(environment(), 0, scale).learn(steps)
    players: dict[str, Callable[[int], float]] = {
        "PPO, in the same episodes": lambda seed: while_learning(seed, scale),
        f"PPO, after {steps:,} steps": lambda seed: float(scored(trained, seed).sum()),
    }
    for name in ("random", "round-robin", "ucmd", "myopic", "whittle", "lagrangian"):
        told = " (privileged)" if rmab.make_learner(name).privileged else ""
        players[name + told] = lambda seed, name=name: float(rmab.gym.play(env, name, seed).sum())
    print("| player | earned | from | to | of the bound |\n| --- | ---: | ---: | ---: | ---: |")
    for name, play in players.items():
        totals = [play(seed) for seed in SEEDS]
        mean = float(np.mean(totals))
        print(f"| {name} | {mean:,.0f} | {min(totals):,.0f} | {max(totals):,.0f} | {mean / bound:.0%} |", flush=True)
    print(f"| bound of every episode | {bound:,.0f} | | | 100% |")


if __name__ == "__main__":
    main()
