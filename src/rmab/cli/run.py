"""`rmab run`: run one learner on one task."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rmab.cli.names import LEARNER, TASK, file_option, pairs_option, seed_option, whole_number
from rmab.cli.outputs import RUN
from rmab.cli.program import Failure, command
from rmab.cli.screen import alone_on_stdout, number, print_json, print_table, progress

if TYPE_CHECKING:
    from rmab.model import FeedbackMode
    from rmab.runs.record import RunResult

SOURCES = {
    "Term0": "over-estimation",
    "Term1": "the plan (mirror descent in the paper)",
    "Term2": "the estimator",
    "Term3": "the index policy in the true model",
}
OF_RANDOM = "% of random: regret relative to the random policy (0: the comparator, 100: as bad as random, below 0: better)."
OF_REWARD = "%: regret relative to the reward of the comparator, or share of the budget that was used."
COMPARATORS = {
    "O1": "fluid bound of one fixed policy",
    "O2": "best fixed policy that can be executed",
    "O3": "fluid bound of each episode",
}


@command(
    ("rmab run cpap ucmd", "the recommended learner on the first case study of Xiong & Li (2024)"),
    ("rmab run cpap@switching ucmd --episodes 20 --seed 7", "with another adversary, fewer episodes and another seed"),
    ("rmab run cpap ucmd-armab -o scale=10 -t arms=40", "options of the learner and of the task"),
    ("rmab run cpap ucmd -o estimator=mine:Fade -o estimator.speed=0.5", "a custom component and its option"),
    ("rmab run mine.json ucmd --save run.parquet", "a task file; write one row per episode to a file"),
    ("rmab run mine:ward@switching mine:Learner", "a custom task and learner, from a Python module"),
    ("rmab run cpap random --episodes 5 --json", "machine-readable summary"),
)
@click.argument("task", type=TASK)
@click.argument("learner", type=LEARNER)
@seed_option("Random seed of the task and of the run.")
@click.option("--episodes", type=whole_number(min=1), help="Number of episodes, short for -t episodes=N.")
@pairs_option(
    "-o", "--option", "options", help="Option of the learner or of a component (estimator.doubt=2); may be repeated."
)
@pairs_option("-t", "--task-option", help="Option of the task; may be repeated.")
@click.option(
    "--feedback",
    type=click.Choice(["bandit", "active", "full"]),
    help="Which rewards the learner observes: those of visited pairs of state and action, of visited pairs with action 1, "
    "or all. Default: as the task says, or what the learner needs.",
)
@file_option("--save", ".parquet", ".csv", kind=RUN, help="Write one row per episode to FILE, .parquet or .csv.")
@click.option("--json", "machine", is_flag=True, help="Print the summary as JSON.")
def run(
    task: str,
    learner: str,
    seed: int,
    episodes: int | None,
    options: dict[str, object],
    task_option: dict[str, Any],
    feedback: "FeedbackMode | None",
    save: Path | None,
    machine: bool,
) -> None:
    """Run LEARNER on all episodes of TASK and print a summary.

    TASK is a name (`rmab tasks`), a file, or a custom module:function. An adversary may follow after @, as a name or
    module:function. LEARNER is a name (`rmab learners`) or a custom module:Class. The same seed gives the same run.
    Regret is what the comparator earns minus what the learner earned; it is negative if the learner earned more. The
    comparators know everything: O1 is an upper bound on any policy that is the same in all episodes, O2 the best such
    policy that was found, O3 an upper bound on any policy that may change in every episode.
    """
    from rmab.learning.registry import make_learner
    from rmab.runs.running import run as play
    from rmab.tasks.making import find_task

    if episodes is not None:
        task_option = {**task_option, "episodes": episodes}
    with alone_on_stdout(machine):
        player = make_learner(learner, **options)
        game = find_task(task, seed, **task_option)
        with progress(f"{learner} on {game.name}") as advance:
            played = play(game, player, seed, feedback=feedback, progress=advance)
            summary = played.summary()  # also under the progress bar, as it solves for the comparators
    problem = None if save is None else _save(played, summary, save)
    saved = None if problem else save
    if machine:
        print_json({**summary, "saved": None if saved is None else str(saved)})
    else:
        _print(played, summary, saved)
    if problem is not None:
        raise Failure(f"{problem}; the run is not saved") from problem


def _print(played: "RunResult", summary: dict[str, Any], save: Path | None) -> None:
    from rmab.errors import many
    from rmab.model import format_limit

    episodes, problem = summary["episodes"], played.task.problem
    size = abs(summary["reward"])
    rows = [("reward", *_both(summary["reward"], episodes, size), "", "")]
    for to, regret in summary["regret"].items():
        share, part = (_percent(summary[unit][to]) for unit in ("relative_to_random", "relative_regret"))
        rows.append((f"regret against {to}, {COMPARATORS[to]}", *_both(regret, episodes, size), share, part))
        for term, value in summary["terms"].items() if to == "O1" else ():
            rows.append((f"  {term}, {SOURCES[term]}", *_both(value, episodes, size), "", ""))
    used = played.activations
    use = summary["budget_use"]
    spent = f"{100 * use:.1f} %" if math.isfinite(use) else "-"
    rows.append(("activations", number(used.sum(), ",.0f"), number(used.mean()), "", spent))
    rows.append(("seconds", number(summary["seconds"], ",.2f"), number(summary["seconds"] / episodes, ",.3f"), "", ""))
    sizes = f"{many(problem.arms.count, 'arm')}, budget {format_limit(problem.budget)}, {many(problem.horizon, 'step')}"
    sizes += f", {many(episodes, 'episode')}"
    title = f"{summary['learner']} on {summary['task']}: {sizes}, {summary['feedback']} feedback, seed {summary['seed']}"
    terms = "Term0 to Term3, the decomposition of Xiong & Li (docs/explanation/paper.md), add up to the regret against O1."
    if not all(math.isfinite(value) for value in summary["terms"].values()):
        terms = "Term0 to Term3 need a learner that plans by occupancies and estimates rewards; this one does not."
    notes = [OF_RANDOM, OF_REWARD, terms]
    if played.task.adversary.adaptive:
        notes.append("The adversary reacts to the learner: compare the rewards of learners, not their regrets.")
    if summary["privileged"]:
        notes.append(f"{summary['learner']} is privileged: it {summary['privileged']}.")
    if summary["adversary"]:
        notes.append(f"The adversary {summary['adversary']}.")
    if save is not None:
        notes.append(f"saved: {save}")
    print_table(title, ("", "total", "per episode", "% of random", "%"), rows, notes=notes)


def _percent(part: float) -> str:
    """Format a signed ratio in per cent; a dash if it is not finite, as when the random policy has no regret."""
    return f"{number(100 * part, '+.1f', of=100)} %" if math.isfinite(part) else "-"


def _both(value: float, episodes: int, size: float) -> tuple[str, str]:
    """Format a sum over all episodes and its mean, beside rewards of this size."""
    return number(value, of=size), number(value / episodes, of=size / episodes)


def _save(played: "RunResult", summary: dict[str, Any], path: Path) -> Exception | None:
    """Write one row per episode; return the error, if any, so that the result is printed all the same.

    Every row has the task, learner and seed, so files can be concatenated.
    """
    try:
        import numpy as np
        import pyarrow as pa

        from rmab.common import write_table

        same = {name: np.full(summary["episodes"], summary[name]) for name in ("task", "learner", "seed")}
        write_table(pa.table({**same, **played.to_table()}), path)
    except Exception as error:  # noqa: BLE001  (no error may lose the result)
        return error
    return None
