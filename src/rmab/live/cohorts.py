"""Programmes that run in episodes, with any learner of the library: cohorts of the same composition, one after the other.

Episode e has the periods e H .. (e+1) H - 1 from the first one that was decided. The arms that take part when it begins are
the cohort; sorted by group and joining, they are the N arms of the learner, so every cohort must have as many of each group
as the first. Arms that join later wait for the next episode.

The learner's state is never stored: it is recomputed from the journal. With the first list of an episode the journal
stores a lesson, what was known of the previous episode: states (H+1, N) and executed actions (H, N). A learner whose
statistics are order-free uses current reports instead, so that late reports count. For all others a report that
comes after the next episode has begun only counts in statistics and evidence. A state that was not reported is assumed to be
the last known one, and an action that was not reported to be the decided one.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import FeedbackError
from rmab.learning import EpisodePlan, Learner
from rmab.learning.state import State
from rmab.live.engines import Proposal, is_order_free, make_view, worth_of
from rmab.live.events import pack_numbers, unpack_numbers
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer, transitions
from rmab.model import View
from rmab.play import Feedback, IndexPolicy


def episode_of(ledger: Ledger, period: int) -> tuple[int, int]:
    """Return the episode of a period and its step, both from 0."""
    first = min(ledger.decisions, default=period)
    return divmod(period - first, ledger.declared.horizon or 1)


def cohort(ledger: Ledger, episode: int, period: int) -> IntArray:
    """(N,) the arms of an episode; period: the one that is decided, which begins the first episode if there is none."""
    begin = min(ledger.decisions, default=period) + episode * (ledger.declared.horizon or 1)
    arms = np.flatnonzero(ledger.is_present(begin))
    return np.asarray(arms[np.argsort(ledger.group_of[arms], kind="stable")])


def known_states(ledger: Ledger, period: int, arms: IntArray) -> IntArray:
    """(N,) the states in which a period begins: the last reported ones, or 0 if there is none."""
    found = np.full(len(ledger.ids), -1, dtype=np.int64)
    first = ledger.first_period if ledger.first_period is not None else period
    for one in range(period, first - 1, -1):
        entry = ledger.entries(one)
        before = np.where(entry >= 0, entry, ledger.cell(one - 1).states(len(ledger.ids)))
        found = np.where(found < 0, before, found)
        if (found[arms] >= 0).all():
            break
    return np.maximum(found[arms], 0)


def lesson_of(ledger: Ledger, episode: int) -> tuple[IntArray, IntArray]:
    """Return states (H+1, N) and actions (H, N) of an episode, as currently known."""
    horizon = ledger.declared.horizon or 1
    begin = min(ledger.decisions) + episode * horizon
    arms = cohort(ledger, episode, begin)
    states = np.array([known_states(ledger, begin + h, arms) for h in range(horizon + 1)])
    seen = [transitions(ledger, begin + h) for h in range(horizon)]
    actions = np.array([np.where(one.executed >= 0, one.executed, one.listed)[arms] for one in seen])
    return states, actions


def new_lesson(ledger: Ledger, period: int) -> str | None:
    """Return the lesson that the first decision of an episode stores: that of the previous one."""
    if ledger.declared.horizon is None or not ledger.decisions:
        return None
    episode, _ = episode_of(ledger, period)
    if episode == 0 or any(episode_of(ledger, one)[0] == episode for one in ledger.decisions):
        return None
    states, actions = lesson_of(ledger, episode - 1)
    return pack_numbers(np.concatenate([states.ravel(), actions.ravel()]).astype(np.float64))


def propose_in_episode(ledger: Ledger, observer: Observer, period: int, arms: IntArray, learner: Learner) -> Proposal:
    """Return the index of arms (M,) in a period by the learner's plan of its episode."""
    episode, step = episode_of(ledger, period)
    mine = cohort(ledger, episode, period)
    view = _view(ledger, period, learner)
    if not np.array_equal(ledger.group_of[mine], np.unique(ledger.group_of[mine])[view.group_of]) or mine.size != view.arms:
        raise FeedbackError(f"the cohort has {mine.size} arms or other groups than the first, which had {view.arms} arms")
    plan = _plan(ledger, observer, period, episode, learner, view, mine)
    now = known_states(ledger, period, mine)
    policy, fill = plan.policy, False
    if isinstance(policy, IndexPolicy) and policy.rounding == "top" and policy.rule != "auto":
        table = np.asarray(policy.table)
        index = (table[:, step] if table.ndim == 3 else table)[np.arange(mine.size), now]
        fill = policy.rule == "fill"
    else:
        rng = np.random.default_rng([ledger.declared.seed, period % 2**62])
        index = np.asarray(policy.act(step, now, rng), dtype=np.float64)
    values = np.full(len(ledger.ids), min(float(index.min(initial=0.0)), 0.0) - 1.0)
    values[mine] = index
    return Proposal(values[arms], fill=fill)


def _view(ledger: Ledger, period: int, learner: Learner) -> View:
    """Return the view of the learner, from the first cohort.

    A learner that only plans from one start gets the frequency of each state in the group, none with 0.
    """
    first, arms = min(ledger.decisions, default=period), cohort(ledger, 0, period)
    group = np.unique(ledger.group_of[arms], return_inverse=True)[1].reshape(-1)
    start = known_states(ledger, first, arms)
    budgets = _budgets(ledger, first, arms.size)
    if learner.anywhere:
        return make_view(ledger, group, budgets, start)
    counts = np.full((group.max(initial=0) + 1, len(ledger.declared.states)), 1.0 / len(ledger.declared.states))
    np.add.at(counts, (group, start), 1.0)
    return make_view(ledger, group, budgets, (counts / counts.sum(axis=1, keepdims=True))[group])


def _budgets(ledger: Ledger, begin: int, most: int) -> IntArray:
    ahead = range(begin, begin + (ledger.declared.horizon or 1))
    decided = {k: one.body.budget for k, one in ledger.decisions.items()}
    return np.array([min(decided.get(k, ledger.budget(k)), most) for k in ahead], dtype=np.int64)


def _plan(
    ledger: Ledger, observer: Observer, period: int, episode: int, learner: Learner, view: View, arms: IntArray
) -> EpisodePlan:
    """Return the plan of an episode: from the state after all earlier lessons, and the start states of its arms."""
    state = _state(ledger, observer, learner, view, episode)
    if not learner.anywhere:
        return learner.plan(state)
    begin = min(ledger.decisions, default=period) + episode * view.horizon
    return learner.plan(state, start=known_states(ledger, begin, arms), budget=_budgets(ledger, begin, arms.size))


def _state(ledger: Ledger, observer: Observer, learner: Learner, view: View, episode: int) -> State:
    """Return the learner's state before an episode; states are cached by their lessons."""
    state = learner.begin(view, ledger.declared.seed)
    key: tuple[object, ...] = (learner.signature, view.budgets.tobytes(), np.asarray(view.start).tobytes())
    for number, (states, actions) in enumerate(_lessons(ledger, learner, view, episode)):
        key = (*key, states.tobytes(), actions.tobytes())
        if key not in observer.states:
            observer.states[key] = learner.learn(state, _feedback(ledger, view, number, states, actions))
        state = observer.states[key]
    return state


def _lessons(ledger: Ledger, learner: Learner, view: View, episode: int) -> list[tuple[IntArray, IntArray]]:
    if is_order_free(learner):
        return [lesson_of(ledger, one) for one in range(episode)]
    stored = [unpack_numbers(one.body.lesson) for _, one in sorted(ledger.decisions.items()) if one.body.lesson]
    if len(stored) < episode:  # the first decision of this episode is being made now
        stored.append(np.concatenate([one.ravel() for one in lesson_of(ledger, episode - 1)]).astype(np.float64))
    cut, found = (view.horizon + 1) * view.arms, []
    for one in stored[:episode]:
        if one.size != cut + view.horizon * view.arms:
            raise FeedbackError("a cohort had other arms than the first one, so that the learner cannot use it")
        both = one.astype(np.int64)
        found.append((both[:cut].reshape(-1, view.arms), both[cut:].reshape(-1, view.arms)))
    return found


def _feedback(ledger: Ledger, view: View, episode: int, states: IntArray, actions: IntArray) -> Feedback:
    """Return a lesson as feedback: a step pays the reward of its first state."""
    worth: FloatArray = worth_of(ledger)
    budget = np.maximum(view.budgets, actions.sum(axis=1))
    other = None if np.array_equal(budget, view.budgets) else budget
    return Feedback.of_steps(view, episode, states, actions, worth[states[:-1]], other)
