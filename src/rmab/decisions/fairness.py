"""Who gets the places of a list, group by group; and the cost of a fairer list if one group gets nearly all.

The fairer list gives every group at most its share of the places, in proportion to its arms. The value of a list is a
linear programme, and the fairer one has one more constraint. Its price, the dual variable, is the difference between
the last place that the group loses and the place that replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.filling import Choice, fill_places
from rmab.decisions.randomness import Randomness
from rmab.decisions.rules import LOT, Rules
from rmab.logs.words import Words

NEARLY_ALL, TIMES = 0.8, 1.25  # share of the places that is nearly all, if it is this many times the share of the arms
LEAST = 5  # with fewer places, no warning
SMALL = 0.005  # of the value of a list: a cost below it is none


@dataclass(frozen=True)
class Fairness:
    """A group that gets nearly all places.

    Attributes
    ----------
    group : str
        Which: 'district=north'.
    places, of : int
        Places that it gets, and places in all.
    part : float
        Its share of all arms.
    fair : int
        Places that it would get by its share.
    cost : float
        Value that the fairer list loses, in the unit of the rewards, over the horizon.
    total : float
        Value of the list.
    price : float
        Dual price of its fair share: how much more one place is worth in this group than elsewhere.
    """

    group: str
    places: int
    of: int
    part: float
    fair: int
    cost: float
    total: float
    price: float


def find_unfairness(candidates: Candidates, choice: Choice, rules: Rules, source: Randomness) -> tuple[Fairness, ...]:
    """Return the groups that get nearly all places of a list, one per column at most; source as in `fill_places`."""
    found, roster = [], candidates.roster
    worth = candidates.index if candidates.cost is None else candidates.index * candidates.cost
    used = int(choice.listed.sum())
    shared = rules.budget if candidates.cost is None else used
    for f, (name, values) in enumerate(roster.factors.items()):
        level = roster.factor_of[:, f]
        places, sizes = (np.bincount(one, minlength=len(values)) for one in (level[choice.listed], level))
        top = int(places.argmax())
        part = float(sizes[top] / level.size)
        if used < LEAST or (sizes > 0).sum() < 2 or places[top] < NEARLY_ALL * used or places[top] < TIMES * part * used:
            continue
        caps = tuple(
            Cap(f"{name}={value}", level == k, int(np.ceil(shared * sizes[k] / level.size)))
            for k, value in enumerate(values)
        )
        if any((rules.must & cap.members).sum() > cap.most for cap in caps):
            continue  # arms in `must` exceed the fair shares
        drawn = choice.rule == LOT
        budget = float(max(used - rules.random, int(rules.must.sum())))
        if candidates.cost is not None:
            budget = rules.budget - float(candidates.cost[drawn].sum())
        fairer = fill_places(candidates, Rules(budget, rules.must, rules.must_not, caps=caps), source)
        total, fair = (float(worth[one].sum()) for one in (choice.listed & ~drawn, fairer.listed))
        label = f"{name}={values[top]}"
        counts = (int(places[top]), used, part, int(fairer.listed[level == top].sum()))
        found.append(Fairness(label, *counts, max(total - fair, 0.0), total, fairer.prices[label]))
    return tuple(found)


def write_warnings(words: Words, found: tuple[Fairness, ...], *, priced: bool = True) -> tuple[str, ...]:
    """Return one sentence for each group that gets nearly all places; with the cost of a fairer list, if it is priced."""
    warnings = []
    for one in found:
        share = one.cost / one.total if one.total > 0 else 0.0
        cost = f", and the list would bring {one.cost:.3g} fewer {words.unit} ({share:.0%} less)" if share >= SMALL else ""
        warnings.append(
            f"{one.group} gets {one.places} of {one.of} {words.action}s, with {one.part:.0%} of the arms. "
            f"In proportion, it would get {one.fair}{(cost or ', at no cost') if priced else ''}"
        )
    return tuple(warnings)
