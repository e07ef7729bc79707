"""Problems: arms, start states, budget and horizon (Xiong & Li 2024, Section 3).

Indices in all modules: arm n < N, state s < S, action a in {0 passive, 1 active}, step h < H, phase k < K. Every object is
validated at construction and cannot change afterwards: its arrays are read-only copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

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
    as_integer,
    cached_property,
    check_magnitude,
    check_memory,
    expect,
    frozen,
)
from rmab.errors import ModelError
from rmab.model import costs, time
from rmab.model.arms import Arms


@dataclass(frozen=True, eq=False)
class Problem(ReadOnly, Stored):
    """Arms, their start states, the budget of each step, and the number of steps in an episode.

    Kernels, rewards and the budget may depend on the time; `rmab.model.time` documents all shapes.

    Parameters
    ----------
    arms : Arms
        The N arms.
    start : int or array_like, shape (N,) or (N, S)
        The state in which each arm starts an episode, or one state for all arms. Or the probabilities of all states, for
        each arm: then each episode draws its start states.
    budget : int or array_like of int, shape (H,)
        The hard budget B, between 0 and N: at each step at most B arms are active. Or the budget of each step.
    horizon : int
        Number H of steps in an episode, at least 1.
    phase_of : array_like of int, shape (H,), optional
        The phase of each step, 0..K-1, if kernels or rewards depend on the time. By default there is one phase, or one per
        step if the arms have H phases.
    discount : float, default 1
        Above 0 and at most 1: a reward at step h is multiplied by discount ** h, in plans, bounds, simulations and regret.
    exact : bool, default False
        Whether exactly B arms are active at each step, instead of at most B, as often in the literature on Whittle's index.
        Costs must then be equal, and the budget a multiple of them.
    cost : float or array_like of float, shape (N,), (N, S) or (N, K, S), optional
        Cost of one activation of each arm, above 0; or in each of its states; or in each phase and state. The costs of the
        active arms then sum to at most the budget at each step, which may be any amount. By default every activation costs
        1.

    Notes
    -----
    In a handwritten file, `"normalise": true` divides the rows of the kernels by their sums, as in `Arms`.

    Raises
    ------
    ModelError
        If an argument is malformed or out of range.

    Examples
    --------
    >>> import rmab
    >>> kernel = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]
    >>> rmab.Problem(rmab.Arms.identical(kernel, 5), start=0, budget=2, horizon=10)
    Problem(Arms(5 arms, 2 states, 1 group), budget 2, horizon 10)

    A day of two phases, in which the afternoon allows more:

    >>> still = [[[1.0, 0.0], [0.8, 0.2]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> halves = rmab.Arms.identical([kernel, still], 5)
    >>> rmab.Problem(halves, 0, budget=[1, 1, 3, 3], horizon=4, phase_of=[0, 0, 1, 1])
    Problem(Arms(5 arms, 2 states, 1 group, 2 phases), budget 1 to 3, horizon 4)

    Chargers of 22 and 50 kW below a limit of 100 kW:

    >>> rmab.Problem(rmab.Arms.identical(kernel, 5), 0, budget=100, horizon=10, cost=[22, 22, 22, 50, 50])
    Problem(Arms(5 arms, 2 states, 1 group), budget 100 at costs 22 to 50, horizon 10)
    """

    arms: Arms
    start: IntArray | FloatArray
    budget: time.Limit
    horizon: int
    phase_of: IntArray
    discount: float
    exact: bool
    cost: FloatArray | None

    OF_ARMS = frozenset({"state_names", "groups", "support", "sizes"})
    FORMAT = Format(
        "rmab problem",
        2,  # version 1 had one kernel per arm; it can still be read
        {"kernels", "start", "budget", "horizon"},
        OF_ARMS | {"phase_of", "discount", "normalise", "exact", "cost"},
        upgrades={1: dict},
    )

    def __init__(
        self,
        arms: Arms,
        start: ArrayLike,
        budget: ArrayLike,
        horizon: int,
        phase_of: ArrayLike | None = None,
        *,
        discount: float = 1.0,
        exact: bool = False,
        cost: ArrayLike | None = None,
    ) -> None:
        if not isinstance(arms, Arms):
            raise ModelError(f"arms must be rmab.Arms, got {type(arms).__name__}; build them with rmab.Arms(kernels)")
        steps = as_integer(horizon, "horizon")
        if steps < 1:
            raise ModelError(f"horizon must be at least 1, got {steps}")
        check_memory(f"an episode of {arms.count} arms and {steps} steps", (5.0 * arms.count + 16.0) * steps)
        phases = time.checked_phases(phase_of, arms.phases, steps)
        every = max(arms.phases, int(phases.max()) + 1)
        charged = costs.checked_cost(cost, arms.real_states, arms.states, every)
        limit = time.checked_limits(budget, arms.count, steps, charged)
        costs.check_exact(exact, charged, limit, arms.count)
        begin, counts = time.checked_start(start, arms.real_states, arms.states), time.checked_discount(discount)
        self._set(arms=arms.in_phases(every), start=begin, budget=limit, horizon=steps)
        self._set(phase_of=phases, discount=counts, exact=bool(exact), cost=charged)

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Return a problem with these fields, which need no check, and with cached properties that are known."""
        problem = cls.__new__(cls)
        problem._set(**fields)
        return problem

    @property
    def phases(self) -> int:
        """K, the number of phases."""
        return self.arms.phases

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

    def costs_at(self, step: int, states: IntArray) -> FloatArray | None:
        """(N,) cost of activating each arm at a step in these states (N,); None if all costs are equal."""
        return None if self.weights is None else costs.costs_in(self.weights, self.phase_of[step], states)

    def keeps_budget(self, active: BoolArray, step: int, states: IntArray) -> bool:
        """Return whether the active arms (N,) are within the budget of a step in these states (N,)."""
        if (now := self.costs_at(step, states)) is not None:
            return bool(active @ now <= self.budgets[step] * (1.0 + costs.ROUNDING))
        count = int(np.count_nonzero(active))
        return bool(count == self.slots[step] if self.exact else count <= self.slots[step])

    @cached_property
    def discounts(self) -> FloatArray:
        """(H,) discount factor of each step."""
        return frozen(np.power(self.discount, np.arange(self.horizon), dtype=np.float64))

    @property
    def start_masses(self) -> FloatArray:
        """(N, S) probabilities of the start states."""
        return time.masses_of(self.start, self.arms.states)

    def from_step(self, step: int, start: ArrayLike) -> Problem:
        """Return the rest of an episode from a step on, with these start states or probabilities.

        A discount counts from that step on.

        Examples
        --------
        >>> import rmab
        >>> whole = rmab.make_task("cpap").problem
        >>> whole.from_step(30, start=1)
        Problem(Arms(20 arms, 3 states), budget 10, horizon 20)
        """
        return self.window(step, self.horizon - as_integer(step, "step"), start)

    def window(self, step: int, length: int, start: ArrayLike | None = None) -> Problem:
        """Return the problem of `length` steps from a step on, in a cycle: the first step follows the last, as in a day.

        Parameters
        ----------
        step : int
            The first step of the window, 0..H-1.
        length : int
            Number of steps; more than H repeat the cycle.
        start : array_like, shape (N,) or (N, S), optional
            States of the arms at that step, or probabilities of all states; by default those of this problem.

        Returns
        -------
        Problem
            With the budgets and phases of these steps. Rewards have the same shape as before.

        Examples
        --------
        >>> import numpy as np, rmab
        >>> arms = rmab.Arms(np.full((2, 2, 2, 2), 0.5))
        >>> day = rmab.Problem(arms, 0, budget=[2, 2, 1, 0], horizon=4, phase_of=[0, 0, 1, 1])
        >>> night = day.window(3, 3)
        >>> night.budgets, night.phase_of
        (array([0, 2, 2]), array([1, 0, 0]))
        """
        first, size = as_integer(step, "step"), as_integer(length, "length")
        if not 0 <= first < self.horizon:
            raise ModelError(f"step must be in 0..{self.horizon - 1}, got {first}")
        if size < 1:
            raise ModelError(f"length must be at least 1, got {size}")
        check_memory(f"a window of {size} steps", 32.0 * size)
        steps = (first + np.arange(size)) % self.horizon
        now = self.start if start is None else start
        rest: dict[str, Any] = {"discount": self.discount, "exact": self.exact, "cost": self.cost}
        return Problem(self.arms, now, self.budgets[steps], size, self.phase_of[steps], **rest)

    def to_fields(self) -> dict[str, Any]:
        """Return the problem as plain arrays and numbers by name, for `from_fields`."""
        return {
            "start": self.start,
            "budget": self.budget,
            "horizon": self.horizon,
            **self.arms.given(),
            "phase_of": self.phase_of if self.phases > 1 else None,
            "discount": self.discount,
            **costs.budget_fields(self),
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build a problem from plain arrays and numbers by name; raise ModelError if they do not form one."""
        known = {name: fields.get(name) for name in cls.OF_ARMS}
        arms = Arms(fields["kernels"], **known, normalise=fields.get("normalise", False))
        rest = {name: fields[name] for name in ("phase_of", "discount", "exact", "cost") if name in fields}
        return cls(arms, fields["start"], fields["budget"], fields["horizon"], **rest)

    def __eq__(self, other: object) -> bool:
        """Return whether arms, start, budget, costs, horizon, phases and discount are equal."""
        if not isinstance(other, Problem):
            return NotImplemented
        compared = ("horizon", "start", "budget", "phase_of", "discount", "exact", "cost")
        return all(np.array_equal(getattr(self, one), getattr(other, one)) for one in compared) and self.arms == other.arms

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        discount = f", discount {self.discount:g}" if self.discount < 1 else ""
        budget = time.describe_budget(self.budget, exact=self.exact, cost=self.cost)
        return f"Problem({self.arms!r}, {budget}, horizon {self.horizon}{discount})"


def checked_reward(reward: ArrayLike, problem: Problem) -> FloatArray:
    """Return the reward (N, S, 2) or (N, K, S, 2) as finite numbers by cell, (N * K, S, 2), or raise ModelError.

    A reward without phases holds in all phases.
    """
    expect(problem, Problem, "problem", "; for a task, use task.problem")
    table, arms, phases = time.bare(as_floats(reward, "reward"), 4), problem.arms, problem.phases
    plain, timed = time.shape_of(1, arms.count, arms.states, 2), time.shape_of(phases, arms.count, arms.states, 2)
    if table.shape not in (plain, timed):
        hint = ""
        if table.ndim == 4 and phases == 1:
            hint = "; if it depends on the time, the problem needs phase_of, for example phase_of=range(horizon)"
        wanted = f"{time.words_of(phases, 'N', 'S', '2')} = {timed}"
        raise ModelError(f"reward must have shape {wanted}, got {table.shape}{hint}")
    for at in np.argwhere(~np.isfinite(table))[:1]:
        raise ModelError(f"reward: {time.place(at, table.ndim - 2)} is {table[tuple(at)]}, not a finite number")
    size = arms.count * problem.horizon
    check_magnitude(table, "reward", size, f" times {arms.count} arms times {problem.horizon} steps")
    return np.repeat(table, phases, axis=0) if table.ndim == 3 and phases > 1 else time.cells(table, phases)
