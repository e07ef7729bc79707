"""Who gets the places of a list, group by group; and where one takes nearly all, what a fairer list would cost.

The fairer list gives every group at most its part of the places, by how many arms it has. What the list brings is a
linear programme, and the fairer one has a constraint more: its price, the dual variable, is what the group's last lost
place was worth more than the place that took its stead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.decisions.selection import LOT, NOT, Cap, Choice, Wish, chosen
from rmab.estimation.fit import Fit

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


def fairness_of(fit: Fit, index: FloatArray, order: IntArray, choice: Choice, wish: Wish) -> tuple[Fairness, ...]:
    """Return the groups that take nearly all places of a list, one per factor at most."""
    found = []
    active = choice.why != NOT
    used = int(active.sum())
    for f, (name, values) in enumerate(fit.log.factors.items()):
        level = fit.log.factor_of[fit.present, f]
        places, sizes = np.bincount(level[active], minlength=len(values)), np.bincount(level, minlength=len(values))
        top = int(places.argmax())
        part = float(sizes[top] / level.size)
        if used < LEAST or (sizes > 0).sum() < 2 or places[top] < NEARLY_ALL * used or places[top] < TIMES * part * used:
            continue
        caps = tuple(
            Cap(f"{name}={value}", level == k, int(np.ceil(wish.budget * sizes[k] / level.size)))
            for k, value in enumerate(values)
        )
        fairer = _fairer(index, order, active, wish, caps)
        if fairer is None:
            continue
        total, fair = (float(index[one].sum()) for one in (active & (choice.why != LOT), fairer.why != NOT))
        label = f"{name}={values[top]}"
        fair_places = int((fairer.why != NOT)[level == top].sum())
        price = fairer.prices[label]
        found.append(Fairness(label, int(places[top]), used, part, fair_places, max(total - fair, 0.0), total, price))
    return tuple(found)


def _fairer(index: FloatArray, order: IntArray, active: BoolArray, wish: Wish, caps: tuple[Cap, ...]) -> Choice | None:
    """Choose again with the caps of fair shares in place of others; None where arms by name do not fit them."""
    if any((wish.must & cap.members).sum() > cap.most for cap in caps):
        return None
    places = int(active.sum()) - wish.lots
    again = replace(wish, caps=caps, every=0, lots=0, budget=max(places, int(wish.must.sum())))
    still = np.zeros(index.size)
    return chosen(index, order, still.astype(np.int64), still, again)


def warnings_of(fit: Fit, found: tuple[Fairness, ...]) -> tuple[str, ...]:
    """Return one sentence for each group that takes nearly all."""
    word, unit = fit.log.word, fit.pay.unit
    told = []
    for one in found:
        share = 100 * one.cost / one.total if one.total > 0 else 0.0
        told.append(
            f"{one.group} takes {one.places} of {one.of} {word}s and has {one.part:.0%} of the programme. By its part it "
            f"would have {one.fair}, and the list would bring {one.cost:.3g} fewer {unit} ({share:.0f}% less). The price of "
            f"that fairness: the last {word} that moves to others costs {one.price:.3g} {unit}"
        )
    return tuple(told)
