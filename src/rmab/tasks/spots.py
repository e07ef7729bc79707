"""Charging spots as arms: states, kernels and rewards, from arrivals and prices.

A spot is empty, or has a vehicle with d slots until it leaves and l units of load left: state (d, l). With at most D slots
and L units there are S = D (L + 1) states, named `empty` and `d,l`. A class of spots is described by tables with one entry
for each of K phases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import FloatArray, check_memory, expect
from rmab.errors import ModelError
from rmab.model import FACTOR_HIGH, Problem

MOST_SLOTS, MOST_LOAD = 12, 9  # of the paper's vehicles, with uniform stays and loads
SUM_TOLERANCE = 1e-9
EMPTY = "empty"
_PARKED = re.compile(r"(\d+),(\d+)")

State = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Spots:
    """Spots of one class: arrivals and payments in each of K phases.

    Attributes
    ----------
    count : int
        Number of spots.
    arrival : (K,) float array
        Probability that a vehicle arrives at a spot, at the end of a step in which the spot is empty or becomes free.
    jobs : (K, D, L) float array, or None
        Probability that it stays 1..D slots and needs 1..L units. None: the paper's uniform 12 and 9.
    pay, penalty : (K,) float arrays
        Pay of a unit; a departure with l units left costs `penalty` times l squared.
    price : (K,) float array, or None
        Price of a unit of energy, if it has one.

    Examples
    --------
    >>> import numpy as np
    >>> from rmab.tasks.spots import Spots, kernel
    >>> one = np.ones(1)
    >>> spots = Spots(4, 0.7 * one, np.array([[[0.5, 0.0], [0.25, 0.25]]]), 0.5 * one, 0.2 * one)
    >>> spots.most, kernel(spots, 2, 2).shape
    ((2, 2), (1, 6, 2, 6))
    """

    count: int
    arrival: FloatArray
    jobs: FloatArray | None
    pay: FloatArray
    penalty: FloatArray
    price: FloatArray | None = None

    @property
    def most(self) -> tuple[int, int]:
        """(D, L) longest stay and largest load."""
        return (MOST_SLOTS, MOST_LOAD) if self.jobs is None else (self.jobs.shape[1], self.jobs.shape[2])

    @property
    def arrivals(self) -> FloatArray:
        """(K, D, L) probability that a vehicle with this stay and load arrives."""
        if self.jobs is None:
            each = self.arrival / (MOST_SLOTS * MOST_LOAD)
            return np.repeat(each, MOST_SLOTS * MOST_LOAD).reshape(-1, MOST_SLOTS, MOST_LOAD)
        return self.arrival[:, np.newaxis, np.newaxis] * self.jobs


def states_of(slots: int, load: int) -> list[State]:
    """Return all states (d, l): an empty spot, (0, 0), and vehicles; (D, 0) is omitted, as vehicles arrive with load."""
    parked = [(d, left) for d in range(1, slots + 1) for left in range(load + 1) if (d, left) != (slots, 0)]
    return [(0, 0), *parked]


def names_of(states: Sequence[State]) -> list[str]:
    """Return the names of the states."""
    return [f"{d},{left}" if d else EMPTY for d, left in states]


def vehicles(problem: Problem, who: str) -> list[State]:
    """Return the states (d, l) of charging spots from their names, or raise ModelError for other arms."""
    expect(problem, Problem, "problem", "; for a task, use task.problem")
    names = problem.arms.state_names
    if names is None:
        raise ModelError(f"{who}: the arms are not charging spots: their states have no names")
    found = []
    for s, name in enumerate(names):
        parked = _PARKED.fullmatch(name)
        if parked is None and name != EMPTY:
            wanted = "'empty' or 'slots,load', for example '5,3'"
            raise ModelError(f"{who}: the arms are not charging spots: state {s} is named {name!r:.30}, not {wanted}")
        found.append((0, 0) if parked is None else (int(parked[1]), int(parked[2])))
    return found


def kernel(spots: Spots, slots: int, load: int) -> FloatArray:
    """(K, S, 2, S) kernel of one spot, for states with at most this many slots and this much load."""
    what = f"a spot of {slots} slots and {load} units, in {len(spots.arrival)} phases,"
    check_memory(what, 16.0 * len(spots.arrival) * (slots * (load + 1)) ** 2)
    states = states_of(slots, load)
    number = {state: s for s, state in enumerate(states)}
    phases, size = spots.arrival.size, len(states)
    table = np.zeros((phases, size, 2, size))
    arrived = np.zeros((phases, size))
    arrived[:, 0] = 1 - spots.arrival
    for (d, left), share in zip(_kinds(spots), spots.arrivals.reshape(phases, -1).T, strict=True):
        arrived[:, number[d, left]] = share
    for s, (d, left) in enumerate(states):
        for a in (0, 1):
            if d > 1:
                table[:, s, a, number[d - 1, max(left - a, 0)]] = 1.0
            else:
                table[:, s, a] = arrived
    return table


def _kinds(spots: Spots) -> list[State]:
    return [(d + 1, left + 1) for d in range(spots.most[0]) for left in range(spots.most[1])]


def reward_parts(spots: Spots, slots: int, load: int) -> FloatArray:
    """(J, K, S, 2): pay for charging, penalty for load left at departure and, if energy has a price, its cost."""
    states = states_of(slots, load)
    parts = np.zeros((2 if spots.price is None else 3, spots.pay.size, len(states), 2))
    for s, (d, left) in enumerate(states):
        for a in (0, 1) if left > 0 else ():
            parts[0, :, s, a] = spots.pay * a
            parts[1, :, s, a] = -spots.penalty * (left - a) ** 2 if d == 1 else 0.0
            if spots.price is not None:
                parts[2, :, s, a] = -spots.price * a
    return parts


def range_of(parts: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the range of rewards whose parts (J, ...) an adversary may scale by 0 to 1.5."""
    low = min(float(np.minimum(one, 0).sum(axis=0).min()) for one in parts)
    high = max(float(np.maximum(one, 0).sum(axis=0).max()) for one in parts)
    if not low < high:
        raise ModelError("pay and penalty must not all be 0")
    return _round(FACTOR_HIGH * low), _round(FACTOR_HIGH * high)


def _round(value: float) -> float:
    """Round away the last bits, in which products depend on the order of their factors."""
    return float(f"{value:.12g}")


def by_phase(values: FloatArray, phases: int, name: str) -> FloatArray:
    """(K,) expand a number, or one per phase, to all phases; raise ModelError if the number of phases is wrong."""
    if values.ndim == 1 and values.size != phases:
        have = "there is 1 phase" if phases == 1 else f"there are {phases} phases"
        raise ModelError(f"{name} must be one number or one per phase: {have}, got {values.size} numbers (phases=...)")
    return np.full(phases, float(values)) if values.ndim == 0 else values


def mix(given: FloatArray, phases: int, name: str, axes: dict[str, str]) -> FloatArray:
    """(K, ...) return probabilities of vehicles in each phase, or raise ModelError if they are not valid.

    axes: letter and unit of the last axes, which count from 1, for messages.
    """
    timed, letters = given.ndim > len(axes), ", ".join(axes)
    if given.ndim not in (len(axes), len(axes) + 1) or (timed and len(given) != phases):
        plain = f"({letters},)" if len(axes) == 1 else f"({letters})"
        raise ModelError(f"{name} must have shape {plain}, or (K, {letters}) with K = {phases} phases, got {given.shape}")
    table = given if timed else given[np.newaxis]
    for k, *at in np.argwhere(~((table >= 0) & (table <= 1)))[:1]:
        where = ", ".join(f"{i + 1} {unit}" for i, unit in zip(at, axes.values(), strict=True))
        raise ModelError(f"{name}: {f'phase {k}, ' if timed else ''}{where} has probability {table[(k, *at)]:g}")
    for k in np.flatnonzero(np.abs(table.reshape(len(table), -1).sum(axis=1) - 1) > SUM_TOLERANCE)[:1]:
        raise ModelError(f"{name}: {f'phase {k}: ' if timed else ''}the probabilities sum to {table[k].sum():.12g}, not 1")
    return np.broadcast_to(table, (phases, *table.shape[1:]))


def spots_of(count: int, phases: int, tables: Mapping[str, Any], price: FloatArray | None, where: str = "") -> Spots:
    """Build the spots from options, or raise ModelError.

    tables: arrays by option, or None: arrival, dwell, load, jobs, pay, penalty. where: prefix of the options in messages.
    """
    if count < 1:
        raise ModelError(f"{where}arms must be at least 1, got {count}")
    arrival, pay, penalty = (by_phase(tables[one], phases, f"{where}{one}") for one in ("arrival", "pay", "penalty"))
    for k in np.flatnonzero(~((arrival >= 0) & (arrival <= 1)))[:1]:
        raise ModelError(f"{where}arrival: phase {k} must be a probability, got {arrival[k]:g}")
    for k in np.flatnonzero(penalty < 0)[:1]:
        raise ModelError(f"{where}penalty: phase {k} must be 0 or more, got {penalty[k]:g}")
    return Spots(count, arrival, _jobs(phases, tables, where), pay, penalty, price)


def _jobs(phases: int, tables: Mapping[str, Any], where: str) -> FloatArray | None:
    """(K, D, L) job mix; None for the paper's."""
    jobs, dwell, load = (tables[one] for one in ("jobs", "dwell", "load"))
    if jobs is not None and (dwell is not None or load is not None):
        raise ModelError(f"{where}jobs: give either jobs, or dwell and load (with jobs=None if jobs has a default)")
    if jobs is not None:
        return mix(jobs, phases, f"{where}jobs", {"D": "slots", "L": "units"})
    if dwell is None and load is None:
        return None
    stays = mix(np.full(MOST_SLOTS, 1 / MOST_SLOTS) if dwell is None else dwell, phases, f"{where}dwell", {"D": "slots"})
    needs = mix(np.full(MOST_LOAD, 1 / MOST_LOAD) if load is None else load, phases, f"{where}load", {"L": "units"})
    return stays[:, :, np.newaxis] * needs[:, np.newaxis]
