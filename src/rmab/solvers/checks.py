"""Checks of what is passed to solvers and planners, each in one place."""

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.checks import as_floats, check_magnitude
from rmab.errors import ModelError
from rmab.model.problem import Problem, checked_reward


def check_problem(problem: object, name: str, wanted: str = "a problem", arguments: str = "task.problem") -> None:
    """Raise ModelError unless this is a Problem; `name` is the function's public name, as `solvers.solve_fluid`."""
    if not isinstance(problem, Problem):
        call = f"rmab.{name}({arguments})"
        raise ModelError(f"{name.rpartition('.')[2]} wants {wanted}, not {type(problem).__name__}; for a task, call {call}")


def checked_table(problem: Problem, reward: ArrayLike, name: str) -> FloatArray:
    """Return the reward by cell, (N * K, S, 2), or raise ModelError in the words of `name` where it does not fit."""
    check_problem(problem, name, "a problem and a reward", "task.problem, task.base_reward")
    return checked_reward(reward, problem)


def check_timeless(name: str, phases: int, instead: str = "") -> None:
    """Raise ModelError where there are several phases: what holds for ever cannot depend on the time."""
    if phases > 1:
        hint = f"; {instead}" if instead else ""
        raise ModelError(f"{name} is for dynamics and rewards that never change: this has {phases} phases{hint}")


def check_one_budget(name: str, budget: int | IntArray) -> int:
    """Return the budget, or raise ModelError where it changes from step to step."""
    if not isinstance(budget, int):
        raise ModelError(f"{name} needs one budget for all steps: this goes from {budget.min()} to {budget.max()}")
    return budget


def checked_budget(budget: ArrayLike, horizon: int) -> FloatArray:
    """Return the budget of every step (H,), or raise ModelError naming the step at which nothing is feasible."""
    limit = as_floats(budget, "budget")
    if limit.ndim == 0:
        limit = np.full(horizon, limit)
    if limit.shape != (horizon,):
        raise ModelError(f"budget must be a number or have shape ({horizon},), got {limit.shape}")
    for h in np.flatnonzero(~((limit >= 0) & np.isfinite(limit)))[:1]:
        raise ModelError(f"budget: step {h} has {limit[h]}; it must be 0 or more, and finite")
    return limit


def checked_weights(weights: ArrayLike | None, arms: int) -> FloatArray:
    """Return one positive multiplicity per arm, 1 by default."""
    many = np.ones(arms) if weights is None else as_floats(weights, "weights")
    if many.shape != (arms,) or not (many > 0).all() or not np.isfinite(many).all():
        raise ModelError(f"weights must be {arms} positive numbers")
    check_magnitude(many, "weights", arms, f" times {arms} arms")
    return many
