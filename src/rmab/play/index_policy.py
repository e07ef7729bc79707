"""Index policies: a table with one number per arm, step and state, which compiled code runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import (
    BoolArray,
    FloatArray,
    Format,
    IntArray,
    Stored,
    as_floats,
    as_mask,
    cached_property,
    check_rng,
    frozen,
)
from rmab.errors import PolicyError, many, raise_as, wrong_shape
from rmab.model import (
    Limit,
    Problem,
    View,
    checked_cost,
    checked_limits,
    costs_in,
    describe_budget,
    is_list,
    limits_of,
    rows_of,
    slots_of,
    weights_of,
)
from rmab.play.compiled.selection import select, select_within
from rmab.play.policy import Rounding, Rule, check_table, checked_states

TINY = float(np.finfo(float).tiny)
FREE = 1e-6  # relative to the largest index: a smaller negative index counts as 0, the accuracy of certified plans


@dataclass(frozen=True, eq=False)
class IndexPolicy(Stored):
    """Policy that activates the arms with the highest indices, up to the budget; ties are broken at random.

    Parameters
    ----------
    table : array_like of float, shape (N, H, S) or (N, S)
        Index of arm n in state s at step h. A table (N, S) holds at each step of any horizon.
    budget : int or array_like of int, shape (H,)
        Maximum number of active arms at each step; with costs, maximum total cost of the active arms.
    rule : {'fill', 'at-most', 'auto'}, default 'fill'
        'fill' always uses the full budget, even on arms that it does not help. 'at-most' leaves arms with index 0 or less
        passive. 'auto' leaves arms with a negative index passive, beyond rounding errors: if the index is the value of
        activation, it does no harm to fill the budget, and uses free activations.
    rounding : {'top', 'dependent'}, default 'top'
        'top' takes the highest indices. 'dependent' takes the table as probabilities, scaled down if they sum to more
        than the budget, and activates arm n with probability ``table[n, h, s]``. With 'fill', slots that sampling leaves
        free go to the highest indices, so only 'at-most' has exactly these probabilities.
    cost : array_like of float, shape (N,), (N, S) or (N, H, S), optional
        Cost of activating each arm, or in each state, or at each step and state; 1 by default. With costs, 'top' takes the
        highest indices that still fit: an arm that does not fit is skipped, and the next ones are tried. So an index should
        be the value of an activation per unit of cost. With 'dependent', all arms but one have exactly their probabilities.

    Notes
    -----
    Compared with divisible arms, 'top' loses at each step at most the value of the first arm that does not fit: the greedy
    rule for knapsacks (Dantzig 1957).

    Raises
    ------
    PolicyError
        If an argument is malformed; the message names the first wrong entry.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> policy = rmab.IndexPolicy([[0.1, 0.9], [0.5, 0.2]], budget=1)
    >>> policy
    IndexPolicy(2 arms, any step, 2 states, budget 1, rule 'fill', rounding 'top')
    >>> policy.act(0, np.array([0, 0]), np.random.default_rng(0))
    array([False,  True])

    It can be saved to a file and loaded again, for example by another process.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     policy.save(pathlib.Path(folder) / "calls.npz")
    ...     rmab.IndexPolicy.load(pathlib.Path(folder) / "calls.npz")
    IndexPolicy(2 arms, any step, 2 states, budget 1, rule 'fill', rounding 'top')
    """

    table: FloatArray
    budget: Limit
    rule: Rule = "fill"
    rounding: Rounding = "top"
    cost: FloatArray | None = None

    FORMAT = Format("rmab policy", 1, {"table", "budget"}, {"rule", "rounding", "cost"})

    def __init__(
        self,
        table: ArrayLike,
        budget: ArrayLike,
        *,
        rule: Rule = "fill",
        rounding: Rounding = "top",
        cost: ArrayLike | None = None,
    ) -> None:
        with raise_as(PolicyError):
            given = as_floats(table, "table")
            if given.ndim not in (2, 3) or 0 in given.shape:
                raise wrong_shape(PolicyError, "table", "(N, H, S) or (N, S)", given.shape)
            several = as_floats(budget, "budget") if is_list(budget) else budget
            steps = given.shape[1] if given.ndim == 3 else np.size(several)
            costs = checked_cost(cost, np.full(len(given), given.shape[-1]), given.shape[-1], steps, "step")
            limit = checked_limits(several, len(given), steps, costs)
        if not isinstance(rule, str) or rule not in get_args(Rule):
            raise PolicyError(f"rule must be 'fill', 'at-most' or 'auto', got {rule!r:.40}", field="rule")
        if not isinstance(rounding, str) or rounding not in get_args(Rounding):
            raise PolicyError(f"rounding must be 'top' or 'dependent', got {rounding!r:.40}", field="rounding")
        check_table(given, rounding)
        self._set(_steps_first(given), limit, rule, rounding, costs)

    @classmethod
    def of(cls, model: Problem | View, table: ArrayLike, *, rule: Rule = "fill", rounding: Rounding = "top") -> Self:
        """Return the policy of a table with the budget and costs of a problem or a view; an exact budget is always used.

        Examples
        --------
        >>> import rmab
        >>> arms = rmab.Arms.identical([[[1.0], [1.0]]], 3)
        >>> rmab.IndexPolicy.of(rmab.Problem(arms, 0, 2, 1, exact=True), [[1.0], [-1.0], [0.0]], rule="auto").rule
        'fill'
        """
        cost = model.cost
        if cost is not None and cost.ndim == 3:
            cost, given = cost[:, model.phase_of], np.asarray(table)
            table = np.broadcast_to(given[:, np.newaxis], cost.shape) if given.ndim == 2 else given
        return cls(table, model.budget, rule="fill" if model.exact else rule, rounding=rounding, cost=cost)

    @classmethod
    def of_steps(
        cls,
        table: FloatArray,
        budget: Limit,
        *,
        rule: Rule = "fill",
        rounding: Rounding = "top",
        cost: FloatArray | None = None,
    ) -> Self:
        """Return the policy of a table with steps first, (H, N, S), without a copy; the table becomes read-only.

        The caller has checked the arguments; only finiteness of the table is checked.
        """
        if not np.isfinite(table.sum()):
            check_table(table.transpose(1, 0, 2), rounding)
        policy = cls.__new__(cls)
        policy._set(frozen(table).transpose(1, 0, 2), budget, rule, rounding, cost)
        return policy

    def with_table(self, table: ArrayLike) -> Self:
        """Return the policy with another table and the same budget, costs and rules, for example to add noise.

        Examples
        --------
        >>> import rmab
        >>> careful = rmab.IndexPolicy([[0.1, -0.9], [0.0, 0.2]], budget=1, rule="auto")
        >>> careful.with_table(careful.table + [[0.01, 0.0], [0.0, 0.0]]).rule
        'auto'
        """
        return type(self)(table, self.budget, rule=self.rule, rounding=self.rounding, cost=self.cost)

    def _set(self, *values: Any) -> None:
        for name, value in zip(("table", "budget", "rule", "rounding", "cost"), values, strict=True):
            object.__setattr__(self, name, value)

    def act(
        self,
        h: int,
        states: IntArray,
        rng: np.random.Generator,
        *,
        budget: float | None = None,
        available: ArrayLike | None = None,
    ) -> BoolArray:
        """Return which arms to activate now; a controller calls this at each step.

        Threads may share a policy. A call takes a few microseconds (benchmarks/REPORT.md has its latency), except for the
        first one of a process, which loads compiled code (see `rmab warm`).

        Parameters
        ----------
        h : int
            The step, from 0.
        states : array of int, shape (N,)
            Current state of each arm.
        rng : numpy.random.Generator
            Source of random numbers, for ties and for 'dependent' rounding.
        budget : float, optional
            Current budget, if it differs from the planned one, for example after a limit was lowered.
        available : array_like of bool, shape (N,), optional
            Which arms can be activated now; all by default.

        Returns
        -------
        array of bool, shape (N,)
            At most as many True as the budget of the step.

        Raises
        ------
        PolicyError
            If the table has no such step, or an arm has no such state.

        Examples
        --------
        >>> import numpy as np, rmab
        >>> policy = rmab.IndexPolicy([[3.0], [2.0], [1.0]], budget=2)
        >>> rng, states = np.random.default_rng(0), np.zeros(3, dtype=int)
        >>> policy.act(0, states, rng, budget=1, available=[False, True, True])
        array([False,  True, False])
        """
        now = checked_states(h, states, len(self.table), self._steps, self.table.shape[-1])
        check_rng(rng)
        with raise_as(PolicyError):
            limit = None if budget is None else checked_limits(budget, len(self.table), 1, self.cost)
            there = None if available is None else as_mask(available, "available", len(self.table))
        return self.choose(h, now, rng.integers(0, 2**64, size=4, dtype=np.uint64), limit, there)

    def choose(
        self,
        h: int,
        states: IntArray,
        stream: NDArray[np.uint64],
        budget: Limit | None = None,
        available: BoolArray | None = None,
    ) -> BoolArray:
        """Do the work of `act` with checked arguments; the stream (4,) advances, as in the simulator."""
        arms = np.arange(len(self.table)) if available is None else np.flatnonzero(available)
        now = states[arms]
        index = self.table[arms, now] if self.table.ndim == 2 else self.table[arms, h, now]
        if budget is None:
            budget = self.budget[h] if isinstance(self.budget, np.ndarray) else self.budget
        rule = (self.floor, self.rounding == "dependent", stream)
        work = (np.empty(arms.size, dtype=bool), np.empty(arms.size), np.empty_like(arms))
        if self.weights is not None:
            select_within(index, costs_in(self.weights, h, states)[arms], float(budget), *rule, *work)
        else:
            select(
                index, int(budget) if self.cost is None else int(slots_of(np.array([budget]), self.cost)[0]), *rule, *work
            )
        if available is None:
            return work[0]
        active = np.zeros(states.size, dtype=bool)
        active[arms] = work[0]
        return active

    @cached_property
    def weights(self) -> FloatArray | None:
        """Costs, (N,), (N, S) or (N, H, S); None if all are equal."""
        return weights_of(self.cost)

    @cached_property
    def floor(self) -> float:
        """Index above which an arm may be active; minus infinity if the budget is always used."""
        return floor_of(self.table, self.rule)

    @property
    def _steps(self) -> int | None:
        """Number of steps that the policy is for; None for any."""
        if self.table.ndim == 3:
            return int(self.table.shape[1])
        return self.budget.size if isinstance(self.budget, np.ndarray) else None

    def __repr__(self) -> str:
        steps = "any step" if self._steps is None else many(self._steps, "step")
        budget = describe_budget(self.budget, exact=False, cost=self.cost)
        sizes = f"{many(len(self.table), 'arm')}, {steps}, {many(self.table.shape[-1], 'state')}, {budget}"
        return f"IndexPolicy({sizes}, rule {self.rule!r}, rounding {self.rounding!r})"

    def to_fields(self) -> dict[str, Any]:
        """Return table, budget, rule, rounding and costs by name."""
        costs = {} if self.cost is None else {"cost": self.cost}
        return {"table": self.table, "budget": self.budget, "rule": self.rule, "rounding": self.rounding, **costs}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build a policy from what `to_fields` returns; raise PolicyError if it is not valid."""
        return cls(**fields)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the constructor's arguments, as pickled arrays lose their memory layout."""
        return partial(type(self), rule=self.rule, rounding=self.rounding, cost=self.cost), (self.table, self.budget)

    def limits(self, horizon: int) -> IntArray | FloatArray:
        """(H,) budget of each step; raise PolicyError if the policy is for another horizon."""
        if isinstance(self.budget, np.ndarray) and self.budget.size != horizon:
            raise PolicyError(f"the policy has a budget for {self.budget.size} steps, the problem has {horizon}")
        return limits_of(self.budget, horizon)

    def spending(self, horizon: int) -> tuple[FloatArray, FloatArray]:
        """(H,) budget of each step, and costs (1 or H, N, 1 or S); if costs are equal, numbers of arms and no costs."""
        limits = self.limits(horizon)
        amounts = slots_of(limits, self.cost) if self.weights is None else limits
        return frozen(amounts.astype(np.float64)), rows_of(self.weights)

    def by_step(self, horizon: int) -> FloatArray:
        """(H, N, S) view of the table with steps first, the order in which compiled code reads it."""
        if self.table.ndim == 2:
            return np.broadcast_to(self.table, (horizon, *self.table.shape))
        return self.table.transpose(1, 0, 2)


def floor_of(table: FloatArray, rule: Rule) -> float:
    """Return the index above which an arm may be active by this rule, given all indices; minus infinity by 'fill'."""
    if rule == "fill":
        return -np.inf
    if rule == "at-most":
        return 0.0
    largest = max(float(table.max()), -float(table.min()))
    return -max(FREE * largest, TINY)


def _steps_first(table: FloatArray) -> FloatArray:
    """Lay out the table so that all arms of one step are contiguous in memory, with the same (N, H, S) shape."""
    if table.ndim == 2:
        return frozen(table)
    return frozen(np.ascontiguousarray(table.transpose(1, 0, 2))).transpose(1, 0, 2)
