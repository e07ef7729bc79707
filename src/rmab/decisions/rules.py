"""Constraints of a list, and custom rules.

A rule is a function that gets the `Draft`, the list as it stands, and returns the numbers of the arms that it gives a place.
Contradicting rules raise an error before any of them is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.spending import ROUNDING
from rmab.errors import ModelError
from rmab.logs.findings import quote

NAME, FLOOR, INDEX, LOT = BUILT_IN = ("name", "floor", "index", "lot")  # the rule that put an arm on the list


@dataclass(frozen=True, eq=False)
class Rules:
    """Constraints of a list.

    must, must_not (N,): who is on it, or not on it. floor: longest wait in periods, 0 for none. random: places to
    randomise. custom: further rules, called after the floor and before the index. Where arms have
    costs, the budget is an amount, and `share` is the part of the places of each cost that changes hands.
    """

    budget: float
    must: BoolArray
    must_not: BoolArray
    floor: int = 0
    random: int = 0
    caps: tuple[Cap, ...] = ()
    custom: tuple[Rule, ...] = ()
    share: float = 0.0


@dataclass(frozen=True, eq=False)
class Draft:
    """The list as it stands when a rule is called.

    Attributes
    ----------
    candidates : Candidates
        The arms.
    rules : Rules
        Constraints of the list.
    order : (N,) int array
        The arms by rank, the best first.
    draws : (N,) float array
        A random number in [0, 1) for each arm and this rule, unchanged when others join.
    listed : (N,) bool array
        Who has a place already.
    places : int
        Number of places left for this rule.
    """

    candidates: Candidates
    rules: Rules
    order: IntArray
    draws: FloatArray
    listed: BoolArray
    places: int

    @property
    def eligible(self) -> BoolArray:
        """(N,) who may get a place: has none yet and is not excluded; caps are not checked."""
        return ~self.listed & ~self.rules.must_not

    def room(self, taken: BoolArray) -> list[int]:
        """Return how many more places there are under each cap, after some more arms (N,) are taken."""
        return [cap.most - int((self.listed | taken)[cap.members].sum()) for cap in self.rules.caps]

    def take(self, line: IntArray, most: int, taken: BoolArray | None = None) -> IntArray:
        """Return the first `most` of a line of arms that may get a place under the caps, besides those taken (N,)."""
        mine = np.zeros(self.listed.size, dtype=bool) if taken is None else taken
        free, room = self.eligible & ~mine, self.room(mine)
        found: list[int] = []
        for n in line:
            if len(found) >= most:
                break
            inside = [k for k, cap in enumerate(self.rules.caps) if cap.members[n]]
            if free[n] and all(room[k] > 0 for k in inside):
                found.append(n)
                for k in inside:
                    room[k] -= 1
        return np.array(found, dtype=np.int64)


Rule = Callable[[Draft], Any]


def name_of(rule: Rule) -> str:
    """Return the name of a custom rule: its attribute `name`, or the name of the function."""
    return str(getattr(rule, "name", None) or getattr(rule, "__name__", type(rule).__name__))


def ask_rule(rule: Rule, draft: Draft) -> IntArray:
    """Return the arms of a custom rule; ModelError if its result is not allowed."""
    count, name = draft.listed.size, f"rule {quote(name_of(rule))}"
    try:
        arms = np.asarray(rule(draft))
    except Exception as error:  # custom code may raise anything
        raise ModelError(f"{name}: raised {type(error).__name__}: {error}", code="rule-failed") from error
    if arms.dtype.kind == "b" and arms.shape == (count,):
        arms = np.flatnonzero(arms)
    if arms.ndim != 1 or (arms.size and arms.dtype.kind not in "iu") or np.unique(arms).size < arms.size:
        raise ModelError(f"{name}: must return distinct numbers of arms, or a bool for each, got {arms!r:.60}")
    for n in arms:
        if not 0 <= n < count or not draft.eligible[n]:
            who = quote(draft.candidates.roster.ids[n]) if 0 <= n < count else f"number {n}"
            raise ModelError(f"{name}: the arm {who} cannot get a place; choose from draft.eligible")
    mine = np.zeros(count, dtype=bool)
    mine[arms.astype(np.int64)] = True
    if arms.size > draft.places:
        raise ModelError(f"{name}: gives {arms.size} places, but only {draft.places} are left (draft.places)")
    for cap, left in zip(draft.rules.caps, draft.room(mine), strict=True):
        if left < 0:
            raise ModelError(f"{name}: {cap.label} would get more than its cap of {cap.most}; draft.take respects caps")
    return np.flatnonzero(mine)


def check_rules(rules: Rules, count: int, cost: FloatArray | None = None) -> list[str]:
    """Return the names of all rules; ModelError if they contradict each other, by arms with these costs (N,)."""
    names = [NAME, FLOOR, *(name_of(one) for one in rules.custom), INDEX, LOT]
    if len(set(names)) < len(names):
        raise ModelError(f"rules: duplicate name, or the name of a built-in rule: {', '.join(names)}")
    both = int((rules.must & rules.must_not).sum())
    if both:
        raise ModelError(f"must and must_not have {both} arms in common")
    forced, open_ = int(rules.must.sum()), count - int(rules.must_not.sum())
    if cost is not None:
        _check_costs(rules, cost)
    elif forced + rules.random > rules.budget:
        drawn = f" and {rules.random} places are drawn at random" if rules.random else ""
        raise ModelError(f"must names {forced} arms{drawn}, more than the budget of {rules.budget:g}")
    for cap in rules.caps:
        named = int((rules.must & cap.members).sum())
        if named > cap.most:
            raise ModelError(f"must names {named} arms of {cap.label}, whose cap is {cap.most}")
    if not rules.floor:
        return names
    places = int(rules.budget) - rules.random
    if open_ > rules.floor * places:
        least = -(-open_ // rules.floor) + rules.random
        raise ModelError(
            f"floor: {open_:,} arms cannot each have a turn every {rules.floor} periods with {places} places a period; "
            f"use a budget of {least}, or a floor of {-(-open_ // places) if places else 'more'} periods"
        )
    for cap in rules.caps:
        members = int((cap.members & ~rules.must_not).sum())
        if members > rules.floor * cap.most:
            raise ModelError(
                f"floor: {members:,} arms of {cap.label} need {-(-members // rules.floor)} places a period to have a "
                f"turn every {rules.floor}; their cap is {cap.most}"
            )
    return names


def _check_costs(rules: Rules, cost: FloatArray) -> None:
    """Raise ModelError where rules cannot be met together under costs."""
    if rules.floor or rules.custom:
        what = "floor" if rules.floor else "rules"
        raise ModelError(f"{what} needs equal costs; name arms that are due with must, or leave out cost", field=what)
    if rules.caps and rules.share:
        raise ModelError(
            "random_share and caps cannot be combined with different costs; leave out one of them", field="caps"
        )
    if (spent := float(cost[rules.must].sum())) > rules.budget * (1.0 + ROUNDING):
        raise ModelError(f"must names arms that cost {spent:g}, more than the budget of {rules.budget:g}", field="must")
