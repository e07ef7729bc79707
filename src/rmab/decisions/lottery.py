"""A lottery among equals: who gets the places if there are fewer places than arms, with known probabilities.

Arms come in cells: those of a cell are under the same caps. First every arm gets the same probability, or one in proportion
to the weight of its cell, as far as the caps allow it (water filling). Then the expected places of the cells are rounded by
one random number (systematic sampling, Madow 1949), so that all outcomes and their probabilities can be listed, in
exact fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import floor

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, IntArray

Outcomes = list[tuple[Fraction, IntArray]]  # probabilities that sum to 1, and how many places every cell gets
CERTAIN = Fraction(1)
MOST = Fraction(2, 5)  # probability of a place by weights


def list_outcomes(
    sizes: ArrayLike, member: BoolArray, room: ArrayLike, places: int, weights: Sequence[Fraction] = ()
) -> Outcomes:
    """Return how many places each of K cells may get, with probabilities.

    Parameters
    ----------
    sizes : (K,) int array
        Arms of every cell.
    member : (C, K) bool array
        Which cells are under which cap.
    room : (C,) int array
        Places left under every cap.
    places : int
        Total number of places. None stays empty if an arm could have it.
    weights : K fractions, optional
        Weights of the arms of every cell; ignored if an arm would get a probability above `MOST`.

    Returns
    -------
    list of (Fraction, (K,) int array)
        Every cell whose arms could get a place gets one with a positive probability.

    Examples
    --------
    >>> [(str(p), counts.tolist()) for p, counts in list_outcomes([2, 1], np.zeros((0, 2), bool), [], 1)]
    [('1/3', [0, 1]), ('2/3', [1, 0])]
    """
    left, free = [max(int(one), 0) for one in np.asarray(room)], [int(one) for one in np.asarray(sizes)]
    inside = [np.flatnonzero(row).tolist() for row in member]
    shares = _fill_evenly(free, inside, left, max(places, 0), [CERTAIN] * len(free), CERTAIN)
    if weights:
        weighted = _fill_evenly(free, inside, left, max(places, 0), weights, MOST)
        shares = weighted if sum(weighted) == sum(shares) else shares
    ends = list(accumulate(shares))
    simple = all(len(cells) <= 1 for cells in inside)  # then rounding respects the caps
    cuts = sorted({Fraction(0), Fraction(1), *(floor(one) + 1 - one for one in ends)})
    found: Outcomes = []
    for low, high in pairwise(cuts):
        below = [floor(one + low) for one in ends]
        counts = np.diff([0, *below]).astype(np.int64)
        if simple:
            found.append((high - low, counts))
        else:
            found += _repair(high - low, counts, [floor(one) for one in shares], free, inside, left, places)
    return found


def draw_outcome(outcomes: Outcomes, number: float) -> int:
    """Return the number of the outcome, from 0, that a random number in [0, 1) selects."""
    reached = list(accumulate(probability for probability, _ in outcomes))
    return next(k for k, one in enumerate(reached) if number < one)


def _fill_evenly(
    sizes: list[int], inside: list[list[int]], room: list[int], places: int, weights: Sequence[Fraction], top: Fraction
) -> list[Fraction]:
    """Return the expected places of every cell: arms get a probability in proportion to their weight, at most `top`.

    Less if a cap binds first.
    """
    limits = [*zip(inside, room, strict=True), (list(range(len(sizes))), places)]
    rate: dict[int, Fraction] = {}
    while len(rate) < len(sizes):
        levels = [(top / weights[k], {k}) for k in range(len(sizes)) if k not in rate]
        for cells, most in limits:
            active = sum(sizes[k] * weights[k] for k in cells if k not in rate)
            if active:
                left = most - sum(rate[k] * sizes[k] for k in cells if k in rate)
                levels.append((Fraction(left) / active, set(cells)))
        reached = min(level for level, _ in levels)
        bound = set().union(*(cells for level, cells in levels if level == reached))
        rate |= {k: reached * weights[k] for k in bound - rate.keys()}
    return [rate[k] * size for k, size in enumerate(sizes)]


def _repair(
    probability: Fraction,
    counts: IntArray,
    whole: list[int],
    sizes: list[int],
    inside: list[list[int]],
    room: list[int],
    places: int,
) -> Outcomes:
    """Return outcomes that respect caps of several cells, which rounding may not.

    Of the cells that were rounded up, each is the first to keep its place with the same probability. Places that are left
    go to any arms that may have them.
    """
    extra = [k for k in range(len(whole)) if counts[k] > whole[k]]
    found: Outcomes = []
    for first in range(max(len(extra), 1)):
        given, line = list(whole), [*extra[first:], *extra[:first]]
        for k, most in [*((one, 1) for one in line), *enumerate(sizes)]:
            spare = [limit - sum(given[j] for j in cells) for cells, limit in zip(inside, room, strict=True) if k in cells]
            given[k] += min(most, sizes[k] - given[k], places - sum(given), *spare)
        found.append((probability / max(len(extra), 1), np.array(given, dtype=np.int64)))
    return found
