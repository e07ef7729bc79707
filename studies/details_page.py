"""docs/details.md: what is behind single sentences of other pages, and the text between its tables."""

import numpy as np
from contents import TOLD, scalings
from inside import AT, STATE, WATCHED, values
from kept import Kept
from tables import LEVEL, Found, apart, by_parts, heads_of, made_by, per_cent, regrets, rows, told_by

from rmab.report.statistics import interval

STATES = ("low", "medium", "high")  # adherence
TWENTIETHS = 20


def details(
    late: Found,
    versions: Found,
    zeros: Found,
    samples: Found,
    boxes: Found,
    steady: Found,
    halves: Found,
    longer: Found,
    inside: Kept,
) -> str:
    """Return the page."""
    return PAGE.format(
        late=scalings(late),
        versions=table(versions, "stationary, sample means"),
        base=TOLD.format(mark=LEVEL, base="stationary, sample means"),
        zeros=table(zeros),
        weighed=weighed(zeros),
        told=TOLD.format(mark=LEVEL, base="ucmd"),
        cpap=beliefs(inside),
        plans=beginnings(inside),
        deadline=ones(inside),
        samples=table(samples),
        boxes=parts(boxes, 5),
        jumps=parts(longer, TWENTIETHS, "uob-reps"),
        steady=table(steady, "ucmd"),
        halves=table(halves, "ucmd"),
        made=made_by(late, versions, zeros, samples, boxes, steady, halves, longer, inside),
    )


def table(found: Found, base: str = "") -> str:
    """Return the regrets of a study, learners by tasks."""
    return regrets(found.summary.learners, [page.task for page in found.summary.pages], found.cells, "O1", base)


def weighed(found: Found) -> str:
    """Return by how much more a learner loses with exact zeros than with all losses weighed, in the same rounds."""
    labels = found.summary.learners
    bases = {one: other for one in labels for other in labels if "exact" in one and other.startswith(f"{name_of(one)}, all")}
    tasks, cells = [page.task for page in found.summary.pages], found.cells
    told = told_by(cells, bases)
    lines = [[one, *(apart(told.get((task, one)), task, cells) for task in tasks)] for one in bases]
    return rows(["points above its own with all weighed", *heads_of(tasks)], lines, 1)


def name_of(label: str) -> str:
    """Return a learner's name, without what is said about its options."""
    return label.partition(",")[0]


def parts(found: Found, number: int, name: str = "") -> str:
    """Return the loss of learners in equal parts of their runs, in per cent of chance's."""
    cells = [cell for (_, learner), cell in found.cells.items() if learner.startswith(name)]
    lines = [[cell.learner, str(cell.rounds.size), per_cent(cell.of_chance("O1")), by_parts(cell, number)] for cell in cells]
    return rows(["learner", "rounds", "whole run", f"by {'fifths' if number == 5 else 'twentieths'} of the run"], lines, 1)


def beliefs(inside: Kept) -> str:
    """Return what the paper's learner believes and does in every state."""
    found = values(inside, "cpap")
    lines = [[state, *(per_cent(interval(found[f"{word}, state {s}"])) for word in STATE)] for s, state in enumerate(STATES)]
    believed = [
        "is believed to pay, %",
        "clipped, % of arms",
        "passivity is believed to pay, %",
        "arms there that are active, %",
    ]
    return rows(["adherence", "activation pays, % of the range", *believed], lines, 1)


def beginnings(inside: Kept) -> str:
    """Return what plans lose to the optimum, by the number of episodes before them."""
    found = values(inside, "plans")
    when = (0, 10, 200)
    lines = [
        [name, *(per_cent(interval(found[f"{name}, after {t} episodes"])) for t in when)]
        for name in ("sets", "true kernels")
    ]
    lines.append(["the myopic index", *[per_cent(interval(found["myopic"]))] * len(when)])
    return rows(["plan", "the first", *(f"after {t} episodes" for t in when[1:])], lines, 1)


def ones(inside: Kept) -> str:
    """Return how degenerate the rival's LP is."""
    found = values(inside, "deadline")
    lines = [[f"{word}, %", *(per_cent(interval(found[f"{word}, episode {t}"])) for t in AT)] for word in WATCHED[1:]]
    highest = float(np.max([found[f"{WATCHED[0]}, episode {t}"] for t in AT]))
    return (
        rows(["episodes played", *(str(t + 1) for t in AT)], lines, 1)
        + f"\nIts price was {highest:.0e} of the range at most.\n"
    )


PAGE = """# Details

What is behind single sentences of other pages: small studies (`studies/questions.py`), and looks inside runs
(`studies/inside.py`). All are made by `python studies/pages.py details`. Means and 95% intervals over rounds. Regret is
to O1, in per cent of the chance gap, where nothing else is said: 0 is O1, 100 is chance.

## The highest indices where arms pay in turns

Regret to O2, the best fixed policy. On `turns` the plan of mirror descent is back at a tie after every other episode,
up to rounding, so that differences of 1e-15 decide what the highest indices do, and an exponent says nothing. On `halfway`
(`rmab.make_task("turns", first=0.5)`) the first episode pays one half, and the plan never ties: it always leans to the arm
that paid last, by half of what an episode pays.

{late}
![Regret on halfway, beside the theorem's bound](images/late.png)

## Versions of `rmab-ucrl`

`stationary` is as published, `finite` plans for the steps of an episode, `window` takes rewards of the last sqrt(T)
episodes only, `generator` knows kernels by samples. In all of them ties, and states without mass, are decided by the plan's
own advantage.
{base}{versions}
## Declared zeros beside importance weights

`uob-reps` takes losses too low, so that it explores. Declared zeros at their exact loss look too bad beside them, and it
weighs all alike, as published; but they also save noise, and neither choice is better everywhere. The weights of
`shifted-uc-o-reps` have little bias, so that exact zeros are better there. Then the difference in the same rounds (paired
t-test, 5%, Holm's correction).

{zeros}
{weighed}
## What the paper's learner believes in the middle of its CPAP study

`ucmd-armab` to the letter, episodes 21 to 30 of 50 ([reproduction.md](reproduction.md)). What activation is believed to
pay is near the top of the range in every state. Passivity pays nothing, and is believed to pay a good part of the range. So
who goes first has little to do with what is paid: arms of low adherence are activated more often than those of high
adherence, for whom activation pays three times as much.

{cpap}
## Where mirror descent begins

The instance of the decomposition ([reproduction.md](reproduction.md)), with all rewards revealed: what the plan of an
episode loses to the optimum, in per cent of what chance loses, if it is played 20,000 times against the mean rewards. A
plan in wide sets is blind at first, as chance is; the first plan under the true kernels prefers whatever moves most at
random, which is worse.

{plans}
## The rival's means plus width on deadline scheduling

`rmab-ucrl` with min(mean + delta, 1). Nearly all of the 240 rewards are 1, so that its LP is degenerate; most of the
120 states have no mass, where its published index is not defined.

{deadline}
## What a generator is worth

`rmab-ucrl` with samples of every pair from the true kernels, on a chain. It takes no others in, so that its sets stay
as wide as the samples leave them: 0.4 with 200. It then hopes that arms which are left alone swim by themselves.

{samples}
## The sets of `uob-reps`

With its own Bernstein boxes and with KL sets, 200 episodes of `cpap@noisy`; then the 400 episodes of
[comparison.md](comparison.md), in finer parts, which show where losses jump.

{boxes}
{jumps}
## `ucmd` where nothing changes but luck

`coins` are 20 arms of one state that pay 0 or 1, each by its own odds; 4 may be active, in 10 steps. Then 10 random
arms of three states whose pay varies by a fifth, in a range that is declared rightly, and in one that is 1,000 times as
wide.
{told}{steady}
## `ucmd` where halves are paid in turns

The arms of cpap, whose two halves are paid 1.5 and 0.1 times their reward in turns of so many episodes (60 in all, where
nothing else is said). In the long run of short turns the highest indices are late, and with full information they lose
more than chance, while draws of the same plans do not.
{told}{halves}
{made}"""
