"""Part 9: lists of random programmes: legal, the best by trying all, and drawn as often as they say over many seeds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import binom

import rmab
from fuzz.cases import Case
from fuzz.proofs import near, require
from rmab.errors import ModelError

REDRAWS = 150
UNLIKELY = 1e-10  # a probability of an outcome that is no accident, over all arms of all cases
COSTS = ([1.0, 2.0], [0.1, 0.2, 0.3], [1.0, 1e4], [7.0], [1e-30, 3e-30], [1.0, 2.5, 1e12])
SIDES, AGES = ("north", "south"), ("young", "old", "oldest")


def drawn(case: Case) -> tuple[dict[str, float], dict[str, Any]]:
    """Draw indices, many of them equal, and rules that may or may not go together."""
    count = case.whole(1, 8)
    ids = [f"a{k}" for k in range(count)]
    scale = case.pick([1.0, 1e-6, 1e6])
    index = dict(zip(ids, (scale * case.rng.integers(-1, case.whole(1, 4) + 1, size=count)).tolist(), strict=True))
    given: dict[str, Any] = {"budget": case.whole(0, count), "period": f"week {case.seed}"}
    if case.chance(0.3):
        given["cost"] = dict(zip(ids, case.rng.choice(case.pick(COSTS), size=count).tolist(), strict=True))
        given["budget"] = case.pick([0.1, 0.25, 0.5, 1.0]) * sum(given["cost"].values())
    given["groups"] = {"side": [case.pick(SIDES) for _ in ids], "age": [case.pick(AGES) for _ in ids]}
    given["waited"] = case.rng.integers(0, case.pick([1, 2, 5]), size=count)
    if case.chance(0.4 if "cost" not in given else 0.05):
        given["floor"] = case.whole(2, 7)
    if case.chance(0.3):
        given["must"] = [case.pick(ids)]
    if case.chance(0.3):
        given["must_not"] = [case.pick(ids)]
    if case.chance(0.5):
        given["random_share"] = case.pick([0.2, 0.5, 1.0])
    if case.chance(0.5):
        there = sorted({f"{name}={one}" for name, values in given["groups"].items() for one in values})
        chosen = case.rng.choice(there, size=min(case.whole(1, 2), len(there)), replace=False)
        given["caps"] = {str(one): case.whole(0, 3) for one in chosen}
    return index, given


class Programme:
    """What is asked for, in plain Python."""

    def __init__(self, index: dict[str, float], given: dict[str, Any]) -> None:
        self.index, self.given, self.ids = index, given, list(index)
        self.caps = []
        for name, most in given.get("caps", {}).items():
            column, _, value = name.partition("=")
            self.caps.append((most, {k for k, one in enumerate(given["groups"][column]) if one == value}))
        costs = given.get("cost", dict.fromkeys(index, 1.0)).values()
        self.cost = None if len(set(costs)) < 2 else list(costs)
        places = given["budget"] if "cost" not in given else min(given["budget"] / min(costs) * (1 + 1e-9), len(self.ids))
        self.budget = int(places) if self.cost is None else given["budget"]
        self.random = int(given.get("random_share", 0.0) * self.budget + 0.5)
        self.out = {self.ids.index(one) for one in given.get("must_not", ())}

    def fits(self, listed: Iterable[int]) -> bool:
        """Return whether these arms may be on a list together, but for the budget."""
        these = set(listed)
        return all(len(these & members) <= most for most, members in self.caps)

    def most(self, base: set[int], among: set[int], places: int, worth: Any) -> float:
        """Return the most that some more arms are worth together, by trying all sets of them."""
        best = 0.0
        for size in range(min(places, len(among)) + 1):
            for chosen in combinations(sorted(among), size):
                if self.fits(base | set(chosen)):
                    best = max(best, float(sum(worth(k) for k in chosen)))
        return best


def check_list(programme: Programme, found: Any) -> None:
    """Require a list to keep the rules, and each rule to have given its places as it says."""
    rule, given = np.array(found.rule), programme.given
    on = set(np.flatnonzero(found.active).tolist())
    by = {name: set(np.flatnonzero(rule == name).tolist()) for name in ("name", "floor", "index", "lot")}
    require(set().union(*by.values()) == on, f"list: rules {set(found.rule)}")
    require(programme.fits(on) and not on & programme.out, "list: a cap or an exclusion is broken")
    require({programme.ids[k] for k in by["name"]} == set(given.get("must", ())), "list: names")
    if programme.cost is not None:
        check_costs(programme, found, by)
        return
    require(len(on) <= programme.budget, "list: beyond its budget")
    require(len(by["lot"]) <= programme.random, "list: more drawn places than were asked for")
    everybody = set(range(len(programme.ids))) - programme.out
    places = max(programme.budget - programme.random - len(by["name"]), 0)
    if floor := given.get("floor"):
        due = {k for k in everybody - by["name"] if given["waited"][k] >= floor}
        most = programme.most(by["name"], due, places, lambda _: 1.0)
        require(len(due & by["floor"]) == most, f"list: the floor reaches {len(due & by['floor'])} of {most}")
    else:
        require(not by["floor"], "list: a floor that nobody asked for")
    before = by["name"] | by["floor"]
    worth = [float(value) for value in programme.index.values()]
    helped = {k for k in everybody - before if worth[k] > 0}
    best = programme.most(before, helped, places + programme.random - len(by["floor"]), lambda k: worth[k])
    left_out = {k for k, reason in enumerate(found.reasons) if reason.startswith("left out at random")}
    require(len(left_out) <= min(programme.random, len(by["index"] | left_out) // 2), "list: too many are left out")
    require(not left_out & on, "list: left out, and on it")
    chosen = sum(worth[k] for k in by["index"] | left_out)
    near(chosen, best, max(map(abs, worth)) or 1.0, "list: not the best by index")


def check_costs(programme: Programme, found: Any, by: dict[str, set[int]]) -> None:
    """Require a list under costs to be what one gets block by block: as many of equal arms as fit, the best first."""
    cost, worth, waited = programme.cost, list(programme.index.values()), programme.given["waited"]
    assert cost is not None
    left_out = {k for k, reason in enumerate(found.reasons) if reason.startswith("left out at random")}
    chosen, left = by["index"] | left_out, (programme.budget - sum(cost[k] for k in by["name"])) * (1 + 1e-9)
    before = set(by["name"])
    free = [k for k in range(len(cost)) if k not in before | programme.out and worth[k] > 0]
    for block in sorted({(-worth[k], -waited[k], -cost[k]) for k in free}):
        mine = {k for k in free if (-worth[k], -waited[k], -cost[k]) == block}
        most = programme.most(before, mine, int(left / -block[2]), lambda _: 1.0)
        number = len(mine & chosen)
        crossed = len(programme.caps) > 1
        require(number == most or (crossed and number < most), f"list: {number} of a block, {most} fit")
        before, left = before | (mine & chosen), left + block[2] * number
    require(chosen | by["name"] == before, "list: an arm that helps nobody, by its index")
    require(sum(cost[k] for k in chosen | by["name"]) <= programme.budget * (1 + 1e-9), "list: beyond its budget")
    moves = [sorted(cost[k] for k in several) for several in (left_out, by["lot"])]
    require(moves[0] == moves[1], "list: those drawn do not cost what those left out do")


def play(case: Case) -> None:
    """Make a list with many seeds; who is on it how often is what it says."""
    index, given = drawn(case)
    programme, first = Programme(index, given), None
    times = np.zeros(len(index), dtype=np.int64)
    for seed in range(REDRAWS):
        try:
            found = rmab.data.decide(index, seed=seed, **given)
        except ModelError as error:
            require(first is None, f"list: refused for another seed only: {error}")
            require(len(str(error).splitlines()) == 1, f"list: not one line: {error}")
            case.count("refused")
            return
        check_list(programme, found)
        first = found if first is None else first
        require(np.array_equal(found.probability, first.probability), "list: probabilities depend on the seed")
        times += found.active
    assert first is not None
    for k, stated in enumerate(first.probability):
        require(0.0 <= stated <= 1.0, f"list: a probability of {stated}")
        low, high = binom.cdf(times[k], REDRAWS, stated), binom.sf(times[k] - 1, REDRAWS, stated)
        require(min(low, high) > UNLIKELY, f"list: arm {k} is listed {times[k]} of {REDRAWS} times, stated {stated:.4f}")
    case.count("lists" if programme.cost is None else "lists with costs")
    case.count("by chance" if ((first.probability > 0) & (first.probability < 1)).any() else "certain")
