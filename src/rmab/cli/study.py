"""`rmab study`: many rounds of learners on tasks, stored in a resumable folder."""

import shlex
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rmab.cli.names import BUILTIN_STUDY, STUDY, whole_number
from rmab.cli.program import FAILED, Failure, command, examples
from rmab.cli.screen import alone_on_stdout, print_json, print_table, progress, say, waiting

if TYPE_CHECKING:
    from collections.abc import Collection

    from rmab.study import Changes, Engine, Failure as RunFailure, Status, Study

ENGINE = "Where to run: on this machine or on a Dask cluster."
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(
    epilog=examples(
        ("rmab study list", "the built-in studies"),
        ("rmab study run paper-cpap --rounds 20 --out results", "run one, with fewer rounds"),
        ("rmab study report results", "write the report with its figures"),
    )
)
def study() -> None:
    """Run studies: every learner on every task, in many rounds.

    A round is one repetition in which all learners meet the same arms and rewards. Studies are resumable: run the same
    command again to continue, or with more --rounds to extend the study.
    """


@command(
    ("rmab study run paper-cpap --rounds 20 --out results", "a built-in study on all cores"),
    ("rmab study run mine.toml --out results --workers 2", "a custom study, with two worker processes"),
    ("rmab study run mine.toml --out results --again", "re-run what a change of custom code affects"),
    ("rmab study run paper-cpap --out results --engine dask --scheduler tcp://head:8786", "on a Dask cluster"),
    parent=study,
)
@click.argument("name", metavar="NAME|FILE", type=STUDY)
@click.option("--out", "folder", type=FOLDER, required=True, help="Folder of the results; created if it does not exist.")
@click.option("--rounds", type=whole_number(min=1), help="Number of rounds; default: that of the study.")
@click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True, help=ENGINE)
@click.option("--workers", type=whole_number(min=1), help="Number of processes of the local engine; default: all cores.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit of a run, including compilation; a longer run fails. Local engine only; default: no limit.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Address of the Dask scheduler, for example tcp://127.0.0.1:8786.")
@click.option("--again", is_flag=True, help="Re-run finished runs whose custom code has changed.")
@click.option("--json", "machine", is_flag=True, help="Print the status of the folder as JSON.")
@click.pass_context
def run(
    ctx: click.Context,
    name: str,
    folder: Path,
    rounds: int | None,
    engine: str,
    workers: int | None,
    time_limit: float | None,
    scheduler: str | None,
    again: bool,
    machine: bool,
) -> None:
    """Run all unfinished runs of a study.

    NAME is a built-in study (`rmab study list`), FILE a TOML file. Ctrl-C stops; the same command resumes. Results
    do not depend on the engine or on the number of workers.
    """
    from rmab.study import Results, Study

    runner = _engine(engine, workers, scheduler, time_limit)
    with alone_on_stdout(machine):
        plan = Study.load(name)
        if rounds is not None:
            plan = plan.with_rounds(rounds)
        debug = ctx.find_root().params["debug"]
        changes = _warn_of_changes(plan, folder, again, debug)
    try:
        with alone_on_stdout(machine):
            status = _run_missing(plan, folder, runner, changes.ids if again else (), debug)
    except KeyboardInterrupt:
        say(f"\nFinished runs are stored in {folder}; resume with:\n  {_same_command(ctx)}", err=True)
        raise
    _print_status(folder, status, machine, changes)
    there = Results.open(folder).study.rounds
    if plan.rounds < there:
        words = f"{folder} has {there:,} rounds; this command ran only the first {plan.rounds:,}"
        say(f"{words}; `study status` and `study report` cover all {there:,}", err=True)
    if not status.complete:
        say(f"Some runs are not finished; try them again with:\n  {_same_command(ctx)}", err=True)
        ctx.exit(FAILED)
    say(f"Write the report with: {ctx.find_root().command_path} study report {shlex.quote(str(folder))}", err=True)


@command(("rmab study list", "names, sizes and titles"), name="list", parent=study)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def list_studies(machine: bool) -> None:
    """List the built-in studies."""
    from rmab.study import BUILTIN

    if machine:
        print_json({name: one.model_dump(mode="json") for name, one in BUILTIN.items()})
        return
    rows = [
        (name, one.title, str(len(one.tasks)), str(len(one.learners)), f"{one.rounds:,}", f"{len(one.jobs()):,}")
        for name, one in BUILTIN.items()
    ]
    notes = ["Copy a study to change it: rmab study show NAME > mine.toml"]
    print_table("Studies", ("study", "description", "tasks", "learners", "rounds", "runs"), rows, left=2, notes=notes)


@command(
    ("rmab study show paper-cpap", "print it"),
    ("rmab study show paper-cpap > mine.toml", "copy it to change it"),
    parent=study,
)
@click.argument("name", type=BUILTIN_STUDY)
def show(name: str) -> None:
    """Print the study NAME as TOML, as a template for a custom study."""
    click.echo((resources.files("rmab.study") / "builtin" / f"{name}.toml").read_text(encoding="utf-8"), nl=False)


@command(
    ("rmab study status results", "progress of a study"),
    ("rmab study status results --json", "machine-readable status"),
    parent=study,
)
@click.argument("folder", type=FOLDER)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
@click.pass_context
def status(ctx: click.Context, folder: Path, machine: bool) -> None:
    """Show the progress of the study in FOLDER.

    The output has the numbers of finished, missing and damaged runs, and why runs failed.
    """
    from rmab.study import Results

    found = Results.open(folder).status()
    _print_status(folder, found, machine)
    for one in () if machine else found.failures:
        _print_failure(one, ctx.find_root().params["debug"])


@command(
    ("rmab study report results", "writes results/report/report.html and its figures"),
    ("rmab study report results --out public", "into another folder"),
    parent=study,
)
@click.argument("folder", type=FOLDER)
@click.option("--out", type=FOLDER, help="Folder of the report; default: FOLDER/report.")
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def report(folder: Path, out: Path | None, machine: bool) -> None:
    """Write the report of the study in FOLDER.

    It is one HTML file that works offline, and figures as PNG and PDF.
    """
    from rmab.report import write_report
    from rmab.study import Results

    results = Results.open(folder)
    with waiting("writing the report"):  # nothing is printed before the files are there
        written = write_report(results, folder / "report" if out is None else out)
    if machine:
        print_json(
            {"html": str(written.html), "figures": [str(one) for one in written.figures], "headline": written.headline}
        )
        return
    for sentence in written.headline:
        say(sentence)
    say(f"report: {written.html}")


def _run_missing(plan: "Study", folder: Path, engine: "Engine", again: "Collection[str]", debug: bool) -> "Status":
    """Run the missing runs. After the first one, a file that cannot be written is a failure and not wrong input."""
    from rmab.errors import FileError, StudyError
    from rmab.study import run_study

    with progress(plan.name, in_lines=True) as bar:
        started = []

        def advance(finished: int, total: int) -> None:
            started.append(True)
            bar(finished, total)

        def report_failure(failure: "RunFailure") -> None:
            _print_failure(failure, debug)

        try:
            return run_study(plan, folder, engine=engine, on_progress=advance, on_failure=report_failure, again=again)
        except (FileError, StudyError) as error:
            if not started:
                raise
            raise Failure(f"{error}; finished runs are stored, and the same command resumes") from error


def _engine(name: str, workers: int | None, scheduler: str | None, time_limit: float | None) -> "Engine":
    from rmab.study import DaskEngine, LocalEngine

    if name == "dask":
        if scheduler is None:
            raise click.UsageError("--engine dask needs --scheduler ADDRESS; `dask scheduler` prints it when it starts")
        if workers is not None:
            raise click.UsageError("--workers is for the local engine; a Dask cluster has the workers that you started")
        if time_limit is not None:
            raise click.UsageError(
                "--time-limit is for the local engine; a run on a Dask worker cannot be stopped from here"
            )
        return DaskEngine(scheduler)
    if scheduler is not None:
        raise click.UsageError("--scheduler is for --engine dask")
    return LocalEngine(workers, time_limit)


def _warn_of_changes(plan: "Study", folder: Path, again: bool, debug: bool) -> "Changes":
    """Warn about finished runs of another version of the library or of custom code."""
    from rmab.errors import many
    from rmab.study import changes_since

    changes = changes_since(plan, folder)
    fate = "run again" if again else "kept (--again runs them again)"
    if changes.library:
        say(f"warning: {folder}: {changes.library}", err=True)
    for what, ids in changes.outdated.items():
        runs = f"{many(len(ids), 'finished run')} used the old source: {fate}"
        say(f"warning: {folder}: {what}: its source has changed; {runs}", err=True)
        for one in ids if debug else ():
            say(f"  {one}", err=True)
    if again and not changes.ids:
        say(f"{folder}: no finished run used other custom code: --again has nothing to do", err=True)
    return changes


def _print_failure(failure: "RunFailure", debug: bool) -> None:
    say(f"failed: {failure.id}: {failure.message}", err=True)
    if debug and failure.trace:
        say(failure.trace, err=True, nl=False)


def _print_status(folder: Path, status: "Status", machine: bool, changes: "Changes | None" = None) -> None:
    counts = {name: getattr(status, name) for name in ("total", "finished", "missing", "damaged")}
    if machine:
        failures = [{"id": one.id, "message": one.message} for one in status.failures]
        outdated = {} if changes is None else {"outdated": changes.outdated}
        print_json({"folder": str(folder), **counts, "failures": failures, **outdated})
        return
    print_table(f"{folder}: runs", tuple(counts), [tuple(f"{value:,}" for value in counts.values())], left=0)


def _same_command(ctx: click.Context) -> str:
    """Return the command line, to be run again."""
    words = [str(ctx.params["name"])]
    for option in ("--out", "--rounds", "--engine", "--workers", "--time-limit", "--scheduler"):
        value = ctx.params["folder" if option == "--out" else option[2:].replace("-", "_")]
        if value is not None and (option, value) != ("--engine", "local"):
            words += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    words += [flag for flag, name in (("--again", "again"), ("--json", "machine")) if ctx.params[name]]
    return f"{ctx.command_path} {shlex.join(words)}"
