"""Engines compute the index of every arm from the reports of a programme.

`sampled`, the default, plans ahead with eight models drawn from the posterior, so that uncertain actions are tried. Each
arm gets its index from one of them, by a hash: with one model, a whole list would depend on one draw. A place is left
empty only if the estimate expects harm, too: one draw alone is not enough. `mean` plans with the estimate.
Every learner of the library that keeps order-free counts can be an engine, too; and any learner if a programme
runs in episodes (`rmab.live.cohorts`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.decisions.randomness import Randomness
from rmab.errors import ModelError
from rmab.learning import Learner, make_learner
from rmab.learning.components import OBSERVING
from rmab.learning.index_learner import IndexLearner
from rmab.learning.pools import Pools
from rmab.learning.state import State
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.live.planning import Model, plan_period, sample_model
from rmab.model import View

MEAN, SAMPLED = PLANS = ("mean", "sampled")
DRAWS = 8  # number of sampled models per list
MODEL = "model"  # topic of the random numbers that assign models to arms
FAINT = 1e-9  # of the largest index
Engine = str | Mapping[str, Any] | Learner  # 'mean', 'sampled', a learner's name, with its options, or a learner
NO_PLAIN = "a learner must be rebuilt from the journal; use plain options such as {'name': 'ucmd', 'estimator': 'fading'}"


ANY_VIEW = View(1, 2, 1, 100, 1, np.zeros(1, dtype=np.int64), 0.0, 1.0, "bandit", False, False, None, None, None, None)


@dataclass(frozen=True, eq=False)
class Proposal:
    """The index (M,) of arms, whether places also go to indices of 0 and less, and the index by group and state."""

    index: FloatArray
    fill: bool = False
    table: dict[str, list[float]] = field(default_factory=dict)


def engine_text(engine: Engine | None, default: str) -> str:
    """Return the text of an engine in a journal: a name, or a learner with its options, to rebuild it."""
    if engine is None:
        return default
    if isinstance(engine, str) and engine in PLANS:
        return engine
    if isinstance(engine, Learner):
        given: dict[str, Any] = {"name": engine.name, **engine.options}
    else:
        given = {"name": engine} if isinstance(engine, str) else dict(engine)
    try:
        text = json.dumps(given, sort_keys=True)
        learner = engine_of(text)
        same = not isinstance(engine, Learner) or (isinstance(learner, Learner) and learner.signature == engine.signature)
    except (TypeError, KeyError) as error:
        raise ModelError(f"engine: {NO_PLAIN} ({error})") from error
    if not same:
        raise ModelError(f"engine: {NO_PLAIN}")
    return text


def engine_of(text: str) -> str | Learner:
    """Return the engine that a journal names."""
    if text in PLANS:
        return text
    fields: dict[str, Any] = json.loads(text)
    return make_learner(fields.pop("name"), **fields)


def is_order_free(learner: Learner) -> bool:
    """Return whether a learner only stores counts and means, so that the order of reports does not matter."""
    if not isinstance(learner, IndexLearner) or type(learner).observe is not IndexLearner.observe:
        return False
    return learner.explore is None and learner.counting is OBSERVING and learner.window(ANY_VIEW) == 0


def propose(
    ledger: Ledger, observer: Observer, model: Model, period: int, arms: IntArray, belief: FloatArray, engine: Engine
) -> Proposal:
    """Return the index of arms (M,), believed to be in states (M, S), by an engine of a rolling programme."""
    if isinstance(engine, Learner):
        return _by_learner(ledger, observer, period, arms, belief, engine)
    tables, which = plan_period(ledger, period, arms, belief, model).index[np.newaxis], np.zeros(arms.size, dtype=np.int64)
    if engine == SAMPLED:
        tables = np.stack([_draw_index(ledger, period, arms, belief, model, tables[0], number) for number in range(DRAWS)])
        source = Randomness(ledger.declared.seed, ledger.label(period))
        numbers = source.numbers([ledger.ids[n] for n in arms], MODEL)
        which = np.minimum((DRAWS * numbers).astype(np.int64), DRAWS - 1)
    group, mean = ledger.group_of[arms], tables.mean(axis=0)
    named = {ledger.groups[g]: [float(one) for one in mean[g]] for g in np.unique(group)}
    return Proposal(np.einsum("ns,ns->n", belief, tables[which, group]), table=named)


def _draw_index(
    ledger: Ledger, period: int, arms: IntArray, belief: FloatArray, model: Model, mean: FloatArray, number: int
) -> FloatArray:
    """(G, S) the index by a model drawn from the posterior; mean (G, S): the index by the estimate."""
    drawn = sample_model(model, np.random.default_rng([ledger.declared.seed, period % 2**62, number]))
    return _without_chance_harm(plan_period(ledger, period, arms, belief, drawn).index, mean)


def _without_chance_harm(drawn: FloatArray, mean: FloatArray) -> FloatArray:
    """(G, S) the index of a draw; tiny values in the same order where it expects harm and the mean does not."""
    scale = float(np.abs(drawn).max(initial=0.0)) or 1.0
    small = FAINT * (2.0 * scale + drawn)  # positive, and below all positive indices of the draw
    return np.where((drawn <= small) & (mean >= -FAINT * scale), small, drawn)


def check_informed(engine: Engine) -> None:
    """Raise ModelError if an engine needs knowledge that no programme has."""
    if isinstance(engine, Learner) and engine.privileged:
        raise ModelError(f"engine: {engine.name} {engine.privileged}, which no programme has", code="privileged")
    if isinstance(engine, Learner) and engine.feedback == "full":
        what = f"{engine.name} needs the rewards of all states and actions, which no programme sees"
        raise ModelError(f"engine: {what}", code="full-feedback")


def check_rolling(engine: Engine) -> None:
    """Raise ModelError if an engine needs episodes, or knowledge that no programme has."""
    check_informed(engine)
    if isinstance(engine, Learner) and not is_order_free(engine):
        what = f"{engine.name} depends on the order of reports"
        raise ModelError(f"engine: {what}; run it in episodes, with horizon=N (--horizon N)", code="not-order-free")
    if isinstance(engine, IndexLearner) and type(engine).decide is not IndexLearner.decide:
        what = f"{engine.name} has no index of single arms"
        raise ModelError(f"engine: {what}; run it in episodes, with horizon=N (--horizon N)", code="no-index")


def _by_learner(
    ledger: Ledger, observer: Observer, period: int, arms: IntArray, belief: FloatArray, learner: Learner
) -> Proposal:
    """Let a learner with order-free counts plan from the current states.

    For the learner, a place on the list is the action: it also learns how often places lead to actions.
    """
    check_rolling(learner)
    config = ledger.declared
    groups, group = np.unique(ledger.group_of[arms], return_inverse=True)
    budgets = [min(ledger.budget(period + k), arms.size) for k in range(config.lookahead)]
    view = make_view(ledger, group.reshape(-1), np.array(budgets), belief)
    counts = observer.by_place(ledger)[groups]
    pools = Pools.of(view)
    visits = counts.sum(axis=3) / pools.arms_paid_alike[:, np.newaxis, np.newaxis]
    paid = (worth_of(ledger)[:, np.newaxis] - view.low) / (view.high - view.low)
    arrays = {"counts": counts, "seen": visits[np.newaxis], "paid": (visits * paid)[np.newaxis]}
    assert isinstance(learner, IndexLearner)
    index_arrays = learner._prepare_episode(pools, view, arrays, len(ledger.decisions), config.seed)
    state = State(learner.signature, view, config.seed, len(ledger.decisions), {**arrays, **index_arrays})
    table = np.asarray(learner.table(state))
    now = table[:, 0] if table.ndim == 3 else table
    return Proposal(np.einsum("ns,ns->n", belief, now), fill=True)


def worth_of(ledger: Ledger) -> FloatArray:
    """(S,) rewards of states; ModelError if they are not declared."""
    config = ledger.declared
    if config.reward is None:
        raise ModelError("reward is missing; a learner as the engine needs rewards of states")
    return np.array([config.reward.get(one, 0.0) for one in config.states])


def make_view(ledger: Ledger, group: IntArray, budgets: IntArray, start: IntArray | FloatArray) -> View:
    """Return the view of a learner, from the declared programme, for arms in groups (N,) with these start states."""
    config, worth = ledger.declared, worth_of(ledger)
    return View(
        arms=group.size,
        states=len(config.states),
        horizon=budgets.size,
        episodes=config.episodes,
        budget=budgets,
        start=start,
        low=float(worth.min()),
        high=float(worth.max()),
        feedback="bandit",
        passive_zero=False,
        pooled_rewards=True,
        groups=group,
        support=None,
        sizes=None,
        state_names=tuple(config.states),
    )
