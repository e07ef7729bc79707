"""A decision of a live programme: check, plan or fall back, choose, and record everything needed to reproduce it."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.decisions.decision import Decision
from rmab.errors import FeedbackError, ModelError, SolverError
from rmab.learning import Learner
from rmab.live.choosing import Choice, choose, waiting_times
from rmab.live.cohorts import new_lesson, propose_in_episode
from rmab.live.engines import Engine, Proposal, engine_of, propose
from rmab.live.events import Decide, pack_numbers, unpack_numbers
from rmab.live.ledger import Ledger
from rmab.live.listing import Record
from rmab.live.observing import Observer, believe
from rmab.live.planning import Model, learn
from rmab.logs.words import Words

FAR, DAY = (
    4,
    86_400,
)  # a period is taken for a mistake if it is more than 4 periods, and more than a day, from the known ones
IF_RIGHT = "use skip=True (--skip) if that is right"
VAGUE = 0.5  # share of the arms whose state may be unknown without a warning


def make_decision(ledger: Ledger, observer: Observer, period: int, engine: Engine | None = None) -> Decide:
    """Return the decision of a period, as of the ledger: by the declared engine, or by another."""
    arms = np.flatnonzero(ledger.is_present(period))
    shared: dict[str, Any] = {"period": period, "through": ledger.sequence, "budget": ledger.budget(period)}
    shared["fingerprint"] = fingerprint()
    if arms.size == 0:
        numbers = dict.fromkeys(("index", "probability", "draw", "state"), pack_numbers(np.empty(0)))
        why = f"nobody takes part in {ledger.label(period)}"
        return Decide.checked(**shared, **numbers, status="fallback", why=why, listed=[], rule=[], present=0)
    proposal, model, belief, why = _try_proposing(ledger, observer, period, arms, engine)
    state, promise = _last_states(ledger, period, arms), None
    if proposal is None:
        index, choice = _fall_back(ledger, period, arms, state)
    else:
        index, choice = proposal.index, choose(ledger, period, arms, proposal.index, fill=proposal.fill)
        if model.knows_effect:
            promise = _promise(model, ledger.group_of[arms], belief, choice)
    rule = np.array(choice.rule)
    listed = np.flatnonzero(rule != "")
    unknown = float((state < 0).mean())
    vague = (f"the state of {unknown:.0%} of the arms is unknown",) if unknown > VAGUE and ledger.decisions else ()
    return Decide.checked(
        **shared,
        status="fallback" if why else "plan",
        why=why,
        warnings=[*choice.notes, *vague],
        listed=[ledger.ids[n] for n in arms[listed]],
        rule=rule[listed].tolist(),
        left_out=[ledger.ids[n] for n in arms[choice.left_out]],
        present=arms.size,
        index=pack_numbers(index),
        probability=pack_numbers(choice.probability),
        draw=pack_numbers(choice.draw),
        state=pack_numbers(state.astype(np.float64)),
        table={} if proposal is None else proposal.table,
        promise=promise,
        lesson=new_lesson(ledger, period),
    )


def _try_proposing(
    ledger: Ledger, observer: Observer, period: int, arms: IntArray, engine: Engine | None
) -> tuple[Proposal | None, Model, FloatArray, str]:
    """Return the proposal of an engine, the model and belief (M, S) at the time, or None and the reason."""
    found = engine_of(ledger.declared.engine) if engine is None else engine
    model = learn(ledger, observer)
    belief = believe(ledger, period, arms, np.asarray(model.rows.kernels), model.reach)
    why = "" if isinstance(found, Learner) else model.ignorance
    if why:
        return None, model, belief, why
    try:
        if ledger.declared.horizon is not None and isinstance(found, Learner):
            proposal = propose_in_episode(ledger, observer, period, arms, found)
        else:
            proposal = propose(ledger, observer, model, period, arms, belief, found)
    except (SolverError, FeedbackError) as error:
        return None, model, belief, f"no plan: {error}"
    return proposal, model, belief, ""


def _last_states(ledger: Ledger, period: int, arms: IntArray) -> IntArray:
    """(M,) the states in which the period begins; -1 if unknown."""
    count = len(ledger.ids)
    entry = ledger.entries(period)
    return np.where(entry >= 0, entry, ledger.cell(period - 1).states(count))[arms]


def _promise(model: Model, group: IntArray, belief: FloatArray, choice: Choice) -> tuple[float, float]:
    """Return the model's prediction of the reward that the places by index add in the period, and its standard error."""
    gain, variance = model.effect()
    mass = np.zeros(gain.shape)
    mine = np.array([one == "index" for one in choice.rule])
    np.add.at(mass, group[mine], belief[mine])
    return float((mass * gain).sum()), float(np.sqrt((mass**2 * variance).sum()))


def _fall_back(ledger: Ledger, period: int, arms: IntArray, state: IntArray) -> tuple[FloatArray, Choice]:
    """Return indices and choice of the declared fallback."""
    rule = ledger.declared.fallback
    if rule == "random":
        return np.zeros(arms.size), choose(ledger, period, arms, np.zeros(arms.size), fill=True, uniform=True)
    if rule == "last":
        tables = [one.body.table for _, one in sorted(ledger.decisions.items()) if one.body.table]
        if tables:
            index = _from_table(ledger, tables[-1], arms, state)
            return index, choose(ledger, period, arms, index, fill=False)
    if rule == "nothing":
        index = np.full(arms.size, -1.0)
        return index, choose(ledger, period, arms, index, fill=False)
    index = waiting_times(ledger, period, arms).astype(np.float64)
    return index, choose(ledger, period, arms, index, fill=True)


def _from_table(ledger: Ledger, table: dict[str, list[float]], arms: IntArray, state: IntArray) -> FloatArray:
    """(M,) indices by group and state; the mean of the group if the state is unknown, 0 for an unknown group."""
    by_group = np.zeros((len(ledger.groups), len(ledger.declared.states)))
    for name, row in table.items():
        by_group[ledger.groups.index(name)] = row
    group = ledger.group_of[arms]
    return np.where(state >= 0, by_group[group, np.maximum(state, 0)], by_group[group].mean(axis=1))


def is_same(one: Decide, other: Decide) -> bool:
    """Return whether two decisions agree: bit for bit under one fingerprint, in the list and the draws under two."""
    packed = ("index", "probability", "draw", "state") if one.fingerprint == other.fingerprint else ("probability", "draw")
    same = all(np.array_equal(unpack_numbers(getattr(one, name)), unpack_numbers(getattr(other, name))) for name in packed)
    if one.fingerprint == other.fingerprint:
        left = {*packed, "issued", "through"}
        return same and one.model_dump(exclude=left) == other.model_dump(exclude=left)
    names = ("listed", "rule", "left_out", "status", "budget")
    return same and all(getattr(one, name) == getattr(other, name) for name in names)


def far_from(ledger: Ledger) -> int:
    """Return the number of periods from which on a period is far from another: the larger of 4 periods and a day."""
    rhythm = ledger.declared.rhythm
    return max(FAR, DAY // rhythm.step) if rhythm.kind == "time" else FAR


def check_report(ledger: Ledger, period: int, *, skip: bool = False) -> None:
    """Raise ModelError if a period is far from all known ones, for example because of a mistyped year."""
    if not ledger.decisions or skip:
        return
    known, far = [*ledger.decisions, *ledger.cells], far_from(ledger)
    first, last = min(known), max(known)
    if not first - far <= period <= last + far:
        near = (
            f"after {ledger.label(last)}, the last known one"
            if period > last
            else f"before {ledger.label(first)}, the first known one"
        )
        count = period - last if period > last else first - period
        what = f"{ledger.label(period)} is {count} periods {near}"
        raise ModelError(f"{what}; {IF_RIGHT}", code="far", period=ledger.label(period))


def check_past(ledger: Ledger, period: int) -> None:
    """Raise ModelError if a past period was never decided, so that it has no list."""
    last = ledger.last_period
    if last is not None and period < last:
        where = f"{ledger.label(period)} was never decided, but {ledger.label(last)} was"
        raise ModelError(f"{where}; lists cannot be made for past periods", code="past", period=ledger.label(period))


def check_period(ledger: Ledger, period: int, *, skip: bool) -> None:
    """Raise ModelError if a period cannot be decided: before any arm joined, in the past, or far ahead."""
    if not ledger.ids:
        raise ModelError("the programme has no arms yet; join arms, then ask", code="empty")
    check_past(ledger, period)
    joined = ledger.stays.last_first
    known = max([*ledger.decisions, *ledger.cells, *([] if joined is None else [joined])], default=None)
    if known is not None and period > known + far_from(ledger) and not skip:
        what = f"{ledger.label(period)} is {period - known} periods after {ledger.label(known)}, the last known one"
        raise ModelError(f"{what}; {IF_RIGHT}", code="far", period=ledger.label(period))


def to_decision(ledger: Ledger, record: Record) -> Decision:
    """Return the current decision, after overrides, in the form that people use."""
    config, body, arms = ledger.declared, record.body, record.arms
    count, index = arms.size, record.index
    rules = np.full(len(ledger.ids), "", dtype=object)
    rules[list(record.rules)] = list(record.rules.values())
    by_index = np.isin(arms, [*record.by_index(), *record.left_out])
    order = np.lexsort((record.draw, ~by_index, -index))
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    heads = {"name": "on the list by name; ", "floor": "due by the floor; ", "lot": "drawn at random; "}
    reasons = [f"rank {place} of {count:,}" for place in (rank + 1).tolist()]
    for k in np.flatnonzero(rules[arms] != ""):
        reasons[k] = f"{heads.get(rules[arms[k]], '')}{reasons[k]}"
    notes = [f"fallback ({config.fallback}): {body.why}"] if body.status == "fallback" else []
    if body.issued is not None:
        notes.append(f"this list was issued ahead, in event {body.issued}")
    unit, worth = config.rhythm.unit, config.reward or {}
    single = len(worth) == 1 and next(iter(worth.values())) == 1
    return Decision(
        period=ledger.label(body.period),
        budget=min(body.budget, count),
        arms=tuple(np.array(ledger.ids, dtype=object)[arms].tolist()),
        states=tuple(np.array([*config.states, "(not reported)"], dtype=object)[record.state].tolist()),
        index=index,
        rank=rank,
        rule=tuple(rules[arms].tolist()),
        probability=_shown_probability(record),
        reasons=tuple(reasons),
        prices={},
        fairness=(),
        notes=(*notes, *body.warnings),
        words=Words(config.action, unit, f"{unit}s {next(iter(worth))}" if single else "reward"),
    )


def _shown_probability(record: Record) -> FloatArray:
    """(M,) the probabilities of the current list: 1 or 0 for arms that people added or removed."""
    shown = record.probability
    now, then = (np.isin(record.arms, list(one)) for one in (record.rules, record.planned))
    return np.where(now != then, now, shown)


@cache
def fingerprint() -> str:
    """Return what can change the last bits of a plan: versions of packages, and the processor."""
    from llvmlite.binding import get_host_cpu_name  # noqa: PLC0415  (heavy)

    packages = " ".join(f"{one} {version(one)}" for one in ("rmab", "numpy", "numba", "scipy"))
    return f"{packages} {platform.machine()} {get_host_cpu_name()}"
