"""What a reader of a list should know: places that stay empty, ties, floors that are late, prices of caps."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.words import many
from rmab.decisions.selection import INDEX, NOT, TIE, Choice, Wish
from rmab.estimation.fit import Fit
from rmab.logs.findings import list_some, quote


def notes_of(fit: Fit, index: FloatArray, choice: Choice, wish: Wish, *, asked: bool) -> list[str]:
    """Return what a reader of the list should know."""
    unit, told = fit.pay.unit, []
    here = fit.situation.belief[fit.present].sum(axis=0) > 0
    blind = [quote(fit.log.state_names[s]) for s in np.flatnonzero(fit.rows.unseen.any(axis=1) & here)]
    used = int((choice.why != NOT).sum())
    if used < wish.budget:
        helped = bool((index[choice.why == NOT] > TIE * max(float(np.abs(index).max()), 1e-300)).any())
        sure = "known" if blind else "expected"
        why = "caps and must_not leave no more" if helped else f"{fit.log.a_word} is not {sure} to help anybody else"
        told.append(f"{used} of {wish.budget} places are used: {why}")
    if blind:
        told.append(f"what {fit.log.a_word} changes in {list_some(blind)} was never seen, and is taken to be nothing")
    if asked and not wish.lots:
        told.append(f"the random share of {wish.budget} places is less than half a place: nobody is drawn")
    told += _tied(index, choice, wish)
    if choice.overdue:
        weeks = -(-choice.overdue // max(wish.budget - wish.lots, 1))
        told.append(
            f"floor: {choice.overdue:,} more are overdue; with this budget, everybody's turn comes within "
            f"{many(weeks, fit.log.periods.unit)} from now"
        )
    for label, price in choice.prices.items():
        if price > 0:
            told.append(f"cap of {label}: one more place there would bring {price:.3g} more {unit}")
    return told


def _tied(index: FloatArray, choice: Choice, wish: Wish) -> list[str]:
    """Say so where the last places went to some of several arms that are worth the same."""
    mine = choice.why == INDEX
    if not mine.any():
        return []
    near = TIE * max(float(np.abs(index[np.isfinite(index)]).max()), 1e-300)
    alike = (np.abs(index - index[mine].min()) <= near) & ~wish.barred & np.isin(choice.why, (NOT, INDEX))
    got = int((alike & mine).sum())
    if got == alike.sum() or wish.caps:
        return []
    return [f"the last {many(got, 'place')} went to some of {int(alike.sum()):,} alike: who has waited longest, then by lot"]
