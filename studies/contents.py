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

from rmab.report.sentences import page_words

UNIT = f"""Regret is in per cent of the chance gap, which is what blind decisions lose to the comparator in the same round: 0
is the comparator, 100 is chance, negative is better than any fixed policy. Means and 95% intervals over rounds. {LEVEL}
marks learners that cannot be told apart from `ucmd` by what they earned in the same rounds (paired t-test, 5%, Holm's
correction for the whole table, so that a smaller table may tell more); privileged ones are not compared. Intervals of
differences are of shares of the chance gap, round by round.
"""
ANSWERS = """Adversaries that answer to play pay every learner by other rules, so that regrets cannot be compared: what was
earned can, and more is better.

"""
SMALL = """A CPAP instance of 4 arms, budget 2, 10 steps; accumulated regret to O2, the best fixed policy, and the exponent
of T that fits it, as means and 95% intervals over rounds. The joint states are 81, so that O2 is the optimum, exactly.

"""
TOLD = """{mark} marks what cannot be told apart from `{base}` by what was earned in the same rounds (paired t-test, 5%,
Holm's correction for the whole table).

"""


def growth(found: Found) -> str:
    """docs/growth.md: regret to O2 and its exponent."""
    table = SMALL + scalings(found, "ucmd")
    return "\n".join(["# Growth of regret\n", table, "![Growth](images/growth.png)\n", made_by(found)])


def scalings(found: Found, base: str = "") -> str:
    """Return the table of a study of growth: regret to O2 at every size, its exponent, and who is told from the base.

    Privileged learners are compared, too: what a part costs is seen by telling a learner what it would have to learn.
    """
    sizes = sorted({int(size) for one in found.summary.scalings for size in one.sizes})
    told, lines = told_by(found.cells, dict.fromkeys(found.summary.learners, base)), []
    names = {(task.name, cell.episodes): page.task for page, task in found.pages for cell in page.cells}
    for one in found.summary.scalings:
        task = one.group.rpartition(":")[2]  # without the module of one's own
        means = dict(zip(one.sizes.astype(int).tolist(), one.means, strict=True))
        pairs = {size: told.get((names.get((one.group, size), ""), one.learner)) for size in sizes}
        marks = {size: LEVEL if pair is not None and not pair.told else "" for size, pair in pairs.items()}
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
    """Return tables of a case study for docs/reproduction.md: who earned what, and who can be told apart."""
    return "\n".join([whole_runs(found), made_by(found)])


def whole_runs(found: Found, *, changing: bool = False) -> str:
    """Return who earned what over the run and by its fifths, and who can be told apart, task by task.

    changing: with regret to O3, too, which knows the rewards of every episode.
    """
    parts = []
    for page in found.summary.pages:
        lines = []
        for cell in page.cells:
            known = [f"`{cell.learner}`", str(cell.rounds.size), f"{cell.totals.mean():,.0f}"]
            shares = [per_cent(cell.of_chance(to)) for to in (("O1", "O3") if changing else ("O1",))]
            shares.append(per_cent(cell.relative("O1")))
            lines.append([*known, *shares, by_parts(cell), milliseconds([cell])])
        third = ["to O3, % of chance's"] if changing else []
        head = ["learner", "rounds", "reward in all", "regret to O1, % of chance's", *third, "% of O1"]
        parts.append(rows([*head, "by fifths of the run, % of chance's", "ms / episode"], lines, 1))
        parts.append("\n".join(f"- {sentence}" for sentence in page_words(page)) + "\n")
    return "\n".join(parts)


def theorem(found: Found) -> str:
    """Return the tables of the counterexamples for docs/reproduction.md."""
    return "\n".join([scalings(found), made_by(found)])


def decomposition(found: Found) -> str:
    """Return the table of the decomposition for docs/reproduction.md."""
    return "\n".join([scalings(found, found.summary.study.learners[0].label), made_by(found)])


def learning(found: Found, exchanged: Found) -> str:
    """docs/learning_tables.md: regret of the main learners by family and adversary, and of `ucmd` with other parts."""
    cells, sections = found.cells, []
    for family in dict.fromkeys(task.partition("@")[0] for task, _ in cells):
        sections.append(f"## {family}\n\n" + by_family(found, family))
    others = exchanged.cells
    still, answers = sorted_out((task for task, _ in others), others)
    first = exchanged.summary.learners[0]
    table = "\n".join(regrets(exchanged.summary.learners, still, others, to, first) for to in ("O1", "O3"))
    more = ANSWERS + regrets(exchanged.summary.learners, answers, others, "O1", first) if answers else ""
    said = "Compared with the first row. The last columns are of cpap-adherence."
    sections.append(f"## Parts of `ucmd`, exchanged one by one (cpap)\n\n{said}\n\n{table}\n{more}")
    return "\n".join(["# Learning tables\n", UNIT, *sections, made_by(found, exchanged)])


def by_family(found: Found, family: str) -> str:
    """Return the tables of all tasks of a family: regret to O1 and O3, differences, and what was earned."""
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
        scores = {label: sum(c.of_chance("O1").mean for c in mine) / len(mine) for label, mine in there.items() if mine}
        lines = []
        for label in sorted(scores, key=lambda one: scores[one]):
            shown = [per_cent(cells[task, label].of_chance("O1")) if (task, label) in cells else "" for task in tasks]
            lines.append([label.partition(": ")[2], f"{100 * scores[label]:.1f}", *shown])
        theory = labels[0]
        told = told_from({key: cell for key, cell in cells.items() if key[1] in labels}, theory)
        best = min(scores, key=lambda one: scores[one]) if scores else theory
        clear = heads_of(task for task in tasks if (task, best) in told and told[task, best].told)
        said = f"Told apart from the theory's on {', '.join(clear)}." if clear else "Not told apart from the theory's."
        said = said if best != theory else "The theory's own is best."
        have = ", ".join(f"{key} {value:g}" for key, value in preset.items()) or "none, it stays as it is in the paper"
        options = next(one.options for one in found.summary.study.learners if one.label == best)
        if preset and not (options and all(preset.get(key) == value for key, value in options.items())):
            said += f" **Not the best point, which is {best.partition(': ')[2]}.**"
        head = ["options", "mean", *(task.partition("@")[2] for task in tasks)]
        sections.append(f"## {name}\n\nPreset: {have}. {said}\n\n" + rows(head, lines, 1))
    words = rounds_in_words(cells.values())
    return "\n".join([TUNING.format(rounds=words), *sections, made_by(found)])


TUNING = """# Tuned presets

One protocol for all, fixed before it was run: nine points for every learner, the parameters of its theory among them; cpap
with 4 arms and budget 2 (else as in the paper: 50 episodes of 50 steps), which all of them can play, against four
adversaries; {rounds} of seeds that no other table uses. The preset is the point with the least regret to O1, in per cent of
the chance gap, mean over adversaries and rounds; nothing else decides. (`ucmd-armab` has no preset: it stays as the paper
has it.) All else is as each learner's default: `rmab-ucrl` with sample means, `r2mab-ucb` with means plus width. A preset at
the edge of a grid might be better beyond it.
"""
