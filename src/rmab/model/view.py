"""Views: what a learner may know of a task, and nothing else (Xiong & Li 2024, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rmab.common.arrays import BoolArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_integer, as_states
from rmab.common.memory import check_memory
from rmab.common.words import many
from rmab.errors import ModelError
from rmab.model.arm_checks import checked_names
from rmab.model.rewards import checked_range

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

    Raises
    ------
    ModelError
        Where a view is not one of any task; the message names what and where.

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

    def __post_init__(self) -> None:
        """Check every field as a problem's are, and make the arrays read-only copies."""
        try:
            checked = _checked(self)
        except ModelError as error:
            raise ModelError(f"view: {error}") from error
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def real_states(self) -> IntArray:
        """(N,) the number of states of each arm without padding."""
        return np.full(self.arms, self.states) if self.sizes is None else self.sizes

    def __repr__(self) -> str:
        sizes = f"{many(self.arms, 'arm')}, {many(self.states, 'state')}, budget {self.budget}, {many(self.horizon, 'step')}"
        return f"View({sizes}, {many(self.episodes, 'episode')}, {self.feedback} feedback)"


def _checked(view: View) -> dict[str, Any]:
    """Return the fields as they should be, or raise ModelError."""
    sizes = {name: as_integer(getattr(view, name), name) for name in ("arms", "states", "horizon", "episodes", "budget")}
    for name in ("arms", "states", "horizon", "episodes"):
        if sizes[name] < 1:
            raise ModelError(f"{name} must be at least 1, got {sizes[name]}")
    if not 0 <= sizes["budget"] <= sizes["arms"]:
        raise ModelError(f"budget must be in 0..{sizes['arms']} (the number of arms), got {sizes['budget']}")
    check_memory(f"an episode of {sizes['arms']} arms and {sizes['horizon']} steps", 5.0 * sizes["arms"] * sizes["horizon"])
    check_memory(f"a view of {sizes['arms']} arms and {sizes['states']} states", 8.0 * sizes["arms"] * sizes["states"])
    low, high = checked_range(view.low, view.high)
    if not isinstance(view.feedback, str) or view.feedback not in get_args(FeedbackMode):
        raise ModelError(f"feedback must be one of {', '.join(get_args(FeedbackMode))}, got {view.feedback!r:.40}")
    for name in ("passive_zero", "pooled_rewards"):
        if not isinstance(getattr(view, name), bool | np.bool_):
            raise ModelError(f"{name} must be True or False, got {getattr(view, name)!r:.40}")
    if view.passive_zero and not low <= 0.0 <= high:
        raise ModelError(f"passive rewards are declared zero, which is outside [{low:g}, {high:g}]")
    labels = _whole(view.groups, "groups", (sizes["arms"],))
    if labels is not None and np.unique(labels).tolist() != list(range(int(labels.max()) + 1)):
        raise ModelError("groups must be labels 0, 1, ... with none left out")
    if view.pooled_rewards and labels is None:
        raise ModelError("pooled_rewards needs groups")
    real = _whole(view.sizes, "sizes", (sizes["arms"],), 1, sizes["states"])
    every = np.full(sizes["arms"], sizes["states"]) if real is None else real
    support = _support(view.support, every, sizes["states"])
    if labels is not None:
        first = np.unique(labels, return_index=True)[1][labels]
        alike = every == every[first]
        if support is not None:
            alike &= (support == support[first]).all(axis=(1, 2, 3))
        for n in np.flatnonzero(~alike)[:1]:
            raise ModelError(f"groups: arms {first[n]} and {n} are of one group, but differ in size or support")
    return {
        **sizes,
        "start": as_states(view.start, every),
        "low": low,
        "high": high,
        "passive_zero": bool(view.passive_zero),
        "pooled_rewards": bool(view.pooled_rewards),
        "groups": labels,
        "sizes": real,
        "support": support,
        "state_names": checked_names(view.state_names, sizes["states"]),
    }


def _whole(values: Any, name: str, shape: tuple[int, ...], low: int = 0, high: int = 2**53) -> IntArray | None:
    """Return whole numbers of this shape within the limits, or None for None."""
    if values is None:
        return None
    given = as_floats(values, name)
    if given.shape != shape or not ((given >= low) & (given <= high) & (given == np.floor(given))).all():
        raise ModelError(f"{name} must be {shape[0]} whole numbers from {low} on, one per arm")
    return frozen(given.astype(np.int64))


def _support(support: Any, sizes: IntArray, states: int) -> BoolArray | None:
    """Return (N, S, 2, S) bools in which every row of a real state has a real successor, or None for None."""
    if support is None:
        return None
    given, shape = as_floats(support, "support"), (sizes.size, states, 2, states)
    if given.shape != shape or not np.isin(given, (0, 1)).all():
        raise ModelError(f"support must be True or False, of shape (N, S, 2, S) = {shape}, got {given.shape}")
    real = np.arange(states) < sizes[:, np.newaxis]  # (N, S)
    possible = (given.astype(bool) & real[:, np.newaxis, np.newaxis]).any(axis=3)
    for n, s, a in np.argwhere(real[..., np.newaxis] & ~possible)[:1]:
        raise ModelError(f"support: arm {n}, state {s}, action {a} has no possible successor")
    return frozen(given.astype(bool))
