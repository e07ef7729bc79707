"""What a reader of a list should know: places that stay empty, ties, floors that are late, prices of caps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rmab.decisions.candidates import Candidates
from rmab.decisions.filling import Choice
from rmab.decisions.rules import INDEX, LOT, Rules
from rmab.errors import many
from rmab.logs.findings import list_some, quote


def write_notes(
    candidates: Candidates,
    choice: Choice,
    rules: Rules,
    *,
    random_share: float,
    left: Sequence[str] = (),
    priced: bool = True,
    before: str = "",
) -> list[str]:
    """Return what a reader of the list should know.

    random_share: the fraction of the places to randomise. left: ids in must_not that have left. priced:
    whether places have a price in units of the reward. before: the period of the last list, if it was given.
    """
    words, notes = candidates.words, [_why(candidates, before)] if candidates.why else []
    if left:
        notes.append(f"must_not: {list_some([quote(one) for one in left], 3)} have left anyway (gone_after)")
    if done := [one for one in candidates.done if not rules.must[candidates.roster.ids.index(one)]]:
        who = list_some([quote(one) for one in done], 3)
        notes.append(f"{who} had {words.an_action} in {candidates.period} already: not on the list, and use no place")
    unseen = [quote(one) for one in candidates.unseen]
    notes += _usage(candidates, choice, rules)
    if unseen:
        notes.append(f"the log has no {words.action} in {list_some(unseen)}: its effect there is assumed to be zero")
    if choice.left_out.any() or rules.random:
        drawn, out = int((choice.rule == LOT).sum()), int(choice.left_out.sum())
        chosen = int((choice.rule == INDEX).sum()) + out
        most = " (at most half are)" if out == chosen // 2 < rules.random else ""
        notes.append(
            f"left out at random: {out} of those chosen{most}; drawn from the others: {drawn}. To "
            "measure what the list brings, keep a file of it with all arms (--all)"
        )
    elif random_share > 0:
        why = f"the random share of {rules.budget} places is less than half a place"
        if candidates.cost is not None:
            why = "it takes two places and another arm of the same cost, and a random share of half a place"
        notes.append(f"nobody is drawn: {why}")
    if rules.custom:
        notes.append(f"chances are given the choice of {'the floor and ' if rules.floor else ''}custom rules")
    notes += _ties(candidates, choice, rules)
    if choice.overdue:
        periods = many(-(-choice.overdue // max(int(rules.budget) - rules.random, 1)), words.period)
        notes.append(
            f"floor: {choice.overdue:,} more are overdue; with this budget, everybody's turn comes within {periods} from now"
        )
    for label, price in choice.prices.items():
        if price > 0 and priced:
            notes.append(f"cap of {label}: one more place there would bring {price:.3g} more {words.unit}")
    return notes


def _why(candidates: Candidates, before: str) -> str:
    """Return why the list is for its period; and how to choose the one before, unless its list is there."""
    one = candidates.unmade
    hint = f"; if the list of {one} is not made yet, use period='{one}' (--for {one})" if one and one != before else ""
    return f"{candidates.why}{hint}"


def _usage(candidates: Candidates, choice: Choice, rules: Rules) -> list[str]:
    """Return how much of the budget is used, and why no more."""
    words, used = candidates.words, int(choice.listed.sum())
    others = ~choice.listed & ~choice.left_out & candidates.helped
    why = "caps and must_not leave no more"
    if not others.any():
        why = f"{words.an_action} is not {'known' if candidates.unseen else 'expected'} to help anybody else"
    if candidates.cost is None:
        return [f"{used} of {rules.budget} places are used: {why}"] if used < rules.budget else []
    assert choice.unfit is not None
    if (choice.unfit | (others & ~rules.must_not & (candidates.cost > choice.left))).any():
        why = "no more fits"
    spent = float(candidates.cost[choice.listed].sum())
    return [f"{many(used, words.action)} cost {spent:g} of {rules.budget:g}; {why}; the index is per unit of cost"]


def _ties(candidates: Candidates, choice: Choice, rules: Rules) -> list[str]:
    """Return a note if the last places went to some of several tied arms."""
    mine = choice.rule == INDEX
    if not mine.any() or rules.caps:
        return []
    if candidates.cost is None:
        alike = candidates.level == candidates.level[mine].min()
    else:
        alike = (choice.probability > 0) & (choice.probability < 1) & (rules.share == 0)
    alike &= ~rules.must_not & ~choice.left_out & np.isin(choice.rule, ("", INDEX))
    got = int((alike & mine).sum())
    if got == alike.sum():
        return []
    tied = f"{int(alike.sum()):,} were tied for {got} of the {many(int(choice.listed.sum()), 'place')}"
    return [f"{tied}: those who have waited longest came first, then a random draw decided"]
