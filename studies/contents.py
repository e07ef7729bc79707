"""The pages of docs/ that are made of studies: each function returns the text of one, or of a part of one."""

from tables import (
    LEVEL,
    Found,
    amount,
    apart,
    by_fifths,
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
    ("ucmd", "this library *", "RMAB", "adversarial", "bandit", "hard", "index, forecasts and prices", ""),
)
UNIT = f"""Regret is in per cent of the chance gap, which is what blind decisions lose to the comparator in the same round: 0
is the comparator, 100 is chance, negative is better than any fixed policy. Means and 95% intervals over rounds. {LEVEL}
marks learners that cannot be told apart from `ucmd` by what they earned in the same rounds (paired t-test, 5%, Holm's
correction for the whole table); privileged ones are not compared.
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
        means = dict(zip(one.sizes.astype(int).tolist(), one.means, strict=True))
        pairs = {size: told.get((names.get((one.group, size), ""), one.learner)) for size in sizes}
        marks = {size: LEVEL if pair is not None and not pair.told else "" for size, pair in pairs.items()}
        cells = [amount(means[size]) + marks[size] if size in means else "" for size in sizes]
        lines.append([one.group, one.learner, exponent(one), str(one.values.shape[1]), *cells])
        if one.theory is not None:
            bounds = dict(zip(one.sizes.astype(int), one.theory, strict=True))
            lines.append(
                [one.group, "*the theorem's bound*", "", "", *(f"{bounds[s]:,.0f}" if s in bounds else "" for s in sizes)]
            )
    said = TOLD.format(mark=LEVEL, base=base) if told else ""
    return said + rows(["task", "learner", "alpha (95%)", "rounds", *(f"T={size}" for size in sizes)], lines, 3)


def case(found: Found) -> str:
    """Return tables of a case study for docs/reproduction.md: who earned what, and who can be told apart."""
    return "\n".join([whole_runs(found), made_by(found)])


def whole_runs(found: Found) -> str:
    """Return who earned what over the run and by its fifths, and who can be told apart, task by task."""
    parts = []
    for page in found.summary.pages:
        lines = []
        for cell in page.cells:
            known = [f"`{cell.learner}`", str(cell.rounds.size), f"{cell.totals.mean():,.0f}"]
            shares = [per_cent(cell.of_chance("O1")), per_cent(cell.relative("O1"))]
            lines.append([*known, *shares, by_fifths(cell), milliseconds([cell])])
        head = ["learner", "rounds", "reward in all", "regret to O1, % of chance's", "% of O1"]
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
        sections.append(f"## {family}\n\n" + _family(found, family))
    others = exchanged.cells
    still, answers = sorted_out((task for task, _ in others), others)
    first = exchanged.summary.learners[0]
    table = regrets(exchanged.summary.learners, still, others, "O1", first)
    more = ANSWERS + regrets(exchanged.summary.learners, answers, others, "O1", first) if answers else ""
    said = "Compared with the first row. The last columns are of cpap-adherence."
    sections.append(f"## Parts of `ucmd`, exchanged one by one (cpap)\n\n{said}\n\n{table}\n{more}")
    return "\n".join(["# Learning tables\n", UNIT, *sections, made_by(found, exchanged)])


def _family(found: Found, family: str) -> str:
    cells, learners = found.cells, found.summary.learners
    still, answers = sorted_out((task for task, _ in cells if task.partition("@")[0] == family), cells)
    parts = [regrets(learners, still, cells, to) for to in ("O1", "O3")] if still else []
    parts += [differences(learners, still, cells)] if still else []
    parts += [ANSWERS + regrets(learners, answers, cells, "O1")] if answers else []
    return "\n".join(parts)


def comparison(
    found: Found, grown: Found, rounded: Found, single: Found, longer: Found, examples: Found, program: str
) -> str:
    """docs/comparison.md: the paper's Table 1 with what was measured, and regret on cpap; program: a table of its own."""
    labels = [one.label for one in found.summary.study.learners]
    labels += [one.label for one in grown.summary.study.learners if one.label not in labels]
    powers = {one.learner: one for one in grown.summary.scalings}
    cells, small = found.cells, {cell.learner: cell for page in grown.summary.pages for cell in page.cells}
    table = []
    for name, *known in TABLE:
        for label in (one for one in labels if one == name or one.startswith(f"{name},")):
            here = [cell for (task, learner), cell in cells.items() if learner == label and task.startswith("cpap@")]
            seconds = milliseconds(here) if here else f"{milliseconds([small[label]])} (4 arms)" if label in small else ""
            table.append([f"`{name}`{label.removeprefix(name)}", *known, exponent(powers.get(label)), seconds])
    head = ["learner", "paper", "model", "setting", "feedback", "constraint", "algorithm", "regret as stated"]
    first = rows([*head, "exponent of T (95%)", "ms / episode"], table, 8)
    families = [
        f"## {family}\n\n{_family(found, family)}" for family in dict.fromkeys(task.partition("@")[0] for task, _ in cells)
    ]
    return PAGE.format(
        first=first,
        unit=UNIT,
        mark=LEVEL,
        families="\n".join(families),
        choice=rounding(rounded),
        single=scalings(single),
        longer=whole_runs(longer),
        program=program,
        examples=regrets(examples.summary.learners, [page.task for page in examples.summary.pages], examples.cells, "O1"),
        grown=grown.summary.study.rounds,
        made=made_by(found, grown, rounded, single, longer, examples),
    )


def rounding(found: Found) -> str:
    """Return what dependent rounding costs and buys: regret to O3, and every learner beside itself with the other choice."""
    tasks, cells = [page.task for page in found.summary.pages], found.cells
    specs = [one for one in found.summary.study.learners if "rounding" in one.options]
    top = {one.name: one.label for one in specs if one.options["rounding"] == "top"}
    drawn = {one.label: top[one.name] for one in specs if one.options["rounding"] == "dependent" and one.name in top}
    told = told_by(cells, drawn)
    lines = [[label, *(apart(told.get((task, label)), task, cells, "O3") for task in tasks)] for label in drawn]
    second = rows(["points of the chance gap above its highest indices", *heads_of(tasks)], lines, 1)
    return regrets(found.summary.learners, tasks, cells, "O3", "") + "\n" + second


PAGE = """# Every system that the paper compares with

The paper's Table 1, with two more columns: the exponent of T that fits the measured regret to O2 on a small instance
with noisy rewards (4 arms, budget 2, 10 steps, T = 25 to 400, {grown} rounds; O2 is the optimum there, exactly), and the
time of the median episode of cpap (20 arms, 50 steps). The regret is as the paper prints it, for each system's own model:
an MDP or CMDP without a hard budget, or rewards that do not change. Rows with a star are not in its table. Three of its
cells are not right: the second row's H^(2/3) should be H^(3/2), as its own text has it; Restless-UCB explores and commits,
it has no generative model; and the restless rivals are given bandit feedback here, as they can do with it.

Each learner is brought under the hard budget as its docstring says. `theory` has the parameters of its paper, `tuned`
those of [tuning.md](tuning.md). Learners with full feedback see all rewards of an episode, a generator draws from the
true kernels: both are privileged.

{first}
{unit}
{families}
## What this shows

- On the ramp, on noisy and on iid rewards of cpap, learners that average what they saw (`rmab-ucrl` and `r2mab-ucb` with
  sample means, `uc-whittle`, `thompson`) cannot be told apart from `ucmd`. Mean plus width costs the first two 16 and 23
  points on the ramp and on noisy rewards.
- Where rewards switch, drift, are mixed or change late, `ucmd` is clearly ahead of all that see only what they visit. Those
  who never forget do not follow; optimism that never ends follows a little, and so does a fast rate
  (`q-whittle`, tuned).
- `ucmd` is behind on the ramp of `swim` (`restless-ucb`, tuned) and against `adaptive`, where those who hope for means plus
  width earn 1 to 2% more. Where rewards alternate, `thompson`, `q-whittle` and `restless-ucb` lose less on average, but
  cannot be told apart.
- Importance weights do not pay within 50 episodes, and the parameters of the theories are for many more.
- Against `plan-aware`, who plays by the highest indices keeps a fifth to a half of what chance earns; who draws keeps the
  more, the flatter the plan.
- On `swim` the paper's learner to the letter is worse than chance. With declared zeros, which is the whole difference, it
  comes close to `ucmd` on the ramp: what costs is to estimate what passive arms pay.
- There `rmab-ucrl` loses more with a generator than without. It has 200 samples of every pair for ever, so that its sets
  stay 0.4 wide, and hopes that arms which are left alone swim by themselves. With 2,000 samples it loses 5 to 16% on the
  ramp, with 20,000 1 to 2% (three seeds).

## Dependent rounding, or the highest indices

The guarantees of `uc-o-reps`, `ucpd` and `pdgd-ops` are for policies that do what the plan says. Dependent rounding does, on
average and as far as the hard budget allows; the highest indices do not. So it is their default, and it has a price: at the
rates of the theory a plan leans to the better arms by little, which the highest indices execute in full; and the plans of
`ucpd` and `pdgd-ops`, which price the budget, still exceed it by far after 50 episodes, so that little is left of them when
they are scaled down. What the choice costs and buys, in regret to O3, and as the difference in the same rounds ({mark}:
cannot be told apart, paired t-test, 5%, Holm's correction for the whole table):

{choice}
## 400 episodes

Rivals that weigh losses by how rare they are, on `cpap@noisy` with eight times as many episodes; one of them also with the
highest indices in the place of draws. T is known to all, and sets their rates.

{longer}
## On the examples of their authors

`circulant` and `restart` (Avrachenkov & Borkar 2022; 100 arms, 60 episodes of 100 steps) are where `q-whittle` was shown
to learn, and `good-bad` (8 arms, budget 3, 30 episodes of 20 steps) is the synthetic domain of UCWhittle. Rewards do not
change, so that those who average have all that is needed. On `restart` the best plan activates 15 of 100 arms at a step, and
the budget is 20. Learners that fill it lose 25 points for ever, `ucmd` among them: its shares are softened and never quite
0, so that its rule `at-most` leaves nobody out. `whittle`, which knows the kernels, does.

{examples}
On `good-bad`, `uc-whittle` earns more than its authors' published program, whose counts are wrong, and more than that
program with its counts mended. What was earned in all, and the difference to `uc-whittle` in the same rounds ({mark}: cannot
be told apart, as above); `python studies/uc_whittle.py` plays it, and says what the program does:

{program}
## One decision process

The rivals that were made for Markov decision processes, on one (`two-way`): a single arm of 2 states and 2 steps, which may
always be active (rule `at-most`). Regret to O2 and the exponent of T that fits it; T enters the rates of the theory.
`dilated-po` at the rate of its theory is slowest, and loses more than chance up to T = 800: its bound is vacuous before 16.6
H^3 episodes, 133 here. At a faster rate it learns as quickly as any other that sees only what it visits.

{single}
![One decision process](images/single.png)

{made}"""


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
the chance gap, mean over adversaries and rounds; nothing else decides. A preset at the edge of a grid might be better
beyond it.
"""
