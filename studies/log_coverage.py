"""Do the intervals of `rmab.data` cover the truth? Made-up logs, of which it is known, many times over:

    python studies/log_coverage.py --out out/coverage --repetitions 200
    python studies/log_coverage.py --out out/coverage-spread --repetitions 200 --spread 0.3
    python studies/log_coverage.py --out out/coverage-small --repetitions 200 --arms 150 --weeks 20 --budget 8

Every repetition draws a programme and its log, fits it, evaluates the plan with its intervals, and then plays the very
same plan and its rivals with the true kernels of every arm. One line of JSON for each is kept in the folder: the same
command goes on where it stopped. At the end a table is printed, as it stands in docs/log.md.
"""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from rmab.estimation import evaluation
from rmab.estimation.evaluation import BASELINES
from rmab.estimation.one_step import Halves
from rmab.estimation.values import World

STATES = ["lapsed", "wavering", "engaged"]
evaluation.REPLAN = False  # what a plan would earn that knew the world takes most of the time, and no interval needs it


def repetition(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return what intervals of one log cover, how wide they are, and how far the estimates are off."""
    made = {"arms": options.arms, "seed": 1000 + number, "spread": options.spread}
    table = rmab.data.example_log("mothers", weeks=options.weeks, **made)
    columns = {"arm": "id", "period": "week", "state": "state", "action": "called"}
    log = rmab.data.read_log(table, **columns, groups=["age", "district"], states=STATES)
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    found = rmab.data.evaluate(fitted, options.budget, horizon=options.horizon, replicates=options.replicates, seed=number)
    truth = rmab.data.example_truth("mothers", **made).kernels[[int(one[1:]) - 1 for one in log.arms]]
    benefits = true_benefits(fitted, truth, options, number)
    kept: dict[str, Any] = {"repetition": number, "benefit": {}}
    for name, real in benefits.items():
        one = found.benefits[name]
        kept["benefit"][name] = {"value": one.value, "low": one.low, "high": one.high, "truth": real}
    kept["effects"] = effects(fitted, truth, options.replicates)
    if not found.one_step.refused:
        free = found.one_step
        kept["one step"] = {"value": free.value, "low": free.low, "high": free.high, "agrees": free.agrees}
        kept["one step"]["truth"] = true_rule_value(fitted, truth, options, number)
    return kept


def true_benefits(fitted: Any, truth: np.ndarray, options: argparse.Namespace, number: int) -> dict[str, float]:
    """Return what the fitted plan really brings more than its rivals."""
    world = World.of(fitted, options.budget, options.horizon)
    policy = world.policy(world.kernels(fitted, np.asarray(fitted.kernels)))
    alone = replace(world, group=np.arange(len(truth)), reward=world.pays, rate=world.rate[world.group])
    earned = alone.earned(policy, truth, (number, 9))[0]
    return {name: earned - value for name, value in alone.baselines(truth).items()}


def effects(fitted: Any, truth: np.ndarray, replicates: int) -> dict[str, float]:
    """Return how many groups have their effect in its interval, also of those with fewer than 50 actions seen."""
    inside, small, widths = [], [], []
    visits = fitted.counts.sum(axis=(2, 3)).astype(float)
    for g, one in enumerate(rmab.data.estimate_effects(fitted, replicates=replicates)):
        if not math.isfinite(one.value):
            continue  # no action was seen in this group
        kernels = truth[fitted.group_of == g].mean(axis=0)
        rise = (kernels[:, 1] - kernels[:, 0])[:, fitted.pay.goal]
        hit = one.low <= float(visits[g] @ rise / visits[g].sum()) <= one.high
        inside.append(hit)
        widths.append(one.high - one.low)
        if one.seen < 50:
            small.append(hit)
    found = {"all": int(np.sum(inside)), "groups": len(inside), "small": int(np.sum(small)), "small groups": len(small)}
    return {**found, "width": float(np.mean(widths))}


def true_rule_value(fitted: Any, truth: np.ndarray, options: argparse.Namespace, number: int) -> float:
    """Return what the records of the log would really have brought under the plans that the check was made of."""
    halves, moves = Halves(fitted, options.budget, options.horizon, number), fitted.log.transitions
    place = (halves.half[moves.arm], fitted.group_of[moves.arm], moves.state)
    wanted, covered = halves.wanted[place], halves.covered[place]
    ahead = truth[moves.arm, moves.state][:, :, fitted.pay.goal]
    return float(((1 - wanted) * ahead[:, 0] + wanted * ahead[:, 1])[covered].mean())


def summary(lines: list[dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    rows = [
        "| interval of | repetitions | covers the truth | mean width | mean error of the estimate | its spread |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in BASELINES:
        found = [one["benefit"][name] for one in lines]
        hit = np.mean([one["low"] <= one["truth"] <= one["high"] for one in found])
        width = np.mean([one["high"] - one["low"] for one in found])
        error = np.array([one["value"] - one["truth"] for one in found])
        bias = f"{error.mean():+.0f} ± {1.96 * error.std(ddof=1) / math.sqrt(len(error)):.0f}"
        rows.append(
            f"| the plan over {name} | {len(found)} | {100 * hit:.1f}% | {width:.0f} | {bias} | {error.std(ddof=1):.0f} |"
        )
    groups, hits = (sum(one["effects"][key] for one in lines) for key in ("groups", "all"))
    width = 100 * np.mean([one["effects"]["width"] for one in lines])
    rows.append(f"| the effect in a group | {groups} | {100 * hits / groups:.1f}% | {width:.0f} points | | |")
    few, small = (sum(one["effects"][key] for one in lines) for key in ("small groups", "small"))
    rows.append(f"| ... of fewer than 50 actions | {few} | {100 * small / max(few, 1):.1f}% | | | |")
    free = [one["one step"] for one in lines if "one step" in one]
    if free:
        hit = np.mean([one["low"] <= one["truth"] <= one["high"] for one in free])
        width = 100 * np.mean([one["high"] - one["low"] for one in free])
        error = 100 * np.array([one["value"] - one["truth"] for one in free])
        bias = f"{error.mean():+.2f} ± {1.96 * error.std(ddof=1) / math.sqrt(len(error)):.2f}"
        sizes = f"{width:.1f} points | {bias} | {error.std(ddof=1):.2f}"
        rows.append(f"| the check one step ahead | {len(free)} | {100 * hit:.1f}% | {sizes} |")
        agreed = 100 * np.mean([one["agrees"] for one in free])
        rows.append(f"\nThe model agrees with the check one step ahead in {agreed:.0f}% of {len(free)} repetitions.")
    return "\n".join(rows)


def main() -> None:
    """Go on with the study, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="begin with this one: to share the work between machines")
    parser.add_argument("--replicates", type=int, default=80)
    parser.add_argument("--arms", type=int, default=600)
    parser.add_argument("--weeks", type=int, default=40)
    parser.add_argument("--budget", type=int, default=30)
    parser.add_argument("--horizon", type=int, default=26)
    parser.add_argument("--spread", type=float, default=0.0, help="how much arms of a group differ, 0 to 1")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    own = {key: value for key, value in vars(options).items() if key not in ("out", "repetitions", "first")}
    settings, results = options.out / "settings.json", options.out / "repetitions.jsonl"
    if settings.exists() and json.loads(settings.read_text()) != own:
        parser.error(f"{options.out} holds a study with other settings: {settings.read_text().strip()}")
    settings.write_text(json.dumps(own) + "\n")
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {one["repetition"] for one in lines}
    for number in range(options.first, options.first + options.repetitions):
        if number not in done:
            lines.append(repetition(number, options))
            with results.open("a") as stream:
                stream.write(json.dumps(lines[-1]) + "\n")
            print(f"{len(lines)} of {options.repetitions}", flush=True)  # noqa: T201
    print(summary(lines))  # noqa: T201


if __name__ == "__main__":
    main()
