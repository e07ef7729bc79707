"""What a learner is told after an episode: the trajectory of all arms, and the rewards that the feedback mode reveals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, expect
from rmab.common.words import many
from rmab.errors import FeedbackError, ModelError
from rmab.model.time import bare, cells, checked_limits, limits_of, parted, place, said, shape_of, words_of
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
        The state of each arm before each step, and after the last one. The first row is where the episode started.
    actions : array_like of bool, shape (H, N)
        Which arms were active at each step.
    rewards : array_like of float, shape (N, S, 2) or (N, K, S, 2)
        What each arm paid per step in this episode, by state and action, and by phase; NaN where it was not revealed.
    budget : int or array_like of int, shape (H,), optional
        The budget that was in force, where it was another than the view's.

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
    budget: int | IntArray | None = None

    def __init__(
        self,
        episode: int,
        states: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        budget: ArrayLike | None = None,
    ) -> None:
        try:
            values: dict[str, Any] = {
                "episode": as_integer(episode, "episode"),
                "states": _whole(states, "states"),
                "actions": _binary(actions),
                "rewards": as_floats(rewards, "rewards"),
            }
            steps, arms = values["actions"].shape
            values["budget"] = None if budget is None else checked_limits(budget, arms, steps)
        except ModelError as error:
            raise FeedbackError(str(error)) from error
        for name, value in values.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)

    @classmethod
    def reveal(
        cls,
        view: View,
        episode: int,
        trajectory: Trajectory,
        reward: ArrayLike,
        budget: ArrayLike | None = None,
    ) -> Feedback:
        """Keep of the reward only what the view's feedback mode reveals of this trajectory; budget as in `Feedback`."""
        expect(view, View, "view")
        expect(trajectory, Trajectory, "trajectory")
        shown = _shown(view, trajectory.states, trajectory.actions)
        try:
            table = bare(as_floats(reward, "reward"), 4)
        except ModelError as error:
            raise FeedbackError(str(error)) from error
        if table.shape != shown.shape:
            wanted = f"{words_of(view.phases, 'N', 'S', '2')} = {shown.shape}"
            raise FeedbackError(f"reward must have shape {wanted}, got {table.shape}")
        return cls(episode, trajectory.states, trajectory.actions, np.where(shown, table, np.nan), budget)

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

        FeedbackError if the view allows no such episode, or a pair was paid differently at two steps of a phase.
        """
        expect(view, View, "view")
        table = np.full((view.arms * view.phases, view.states, 2), np.nan)
        whole = cls(episode, states, actions, table, budget)
        _check_trajectory(view, whole)
        try:
            paid = as_floats(rewards, "rewards")
        except ModelError as error:
            raise FeedbackError(str(error)) from error
        if paid.shape != whole.actions.shape:
            raise FeedbackError(f"rewards must have shape (H, N) = {whole.actions.shape}, got {paid.shape}")
        pair = (_cells_of(view, paid.shape), whole.states[:-1], whole.actions.astype(np.int64))
        known, table = ~np.isnan(paid), np.full(table.shape, np.nan)
        table[tuple(index[known] for index in pair)] = paid[known]
        for h, n in np.argwhere(known & (table[pair] != paid))[:1]:
            raise FeedbackError(
                f"rewards: arm {n} is paid {paid[h, n]} at step {h}, but differently for the same pair at another step"
            )
        return cls(episode, whole.states, whole.actions, parted(table, view.phases), budget)

    def check(self, view: View, episode: int) -> None:
        """Raise FeedbackError unless an episode with this number and view can give this feedback.

        Checked are shapes, states, the budget, impossible transitions, the range of rewards, and that exactly the rewards
        are present which the feedback mode reveals. An episode may start anywhere, and end before the view's horizon.
        """
        if self.episode != episode:
            raise FeedbackError(f"got feedback of episode {self.episode}, but episode {episode} is due")
        _check_trajectory(view, self)
        phases = view.phases
        shape = shape_of(phases, view.arms, view.states, 2)
        if self.rewards.shape != shape:
            raise FeedbackError(f"rewards must have shape {shape}, got {self.rewards.shape}")
        known, shown = ~np.isnan(self.rewards), _shown(view, self.states, self.actions)
        for at in np.argwhere(shown & ~known)[:1]:
            raise FeedbackError(f"rewards: {place(at, phases)} was visited, but its reward is missing")
        for at in np.argwhere(known & ~shown)[:1]:
            raise FeedbackError(f"rewards: {place(at, phases)} is not revealed under {view.feedback} feedback")
        low, high = np.full(self.rewards.shape, view.low), np.full(self.rewards.shape, view.high)
        if view.passive_zero:
            low[..., 0], high[..., 0] = 0.0, 0.0
        slack = 1e-9 * (view.high - view.low)
        for at in np.argwhere(known & ~((self.rewards >= low - slack) & (self.rewards <= high + slack)))[:1]:
            value, least, most = (table[tuple(at)] for table in (self.rewards, low, high))
            raise FeedbackError(f"rewards: {place(at, phases)} paid {value}, outside [{least:g}, {most:g}]")
        if view.pooled_rewards and view.groups is not None:
            self._check_alike(view.groups, slack)

    def elsewhere(self, view: View) -> str:
        """Return in what the episode was another than the view's, in words: start, horizon or budget; empty in nothing."""
        steps = len(self.actions)
        if steps < view.horizon:
            return f"the episode has {steps} steps, not {view.horizon}"
        if self.budget is not None and not np.array_equal(limits_of(self.budget, steps), view.budgets):
            return f"the budget was {said(self.budget)}, not {said(view.budget)}"
        arm, first = np.arange(view.arms), self.states[0]
        if view.start.ndim == 1:
            for n in np.flatnonzero(first != view.start)[:1]:
                return f"arm {n} starts in state {first[n]}, not {view.start[n]}"
            return ""
        for n in np.flatnonzero(view.start[arm, first] == 0)[:1]:
            return f"arm {n} starts in state {first[n]}, which has probability 0"
        return ""

    def __repr__(self) -> str:
        (steps, arms), known = self.actions.shape, int((~np.isnan(self.rewards)).sum())
        sizes = f"episode {self.episode}, {many(steps, 'step')}, {many(arms, 'arm')}"
        return f"Feedback({sizes}, {known} of {self.rewards.size} rewards revealed)"

    def _check_alike(self, groups: IntArray, slack: float) -> None:
        """Raise FeedbackError where arms of one group, declared to be paid alike, are paid differently."""
        most = np.full((int(groups.max()) + 1, *self.rewards.shape[1:]), np.nan)
        np.fmax.at(most, groups, self.rewards)
        for at in np.argwhere(self.rewards < most[groups] - slack)[:1]:
            n, rest = at[0], tuple(at[1:])
            alike = (groups == groups[n]) & (self.rewards[:, *rest] == most[groups[n], *rest])
            other, value = int(np.flatnonzero(alike)[0]), self.rewards[tuple(at)]
            where = place(at, self.rewards.ndim - 2)
            raise FeedbackError(f"rewards: {where} paid {value}, not as arm {other} of its group")


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
    steps = len(actions)
    if actions.shape != (steps, view.arms) or not 1 <= steps <= view.horizon:
        wanted = f"(H, N) = {(view.horizon, view.arms)}, or fewer steps"
        raise FeedbackError(f"actions must have shape {wanted}, got {actions.shape}")
    if states.shape != (steps + 1, view.arms):
        raise FeedbackError(f"states must have shape (H+1, N) = {(steps + 1, view.arms)}, got {states.shape}")
    sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
    for h, n in np.argwhere((states < 0) | (states >= sizes))[:1]:
        raise FeedbackError(f"step {h}: arm {n} is in state {states[h, n]}, it has states 0..{sizes[n] - 1}")
    budgets = view.budgets[:steps] if feedback.budget is None else limits_of(feedback.budget, steps)
    for h in np.flatnonzero(actions.sum(axis=1) > budgets)[:1]:
        raise FeedbackError(f"step {h}: {actions[h].sum()} arms are active, the budget is {budgets[h]}")
    if view.support is not None:
        cell = _cells_of(view, actions.shape)
        support = cells(view.support, view.phases)
        possible = support[cell, states[:-1], actions.astype(np.int64), states[1:]]
        for h, n in np.argwhere(~possible)[:1]:
            move = f"{states[h, n]} to {states[h + 1, n]}"
            raise FeedbackError(f"step {h}: arm {n} moves from state {move}, which was declared impossible")


def _cells_of(view: View, shape: tuple[int, ...]) -> IntArray:
    """(H, N) the cell of every arm at every step."""
    cell = np.arange(view.arms) * view.phases + view.steps[: shape[0], np.newaxis]
    return np.asarray(np.broadcast_to(cell, shape))


def _shown(view: View, states: NDArray[np.integer], actions: BoolArray) -> BoolArray:
    """(N, [K,] S, 2) which rewards the feedback mode reveals."""
    phases = view.phases
    shown = np.zeros((view.arms * phases, view.states, 2), dtype=bool)
    if view.feedback == "full":
        real = np.arange(view.states) < view.real_states[:, np.newaxis]
        shown[:] = np.repeat(real, phases, axis=0)[..., np.newaxis]
        return np.asarray(parted(shown, phases))
    shown[_cells_of(view, actions.shape), states[:-1], actions.astype(np.int64)] = True
    if view.feedback == "active":
        shown[..., 0] = False
    return np.asarray(parted(shown, phases))
