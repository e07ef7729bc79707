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
    return rows(["percentage points above its own with all weighted", *heads_of(tasks)], lines, 1)


def name_of(label: str) -> str:
    """Return a learner's name, without what is said about its options."""
    return label.partition(",")[0]


def parts(found: Found, number: int, name: str = "") -> str:
    """Return the loss of learners in equal parts of their runs, in per cent of chance's."""
    cells = [cell for (_, learner), cell in found.cells.items() if learner.startswith(name)]
    lines = [
        [cell.learner, str(cell.rounds.size), per_cent(cell.relative_to_random("O1")), by_parts(cell, number)]
        for cell in cells
    ]
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

Small studies behind single statements of other pages (`studies/questions.py`, `studies/inside.py`). Each section
begins with its finding. Values are means and 95% intervals over rounds. Unless stated otherwise, regret is to O1 and
relative to the random policy: 0 is O1, 100 is random.

## The highest indices where arms pay in turns

On `halfway`, the highest indices lose one half per step even with all rewards revealed. There
(`rmab.make_task("turns", first=0.5)`) the first episode pays one half, and the plan always favours the arm that paid
last. On `turns` the plan returns to a tie after every second episode, so that rounding errors of 1e-15 decide and the
exponent is meaningless. Regret is to O2, the best fixed policy.

{late}
![Regret on halfway, with the theorem's bound](images/late.png)

## Versions of `rmab-ucrl`

In the stationary and finite versions, sample means have less regret than means plus width on ramp and noisy rewards,
and more where rewards switch. `stationary` is the published version, `finite` plans for the steps of an episode,
`window` uses rewards of the last sqrt(T) episodes, `generator` samples the true kernels. The plan's advantage decides
ties and states without mass.
{base}{versions}
## Declared zeros with importance weights

Exact zeros are better for `shifted-uc-o-reps`; for `uob-reps` neither choice is better everywhere. `uob-reps`
underestimates losses to explore, so that exact zeros look too bad, but they also reduce noise. The second table has
the difference in the same rounds (paired t-test, 5%, Holm's correction).

{zeros}
{weighed}
## What the paper's learner estimates in its CPAP study

`ucmd-armab` (episodes 21 to 30 of 50) estimates the reward of activation near the top of the range in every state,
and that of passivity, which is zero, at a good part of the range. So arms with low adherence are activated more often
than arms with high adherence, where activation pays three times as much ([appendix](reproduction.md)).

{cpap}
## Where mirror descent begins

The first plan in wide confidence sets is as good as the random policy; the first plan under the true kernels is
worse, because it favours the most random transitions. The instance is that of [the decomposition](reproduction.md),
with all rewards revealed. Each plan is simulated 20,000 times against the mean rewards; the table has its loss to the
optimum relative to the random policy.

{plans}
## Means plus width on deadline scheduling

With min(mean + delta, 1) nearly all of the 240 rewards of `rmab-ucrl` are 1, so its LP is degenerate. Most of the 120
states have no mass, and its published index is undefined there.

{deadline}
## The value of a generator

With 200 samples of each pair, `rmab-ucrl` does worse than without a generator; with 20,000 it does better. It uses no
other observations, so its sets stay as wide as the samples leave them (0.4 with 200), and it expects passive arms to
advance by themselves. The task is a chain.

{samples}
## The confidence sets of `uob-reps`

KL sets lower the regret of `uob-reps` on `cpap@noisy` (200 episodes). The second table has the 400 episodes of [the
comparison](comparison.md) in twentieths.

{boxes}
{jumps}
## `ucmd` with constant reward distributions

`ucmd` hardly depends on the declared range of rewards: 1,000 times the range changes its regret by less than a point.
`coins` has 20 arms with one state that pay 0 or 1 with different probabilities, of which 4 may be active, in 10
steps. The last columns have 10 random arms with three states whose rewards vary by a fifth.
{told}{steady}
## `ucmd` with alternating halves

In short turns the highest indices are late: with full information they lose more than the random policy over 200
episodes, and draws from the same plans do not. The two halves of the arms of cpap get 1.5 and 0.1 times their reward,
in turns of the given number of episodes (60 in total by default).
{told}{halves}
{made}"""
