"""Problems: arms, where they start, the budget and the horizon (Xiong & Li 2024, Section 3).

Indices everywhere: arm n < N, state s < S, action a in {0 passive, 1 active}, step h < H. Every object is checked once,
when it is built, and cannot change afterwards: its arrays are read-only copies.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray, ReadOnly
from rmab.common.checks import as_floats, as_integer, as_states, check_magnitude, expect
from rmab.common.files import read_fields, write_fields
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.model.arms import Arms


@dataclass(frozen=True, eq=False)
class Problem(ReadOnly):
    """Arms, where they start, how many may be active at each step, and how many steps an episode has.

    Parameters
    ----------
    arms : Arms
        The N arms.
    start : int or array_like of int, shape (N,)
        The state in which each arm starts an episode; one number stands for all arms.
    budget : int
        The hard budget B, between 0 and N: at every step at most B arms are active.
    horizon : int
        The number H of steps in an episode, at least 1.

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
    """

    arms: Arms
    start: IntArray
    budget: int
    horizon: int

    def __init__(self, arms: Arms, start: ArrayLike, budget: int, horizon: int) -> None:
        if not isinstance(arms, Arms):
            raise ModelError(f"arms must be rmab.Arms, got {type(arms).__name__}; build them with rmab.Arms(kernels)")
        limit, steps = as_integer(budget, "budget"), as_integer(horizon, "horizon")
        if not 0 <= limit <= arms.count:
            raise ModelError(f"budget must be in 0..{arms.count} (the number of arms), got {limit}")
        if steps < 1:
            raise ModelError(f"horizon must be at least 1, got {steps}")
        check_memory(f"an episode of {arms.count} arms and {steps} steps", 5.0 * arms.count * steps)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "start", as_states(start, arms.real_states, one_for_all=True))
        object.__setattr__(self, "budget", limit)
        object.__setattr__(self, "horizon", steps)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this problem to one file, `.npz` or `.json`; FileError if it cannot be written."""
        write_fields(path, "rmab problem", self.fields())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Problem:
        """Read a problem that `save` wrote, or a JSON file with the same fields written by hand.

        FileError if the file cannot be read or holds something else; ModelError if its fields do not form a problem.
        """
        fields = read_fields(path, "rmab problem", cls.REQUIRED, cls.OPTIONAL)
        try:
            return cls.from_fields(fields)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from error

    REQUIRED = frozenset({"kernels", "start", "budget", "horizon"})
    OPTIONAL = frozenset({"state_names", "groups", "support", "sizes"})

    def fields(self) -> dict[str, Any]:
        """Return the problem as plain arrays and numbers by name, as `from_fields` takes them."""
        arms = self.arms
        names = None if arms.state_names is None else np.array(arms.state_names)
        own = {"start": self.start, "budget": self.budget, "horizon": self.horizon, "kernels": arms.kernels}
        return {**own, "state_names": names, "groups": arms.groups, "support": arms.support, "sizes": arms.sizes}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Problem:
        """Build a problem from plain arrays and numbers by name; ModelError if they do not form one."""
        arms = Arms(fields["kernels"], **{name: fields.get(name) for name in cls.OPTIONAL})
        return cls(arms, fields["start"], fields["budget"], fields["horizon"])

    def __eq__(self, other: object) -> bool:
        """Return whether arms, start, budget and horizon are equal."""
        if not isinstance(other, Problem):
            return NotImplemented
        scalars = (self.budget, self.horizon) == (other.budget, other.horizon)
        return scalars and np.array_equal(self.start, other.start) and self.arms == other.arms

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Problem({self.arms!r}, budget {self.budget}, horizon {self.horizon})"


def checked_reward(reward: ArrayLike, problem: Problem) -> FloatArray:
    """Return reward as a float64 array (N, S, 2) of finite numbers, or raise ModelError naming the entry."""
    expect(problem, Problem, "problem", "; of a task, it is task.problem")
    table = as_floats(reward, "reward")
    shape = (problem.arms.count, problem.arms.states, 2)
    if table.shape != shape:
        raise ModelError(f"reward must have shape (N, S, 2) = {shape}, got {table.shape}")
    if not np.isfinite(table).all():
        n, s, a = np.argwhere(~np.isfinite(table))[0]
        raise ModelError(f"reward: arm {n}, state {s}, action {a} is {table[n, s, a]}, not a finite number")
    size = problem.arms.count * problem.horizon
    check_magnitude(table, "reward", size, f" times {problem.arms.count} arms times {problem.horizon} steps")
    return table
