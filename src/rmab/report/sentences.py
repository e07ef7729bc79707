"""Findings of a study in plain sentences, with their uncertainty."""

import math
from collections.abc import Iterable

import numpy as np

from rmab.errors import many
from rmab.report.cells import ROUNDING, TERMS, Cell, Page
from rmab.report.numbers import percent, places_of, plain, spread
from rmab.report.scalings import Scaling
from rmab.report.statistics import Interval, Paired
from rmab.report.summary import Summary

O1 = "O1, the most that a fixed policy can earn on average"  # with its explanation
FEW = 10  # fewer rounds than this give a warning


def _sure(found: Interval, extra: str = "") -> str:
    """Return the bracket after a percentage, with its interval, if any, and the extra."""
    parts = [extra] if extra else []
    if math.isfinite(found.half):
        places = places_of(100 * found.half, 1)
        parts.insert(0, f"95%: {plain(100 * found.low, places)} to {plain(100 * found.high, places)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _size(found: Interval) -> str:
    places = places_of(100 * found.half, 1)
    return f"{plain(abs(100 * found.mean), places)}%"


def _compare(pair: Paired) -> str:
    """Compare the first of the pair with the second."""
    rounds = pair.difference.count
    if rounds < 2:
        return f"{pair.first} and {pair.second} cannot be compared: they have only one common round."
    counted = f"ahead in {pair.ahead} of {rounds} rounds"
    if not pair.is_significant:
        wide = f"the difference is {spread(pair.difference)}, p = {pair.adjusted:.3f} after Holm's correction"
        return f"{pair.first} and {pair.second} are not significantly different: {wide}; {pair.first} was {counted}."
    more = f"{'more' if pair.difference.mean > 0 else 'less'} than {pair.second}"
    if pair.relative is None:
        return f"{pair.first} earned {more}: the difference is {spread(pair.difference)}; {counted}."
    shown = pair.relative if pair.relative.mean > 0 else pair.relative.negative
    return f"{pair.first} earned {_size(shown)} {more}{_sure(shown, counted)}."


def page_words(page: Page) -> list[str]:
    """Describe the findings on one task."""
    sentences = [*best_words(page), *regret_words(page), *privilege_words(page), *_term_words(page), *theory_words(page)]
    adversary = [f"The adversary of {page.task} {page.stronger}."] if page.stronger else []
    return [*adversary, *sentences, *caution(page)]


def best_words(page: Page) -> list[str]:
    """Compare the best learner without privileges with the second best, and with the paper's."""
    if len(page.rivals) < 2:
        return []
    best, following = page.rivals[0], page.rivals[1]
    others = [following] + ([page.papers] if page.papers not in (None, best, following) else [])
    sentences = [_against(page, best, cell) for cell in others if cell is not None]
    level = [cell.learner for cell in page.rivals[2:] if page.level(cell)]
    if level:
        sentences.append(f"Nor is {best.learner} significantly different from {_list(level)}.")
    return sentences


def _against(page: Page, first: Cell, second: Cell) -> str:
    pair = page.pair(first, second)
    if pair is None:
        return f"{first.learner} and {second.learner} cannot be compared: they have no common round."
    return _compare(pair)


def regret_words(page: Page) -> list[str]:
    """Give the regret of the best learner against O1, and explain a negative one. Adaptive adversaries allow none."""
    if page.adaptive:
        return ["The adversary reacts to the learner, so each learner met different rewards: compare rewards, not regrets."]
    return [_lost(page.rivals[0], page.rivals[0].relative_to_random("O1"))]


def _lost(cell: Cell, found: Interval) -> str:
    if not math.isfinite(found.mean):
        where = "" if np.isnan(cell.relative_by_round("O1")).all() else " in some rounds"
        return f"The regret of {cell.learner} has no percentage:{where} a random policy earns as much as {O1}."
    if abs(found.mean) < ROUNDING and not found.half >= ROUNDING:  # one round has no half
        return f"{cell.learner} earned as much as {O1}."
    to_random = f"regret relative to the random policy is {percent(found.mean)}{_sure(found)}"
    if math.isfinite(found.half) and found.low <= 0 <= found.high:
        return f"{cell.learner} is not significantly different from {O1}: {to_random}."
    own, random = cell.relative("O1"), cell.relative_of_random("O1")
    much = f" {_size(own)}" if math.isfinite(own.mean) else ""
    beside = f"; a random policy earned {_size(random)} less" if math.isfinite(random.mean) else ""
    first = f"{cell.learner} earned{much} {'less' if found.mean > 0 else 'more'} than {O1}{beside}: {to_random}."
    why = " Negative regret is not an error: O1 holds for fixed policies, and a learner may change its policy."
    return first if found.mean > 0 else f"{first}{why}"


def privilege_words(page: Page) -> list[str]:
    """Name the privileged learners, and how far ahead of the best rival they are."""
    sentences = []
    for cell in page.cells:
        if not cell.privileged:
            continue
        rest = f" {_against(page, cell, page.rivals[0])}" if cell not in page.rivals else ""
        sentences.append(f"{cell.learner} is privileged (it {cell.privileged}), for comparison only.{rest}")
    return sentences


def _term_words(page: Page) -> list[str]:
    """Name the largest source of the regret against O1 of each learner that has sources."""
    sentences = []
    for cell in page.cells:
        if cell.terms is None:
            continue
        largest = max(range(4), key=lambda k, terms=cell.terms: abs(terms[k].mean))  # type: ignore[misc]
        term, whole = cell.terms[largest], cell.whole
        name = TERMS[largest].replace(": ", " (", 1)
        others = "; the other sources offset some of it" if abs(term.mean) > abs(whole.mean) else ""
        sentences.append(
            f"The regret of {cell.learner} against O1 is {spread(whole)}; "
            f"its largest source is {name}), {spread(term)}{others}."
        )
    return sentences


def theory_words(page: Page) -> list[str]:
    """Compare the paper's learner with its theorem."""
    cell = page.papers
    if cell is None or not np.isfinite(cell.theory).all():
        return []
    over = int((cell.regret("O1") > cell.theory).any(axis=1).sum())
    part = float(cell.regret("O1")[:, -1].mean() / cell.theory[-1])
    total = cell.rounds.size
    held = "stayed below it" if over == 0 else "exceeded it"
    where = "in the one round" if total == 1 else f"in all {total} rounds" if over == 0 else f"in {over} of {total} rounds"
    regret = f"the regret of {cell.learner} against O1 is {percent(part)} of the theorem's bound"
    return [f"After {many(cell.episodes, 'episode')} {regret}, and {held} {where}."]


def caution(page: Page) -> list[str]:
    """Warn about few rounds."""
    return _few(min(cell.rounds.size for cell in page.cells))


def scaling_caution(summary: Summary) -> list[str]:
    """Warn about few rounds behind the exponents."""
    return _few(min(one.values.shape[1] for one in summary.scalings)) if summary.scalings else []


def _few(fewest: int) -> list[str]:
    if fewest == 1:
        return ["With one round there are no intervals and no comparisons."]
    if fewest < FEW:
        return [f"Only {fewest} rounds: the intervals assume nearly normal totals; more rounds would be safer."]
    return []


def coverage(summary: Summary) -> str:
    """Describe how many runs of the study are finished."""
    counts = {summary.study.rounds_of(task) for task in summary.study.tasks}
    rounds = f"{'up to ' if len(counts) > 1 else ''}{many(max(counts), 'round')}"
    grid = f"{many(len(summary.study.tasks), 'task')}, {many(len(summary.study.learners), 'learner')}, {rounds}"
    if summary.finished == summary.expected:
        return f"{'The one run is' if summary.expected == 1 else f'All {summary.expected} runs are'} finished ({grid})."
    part = f"{summary.finished} of {summary.expected} runs {'is' if summary.finished == 1 else 'are'} finished"
    return f"{part} ({grid}): the findings may change with the rest."


def scaling_words(one: Scaling, kind: str) -> str:
    """Describe how one learner's loss changes with the size."""
    what, letter = ("regret against O2", "T") if kind == "growth" else ("loss to the fluid bound per arm and episode", "N")
    ends = f"{spread(one.means[0])} at {letter}={one.sizes[0]:.0f}, {spread(one.means[-1])} at {letter}={one.sizes[-1]:.0f}"
    if one.sizes.size < 2:
        return f"{one.group}: {one.learner} has results at only one size, so no exponent can be fitted."
    if one.fit is None:
        why = "because its mean is not positive at every size"
        return f"{one.group}: no power law fits the {what} of {one.learner}, {why} ({ends})."
    fitted = one.fit.exponent
    if not math.isfinite(fitted.half):
        why = "because there is only one round" if fitted.count < 2 else "because a mean is too near zero for its spread"
        return f"{one.group}: the {what} of {one.learner} has no exponent with an interval, {why} ({ends})."
    ends += _beside_theory(one)
    sure = f"{letter}^{fitted.mean:z.2f} (95%: {fitted.low:z.2f} to {fitted.high:z.2f})"
    if fitted.low <= 0 <= fitted.high:
        return f"{one.group}: the {what} of {one.learner} does not significantly grow or fall, {sure}: {ends}."
    return f"{one.group}: the {what} of {one.learner} {'grows' if fitted.mean > 0 else 'falls'} as {sure}: {ends}."


def _beside_theory(one: Scaling) -> str:
    """Describe from which size on the mean regret exceeds the theorem's bound."""
    if one.theory is None or not np.isfinite(one.theory).all():
        return ""
    above = [found.mean > bound for found, bound in zip(one.means, one.theory, strict=True)]
    if not any(above):
        return f"; the theorem's bound is {one.theory[-1]:,.0f} there"
    return f"; it exceeds the theorem's bound at T={one.sizes[above.index(True)]:.0f} ({one.theory[above.index(True)]:,.0f})"


def _list(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
