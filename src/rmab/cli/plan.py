"""`rmab plan`: the best policy for a problem with known kernels, by simulation."""

from dataclasses import asdict
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.models import Model, model_arguments
from rmab.cli.names import file_option, pairs_option, whole_number
from rmab.cli.outputs import POLICY
from rmab.cli.program import BadInput, command
from rmab.cli.screen import alone_on_stdout, number, print_json, print_table, say, waiting
from rmab.common import SUFFIXES
from rmab.planners.registry import CANDIDATES

if TYPE_CHECKING:
    from rmab.planners.plan import PlanResult

DIGITS = 5  # of the best reward; all numbers of the table have as many decimals


@command(
    ("rmab plan cpap", "the best policy for a case study with its base reward"),
    ("rmab plan cpap --candidates rolling,lagrangian", "only these planners; `rmab planners` lists them"),
    ("rmab plan cpap --candidates rolling,mine:greedy", "compare a custom planner"),
    ("rmab plan cpap --candidates rolling -o rolling.window=5", "with an option of a planner"),
    ("rmab plan mine.json --save policy.npz", "a task file; store the best policy"),
    ("rmab plan problem.json --reward reward.json --json", "a problem file and its rewards, machine-readable"),
)
@model_arguments
@click.option(
    "--candidates",
    multiple=True,
    metavar="NAMES",
    help=f"Planners to compare, separated by commas; may be repeated. Default: {', '.join(CANDIDATES)}.",
)
@pairs_option(
    "-o",
    "--option",
    "options",
    metavar="PLANNER.KEY=VALUE",
    help="Option of a candidate (rolling.window=5); may be repeated.",
)
@click.option(
    "--episodes",
    type=whole_number(min=2),
    default=100,
    show_default=True,
    help="Maximum number of simulated episodes per candidate.",
)
@click.option("--time-limit", type=click.FloatRange(min=0), help="Time limit in seconds; nothing new is started after it.")
@file_option("--save", *SUFFIXES, kind=POLICY, help="File for the best policy, .npz or .json.")
def plan(
    model: Model,
    candidates: tuple[str, ...],
    options: dict[str, Any],
    episodes: int,
    time_limit: float | None,
    save: Path | None,
    machine: bool,
) -> None:
    """Find the best policy for a PROBLEM with known transition probabilities, by simulation.

    The output names planners that do not apply to the problem, with the reason. No policy earns more than the bound on
    average; `rmab bound` shows it with prices and indices.

    PROBLEM is the name of a task (`rmab tasks`), or a .json or .npz file with a task or a problem (see docs/cli.md). The
    rewards of a task may change from one episode to the next (by its adversary); this command uses the base rewards,
    which the adversary has not changed. If a file has recorded rewards, it uses their mean.
    """
    from rmab.common import Stored
    from rmab.planners.plan import plan as find_best
    from rmab.planners.registry import CANDIDATES

    names = [name.strip() for one in candidates for name in one.split(",")] or list(CANDIDATES)
    if stray := [f"{key}" for key, value in options.items() if key not in names or not isinstance(value, dict)]:
        raise BadInput(
            f"-o {stray[0]}: expected PLANNER.KEY=VALUE, where PLANNER is one of the candidates: {', '.join(names)}"
        )
    with alone_on_stdout(machine), waiting("planning") as progress:
        best = find_best(
            model.problem,
            model.reward,
            candidates=[{"name": name, **options.get(name, {})} for name in names],
            episodes=episodes,
            seed=model.seed,
            time_limit=time_limit,
            progress=progress,
        )
    if save is not None:
        if not isinstance(best.policy, Stored):
            raise BadInput(f"{save}: the policy of {best.name} cannot be stored: {type(best.policy).__name__} has no `save`")
        best.policy.save(save)
    if machine:
        numbers = {
            "value": best.value,
            "stderr": best.stderr,
            "bound": best.bound,
            "optimum": best.optimum,
            "short": best.short,
        }
        print_json({"best": best.name, **numbers, "candidates": [asdict(one) for one in best.candidates]})
        return
    _print_standing(model.name, best)
    if save is not None:
        say(f"The policy is in {save}: rmab.planners.load_policy reads it.")


def _print_standing(name: str, best: "PlanResult") -> None:
    whole = len(f"{abs(best.bound):.0f}")
    form = f",.{max(DIGITS - whole, 0)}f"
    earns = f"{number(best.value, form)} ± {number(best.stderr, form)} an episode"
    say(f"{name}: {best.name} earns {earns}, on new episodes.")
    if best.optimum is None:
        say(f"No policy earns more than {number(best.bound, form)} on average{_distance(best.short)}.")
    else:
        short = (best.optimum - best.value) / abs(best.optimum) if best.optimum else nan
        say(f"The optimal policy earns {number(best.optimum, form)} on average{_distance(short)}.")
    rows = []
    for one in best.candidates:
        if one.episodes:
            behind = f"{number(one.behind, form)} ± {number(one.behind_stderr, form)}" if one.name != best.name else ""
            numbers = (number(one.mean, form), number(one.stderr, form), behind, str(one.episodes), f"{one.seconds:.3f}")
            rows.append((one.name, *numbers))
    notes = [f"{one.name}: {one.why}" for one in best.candidates if one.why]
    heads = ("policy", "reward", "s.e.", "less than the best", "episodes", "seconds an episode")
    print_table(
        "Candidates, all on the same earlier episodes; a clearly worse one is dropped early", heads, rows, notes=notes
    )


def _distance(short: float) -> str:
    """Describe how far the value lies below the optimum or bound, or above it by sampling error."""
    if not isfinite(short):
        return ""
    return (
        f"; this policy earns {short:.2%} less"
        if short >= 0
        else f"; the simulated episodes earned {-short:.2%} more by chance"
    )
