"""`rmab plan --compare`: every policy that applies, simulated, the best first."""

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from rmab.cli.screen import number, print_json, print_table, say, waiting

if TYPE_CHECKING:
    from rmab.model.problem import Problem
    from rmab.planners.plan import PlanResult

DIGITS = 5  # of the best reward; all numbers of the table have the same number of decimals


def compare_policies(name: str, model: "Problem", pays: Any, *, rounds: int, seed: int, machine: bool) -> None:
    """Let all candidates race, show how it goes, and print what became of them."""
    from rmab.planners.plan import plan

    with waiting("planning") as told:
        best = plan(model, pays, rounds=rounds, seed=seed, told=told)
    if machine:
        numbers = {"value": best.value, "stderr": best.stderr, "bound": best.bound, "short": best.short}
        print_json({"best": best.name, **numbers, "candidates": [asdict(one) for one in best.candidates]})
    else:
        _print_standing(name, best)


def _print_standing(name: str, best: "PlanResult") -> None:
    whole = len(f"{abs(best.bound):.0f}")
    form = f",.{max(DIGITS - whole, 0)}f"
    earns = f"{number(best.value, form)} ± {number(best.stderr, form)} an episode"
    say(f"{name}: {best.name} earns {earns}.")
    say(f"No policy earns more than {number(best.bound, form)} on average{_distance(best.short)}.")
    rows = []
    for one in best.candidates:
        if one.rounds:
            behind = f"{number(one.behind, form)} ± {number(one.behind_stderr, form)}" if one.name != best.name else ""
            numbers = (number(one.mean, form), number(one.stderr, form), behind, str(one.rounds), f"{one.seconds:.3f}")
            rows.append((one.name, *numbers))
    notes = [f"{one.name}: {one.why}" for one in best.candidates if one.why]
    heads = ("policy", "reward", "s.e.", "behind the best", "rounds", "seconds a round")
    print_table("The candidates, with the same luck; who is clearly behind drops out", heads, rows, notes=notes)


def _distance(short: float) -> str:
    """Say how far the value lies below the bound, or by luck above it."""
    if not isfinite(short):
        return ""
    return f": {short:.2%} of that are missing" if short >= 0 else f"; {-short:.2%} more were had by luck"
