"""Every page of docs/ that has numbers of studies: `make pages`, or

python studies/pages.py                        run what is missing of all studies, then write all pages
python studies/pages.py growth reproduction    these pages only
python studies/pages.py --list                 how far all studies are, and how long they take
python studies/pages.py --tiny --out tmp/tiny --docs tmp/docs      the whole chain at toy size, to try it

Toy numbers need folders of their own, so that they never stand in docs/ for real ones. A study that was stopped continues
where it was. At full size all of it is some seven hours of computing, a quarter of them for paper-deadline: four hours on
two free cores. `--list` says how much is left, from the runs that are there. Runs name the last revision that changed
the library, so that pages may be written, and committed, in between; a page whose runs are of several says so. Whether a
later version would find the same is what `python studies/again.py results/rivals ...` asks, by playing some runs again.
"""

import argparse
import math
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contents
import inside
import uc_whittle
from authors import authors
from comparison_page import comparison
from details_page import details
from kept import Kept
from questions import QUESTIONS
from rich.console import Console
from tables import Found
from tuning import presets, tuning

from rmab.common.files import write_atomically
from rmab.errors import ModelError, RmabError
from rmab.report import write_report
from rmab.study import BUILTIN, LocalEngine, Results, Study, changes_since, run_study
from rmab.tasks import TASKS

ROOT = Path(__file__).parents[1]
SAY = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Page:
    """A file of docs/, the studies that it is made of, its text, or the parts between its marks, and its figures."""

    studies: tuple[str, ...]
    whole: Callable[..., str] | None = None
    parts: tuple[tuple[str, Callable[[Found], str]], ...] = ()
    figures: tuple[tuple[str, str, str], ...] = ()  # study, figure of its report, name in docs/images
    program: str = ""  # of this folder, whose results the page shows, too


CASES = [
    (study, f"{task}-{what}", f"{study}-{what}")
    for study, task in (("paper-cpap", "cpap-ramp"), ("paper-deadline", "deadline-ramp"))
    for what in ("reward", "regret", "sources")
]
OWN = {"tuning": tuning, "authors": authors, **QUESTIONS}  # studies of this folder; all others come with the library
PROGRAMS = {"uc_whittle": uc_whittle, "inside": inside}  # each has FILE, NAMES, ROUNDS and play
PAGES: dict[str, Page] = {
    "growth": Page(("growth",), contents.growth, figures=(("growth", "growth-cpap-noisy", "growth"),)),
    "tuning": Page(("tuning",), lambda found: contents.tuning(found, presets())),
    "learning_tables": Page(
        ("learning-table", "ucmd-parts"),
        parts=(("learning-table", contents.families), ("ucmd-parts", contents.components)),
    ),
    "comparison": Page(
        ("rivals", "rivals-growth", "rounding", "rivals-long", "authors", "process"),
        comparison,
        figures=(("process", "growth-details-ferry", "process"),),
        program="uc_whittle",
    ),
    "details": Page(
        ("late", "versions", "zeros", "samples", "boxes", "steady", "halves", "rivals-long"),
        details,
        figures=(("late", "growth-details-halfway", "late"),),
        program="inside",
    ),
    "reproduction": Page(
        ("theorem", "decomposition", "paper-cpap", "paper-deadline"),
        parts=(
            ("theorem", contents.theorem),
            ("decomposition", contents.decomposition),
            ("paper-cpap", contents.case),
            ("paper-deadline", contents.case),
        ),
        figures=(
            ("theorem", "growth-greener", "theorem-greener"),
            ("theorem", "growth-turns", "theorem-turns"),
            ("decomposition", "growth-cpap-noisy", "decomposition"),
            *CASES,
        ),
    ),
}  # fmt: skip


def study_of(name: str, *, tiny: bool = False) -> Study:
    """Return a study by name; tiny: with one or two rounds of a few episodes of a few steps."""
    study = OWN[name]() if name in OWN else BUILTIN[name]
    return shrunk(study) if tiny else study


def shrunk(study: Study) -> Study:
    """Return the study at toy size, with the same labels."""
    tasks = []
    for one in study.model_dump()["tasks"]:
        name = one["name"].partition("@")[0]
        given = {"episodes": 60} if ":" in name else {}  # a maker of one's own
        known = given or {key: option.default for key, option in TASKS.schema(name).model_fields.items()}
        options = {**known, **one["options"]}
        episodes = max(2, options["episodes"] // 20) if study.kind == "growth" else 3
        small = {"episodes": episodes, **({"horizon": min(options["horizon"], 4)} if "horizon" in options else {})}
        tasks.append({**one, "options": {**one["options"], **small}})
    return Study.model_validate({**study.model_dump(), "tasks": tasks, "rounds": 2 if study.kind == "growth" else 1})


def played(name: str, folder: Path, *, tiny: bool, workers: int, rounds: int | None) -> bool:
    """Run what is missing of a study; return whether all of it is there."""
    study = study_of(name, tiny=tiny)
    study = study if rounds is None else study.with_rounds(min(rounds, study.rounds))
    changes = changes_since(study, folder)
    if changes.library:
        SAY.print(f"{name}: {changes.library}; remove {folder} to have one version")
    for what, ids in changes.outdated.items():
        SAY.print(f"{name}: {what} has changed since {len(ids)} finished runs; remove {folder} to have one version")
    with SAY.status(f"{name} ...") as status:
        done = run_study(
            study,
            folder,
            engine=LocalEngine(workers),
            on_progress=lambda finished, total: status.update(f"{name}: {finished} of {total} runs"),
        )
    for failure in done.failures[:3]:
        SAY.print(f"{name}: {failure}")
    SAY.print(f"{name}: {done.finished} of {done.total} runs")
    return bool(done.complete)


def left(name: str, folder: Path, *, tiny: bool) -> tuple[int, int, float, float]:
    """Return finished and all runs, the hours that the finished ones took, and those of the rest; NaN where unknown."""
    study = study_of(name, tiny=tiny)
    if not (folder / "study.json").exists():
        return 0, len(study.jobs()), 0.0, float("nan")
    spent: dict[tuple[str, str], list[float]] = {}
    missing: dict[tuple[str, str], int] = {}
    for job, known in Results(folder, study).origins(study.jobs()):
        key = (job.task.label, job.learner.label)
        if known is None:
            missing[key] = missing.get(key, 0) + 1
        else:
            spent.setdefault(key, []).append(float(known.get("seconds") or 0.0))
    mean = {key: sum(each) / len(each) for key, each in spent.items()}
    rest = sum(count * mean.get(key, float("nan")) for key, count in missing.items())
    finished = sum(map(len, spent.values()))
    return finished, finished + sum(missing.values()), sum(map(sum, spent.values())) / 3600, rest / 3600


def made(name: str, page: Page, args: Any) -> None:
    """Write a page; unless only studies or only writing were asked for, run its program first."""
    if page.program and not args.write and not args.studies:
        program = PROGRAMS[page.program]
        program.play(args.out, 2 if args.tiny else max(2, min(args.rounds or program.ROUNDS, program.ROUNDS)))
    written(name, page, args.out, args.docs)


def written(name: str, page: Page, out: Path, docs: Path) -> None:
    """Write a page and its figures from the folders of its studies."""
    found = {}
    for study in (one for one in page.studies if (out / one / "study.json").exists()):
        try:
            found[study] = Found.of(out / study)
        except ModelError as error:  # nothing is finished yet
            SAY.print(f"{name}: {error}")
    programs = [PROGRAMS[page.program]] if page.program else []
    kept = [Kept.of(out / one.FILE) for one in programs]
    there = all(one.whole(program.NAMES) for one, program in zip(kept, programs, strict=True))
    if page.whole is not None and (list(found) != list(page.studies) or not there):
        SAY.print(f"{name}: not written, as some of its studies have not been run ({', '.join(page.studies)})")
        return
    path = docs / f"{name}.md"
    if page.whole is not None:
        text = page.whole(*found.values(), *kept)
    else:
        text = path.read_text(encoding="utf-8")
        for study, make in ((one, make) for one, make in page.parts if one in found):
            text = replaced(text, study, make(found[study]))
    write_atomically(path, text.encode())
    (docs / "images").mkdir(exist_ok=True)
    for study in dict.fromkeys(one for one, _, _ in page.figures if one in found):
        made = {
            one.stem: one for one in write_report(Results.open(out / study), out / study).figures if one.suffix == ".png"
        }
        for _, figure, image in (one for one in page.figures if one[0] == study and one[1] in made):
            shutil.copyfile(made[figure], docs / "images" / f"{image}.png")
    SAY.print(f"{path}")


def replaced(text: str, mark: str, part: str) -> str:
    """Return the text with the part between `<!-- made: mark -->` and `<!-- end -->`; ValueError without these marks."""
    begin, end = f"<!-- made: {mark} -->\n", "<!-- end -->"
    head, sign, rest = text.partition(begin)
    _, closing, tail = rest.partition(end)
    if not sign or not closing:
        raise ValueError(f"the page has no part between {begin.strip()} and {end}")
    return f"{head}{begin}\n{part}\n{closing}{tail}"


def main() -> str | None:
    """Run the studies of the pages that were asked for, and write these; return what went wrong, in one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="page", help=f"of {', '.join(PAGES)}; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="where the folders of the studies are")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the pages go")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--rounds", type=int, help="at most so many rounds of every study")
    parser.add_argument("--tiny", action="store_true", help="toy size, to try the chain")
    parser.add_argument("--list", action="store_true", help="only say how far the studies are")
    parser.add_argument("--write", action="store_true", help="only write the pages, of what is there")
    parser.add_argument("--studies", nargs="+", metavar="study", help="run these studies only")
    args: Any = parser.parse_args()
    if unknown := [one for one in args.pages if one not in PAGES]:
        parser.error(f"there is no page {unknown[0]!r}, but {', '.join(PAGES)}")
    wanted = {name: PAGES[name] for name in args.pages or PAGES}
    studies = list(dict.fromkeys(one for page in wanted.values() for one in page.studies))
    if unknown := [one for one in args.studies or () if one not in studies]:
        parser.error(f"there is no study {unknown[0]!r} behind these pages, but {', '.join(studies)}")
    if args.tiny and not args.list and args.docs.resolve() == (ROOT / "docs").resolve():
        parser.error("--tiny needs --docs: toy numbers do not go into docs/")
    if args.tiny and args.out.resolve() == (ROOT / "results").resolve():
        parser.error("--tiny needs --out: its studies have the names of the real ones")
    if missing := [one for one, page in wanted.items() if page.parts and not (args.docs / f"{one}.md").exists()]:
        parser.error(f"{args.docs / missing[0]}.md: there is no such file, and only parts of it are made; copy docs/ first")
    if args.workers < 1 or (args.rounds is not None and args.rounds < 1):
        parser.error("--workers and --rounds must be at least 1")
    if args.list:
        for name in studies:
            finished, total, hours, rest = left(name, args.out / name, tiny=args.tiny)
            ahead = f"{rest:6.1f} left" if math.isfinite(rest) else "how many are left is not known yet"
            SAY.print(f"{name:15} {finished:6} of {total:6} runs, {hours:6.1f} hours of computing, {ahead}")
        return None
    whole = True
    try:
        for name in (one for one in studies if not args.write and one in (args.studies or studies)):
            whole &= played(name, args.out / name, tiny=args.tiny, workers=args.workers, rounds=args.rounds)
        for name, page in wanted.items():
            made(name, page, args)
    except (RmabError, OSError) as error:
        return f"Error: {error}"
    except KeyboardInterrupt:
        return "stopped; the same command continues"
    return None if whole else "some runs failed: the same command tries them again"


if __name__ == "__main__":
    sys.exit(main())
