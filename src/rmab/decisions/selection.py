"""Who gets the places of a list: by name, by a floor, by index under caps, and by lot.

Everything that cannot be met together is refused in one line before anybody is chosen.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError, SolverError

NOT, MUST, FLOOR, INDEX, LOT = range(5)  # why an arm is on the list, or that it is not
TIE = 1e-9  # of the largest index: what is closer is equal


@dataclass(frozen=True, eq=False)
class Cap:
    """At most `most` arms of a group (N,), told by its label."""

    label: str
    members: BoolArray
    most: int


@dataclass(frozen=True, eq=False)
class Wish:
    """What a list has to respect.

    must, barred (N,): by name. every: nobody waits longer, 0 for no floor. lots: places drawn at random.
    """

    budget: int
    must: BoolArray
    barred: BoolArray
    every: int
    lots: int
    caps: tuple[Cap, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """why (N,) an arm is on the list, the chance (N,) that it had, what one more place under each cap is worth (by label),
    and how many arms a floor should already have reached, but could not.
    """

    why: IntArray
    chance: FloatArray
    prices: dict[str, float]
    overdue: int


def shuffled(ids: tuple[str, ...], seed: int, period: str) -> FloatArray:
    """(N,) a number in [0, 1) for every arm, by a hash of seed, period and id: who joins does not reshuffle the others."""
    salt = f"{seed}/{period}/".encode()
    digests = [hashlib.blake2b(salt + one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.float64) / 2.0**64


def chosen(index: FloatArray, order: IntArray, waited: IntArray, luck: FloatArray, wish: Wish) -> Choice:
    """Fill the places. order (N,): arms by rank, the best first; waited (N,): periods since the last action."""
    why = np.full(index.size, NOT, dtype=np.int64)
    _check(wish, index.size)
    why[wish.must] = MUST
    _floor(why, waited, luck, wish)
    free = wish.budget - wish.lots - int((why != NOT).sum())
    worth = np.where(
        (why == NOT) & ~wish.barred & (index > TIE * max(float(np.abs(index).max(initial=0.0)), 1e-300)), index, 0.0
    )
    room = {cap.label: cap.most - int((why != NOT)[cap.members].sum()) for cap in wish.caps}
    overlap = sum(cap.members.astype(np.int64) for cap in wish.caps) if wish.caps else np.zeros(index.size)
    pick = _by_rank if np.max(overlap, initial=0) <= 1 else _by_program
    taken, prices = pick(worth, order, max(free, 0), wish.caps, room)
    why[taken] = INDEX
    chance = _lots(why, luck, wish)
    late = (waited >= wish.every) & (why == NOT) & ~wish.barred if wish.every else np.zeros(index.size, dtype=bool)
    return Choice(why, chance, prices, int(late.sum()))


def _check(wish: Wish, count: int) -> None:
    """Raise ModelError where wishes cannot be met together."""
    both = wish.must & wish.barred
    if both.any():
        raise ModelError(f"must and must_not both name {int(both.sum())} of the same arms")
    forced, open_ = int(wish.must.sum()), count - int(wish.barred.sum())
    if forced + wish.lots > wish.budget:
        lots = f" and {wish.lots} places are drawn at random" if wish.lots else ""
        raise ModelError(f"must names {forced} arms{lots}: more than the budget of {wish.budget}")
    for cap in wish.caps:
        named = int((wish.must & cap.members).sum())
        if named > cap.most:
            raise ModelError(f"must names {named} arms of {cap.label}, whose cap is {cap.most}")
    if wish.every:
        places = wish.budget - wish.lots
        if open_ > wish.every * places:
            least = -(-open_ // wish.every) + wish.lots
            raise ModelError(
                f"floor: {open_:,} arms cannot each have a turn every {wish.every} periods with {places} places a period; "
                f"it takes a budget of {least}, or a floor of {-(-open_ // places) if places else 'more'} periods"
            )
        for cap in wish.caps:
            members = int((cap.members & ~wish.barred).sum())
            if members > wish.every * cap.most:
                raise ModelError(
                    f"floor: {members:,} arms of {cap.label} need {-(-members // wish.every)} places a period to have a "
                    f"turn every {wish.every}; their cap is {cap.most}"
                )


def _floor(why: IntArray, waited: IntArray, luck: FloatArray, wish: Wish) -> None:
    """Give places to arms that are due, the longest waiting first, and to as many more as later periods could not serve.

    Of the arms that are due within d more periods, all beyond d budgets must have their turn now.
    """
    if not wish.every:
        return
    places = wish.budget - wish.lots
    slack = np.maximum(wish.every - waited, 0)
    slack[wish.barred | (why != NOT)] = wish.every + 1
    line = np.lexsort((luck, -waited, slack))  # the earliest due first
    line = line[slack[line] <= wish.every]
    left = places - int((why != NOT).sum())
    room = [cap.most - int((why != NOT)[cap.members].sum()) for cap in wish.caps]
    waiting = slack <= wish.every
    needs = [(cap.members, _needed(slack[cap.members & waiting], cap.most)) for cap in wish.caps]
    needs.append((np.ones(why.size, dtype=bool), _needed(slack[waiting], places)))
    for members, need in needs:
        served = int((why == FLOOR)[members].sum())
        for n in line[members[line]]:
            if served >= need or left <= 0:
                break
            inside = [k for k, cap in enumerate(wish.caps) if cap.members[n]]
            if why[n] != NOT or any(room[k] <= 0 for k in inside):
                continue
            why[n], left, served = FLOOR, left - 1, served + 1
            for k in inside:
                room[k] -= 1


def _needed(slack: IntArray, places: int) -> int:
    """Return how many must have a turn now, so that all can have theirs in time with so many places a period."""
    due = np.cumsum(np.bincount(slack))
    return int((due - places * np.arange(due.size)).max(initial=0))


def _by_rank(
    worth: FloatArray, order: IntArray, places: int, caps: tuple[Cap, ...], room: dict[str, int]
) -> tuple[IntArray, dict[str, float]]:
    """Choose the best whose cap has room: exact where no arm is under two caps."""
    line = order[worth[order] > 0]
    allowed = np.ones(line.size, dtype=bool)
    for cap in caps:
        mine = np.flatnonzero(cap.members[line])
        allowed[mine[max(room[cap.label], 0) :]] = False
    taken = line[allowed][:places]
    full = taken.size == places
    last = float(worth[taken].min()) if full and taken.size else 0.0
    prices = {}
    for cap in caps:
        blocked = line[~allowed & cap.members[line]]
        prices[cap.label] = max(0.0, float(worth[blocked].max()) - last) if blocked.size and places else 0.0
    return taken, prices


def _by_program(
    worth: FloatArray, order: IntArray, places: int, caps: tuple[Cap, ...], room: dict[str, int]
) -> tuple[IntArray, dict[str, float]]:
    """Choose the best under caps that overlap: an integer programme over kinds of arms; prices by relaxation."""
    line = order[worth[order] > 0]
    if line.size == 0 or places == 0:
        return line[:0], {cap.label: 0.0 for cap in caps}
    member = np.column_stack([cap.members[line] for cap in caps]).astype(np.float64)
    keys = np.column_stack([member, worth[line]])
    kinds, kind_of, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    kind_of = kind_of.reshape(-1)
    rows = csr_array(np.vstack([kinds[:, :-1].T, np.ones(len(kinds))]))
    most = np.array([*(float(max(room[cap.label], 0)) for cap in caps), float(places)])
    gain, bounds = -kinds[:, -1], np.column_stack([np.zeros(len(kinds)), sizes])
    whole = milp(gain, integrality=np.ones(len(kinds)), bounds=(0, sizes), constraints=LinearConstraint(rows, -np.inf, most))
    relaxed = linprog(gain, A_ub=rows, b_ub=most, bounds=bounds, method="highs")
    if whole.x is None or relaxed.x is None:
        raise SolverError(f"caps: the programme was not solved ({whole.message})")
    amount = np.rint(whole.x).astype(np.int64)
    before = np.zeros(line.size, dtype=np.int64)  # arms of the same kind with a better rank
    by_kind = np.argsort(kind_of, kind="stable")
    before[by_kind] = np.arange(line.size) - np.repeat(
        np.cumsum(np.bincount(kind_of)) - np.bincount(kind_of), np.bincount(kind_of)
    )
    prices = {cap.label: max(0.0, -float(one)) for cap, one in zip(caps, relaxed.ineqlin.marginals, strict=False)}
    return line[before < amount[kind_of]], prices


def _lots(why: IntArray, luck: FloatArray, wish: Wish) -> FloatArray:
    """Draw the places that are left to chance, and return the chance (N,) of every arm; NaN where caps decide it."""
    chance = np.where(why != NOT, 1.0, 0.0)
    if not wish.lots:
        return chance
    pool = np.flatnonzero((why == NOT) & ~wish.barred)
    line = pool[np.argsort(luck[pool], kind="stable")]
    room = [cap.most - int((why != NOT)[cap.members].sum()) for cap in wish.caps]
    chance[pool] = min(wish.lots / max(pool.size, 1), 1.0)
    left = wish.lots
    for n in line:
        if left == 0:
            break
        inside = [k for k, cap in enumerate(wish.caps) if cap.members[n]]
        if any(room[k] <= 0 for k in inside):
            continue
        why[n], left = LOT, left - 1
        for k in inside:
            room[k] -= 1
    if any(cap.members[pool].any() for cap in wish.caps):
        chance[pool] = np.nan
    return chance
