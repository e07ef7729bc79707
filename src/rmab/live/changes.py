"""What each kind of event does to a ledger: it is checked completely, and the change is returned, not carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rmab.common import FloatArray, IntArray, many
from rmab.errors import ModelError, StoreError
from rmab.live.cells import FIELDS, Cells, columns_of, is_known
from rmab.live.events import (
    Body,
    Budget,
    Correct,
    Create,
    Decide,
    Join,
    Leave,
    Missing,
    Override,
    Tell,
    Undo,
    WarmStart,
    unpack_numbers,
)
from rmab.logs.findings import Findings, quote

if TYPE_CHECKING:
    from rmab.live.ledger import Ledger

ALWAYS = -(2**62)  # the period of arms that were there from the first one on
NEVER = 2**62  # the end of a stay that has none yet
UNDOABLE = ("join", "leave", "budget", "warm-start", "override", "tell", "correct", "missing")
Change = Callable[[], None]


@dataclass
class Record:
    """A decision with the numbers of its arms.

    arms (M,): the arms that were present. index, probability, draw (M,). state (M,): -1 where it was not known. planned: by
    arm, the rule of every place as it was decided; rules: as the list stands after overrides. left_out: who was drawn to be
    left out.
    """

    body: Decide
    sequence: int
    arms: IntArray
    index: FloatArray
    probability: FloatArray
    draw: FloatArray
    state: IntArray
    planned: dict[int, str]
    left_out: tuple[int, ...]
    rules: dict[int, str] = field(default_factory=dict)


def change_of(ledger: Ledger, body: Body, sequence: int) -> Change:
    """Return what an event changes; ModelError or LogError where it does not fit what is known."""
    if isinstance(body, Decide):
        return _decide(ledger, body, sequence)
    handlers: dict[str, Callable[[Ledger, Any], Change]] = {
        "create": _create,
        "join": _join,
        "leave": _leave,
        "budget": _budget,
        "warm-start": _warm_start,
        "override": _override,
        "tell": _tell,
        "correct": _tell,
        "missing": _missing,
        "undo": _undo,
    }
    return handlers[body.KIND](ledger, body)


def _create(ledger: Ledger, body: Create) -> Change:
    if ledger.config is not None:
        raise ModelError("the programme was created before")

    def change() -> None:
        ledger.config, ledger.usual_budget = body, body.budget

    return change


def _join(ledger: Ledger, body: Join) -> Change:
    count, states = len(body.arms), len(ledger.declared.states)
    if len(body.group) != count or len(body.state) != count:
        raise ModelError(f"group and state must have {count} entries, one for each arm")
    first = ALWAYS if body.period is None else body.period
    if body.period is None and ledger.decisions:
        raise ModelError("period: say from which period on they take part; the first one is decided already")
    findings = row_findings("arms")
    findings.add_each(*repeated(body.arms))
    for row, (one, group, state) in enumerate(zip(body.arms, body.group, body.state, strict=True)):
        known = ledger.place.get(one)
        if known is not None and ledger.stays[ledger.stay_of[known]][2] > first:
            findings.add(f"{quote(one)} takes part already", row)
        elif known is not None and ledger.groups[ledger.group_list[known]] != group:
            was = ledger.groups[ledger.group_list[known]]
            findings.add(f"{quote(one)} was in group {quote(was)} before; another group needs a new id", row)
        if not -1 <= state < states:
            findings.add(f"{quote(one)} is in no state of the programme", row)
    findings.stop()
    _check_floor(ledger, int(ledger.is_present(max(first, ledger.last_period or first)).sum()) + count, ledger.usual_budget)

    def change() -> None:
        for one, group, state in zip(body.arms, body.group, body.state, strict=True):
            ledger.enter(one, group, state, first)

    return change


def _leave(ledger: Ledger, body: Leave) -> Change:
    arms = ledger.find(body.arms, body.period)

    def change() -> None:
        for n in arms:
            arm, first, _ = ledger.stays[ledger.stay_of[n]]
            ledger.stays[ledger.stay_of[n]] = (arm, first, body.period)
        ledger.stays_version += 1

    later = [k for k, one in ledger.cells.items() if k >= body.period for n in arms if _reported(one, n, len(ledger.ids))]
    if later:
        raise ModelError(f"there are reports of these arms in {ledger.label(later[0])}: undo them first")
    return change


def _budget(ledger: Ledger, body: Budget) -> Change:
    if body.usual is None and not body.periods:
        raise ModelError("budget: say how many can be activated, from now on or in which periods")
    last = ledger.last_period
    for period, _ in body.periods:
        if last is not None and period <= last:
            raise ModelError(f"budget: {ledger.label(period)} is decided already")
    if body.usual is not None:
        here = ledger.is_present(last if last is not None else max((first for _, first, _ in ledger.stays), default=0))
        _check_floor(ledger, int(here.sum()), body.usual)

    def change() -> None:
        if body.usual is not None:
            ledger.usual_budget = body.usual
        ledger.budgets.update(dict(body.periods))

    return change


def _check_floor(ledger: Ledger, arms: int, budget: int) -> None:
    """Refuse a floor that cannot be met: it takes N <= k B."""
    floor = ledger.declared.floor
    if floor is not None and arms > floor * budget:
        need = f"with {many(budget, 'place')} a {ledger.declared.rhythm.unit}"
        raise ModelError(f"floor: {many(arms, 'arm')} cannot each have a turn every {floor} periods {need}", code="floor")


def _warm_start(ledger: Ledger, body: WarmStart) -> Change:
    states = len(ledger.declared.states)
    counts = np.array(body.counts, dtype=np.float64) if body.groups else np.zeros(0)
    if counts.shape != (len(body.groups), states, 2, states) or not (counts >= 0).all():
        raise ModelError(f"warm_start: counts must be 0 or more, of shape (G, {states}, 2, {states}), got {counts.shape}")

    def change() -> None:
        ledger.groups += [one for one in dict.fromkeys(body.groups) if one not in ledger.groups]
        ledger.warm.append(body)

    return change


def _decide(ledger: Ledger, body: Decide, sequence: int) -> Change:
    last = ledger.last_period
    if last is not None and body.period <= last:
        raise ModelError(f"{ledger.label(body.period)} cannot be decided after {ledger.label(last)}", code="past")
    arms = np.flatnonzero(ledger.is_present(body.period))
    numbers = [unpack_numbers(one) for one in (body.index, body.probability, body.draw, body.state)]
    if body.present != arms.size or any(one.shape != arms.shape for one in numbers):
        raise ModelError(
            f"the decision is for {body.present} arms, and {arms.size} take part in {ledger.label(body.period)}"
        )
    chance = numbers[1]
    if not ((chance >= 0) & (chance <= 1)).all():
        raise ModelError("the decision has a probability that is none")
    planned = dict(zip(ledger.find(body.listed, body.period), body.rule, strict=True))
    left_out = tuple(ledger.find(body.left_out, body.period))

    def change() -> None:
        index, _, draw, state = numbers
        state_now = state.astype(np.int64)
        record = Record(body, sequence, arms, index, chance, draw, state_now, planned, left_out, dict(planned))
        ledger.decisions[body.period] = record
        ledger.pending.pop(body.period, None)

    return change


def _override(ledger: Ledger, body: Override) -> Change:
    add, remove = (ledger.find(ids, body.period) for ids in (body.add, body.remove))
    if not add and not remove:
        raise ModelError("override: name arms to add or to remove")
    if set(add) & set(remove):
        raise ModelError(f"override: add and remove both name {quote(ledger.ids[min(set(add) & set(remove))])}")
    record = ledger.decisions.get(body.period)
    if record is None:
        places = ledger.budget(body.period)
        forced, _ = ledger.forced(body.period, [*ledger.pending.get(body.period, []), body])
        if len(forced) > places:
            raise ModelError(
                f"override: {many(len(forced), 'arm')} would be forced, and the budget is {places}", code="budget"
            )
        return lambda: ledger.pending.setdefault(body.period, []).append(body)
    rules = revise(record, add, remove)
    return lambda: setattr(record, "rules", rules)


def _tell(ledger: Ledger, body: Tell) -> Change:
    columns, correction = columns_of(body), isinstance(body, Correct)
    findings, count = row_findings("reports"), len(ledger.ids)
    if any(values.size != len(body.arms) for values in columns.values()):
        raise ModelError(f"every column must have {len(body.arms)} entries, one for each arm")
    arms = ledger.places(body.arms, body.period, findings)
    for name, stop in (("state", len(ledger.declared.states)), ("executed", 2)):
        if name in columns:
            wrong = np.flatnonzero((columns[name].astype(np.int64) < -1) | (columns[name].astype(np.int64) >= stop))
            if wrong.size:
                findings.add(f"{name} must be -1..{stop - 1}", wrong)
    findings.stop()
    cells = ledger.cell(body.period)
    if not correction:
        for name, values in columns.items():
            old = cells.read(name, count, "told")[arms]
            clash = np.flatnonzero(is_known(name, old) & is_known(name, values) & (old != values))
            for row in clash[:100]:
                was, now = (_shown(ledger, name, one) for one in (old[row], values[row]))
                what = f"{quote(body.arms[row])} was reported with {name} {was}, now {now}: use correct"
                findings.add(what, row, "conflict")
            if clash.size > 100:
                findings.add(f"{clash.size - 100:,} more reports that differ", clash[100:], "conflict")
    findings.stop()

    def change() -> None:
        mine = ledger.cells.setdefault(body.period, Cells())
        mine.write("corrected" if correction else "told", arms, columns, count)

    return change


def _shown(ledger: Ledger, name: str, value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    if name == "state":
        return quote(ledger.declared.states[int(number)])
    return ("no", "yes")[int(number)] if name == "executed" else f"{number:g}"


def _missing(ledger: Ledger, body: Missing) -> Change:
    arms = ledger.find(body.arms, body.period)

    def change() -> None:
        mine = ledger.cells.setdefault(body.period, Cells())
        mine.missing |= set(arms)

    return change


def _undo(ledger: Ledger, body: Undo) -> Change:
    kind = ledger.kinds.get(body.event)
    if kind is None or body.event in ledger.undone:
        what = "there is no event" if kind is None else "undone already: event"
        raise ModelError(f"undo: {what} {body.event}", code="undo")
    if kind not in UNDOABLE:
        hint = "; change a list with override" if kind == "decide" else ""
        raise ModelError(f"undo: event {body.event} is of kind '{kind}', which cannot be undone{hint}", code="undo")
    return _replay_instead


def revise(record: Record, add: Sequence[int], remove: Sequence[int]) -> dict[int, str]:
    """Return the places after an override: forced arms first, then the others as far as the budget goes.

    Where there are too many, places by index go first, the lowest first, and then those drawn at random.
    """
    rules = {n: rule for n, rule in record.rules.items() if n not in set(remove)}
    rules.update(dict.fromkeys(add, "name"))
    over = len(rules) - record.body.budget
    index = dict(zip(record.arms.tolist(), record.index.tolist(), strict=True))
    free = [n for n, rule in rules.items() if rule not in ("name", "floor")]
    free.sort(key=lambda n: (rules[n] != "index", index[n], -n))
    if over > len(free):
        raise ModelError(
            f"override: the budget is {record.body.budget}, and {len(rules) - len(free)} are forced or due", code="budget"
        )
    for n in free[: max(over, 0)]:
        del rules[n]
    return rules


def random_places(share: float, budget: int) -> int:
    """Return how many of the places are drawn at random: at least one, where there is a share and a place."""
    return min(budget, max(1, int(share * budget + 0.5))) if share > 0 else 0


def _replay_instead() -> None:
    raise StoreError("an undo is carried out by a replay without the event")


def _reported(cells: Cells, arm: int, count: int) -> bool:
    return any(bool(is_known(name, cells.read(name, count)[arm : arm + 1])[0]) for name in FIELDS)


def row_findings(name: str) -> Findings:
    """Return a collection of what is wrong with rows."""
    return Findings(name, "row", lambda rows: rows)


def repeated(ids: Sequence[str]) -> tuple[IntArray, list[tuple[int, str]]]:
    """Return a code for every row, and what is wrong with codes of ids that are there twice."""
    if len(set(ids)) == len(ids):
        return np.zeros(len(ids), dtype=np.int64), []
    names = {one: k for k, one in enumerate(dict.fromkeys(ids))}
    codes = np.array([names[one] for one in ids], dtype=np.int64)
    twice = np.flatnonzero(np.bincount(codes) > 1)
    every = list(names)
    return codes, [(int(k), f"{quote(every[k])} is there more than once") for k in twice]
