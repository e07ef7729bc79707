"""The pages of docs/ that are made of studies: each function returns the text of one, or of a part of one."""

from tables import (
    LEVEL,
    Found,
    amount,
    by_parts,
    differences,
    exponent,
    heads_of,
    made_by,
    milliseconds,
    per_cent,
    regrets,
    rounds_in_words,
    rows,
    sorted_out,
    told_by,
    told_from,
)
from ucmd_page import exchanged

from rmab.report.sentences import page_words

UNIT = f"""Regret is relative to the random policy in the same round: 0 is the comparator, 100 is the random policy,
and negative values are better than any fixed policy. Values are means and 95% intervals over rounds. {LEVEL} marks
learners that are not significantly different from `ucmd` (paired t-test on the rewards of the same rounds, 5%, Holm's
correction for the whole table); privileged learners are not tested. Differences are in percentage points, round by
round.
"""
ANSWERS = """Adaptive adversaries give each learner different rewards, so regrets cannot be compared. These are
rewards; more is better.

"""
SMALL = """On noisy rewards the regret of the paper's learner grows nearly linearly with T, and the fitted exponent
of `ucmd` is below one half. The instance is CPAP with 4 arms, budget 2 and 10 steps. The table has accumulated regret
to O2, the best fixed policy (exact, with 81 joint states), and the fitted exponent of T; means and 95% intervals over
rounds.

"""
TOLD = """{mark} marks values that are not significantly different from `{base}` in the same rounds (paired t-test,
5%, Holm's correction for the whole table).

"""


def growth(found: Found) -> str:
    """docs/growth.md: regret against O2 and its exponent."""
    table = SMALL + scalings(found, "ucmd")
    return "\n".join(["# Growth of regret\n", table, "![Growth](images/growth.png)\n", made_by(found)])


def scalings(found: Found, base: str = "") -> str:
    """Return the table of a study of growth: regret against O2 at every size, its exponent, and who is told from the base.

    Privileged learners are compared, too: what a part costs is seen by telling a learner what it would have to learn.
    """
    sizes = sorted({int(size) for one in found.summary.scalings for size in one.sizes})
    told, lines = told_by(found.cells, dict.fromkeys(found.summary.learners, base)), []
    names = {(task.name, cell.episodes): page.task for page, task in found.pages for cell in page.cells}
    for one in found.summary.scalings:
        task = one.group.rpartition(":")[2]  # without the module of one's own
        means = dict(zip(one.sizes.astype(int).tolist(), one.means, strict=True))
        pairs = {size: told.get((names.get((one.group, size), ""), one.learner)) for size in sizes}
        marks = {size: LEVEL if pair is not None and not pair.is_significant else "" for size, pair in pairs.items()}
        cells = [amount(means[size]) + marks[size] if size in means else "" for size in sizes]
        lines.append([task, one.learner, exponent(one), str(one.values.shape[1]), *cells])
        if one.theory is not None:
            bounds = dict(zip(one.sizes.astype(int), one.theory, strict=True))
            lines.append(
                [task, "*the theorem's bound*", "", "", *(f"{bounds[s]:,.0f}" if s in bounds else "" for s in sizes)]
            )
    said = TOLD.format(mark=LEVEL, base=base) if told else ""
    return said + rows(["task", "learner", "alpha (95%)", "rounds", *(f"T={size}" for size in sizes)], lines, 3)


def case(found: Found) -> str:
    """Return tables of a case study for docs/reproduction.md: who earned what, and which differences are significant."""
    return "\n".join([whole_runs(found), made_by(found)])


def whole_runs(found: Found, *, changing: bool = False) -> str:
    """Return who earned what over the run and by its fifths, and which differences are significant, task by task.

    changing: with regret against O3, too, which knows the rewards of every episode.
    """
    parts = []
    for page in found.summary.pages:
        lines = []
        for cell in page.cells:
            known = [f"`{cell.learner}`", str(cell.rounds.size), f"{cell.totals.mean():,.0f}"]
            shares = [per_cent(cell.relative_to_random(to)) for to in (("O1", "O3") if changing else ("O1",))]
            shares.append(per_cent(cell.relative("O1")))
            lines.append([*known, *shares, by_parts(cell), *([] if changing else [milliseconds([cell])])])
        third = ["to O3, % of random"] if changing else []
        head = ["learner", "rounds", "reward in all", "regret against O1, % of random", *third, "% of O1"]
        times = [] if changing else ["ms / episode"]
        parts.append(rows([*head, "by fifths of the run, % of random", *times], lines, 1))
        parts.append("\n".join(f"- {sentence}" for sentence in page_words(page)) + "\n")
    return "\n".join(parts)


def theorem(found: Found) -> str:
    """Return the tables of the counterexamples for docs/reproduction.md."""
    return "\n".join([scalings(found), made_by(found)])


def decomposition(found: Found) -> str:
    """Return the table of the decomposition for docs/reproduction.md."""
    return "\n".join([scalings(found, found.summary.study.learners[0].label), made_by(found)])


def families(found: Found) -> str:
    """Return the first part of docs/learning_tables.md: regret of the main learners by family and adversary."""
    names = dict.fromkeys(task.partition("@")[0] for task, _ in found.cells)
    return "\n".join([*(f"## {family}\n\n" + by_family(found, family) for family in names), made_by(found)])


def components(found: Found) -> str:
    """Return the second part of docs/learning_tables.md: `ucmd` with other components, and what each costs and buys."""
    cells, learners = found.cells, found.summary.learners
    still, answers = sorted_out((task for task, _ in cells), cells)
    table = "\n".join(regrets(learners, still, cells, to, learners[0]) for to in ("O1", "O3"))
    more = ANSWERS + regrets(learners, answers, cells, "O1", learners[0]) if answers else ""
    return "\n".join([table, more, exchanged(found)])


def by_family(found: Found, family: str) -> str:
    """Return the tables of all tasks of a family: regret against O1 and O3, differences, and what was earned."""
    cells, learners = found.cells, found.summary.learners
    still, answers = sorted_out((task for task, _ in cells if task.partition("@")[0] == family), cells)
    parts = [regrets(learners, still, cells, to) for to in ("O1", "O3")] if still else []
    parts += [differences(learners, still, cells)] if still else []
    parts += [ANSWERS + regrets(learners, answers, cells, "O1")] if answers else []
    return "\n".join(parts)


def tuning(found: Found, presets: dict[str, dict[str, float]]) -> str:
    """docs/tuning.md: every grid, best first, with the preset that the library has."""
    cells, sections = found.cells, []
    tasks = [page.task for page in found.summary.pages]
    for name, preset in presets.items():
        labels = [one.label for one in found.summary.study.learners if one.name == name]
        there = {label: [cells[task, label] for task in tasks if (task, label) in cells] for label in labels}
        scores = {
            label: sum(c.relative_to_random("O1").mean for c in mine) / len(mine) for label, mine in there.items() if mine
        }
        lines = []
        for label in sorted(scores, key=lambda one: scores[one]):
            shown = [
                per_cent(cells[task, label].relative_to_random("O1")) if (task, label) in cells else "" for task in tasks
            ]
            lines.append([label.partition(": ")[2], f"{100 * scores[label]:.1f}", *shown])
        theory = labels[0]
        told = told_from({key: cell for key, cell in cells.items() if key[1] in labels}, theory)
        best = min(scores, key=lambda one: scores[one]) if scores else theory
        clear = heads_of(task for task in tasks if (task, best) in told and told[task, best].is_significant)
        where = f"Significantly different from the theory's on {', '.join(clear)}."
        said = where if clear else "No significant difference to the theory's."
        said = said if best != theory else "The theory's is best."
        have = ", ".join(f"{key} {value:g}" for key, value in preset.items()) or "none (as in the paper)"
        options = next(one.options for one in found.summary.study.learners if one.label == best)
        if preset and not (options and all(preset.get(key) == value for key, value in options.items())):
            said += f" **Not the best point, which is {best.partition(': ')[2]}.**"
        head = ["options", "mean", *(task.partition("@")[2] for task in tasks)]
        sections.append(f"## {name}\n\nPreset: {have}. {said}\n\n" + rows(head, lines, 1))
    words = rounds_in_words(cells.values())
    return "\n".join([TUNING.format(rounds=words), *sections, made_by(found)])


TUNING = """# Tuned presets

The preset of a learner is the point of its grid with the lowest regret against O1 relative to the random policy, averaged
over adversaries and rounds. Every learner has nine points, including the parameters of its theory. The task is cpap
with 4 arms and budget 2 (otherwise as in the paper: 50 episodes of 50 steps), against four adversaries, with {rounds}
on separate seeds. The protocol was fixed in advance. `ucmd-armab` stays as in the paper and has no preset. Other
options are the defaults: `rmab-ucrl` with sample means, `r2mab-ucb` with means plus width. If a preset is at the edge
of its grid, a better point may lie beyond it.
"""
