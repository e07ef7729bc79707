"""Reward estimators that remember: the mean of what was seen, or the last value."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from rmab.common import BoolArray, FloatArray
from rmab.learning.components.base import RewardEstimate, RewardEstimator
from rmab.learning.options import configured
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import MOST, ArraySpec, ArraySpecs, Memory, whole

FADING = 0.3  # optimism of a mean, in standard errors times sqrt(ln t)
DRIFT = 0.1  # optimism of the last value, per root of its age


class Remembering(RewardEstimator):
    """Means of what was seen, forgotten at some rates. Override `unseen`: the estimate of an unobserved reward.

    RATES  discount factors of the past, one for each mean.
    """

    anywhere = True
    RATES: ClassVar[tuple[float, ...]] = (1.0,)

    def begin(self, pools: Pools) -> Memory:
        """Return means and numbers of observations, at each rate; whether there were any, and the last episode."""
        shape = pools.zero.shape
        table = np.zeros((len(self.RATES), *shape))
        return {
            "means": table,
            "numbers": table,
            "ever": np.zeros(shape, dtype=bool),
            "when": np.zeros(shape, dtype=np.int64),
        }

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the means and their counts."""
        shape = pools.zero.shape
        means, numbers = (ArraySpec((len(self.RATES), *shape), "f", 0, most) for most in (1, MOST))
        return {"means": means, "numbers": numbers, "ever": ArraySpec(shape, "b"), "when": whole(*shape)}

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:
        """Add one episode: observed rewards are used as they are, the others estimated."""
        seen, values = episode.revealed()
        new = {**memory, **self.remember(memory, seen, values, episode.number)}
        guess = self.unseen(new, episode.number, episode.pools.view.episodes)
        return RewardEstimate(np.where(seen, values, np.where(new["ever"], np.clip(guess, 0.0, 1.0), 1.0)), memory=new)

    def remember(self, memory: Memory, seen: BoolArray, values: FloatArray, number: int) -> Memory:
        """Return the memory with the values (R, S, 2) of an episode, where they were seen."""
        rate = np.array(self.RATES)[:, np.newaxis, np.newaxis, np.newaxis]
        numbers = rate * memory["numbers"] + seen  # means, not sums, which would vanish if a pair is unseen for long
        means = np.where(seen, memory["means"] + (values - memory["means"]) / np.maximum(numbers, 1.0), memory["means"])
        when = np.where(seen, number, memory["when"])
        return {"means": means, "numbers": numbers, "ever": memory["ever"] | seen, "when": when}

    @abstractmethod
    def unseen(self, memory: Memory, number: int, episodes: int) -> FloatArray:
        """(R, S, 2) the estimate of rewards not seen in this episode; clipped to [0, 1], and 1 if never seen."""


@configured
class Fading(Remembering):
    """Unseen: the mean of the past, plus optimism that fades with the number of observations."""

    def unseen(self, memory: Memory, number: int, episodes: int) -> FloatArray:  # noqa: ARG002
        """(R, S, 2) mean plus optimism."""
        many = np.maximum(memory["numbers"][0], 1.0)
        return np.asarray(memory["means"][0] + FADING * np.sqrt(np.log(max(episodes, 2)) / (2 * many)))


@configured
class LastSeen(Remembering):
    """Unseen: the last value, plus optimism that grows with its age."""

    RATES = (0.0,)

    def unseen(self, memory: Memory, number: int, episodes: int) -> FloatArray:  # noqa: ARG002
        """(R, S, 2) last value plus optimism."""
        return np.asarray(memory["means"][-1] + DRIFT * np.sqrt(np.maximum(number - memory["when"], 0)))
