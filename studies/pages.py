"""Pages of docs/ from the folders of finished studies, for instance

python studies/pages.py growth results/growth
python studies/pages.py comparison results/rivals results/rivals-growth
python studies/pages.py learning results/learning-table results/ucmd-parts
python studies/pages.py case results/paper-cpap     (prints the tables of docs/reproduction.md)
"""

import argparse
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np

from rmab.model.adversaries import ADVERSARIES, STRONGER
from rmab.report.statistics import Interval, interval
from rmab.report.summary import COLUMNS, Cell, Scaling, Summary, summarise
from rmab.study import Results

DOCS = Path(__file__).parents[1] / "docs"
# Table 1 of the paper as printed: learner, paper, model, setting, feedback, constraint, algorithm, regret. The second part
# lists systems of its related work and ours, which it has no rows for.
TABLE = (
    ("uc-o-reps", "Rosenberg & Mansour 2019", "MDP", "adversarial", "full", "none", "OMD", "H√T"),
    ("shifted-uc-o-reps", "Rosenberg & Mansour 2019b", "MDP", "adversarial", "bandit", "none", "OMD", "H^(2/3) T^(3/4)"),
    ("uob-reps", "Jin et al. 2020", "MDP", "adversarial", "bandit", "none", "OMD", "H√T"),
    ("dilated-po", "Luo et al. 2021", "MDP", "adversarial", "bandit", "none", "policy optimisation", "H²√T"),
    ("ucpd", "Qiu et al. 2020", "CMDP", "adversarial", "full", "average", "primal-dual", "H√T"),
    ("pdgd-ops", "Germano et al. 2023", "CMDP", "adversarial", "full", "average", "primal-dual", "H T^(3/4)"),
    ("restless-ucb", "Wang et al. 2020", "RMAB", "stochastic", "full", "hard", "generative model", "H^(2/3) T^(2/3)"),
    ("r2mab-ucb", "Xiong et al. 2022 (AAAI)", "RMAB", "stochastic", "full", "hard", "index-based", "√(HT)"),
    ("rmab-ucrl", "Xiong et al. 2022 (NeurIPS)", "RMAB", "stochastic", "full", "hard", "index-based", "√(HT)"),
    ("ucmd-armab", "Xiong & Li 2024", "RMAB", "adversarial", "bandit", "hard", "index-based OMD", "H√T"),
    ("colored-ucrl2", "Ortner et al. 2012 *", "RMAB", "stochastic", "", "hard", "joint optimism", "√(HT)"),
    ("uc-whittle", "Wang et al. 2023 *", "RMAB", "stochastic", "", "hard", "optimistic Whittle index", ""),
    ("thompson", "Jung & Tewari 2019 *", "RMAB", "stochastic", "", "hard", "posterior sampling", ""),
    ("q-whittle", "Avrachenkov & Borkar 2022 *", "RMAB", "stochastic", "", "hard", "Q-learning", ""),
    ("ucmd", "this library *", "RMAB", "adversarial", "bandit", "hard", "index, dual averaging", ""),
)


def summary_of(folder: Path) -> Summary:
    """Return what a study found."""
    results = Results.open(folder)
    return summarise(results.study, results.table(COLUMNS))


def exponent(scaling: Scaling | None) -> str:
    """Return the exponent with its interval, in words where there is none."""
    if scaling is None:
        return "not run"
    if scaling.fit is None:
        return "none: not positive"
    fit = scaling.fit.exponent
    return f"{fit.mean:.2f} ({fit.low:.2f} to {fit.high:.2f})" if np.isfinite(fit.low) else f"{fit.mean:.2f}"


def per_cent(found: Interval) -> str:
    """Return a mean with the half width of its 95% interval, in per cent; a single round has no interval."""
    return f"{100 * found.mean:.1f} ± {100 * found.half:.1f}" if found.count > 1 else f"{100 * found.mean:.1f}"


def rows(head: list[str], lines: list[list[str]], left: int) -> str:
    """Return a table in Markdown."""
    marks = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, marks, *lines]) + "\n"


def growth(folder: Path) -> str:
    """docs/growth.md: regret to O2 and its exponent."""
    found = summary_of(folder)
    sizes = sorted({int(size) for one in found.scalings for size in one.sizes})
    lines = []
    for one in found.scalings:
        means = dict(zip(one.sizes.astype(int), one.values.mean(axis=1), strict=True))
        cells = [f"{means[size]:.0f}" if size in means else "" for size in sizes]
        lines.append([one.group, one.learner, exponent(one), str(one.values.shape[1]), *cells])
    head = ["task", "learner", "alpha (95%)", "rounds", *(f"T={size}" for size in sizes)]
    rounds = max(one.values.shape[1] for one in found.scalings)
    command = f"rmab study run growth --rounds {rounds} --out results/growth"
    made = f"Made by `{command}` and `python studies/pages.py growth results/growth`:\n"
    text = (
        "a CPAP instance of 4 arms, budget 2, 10 steps; mean accumulated regret to O2, the best executable fixed policy,\n"
        "and the exponent of T that fits it.\n\n"
    )
    return "# Growth of regret\n\n" + made + text + rows(head, lines, 3)


def case(folder: Path) -> str:
    """Tables of docs/reproduction.md: what was earned, and what was lost to O1, over the run and by fifths of it."""
    parts = []
    for page in summary_of(folder).pages:
        lines = []
        for cell in page.cells:
            whole, steps = cell.relative("O1"), np.linspace(0, cell.episodes, 6).astype(int)
            lost = np.diff(cell.regret("O1"), axis=1, prepend=0.0)
            by_fifths = [
                100 * lost[:, first:last].sum() / np.abs((cell.columns["reward"] + lost)[:, first:last].sum())
                for first, last in pairwise(steps)
            ]
            regret = f"{100 * whole.mean:.2f} ({100 * whole.low:.2f} to {100 * whole.high:.2f})"
            known = [f"`{cell.learner}`", str(cell.rounds.size), f"{cell.totals.mean():,.0f}", regret]
            lines.append([*known, ", ".join(f"{one:.1f}" for one in by_fifths), _milliseconds([cell])])
        head = [
            "learner",
            "rounds",
            "reward in all",
            "regret to O1, % of its size",
            "by fifths of the run, %",
            "ms / episode",
        ]
        parts.append(rows(head, lines, 1))
    return "\n".join(parts)


def learning(folder: Path, parts: Path) -> str:
    """docs/learning_tables.md: regret of the main learners by family and adversary, and of `ucmd` with other parts."""
    found, exchanged = summary_of(folder), summary_of(parts)
    cells = {(cell.task, cell.learner): cell for page in found.pages for cell in page.cells}
    sections = []
    for family in dict.fromkeys(task.partition("@")[0] for task, _ in cells):
        mine = {(task.partition("@")[2], who): cell for (task, who), cell in cells.items() if task.startswith(f"{family}@")}
        tables = [_regrets(found.learners, mine, to) for to in ("O1", "O2")]
        sections.append("\n".join([f"## {family}\n", *tables, _above_ucmd(found.learners, mine)]))
    others = {(page.task.partition("@")[2], cell.learner): cell for page in exchanged.pages for cell in page.cells}
    sections.append("## Parts of `ucmd`, exchanged one by one (cpap)\n\n" + _regrets(exchanged.learners, others, "O1"))
    made = (
        "Made by `rmab study run learning-table --out results/learning-table`, `rmab study run ucmd-parts --out\n"
        "results/ucmd-parts` and `python studies/pages.py learning results/learning-table results/ucmd-parts`: means and\n"
        "95% intervals over rounds. Negative is better; in the tables of differences to `ucmd`, positive means that `ucmd`\n"
        "is better.\n"
    )
    return "\n".join(["# Learning tables\n", made, *sections])


def _regrets(learners: list[str], cells: dict[tuple[str, str], Cell], to: str) -> str:
    """Learners by adversaries: regret relative to a comparator in per cent."""
    lines, there_are = [], _adversaries(cells)
    for label in learners:
        mine = [cells.get((against, label)) for against in there_are]
        there = [cell for cell in mine if cell is not None]
        if there:
            rounds = "-".join(map(str, sorted({cell.rounds.size for cell in there})))
            seconds = f"{np.concatenate([cell.columns['seconds'].ravel() for cell in there]).mean():.2f}"
            shown = ["" if cell is None else per_cent(cell.relative(to)) for cell in mine]
            lines.append([label, *shown, rounds, seconds])
    return rows([f"regret to {to}, %", *map(_labelled, there_are), "rounds", "s / episode"], lines, 1)


def _adversaries(cells: Iterable[tuple[str, str]]) -> list[str]:
    """List the adversaries, in their usual order, that there are cells (adversary, learner) of."""
    played = {against for against, _ in cells}
    return [one for one in ADVERSARIES if one in played]


def _labelled(against: str) -> str:
    return f"{against} (stronger than the paper's)" if against in STRONGER else against


def _above_ucmd(learners: list[str], cells: dict[tuple[str, str], Cell]) -> str:
    """By how much honest learners lose more than `ucmd` in the same rounds, in per cent of O1."""
    lines, there_are = [], _adversaries(cells)
    for label in (one for one in learners if one != "ucmd"):
        pairs = [(cells.get((against, label)), cells.get((against, "ucmd"))) for against in there_are]
        if all(cell is None or cell.privileged for cell, _ in pairs):
            continue
        lines.append([label, *("" if a is None or b is None else _difference(a, b) for a, b in pairs)])
    return rows(["regret to O1 above `ucmd`'s in the same rounds, points", *map(_labelled, there_are)], lines, 1)


def _difference(one: Cell, other: Cell) -> str:
    _, left, right = np.intersect1d(one.rounds, other.rounds, return_indices=True)
    parts = [cell.regret("O1")[:, -1] / np.abs(cell.totals + cell.regret("O1")[:, -1]) for cell in (one, other)]
    return per_cent(interval(parts[0][left] - parts[1][right])) if left.size else ""


def comparison(folder: Path, grown: Path) -> str:
    """docs/comparison.md: the paper's Table 1 with what was measured, and regret on cpap."""
    found, growing = summary_of(folder), summary_of(grown)
    labels = [one.label for one in found.study.learners]
    labels += [one.label for one in growing.study.learners if one.label not in labels]
    powers = {one.learner: one for one in growing.scalings}
    cells = {(cell.task, cell.learner): cell for page in found.pages for cell in page.cells}
    small = {cell.learner: cell for page in growing.pages for cell in page.cells}  # of the largest T, which comes last
    table = []
    for name, *known in TABLE:
        for label in (one for one in labels if one == name or one.startswith(f"{name},")):
            here = [cell for (_, learner), cell in cells.items() if learner == label]
            seconds = _milliseconds(here) if here else f"{_milliseconds([small[label]])} (4 arms)" if label in small else ""
            table.append([f"`{name}`{label.removeprefix(name)}", *known, exponent(powers.get(label)), seconds])
    head = ["learner", "paper", "model", "setting", "feedback", "constraint", "algorithm", "regret as stated"]
    played = _adversaries((task.removeprefix("cpap@"), label) for task, label in cells)
    tasks = [f"cpap@{against}" for against in played]
    lines = []
    for label in (one for one in labels if any((task, one) in cells for task in tasks)):
        mine = [cells.get((task, label)) for task in tasks]
        lines.append([label, *("" if cell is None else per_cent(cell.relative("O1")) for cell in mine)])
    first = rows([*head, "exponent of T (95%)", "ms / episode"], table, 8)
    second = rows(["regret to O1, %", *map(_labelled, played)], lines, 1)
    counts = sorted({cell.rounds.size for cell in cells.values()})
    return PAGE.format(
        first=first, second=second, rounds="-".join(map(str, counts)), grown=growing.study.rounds, most=counts[-1]
    )


def _milliseconds(cells: list[Cell]) -> str:
    """Return the median over episodes: the first ones may have compiled."""
    return f"{1000 * np.median(np.concatenate([cell.columns['seconds'].ravel() for cell in cells])):.1f}"


PAGE = """# Every system that the paper compares with

The paper's Table 1, with two more columns: the exponent of T that fits the measured regret to O2 on a small instance
with noisy rewards (4 arms, budget 2, 10 steps, T = 25 to 400, {grown} rounds), and the time of an episode of cpap (20
arms, 50 steps). The regret is as the paper prints it, for each system's own model: an MDP or CMDP without a hard
budget, or rewards that do not change. Rows with a star are not in its table. Three of its cells are not right: the
second row's H^(2/3) should be H^(3/2), as its own text has it; Restless-UCB explores and commits, it has no
generative model; and the restless rivals are given bandit feedback here, as they can do with it.

Each learner is brought under the hard budget as its docstring says. `theory` has the parameters of its paper, `tuned`
those of [tuning.md](tuning.md). Learners with full feedback see all rewards of an episode, a generator draws from the
true kernels: both are privileged.

{first}
## Regret on cpap

In per cent of O1, the fluid bound of the summed rewards; means and 95% intervals over {rounds} rounds; negative is
better than any fixed policy.

{second}
What this shows: on noisy rewards and on the ramp, learners that average (`uc-whittle`, `thompson`, tuned `r2mab-ucb`) come
close to `ucmd`, and on the adaptive adversary, which pays less for what was activated often, they are ahead of it.
Where rewards switch or drift, only learners that follow them are better than a fixed policy, and with bandit feedback
`ucmd` most of all. Importance weights do not pay within 50 episodes: see [learning.md](learning.md).

Made by `rmab study run rivals --rounds {most} --out results/rivals`, `rmab study run rivals-growth --out
results/rivals-growth` and `python studies/pages.py comparison results/rivals results/rivals-growth`.
"""


def main() -> None:
    """Write a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", choices=["growth", "comparison", "learning", "case"])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--docs", type=Path, default=DOCS, help="where the page goes")
    args = parser.parse_args()
    if args.page == "case":
        sys.stdout.write(case(*args.folders))
        return
    make = {"growth": growth, "comparison": comparison, "learning": learning}[args.page]
    name = {"learning": "learning_tables"}.get(args.page, args.page)
    (args.docs / f"{name}.md").write_text(make(*args.folders), encoding="utf-8")


if __name__ == "__main__":
    main()
