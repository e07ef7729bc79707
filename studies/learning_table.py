"""The learning table: every learner against every adversary, with intervals. Writes docs/learning_tables.md; can be stopped
and started again: finished runs are kept in the results file.

    python studies/learning_table.py [cpap] [cpap-adherence] [deadline] [--rounds 20] [--workers 2]

The deadline study has 5 rounds of 10 episodes, unless told otherwise: a round of it takes minutes.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import track

import rmab
from rmab.model.adversaries import ADVERSARIES
from rmab.report.statistics import interval

ROOT = Path(__file__).parents[1]
LEARNERS: dict[str, tuple[str, dict[str, str], str]] = {
    "ucmd": ("ucmd", {}, "bandit"),
    "ucmd-armab": ("ucmd-armab", {}, "bandit"),
    "rmab-ucrl": ("rmab-ucrl", {"version": "stationary"}, "bandit"),
    "rmab-ucrl, finite": ("rmab-ucrl", {"version": "finite"}, "bandit"),
    "rmab-ucrl, window": ("rmab-ucrl", {"version": "window"}, "bandit"),
    "random": ("random", {}, "bandit"),
    "ucmd, full information (privileged)": ("ucmd", {}, "full"),
    "oracle (privileged)": ("oracle", {}, "bandit"),
}
VARIANTS: dict[str, dict[str, str | float]] = {
    "forecast, lazy (default)": {},
    "forecast, hoeffding sets": {"confidence": "hoeffding"},
    "forecast, bernstein sets": {"confidence": "bernstein"},
    "forecast, L1 sets": {"confidence": "l1"},
    "forecast, dependent rounding": {"rounding": "dependent"},
    "fading, lazy": {"estimator": "fading"},
    "last, lazy": {"estimator": "last"},
    "direct, lazy": {"estimator": "direct"},
    "paper's estimator, lazy": {"estimator": "paper"},
    "fading, active, 4 x rate": {"estimator": "fading", "step": "active", "scale": 4.0},
    "last, active, 4 x rate": {"estimator": "last", "step": "active", "scale": 4.0},
    "direct, active": {"estimator": "direct", "step": "active"},
    "implicit exploration, lazy": {"estimator": "implicit"},
    "implicit exploration, active": {"estimator": "implicit", "step": "active"},
}
for label, options in VARIANTS.items():
    LEARNERS[f"variant: {label}"] = ("ucmd", options, "bandit")  # type: ignore[assignment]
SIZES: dict[str, dict[str, int | bool]] = {"cpap": {}, "cpap-adherence": {}, "deadline": {"episodes": 10}}


def alone() -> None:
    """Keep a worker to one core, so that workers do not fight over threads."""
    free = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {free[os.getpid() % len(free)]})


def play(job: tuple[str, str, str, int]) -> dict[str, object]:
    """Play one run and return what the table needs of it."""
    family, against, label, seed = job
    name, options, feedback = LEARNERS[label]
    task = rmab.task(f"{family}@{against}", seed=seed, feedback=feedback, **SIZES[family])  # type: ignore[arg-type]
    run = rmab.run(task, rmab.learner(name, **options), seed)
    to = {which: run.relative_regret(which) for which in ("O1", "O2")}  # type: ignore[arg-type]
    return {"job": list(job), **to, "seconds": float(run.seconds.sum() / run.reward.size), "reward": float(run.reward.sum())}


def shown(values: list[float]) -> str:
    """Mean of the rounds, with the half width of its 95% interval where there are two or more; nothing without rounds."""
    found = interval(np.asarray(values))
    return "" if not values else f"{found.mean:.1f} ± {found.half:.1f}" if found.count > 1 else f"{found.mean:.1f}"


def section(family: str, labels: list[str], results: list[dict[str, object]], to: str) -> str:
    """One table: learners by adversaries, regret relative to a comparator in per cent."""
    lines = [f"| regret to {to}, % | " + " | ".join(ADVERSARIES) + " | rounds | s / episode |", "| --- |" + " ---: |" * 8]
    for label in labels:
        cells, seconds, rounds = [], [], set()
        for against in ADVERSARIES:
            mine = [one for one in results if one["job"][:3] == [family, against, label]]  # type: ignore[index]
            seconds += [float(one["seconds"]) for one in mine]  # type: ignore[arg-type]
            rounds.add(len(mine))
            cells.append(shown([100 * float(one[to]) for one in mine]))  # type: ignore[arg-type]
        if any(cells):
            lines.append(
                f"| {label} | " + " | ".join(cells) + f" | {'-'.join(map(str, sorted(rounds)))} | {np.mean(seconds):.2f} |"
            )
    return "\n".join(lines)


def paired(family: str, results: list[dict[str, object]]) -> str:
    """One table: by how much others with bandit feedback lose more than `ucmd` in the same rounds, in per cent of O1."""
    regret = {tuple(one["job"]): 100 * float(one["O1"]) for one in results}  # type: ignore[arg-type]
    lines = [
        "| regret to O1 above `ucmd`'s in the same rounds, points | " + " | ".join(ADVERSARIES) + " |",
        "| --- |" + " ---: |" * 6,
    ]
    for label, (name, _, feedback) in LEARNERS.items():
        if label.startswith("variant") or label == "ucmd" or feedback == "full" or name == "oracle":
            continue
        cells = []
        for against in ADVERSARIES:
            rounds = [job[3] for job in regret if job[:3] == (family, against, label)]
            both = [seed for seed in rounds if (family, against, "ucmd", seed) in regret]
            more = [regret[family, against, label, seed] - regret[family, against, "ucmd", seed] for seed in both]
            cells.append(shown(more))
        if any(cells):
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=[], choices=[[], *SIZES])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--learners", default="*", help="only learners whose label matches this, for instance 'ucmd*'")
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "learning.jsonl")
    args = parser.parse_args()
    done = [json.loads(line) for line in args.results.read_text().splitlines()] if args.results.exists() else []
    finished = {tuple(one["job"]) for one in done}
    jobs = [
        (family, against, label, seed)
        for family in args.families or SIZES
        for seed in range(min(args.rounds, 5) if family == "deadline" else args.rounds)
        for against in ADVERSARIES
        for label in LEARNERS
        if fnmatchcase(label, args.learners) and not (label.startswith("variant") and (family != "cpap" or seed >= 4))
    ]
    jobs.sort(key=lambda job: (job[2].startswith("variant"), "finite" in job[2] or "window" in job[2]))  # the dear ones late
    todo = [job for job in jobs if job not in finished]
    with (
        ProcessPoolExecutor(args.workers, mp_context=get_context("spawn"), initializer=alone) as pool,
        args.results.open("a") as file,
    ):
        for future in track(as_completed([pool.submit(play, job) for job in todo]), "runs", total=len(todo)):
            done.append(future.result())
            file.write(json.dumps(done[-1]) + "\n")
            file.flush()
    (ROOT / "docs" / "learning_tables.md").write_text(tables(done))


def tables(results: list[dict[str, object]]) -> str:
    """Return the whole page."""
    main_labels = [label for label in LEARNERS if not label.startswith("variant")]
    parts = [
        "# Learning tables\n",
        "Made by `python studies/learning_table.py`: means and 95% intervals over rounds. Negative is better; in\n"
        "the tables of differences to `ucmd`, positive means that `ucmd` is better.\n",
    ]
    for family in SIZES:
        if any(one["job"][0] == family for one in results):  # type: ignore[index]
            parts.append(f"## {family}\n")
            parts += [section(family, main_labels, results, to) + "\n" for to in ("O1", "O2")]
            parts.append(paired(family, results) + "\n")
    variants = [label for label in LEARNERS if label.startswith("variant")]
    parts.append("## Parts of `ucmd`, exchanged one by one (cpap, 4 rounds)\n")
    parts.append(section("cpap", variants, results, "O1") + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
