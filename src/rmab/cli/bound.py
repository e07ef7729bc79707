"""`rmab bound`: bound, prices and indices of a problem with known transition probabilities."""

import math
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.models import Model, model_arguments
from rmab.cli.names import whole_number
from rmab.cli.program import command
from rmab.cli.screen import number, print_json, print_table, say, screen_width

if TYPE_CHECKING:
    from rmab.common import FloatArray
    from rmab.play import IndexPolicy
    from rmab.solvers.fluid.fluid import Fluid

SHOWN_STEPS, FEWER_STEPS, SHOWN_ROWS = 7, 5, 60
NARROW = 100  # columns below which fewer steps are shown
ROUNDING = 1e-6  # relative to the largest index: an index closer than this equals a price
MOST = 12  # maximum number of decimals; smaller numbers are written as 1.234e-15
DIGITS = 4  # of the largest number in a table; the others have as many decimals


@command(
    ("rmab bound cpap-adherence", "a case study with its base reward"),
    ("rmab bound cpap --arm 0 --arm 19", "the indices of two arms only"),
    ("rmab bound deadline -t arrival=0.5", "a case study with another option"),
    ("rmab bound mine.json", "a task file, with the mean of its rewards"),
    ("rmab bound problem.json --reward reward.json", "a problem file and its rewards"),
    ("rmab bound cpap --json", "all arms and steps, machine-readable"),
)
@model_arguments
@click.option(
    "--index",
    type=click.Choice(["lagrangian", "occupancy"]),
    default="lagrangian",
    show_default=True,
    help="lagrangian: value of activating an arm; occupancy: probability with which the plan behind the bound activates it.",
)
@click.option("--arm", "arms", type=whole_number(min=0), multiple=True, help="Arm to show, counted from 0; may be repeated.")
def bound(model: Model, index: str, arms: tuple[int, ...], machine: bool) -> None:
    """Compute an upper bound on the reward of any policy, with prices and indices.

    The transition probabilities of the PROBLEM are known. No policy earns more than the bound on average. A price is the
    most that one more activation at a step can add to the bound. An index is the value of activating an arm in a state at
    a step; a good policy activates the arms with the highest indices, up to the budget.

    PROBLEM is the name of a task (`rmab tasks`), or a .json or .npz file with a task or a problem (see docs/cli.md). The
    rewards of a task may change from one episode to the next (by its adversary); this command uses the base rewards,
    which the adversary has not changed. If a file has recorded rewards, it uses their mean.
    """
    from rmab.planners.indices import lagrangian_index, occupancy_index
    from rmab.solvers.fluid.fluid import solve_fluid

    for n in arms:
        if n >= model.problem.arms.count:
            raise click.BadParameter(
                f"expected an arm from 0 to {model.problem.arms.count - 1}, got {n}", param_hint="'--arm'"
            )
    solved = solve_fluid(model.problem, model.reward)
    make = lagrangian_index if index == "lagrangian" else occupancy_index
    policy = make(model.problem, model.reward, fluid=solved)
    if machine:
        print_json(_fields(solved, policy, index, arms))
        return
    _print_plan(model.name, solved)
    _print_indices(solved, policy, index, arms)


def _fields(solved: "Fluid", policy: "IndexPolicy", index: str, arms: tuple[int, ...]) -> dict[str, Any]:
    model = solved.problem
    sizes: dict[str, Any] = {"arms": model.arms.count, "states": model.arms.states, "horizon": model.horizon}
    sizes |= {"phases": model.phases, "budget": model.budget, "exact": model.exact, "cost": model.cost}
    blocks = [{"arms": members, "index": policy.table[members[0]]} for members in _group_equal(solved, arms)]
    return {
        **sizes,
        "discount": model.discount,
        "state_names": model.arms.state_names,
        "bound": solved.bound,
        "value": solved.value,
        "gap": solved.gap,
        "method": solved.method,
        "prices": solved.prices,
        "index": index,
        "axes": ["step", "state"],
        "blocks": blocks,
    }


def _print_plan(name: str, solved: "Fluid") -> None:
    from rmab.errors import many
    from rmab.model import describe_budget

    model = solved.problem
    budget = describe_budget(model.budget, exact=model.exact, cost=model.cost)
    arms = f"{many(model.arms.count, 'arm')} with {many(model.arms.states, 'state')} each"
    size = f"{arms}, {budget}, {many(model.horizon, 'step')}"
    size += f" in {model.phases} phases" if model.phases > 1 else ""
    size += f", discount {model.discount:g}" if model.discount < 1 else ""
    active = solved.occupancy[..., 1].sum(axis=(0, 2))
    steps = _steps(model.horizon)
    say(f"{name}: {size}")
    bound = number(solved.bound, ",.4f")
    gap = f"{max(solved.gap, 1e-15):.0e}"
    say(f"No policy earns more than {bound} an episode; certified gap: {gap}.")
    form, unit = _form(solved.prices), "activation" if model.weights is None else "unit"
    rows = [
        (f"price per {unit}", *(number(solved.prices[h], form) for h in steps)),
        ("arms that the plan activates", *(number(active[h], ".2f") for h in steps)),
    ]
    print_table("The budget", ("step", *map(str, steps)), rows)


def _print_indices(solved: "Fluid", policy: "IndexPolicy", index: str, arms: tuple[int, ...]) -> None:
    model, rows = solved.problem, []
    names = model.arms.state_names or [f"state {s}" for s in range(model.arms.states)]
    steps, table, form = _steps(model.horizon), policy.table, _form(policy.table)
    slack = ROUNDING * float(abs(table).max())
    for members in _group_equal(solved, arms):
        n = members[0]
        for s in range(int(model.arms.real_states[n])):
            worth = [index == "lagrangian" and table[n, h, s] > solved.prices[h] + slack for h in steps]
            cells = [f"{table[n, h, s]:{form}}{'*' if star else ' '}" for h, star in zip(steps, worth, strict=True)]
            rows.append((_format_ranges(members) if s == 0 else "", names[s], *cells))
    notes = ["* more than the price of this step"] if index == "lagrangian" else []
    if len(rows) > SHOWN_ROWS:
        notes.append(f"{len(rows) - SHOWN_ROWS} more rows: choose arms with --arm, or print all with --json.")
    worth_of = "value of activating an arm" + ("" if model.weights is None else ", per unit of cost")
    what = worth_of if index == "lagrangian" else "probability that the plan activates an arm in this state"
    title = f"{index.capitalize()} index at each step: {what}"
    print_table(title, ("arms", "state", *(f"{h} " for h in steps)), rows[:SHOWN_ROWS], left=2, notes=notes)


def _form(values: "FloatArray") -> str:
    """Return one number format for a whole table, with DIGITS digits for the largest number."""
    largest = float(abs(values).max())
    whole = math.floor(math.log10(largest)) + 1 if largest > 0 else 1
    places = max(DIGITS - whole, 0)
    return f"z,.{places}f" if places <= MOST else f".{DIGITS - 1}e"


def _steps(horizon: int) -> list[int]:
    """Return a few steps, evenly spread, including the first and the last."""
    count = min(horizon, SHOWN_STEPS if screen_width() >= NARROW else FEWER_STEPS)
    return sorted({round(k * (horizon - 1) / max(count - 1, 1)) for k in range(count)})


def _group_equal(solved: "Fluid", arms: tuple[int, ...]) -> list[list[int]]:
    """Group the given arms (all, if none are given) by equal plans."""
    blocks: dict[int, list[int]] = {}
    for n, block in enumerate(solved.blocks.block_of.tolist()):
        if not arms or n in arms:
            blocks.setdefault(block, []).append(n)
    return list(blocks.values())


def _format_ranges(members: list[int]) -> str:
    """Format ascending numbers as ranges: 0-3, 7."""
    ranges: list[list[int]] = []
    for n in members:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
