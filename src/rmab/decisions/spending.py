"""Lists of arms whose activations cost different amounts: who fits the budget, and random places at equal cost.

An index is then the expected gain per unit of cost. The highest go first; an arm that does not fit is left out, and the
next ones are tried (Dantzig 1957). Arms of equal index, waiting time and cost are a block: as many of it get a place as fit,
so which of them a draw picks changes nothing for the others. Of equal index and waiting time, the more expensive go first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray, as_floats, check_magnitude, frozen
from rmab.common.tables import plain_text
from rmab.decisions.caps import take_line
from rmab.decisions.lottery import CERTAIN, Outcomes, list_outcomes
from rmab.errors import ModelError
from rmab.logs.columns import encode, find_decimal, parse_numbers, plain_word
from rmab.logs.findings import Findings, list_some, quote
from rmab.logs.slips import suggest_spelling
from rmab.logs.source import open_source
from rmab.logs.thousands import refuse_thousands

ROUNDING = 1e-9  # relative tolerance of a budget
SPREAD = 1e-6  # least cost relative to the largest that fits the budget; a plan has no more digits
MANY = 1000  # outcomes; from then on ties are broken by the order of kinds under different caps

Costs = ArrayLike | Mapping[str, float] | str | os.PathLike[str]


def costs_of(cost: Costs | None, ids: Sequence[str]) -> FloatArray | None:
    """(N,) the cost of acting on each arm, from a number, array, table of ids or file; ModelError if one is missing.

    Examples
    --------
    >>> costs_of({"bea": 50, "ann": 22}, ["ann", "bea"])
    array([22., 50.])
    """
    if cost is None:
        return None
    if isinstance(cost, str | os.PathLike):
        cost = _read(cost)
    if isinstance(cost, Mapping):
        table = {str(one): value for one, value in cost.items()}
        if len(table) < len(cost):
            raise ModelError("cost has an id twice, as text and as something else; keep one", field="cost")
        if missing := [one for one in ids if one not in table]:
            known = set(ids)
            hint = suggest_spelling(missing, (one for one in table if one not in known))
            raise ModelError(f"cost is missing for {list_some([quote(one) for one in missing])}{hint}", field="cost")
        cost = [table[one] for one in ids]
    given = as_floats(cost, "cost")
    if given.shape not in ((), (len(ids),)):
        raise ModelError(
            f"cost must be a number, or one for each of the {len(ids)} arms, got shape {given.shape}", field="cost"
        )
    found = np.broadcast_to(given, len(ids))
    for n in np.flatnonzero(~((found > 0) & np.isfinite(found)))[:1]:
        raise ModelError(f"cost: {quote(ids[n])} must be a finite number above 0, got {found[n]:g}", field="cost")
    check_magnitude(found, "cost", len(ids), f" times {len(ids)} arms")
    return frozen(found.astype(np.float64))


def check_spread(cost: FloatArray, ids: Sequence[str], budget: float) -> None:
    """Raise ModelError if costs (N,) differ too much to be planned together; those above the budget do not count."""
    least, most = float(cost.min(initial=np.inf)), float(cost[cost <= budget * (1.0 + ROUNDING)].max(initial=0.0))
    if least < SPREAD * most:
        who = quote(ids[int(cost.argmin())])
        raise ModelError(
            f"cost: {who} costs {least:g}, less than a millionth of {most:g}; use at least {SPREAD * most:g}", field="cost"
        )


def _read(path: str | os.PathLike[str]) -> dict[str, float]:
    """Return the costs of a file with the columns id and cost."""
    source = open_source(path, ["id", "cost"], None)
    findings = Findings(source.name, source.unit, source.line_of)
    values, codes = encode(source.columns["id"])
    words = [*(plain_text(plain_word(one)) for one in values), ""]
    ids = [words[k] for k in codes]
    decimal = find_decimal(source.columns["cost"])
    cost = parse_numbers(source.columns["cost"], "cost", decimal, findings)
    refuse_thousands(source.columns["cost"], "cost", decimal, source.dialect.delimiter, findings)
    findings.stop()
    if empty := [k for k, one in enumerate(ids) if not one or np.isnan(cost[k])]:
        findings.add("a line needs an id and a cost", empty)
    first: dict[str, int] = {}
    if twice := [k for k, one in enumerate(ids) if one and first.setdefault(one, k) != k]:
        findings.add("duplicate id", twice)
    findings.stop()
    return dict(zip(ids, cost.tolist(), strict=True))


def take_fitting(
    line: tuple[IntArray, IntArray], free: IntArray, member: BoolArray, room: IntArray, cost: FloatArray, limit: float
) -> Outcomes:
    """Return how many arms of each kind get a place, served in the order of a line; arms that do not fit are left out.

    Parameters are those of `take_line`; cost (K,) is equal within a block of the line, and limit what may be spent.
    """
    kinds, block = line
    whole = limit * (1.0 + ROUNDING)
    ways = [(CERTAIN, np.zeros(free.size, dtype=np.int64), np.array(room), whole)]  # counts, room and what is left
    ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), kinds.size]
    prices = cost[kinds].tolist()
    for begin, end in pairwise([0, *ends]) if kinds.size else ():
        if prices[begin] > max(left for *_, left in ways):
            continue
        several, after = kinds[begin:end], []
        equal = np.zeros(end - begin, dtype=np.int64) if len(ways) < MANY else np.arange(end - begin)
        mine = (np.arange(end - begin), equal), free[several], member[:, several]
        for p, counts, spare, left in ways:
            outcomes = take_line(*mine, spare, int(min(left / prices[begin], mine[1].sum())))
            for q, more in outcomes:
                given = counts if len(outcomes) == 1 else counts.copy()
                given[several] = more
                rest = left - prices[begin] * int(more.sum())
                after.append((p * q, given, spare - mine[2] @ more, rest))
        ways = after
    return [(p, counts) for p, counts, _, _ in ways]


def swap_alike(
    chosen: IntArray, others: IntArray, cost: FloatArray, share: float, weights: Sequence[Fraction]
) -> list[tuple[Fraction, IntArray, IntArray]]:
    """Randomise a share of the places between arms of the same cost, so that the list costs the same.

    Of each cost, as many of the others (cells,) enter as of those chosen (cells,) leave, at most half of them; cost (cells,)
    is that of the arms of a cell, and weights are those of who enters. Returns probabilities, and (cells,) how many leave
    and how many enter.
    """
    parts: list[tuple[int, IntArray, Outcomes]] = []
    for each in np.unique(cost[chosen > 0]):
        cells = np.flatnonzero(cost == each)
        total = int(chosen[cells].sum())
        leaving = min(int(share * total + 0.5), total // 2, int(others[cells].sum()))
        if leaving:
            none = np.zeros((0, cells.size), dtype=bool)  # no caps
            mine = [weights[int(k)] for k in cells]
            parts.append((0, cells, list_outcomes(chosen[cells], none, (), leaving)))
            parts.append((1, cells, list_outcomes(others[cells], none, (), leaving, mine)))
    found = []
    for p, drawn in _couple([one for _, _, one in parts]):
        moves = np.zeros((2, chosen.size), dtype=np.int64)
        for (way, cells, _), counts in zip(parts, drawn, strict=True):
            moves[way, cells] = counts
        found.append((p, moves[0], moves[1]))
    return found


def _couple(parts: list[Outcomes]) -> list[tuple[Fraction, list[IntArray]]]:
    """Draw one outcome of every part with one random number: there are as many ways as outcomes, not their product."""
    ends = [list(accumulate(p for p, _ in one)) for one in parts]
    cuts = sorted({Fraction(0), CERTAIN, *(end for one in ends for end in one)})
    return [
        (high - low, [one[sum(end <= low for end in reached)][1] for one, reached in zip(parts, ends, strict=True)])
        for low, high in pairwise(cuts)
    ]
