"""A decision of a live programme: check, plan or fall back, choose, and write down all that is needed to repeat it."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.decisions.decision import Decision
from rmab.errors import ModelError, SolverError
from rmab.live.changes import Record
from rmab.live.choosing import Choice, choose, waiting_times
from rmab.live.events import Decide, pack_numbers
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.live.planning import Model, learn, plan_period
from rmab.logs.words import Words

FAR = 4  # periods after the last known one that are asked for by mistake
VAGUE = 0.5  # part of the arms whose state may be unknown without a warning


def make_decision(ledger: Ledger, observer: Observer, period: int) -> Decide:
    """Return the decision of a period, as of the ledger."""
    arms = np.flatnonzero(ledger.is_present(period))
    here = ledger.label(period)
    budget = ledger.budget(period)
    shared = {"period": period, "through": ledger.sequence, "budget": budget, "fingerprint": fingerprint()}
    if arms.size == 0:
        numbers = dict.fromkeys(("index", "probability", "draw", "state"), pack_numbers(np.empty(0)))
        why = f"nobody takes part in {here}"
        return Decide.checked(**shared, **numbers, status="fallback", why=why, listed=[], rule=[], present=0)
    model, why = _learned(ledger, observer)
    table: dict[str, list[float]] = {}
    promise, state = None, _last_states(ledger, period, arms)
    choice = None
    if model is not None:
        try:
            plan, belief = plan_period(ledger, period, arms, model)
            index = np.einsum("ns,ns->n", belief, plan.index[ledger.group_of[arms]])
            choice = choose(ledger, period, arms, index, fill=False)
            table = {ledger.groups[g]: [float(one) for one in plan.index[g]] for g in np.unique(ledger.group_of[arms])}
            promise = _promise(model, ledger.group_of[arms], belief, choice)
        except SolverError as error:
            why = f"no plan: {error}"
    if choice is None:
        index, choice = _fall_back(ledger, period, arms, state)
    rule = np.array(choice.rule)
    listed = np.flatnonzero(rule != "")
    unknown = float((state < 0).mean())
    vague = (f"the state of {unknown:.0%} of the arms is not known",) if unknown > VAGUE and ledger.decisions else ()
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
        table=table,
        promise=promise,
    )


def _learned(ledger: Ledger, observer: Observer) -> tuple[Model | None, str]:
    """Return the model, or None and why there is none to plan with."""
    model = learn(ledger, observer)
    if not model.knows_effect:
        return None, "no report shows yet what an action changes"
    if np.ptp(model.reward) <= 0:
        return None, "no reward was reported yet"
    return model, ""


def _last_states(ledger: Ledger, period: int, arms: IntArray) -> IntArray:
    """(M,) the states in which the period begins; -1 where they are not known."""
    count = len(ledger.ids)
    entry = ledger.entries(period)
    return np.where(entry >= 0, entry, ledger.cell(period - 1).states(count))[arms]


def _promise(model: Model, group: IntArray, belief: FloatArray, choice: Choice) -> tuple[float, float]:
    """Return what the places by index add to the reward of the period, by the model, and its standard error."""
    gain, variance = model.effect()
    mass = np.zeros(gain.shape)
    mine = np.array([one == "index" for one in choice.rule])
    np.add.at(mass, group[mine], belief[mine])
    return float((mass * gain).sum()), float(np.sqrt((mass**2 * variance).sum()))


def _fall_back(ledger: Ledger, period: int, arms: IntArray, state: IntArray) -> tuple[FloatArray, Choice]:
    """Return indices and choice of the declared fallback."""
    rule = ledger.declared.fallback
    if rule == "random":
        return np.zeros(arms.size), choose(ledger, period, arms, np.zeros(arms.size), fill=True, blind=True)
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
    """(M,) indices by group and state; the mean of the group where the state is not known, 0 of an unknown group."""
    by_group = np.zeros((len(ledger.groups), len(ledger.declared.states)))
    for name, row in table.items():
        by_group[ledger.groups.index(name)] = row
    group = ledger.group_of[arms]
    return np.where(state >= 0, by_group[group, np.maximum(state, 0)], by_group[group].mean(axis=1))


def is_same(one: Decide, other: Decide) -> bool:
    """Return whether two decisions agree: bit for bit under one fingerprint, in the list and the draws under two."""
    if one.fingerprint == other.fingerprint:
        return one == other
    names = ("listed", "rule", "left_out", "probability", "draw", "status", "budget")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def check_period(ledger: Ledger, period: int, *, skip: bool) -> None:
    """Raise ModelError where a period is asked for by mistake: in the past, or far ahead."""
    last = ledger.last_period
    if last is not None and period < last:
        where = f"{ledger.label(period)} was never decided, and {ledger.label(last)} was"
        raise ModelError(f"{where}: a list for the past cannot be made", code="past", period=ledger.label(period))
    joined = [first for _, first, _ in ledger.stays if first > -(2**60)]
    known = max([*ledger.decisions, *ledger.cells, *joined], default=None)
    if known is not None and period > known + FAR and not skip:
        what = f"{ledger.label(period)} is {period - known} periods after {ledger.label(known)}, the last that is known"
        raise ModelError(f"{what}: pass skip=True if that is right", code="far", period=ledger.label(period))


def to_decision(ledger: Ledger, record: Record) -> Decision:
    """Return a decision as it stands, after overrides, in the form that people use."""
    config, body = ledger.declared, record.body
    ids = tuple(ledger.ids[n] for n in record.arms)
    count = len(ids)
    rules = tuple(record.rules.get(int(n), "") for n in record.arms)
    by_index = np.isin(record.arms, [*(n for n, rule in record.planned.items() if rule == "index"), *record.left_out])
    order = np.lexsort((record.draw, ~by_index, -record.index))
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    names = (*config.states, "(not reported)")
    heads = {"name": "on the list by name; ", "floor": "due by the floor; ", "lot": "drawn at random; "}
    reasons = tuple(
        f"{heads.get(rule, '')}rank {place + 1:,} of {count:,}" for rule, place in zip(rules, rank.tolist(), strict=True)
    )
    notes = [f"fallback ({config.fallback}): {body.why}"] if body.status == "fallback" else []
    unit = config.rhythm.unit
    worth = config.reward or {}
    single = len(worth) == 1 and next(iter(worth.values())) == 1
    words = Words(config.action, unit, f"{unit}s {next(iter(worth))}" if single else "reward")
    return Decision(
        period=ledger.label(body.period),
        budget=min(body.budget, count),
        arms=ids,
        states=tuple(names[s] for s in record.state),
        index=record.index,
        rank=rank,
        rule=rules,
        probability=_shown_probability(record),
        reasons=reasons,
        prices={},
        fairness=(),
        notes=(*notes, *body.warnings),
        words=words,
    )


def _shown_probability(record: Record) -> FloatArray:
    """(M,) the probabilities of the list as it stands: whom people put on it or took off it, is so for certain."""
    shown = record.probability.copy()
    for k, n in enumerate(record.arms.tolist()):
        now = n in record.rules
        if now != (n in record.planned):
            shown[k] = float(now)
    return shown


@cache
def fingerprint() -> str:
    """Return what the last bits of a plan depend on: versions of packages, and the processor."""
    from llvmlite.binding import get_host_cpu_name  # noqa: PLC0415  (heavy)

    packages = " ".join(f"{one} {version(one)}" for one in ("rmab", "numpy", "numba", "scipy"))
    return f"{packages} {platform.machine()} {get_host_cpu_name()}"
