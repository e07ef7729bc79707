"""Views: what a learner may know of a task (Xiong & Li 2024, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass, fields as fields_of, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    BoolArray,
    FloatArray,
    Format,
    IntArray,
    ReadOnly,
    Stored,
    as_floats,
    as_indices,
    as_integer,
    cached_property,
    check_memory,
    frozen,
)
from rmab.errors import ModelError, many
from rmab.model import costs, time
from rmab.model.adversary import checked_range
from rmab.model.arm_checks import checked_names
from rmab.model.arms import Arms
from rmab.model.problem import Problem

FeedbackMode = Literal["bandit", "active", "full"]


@dataclass(frozen=True, eq=False)
class View(ReadOnly, Stored):
    """What a learner may know of a task in advance: no kernels and no rewards.

    `Task.view` builds it. A live programme fills it in.

    Parameters
    ----------
    arms, states, horizon, episodes : int
        Sizes N, S, H and T.
    budget : int or array of int, shape (H,)
        The budget B, or that of each step.
    start : array of int, shape (N,), or of float, shape (N, S)
        The state in which each arm starts an episode, or the probabilities of all states.
    low, high : float
        Declared range of the rewards.
    feedback : {'bandit', 'active', 'full'}
        Which rewards are revealed after an episode: those of visited pairs (state, action), of visited active pairs, or
        all of them (privileged: no real programme observes them).
    passive_zero : bool
        Whether passive arms are declared to have reward 0.
    pooled_rewards : bool
        Whether arms of one group are declared to have equal rewards.
    groups, support, sizes, state_names
        As in `Arms`, or None. If several arms share a group, `support` has one table per group, (G, S, 2, S) or
        (G, K, S, 2, S); one per arm is accepted, too.
    phase_of : array of int, shape (H,), optional
        The phase of each step, as in `Problem`. Dynamics and rewards are learned separately for each phase.
    phases : int, optional
        K, the number of phases; 0, the default, means the number in `phase_of`.
    discount : float, default 1
        As in `Problem`. Most learners do not support discounting, and raise an error if it is less than 1.
    exact : bool, default False
    cost : array of float, shape (N,), (N, S) or (N, K, S), optional
        As in `Problem`.

    Raises
    ------
    ModelError
        If a field is wrong; the message names the field and the entry.

    Examples
    --------
    >>> import rmab
    >>> rmab.make_task("cpap").view()
    View(20 arms, 3 states, budget 10, 50 steps, 50 episodes, bandit feedback)

    It can be stored, for a learner in another process:

    >>> rmab.View.from_bytes(rmab.make_task("cpap").view().to_bytes(".json"))
    View(20 arms, 3 states, budget 10, 50 steps, 50 episodes, bandit feedback)
    """

    arms: int
    states: int
    horizon: int
    episodes: int
    budget: time.Limit
    start: IntArray | FloatArray
    low: float
    high: float
    feedback: FeedbackMode
    passive_zero: bool
    pooled_rewards: bool
    groups: IntArray | None
    support: BoolArray | None
    sizes: IntArray | None
    state_names: tuple[str, ...] | None
    phase_of: IntArray | None = None
    phases: int = 0
    discount: float = 1.0
    exact: bool = False
    cost: FloatArray | None = None

    FORMAT = Format(
        "rmab view",
        2,  # version 1 had the support by arm; it can still be read
        {"arms", "states", "horizon", "episodes", "budget", "start", "low", "high", "feedback"}
        | {"passive_zero", "pooled_rewards"},
        {"groups", "support", "sizes", "state_names", "phase_of", "phases", "discount", "exact", "cost"},
        upgrades={1: dict},
    )

    def __post_init__(self) -> None:
        """Validate every field like those of a problem, and copy the arrays as read-only."""
        try:
            self._check_sizes()
            self._check_rewards()
            self._check_structure()
            self._set(start=time.checked_start(self.start, self.real_states, self.states, one_for_all=False))
        except ModelError as error:
            raise ModelError(f"view: {error}") from error

    def _check_sizes(self) -> None:
        for name in ("arms", "states", "horizon", "episodes"):
            self._set(**{name: as_integer(getattr(self, name), name)})
            if getattr(self, name) < 1:
                raise ModelError(f"{name} must be at least 1, got {getattr(self, name)}")
        check_memory(f"an episode of {self.arms} arms and {self.horizon} steps", (5.0 * self.arms + 16.0) * self.horizon)
        check_memory(f"a view of {self.arms} arms and {self.states} states", 8.0 * self.arms * self.states)
        phase_of, phases = _phases(self, self.horizon)
        self._set(phase_of=phase_of, phases=phases, discount=time.checked_discount(self.discount))
        cost = costs.checked_cost(self.cost, np.full(self.arms, self.states), self.states, phases)
        budget = time.checked_limits(self.budget, self.arms, self.horizon, cost)
        costs.check_exact(self.exact, cost, budget, self.arms)
        self._set(budget=budget, cost=cost, exact=bool(self.exact))

    def _check_rewards(self) -> None:
        low, high = checked_range(self.low, self.high)
        self._set(low=low, high=high)
        if not isinstance(self.feedback, str) or self.feedback not in get_args(FeedbackMode):
            raise ModelError(f"feedback must be one of {', '.join(get_args(FeedbackMode))}, got {self.feedback!r:.40}")
        for name in ("passive_zero", "pooled_rewards"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ModelError(f"{name} must be True or False, got {getattr(self, name)!r:.40}")
            self._set(**{name: bool(getattr(self, name))})
        if self.passive_zero and not low <= 0.0 <= high:
            raise ModelError(f"passive rewards are declared zero, which is outside [{low:g}, {high:g}]")
        if self.pooled_rewards and self.groups is None:
            raise ModelError("pooled_rewards needs groups")

    def _check_structure(self) -> None:
        if self.groups is not None:
            self._set(groups=as_indices(self.groups, "groups", (self.arms,), self.arms))
        if self.sizes is not None:
            self._set(sizes=as_indices(self.sizes, "sizes", (self.arms,), self.states + 1, 1))
        groups = self.arms if self.groups is None else np.unique(self.groups).size
        if self.groups is not None and groups <= self.groups.max():
            raise ModelError("groups must be labels 0, 1, ... without gaps")
        time.check_phases(self.phases, self.arms, groups, self.states)
        self._set(state_names=checked_names(self.state_names, self.states))
        member, every = np.unique(self.group_of, return_index=True)[1], self.real_states
        same = every == every[member[self.group_of]]
        if self.support is not None:
            given = as_floats(self.support, "support")
            rows = self.arms if given.shape[:1] == (self.arms,) else groups
            support = _support(given, every if rows == self.arms else every[member], self.states, self.phases)
            if groups < rows:
                same &= (support == support[member[self.group_of]]).reshape(self.arms, -1).all(axis=1)
                support = support[member]
            self._set(support=frozen(support))
        for n in np.flatnonzero(~same)[:1]:
            raise ModelError(
                f"groups: arms {member[self.group_of[n]]} and {n} are in one group, but differ in size or support"
            )

    @property
    def group_of(self) -> IntArray:
        """(N,) group of each arm: `groups`, or 0..N-1 if none were declared."""
        return np.arange(self.arms) if self.groups is None else self.groups

    @property
    def support_of(self) -> IntArray:
        """(N,) row of `support` for each arm: that of its group if there are fewer groups than arms."""
        return np.arange(self.arms) if self.support is None or len(self.support) == self.arms else self.group_of

    @cached_property
    def steps(self) -> IntArray:
        """(H,) phase of each step; 0 if there is only one."""
        return frozen(np.zeros(self.horizon, dtype=np.int64)) if self.phase_of is None else self.phase_of

    @cached_property
    def budgets(self) -> IntArray | FloatArray:
        """(H,) budget of each step."""
        return time.limits_of(self.budget, self.horizon)

    @cached_property
    def slots(self) -> IntArray:
        """(H,) number of arms that may be active at each step if all cost the same; else the number of the cheapest ones."""
        return costs.slots_of(self.budgets, self.cost)

    @cached_property
    def weights(self) -> FloatArray | None:
        """Costs, (N,), (N, S) or (N, K, S); None if all are equal, so that a budget is a number of arms (`slots`)."""
        return costs.weights_of(self.cost)

    @property
    def real_states(self) -> IntArray:
        """(N,) number of states of each arm, without padding."""
        return np.full(self.arms, self.states) if self.sizes is None else self.sizes

    @property
    def start_masses(self) -> FloatArray:
        """(N, S) probabilities of the start states."""
        return time.masses_of(self.start, self.states)

    def situated(self, start: ArrayLike | None = None, budget: ArrayLike | None = None, horizon: int | None = None) -> View:
        """Return the view with other start states, another budget, or a shorter horizon; None keeps the present value.

        Examples
        --------
        >>> import rmab
        >>> rmab.make_task("cpap").view().situated(budget=3, horizon=10)
        View(20 arms, 3 states, budget 3, 10 steps, 50 episodes, bandit feedback)
        """
        if start is None and budget is None and horizon is None:
            return self
        steps = self.horizon if horizon is None else as_integer(horizon, "horizon")
        if not 1 <= steps <= self.horizon:
            raise ModelError(f"horizon must be in 1..{self.horizon} (the horizon of the view), got {steps}")
        present = self.budget[:steps] if isinstance(self.budget, np.ndarray) else self.budget
        changes: dict[str, Any] = {"horizon": steps, "budget": present if budget is None else budget}
        if start is not None:
            changes["start"] = time.checked_start(start, self.real_states, self.states)
        phase_of = None if self.phase_of is None else self.phase_of[:steps]
        changed = replace(self, **changes, phase_of=phase_of)
        same = all(np.array_equal(getattr(changed, one), getattr(self, one)) for one in ("horizon", "budgets", "start"))
        return self if same else changed

    def problem(self, arms: Arms) -> Problem:
        """Return the problem of this view with these arms, which need no check, and no discount."""
        return Problem.trusted(
            arms=arms,
            start=self.start,
            budget=self.budget,
            horizon=self.horizon,
            phase_of=self.steps,
            discount=1.0,
            exact=self.exact,
            cost=self.cost,
            budgets=self.budgets,
            slots=self.slots,
            weights=self.weights,
        )

    def to_fields(self) -> dict[str, Any]:
        """Return all declared fields by name."""
        plain = {one.name: getattr(self, one.name) for one in fields_of(self) if one.name not in ("exact", "cost")}
        return {**plain, **costs.budget_fields(self)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build a view from what `to_fields` returns; raise ModelError if it is not valid."""
        return cls(**{"groups": None, "support": None, "sizes": None, "state_names": None, **fields})

    def __repr__(self) -> str:
        budget = time.describe_budget(self.budget, exact=self.exact, cost=self.cost)
        sizes = f"{many(self.arms, 'arm')}, {many(self.states, 'state')}, {budget}"
        steps = many(self.horizon, "step") + (f" of {self.phases} phases" if self.phases > 1 else "")
        return f"View({sizes}, {steps}, {many(self.episodes, 'episode')}, {self.feedback} feedback)"


def _phases(view: View, horizon: int) -> tuple[IntArray | None, int]:
    """Return the phase of each step, None if there is only one, and the number of phases."""
    phase_of = None if view.phase_of is None else time.checked_phases(view.phase_of, 1, horizon)
    used = 1 if phase_of is None else int(phase_of.max()) + 1
    phases = as_integer(view.phases, "phases") or used
    if phases < used or (phase_of is None and phases > 1):
        raise ModelError(f"phases: phase_of has {used}, got {phases}")
    if phases > time.MOST_PHASES:
        raise ModelError(f"phases must be at most {time.MOST_PHASES}, got {phases}")
    return phase_of if phases > 1 else None, phases


def _support(support: Any, sizes: IntArray, states: int, phases: int) -> BoolArray:
    """Return the support (N, [K,] S, 2, S) as bools; raise ModelError if a state has no possible successor."""
    given, shape = as_floats(support, "support"), time.shape_of(phases, sizes.size, states, 2, states)
    if given.shape != shape or not np.isin(given, (0, 1)).all():
        wanted = f"{time.words_of(phases, 'N', 'S', '2', 'S')} = {shape}"
        raise ModelError(f"support must be True or False, of shape {wanted}, got {given.shape}")
    allowed = time.cells(given.astype(bool), phases)
    real = np.repeat(np.arange(states) < sizes[:, np.newaxis], phases, axis=0)  # (N * K, S)
    possible = (allowed & real[:, np.newaxis, np.newaxis]).any(axis=3)
    for at in np.argwhere(time.split_cells(real[..., np.newaxis] & ~possible, phases))[:1]:
        raise ModelError(f"support: {time.place(at, phases)} has no possible successor")
    return given.astype(bool)
