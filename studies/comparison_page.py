"""docs/comparison.md: the paper's Table 1 with what was measured, and the text between its tables."""

import uc_whittle
from contents import UNIT, by_family, scalings, whole_runs
from kept import Kept
from tables import LEVEL, Found, apart, exponent, heads_of, made_by, milliseconds, regrets, rows, told_by

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
        f"## {family}\n\n{by_family(found, family)}" for family in dict.fromkeys(task.partition("@")[0] for task, _ in cells)
    ]
    return PAGE.format(
        first=first,
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
an MDP or CMDP without a hard budget, or rewards that do not change. Rows with a star are not in its table. Two of its
cells are not right: the second row's H^(2/3) should be H^(3/2), as its own text has it, and Restless-UCB explores and
commits, it has no generative model. The restless rivals are given bandit feedback here, as they can do with it.

Each learner is brought under the hard budget as its docstring says. `theory` has the parameters of its paper, `tuned`
those of [tuning.md](tuning.md), one row where the theory's won. Rewards are what each one's own description says: sample
means for `rmab-ucrl`, means plus width for `r2mab-ucb`; rows with the other choice say so. Learners with full feedback see
all rewards of an episode, a generator draws from the true kernels: both are privileged. `colored-ucrl2` plans over the joint
states of all arms, 3^20 on cpap, and plays the small instance only.

{first}
{unit}
{families}
## What this shows

- On the ramp, on noisy and on iid rewards of cpap, learners that average what they saw (`rmab-ucrl` and `r2mab-ucb` with
  sample means, `uc-whittle`, `thompson`) cannot be told apart from `ucmd` in this table. Mean plus width costs the first two
  16 points on the ramp and 20 on noisy rewards.
- Where rewards switch, drift, are mixed or change late, `ucmd` is clearly ahead of all that see only what they visit. Those
  who never forget do not follow; optimism that never ends follows a little, and so does a fast rate
  (`q-whittle`, tuned).
- `ucmd` is behind on the ramp of `swim` (`restless-ucb`, tuned) and against `adaptive`, where those who hope for means plus
  width earn 1 to 2% more. Where rewards alternate, `thompson`, `restless-ucb`, `q-whittle` by its theory and those with
  sample means lose less on average, but cannot be told apart in 50 episodes; over 200, and on `swim`, some are clearly ahead
  ([learning_tables.md](learning_tables.md)).
- Importance weights do not pay within 50 episodes, and the parameters of the theories are for many more.
- Against `plan-aware`, most who play by the highest indices keep a fifth to a half of what chance earns; those who draw keep
  more, and most where plans are flat. `ucmd` plays by the highest indices until its forecasts fail, and then draws: it keeps
  all.
- On `swim` the paper's learner to the letter is worse than chance. With declared zeros, which is the whole difference, it
  comes close to `ucmd` on the ramp: what costs is to estimate what passive arms pay.
- There `rmab-ucrl` loses more with a generator than without. It has 200 samples of every pair for ever, so that its sets
  stay 0.4 wide, and hopes that arms which are left alone swim by themselves. With more samples that goes away
  ([details.md](details.md)).

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
the budget is 20. Learners that fill it lose a quarter of the gap, `ucmd` among them: its shares are softened and never quite
0, so that even with the rule `at-most` it fills the budget. `whittle`, which knows the kernels, leaves the rest unused.

{examples}
On `good-bad`, `uc-whittle` earns more than its authors' published program, whose counts are wrong, and more than that
program with its counts mended. What was played is that program written anew after reading it (`studies/uc_whittle.py` says
what it does), in the two of its versions that need no commercial solver; its third was not played. What was earned in all,
and the difference to `uc-whittle` in the same rounds ({mark}: cannot be told apart, as above):

{program}
## One decision process

The rivals that were made for Markov decision processes, on one (`ferry`, in `studies/details.py`): a single arm of three
states and four steps, where what is done decides where it goes, two right moves lead to the better pay, and pay varies from
episode to episode. The arm may always be active and need not be (rule `at-most`). Regret to O2, the best policy, and the
exponent of T that fits it; T enters the rates of the theory. All learn in the end. From T = 1,600 to 6,400 the regret of
`uob-reps` and of those with full information roughly doubles, as the root of T does, and that of `shifted-uc-o-reps` grows
by less than T^(3/4), as their papers promise. `dilated-po` at the rate of its theory is slowest: its bound is vacuous before
16.6 H^3 episodes, 1,062 here, and up to T = 1,600 it is little better than a coin. At a faster rate, chosen by hand, it
learns sooner; that rate does not fall with T, so that it stops getting better.

{process}
![One decision process](images/process.png)

{made}"""
