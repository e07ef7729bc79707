"""Headlines of a report: the sentences for a reader who reads no further."""

import math

from rmab.errors import many
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
    """Return three sentences: the finding, its uncertainty, and how many runs are finished."""
    if summary.scalings:
        return [*_scaling_headline(summary), coverage(summary), *scaling_caution(summary)][:3]
    if len(summary.pages) == 1:
        page = summary.pages[0]
        theory = theory_words(page) if summary.finished == summary.expected else []
        sentences = [
            *best_words(page)[:1],
            *regret_words(page),
            *theory,
            coverage(summary),
            *privilege_words(page),
            *caution(page),
        ]
        return sentences[:3]
    return [*_tasks_headline(summary), coverage(summary)]


def _tasks_headline(summary: Summary) -> list[str]:
    """Name the leading learner and how many tasks it leads on, compare it with the paper's, and give its range of regret."""
    pages = [page for page in summary.pages if len(page.rivals) > 1]
    if not pages:
        only = summary.pages[0].rivals[0]
        who = "one learner" if only.privileged else "one learner without privileges"
        first = f"{many(len(summary.pages), 'task')} with {who} each: nothing to compare."
        return [first, *_extremes(summary, only.learner)]
    leader = _leader(pages, summary.learners)
    firsts = [page for page in pages if page.rivals[0].learner == leader]
    alone = sum(not any(page.level(cell) for cell in page.rivals[1:]) for page in firsts)
    level = sum(page.level(cell) for page in pages if page not in firsts for cell in page.rivals if cell.learner == leader)
    rivals = "learners" if all(cell.privileged for page in pages for cell in page.cells) else "learners without privileges"
    first = f"{leader} earned the most of the {rivals} on {len(firsts)} of {many(len(pages), 'task')}"
    first += f" (significantly more than all others on {alone})"
    first += f", and is not significantly different from the best on {level} more" if level else ""
    return [f"{first}{_beside_the_papers(pages, leader)}.", *_extremes(summary, leader)]


def _leader(pages: list[Page], learners: list[str]) -> str:
    """Return the learner that is level with the best on most tasks; ties go to most first places, then to least regret."""

    def merit(learner: str) -> tuple[int, int, float]:
        mine = [(page, cell) for page in pages for cell in page.rivals if cell.learner == learner]
        shares = [cell.relative_to_random("O1").mean for _, cell in mine if not cell.adaptive]
        known = [one for one in shares if math.isfinite(one)]
        lost = sum(known) / len(known) if known else math.inf
        return sum(page.level(cell) for page, cell in mine), sum(page.rivals[0] is cell for page, cell in mine), -lost

    return max(learners, key=merit)


def _beside_the_papers(pages: list[Page], leader: str) -> str:
    """Describe on how many tasks the leader differs significantly from the paper's learner, if that is another one."""
    pairs = [
        page.pair(cell, page.papers)
        for page in pages
        for cell in page.rivals
        if cell.learner == leader and page.papers is not None and page.papers is not cell
    ]
    known = [pair for pair in pairs if pair is not None]
    if not known:
        return ""
    more, less = (sum(pair.is_significant and sign * pair.difference.mean > 0 for pair in known) for sign in (1, -1))
    counted = f"significantly more on {more} of {many(len(known), 'task')} and significantly less on {less}"
    return f". Compared with {known[0].second}, the paper's learner, it earned {counted}"


def _extremes(summary: Summary, leader: str) -> list[str]:
    """Describe on which tasks the regret of a learner is smallest and largest."""
    cells = [cell for page in summary.pages for cell in page.cells if cell.learner == leader and not cell.adaptive]
    found = sorted(((cell.relative_to_random("O1"), cell.task) for cell in cells), key=lambda one: one[0].mean)
    found = [one for one in found if math.isfinite(one[0].mean)]
    if not found:
        return []
    (low, easy), (high, hard) = found[0], found[-1]
    ends = f"from {share(low)} on {easy} to {share(high)} on {hard}" if len(found) > 1 else f"{share(low)} on {easy}"
    sure = " (95% intervals in brackets)" if math.isfinite(low.half) or math.isfinite(high.half) else ""
    scale = f"0% is {O1}, and 100% is a random policy"
    note = "; negative regret means that the learner earned more than O1" if low.high < -ROUNDING else ""
    return [f"Regret of {leader} relative to a random policy: {ends}{sure}. {scale}{note}."]


def _scaling_headline(summary: Summary) -> list[str]:
    """Give the exponents of the paper's learner and of the best other one, or else the smallest and the largest.

    A learner is represented by its worst family; privileged learners count only if all are privileged.
    """
    cells = [cell for page in summary.pages for cell in page.cells]
    published = {cell.learner for cell in cells if cell.published and not cell.privileged}
    honest = {cell.learner for cell in cells if not cell.privileged} or {cell.learner for cell in cells}
    rivals = [one for one in summary.scalings if one.learner in honest]
    worst = {one.learner: one for one in sorted((one for one in rivals if one.sure), key=_exponent)}  # the last one wins
    found = sorted(worst.values(), key=_exponent)
    papers = [one for one in found if one.learner in published]
    others = [one for one in found if one.learner not in published]
    ends = [*papers[:1], *others[:1]] if papers else [*others[:1], *others[1:][-1:]]
    rest = [one for one in rivals if one.learner not in worst]
    sentences = [_among_families(one, summary) for one in ends] + [scaling_words(one, summary.study.kind) for one in rest]
    return sentences[:2]


def _among_families(one: Scaling, summary: Summary) -> str:
    """Give a learner's largest exponent, and the range over its families if it has several."""
    mine = [other for other in summary.scalings if other.learner == one.learner]
    powers = [_exponent(other) for other in mine if other.sure]
    sentence = scaling_words(one, summary.study.kind)
    if len(mine) == 1:
        return sentence
    if len(powers) == 1:
        return f"{sentence[:-1]}; its other families have no exponent with an interval."
    ends = f"from {min(powers):z.2f} to {max(powers):z.2f}"
    over = f"all {len(mine)} families" if len(powers) == len(mine) else f"the {len(powers)} of {len(mine)} families with one"
    return f"{sentence[:-1]}; its exponents range {ends} over {over}."


def _exponent(one: Scaling) -> float:
    return one.fit.exponent.mean if one.fit is not None else math.inf
