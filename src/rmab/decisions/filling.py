"""Who gets the places of a list, and the probability of each arm to get one.

Places are given in turn: by name, by the floor, by custom rules, and by index. Then some are randomised, so that
the effect can be measured: of the arms that the index chooses some are left out, at most half, and some others get
a place. Every purpose has its own random numbers. Arms of a kind (`Kinds`) differ in nothing but their draw: counts of kinds
describe all lists that could have been drawn. There are few of them, so the probability of an arm is a sum over them,
without any simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import caps_cross, price_caps, select_best, take_line
from rmab.decisions.kinds import Kinds, pick_arms
from rmab.decisions.lottery import CERTAIN, Outcomes, draw_outcome, list_outcomes
from rmab.decisions.randomness import TIES, Randomness
from rmab.decisions.rules import FLOOR, INDEX, LOT, NAME, Draft, Rules, ask_rule, check_rules, name_of
from rmab.decisions.spending import ROUNDING, swap_alike, take_fitting

EXACT = 14  # digits of a sum of probabilities


@dataclass(frozen=True, eq=False)
class Choice:
    """Who gets a place.

    rule (N,): the name of the rule that gave it, empty for none. probability (N,): of each arm to get one, over
    ties and draws, with what custom rules chose as given. left_out (N,): chosen by the index, left out by the draw. draws
    (N,): the random number of each that decides whether its place is randomised. prices: the gain from one more place
    under each cap. overdue: arms that a floor should have reached, but could not. With costs, left: the unspent
    budget, and unfit (N,): arms with a higher index than some on the list, that cost more than this, or than the budget.
    """

    rule: Any
    probability: FloatArray
    left_out: BoolArray
    draws: FloatArray
    prices: dict[str, float] = field(default_factory=dict)
    overdue: int = 0
    left: float = 0.0
    unfit: BoolArray | None = None

    @property
    def listed(self) -> BoolArray:
        """(N,) who has a place."""
        return np.asarray(self.rule != "")


@dataclass(frozen=True, eq=False)
class Stage(ReadOnly):
    """A list as it stands, in counts of kinds.

    open (N,): who may get a place. free (K,): how many of them are of each kind. room (C,): places left under each cap.
    places: places left for floors and custom rules; those to randomise are reserved for the index. left:
    what may still be spent, where arms have costs.
    """

    kinds: Kinds
    rules: Rules
    open: BoolArray
    free: IntArray
    room: IntArray
    places: int
    left: float

    @classmethod
    def of(cls, kinds: Kinds, rules: Rules, listed: BoolArray) -> Stage:
        """Return the stage at which some arms (N,) are on the list."""
        able = ~listed & ~rules.must_not
        room = np.array([cap.most - int(listed[cap.members].sum()) for cap in rules.caps], dtype=np.int64)
        places = max(int(rules.budget) - rules.random - int(listed.sum()), 0)
        return cls(kinds, rules, able, kinds.count(able), room, places, rules.budget - kinds.spent(listed))

    def after(self, counts: IntArray) -> Stage:
        """Return the stage after so many more of each kind (K,) are listed; `open` stays."""
        room, places = self.room - self.kinds.member @ counts, self.places - int(counts.sum())
        return replace(self, free=self.free - counts, room=room, places=places)

    def by_floor(self) -> Outcomes:
        """Give places to arms that are due, the longest waiting first, and to as many more as later periods could not serve.

        Every arm that is due and fits under the caps gets a place, as long as there are places.
        """
        found: Outcomes = [(CERTAIN, np.zeros_like(self.free))]
        if not self.rules.floor:
            return found
        every, member = int(self.rules.budget) - self.rules.random, self.kinds.member
        everybody = (np.ones(self.free.size, dtype=bool), every)
        found = self._by_due()
        for inside, most in [*zip(member, (cap.most for cap in self.rules.caps), strict=True), everybody]:
            found = [(p * q, one + more) for p, one in found for q, more in self.after(one)._by_deadline(inside, most)]
        return found

    def _by_due(self) -> Outcomes:
        due, waited = (self.kinds.waited >= self.rules.floor) & (self.free > 0), self.kinds.waited
        line = self.kinds.by_waiting(due)
        if not caps_cross(self.kinds.member[:, due]):
            return take_line(line, self.free, self.kinds.member, self.room, self.places)
        longest = int(waited[due].max())
        worth = (waited - longest) / max(longest, 1)  # none is above 0: as many as possible, then the longest waiting
        return [(CERTAIN, select_best(worth, line[0], self.free, self.kinds.member, self.room, self.places)[0])]

    def _by_deadline(self, inside: BoolArray, most: int) -> Outcomes:
        """Serve arms of the kinds inside (K,) that would be late, if at most `most` can have their turn in a later period.

        Of the arms that are due within d more periods, all beyond d times `most` must have their turn now.
        """
        periods, place = np.unique(np.maximum(self.rules.floor - self.kinds.waited, 1), return_inverse=True)
        due = np.cumsum(np.bincount(place.reshape(-1), weights=np.where(inside, self.free, 0)))
        need = int((due - float(most) * periods).max(initial=0.0))
        line = self.kinds.by_waiting(inside & (self.free > 0))
        return take_line(line, self.free, self.kinds.member, self.room, min(need, self.places))

    def by_index(self) -> tuple[Outcomes, FloatArray]:
        """Give places to the highest indices under the caps; also return the price of each cap (C,)."""
        level, member, places = self.kinds.level, self.kinds.member, self.places + self.rules.random
        line = self.kinds.by_index(self.kinds.helped & (self.free > 0))
        if self.kinds.cost is not None:
            return self._by_density(line)
        if caps_cross(member[:, line[0]]):
            best, prices = select_best(level, line[0], self.free, member, self.room, places)
            return [(CERTAIN, best)], prices * self.kinds.scale
        found = take_line(line, self.free, member, self.room, places)
        prices = price_caps(level, line[0], found[0][1], self.free, member, self.room, places)
        return found, prices * self.kinds.scale

    def _by_density(self, line: tuple[IntArray, IntArray]) -> tuple[Outcomes, FloatArray]:
        """Give places under costs; what one more place under a cap is worth is what it would add, on average."""
        assert self.kinds.cost is not None
        worth, caps = self.kinds.level * self.kinds.cost * self.kinds.scale, np.eye(len(self.room), dtype=np.int64)
        several = [
            take_fitting(line, self.free, self.kinds.member, self.room + one, self.kinds.cost, self.left)
            for one in (0, *caps)
        ]
        first, *more = (sum(float(p) * float(counts @ worth) for p, counts in found) for found in several)
        return several[0], np.maximum(np.array(more) - first, 0.0)

    def by_draw(self, by_index: IntArray) -> list[tuple[Fraction, IntArray, IntArray]]:
        """Randomise the last places of this stage, after the index has chosen so many of each kind (K,).

        Returns probabilities, and (cells,) how many of those chosen leave and how many of the others enter, of every cell
        of arms under the same caps: all have the same probability to leave. An arm is more likely to enter the fewer
        actions were recorded in its group, so that no group starves: with weights 1, 1/4, 1/16, ... by their familiarity.
        """
        cell, number, total = self.kinds.cell, self.rules.random, int(by_index.sum())
        chosen, others = (np.bincount(cell, weights=one).astype(np.int64) for one in (by_index, self.free))
        if not number and not self.rules.share:
            return [(CERTAIN, np.zeros_like(chosen), np.zeros_like(others))]
        first = np.unique(cell, return_index=True)[1]
        member, weights = self.kinds.member[:, first], [Fraction(1, 4 ** int(k)) for k in self.kinds.familiarity[first]]
        if self.kinds.cost is not None:
            return swap_alike(chosen, others, self.kinds.cost[first], self.rules.share, weights)
        leaving = min(number, total // 2, int(others.sum()))
        entering = min(number, self.places + number + leaving)
        found = []
        for p, out in list_outcomes(chosen, member[:0], self.room[:0], leaving):
            into = list_outcomes(others, member, self.room + member @ out, entering, weights)
            found += [(p * q, out, cells) for q, cells in into]
        return found


@dataclass(frozen=True, eq=False)
class Way(ReadOnly):
    """One way in which places may go, and its probability.

    (K,) places by floor and by index; (cells,) how many of the latter are left out and how many others are drawn.
    """

    probability: Fraction
    floor: IntArray
    index: IntArray
    out: IntArray
    cells: IntArray
    prices: FloatArray


def list_ways(stage: Stage, floors: Outcomes) -> list[Way]:
    """Return all ways in which places may go from a stage, including those of the floor."""
    found = []
    for p, by_floor in floors:
        outcomes, prices = stage.after(by_floor).by_index()
        for q, by_index in outcomes:
            left = stage.after(by_floor + by_index)
            drawn = left.by_draw(by_index)
            found += [Way(p * q * r, by_floor, by_index, out, cells, prices) for r, out, cells in drawn]
    return found


def inclusion_probability(stage: Stage, ways: list[Way]) -> FloatArray:
    """(N,) the probability of being on the list at the end: 1 for arms that are on it at this stage, 0 for excluded arms.

    Arms of a kind share the mean number of places of their kind.
    """
    kinds, expected = stage.kinds, np.zeros(stage.free.size)
    for way in ways:
        left = stage.free - way.floor - way.index
        chosen, others = (np.maximum(np.bincount(kinds.cell, weights=one), 1) for one in (way.index, left))
        stay, enter = (1.0 - way.out / chosen)[kinds.cell], (way.cells / others)[kinds.cell]
        expected += float(way.probability) * (way.floor + way.index * stay + left * enter)
    mine = np.round(expected / np.maximum(stage.free, 1), EXACT)[kinds.kind_of]
    return np.where(stage.open, np.clip(mine, 0.0, 1.0), np.where(stage.rules.must_not, 0.0, 1.0))


def draw_list(
    stage: Stage, way: Way, ids: Sequence[str], source: Randomness
) -> tuple[dict[str, IntArray], IntArray, FloatArray]:
    """Return the arms that each rule gives a place in one of the ways, the arms that the draw left out, and the
    numbers (N,) that randomise places.

    Within kinds and cells, random numbers decide.
    """
    kinds, ties, open_ = stage.kinds, source.numbers(ids, TIES), stage.open.copy()
    cell = kinds.cell[kinds.kind_of]
    found = {}
    for name, counts in ((FLOOR, way.floor), (INDEX, way.index)):
        found[name] = pick_arms(kinds.kind_of, counts, ties, open_)
        open_[found[name]] = False
    draws = source.numbers(ids, "draw")
    draws[found[INDEX]] = source.numbers([ids[n] for n in found[INDEX]], "leave")
    out = pick_arms(cell, way.out, draws, np.isin(np.arange(len(ids)), found[INDEX]))
    found[INDEX] = np.setdiff1d(found[INDEX], out)
    found[LOT] = pick_arms(cell, way.cells, draws, open_)
    return found, out, draws


def fill_places(candidates: Candidates, rules: Rules, source: Randomness) -> Choice:
    """Apply the rules in turn, and return who gets a place."""
    ids, kinds = candidates.roster.ids, Kinds.of(candidates, rules.caps)
    names = check_rules(rules, len(ids), candidates.cost)
    rule = np.full(len(ids), "", dtype=f"<U{max(map(len, names))}")
    rule[rules.must] = NAME
    stage = Stage.of(kinds, rules, rule != "")
    floors = stage.by_floor()
    if rules.custom:  # custom rules see who has a place; their choice is fixed from here on
        _, due = floors[draw_outcome(floors, source.number("floor"))]
        rule[pick_arms(kinds.kind_of, due, source.numbers(ids, TIES), stage.open)] = FLOOR
        _ask_all(candidates, rules, rule, source)
        stage, floors = Stage.of(kinds, rules, rule != ""), [(CERTAIN, np.zeros_like(due))]
    ways = list_ways(stage, floors)
    way = ways[draw_outcome([(one.probability, one.cells) for one in ways], source.number("ways"))]
    given, out, draws = draw_list(stage, way, ids, source)
    for name, arms in given.items():
        rule[arms] = name
    late = int(((candidates.waited >= rules.floor) & (rule == "") & ~rules.must_not).sum()) if rules.floor else 0
    prices = dict(zip((cap.label for cap in rules.caps), way.prices.tolist(), strict=True))
    left_out = np.isin(np.arange(len(ids)), out)
    chance, left = inclusion_probability(stage, ways), rules.budget - kinds.spent(rule != "")
    unfit = None
    if candidates.cost is not None:
        skipped = candidates.level > candidates.level[rule == INDEX].min(initial=np.inf)
        skipped |= ~(rule == INDEX).any()
        dear = candidates.cost > left + ROUNDING * rules.budget
        never = candidates.cost > rules.budget * (1.0 + ROUNDING)  # a plan gives these no index
        unfit = stage.open & (rule == "") & ~left_out & (candidates.helped & skipped & dear | never)
    return Choice(rule, chance, left_out, draws, prices, late, left, unfit)


def _ask_all(candidates: Candidates, rules: Rules, rule: Any, source: Randomness) -> None:
    """Call custom rules in turn, and enter their arms in rule (N,)."""
    ids = candidates.roster.ids
    order = candidates.rank(source.numbers(ids, TIES))
    for one in rules.custom:
        listed, name = rule != "", name_of(one)
        places = max(int(rules.budget) - rules.random - int(listed.sum()), 0)
        draft = Draft(candidates, rules, order, source.numbers(ids, f"rule {name}"), listed, places)
        rule[ask_rule(one, draft)] = name
