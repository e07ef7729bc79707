"""What changed since the last list: which arms are new, again on the list or dropped, and why."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

import numpy as np

from rmab.common import IntArray
from rmab.common.tables import plain_text
from rmab.decisions.candidates import Candidates
from rmab.decisions.changes import UNSEEN, Changes
from rmab.decisions.decision import LEFT_OUT, Decision
from rmab.decisions.filling import Choice
from rmab.decisions.reasons import explain_unfit, ordinal
from rmab.decisions.rules import FLOOR, INDEX, LOT, NAME, Rules
from rmab.errors import LogError, ModelError
from rmab.logs.columns import encode, find_decimal, parse_numbers, plain_word
from rmab.logs.findings import Findings, Note, list_some, quote
from rmab.logs.source import open_source

MOVED = 0.05  # relative change of the index that counts as a new estimate
LAST = ["id", "period", "state", "rank", "index", "by", "reason"]  # of `Decision.to_table`
Last = Decision | str | os.PathLike[str]


@dataclass(frozen=True)
class Then:
    """An arm in the last list; rank is 1 for the best; rule is empty without a place."""

    state: str
    rank: int
    index: float
    rule: str
    left_out: bool


@dataclass(frozen=True)
class LastList:
    """The last list: its period, and its arms by id."""

    period: str
    arms: dict[str, Then]

    @classmethod
    def of(cls, last: Last) -> LastList:
        """Return the last list from a decision, or from a file that `Decision.save` or `rmab list --csv` wrote."""
        if isinstance(last, Decision):
            several = zip(last.arms, last.states, last.rank, last.index, last.rule, last.reasons, strict=True)
            return cls(last.period, {one: _then(*rest) for one, *rest in several})
        if not isinstance(last, str | os.PathLike):
            raise ModelError(f"since must be the file of a list, or a Decision, got {last!r:.40}", field="since")
        if str(last).endswith(Decision.FORMAT.suffixes):
            return cls.of(Decision.load(last))
        return cls._from_file(last)

    @classmethod
    def _from_file(cls, path: str | os.PathLike[str]) -> LastList:
        source = open_source(path, LAST, None)
        findings = Findings(source.name, source.unit, source.line_of)
        text = {}
        for name in ("id", "period", "state", "by", "reason"):
            values, codes = encode(source.columns[name])
            words = [*(plain_text(plain_word(one)) for one in values), ""]
            text[name] = [words[k] for k in codes]
        rank, index = (
            parse_numbers(source.columns[one], one, find_decimal(source.columns[one]), findings) for one in ("rank", "index")
        )
        findings.stop()
        empty = [k for k, one in enumerate(text["id"]) if not one or np.isnan(rank[k]) or np.isnan(index[k])]
        counts = Counter(text["id"])
        twice = [k for k, one in enumerate(text["id"]) if one and counts[one] > 1]
        if empty:
            findings.add("a line of a list needs id, rank and index", empty)
        if twice:
            findings.add("duplicate id", twice)
        findings.stop()
        periods = list(dict.fromkeys(text["period"]))
        if len(periods) > 1:
            raise LogError(source.name, [Note(f"expected a list for one period, found {list_some(periods, 3)}")])
        several = zip(text["id"], text["state"], rank - 1, index, text["by"], text["reason"], strict=True)
        return cls(periods[0], {one: _then(*rest) for one, *rest in several})


def _then(state: str, rank: float, index: float, rule: str, reason: str) -> Then:
    return Then(state, int(rank) + 1, float(index), rule, reason.startswith(LEFT_OUT))


def find_changes(last: LastList, candidates: Candidates, choice: Choice, rules: Rules, rank: IntArray) -> Changes:
    """Return which arms are new on a list, which were dropped, and why; rank (N,) is 0 for the best."""
    here = set(candidates.roster.ids)
    whole = 2 * len(here & last.arms.keys()) > len(here)  # it contains everybody, not only the arms on it
    gone = tuple(one for one, then in last.arms.items() if then.rule and one not in here)
    listed, words = choice.listed, []
    lowest = float(candidates.index[choice.rule == INDEX].min(initial=np.inf))
    for n, one in enumerate(candidates.roster.ids):
        then = last.arms.get(one)
        before = then is not None and then.rule != ""
        if listed[n] and before:
            words.append("again")
        elif listed[n]:
            words.append(f"new: {_why_new(then, candidates, str(choice.rule[n]), n, int(rank[n]), whole=whole)}")
        elif before and then is not None:
            words.append(f"dropped: {_why_dropped(then, candidates, choice, rules, n, int(rank[n]), lowest)}")
        else:
            words.append("")
    return Changes(last.period, tuple(words), gone)


def _why_new(then: Then | None, candidates: Candidates, rule: str, n: int, rank: int, *, whole: bool) -> str:
    ways = {NAME: "by name", FLOOR: "due by the floor", LOT: "drawn at random", INDEX: ""}
    if way := ways.get(rule, f"by the rule {quote(rule)}"):
        return way
    if then is None:
        return "joined since" if whole else UNSEEN
    if then.left_out:
        return "left out by the draw last time"
    return _explain(then, candidates, n, rank, rose=True)


def _why_dropped(then: Then, candidates: Candidates, choice: Choice, rules: Rules, n: int, rank: int, lowest: float) -> str:
    if choice.left_out[n]:
        return "left out by the draw this time"
    if candidates.roster.ids[n] in candidates.done:
        return f"had {candidates.words.an_action} in {candidates.period} already"
    if rules.must_not[n]:
        return "excluded by name"
    if (unfit := explain_unfit(candidates, choice, n)) or (candidates.helped[n] and candidates.index[n] > lowest):
        return unfit or "no place left under a cap"
    if then.rule in (NAME, FLOOR, LOT):
        ways = {NAME: "by name", FLOOR: "by the floor", LOT: "by the draw"}
        return f"on the last list only {ways[then.rule]}"
    return _explain(then, candidates, n, rank, rose=False)


def _explain(then: Then, candidates: Candidates, n: int, rank: int, *, rose: bool) -> str:
    """Return why an arm came onto the list by its index, or was dropped: its state, its estimate, others, or rules."""
    state, now = candidates.states[n], float(candidates.index[n])
    if state != then.state:
        return f"state changed ({then.state} to {state})"
    change = now - then.index
    if (change > 0) == rose and abs(change) > MOVED * max(abs(now), abs(then.index)):
        return f"the estimate changed (worth {then.index:.2g} to {now:.2g})"
    moved = rank + 1 < then.rank if rose else rank + 1 > then.rank
    return f"{'others' if moved else 'rules or places'} changed (was {ordinal(then.rank)}, is {ordinal(rank + 1)})"
