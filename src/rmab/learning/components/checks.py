"""Checks of what components return, at every call: shapes, finite numbers, occupancies.

Components of this library are not checked here but by its tests: for small problems that would cost as much as planning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rmab.common import IntArray
from rmab.errors import ModelError
from rmab.learning.components.base import Component, RewardEstimate, StepResult
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import Memory
from rmab.solvers.transitions import TransitionSets

ROUNDING = 1e-6  # of masses, in units of an arm


def checked_sets(part: Component, pools: Pools, sets: TransitionSets) -> TransitionSets:
    """Return the sets, or raise ModelError unless they are of all groups and keep impossible transitions impossible."""
    if _ours(part):
        return sets
    _require(part, isinstance(sets, TransitionSets), f"around must return TransitionSets, got {type(sets).__name__}")
    _require(part, sets.low.shape == pools.support.shape, f"the sets are {sets.low.shape}, not {pools.support.shape}")
    _require(part, not np.any(sets.high, where=~pools.support), "a transition that is declared impossible is possible")
    return sets


def checked_basis(part: Component, basis: IntArray, counts: IntArray) -> IntArray:
    """Return the counts behind the sets, or raise ModelError unless they are a subset of all counts."""
    if _ours(part):
        return basis
    given = np.asarray(basis)
    _require(part, given.shape == counts.shape, f"the basis has shape {given.shape}, not {counts.shape}")
    fine = given.dtype.kind in "iu" and bool(given.min() >= 0 and (given is counts or (given <= counts).all()))
    _require(part, fine, "the basis must be whole numbers, from 0 to the number of transitions counted")
    return basis


def checked_estimate(part: Component, episode: Episode, estimate: RewardEstimate) -> RewardEstimate:
    """Return the estimate, or raise ModelError unless it has the right shape, and all values are finite and at most 1."""
    if _ours(part):
        return estimate
    kind = type(estimate).__name__
    _require(part, isinstance(estimate, RewardEstimate), f"learn must return a RewardEstimate, got {kind}")
    pools, view = episode.pools, episode.pools.view
    each, by_step = pools.zero.shape, (pools.weights.size, view.horizon, view.states, 2)
    _require(part, np.shape(estimate.gain) in (each, by_step), f"gain is {np.shape(estimate.gain)}, not {each} or {by_step}")
    more = {name: table for name in ("ahead", "likely") if (table := getattr(estimate, name)) is not None}
    for name, table in more.items():
        _require(part, np.shape(table) == each, f"{name} is {np.shape(table)}, not {each}")
    if estimate.surprised is not None:
        plain = np.shape(estimate.surprised) == each[:1] and np.asarray(estimate.surprised).dtype == np.bool_
        _require(part, plain, f"surprised must be True or False for each of {each[0]} payoffs")
    for table in (estimate.gain, *more.values()):
        fine = bool(table.max() <= 1 + ROUNDING and table.min() > -np.inf)  # False for NaN, too
        _require(part, fine, "estimates must be finite, and at most 1")
    checked_memory(part, estimate.memory)
    return estimate


def checked_plan(part: Component, pools: Pools, plan: StepResult) -> StepResult:
    """Return the plan, or raise ModelError unless it is an occupancy: all mass begins in the start state, and stays 1."""
    if _ours(part):
        return plan
    _require(part, isinstance(plan, StepResult), f"a step must return a StepResult, got {type(plan).__name__}")
    view, mass = pools.view, plan.mass
    shape = (pools.weights.size, view.horizon, view.states, 2)
    checked_memory(part, plan.memory)
    if mass is None:
        _require(
            part, not getattr(part, "stored", True), "plans must have a mass, as this kind of step is declared to store it"
        )
        if plan.share is None:
            return plan
        share = plan.share
        _require(part, share.shape == shape[:3], f"the shares are {share.shape}, not {shape[:3]}")
        fine = bool(share.min() >= -ROUNDING and share.max() <= 1 + ROUNDING)  # False for NaN, too
        _require(part, fine, "a share is not within [0, 1]")
        return plan
    _require(part, np.shape(mass) == shape, f"the plan is {np.shape(mass)}, not {shape}")
    _require(part, bool((mass >= -ROUNDING).all()), "the plan has a mass that is negative or not a number")
    off = float(np.abs(mass.sum(axis=(2, 3)) - 1.0).max())
    _require(part, off <= ROUNDING, f"the masses of a step of the plan must sum to 1; they are off by {off:.1e}")
    missed = float(np.abs(mass[:, 0].sum(axis=2) - pools.begins).max())
    _require(part, missed <= ROUNDING, "not all mass of the plan begins in the start state")
    return plan


def checked_memory(part: Component, memory: Memory) -> Memory:
    """Return the memory, or raise ModelError unless it is a mapping of names to arrays of numbers."""
    if _ours(part):
        return memory
    _require(part, hasattr(memory, "items"), f"memory must be arrays by name, got {type(memory).__name__}")
    for name, array in memory.items():
        plain = isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "biuf"
        _require(part, plain, f"memory: {name} must be an array of numbers, got {type(array).__name__}")
    return memory


def _ours(part: Component) -> bool:
    """Whether a component's class is one of this library."""
    return type(getattr(part, "_part", part)).__module__.startswith("rmab.")


def _require(part: Any, holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelError(f"{type(getattr(part, '_part', part)).__name__}: {otherwise}")
