"""What a learner is told after an episode: the trajectory of all arms, and the rewards that the feedback mode reveals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, expect
from rmab.common.words import many
from rmab.errors import FeedbackError, ModelError
from rmab.model.view import View
from rmab.play.outcomes import Trajectory


@dataclass(frozen=True, eq=False)
class Feedback(ReadOnly):
    """One episode as a learner sees it: what all arms did, and the rewards that were revealed.

    Parameters
    ----------
    episode : int
        The number of the episode, from 0.
    states : array_like of int, shape (H+1, N)
        The state of each arm before each step, and after the last one.
    actions : array_like of bool, shape (H, N)
        Which arms were active at each step.
    rewards : array_like of float, shape (N, S, 2)
        What each arm paid per step in this episode, by state and action; NaN where it was not revealed.

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

    def __init__(self, episode: int, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> None:
        try:
            values = {
                "episode": as_integer(episode, "episode"),
                "states": _whole(states, "states"),
                "actions": _binary(actions),
                "rewards": as_floats(rewards, "rewards"),
            }
        except ModelError as error:
            raise FeedbackError(str(error)) from error
        for name, value in values.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)

    @classmethod
    def reveal(cls, view: View, episode: int, trajectory: Trajectory, reward: FloatArray) -> Feedback:
        """Keep of the reward (N, S, 2) only what the view's feedback mode reveals of this trajectory."""
        expect(view, View, "view")
        expect(trajectory, Trajectory, "trajectory")
        shown = _shown(view, trajectory.states, trajectory.actions)
        if np.shape(reward) != shown.shape:
            raise FeedbackError(f"reward must have shape (N, S, 2) = {shown.shape}, got {np.shape(reward)}")
        return cls(episode, trajectory.states, trajectory.actions, np.where(shown, reward, np.nan))

    @classmethod
    def of_steps(cls, view: View, episode: int, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike) -> Feedback:
        """Build feedback from the reward of each arm at each step, (H, N), as a live programme records it; NaN if unknown.

        FeedbackError if the view allows no such episode, or a pair was paid differently at two steps.
        """
        expect(view, View, "view")
        whole = cls(episode, states, actions, np.full((view.arms, view.states, 2), np.nan))
        _check_trajectory(view, whole)
        try:
            paid = as_floats(rewards, "rewards")
        except ModelError as error:
            raise FeedbackError(str(error)) from error
        if paid.shape != whole.actions.shape:
            raise FeedbackError(f"rewards must have shape (H, N) = {whole.actions.shape}, got {paid.shape}")
        table = np.full((view.arms, view.states, 2), np.nan)
        arm = np.broadcast_to(np.arange(view.arms), paid.shape)
        place = (arm, whole.states[:-1], whole.actions.astype(np.int64))
        known = ~np.isnan(paid)
        table[tuple(index[known] for index in place)] = paid[known]
        for h, n in np.argwhere(known & (table[place] != paid))[:1]:
            raise FeedbackError(
                f"rewards: arm {n} is paid {paid[h, n]} at step {h}, but differently for the same pair at another step"
            )
        return cls(episode, whole.states, whole.actions, table)

    def check(self, view: View, episode: int) -> None:
        """Raise FeedbackError unless an episode with this number and view can give this feedback.

        Checked are shapes, start states, the budget, impossible transitions, the range of rewards, and that exactly the
        rewards are present which the feedback mode reveals.
        """
        if self.episode != episode:
            raise FeedbackError(f"got feedback of episode {self.episode}, but episode {episode} is due")
        _check_trajectory(view, self)
        if self.rewards.shape != (view.arms, view.states, 2):
            raise FeedbackError(f"rewards must have shape {(view.arms, view.states, 2)}, got {self.rewards.shape}")
        known, shown = ~np.isnan(self.rewards), _shown(view, self.states, self.actions)
        for n, s, a in np.argwhere(shown & ~known)[:1]:
            raise FeedbackError(f"rewards: arm {n}, state {s}, action {a} was visited, but its reward is missing")
        for n, s, a in np.argwhere(known & ~shown)[:1]:
            raise FeedbackError(f"rewards: arm {n}, state {s}, action {a} is not revealed under {view.feedback} feedback")
        low, high = np.full(self.rewards.shape, view.low), np.full(self.rewards.shape, view.high)
        if view.passive_zero:
            low[..., 0], high[..., 0] = 0.0, 0.0
        slack = 1e-9 * (view.high - view.low)
        for n, s, a in np.argwhere(known & ~((self.rewards >= low - slack) & (self.rewards <= high + slack)))[:1]:
            value, least, most = self.rewards[n, s, a], low[n, s, a], high[n, s, a]
            raise FeedbackError(f"rewards: arm {n}, state {s}, action {a} paid {value}, outside [{least:g}, {most:g}]")
        if view.pooled_rewards and view.groups is not None:
            self._check_alike(view.groups, slack)

    def __repr__(self) -> str:
        (steps, arms), known = self.actions.shape, int((~np.isnan(self.rewards)).sum())
        sizes = f"episode {self.episode}, {many(steps, 'step')}, {many(arms, 'arm')}"
        return f"Feedback({sizes}, {known} of {self.rewards.size} rewards revealed)"

    def _check_alike(self, groups: IntArray, slack: float) -> None:
        """Raise FeedbackError where arms of one group, declared to be paid alike, are paid differently."""
        most = np.full((int(groups.max()) + 1, *self.rewards.shape[1:]), np.nan)
        np.fmax.at(most, groups, self.rewards)
        for n, s, a in np.argwhere(self.rewards < most[groups] - slack)[:1]:
            alike = (groups == groups[n]) & (self.rewards[:, s, a] == most[groups[n], s, a])
            other, value = int(np.flatnonzero(alike)[0]), self.rewards[n, s, a]
            raise FeedbackError(f"rewards: arm {n}, state {s}, action {a} paid {value}, not as arm {other} of its group")


def _whole(values: ArrayLike, name: str) -> IntArray:
    given = as_floats(values, name)
    if given.ndim != 2 or not ((np.abs(given) < 2**53) & (given == np.floor(given))).all():
        raise FeedbackError(f"{name} must be a table of whole numbers, one row per step")
    return given.astype(np.int64)


def _binary(values: ArrayLike) -> BoolArray:
    given = _whole(values, "actions")
    for h, n in np.argwhere((given != 0) & (given != 1))[:1]:
        raise FeedbackError(f"step {h}: the action of arm {n} must be 0 or 1, got {given[h, n]}")
    return np.asarray(given != 0)


def _check_trajectory(view: View, feedback: Feedback) -> None:
    states, actions = feedback.states, feedback.actions
    if states.shape != (view.horizon + 1, view.arms):
        raise FeedbackError(f"states must have shape (H+1, N) = {(view.horizon + 1, view.arms)}, got {states.shape}")
    if actions.shape != (view.horizon, view.arms):
        raise FeedbackError(f"actions must have shape (H, N) = {(view.horizon, view.arms)}, got {actions.shape}")
    sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
    for h, n in np.argwhere((states < 0) | (states >= sizes))[:1]:
        raise FeedbackError(f"step {h}: arm {n} is in state {states[h, n]}, it has states 0..{sizes[n] - 1}")
    for n in np.flatnonzero(states[0] != view.start)[:1]:
        raise FeedbackError(f"arm {n} starts in state {states[0, n]}, not {view.start[n]}")
    for h in np.flatnonzero(actions.sum(axis=1) > view.budget)[:1]:
        raise FeedbackError(f"step {h}: {actions[h].sum()} arms are active, the budget is {view.budget}")
    if view.support is not None:
        arm = np.broadcast_to(np.arange(view.arms), actions.shape)
        possible = view.support[arm, states[:-1], actions.astype(np.int64), states[1:]]
        for h, n in np.argwhere(~possible)[:1]:
            move = f"{states[h, n]} to {states[h + 1, n]}"
            raise FeedbackError(f"step {h}: arm {n} moves from state {move}, which was declared impossible")


def _shown(view: View, states: NDArray[np.integer], actions: BoolArray) -> BoolArray:
    """(N, S, 2) which rewards the feedback mode reveals."""
    shown = np.zeros((view.arms, view.states, 2), dtype=bool)
    if view.feedback == "full":
        sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
        shown[:] = (np.arange(view.states) < sizes[:, np.newaxis])[..., np.newaxis]
        return shown
    arm = np.broadcast_to(np.arange(view.arms), actions.shape)
    shown[arm, states[:-1], actions.astype(np.int64)] = True
    if view.feedback == "active":
        shown[..., 0] = False
    return shown
