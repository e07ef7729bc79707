"""docs/comparison.md: the paper's Table 1 with what was measured, and the text between its tables."""

import uc_whittle
from contents import UNIT, by_family, scalings, whole_runs
from kept import Kept
from tables import LEVEL, Found, apart, exponent, heads_of, made_by, regrets, rows, told_by

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


def comparison(
    found: Found, grown: Found, rounded: Found, longer: Found, examples: Found, process: Found, program: Kept
) -> str:
    """docs/comparison.md: the paper's Table 1 with what was measured, regret on cpap and swim, and single questions."""
    labels = [one.label for one in found.summary.study.learners]
    labels += [one.label for one in grown.summary.study.learners if one.label not in labels]
    powers = {one.learner: one for one in grown.summary.scalings}
    table = []
    for name, *known in TABLE:
        for label in (one for one in labels if one == name or one.startswith(f"{name},")):
            table.append([f"`{name}`{label.removeprefix(name)}", *known, exponent(powers.get(label))])
    head = ["learner", "paper", "model", "setting", "feedback", "constraint", "algorithm", "regret as stated"]
    first = rows([*head, "exponent of T (95%)"], table, 8)
    families = [
        f"## {family}\n\n{folded('Tables', by_family(found, family))}"
        for family in dict.fromkeys(task.partition("@")[0] for task, _ in found.cells)
    ]
    return PAGE.format(
        first=folded("Table 1", first),
        unit=UNIT,
        mark=LEVEL,
        families="\n".join(families),
        choice=rounding(rounded),
        process=scalings(process),
        longer=whole_runs(longer, changing=True),
        program=uc_whittle.table(program),
        examples=regrets(examples.summary.learners, [page.task for page in examples.summary.pages], examples.cells, "O1"),
        grown=grown.summary.study.rounds,
        made=made_by(found, grown, rounded, longer, examples, process, program),
    )


def folded(title: str, text: str) -> str:
    """Return the text behind a title that opens it on a click."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n</details>\n"


def rounding(found: Found) -> str:
    """Return what dependent rounding costs and buys: regret against O3, every learner beside itself with the other one."""
    tasks, cells = [page.task for page in found.summary.pages], found.cells
    specs = [one for one in found.summary.study.learners if "rounding" in one.options]
    top = {one.name: one.label for one in specs if one.options["rounding"] == "top"}
    drawn = {one.label: top[one.name] for one in specs if one.options["rounding"] == "dependent" and one.name in top}
    told = told_by(cells, drawn)
    lines = [[label, *(apart(told.get((task, label)), task, cells, "O3") for task in tasks)] for label in drawn]
    second = rows(["percentage points above its highest indices", *heads_of(tasks)], lines, 1)
    return regrets(found.summary.learners, tasks, cells, "O3", "") + "\n" + second


PAGE = """# Comparison of all systems in the paper's Table 1

On `cpap`, `ucmd` has the lowest regret of all learners with bandit feedback where rewards switch, drift, are mixed or
change late. On ramp, noisy and iid rewards, several learners that average their observations are not significantly
different from it. [The command line](cli.md) describes the tasks and the adversaries.

These tables were made with version 0.2.0. Since then `ucmd` finds seasons and may leave budget unused, so that some of
its results here are out of date; [learning tables](learning_tables.md) has newer ones.

## Findings

- **Ramp, noisy and iid rewards of cpap:** `rmab-ucrl` and `r2mab-ucb` with sample means, `uc-whittle` and `thompson`
  are not significantly different from `ucmd`. Adding the confidence width to the mean (`mean plus width`) costs the
  first two 16 points on the ramp and 20 on noisy rewards.
- **Changing rewards:** learners that never forget do not adapt. Learners that always add the width to the mean adapt a
  little, and so does `q-whittle`, tuned, with its fast learning rate.
- **Where `ucmd` of version 0.2.0 is behind:** on the ramp of `swim` (`restless-ucb`, tuned) and against `adaptive`,
  where learners with means plus width earn 1 to 2% more. Where rewards alternate, `thompson`, `restless-ucb`,
  `q-whittle` with its theory's parameters and learners with sample means have lower mean regret, without significance
  in 50 episodes; since version 0.3.0 `ucmd` finds the season and has the lowest ([tables](learning_tables.md)).
- **Importance weights** do not pay off within 50 episodes, and the theories' parameters are meant for many more.
- **Against `plan-aware`**, most learners with the highest indices keep a fifth to a half of the random policy's
  reward. Learners that draw keep more. `ucmd` switches to draws when its forecasts fail and keeps all of it.
- **On `swim`** the paper's learner is worse than random. With declared zeros (passive rewards are taken to be 0, not
  estimated), the only difference, it comes close to `ucmd` on the ramp: estimating passive rewards is what costs.
- **Generator:** on `swim`, `rmab-ucrl` loses more with a generator than without. With 200 samples per pair its sets
  stay 0.4 wide, and it expects passive arms to advance by themselves. More samples fix this ([details](details.md)).

## Table 1 with measurements

The first columns are the paper's Table 1. `exponent of T` fits the measured regret against O2 on a small instance with
noisy rewards (4 arms, budget 2, 10 steps, T = 25 to 400, {grown} rounds; O2 is exact). `regret as stated` holds for
each system's own model: an MDP or CMDP without a hard budget, or constant rewards. Rows with a star are not in the
paper's table. Two of its cells are wrong: H^(2/3) in the second row should be H^(3/2), as in its text, and
Restless-UCB explores and commits, without a generative model. Learners for restless bandits get bandit feedback here.

Each learner is adapted to the hard budget as its docstring says. `theory` has the parameters of its paper, `tuned`
those of [tuned presets](tuning.md). If the theory's parameters are also the best ones, one row, `theory and tuned`,
stands for both. `rmab-ucrl` uses sample means and
`r2mab-ucb` means plus width, unless the row says otherwise. Full feedback and a generator (samples from the true
kernels) are privileged. `colored-ucrl2` plans over joint states, 3^20 on cpap, and runs on the small instance only.

{first}
{unit}
{families}
## Dependent rounding or the highest indices

Dependent rounding is much better where two arms pay in turns, and much worse where the best policy is constant. The
guarantees of `uc-o-reps`, `ucpd` and `pdgd-ops` require that the plan is executed, which dependent rounding does on
average, as far as the hard budget allows; so it is their default. At the theories' rates a plan favours the better
arms only slightly, while the highest indices always activate them. The plans of `ucpd` and `pdgd-ops` also exceed the
budget after 50 episodes and are scaled down. Regret against O3, and the difference in the same rounds ({mark}: not
significant, paired t-test, 5%, Holm's correction for the whole table):

{choice}
## 400 episodes

`ucmd` reaches 2.6% in 400 episodes of `cpap@noisy`; learners with importance weights stay at 57% or more. T is known
to all and sets their rates.

{longer}
## Examples of other authors

`thompson` and `ucmd` have the lowest regret of the learners here. `circulant` and `restart` (Avrachenkov & Borkar
2022; 100 arms, 60 episodes of 100 steps) are the examples of `q-whittle`, and `good-bad` (8 arms, budget 3, 30
episodes of 20 steps) is the synthetic domain of UCWhittle. Rewards do not change. On `restart` the best plan
activates 15 of 100 arms per step, and the budget is 20. Learners that use all of it lose a quarter of the random
policy's regret, as did `ucmd` of version 0.2.0. Since version 0.3.0 it leaves arms passive where activation does harm;
in one run it lost 4%. `whittle`, which knows the kernels, leaves the rest unused.

{examples}
On `good-bad`, `uc-whittle` earns more than its authors' published program, whose counts are wrong, and more than that
program with corrected counts. We implemented the two versions of that program that need no commercial solver
(`studies/uc_whittle.py`). Total reward, and the difference to `uc-whittle` in the same rounds ({mark}: not
significant):

{program}
## A single decision process

All methods for Markov decision processes learn on one (`ferry`, in `studies/details.py`), as their papers promise. It
has one arm with three states, four steps and action-dependent transitions; two right actions lead to the higher
reward, and rewards vary from episode to episode. The arm may always be active (rule `at-most`). From T = 1,600 to
6,400 the regret against O2 of `uob-reps` and of the learners with full information roughly doubles, like the square root
of T, and that of `shifted-uc-o-reps` grows by less than T^(3/4). `dilated-po` at its theory's rate is slowest: its
bound is vacuous before 16.6 H^3 episodes, 1,062 here. At a faster rate, chosen by hand, it learns sooner but stops
improving, because that rate does not fall with T.

{process}
![Regret on one decision process](images/process.png)

{made}"""
