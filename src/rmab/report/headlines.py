"""The first sentences of a report: what a reader takes away who reads no further."""

import math

from rmab.common import many
from rmab.report.cells import ROUNDING, Page
from rmab.report.numbers import share
from rmab.report.scalings import Scaling
from rmab.report.sentences import (
    O1,
    best_words,
    caution,
    coverage,
    privilege_words,
    regret_words,
    scaling_caution,
    scaling_words,
    theory_words,
)
from rmab.report.summary import Summary


def headline(summary: Summary) -> list[str]:
    """Three sentences: what was found, how sure it is, and how much of it has been run."""
    if summary.scalings:
        return [*_scaling_headline(summary), coverage(summary), *scaling_caution(summary)][:3]
    if len(summary.pages) == 1:
        page = summary.pages[0]
        theory = theory_words(page) if summary.finished == summary.expected else []
        said = [
            *best_words(page)[:1],
            *regret_words(page),
            *theory,
            coverage(summary),
            *privilege_words(page),
            *caution(page),
        ]
        return said[:3]
    return [*_tasks_headline(summary), coverage(summary)]


def _tasks_headline(summary: Summary) -> list[str]:
    """Say which learner to look at, where it leads, how it stands to the paper's, and the range of its regret."""
    pages = [page for page in summary.pages if len(page.rivals) > 1]
    if not pages:
        only = summary.pages[0].rivals[0]
        who = "one learner" if only.privileged else "one learner without privileges"
        first = f"{many(len(summary.pages), 'task')} with {who} each: there is nothing to compare."
        return [first, *_extremes(summary, only.learner)]
    leader = _leader(pages, summary.learners)
    firsts = [page for page in pages if page.rivals[0].learner == leader]
    alone = sum(not any(page.level(cell) for cell in page.rivals[1:]) for page in firsts)
    level = sum(page.level(cell) for page in pages if page not in firsts for cell in page.rivals if cell.learner == leader)
    rivals = "learners" if all(cell.privileged for page in pages for cell in page.cells) else "learners without privileges"
    said = f"{leader} earned the most of the {rivals} on {len(firsts)} of {many(len(pages), 'task')}"
    said += f", and cannot be told apart from the best on {level} more" if level else ""
    said += f"; on {alone} of them it can be told apart from all others"
    return [f"{said}{_beside_the_papers(pages, leader)}.", *_extremes(summary, leader)]


def _leader(pages: list[Page], learners: list[str]) -> str:
    """Return the learner that matters: on most tasks nobody is clearly better; then, the first on most; then, by regret."""

    def merit(learner: str) -> tuple[int, int, float]:
        own = [(page, cell) for page in pages for cell in page.rivals if cell.learner == learner]
        shares = [cell.of_chance("O1").mean for _, cell in own if not cell.adaptive]
        known = [one for one in shares if math.isfinite(one)]
        lost = sum(known) / len(known) if known else math.inf
        return sum(page.level(cell) for page, cell in own), sum(page.rivals[0] is cell for page, cell in own), -lost

    return max(learners, key=merit)


def _beside_the_papers(pages: list[Page], leader: str) -> str:
    """Say on how many tasks the leader can be told apart from the paper's learner, where that plays and is another."""
    pairs = [
        page.pair(cell, page.papers)
        for page in pages
        for cell in page.rivals
        if cell.learner == leader and page.papers is not None and page.papers is not cell
    ]
    known = [pair for pair in pairs if pair is not None]
    if not known:
        return ""
    more, less = (sum(pair.told and sign * pair.difference.mean > 0 for pair in known) for sign in (1, -1))
    counted = f"clearly more on {more} of {many(len(known), 'task')} and clearly less on {less}"
    return f". Beside {known[0].second}, the paper's learner, it earned {counted}"


def _extremes(summary: Summary, leader: str) -> list[str]:
    """Say on which tasks the regret of a learner is smallest and largest."""
    cells = [cell for page in summary.pages for cell in page.cells if cell.learner == leader and not cell.adaptive]
    found = sorted(((cell.of_chance("O1"), cell.task) for cell in cells), key=lambda one: one[0].mean)
    found = [one for one in found if math.isfinite(one[0].mean)]
    if not found:
        return []
    (low, calm), (high, hard) = found[0], found[-1]
    ends = f"runs from {share(low)} on {calm} to {share(high)} on {hard}" if len(found) > 1 else f"is {share(low)} on {calm}"
    sure = " (95% intervals in brackets)" if math.isfinite(low.half) or math.isfinite(high.half) else ""
    note = "; negative is more than any fixed policy can earn on average" if low.high < -ROUNDING else ""
    return [f"The regret of {leader} to {O1}, {ends} of what blind decisions lose to it{sure}{note}."]


def _scaling_headline(summary: Summary) -> list[str]:
    """Give the exponents of the paper's learner and of the best other one, or the smallest and the largest of all.

    A learner counts with its worst family; privileged learners count only if all are privileged.
    """
    cells = [cell for page in summary.pages for cell in page.cells]
    published = {cell.learner for cell in cells if cell.published and not cell.privileged}
    honest = {cell.learner for cell in cells if not cell.privileged} or {cell.learner for cell in cells}
    rivals = [one for one in summary.scalings if one.learner in honest]
    worst = {one.learner: one for one in sorted((one for one in rivals if one.sure), key=_exponent)}  # the last one stays
    found = sorted(worst.values(), key=_exponent)
    papers = [one for one in found if one.learner in published]
    others = [one for one in found if one.learner not in published]
    ends = [*papers[:1], *others[:1]] if papers else [*others[:1], *others[1:][-1:]]
    rest = [one for one in rivals if one.learner not in worst]
    said = [_among_families(one, summary) for one in ends] + [scaling_words(one, summary.study.kind) for one in rest]
    return said[:2]


def _among_families(one: Scaling, summary: Summary) -> str:
    """Give a learner's largest exponent, and the range over its families if it has several."""
    own = [other for other in summary.scalings if other.learner == one.learner]
    powers = [_exponent(other) for other in own if other.sure]
    said = scaling_words(one, summary.study.kind)
    if len(own) == 1:
        return said
    if len(powers) == 1:
        return f"{said[:-1]}; no other of its {len(own)} families has an exponent with an interval."
    ends = f"from {min(powers):z.2f} to {max(powers):z.2f}"
    over = f"all {len(own)} families" if len(powers) == len(own) else f"the {len(powers)} of {len(own)} families with one"
    return f"{said[:-1]}; its exponents run {ends} over {over}."


def _exponent(one: Scaling) -> float:
    return one.fit.exponent.mean if one.fit is not None else math.inf
