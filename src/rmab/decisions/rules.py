"""Who gets the places of a list. A rule is asked for arms in turn: by name, by a floor, custom rules, by index, at random.

A rule is a function that gets the `Draft`, the list as it stands, and returns the numbers of the arms that it gives a place.
Rules that cannot be met together are refused in one line before any of them is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap, select_best
from rmab.errors import ModelError
from rmab.logs.findings import quote

NAME, FLOOR, INDEX, LOT = BUILT_IN = ("name", "floor", "index", "lot")  # the rule that put an arm on the list


@dataclass(frozen=True, eq=False)
class Rules:
    """What a list has to respect.

    must, must_not (N,): who is on it, or not on it. floor: nobody waits longer, 0 for none. random: places that are drawn at
    random. custom: more rules, which are asked after the floor and before the index.
    """

    budget: int
    must: BoolArray
    must_not: BoolArray
    floor: int = 0
    random: int = 0
    caps: tuple[Cap, ...] = ()
    custom: tuple[Rule, ...] = ()


@dataclass(frozen=True, eq=False)
class Draft:
    """The list as it stands when a rule is asked.

    Attributes
    ----------
    candidates : Candidates
        The arms.
    rules : Rules
        What the list has to respect.
    order : (N,) int array
        The arms by rank, the best first.
    draws : (N,) float array
        A random number in [0, 1) for each arm, the same whoever joins.
    listed : (N,) bool array
        Who has a place already.
    places : int
        How many places are left for this rule.
    """

    candidates: Candidates
    rules: Rules
    order: IntArray
    draws: FloatArray
    listed: BoolArray
    places: int

    @property
    def eligible(self) -> BoolArray:
        """(N,) who may get a place: has none yet, and is not excluded; caps come on top."""
        return ~self.listed & ~self.rules.must_not

    def room(self, taken: BoolArray) -> list[int]:
        """Return how many more places there are under each cap, once some arms (N,) are taken, too."""
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


@dataclass(frozen=True, eq=False)
class Choice:
    """Who gets a place.

    rule (N,): the name of the rule that gave it, empty for none. probability (N,) that an arm had, NaN where caps decide it.
    prices: what one more place under each cap is worth. overdue: arms that a floor should have reached, but could not.
    """

    rule: Any
    probability: FloatArray
    prices: dict[str, float] = field(default_factory=dict)
    overdue: int = 0

    @property
    def listed(self) -> BoolArray:
        """(N,) who has a place."""
        return np.asarray(self.rule != "")


def draw_numbers(ids: tuple[str, ...], seed: int, period: str) -> FloatArray:
    """(N,) a number in [0, 1) for every arm, by a hash of seed, period and id: who joins does not change the others'."""
    salt = f"{seed}/{period}/".encode()
    digests = [hashlib.blake2b(salt + one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.float64) / 2.0**64


def fill_places(candidates: Candidates, rules: Rules, draws: FloatArray) -> Choice:
    """Ask the rules in turn, and return who gets a place; draws (N,): random numbers in [0, 1)."""
    _check(rules, len(candidates.roster.ids))
    order = candidates.rank(draws)
    names = [NAME, FLOOR, *(name_of(one) for one in rules.custom), INDEX, LOT]
    if len(set(names)) < len(names):
        raise ModelError(f"rules: two are called the same, or as one that is built in: {', '.join(names)}")
    rule = np.full(order.size, "", dtype=f"<U{max(map(len, names))}")

    def draft(reserved: int) -> Draft:
        listed = rule != ""
        return Draft(candidates, rules, order, draws, listed, max(rules.budget - reserved - int(listed.sum()), 0))

    rule[rules.must] = NAME
    rule[by_floor(draft(rules.random))] = FLOOR
    for one in rules.custom:
        rule[_ask(one, draft(rules.random))] = name_of(one)
    best, prices = by_index(draft(rules.random))
    rule[best] = INDEX
    last = draft(0)
    rule[by_draw(last)] = LOT
    late = (candidates.waited >= rules.floor) & (rule == "") & ~rules.must_not
    return Choice(rule, _probability(last), prices, int(late.sum()) if rules.floor else 0)


def by_floor(draft: Draft) -> IntArray:
    """Give places to arms that are due, the longest waiting first, and to as many more as later periods could not serve.

    Of the arms that are due within d more periods, all beyond d budgets must have their turn now.
    """
    rules, waited = draft.rules, draft.candidates.waited
    taken = np.zeros(waited.size, dtype=bool)
    if not rules.floor:
        return np.flatnonzero(taken)
    slack = np.where(draft.eligible, np.maximum(rules.floor - waited, 0), rules.floor + 1)
    line = np.lexsort((draft.draws, -waited, slack))  # the earliest due first
    line = line[draft.eligible[line]]
    everybody = (np.ones(waited.size, dtype=bool), rules.budget - rules.random)
    for members, most in [*((cap.members, cap.most) for cap in rules.caps), everybody]:
        need = _needed(slack[members & draft.eligible], most) - int(taken[members].sum())
        taken[draft.take(line[members[line]], min(need, draft.places - int(taken.sum())), taken)] = True
    return np.flatnonzero(taken)


def by_index(draft: Draft) -> tuple[IntArray, dict[str, float]]:
    """Give places to the highest indices under the caps; also return what one more place under each cap is worth."""
    candidates = draft.candidates
    line = draft.order[(draft.eligible & candidates.helped)[draft.order]]
    return select_best(candidates.index, line, draft.places, draft.rules.caps, draft.room(draft.listed))


def by_draw(draft: Draft) -> IntArray:
    """Give the places that are left to chance to those with the lowest random numbers."""
    pool = np.flatnonzero(draft.eligible)
    return draft.take(pool[np.argsort(draft.draws[pool], kind="stable")], draft.rules.random)


def _probability(draft: Draft) -> FloatArray:
    """(N,) the probability that every arm had, before places are drawn at random."""
    chance, pool, places = np.where(draft.listed, 1.0, 0.0), draft.eligible, draft.rules.random
    if places:
        capped = any(cap.members[pool].any() for cap in draft.rules.caps)
        chance[pool] = np.nan if capped else min(places / max(int(pool.sum()), 1), 1.0)
    return chance


def name_of(rule: Rule) -> str:
    """Return what a custom rule is called: its attribute `name`, or the name of the function."""
    return str(getattr(rule, "name", None) or getattr(rule, "__name__", type(rule).__name__))


def _ask(rule: Rule, draft: Draft) -> IntArray:
    """Return the arms of a custom rule; ModelError where it gives places that it has not."""
    count, name = draft.listed.size, f"rule {quote(name_of(rule))}"
    arms = np.asarray(rule(draft))
    if arms.dtype.kind == "b" and arms.shape == (count,):
        arms = np.flatnonzero(arms)
    if arms.ndim != 1 or (arms.size and arms.dtype.kind not in "iu") or np.unique(arms).size < arms.size:
        raise ModelError(f"{name}: it must return different numbers of arms, or a bool for each, got {arms!r:.60}")
    for n in arms:
        if not 0 <= n < count or not draft.eligible[n]:
            who = quote(draft.candidates.roster.ids[n]) if 0 <= n < count else f"number {n}"
            raise ModelError(f"{name}: the arm {who} cannot get a place; choose from draft.eligible")
    mine = np.zeros(count, dtype=bool)
    mine[arms.astype(np.int64)] = True
    if arms.size > draft.places:
        raise ModelError(f"{name}: it gives {arms.size} places, and {draft.places} are left (draft.places)")
    for cap, left in zip(draft.rules.caps, draft.room(mine), strict=True):
        if left < 0:
            raise ModelError(f"{name}: {cap.label} would get more than its cap of {cap.most}; draft.take respects caps")
    return np.flatnonzero(mine)


def _needed(slack: IntArray, places: int) -> int:
    """Return how many must have a turn now, so that all can have theirs in time with so many places a period."""
    due = np.cumsum(np.bincount(slack))
    return int((due - places * np.arange(due.size)).max(initial=0))


def _check(rules: Rules, count: int) -> None:
    """Raise ModelError where rules cannot be met together."""
    both = int((rules.must & rules.must_not).sum())
    if both:
        raise ModelError(f"must and must_not both name {both} of the same arms")
    forced, open_ = int(rules.must.sum()), count - int(rules.must_not.sum())
    if forced + rules.random > rules.budget:
        drawn = f" and {rules.random} places are drawn at random" if rules.random else ""
        raise ModelError(f"must names {forced} arms{drawn}: more than the budget of {rules.budget}")
    for cap in rules.caps:
        named = int((rules.must & cap.members).sum())
        if named > cap.most:
            raise ModelError(f"must names {named} arms of {cap.label}, whose cap is {cap.most}")
    if not rules.floor:
        return
    places = rules.budget - rules.random
    if open_ > rules.floor * places:
        least = -(-open_ // rules.floor) + rules.random
        raise ModelError(
            f"floor: {open_:,} arms cannot each have a turn every {rules.floor} periods with {places} places a period; "
            f"it takes a budget of {least}, or a floor of {-(-open_ // places) if places else 'more'} periods"
        )
    for cap in rules.caps:
        members = int((cap.members & ~rules.must_not).sum())
        if members > rules.floor * cap.most:
            raise ModelError(
                f"floor: {members:,} arms of {cap.label} need {-(-members // rules.floor)} places a period to have a "
                f"turn every {rules.floor}; their cap is {cap.most}"
            )
