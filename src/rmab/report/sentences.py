"""What a study shows, in plain sentences made from its numbers; they say what remains uncertain."""

import math
from collections.abc import Iterable

import numpy as np

from rmab.common.words import many
from rmab.model.adversary import FORESEES
from rmab.report.numbers import percent, places_of, plain, share, spread
from rmab.report.statistics import Interval, Paired, interval
from rmab.report.summary import ROUNDING, TERMS, Cell, Page, Scaling, Summary

FEW = 10  # with fewer rounds than this, the text warns


def _sure(found: Interval, extra: str = "") -> str:
    """Return the bracket after a percentage: its interval, if it has one, and the extra."""
    parts = [extra] if extra else []
    if math.isfinite(found.half):
        places = places_of(100 * found.half, 1)
        parts.insert(0, f"95%: {plain(100 * found.low, places)} to {plain(100 * found.high, places)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _size(found: Interval) -> str:
    places = places_of(100 * found.half, 1)
    return f"{plain(abs(100 * found.mean), places)}%"


def _compared(pair: Paired) -> str:
    """Say how the first of the pair did against the second."""
    rounds = pair.difference.count
    if rounds < 2:
        return f"{pair.first} and {pair.second} cannot be told apart: they have only one common round."
    counted = f"ahead in {pair.ahead} of {rounds} rounds"
    if not pair.told:
        wide = f"the difference is {spread(pair.difference)}, p = {pair.adjusted:.3f} after Holm's correction"
        return f"{pair.first} and {pair.second} cannot be told apart: {wide}; {pair.first} was {counted}."
    more = f"{'more' if pair.difference.mean > 0 else 'less'} than {pair.second}"
    if pair.relative is None:
        return f"{pair.first} earned {more}: the difference is {spread(pair.difference)}; {counted}."
    shown = pair.relative if pair.relative.mean > 0 else pair.relative.negative
    return f"{pair.first} earned {_size(shown)} {more}{_sure(shown, counted)}."


def page_words(page: Page) -> list[str]:
    """Say what one task shows."""
    said = [*_best_words(page), *_regret_words(page), *_privilege_words(page), *_term_words(page), *_theory_words(page)]
    foe = [f"The adversary of {page.task} {FORESEES}."] if page.stronger else []
    return [*foe, *said, *_caution(page)]


def _best_words(page: Page) -> list[str]:
    """Compare the best learner without privileges with the next one, and with the paper's."""
    if len(page.rivals) < 2:
        return []
    best, following = page.rivals[0], page.rivals[1]
    others = [following] + ([page.papers] if page.papers not in (None, best, following) else [])
    said = [_against(page, best, cell) for cell in others if cell is not None]
    level = [cell.learner for cell in page.rivals[2:] if page.level(cell)]
    if level:
        said.append(f"Nor can {best.learner} be told apart from {_list(level)}.")
    return said


def _against(page: Page, first: Cell, second: Cell) -> str:
    pair = page.pair(first, second)
    if pair is None:
        return f"{first.learner} and {second.learner} cannot be told apart: they have no common round."
    return _compared(pair)


def _regret_words(page: Page) -> list[str]:
    """Say what the best learner lost to O1; explain a negative loss."""
    return [_lost(page.rivals[0], page.rivals[0].relative("O1"))]


def _lost(cell: Cell, found: Interval) -> str:
    bound = "O1, the fluid bound on every fixed policy"
    if not math.isfinite(found.mean):
        return f"The regret of {cell.learner} to O1 has no percentage: {bound}, earns nothing."
    if abs(found.mean) < ROUNDING and not found.half >= ROUNDING:  # one round has no half
        return f"{cell.learner} earned as much as {bound}."
    if math.isfinite(found.half) and found.low <= 0 <= found.high:
        return f"The regret of {cell.learner} to {bound}, may be zero: {percent(found.mean)}{_sure(found)}."
    if found.mean > 0:
        return f"{cell.learner} earned {_size(found)} less than {bound}{_sure(found)}."
    gained = found.negative
    why = (
        "negative regret is no error here, because the bound is for policies that never change and a learner changes its own"
    )
    return f"{cell.learner} earned {_size(gained)} more than {bound}{_sure(gained)}; {why}."


def _privilege_words(page: Page) -> list[str]:
    """Say which learners are privileged, and how far ahead of the best rival they are."""
    said = []
    for cell in page.cells:
        if not cell.privileged:
            continue
        rest = f" {_against(page, cell, page.rivals[0])}" if cell not in page.rivals else ""
        said.append(f"{cell.learner} is privileged ({cell.privileged}): a yardstick, not a rival.{rest}")
    return said


def _term_words(page: Page) -> list[str]:
    """Name the largest source of the regret to O1 of each learner that has sources."""
    said = []
    for cell in page.cells:
        if cell.terms is None:
            continue
        largest = max(range(4), key=lambda k, terms=cell.terms: abs(terms[k].mean))  # type: ignore[misc]
        term, whole = cell.terms[largest], interval(cell.regret("O1")[:, -1])
        name = TERMS[largest].replace(": ", " (", 1)
        others = "; the other sources cancel a part of it" if abs(term.mean) > abs(whole.mean) else ""
        said.append(
            f"The regret of {cell.learner} to O1 is {spread(whole)}; its largest source is {name}), {spread(term)}{others}."
        )
    return said


def _theory_words(page: Page) -> list[str]:
    """Compare the paper's learner with its theorem."""
    cell = page.papers
    if cell is None or not np.isfinite(cell.theory).all():
        return []
    over = int((cell.regret("O1") > cell.theory).any(axis=1).sum())
    part = float(cell.regret("O1")[:, -1].mean() / cell.theory[-1])
    total = cell.rounds.size
    held = "stayed below it" if over == 0 else "went above it"
    where = "in the one round" if total == 1 else f"in all {total} rounds" if over == 0 else f"in {over} of {total} rounds"
    said = f"the regret of {cell.learner} to O1 is {percent(part)} of the theorem's bound"
    return [f"After {many(cell.episodes, 'episode')} {said}, and {held} {where}."]


def _caution(page: Page) -> list[str]:
    """Warn of few rounds."""
    return _few(min(cell.rounds.size for cell in page.cells))


def scaling_caution(summary: Summary) -> list[str]:
    """Warn of few rounds behind the exponents."""
    return _few(min(one.values.shape[1] for one in summary.scalings)) if summary.scalings else []


def _few(fewest: int) -> list[str]:
    if fewest == 1:
        return ["With one round there are no intervals and no comparisons."]
    if fewest < FEW:
        return [f"Only {fewest} rounds: the intervals assume that totals are nearly normal; more rounds would be safer."]
    return []


def coverage(summary: Summary) -> str:
    """Say how much of the study has been run."""
    counts = {summary.study.rounds_of(task) for task in summary.study.tasks}
    rounds = f"{'up to ' if len(counts) > 1 else ''}{many(max(counts), 'round')}"
    grid = f"{many(len(summary.study.tasks), 'task')}, {many(len(summary.study.learners), 'learner')}, {rounds}"
    if summary.finished == summary.expected:
        return f"{'The one run is' if summary.expected == 1 else f'All {summary.expected} runs are'} finished ({grid})."
    part = f"{summary.finished} of {summary.expected} runs {'is' if summary.finished == 1 else 'are'} finished"
    return f"{part} ({grid}): the rest may change what is said here."


def headline(summary: Summary) -> list[str]:
    """Three sentences: what was found, how sure it is, and how much of it has been run."""
    if summary.scalings:
        return [*_scaling_headline(summary), coverage(summary), *scaling_caution(summary)][:3]
    if len(summary.pages) == 1:
        page = summary.pages[0]
        theory = _theory_words(page) if summary.finished == summary.expected else []
        said = [
            *_best_words(page)[:1],
            *_regret_words(page),
            *theory,
            coverage(summary),
            *_privilege_words(page),
            *_caution(page),
        ]
        return said[:3]
    return [*_tasks_headline(summary), coverage(summary)]


def _tasks_headline(summary: Summary) -> list[str]:
    """Say who leads on how many tasks, and the range of its regret."""
    pages = [page for page in summary.pages if len(page.rivals) > 1]
    if not pages:
        only = summary.pages[0].rivals[0]
        who = "one learner" if only.privileged else "one learner without privileges"
        first = f"{many(len(summary.pages), 'task')} with {who} each: there is nothing to compare."
        return [first, *_extremes(summary, only.learner)]
    firsts = [page.rivals[0].learner for page in pages]
    leader = max(summary.learners, key=firsts.count)
    alone = sum(page.rivals[0].learner == leader and not any(page.level(cell) for cell in page.rivals[1:]) for page in pages)
    rivals = "learners" if all(cell.privileged for page in pages for cell in page.cells) else "learners without privileges"
    first = f"{leader} earned the most of the {rivals} on {firsts.count(leader)} of {many(len(pages), 'task')}"
    return [f"{first}; on {alone} of them it can be told apart from all others.", *_extremes(summary, leader)]


def _extremes(summary: Summary, leader: str) -> list[str]:
    """Say on which tasks the regret of a learner is smallest and largest."""
    cells = [cell for page in summary.pages for cell in page.cells if cell.learner == leader]
    found = sorted(((cell.relative("O1"), cell.task) for cell in cells), key=lambda one: one[0].mean)
    found = [one for one in found if math.isfinite(one[0].mean)]
    if not found:
        return []
    (low, calm), (high, hard) = found[0], found[-1]
    ends = f"{share(low)} on {calm} to {share(high)} on {hard}"
    sure = " (95% intervals in brackets)" if math.isfinite(low.half) or math.isfinite(high.half) else ""
    note = "; negative is more than any fixed policy can earn on average" if low.high < -ROUNDING else ""
    return [f"The regret of {leader} to O1 runs from {ends} of what that bound earns{sure}{note}."]


def scaling_words(one: Scaling, kind: str) -> str:
    """Say how one learner's loss changes with the size."""
    what, letter = ("regret to O2", "T") if kind == "growth" else ("loss to the fluid bound per arm and episode", "N")
    ends = f"{spread(one.means[0])} at {letter}={one.sizes[0]:.0f}, {spread(one.means[-1])} at {letter}={one.sizes[-1]:.0f}"
    if one.sizes.size < 2:
        return f"{one.group}: {one.learner} has results at one size only, so no growth can be fitted."
    if one.fit is None:
        why = "because its mean is not positive at every size"
        return f"{one.group}: no power fits the {what} of {one.learner}, {why} ({ends})."
    fitted = one.fit.exponent
    if not math.isfinite(fitted.half):
        why = "because there is one round only" if fitted.count < 2 else "because a mean is too near zero for its spread"
        return f"{one.group}: the {what} of {one.learner} has no exponent with an interval, {why} ({ends})."
    sure = f"{letter}^{fitted.mean:.2f} (95%: {fitted.low:.2f} to {fitted.high:.2f})"
    if fitted.low <= 0 <= fitted.high:
        return f"{one.group}: the {what} of {one.learner} neither clearly grows nor falls, {sure}: {ends}."
    return f"{one.group}: the {what} of {one.learner} {'grows' if fitted.mean > 0 else 'falls'} as {sure}: {ends}."


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
    ends = f"from {min(powers):.2f} to {max(powers):.2f}"
    over = f"all {len(own)} families" if len(powers) == len(own) else f"the {len(powers)} of {len(own)} families with one"
    return f"{said[:-1]}; its exponents run {ends} over {over}."


def _exponent(one: Scaling) -> float:
    return one.fit.exponent.mean if one.fit is not None else math.inf


def _list(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
