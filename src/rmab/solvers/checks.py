"""Checks of the arguments of solvers and planners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray, as_floats, check_magnitude
from rmab.errors import ModelError
from rmab.model import Limit, Problem, View, checked_reward


@dataclass(frozen=True, eq=False)
class Units:
    """Normalised rewards: counted from the least of each cell, divided by the widest range of one cell.

    reward  (C * K, S, 2) in these units, 0 where it does not count; least  (C * K,) the origin; scale  the range,
    or 1.
    """

    reward: FloatArray
    least: FloatArray
    scale: float

    @classmethod
    def of(cls, reward: FloatArray, counts: BoolArray, *, shift: bool = True) -> Units:
        """Normalise rewards (C * K, S, 2), by cell, where they count: (C * K, S), or (C * K, S, 2).

        shift: count from the least of each cell; otherwise from 0, for kernels that do not preserve mass.
        """
        where = np.broadcast_to(counts if counts.ndim == 3 else counts[..., np.newaxis], reward.shape)
        least = reward.min(axis=(1, 2), where=where, initial=np.inf) if shift else np.zeros(len(reward))
        least = np.where(np.isfinite(least), least, 0.0)
        above = np.where(where, reward - least[:, np.newaxis, np.newaxis], 0.0)
        scale = float(above.max()) or 1.0
        return cls(above / scale, least, scale)

    def gap(self, bound: float, value: float, most: float = 1.0) -> float:
        """Return (bound - value), both in these units, relative to the larger of the bound and `most`."""
        return (bound - value) / max(abs(bound), most)

    def whole(self, value: float, mass: FloatArray, phase_of: IntArray, discounts: FloatArray | None = None) -> float:
        """Convert a value in these units back to a reward, given the mass of every block (C,), discounted at each step."""
        return self.scale * value + self.origin(mass, phase_of, discounts)

    def origin(self, mass: FloatArray, phase_of: IntArray, discounts: FloatArray | None = None) -> float:
        """Return the reward that has the value 0 in these units."""
        least = self.least.reshape(mass.size, -1)
        steps = np.bincount(phase_of, weights=discounts, minlength=least.shape[1])
        return sum(float(many) * float(mass @ each) for many, each in zip(steps, least.T, strict=True))


def reachable(moves: BoolArray, start: BoolArray, phase_of: IntArray) -> BoolArray:
    """(C * K, S) the states that a block can reach from `start` (C, S) at the steps (H,) of each phase.

    moves (C * K, S, S) are its possible moves.
    """
    if len(moves) == len(start):  # one phase: where it can be at all
        reach = start
        for _ in range(min(phase_of.size, start.shape[1]) - 1):
            reach = reach | (reach[..., np.newaxis] & moves).any(axis=1)
        return reach
    phases = len(moves) // len(start)
    found = np.zeros((len(start), phases, start.shape[1]), dtype=bool)
    for h, now in enumerate(steps_reached(moves, start, phase_of)):
        found[:, phase_of[h]] |= now
    return found.reshape(-1, start.shape[1])


def steps_reached(moves: BoolArray, start: BoolArray, phase_of: IntArray) -> Iterator[BoolArray]:
    """Yield (C, S), step by step: the states that a block can reach from `start` (C, S); moves (C * K, S, S) by cell."""
    now, by_phase = start, moves.reshape(len(start), -1, *moves.shape[1:])
    for h in range(phase_of.size):
        if h > 0:
            now = np.asarray((now[..., np.newaxis] & by_phase[:, phase_of[h - 1]]).any(axis=1))
        yield now


def check_problem(problem: object, name: str, wanted: str = "a problem", arguments: str = "task.problem") -> None:
    """Raise ModelError unless this is a Problem; `name` is the function's public name (`solvers.solve_fluid`)."""
    if not isinstance(problem, Problem):
        call = f"rmab.{name}({arguments})"
        raise ModelError(f"{name.rpartition('.')[2]} needs {wanted}, got {type(problem).__name__}; for a task, call {call}")


def checked_table(problem: Problem, reward: ArrayLike, name: str) -> FloatArray:
    """Return the reward by cell, (N * K, S, 2), or raise ModelError naming `name` if it does not fit."""
    check_problem(problem, name, "a problem and a reward", "task.problem, task.base_reward")
    return checked_reward(reward, problem)


def check_timeless(name: str, phases: int, instead: str = "") -> None:
    """Raise ModelError if there are several phases: infinite-horizon solvers need one."""
    if phases > 1:
        hint = f"; {instead}" if instead else ""
        raise ModelError(f"{name} needs dynamics and rewards that do not change, got {phases} phases{hint}")


def check_one_budget(name: str, budget: Limit) -> None:
    """Raise ModelError if the budget changes from step to step."""
    if isinstance(budget, np.ndarray):
        raise ModelError(f"{name} needs one budget for all steps, got {budget.min():g} to {budget.max():g}")


def check_one_cost(name: str, model: Problem | View) -> None:
    """Raise ModelError if arms have different costs."""
    if model.weights is not None:
        costs = f"got costs from {model.weights.min():g} to {model.weights.max():g}"
        raise ModelError(f"{name} needs the same cost for all arms, {costs}", code="unsupported")


def check_costs_by_arm(name: str, model: Problem | View) -> None:
    """Raise ModelError if costs depend on the state."""
    if model.weights is not None and model.weights.ndim > 1:
        raise ModelError(f"{name} needs one cost per arm, got costs that depend on the state", code="unsupported")


def checked_budget(budget: ArrayLike, horizon: int) -> FloatArray:
    """Return the budget of every step (H,), or raise ModelError naming the step at which nothing is feasible."""
    limit = as_floats(budget, "budget")
    if limit.ndim == 0:
        limit = np.full(horizon, limit)
    if limit.shape != (horizon,):
        raise ModelError(f"budget must be a number or have shape ({horizon},), got {limit.shape}")
    for h in np.flatnonzero(~((limit >= 0) & np.isfinite(limit)))[:1]:
        raise ModelError(f"budget: step {h} must be finite and 0 or more, got {limit[h]}")
    return limit


def checked_weights(weights: ArrayLike | None, arms: int, name: str = "weights") -> FloatArray:
    """Return one positive multiplicity, or cost, per arm, 1 by default."""
    if weights is None:
        return np.ones(arms)
    many = as_floats(weights, name)
    if many.shape != (arms,) or not (many > 0).all() or not np.isfinite(many).all():
        raise ModelError(f"{name} must be {arms} positive numbers")
    check_magnitude(many, name, arms, f" times {arms} arms")
    return many
