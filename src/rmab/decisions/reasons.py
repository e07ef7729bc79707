"""Why an arm is on the list, in a sentence with the numbers that decided."""

from __future__ import annotations

from rmab.common import IntArray
from rmab.decisions.candidates import Candidates
from rmab.decisions.decision import LEFT_OUT, UNFIT
from rmab.decisions.filling import Choice
from rmab.decisions.rules import FLOOR, INDEX, LOT, NAME
from rmab.logs.findings import quote


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 4th ...

    Examples
    --------
    >>> [ordinal(k) for k in (1, 2, 3, 4, 11, 112, 1023)]
    ['1st', '2nd', '3rd', '4th', '11th', '112th', '1,023rd']
    """
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def write_reasons(candidates: Candidates, choice: Choice, rank: IntArray) -> tuple[str, ...]:
    """(N,) why each arm has a place, or its rank if it has none; rank (N,) is 0 for the best."""
    of = f"of {rank.size:,}"
    found = []
    for n, (rule, detail, place) in enumerate(zip(choice.rule.tolist(), candidates.details, rank.tolist(), strict=True)):
        if choice.left_out[n]:
            head = f"{LEFT_OUT}, to measure what the list brings"
        else:
            head = _head(candidates, n, rule) or explain_unfit(candidates, choice, n)
        parts = (head, detail, f"{ordinal(place + 1)} {of}")
        found.append("; ".join(one for one in parts if one))
    return tuple(found)


def explain_unfit(candidates: Candidates, choice: Choice, n: int) -> str:
    """Return why an arm does not fit what is left of the budget; empty where it does, or has a place."""
    if candidates.cost is None or choice.unfit is None or not choice.unfit[n]:
        return ""
    return f"{UNFIT}: it costs {candidates.cost[n]:g}, and {max(choice.left, 0.0):g} is left"


def _head(candidates: Candidates, n: int, rule: str) -> str:
    """Return why the arm is on the list, if not by its index."""
    if rule in ("", INDEX):
        return ""
    if rule == FLOOR:
        waited, words = int(candidates.waited[n]), candidates.words
        since = "yet" if candidates.never[n] else f"for {waited} {words.period}{'' if waited == 1 else 's'}"
        return f"no {words.action} {since}: due by the floor"
    return {NAME: "on the list by name", LOT: "drawn at random"}.get(rule, f"by the rule {quote(rule)}")
