"""The feedback of a learner: all states and actions of an episode, and the rewards that were revealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, as_floats, as_integer, expect, frozen
from rmab.errors import FeedbackError, many, raise_as, wrong_shape
from rmab.model import (
    Limit,
    View,
    bare,
    checked_limits,
    costs_in,
    format_limit,
    limits_of,
    location,
    place,
    shape_of,
    slots_of,
    words_of,
)
from rmab.model.costs import ROUNDING
from rmab.play.trajectory import Trajectory, pairs_of


@dataclass(frozen=True, eq=False)
class Feedback(ReadOnly):
    """What a learner observes of one episode: states and actions of all arms, and the revealed rewards.

    Parameters
    ----------
    episode : int
        Number of the episode, from 0.
    states : array_like of int, shape (H+1, N)
        State of each arm before each step, and after the last one. The first row has the start states.
    actions : array_like of bool, shape (H, N)
        Which arms were active at each step.
    rewards : array_like of float, shape (N, S, 2) or (N, K, S, 2)
        Reward of each arm per step in this episode, by state and action, and by phase; NaN if it was not revealed.
    budget : int or array_like of int, shape (H,), optional
        The actual budget, if it differs from the view's; with costs, any amount.

    Raises
    ------
    FeedbackError
        If an argument is not a table of numbers. `check` compares the feedback with a view.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> rmab.Feedback(0, states=[[0, 1], [1, 1]], actions=[[1, 0]], rewards=np.full((2, 2, 2), np.nan))
    Feedback(episode 0, 1 step, 2 arms, 0 of 8 rewards revealed)
    """

    episode: int
    states: IntArray
    actions: BoolArray
    rewards: FloatArray
    budget: Limit | None = None

    def __init__(
        self, episode: int, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, budget: ArrayLike | None = None
    ) -> None:
        with raise_as(FeedbackError):
            number, where, active = as_integer(episode, "episode"), _whole(states, "states"), _binary(actions)
            steps, arms = active.shape
            paid = as_floats(rewards, "rewards")
            limit = None if budget is None else _limit(budget, arms, steps)
        self._fill(number, where, active, paid, limit)

    def _fill(self, *values: Any) -> None:
        for name, value in zip(("episode", "states", "actions", "rewards", "budget"), values, strict=True):
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)

    @classmethod
    def of_simulation(cls, view: View, episode: int, trajectory: Trajectory, reward: FloatArray) -> Feedback:
        """Do as `reveal`, for an episode of the simulator with this view and trusted rewards.

        Nothing is copied or checked, and `check` skips its work for a learner with the same view object.
        """
        states, actions = trajectory.states.astype(np.int64), trajectory.actions
        feedback = cls.__new__(cls)
        feedback._fill(episode, states, actions, np.where(_revealed_mask(view, states, actions), reward, np.nan), None)
        object.__setattr__(feedback, "_view", view)
        return feedback

    def __getstate__(self) -> dict[str, Any]:
        """Omit the view, so that another process checks the feedback."""
        return {name: value for name, value in vars(self).items() if name != "_view"}

    @classmethod
    def reveal(
        cls, view: View, episode: int, trajectory: Trajectory, reward: ArrayLike, budget: ArrayLike | None = None
    ) -> Feedback:
        """Return the feedback with only those rewards that the view's feedback mode reveals; budget as in `Feedback`."""
        expect(view, View, "view")
        expect(trajectory, Trajectory, "trajectory")
        feedback = cls(episode, trajectory.states, trajectory.actions, (), budget)
        _check_places(view, feedback)
        shown = _revealed_mask(view, feedback.states, feedback.actions)
        with raise_as(FeedbackError):
            table = bare(as_floats(reward, "reward"), 4)
        if table.shape != shown.shape:
            wanted = f"{words_of(view.phases, 'N', 'S', '2')} = {shown.shape}"
            raise wrong_shape(FeedbackError, "reward", wanted, table.shape)
        object.__setattr__(feedback, "rewards", frozen(np.where(shown, table, np.nan)))
        return feedback

    @classmethod
    def of_steps(
        cls,
        view: View,
        episode: int,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        budget: ArrayLike | None = None,
    ) -> Feedback:
        """Build feedback from the reward of each arm at each step, (H, N), as a live programme records it; NaN if unknown.

        Raise FeedbackError if the episode contradicts the view, or rewards of a pair differ between steps of a phase.
        """
        expect(view, View, "view")
        table = np.full(shape_of(view.phases, view.arms, view.states, 2), np.nan)
        whole = cls(episode, states, actions, table, budget)
        _check_trajectory(view, whole)
        with raise_as(FeedbackError):
            paid = as_floats(rewards, "rewards")
        if paid.shape != whole.actions.shape:
            raise wrong_shape(FeedbackError, "rewards", f"(H, N) = {whole.actions.shape}", paid.shape)
        pair, known = _pairs_of(view, whole.states, whole.actions), ~np.isnan(paid)
        table.reshape(-1)[pair[known]] = paid[known]
        for h, n in np.argwhere(known & (table.reshape(-1)[pair] != paid))[:1]:
            wrong = (
                f"the reward of arm {n} at step {h} is {paid[h, n]}, but another step has a different one for the same pair"
            )
            raise FeedbackError(f"rewards: {wrong}", field="rewards", step=h, arm=n)
        return cls(episode, whole.states, whole.actions, table, budget)

    def check(self, view: View, episode: int) -> None:
        """Raise FeedbackError unless an episode with this number and view can give this feedback.

        This checks shapes, states, the budget, impossible transitions, the range of rewards, and that exactly the rewards
        that the feedback mode reveals are present. An episode may start in any state, and end before the view's horizon.
        """
        if self.episode != episode:
            wrong = f"expected feedback of episode {episode}, got episode {self.episode}"
            raise FeedbackError(wrong, code="wrong-episode", episode=self.episode)
        if getattr(self, "_view", None) is view:  # the simulator used the same view object
            return
        _check_trajectory(view, self)
        phases = view.phases
        shape = shape_of(phases, view.arms, view.states, 2)
        if self.rewards.shape != shape:
            raise wrong_shape(FeedbackError, "rewards", shape, self.rewards.shape)
        known, shown = ~np.isnan(self.rewards), _revealed_mask(view, self.states, self.actions)
        for at in np.argwhere(known != shown)[:1]:
            missing, hidden = "was visited, but its reward is missing", f"is not revealed under {view.feedback} feedback"
            wrong = f"rewards: {place(at, phases)} {missing if shown[tuple(at)] else hidden}"
            raise FeedbackError(wrong, field="rewards", **location(at, phases))
        low, high = np.full(self.rewards.shape, view.low), np.full(self.rewards.shape, view.high)
        if view.passive_zero:
            low[..., 0], high[..., 0] = 0.0, 0.0
        slack = 1e-9 * (view.high - view.low)
        for at in np.argwhere(known & ~((self.rewards >= low - slack) & (self.rewards <= high + slack)))[:1]:
            value, least, most = (table[tuple(at)] for table in (self.rewards, low, high))
            wrong = f"rewards: {place(at, phases)} paid {value}, outside [{least:g}, {most:g}]"
            raise FeedbackError(wrong, field="rewards", **location(at, phases))
        if view.pooled_rewards and view.groups is not None:
            self._check_pooled(view.groups, slack)

    def elsewhere(self, view: View) -> str:
        """Describe how the episode differs from the view in start, horizon or budget; empty if it does not."""
        steps = len(self.actions)
        if steps < view.horizon:
            return f"the episode has {steps} steps, not {view.horizon}"
        if self.budget is not None and not np.array_equal(limits_of(self.budget, steps), view.budgets):
            return f"the budget was {format_limit(self.budget)}, not {format_limit(view.budget)}"
        first, is_random = self.states[0], view.start.ndim == 2
        wrong = view.start[np.arange(view.arms), first] == 0 if is_random else first != view.start
        for n in np.flatnonzero(wrong)[:1]:
            return (
                f"arm {n} starts in state {first[n]}, {'which has probability 0' if is_random else f'not {view.start[n]}'}"
            )
        return ""

    def __repr__(self) -> str:
        (steps, arms), known = self.actions.shape, int((~np.isnan(self.rewards)).sum())
        sizes = f"episode {self.episode}, {many(steps, 'step')}, {many(arms, 'arm')}"
        return f"Feedback({sizes}, {known} of {self.rewards.size} rewards revealed)"

    def _check_pooled(self, groups: IntArray, slack: float) -> None:
        """Raise FeedbackError if rewards within a group differ, although they are declared equal."""
        most = np.full((int(groups.max()) + 1, *self.rewards.shape[1:]), np.nan)
        np.fmax.at(most, groups, self.rewards)
        for at in np.argwhere(self.rewards < most[groups] - slack)[:1]:
            n, rest = at[0], tuple(at[1:])
            highest = (groups == groups[n]) & (self.rewards[:, *rest] == most[groups[n], *rest])
            other, value = int(np.flatnonzero(highest)[0]), self.rewards[tuple(at)]
            wrong = f"rewards: {place(at, self.rewards.ndim - 2)} paid {value}, not as arm {other} of its group"
            raise FeedbackError(wrong, field="rewards", **location(at, self.rewards.ndim - 2))


def _whole(values: ArrayLike, name: str) -> IntArray:
    given = as_floats(values, name)
    if given.ndim != 2 or not ((np.abs(given) < 2**53) & (given == np.floor(given))).all():
        raise FeedbackError(f"{name} must be a table of whole numbers, one row per step", field=name)
    return given.astype(np.int64)


def _binary(values: ArrayLike) -> BoolArray:
    given = _whole(values, "actions")
    for h, n in np.argwhere((given != 0) & (given != 1))[:1]:
        raise FeedbackError(f"step {h}: the action of arm {n} must be 0 or 1, got {given[h, n]}", step=h, arm=n)
    return np.asarray(given != 0)


def _limit(budget: ArrayLike, arms: int, steps: int) -> Limit:
    """Return a budget: a number of arms, or any amount, which only a view with costs accepts (`Feedback.check`)."""
    given = as_floats(budget, "budget")
    whole = bool((given == np.floor(given)).all() and (given <= arms).all())
    return checked_limits(budget, arms, steps, None if whole else np.ones(arms))


def _check_places(view: View, feedback: Feedback) -> None:
    """Raise FeedbackError unless states and actions have the right shapes, and all states exist."""
    states, actions = feedback.states, feedback.actions
    steps = len(actions)
    if actions.shape != (steps, view.arms) or not 1 <= steps <= view.horizon:
        wanted = f"(H, N) = {(view.horizon, view.arms)}, or fewer steps"
        raise wrong_shape(FeedbackError, "actions", wanted, actions.shape)
    if states.shape != (steps + 1, view.arms):
        raise wrong_shape(FeedbackError, "states", f"(H+1, N) = {(steps + 1, view.arms)}", states.shape)
    sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
    for h, n in np.argwhere((states < 0) | (states >= sizes))[:1]:
        wrong = f"step {h}: arm {n} is in state {states[h, n]}, expected 0..{sizes[n] - 1}"
        raise FeedbackError(wrong, step=h, arm=n)


def _check_budget(view: View, feedback: Feedback) -> None:
    """Raise FeedbackError unless the active arms are within the budget at each step: that of the feedback or the view."""
    actions, steps = feedback.actions, len(feedback.actions)
    budgets: FloatArray | IntArray = view.budgets[:steps]
    if feedback.budget is not None:
        with raise_as(FeedbackError):
            budgets = limits_of(checked_limits(feedback.budget, view.arms, steps, view.cost), steps)
    if view.weights is not None:
        spent = (actions * costs_in(view.weights, view.steps[:steps, np.newaxis], feedback.states[:-1])).sum(axis=1)
        for h in np.flatnonzero(spent > budgets * (1.0 + ROUNDING))[:1]:
            wrong = f"step {h}: arms that cost {spent[h]:g} are active, the budget is {budgets[h]:g}"
            raise FeedbackError(wrong, code="budget-exceeded", step=h)
        return
    count, slots = actions.sum(axis=1), slots_of(budgets, view.cost)
    for h in np.flatnonzero(count != slots if view.exact else count > slots)[:1]:
        wrong = f"step {h}: {count[h]} arms are active, the budget is {'exactly ' if view.exact else ''}{slots[h]}"
        raise FeedbackError(wrong, code="budget-exceeded" if count[h] > slots[h] else "budget-unused", step=h)


def _check_trajectory(view: View, feedback: Feedback) -> None:
    _check_places(view, feedback)
    states, actions = feedback.states, feedback.actions
    steps = len(actions)
    _check_budget(view, feedback)
    if view.support is not None:
        phase = view.steps[:steps, np.newaxis]
        row = (view.support_of * view.phases + phase) * view.states + states[:-1]
        support = view.support.reshape(-1, 2, view.states)
        for h, n in np.argwhere(~support[row, actions.astype(np.int64), states[1:]])[:1]:
            move = f"{states[h, n]} to {states[h + 1, n]}"
            wrong = f"step {h}: arm {n} moves from state {move}, which is declared impossible"
            raise FeedbackError(wrong, code="impossible-move", step=h, arm=n)


def _pairs_of(view: View, states: NDArray[np.integer], actions: BoolArray) -> IntArray:
    """(H, N) position of each visited pair in a flat table of the view."""
    return pairs_of(states, actions, (view.phases, view.states), view.steps)


def _revealed_mask(view: View, states: NDArray[np.integer], actions: BoolArray) -> BoolArray:
    """(N, [K,] S, 2) which rewards the feedback mode reveals."""
    shown = np.zeros(shape_of(view.phases, view.arms, view.states, 2), dtype=bool)
    if view.feedback == "full":
        real = np.arange(view.states) < view.real_states[:, np.newaxis]
        shown[:] = real.reshape(view.arms, *(1,) * (shown.ndim - 3), view.states, 1)
        return shown
    shown.reshape(-1)[_pairs_of(view, states, actions)] = True
    if view.feedback == "active":
        shown[..., 0] = False
    return shown
