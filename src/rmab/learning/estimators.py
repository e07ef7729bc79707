"""Reward estimators: what the last episode paid, also where nobody looked, and what the next is expected to pay.

All values are in [0, 1], but for those of `implicit`, which are at most 1. An estimator keeps its memory in named arrays and
returns, after every episode, an Estimate: `last` is r-hat of the episode that ended, `ahead` the direction in which the
mirror step goes for the next one.

    paper     eq. reward_estimator, to the letter                      direct    what was seen; 1 where nothing was
    fading    unseen: mean of the past plus optimism that fades        last      unseen: last value plus optimism that grows
    forecast  as fading or last, whichever has predicted better, and looking ahead instead of adding up
    implicit  1 minus the loss times visits, over the visits that were to be expected plus gamma: implicit exploration
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import BoolArray, FloatArray
from rmab.learning.pools import Observed, Pools
from rmab.model.view import View

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "EstimatorKind",
    "begin_memory",
    "implicit_estimate",
    "paper_estimate",
    "update_memory",
]

EstimatorKind = Literal["paper", "direct", "fading", "last", "forecast", "implicit"]
ESTIMATORS: tuple[EstimatorKind, ...] = ("paper", "direct", "fading", "last", "forecast", "implicit")

FORGETTING = np.array([1.0, 0.0])  # per episode: everything counts alike, or only the last value
FADING = 0.3  # optimism of a mean, in standard errors times sqrt(ln t)
DRIFT = 0.1  # optimism of `last`, per root of its age
UNSURE = 0.3  # how far predictions are off, before the first one could be checked

Memory = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Estimate:
    """last (R,S,2): what the episode paid. ahead (R,S,2): where to go next. memory: what the estimator keeps."""

    last: FloatArray
    ahead: FloatArray
    memory: Memory


def begin_memory(pools: Pools) -> Memory:
    """Return the memory before the first episode: means and numbers of what was seen, forgotten at each of the rates."""
    shape = pools.zero.shape
    return {
        "means": np.zeros((FORGETTING.size, *shape)),
        "numbers": np.zeros((FORGETTING.size, *shape)),
        "ever": np.zeros(shape, dtype=bool),
        "when": np.zeros(shape, dtype=np.int64),
        "errors": np.zeros(FORGETTING.size),
        "checks": np.array(0),
        "mean": np.zeros(shape),
    }


def paper_estimate(view: View, observed: Observed, width: FloatArray) -> FloatArray:
    """r-hat (R,S,2) of eq. reward_estimator: min(r H / c + delta, 1) where visited, 1 elsewhere; width (R,S,2) is delta.

    Where H / c is large, and it mostly is, the estimate is 1 whatever was seen: kept as published.
    """
    seen = ~np.isnan(observed.values)
    scaled = observed.values * view.horizon / np.maximum(observed.visits, 1.0)
    return np.where(seen, np.minimum(scaled + width, 1.0), 1.0)


def implicit_estimate(observed: Observed, expected: FloatArray) -> FloatArray:
    """r-hat (R,S,2) = 1 - loss c / expected, where expected (R,S,2) is what c is on average, plus gamma; 1 where not seen.

    Too high on average, by little where a pair is often visited: so it explores (Jin et al. 2020, with the steps of an
    episode together, as rewards do not depend on them).
    """
    loss = np.where(np.isnan(observed.values), 0.0, 1.0 - observed.values)
    return np.asarray(1.0 - loss * observed.visits / expected)


def update_memory(
    kind: EstimatorKind,
    view: View,
    pools: Pools,
    memory: Memory,
    observed: Observed,
    width: FloatArray,
    episode: int,
    expected: FloatArray | None = None,
) -> Estimate:
    """Take in one episode (from 0). Known zeros stay zero, whatever the kind. Only `implicit` wants `expected` (R,S,2)."""
    seen = ~np.isnan(observed.values) & ~pools.zero
    values = np.where(seen, observed.values, 0.0)
    errors, checks = _checked_forecasts(memory, seen, values)
    rate = FORGETTING[:, np.newaxis, np.newaxis, np.newaxis]
    numbers = rate * memory["numbers"] + seen  # means, not sums: these fade to nothing where a pair is long unseen
    means = np.where(seen, memory["means"] + (values - memory["means"]) / np.maximum(numbers, 1.0), memory["means"])
    when = np.where(seen, episode, memory["when"])
    kept = {
        "means": means,
        "numbers": numbers,
        "ever": memory["ever"] | seen,
        "when": when,
        "errors": errors,
        "checks": checks,
    }
    if kind == "paper":
        last = paper_estimate(view, observed, width)
    elif kind == "implicit":
        assert expected is not None
        last = implicit_estimate(observed, expected)
    else:
        last = np.where(seen, values, _unseen(kind, kept, episode, view.episodes))
    last = np.where(pools.zero, pools.floor, last)
    mean = memory["mean"] + (last - memory["mean"]) / (episode + 1)
    ahead = mean
    if kind == "forecast":
        expected = _forecast(kept, episode, optimistic=False)
        ahead = np.where(seen, expected, last)
        ahead = np.where(pools.zero, pools.floor, ahead)
    return Estimate(last, ahead, {**kept, "mean": mean})


def _checked_forecasts(memory: Memory, seen: BoolArray, values: FloatArray) -> tuple[FloatArray, NDArray[Any]]:
    """Compare what each rate of forgetting would have predicted with what was seen: mean squared errors, added up."""
    both = seen & memory["ever"]
    if not both.any():
        return memory["errors"], memory["checks"]
    return memory["errors"] + ((memory["means"][:, both] - values[both]) ** 2).mean(axis=1), memory["checks"] + 1


def _unseen(kind: EstimatorKind, memory: Memory, episode: int, episodes: int) -> FloatArray:
    """(R,S,2) what a pair is taken to have paid where nobody looked: 1 where nobody ever did."""
    if kind == "forecast":
        return _forecast(memory, episode, optimistic=True)
    means, numbers, ever = memory["means"], memory["numbers"], memory["ever"]
    if kind == "direct":
        return np.ones(ever.shape)
    if kind == "fading":
        many = np.maximum(numbers[0], 1.0)
        guess = means[0] + FADING * np.sqrt(np.log(max(episodes, 2)) / (2 * many))
    else:
        guess = means[-1] + DRIFT * np.sqrt(episode - memory["when"])
    return np.where(ever, np.clip(guess, 0.0, 1.0), 1.0)


def _forecast(memory: Memory, episode: int, *, optimistic: bool) -> FloatArray:
    """(R,S,2) the prediction at the rate of forgetting that has erred least; 1 where nothing was ever seen.

    Optimism is in units of the error that predictions have shown. Where the past counts alike it fades with the number of
    times seen; where rewards change it grows with the time since, as a random walk strays.
    """
    checks = int(memory["checks"])
    best = int(np.argmin(memory["errors"])) if checks else 0
    error = float(np.sqrt(memory["errors"][best] / checks)) if checks else UNSURE
    guess = memory["means"][best]
    if optimistic and FORGETTING[best] == 1.0:
        guess = guess + FADING * error * np.sqrt(np.log(episode + 2) / np.maximum(memory["numbers"][best], 1.0))
    elif optimistic:
        guess = guess + error * np.sqrt(episode - memory["when"])
    return np.where(memory["ever"], np.clip(guess, 0.0, 1.0), 1.0)
