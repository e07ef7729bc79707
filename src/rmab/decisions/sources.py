"""Candidates from a model, a learner's plan, an index policy, or custom indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, as_amount, as_indices, as_integer
from rmab.decisions.candidates import Candidates
from rmab.decisions.spending import check_spread, costs_of
from rmab.errors import ModelError
from rmab.estimation.explanations import explain_arms
from rmab.estimation.fit import DEFAULT_HORIZON, Fit
from rmab.learning.base import EpisodePlan
from rmab.logs.words import PLAIN_WORDS
from rmab.model import costs_in, slots_of, weights_of
from rmab.planners.plan import PlanResult
from rmab.play import IndexPolicy
from rmab.solvers.fluid.fluid import Fluid, solve_fluid

Source = Fit | EpisodePlan | PlanResult | IndexPolicy | Candidates | Mapping[str, float] | ArrayLike

RECENT = 5  # periods that define the usual number of states


def candidates_of(
    source: Source, budget: float | None, horizon: int, states: ArrayLike | None, step: int, **arms: Any
) -> tuple[Candidates, float]:
    """Return the candidates of any source, and the budget; the arguments are those of `rmab.data.decide`.

    Equal costs are none: the budget is then how many arms it pays for.
    """
    found, limit = _find(source, budget, horizon, states, step, **arms)
    count = len(found.roster.ids)
    if found.cost is None:
        places = as_integer(limit, "budget")
        if not 0 <= places <= count:
            raise ModelError(f"budget must be in 0..{count} (the number of arms), got {places}")
        return found, places
    amount = as_amount(limit, "budget")
    if not count or weights_of(found.cost) is None:
        return replace(found, cost=None), int(slots_of(np.array([amount]), found.cost)[0]) if count else 0
    return found, amount


def _find(
    source: Source, budget: float | None, horizon: int, states: ArrayLike | None, step: int, **arms: Any
) -> tuple[Candidates, float]:
    horizon, step = as_integer(horizon, "horizon"), as_integer(step, "step")
    given = {"states": states, "step": step or None, "horizon": None if horizon == DEFAULT_HORIZON else horizon}
    given |= {name: one for name, one in arms.items() if name != "period"}
    given["words"] = None if arms["words"] is PLAIN_WORDS else arms["words"]
    policy = getattr(source, "policy", source)
    match source:
        case Fit():
            _refuse(given, "a model", "states", "step", "ids", "groups", "waited", "words")
            there = source if not arms["period"] else source.at(arms["period"])
            cost = costs_of(arms["cost"], there.ids)
            if cost is not None and budget is None:
                raise ModelError("budget is missing; with costs, give the amount to spend", field="budget")
            limit = there.usual_budget if budget is None else budget
            if cost is not None:
                check_spread(cost, there.ids, as_amount(limit, "budget"))
            return candidates_of_fit(there, limit, horizon, cost), limit
        case _ if callable(getattr(policy, "act", None)):  # a policy, a learner's plan, the result of rmab.plan
            if not isinstance(policy, IndexPolicy) or policy.rounding != "top":
                kind = type(policy).__name__
                raise ModelError(f"a list needs an index of every arm, but {kind} has none here; use policy.act")
            _refuse(given, "a policy", "horizon", "cost")
            arms = {name: one for name, one in arms.items() if name != "cost"}
            found = candidates_of_policy(policy, states, step, **arms)
            limit = policy.budget[step] if isinstance(policy.budget, np.ndarray) else policy.budget
            return found, limit if budget is None else budget
        case Candidates():
            _refuse(given | {"period": arms["period"] or None}, "candidates", *given, "period")
            found = source
        case _:
            _refuse(given, "a table of indices", "step", "horizon", *(["ids"] if isinstance(source, Mapping) else []))
            found = Candidates.of(source, states=states, **arms)  # type: ignore[arg-type]
    if budget is None:
        raise ModelError("budget is missing; give the number of arms to activate")
    return found, budget


def _refuse(given: dict[str, Any], what: str, *names: str) -> None:
    """Raise ModelError if an argument is given that this kind of source does not use."""
    for name in names:
        if given[name] is not None:
            raise ModelError(f"{name} cannot be combined with {what}; leave it out", field=name)


def candidates_of_fit(fit: Fit, budget: float, horizon: int = DEFAULT_HORIZON, cost: FloatArray | None = None) -> Candidates:
    """Return the arms of a model with their index: the expected gain of acting now, by a plan over the horizon.

    With costs (N,), it is per unit of cost.
    """
    plan = solve_fluid(fit.problem(budget, horizon, cost=cost), fit.reward)
    now, present, names = fit.situation, fit.present, (*fit.state_names, "(never seen)")
    here = now.belief[present].sum(axis=0) > 0
    there = set(fit.ids)
    return Candidates(
        roster=fit.roster.take(present),
        index=index_now(fit, plan),
        states=tuple(names[s] for s in now.state[present]),
        waited=now.acted_before[present],
        never=now.never[present] == 1,
        details=explain_arms(fit),
        period=now.label,
        words=fit.words,
        unseen=tuple(fit.state_names[s] for s in np.flatnonzero(fit.rows.unseen.any(axis=1) & here)),
        gone=tuple(one for one in fit.roster.ids if one not in there),
        done=tuple(fit.roster.ids[n] for n in present[(now.acted_before[present] == 0) & (fit.log is not None)]),
        why=_explain_period(fit),
        unmade=_find_unmade(fit),
        dialect=None if fit.log is None else fit.log.dialect,
        seen=fit.counts[:, :, 1].sum(axis=(1, 2))[fit.group_of[present]],
        cost=cost,
    )


def _explain_period(fit: Fit) -> str:
    """Return why the list is for its period: what the log has of the last one, and how to choose another."""
    log, planned, per = fit.log, fit.situation.period, fit.words.period
    if log is None:
        return ""
    last = log.periods.count - 1
    label, final = log.periods.label(planned), log.periods.label(last)
    action = log.action[log.period == last]
    yes, no, empty = ((action == one).sum() for one in (1, 0, -1))
    seen = f"{final}, the last {per} of the log, has {yes:,} yes, {no:,} no and {empty:,} empty"
    states = np.bincount(log.period[log.state >= 0], minlength=last + 1)
    before = states[:last][states[:last] > 0][-RECENT:]
    usual = int(np.median(before)) if before.size else 0
    partly = f"; only {states[last]:,} of some {usual:,} states of {final} are entered, the others are estimated"
    partly *= bool(2 * states[last] < usual)
    if planned > last:
        return f"for {label}: {seen}{partly}"
    summary = "no action is entered in it yet" if not yes + no else seen
    blank = last > 0 and not (log.action[log.period == last - 1] >= 0).any() and (log.period == last - 1).any()
    late = log.periods.label(last - 1) if blank else ""
    unknown = f"; who was acted on in {late} is not entered, so its list may be repeated" if blank else ""
    return f"for {label}, the last {per} of the log: {summary}{partly}{unknown}"


def _find_unmade(fit: Fit) -> str:
    """Return the last period of the log if it has few actions, and the list is for a later one; empty otherwise."""
    log = fit.log
    if log is None or fit.situation.period < log.periods.count:
        return ""
    last = log.periods.count - 1
    few = (log.action[log.period == last] == 1).sum() < fit.usual_budget / 2
    return log.periods.label(last) if few else ""


def index_now(fit: Fit, plan: Fluid) -> FloatArray:
    """(N,) the expected gain of acting now: Q(s, 1) - Q(s, 0) at the plan's prices, averaged over the belief."""
    advantage = plan.advantage[:, 0]  # (C, S)
    index = np.einsum("ns,ns->n", fit.belief, advantage[plan.blocks.block_of])
    scale = max(float(np.abs(index).max(initial=0.0)), 1e-300)
    return np.asarray(np.round(index / scale, 9) * scale)


def candidates_of_policy(policy: IndexPolicy, states: ArrayLike | None, step: int, **arms: Any) -> Candidates:
    """Return the arms of an index policy in states (N,) at a step; arms as in `Candidates.of`."""
    if states is None:
        raise ModelError("states are missing; give the current state of every arm")
    table = policy.table
    place = as_indices(states, "states", table.shape[:1], table.shape[-1])
    every = np.arange(len(table))
    at = int(as_indices(step, "step", (), table.shape[1])) if table.ndim == 3 else 0
    index = table[every, place] if table.ndim == 2 else table[every, at, place]
    cost = None if policy.cost is None else costs_in(policy.cost, at, place)
    return replace(Candidates.of(index, states=place.tolist(), cost=cost, **arms), least=policy.floor)
