"""Views: what a learner may know of a task, and nothing else (Xiong & Li 2024, Section 3)."""

from dataclasses import dataclass
from typing import Literal

from rmab.common.arrays import BoolArray, IntArray, ReadOnly

__all__ = ["FeedbackMode", "View"]

FeedbackMode = Literal["bandit", "active", "full"]


@dataclass(frozen=True, eq=False)
class View(ReadOnly):
    """What a learner may know of a task before it starts, and nothing else: no kernels, no rewards.

    low, high       declared range of every reward.
    feedback        'bandit' (rewards of visited pairs), 'active' (of visited pairs with a=1), 'full' (all; privileged).
    passive_zero    whether passive rewards are declared to be zero, always.
    pooled_rewards  whether the rewards of the arms of one group are declared to be equal.
    The rest is named as in Problem and Arms.
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
