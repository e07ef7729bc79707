"""Views: what a learner may know of a task, and nothing else (Xiong & Li 2024, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rmab.common.arrays import BoolArray, IntArray, ReadOnly
from rmab.common.words import many

FeedbackMode = Literal["bandit", "active", "full"]


@dataclass(frozen=True, eq=False)
class View(ReadOnly):
    """What a learner may know of a task before it starts, and nothing else: no kernels, no rewards.

    `Task.view` makes it. A programme that runs live fills it in by hand.

    Parameters
    ----------
    arms, states, horizon, episodes, budget : int
        The sizes N, S, H, T and B.
    start : array of int, shape (N,)
        The state in which each arm starts an episode.
    low, high : float
        The declared range of every reward.
    feedback : {'bandit', 'active', 'full'}
        Which rewards are revealed after an episode: those of visited pairs (state, action), of visited active pairs, or
        all of them (privileged: no real programme sees them).
    passive_zero : bool
        Whether passive arms are declared to pay nothing.
    pooled_rewards : bool
        Whether arms of one group are declared to be paid alike.
    groups, support, sizes, state_names
        As in `Arms`, or None.

    Examples
    --------
    >>> import rmab
    >>> rmab.task("cpap").view()
    View(20 arms, 3 states, budget 10, 50 steps, 50 episodes, bandit feedback)
    """

    arms: int
    states: int
    horizon: int
    episodes: int
    budget: int
    start: IntArray
    low: float
    high: float
    feedback: FeedbackMode
    passive_zero: bool
    pooled_rewards: bool
    groups: IntArray | None
    support: BoolArray | None
    sizes: IntArray | None
    state_names: tuple[str, ...] | None

    def __repr__(self) -> str:
        sizes = f"{many(self.arms, 'arm')}, {many(self.states, 'state')}, budget {self.budget}, {many(self.horizon, 'step')}"
        return f"View({sizes}, {many(self.episodes, 'episode')}, {self.feedback} feedback)"
