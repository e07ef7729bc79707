"""Learners on the kernels that the group of Xiong & Li published later, and on our `cpap`: a section of docs/published.md.

The question is whether they come in another order. Results are stored run by run, so that a second call resumes.
"""

import json
from pathlib import Path

import numpy as np
import published
from rich.console import Console

import rmab

TASKS = ("cpap", "cpap-dopl")
LEARNERS = ("oracle", "ucmd", "thompson", "rmab-ucrl", "uc-whittle", "ucmd-armab", "random")
EPISODES, SEEDS = 200, 3
Kept = dict[str, float]


def measure(path: Path, console: Console) -> Kept:
    """Play what is not stored at this path yet: the regret of every run, relative to that of the random policy."""
    kept: Kept = json.loads(path.read_text()) if path.exists() else {}
    for task in TASKS:
        made = rmab.make_task(task, episodes=EPISODES)
        for learner in LEARNERS:
            for seed in range(SEEDS):
                key = f"{task} {learner} {seed}"
                if key not in kept:
                    run = rmab.run(made, learner, seed=seed)
                    kept[key] = float(run.regret("O1")[-1] / run.random_regret("O1"))
                    console.print(key, kept[key])
                    published.store(kept, path)
    return kept


def section(kept: Kept) -> list[str]:
    """Return the lines of the page."""
    lines = ["| | " + " | ".join(f"{task}, place | regret" for task in TASKS) + " |", "|---|" + "---|---|" * len(TASKS)]
    every = {(t, one): np.array([kept[f"{t} {one} {seed}"] for seed in range(SEEDS)]) for t in TASKS for one in LEARNERS}
    place = {t: sorted(LEARNERS, key=lambda one, t=t: every[t, one].mean()) for t in TASKS}
    for one in place[TASKS[0]]:
        cells = [
            f"{place[t].index(one) + 1} | {every[t, one].mean():.2%} ({every[t, one].std(ddof=1) / np.sqrt(SEEDS):.2%})"
            for t in TASKS
        ]
        lines.append(f"| {one} | {' | '.join(cells)} |")
    return [
        "## Learners on `cpap-dopl`",
        "",
        f"Regret against O1 over {EPISODES} episodes relative to the random policy, and the place by it, {SEEDS} seeds:",
        "a first look. `cpap-dopl` has the kernels that the group of Xiong & Li published with later code.",
        "",
        *lines,
        "",
        "`ucmd`, `thompson` and `rmab-ucrl` are within a third of a percent of each other on both. `uc-whittle` and then",
        "the paper's own `ucmd-armab` follow. So the order is the same, the distances are not: `ucmd-armab` loses far",
        "less on `cpap-dopl`, `uc-whittle` more in some runs.",
        "",
    ]
