"""What a study shows, in plain sentences made from its numbers; they say what remains uncertain."""

import math
from collections.abc import Iterable

import numpy as np

from rmab.common import many
from rmab.report.cells import ROUNDING, TERMS, Cell, Page
from rmab.report.numbers import percent, places_of, plain, spread
from rmab.report.scalings import Scaling
from rmab.report.statistics import Interval, Paired
from rmab.report.summary import Summary

O1 = "O1, the most that a policy which never changes can earn on average"  # as it is called where it first appears
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
    said = [*best_words(page), *regret_words(page), *privilege_words(page), *_term_words(page), *theory_words(page)]
    foe = [f"The adversary of {page.task} {page.stronger}."] if page.stronger else []
    return [*foe, *said, *caution(page)]


def best_words(page: Page) -> list[str]:
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


def regret_words(page: Page) -> list[str]:
    """Say what the best learner lost to O1; explain a negative loss. Regrets of different rewards are not compared."""
    if page.adaptive:
        return ["The adversary answers to play, so that every learner met rewards of its own: compare rewards, not regrets."]
    return [_lost(page.rivals[0], page.rivals[0].of_chance("O1"))]


def _lost(cell: Cell, found: Interval) -> str:
    bound = O1
    if not math.isfinite(found.mean):
        where = "" if np.isnan(cell.parts_of_chance("O1")).all() else " in some rounds"
        return f"The regret of {cell.learner} to O1 has no percentage: blind decisions lose nothing{where} to {bound}."
    if abs(found.mean) < ROUNDING and not found.half >= ROUNDING:  # one round has no half
        return f"{cell.learner} earned as much as {bound}."
    if math.isfinite(found.half) and found.low <= 0 <= found.high:
        return f"The regret of {cell.learner} to {bound}, may be zero: {percent(found.mean)} of chance's{_sure(found)}."
    if found.mean > 0:
        return f"{cell.learner} lost {_size(found)} of what blind decisions lose to {bound}{_sure(found)}."
    gained = found.negative
    why = (
        "negative regret is no error here, because the bound is for policies that never change and a learner changes its own"
    )
    beyond = f"by {_size(gained)} of what blind decisions lose to it{_sure(gained)}"
    return f"{cell.learner} earned more than {bound}, {beyond}; {why}."


def privilege_words(page: Page) -> list[str]:
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
        term, whole = cell.terms[largest], cell.whole
        name = TERMS[largest].replace(": ", " (", 1)
        others = "; the other sources cancel a part of it" if abs(term.mean) > abs(whole.mean) else ""
        said.append(
            f"The regret of {cell.learner} to O1 is {spread(whole)}; its largest source is {name}), {spread(term)}{others}."
        )
    return said


def theory_words(page: Page) -> list[str]:
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


def caution(page: Page) -> list[str]:
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
    ends += _beside_theory(one)
    sure = f"{letter}^{fitted.mean:z.2f} (95%: {fitted.low:z.2f} to {fitted.high:z.2f})"
    if fitted.low <= 0 <= fitted.high:
        return f"{one.group}: the {what} of {one.learner} neither clearly grows nor falls, {sure}: {ends}."
    return f"{one.group}: the {what} of {one.learner} {'grows' if fitted.mean > 0 else 'falls'} as {sure}: {ends}."


def _beside_theory(one: Scaling) -> str:
    """Say from which size on the mean regret is above the theorem's bound."""
    if one.theory is None or not np.isfinite(one.theory).all():
        return ""
    above = [found.mean > bound for found, bound in zip(one.means, one.theory, strict=True)]
    if not any(above):
        return f"; the theorem's bound is {one.theory[-1]:,.0f} there"
    return (
        f"; it is above the theorem's bound at T={one.sizes[above.index(True)]:.0f} ({one.theory[above.index(True)]:,.0f})"
    )


def _list(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
