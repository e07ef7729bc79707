"""Rivals on the examples of their own authors, wherever these are published.

    python studies/pages.py comparison --studies authors     runs it (resumable), and writes docs/comparison.md

`circulant` and `restart` are those of Avrachenkov & Borkar (2022), whose q-whittle learns there; `good-bad` is the synthetic
domain of Wang et al. (2023), with the sizes of their program. Rewards do not change. `studies/uc_whittle.py` plays that
program itself.
"""

from typing import Any

import numpy as np

import rmab
from rmab.study import Study

ROUNDS = 10


def steady(name: str, episodes: int) -> rmab.Task:
    """Return a published example, 100 arms and 100 steps, whose rewards do not change."""
    task = rmab.make_task(name, arms=100, horizon=100, episodes=episodes)
    rewards = np.broadcast_to(task.base_reward, (episodes, *task.base_reward.shape))
    return rmab.Task.from_rewards(task.problem, rewards, low=task.adversary.low, high=task.adversary.high, name=name)


def circulant(seed: int = 0, episodes: int = 60) -> rmab.Task:  # noqa: ARG001
    """Return four states in a circle: nothing about it is random."""
    return steady("circulant", episodes)


def restart(seed: int = 0, episodes: int = 60) -> rmab.Task:  # noqa: ARG001
    """Return five states that decay, and can be started again."""
    return steady("restart", episodes)


def authors() -> Study:
    """Return the study."""
    own = [{"name": f"authors:{name}", "label": name} for name in ("circulant", "restart")]
    tasks = [*own, {"name": "good-bad"}]
    learners: list[dict[str, Any]] = [
        {"name": "uc-whittle"},
        {"name": "q-whittle", "label": "q-whittle, theory", "options": {"preset": "theory"}},
        {"name": "q-whittle", "label": "q-whittle, tuned", "options": {"preset": "tuned"}},
        {"name": "thompson"},
        {"name": "ucmd"},
        {"name": "whittle", "label": "whittle, kernels known (privileged)"},
        {"name": "random"},
    ]
    title = "Rivals on the examples of their own authors"
    return Study.model_validate({"name": "authors", "title": title, "rounds": ROUNDS, "tasks": tasks, "learners": learners})
