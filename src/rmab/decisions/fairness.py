"""Who gets the places of a list, group by group; and where one takes nearly all, what a fairer list would cost.

The fairer list gives every group at most its part of the places, by how many arms it has. What the list brings is a
linear programme, and the fairer one has a constraint more: its price, the dual variable, is what the group's last lost
place was worth more than the place that took its stead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.filling import Choice, Randomness, fill_places
from rmab.decisions.rules import LOT, Rules
from rmab.logs.words import Words

NEARLY_ALL, TIMES = 0.8, 1.25  # part of the places that is nearly all, if it is so many times the part of the arms
LEAST = 5  # places below which nobody would wonder


@dataclass(frozen=True)
class Fairness:
    """A group that takes nearly all places.

    Attributes
    ----------
    group : str
        Which: 'district=north'.
    places, of : int
        How many it gets, and how many there are.
    part : float
        Its part of all arms.
    fair : int
        How many it would get by its part.
    cost : float
        What the fairer list brings less, in the unit of the rewards, over the horizon.
    total : float
        What the list brings.
    price : float
        What one more place for the group is worth beyond what another does with it: the dual price of its fair share.
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
    """Return the groups that take nearly all places of a list, one per column at most; source as in `fill_places`."""
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
            continue  # arms by name do not fit fair shares
        budget = max(used - rules.random, int(rules.must.sum())) if candidates.cost is None else rules.budget
        fairer = fill_places(candidates, Rules(budget, rules.must, rules.must_not, caps=caps), source)
        total, fair = (float(worth[one].sum()) for one in (choice.listed & (choice.rule != LOT), fairer.listed))
        label = f"{name}={values[top]}"
        counts = (int(places[top]), used, part, int(fairer.listed[level == top].sum()))
        found.append(Fairness(label, *counts, max(total - fair, 0.0), total, fairer.prices[label]))
    return tuple(found)


def write_warnings(words: Words, found: tuple[Fairness, ...]) -> tuple[str, ...]:
    """Return one sentence for each group that takes nearly all."""
    warnings = []
    for one in found:
        share = 100 * one.cost / one.total if one.total > 0 else 0.0
        moved = f"the last {words.action} that moves to others costs {one.price:.3g} {words.unit}"
        warnings.append(
            f"{one.group} takes {one.places} of {one.of} {words.action}s and has {one.part:.0%} of the programme. By its "
            f"part it would have {one.fair}, and the list would bring {one.cost:.3g} fewer {words.unit} ({share:.0f}% "
            f"less). The price of that fairness: {moved}"
        )
    return tuple(warnings)
