"""Kinds of worlds: `ucmd`, `ucmd` with one component switched off, and rivals, on the same rounds.

    python studies/kinds.py [--rounds 10] [--only "weekly;harm"] [--learners "ucmd;thompson"] [--out results]
    python studies/kinds.py --carries          (of what was played: where a component matters, and what it costs elsewhere)

Prints regret against O1 in per cent of the random policy's, mean and 95% interval over rounds: 0 is the best fixed
policy, 100 the random one, negative is better than any fixed policy. `slack` is in per cent of O1, as the random policy
loses nothing there. A cell is empty where a learner refuses the world, or plays as `ucmd` does. What was played is stored
in `kinds.json` and is not played again: a study that was stopped is resumed. Seeds begin at `--first`. All of it takes
about 20 minutes on one core.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hostile_worlds import HOSTILE
from invented_worlds import INVENTED
from rich.console import Console
from scipy.stats import t as student
from worlds import WORLDS

import rmab
from rmab.common import write_atomically
from rmab.report.statistics import Paired, compare_pair, holm

HERE = Path(__file__).parent
SAY = Console(highlight=False, soft_wrap=True, markup=False)
Maker = Callable[[int], rmab.Task]


def task(name: str, **options: Any) -> Maker:
    """Return the maker of a task from a seed."""
    return lambda seed: rmab.make_task(name, seed=seed, **options)


def undeclared(seed: int) -> rmab.Task:
    """Return cpap under active feedback, where nobody has said that being passive pays nothing."""
    made = rmab.make_task("cpap@noisy", seed=seed, feedback="active")
    return replace(made, adversary=replace(made.adversary, passive_zero=False))


KINDS: dict[str, Maker] = {
    "weekly": task("cpap@weekly"),
    "alternating": task("cpap@alternating"),
    "period 9": task("cpap@ninth"),
    "alternating, T = 200, full": task("cpap@alternating", episodes=200, feedback="full"),
    "harm": task("harm@noisy"),
    "harm, B = N": task("harm@noisy", budget=20),
    "restart": task("restart@noisy", arms=20, horizon=50),
    "slack": task("harm@noisy", hurt=0, budget=20),
    "drift": task("drift"),
    "weather": task("cpap@weather"),
    "no phases": task("clock@noisy", phases=1),
    "idle phases": task("clock@noisy"),
    "phases that differ": task("clock@noisy", spread=0.8),
    "active, pay by state": task("cpap-adherence@noisy", feedback="active"),
    "active, passive zero": undeclared,
    "cpap ramp": task("cpap@ramp"),
    "cpap noisy": task("cpap@noisy"),
    "cpap iid": task("cpap@iid"),
    "cpap switching": task("cpap@switching"),
    "cpap drifting": task("cpap@drifting"),
    "cpap mixed": task("cpap@mixed"),
    "cpap late": task("cpap@late"),
    "cpap lock": task("cpap@lock"),
    "adherence noisy": task("cpap-adherence@noisy"),
    "adherence switching": task("cpap-adherence@switching"),
    "chains of 6": task("swim@ramp", states=6),
    "swim noisy": task("swim@noisy"),
    "swim switching": task("swim@switching"),
    **WORLDS,
    **HOSTILE,
    **INVENTED,
}
LEARNERS = {
    "ucmd": "ucmd",
    "without rest": 'ucmd {"rest": false}',
    "without changes": 'ucmd {"changes": false}',
    "without seasons": 'ucmd {"seasons": []}',
    "without shocks": 'ucmd {"shocks": false}',
    "without pooled phases": 'ucmd {"confidence": {"phases": false}, "estimator": {"phases": false}}',
    "without priors": 'ucmd {"priors": [1.0]}',
    "without types": 'ucmd {"types": false}',
    "without sharing": 'ucmd {"alike": false}',
    "without replay": 'ucmd {"replay": false}',
    "without executed": 'ucmd {"executed": false}',
    "as-active declared": 'ucmd {"passive": "as-active"}',
    "zero declared": 'ucmd {"passive": "zero"}',
    "thompson": "thompson",
    "uc-whittle": "uc-whittle",
    "rmab-ucrl": "rmab-ucrl",
    "restless-ucb": "restless-ucb",
    "random": "random",
}
PHASES = ("idle phases", "phases that differ", "season by phase")
MANY = ("200 coins", "cold start")  # arms, so that types can be told


def fits(kind: str, label: str) -> bool:
    """Whether a learner plays otherwise than `ucmd` there: not without phases or many arms, or where all pay is revealed."""
    if "phases" in label or "types" in label:
        return kind in (PHASES if "phases" in label else MANY)
    return "declared" not in label or kind.startswith("active,")


def make(learner: str) -> rmab.Learner:
    """Return a learner by its name, and options as JSON."""
    name, _, options = learner.partition(" ")
    return rmab.make_learner(name, **json.loads(options or "{}"))


def play(kind: str, learner: str, seed: int) -> tuple[float, float]:
    """Return the regret of a run in per cent, and milliseconds an episode."""
    run = rmab.run(KINDS[kind](seed), make(learner), seed=seed)
    lost = run.relative_regret() if kind == "slack" else run.relative_to_random()
    return 100 * lost, 1000 * float(np.median(run.seconds))


def interval(values: list[float]) -> str:
    """Return mean and 95% interval."""
    wide = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ± {wide:.1f}"


def carries(found: dict[str, tuple[float, float]], first: int, rounds: int) -> None:
    """Print what is lost, and what is gained, where a component is switched off: points, if significant in the table."""
    pairs = []
    for label in (one for one in LEARNERS if one.startswith("without")):
        for kind in KINDS:
            both = [[f"{kind}: {LEARNERS[one]}: {first + r}" for r in range(rounds)] for one in (label, "ucmd")]
            if all(key in found for keys in both for key in keys):
                off, on = (np.array([found[key][0] for key in keys]) for keys in both)
                if (off != on).any():
                    pairs.append(compare_pair(label, kind, off, on))
    told: list[Paired] = [one for one in holm(pairs) if one.is_significant]
    SAY.print("| component | what is lost without it | what is gained without it |\n| --- | --- | --- |")
    for label in dict.fromkeys(one.first for one in pairs):
        mine = sorted((one for one in told if one.first == label), key=lambda one: -abs(one.difference.mean))
        lost, gained = (listed([one for one in mine if sign * one.difference.mean > 0]) for sign in (1, -1))
        SAY.print(f"| {label.removeprefix('without ')} | {lost} | {gained} |")


def listed(pairs: list[Paired]) -> str:
    """Return kinds, and points with their intervals."""
    said = [f"{one.second} {abs(one.difference.mean):.1f} ± {one.difference.half:.1f}" for one in pairs]
    return "; ".join(said) or "nothing"


def main() -> None:
    """Play what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--first", type=int, default=8000)
    parser.add_argument("--only", default="", help="kinds, with semicolons")
    parser.add_argument(
        "--learners", default=";".join(LEARNERS), help="with semicolons: labels, or names and options as JSON"
    )
    parser.add_argument("--out", type=Path, default=HERE.parent / "results", help="where its file is")
    parser.add_argument("--carries", action="store_true", help="only print where components matter")
    args = parser.parse_args()
    kinds = [one for one in KINDS if not args.only or one in args.only.split(";")]
    learners = args.learners.split(";")
    path = args.out / "kinds.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[float, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if args.carries:
        carries(found, args.first, args.rounds)
        return
    SAY.print("| kind | " + " | ".join(learners) + " |")
    SAY.print("| --- |" + " ---: |" * len(learners))
    for kind in kinds:
        cells = []
        for label in learners:
            learner = LEARNERS.get(label, label)
            plays = fits(kind, label) and not make(learner).refuses(KINDS[kind](args.first).view())
            keys = [f"{kind}: {learner}: {args.first + r}" for r in range(args.rounds)] if plays else []
            for seed, key in enumerate(keys, args.first):
                if key not in found:
                    found[key] = play(kind, learner, seed)
            cells.append(interval([found[key][0] for key in keys]) if keys else "")
            write_atomically(path, json.dumps(found, indent=1).encode())
        SAY.print(f"| {kind} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
