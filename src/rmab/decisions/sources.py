"""Decisions from what there is: a model, a learner's plan, an index policy, or indices made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_indices, as_integer
from rmab.decisions.candidates import Candidates
from rmab.decisions.decision import Decision, decide_candidates
from rmab.decisions.rules import Rule
from rmab.errors import ModelError
from rmab.estimation.explanations import explain_arms
from rmab.estimation.fit import DEFAULT_HORIZON, Fit
from rmab.learning.base import EpisodePlan
from rmab.logs.words import Words
from rmab.play.policy import IndexPolicy
from rmab.solvers.fluid.fluid import Fluid, solve_fluid

Source = Fit | EpisodePlan | IndexPolicy | Candidates | Mapping[str, float] | ArrayLike


def decide(
    source: Source,
    budget: int | None = None,
    *,
    horizon: int = DEFAULT_HORIZON,
    states: ArrayLike | None = None,
    step: int = 0,
    ids: Sequence[object] | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    waited: ArrayLike | None = None,
    period: str = "",
    words: Words = Words(),
    floor: int | None = None,
    must: Iterable[str] = (),
    must_not: Iterable[str] = (),
    caps: Mapping[str, int] | None = None,
    random_share: float = 0.0,
    rules: Iterable[Rule] = (),
    seed: int = 0,
) -> Decision:
    """Decide who is activated now: those for whom it is worth most, under the rules of the programme, and why.

    Parameters
    ----------
    source : Fit, EpisodePlan, IndexPolicy, Candidates, dict of str to float, or array_like (N,)
        What the indices come from. A model is planned for `horizon` periods. The plan of a learner, or an index policy, needs
        the `states` now and the `step`. Indices made by hand are a table of ids, or an array with `ids`.
    budget : int, optional
        How many can be activated; by default as many as in a period of the log, on average, or the budget of the policy.
    horizon : int
        Number of periods to plan ahead, for a model.
    states : array_like, shape (N,), optional
        For a plan or a policy the states as numbers; for indices made by hand in words.
    step : int
        The step of the episode, for a plan or a policy.
    ids, groups, waited, period, words
        Of the arms, as in `Candidates.of`; a model knows them.
    floor : int, optional
        Everybody has a turn at least every so many periods. Whoever is due goes first; refused where the budget is too
        small for it.
    must, must_not : ids
        Who is on the list, or not on it, whatever the plan says.
    caps : dict of str to int, optional
        The most that a group gets: ``{"district=north": 20}``.
    random_share : float
        Part of the places that is drawn at random from the others, so that what the list brings can be measured without a
        model. `probability` has the probability that each arm had.
    rules : functions, optional
        Custom rules. Each gets the `Draft`, and returns the numbers of the arms that it gives a place; they are asked after
        the floor and before the index.
    seed : int
        Random seed of ties and draws: a hash of seed, period and id. Of equals, who has waited longest goes first.

    Returns
    -------
    Decision
        Ranks, reasons, prices and notes. Places stay empty where acting is expected to help nobody any more.

    Raises
    ------
    ModelError
        Where rules cannot be met together, or name who or what is not there.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> fitted = rmab.data.fit(log, reward={"engaged": 1})
    >>> calls = rmab.data.decide(fitted, budget=10)
    >>> calls
    Decision(10 of 200 arms, for 2024-W20)
    >>> calls.rows()[0].reason
    'wavering since this week; a call raises the chance of being engaged next week from 21% to 48%; 1st of 200'
    """
    kept: dict[str, Any] = {"floor": floor, "must": must, "must_not": must_not, "caps": caps, "random_share": random_share}
    kept |= {"rules": rules, "seed": seed}
    arms: dict[str, Any] = {"ids": ids, "groups": groups, "waited": waited, "period": period, "words": words}
    match source:
        case Fit():
            places = source.usual_budget if budget is None else as_integer(budget, "budget")
            if not 0 <= places <= source.present.size:
                raise ModelError(f"budget must be in 0..{source.present.size} (the number of arms), got {places}")
            return decide_candidates(candidates_of_fit(source, places, horizon), places, **kept)
        case EpisodePlan() | IndexPolicy():
            policy = source.policy if isinstance(source, EpisodePlan) else source
            if not isinstance(policy, IndexPolicy) or policy.rounding != "top":
                raise ModelError("a list needs an index of every arm, and this plan has none: play it with policy.act")
            found = candidates_of_policy(policy, states, step, **arms)
            limit = policy.budget[step] if isinstance(policy.budget, np.ndarray) else policy.budget
            return decide_candidates(found, int(limit) if budget is None else budget, **kept)
        case Candidates():
            found = source
        case _:
            found = Candidates.of(source, states=states, **arms)  # type: ignore[arg-type]
    if budget is None:
        raise ModelError("budget: how many can be activated? Indices alone do not say it")
    return decide_candidates(found, budget, **kept)


def candidates_of_fit(fit: Fit, budget: int, horizon: int = DEFAULT_HORIZON) -> Candidates:
    """Return the arms of a model with their index: what acting now is worth, by a plan over the horizon."""
    plan = solve_fluid(fit.problem(budget, horizon), fit.reward)
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
    )


def index_now(fit: Fit, plan: Fluid) -> FloatArray:
    """(N,) what acting now is worth: Q(s, 1) - Q(s, 0) at the plan's prices, on average over where an arm may be."""
    advantage = plan.advantage[:, 0]  # (C, S)
    index = np.einsum("ns,ns->n", fit.situation.belief[fit.present], advantage[plan.blocks.block_of])
    scale = max(float(np.abs(index).max(initial=0.0)), 1e-300)
    return np.asarray(np.round(index / scale, 9) * scale)


def candidates_of_policy(policy: IndexPolicy, states: ArrayLike | None, step: int, **arms: Any) -> Candidates:
    """Return the arms of an index policy in states (N,) at a step; arms as in `Candidates.of`."""
    if states is None:
        raise ModelError("states: where are the arms now? A plan has an index for every state")
    table = policy.table
    place = as_indices(states, "states", table.shape[:1], table.shape[-1])
    every = np.arange(len(table))
    at = int(as_indices(step, "step", (), table.shape[1])) if table.ndim == 3 else 0
    index = table[every, place] if table.ndim == 2 else table[every, at, place]
    return replace(Candidates.of(index, states=place.tolist(), **arms), least=policy.floor)
