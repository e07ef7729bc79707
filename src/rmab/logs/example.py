"""Logs of made-up programmes, of which the truth is known: to try the library, to teach it, and to test it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from rmab.common import FloatArray, IntArray, ReadOnly, as_integer, as_seed, as_share, check_memory, frozen
from rmab.errors import ModelError

STATES = ("lapsed", "wavering", "engaged")
AGES = {"20-29": 0.7, "30 and over": 0.3, "under 20": 1.0}  # how well a call works
AGE_SIZES = (0.5, 0.3, 0.2)
DISTRICTS = {"centre": (1.0, 0.0), "coast": (0.9, 0.25), "hills": (0.35, 0.5), "north": (0.8, 0.1)}  # and how hard life is
DISTRICT_SIZES = (0.5, 0.15, 0.05, 0.3)
ALONE = np.array([[0.86, 0.10, 0.04], [0.25, 0.55, 0.20], [0.04, 0.16, 0.80]])  # a week without a call
CALLED = np.array([[0.50, 0.28, 0.22], [0.08, 0.37, 0.55], [0.02, 0.06, 0.92]])  # with one, where calls work best
HARD = np.array([[0.95, 0.04, 0.01], [0.45, 0.45, 0.10], [0.10, 0.30, 0.60]])
RATES = np.array([0.10, 0.07, 0.02])  # how often the programme called, by state
MISSED, LATE, LEFT = 0.05, 0.25, 0.10  # records that are missing; mothers who joined late, or left
FIRST = date(2024, 1, 1)
MOST_WEEKS = 10_000


@dataclass(frozen=True, eq=False)
class Truth(ReadOnly):
    """What a made-up log was drawn from.

    Attributes
    ----------
    kernels : (N, S, 2, S) float array
        Of every arm.
    age, district : (N,) int arrays
        The groups of every arm.
    states : tuple of str
        Their names.
    """

    kernels: FloatArray
    age: IntArray
    district: IntArray
    states: tuple[str, ...] = STATES


def example_truth(name: str = "mothers", *, arms: int = 2000, seed: int = 0, spread: float = 0.0) -> Truth:
    """Return what `example_log` draws a log from.

    Parameters
    ----------
    name : {'mothers'}
        The programme.
    arms : int
        How many arms.
    seed : int
        The same seed gives the same truth.
    spread : float
        How much arms of a group differ: 0, not at all, to 1.

    Returns
    -------
    Truth
        Kernels and groups of all arms.

    Examples
    --------
    >>> import rmab
    >>> rmab.data.example_truth("mothers", arms=5).kernels.shape
    (5, 3, 2, 3)
    """
    count, wide = _checked_count(name, arms, seed), as_share(spread, "spread")
    rng = np.random.default_rng((as_integer(seed, "seed"), 0))
    age, district = rng.choice(3, count, p=AGE_SIZES), rng.choice(4, count, p=DISTRICT_SIZES)
    works, hard = np.array(list(AGES.values()))[age], np.array(list(DISTRICTS.values()))[district]
    response = np.clip(works * hard[:, 0] + wide * rng.normal(0, 0.5, count), 0, 1)[:, np.newaxis, np.newaxis]
    burden = np.clip(hard[:, 1] + wide * rng.normal(0, 0.5, count), 0, 1)[:, np.newaxis, np.newaxis]
    alone = (1 - burden) * ALONE + burden * HARD
    called = alone + response * (CALLED - ALONE) * (1 - 0.5 * burden)
    kernels = np.stack([alone, called], axis=2).clip(0.001)
    return Truth(frozen(kernels / kernels.sum(axis=3, keepdims=True)), frozen(age), frozen(district))


def example_log(name: str = "mothers", *, arms: int = 2000, weeks: int = 52, seed: int = 0, spread: float = 0.0) -> pa.Table:
    """Return the log of a simulated programme: weekly calls to mothers, some of them lapsed.

    Columns are id, week, state, called, age and district. Weeks are missing, mothers join late or leave, groups respond
    differently, and the programme chose mothers by their state. In the last week states are known, and nobody has been
    called yet: that list is to be made. Nobody in it is real.

    Parameters
    ----------
    name : {'mothers'}
        The programme.
    arms, weeks : int
        Its size.
    seed : int
        The same seed gives the same log.
    spread : float
        How much mothers of a group differ: 0, not at all, to 1.

    Returns
    -------
    pyarrow.Table
        One row per mother and week; `.to_pandas()` makes a DataFrame of it.

    Examples
    --------
    >>> import rmab
    >>> rmab.data.example_log("mothers", arms=20, weeks=4).column_names
    ['id', 'week', 'state', 'called', 'age', 'district']
    """
    truth = example_truth(name, arms=arms, seed=seed, spread=spread)
    length = as_integer(weeks, "weeks")
    if not 2 <= length <= MOST_WEEKS:
        raise ModelError(f"weeks must be in 2..{MOST_WEEKS}, got {length}")
    check_memory(f"a log of {length:,} weeks", 100.0 * length * len(truth.age))
    rng = np.random.default_rng((as_integer(seed, "seed"), 1))
    states, called = _simulate(truth, length, rng)
    joined = np.where(rng.random(len(truth.age)) < LATE, rng.integers(0, length, len(truth.age)), 0)
    left = np.where(rng.random(len(truth.age)) < LEFT, rng.integers(0, length, len(truth.age)), length)
    week = np.arange(length)
    there = (week >= joined[:, np.newaxis]) & ((week < left[:, np.newaxis]) | (week <= joined[:, np.newaxis]))
    there &= (rng.random(there.shape) >= MISSED) | (week == joined[:, np.newaxis])
    arm, at = np.nonzero(there)
    digits = len(str(len(truth.age)))
    labels = [(FIRST + timedelta(weeks=k)).isocalendar() for k in range(length)]
    ids = np.array([f"M{k + 1:0{digits}d}" for k in range(len(truth.age))])
    yes = np.where(called[arm, at], "yes", "no")
    yes[at == length - 1] = ""
    return pa.table(
        {
            "id": ids[arm],
            "week": np.array([f"{one.year}-W{one.week:02d}" for one in labels])[at],
            "state": np.array(STATES)[states[arm, at]],
            "called": yes,
            "age": np.array(list(AGES))[truth.age[arm]],
            "district": np.array(list(DISTRICTS))[truth.district[arm]],
        }
    )


def _checked_count(name: str, arms: int, seed: int) -> int:
    """Return the number of arms; ModelError where an argument is wrong."""
    if not isinstance(name, str) or name != "mothers":
        raise ModelError(f"unknown example {name!r:.40}; available: 'mothers'")
    count = as_integer(arms, "arms")
    if count < 1:
        raise ModelError(f"arms must be at least 1, got {count}")
    as_seed(seed)
    check_memory(f"{count:,} arms", 1000.0 * count)
    return count


def _simulate(truth: Truth, weeks: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return states and calls (N, weeks), calls as 0 and 1."""
    count, everyone = len(truth.age), np.arange(len(truth.age))
    states, called = np.empty((count, weeks), dtype=np.int64), np.empty((count, weeks), dtype=np.int64)
    sums = np.cumsum(truth.kernels, axis=3)
    now = rng.choice(3, count, p=(0.2, 0.3, 0.5))
    for k in range(weeks):
        states[:, k], called[:, k] = now, rng.random(count) < RATES[now]
        reached = sums[everyone, now, called[:, k]]
        now = np.minimum((rng.random(count)[:, np.newaxis] >= reached).sum(axis=1), 2)
    return states, called
