"""Components of index learners: the source of transitions, mean rewards, and initial exploration."""

from abc import ABC, abstractmethod

import numpy as np

from rmab.common import FloatArray, IntArray, frozen
from rmab.errors import ModelError
from rmab.learning.base import stream
from rmab.learning.components.base import Component
from rmab.learning.options import configured, option
from rmab.learning.pools import Observations, Pools
from rmab.learning.state import Memory
from rmab.model import Problem, View, cells

KEY = 103  # key of the random stream of samples


class Counting(Component, ABC):
    """Source of transitions."""

    @abstractmethod
    def begin(self, pools: Pools) -> IntArray:
        """(G, S, 2, S) the transitions before the first episode."""

    @abstractmethod
    def learn(self, counts: IntArray, observed: Observations) -> IntArray:
        """(G, S, 2, S) the transitions after an episode."""

    @abstractmethod
    def until(self, view: View, episode: int) -> int:
        """Return the last episode in which the sets must hold."""


@configured
class Observing(Counting):
    """From the episodes."""

    def begin(self, pools: Pools) -> IntArray:
        """(G, S, 2, S) zeros."""
        return np.zeros(pools.support.shape, dtype=np.int64)

    def learn(self, counts: IntArray, observed: Observations) -> IntArray:
        """(G, S, 2, S) all that was counted."""
        return counts + observed.counts

    def until(self, view: View, episode: int) -> int:  # noqa: ARG002
        """Only in the coming episode."""
        return episode


OBSERVING = Observing()


class Sampling(Counting):
    """Only from a generator's samples, which no real programme has: transitions of episodes are not counted.

    Rewards that are chosen episode by episode cannot be sampled ahead: they are learned from feedback, as elsewhere.
    """

    def __init__(self, samples: IntArray | None, name: str) -> None:
        self.samples, self.name = samples, name

    def begin(self, pools: Pools) -> IntArray:
        """(G, S, 2, S) the samples; ModelError if they are missing or belong to another task."""
        if self.samples is None:
            raise ModelError(f"{self.name}: must be informed of the problem first: rmab.run does, or call `inform`")
        if self.samples.shape != pools.support.shape:
            raise ModelError(f"{self.name}: samples of shape {self.samples.shape} for a task of {pools.support.shape}")
        return self.samples

    def learn(self, counts: IntArray, observed: Observations) -> IntArray:  # noqa: ARG002
        """(G, S, 2, S) the samples."""
        return counts

    def until(self, view: View, episode: int) -> int:  # noqa: ARG002
        """Return the last episode: no sample is added, so one width holds in all."""
        return view.episodes


def draw_counts(problem: Problem, samples: int, seed: int) -> IntArray:
    """(G, S, 2, S) how often each next state came up among `samples` draws of every pair of every group."""
    kernels = cells(problem.arms.group_kernels, problem.phases)
    rows = kernels / kernels.sum(axis=3, keepdims=True)
    return frozen(stream(seed, KEY).multinomial(samples, rows).astype(np.int64))


@configured
class Exploration(Component):
    """Explore for scale * T^(2/3) episodes, or until every pair has ceil((T H)^(2/3)) transitions.

    Activates arms in the states with the fewest activations so far, ties at random: a round robin that does not depend on
    the order of arms. At least the last episode is left for the policy that it commits to.
    """

    scale: float = option(default=1.0, ge=1e-12, le=100, help="exploration episodes, in units of T^(2/3)")

    def continues(self, pools: Pools, visits: IntArray, episode: int) -> bool:
        """Return whether the coming episode (from 0) is for exploration, after visits (G, S, 2)."""
        view = pools.view
        longest = min(np.ceil(self.scale * view.episodes ** (2 / 3)), view.episodes - 1)
        enough = np.ceil((view.episodes * view.horizon) ** (2 / 3))
        return bool(episode < longest and visits[pools.real].min() < enough)

    def table(self, pools: Pools, visits: IntArray) -> FloatArray:
        """(N, S), or (N, H, S) with phases, indices: the fewer activations, the higher."""
        fewer = -pools.of_arms(visits[..., 1], pools.group_of).astype(np.float64)
        return fewer if pools.view.phases == 1 else np.asarray(fewer[:, pools.view.steps])


def begin_means(pools: Pools, window: int = 0) -> Memory:
    """Return the memory of mean rewards before the first episode: one running sum, or a ring of `window` episodes."""
    shape = (max(window, 1), *pools.zero.shape)
    return {"seen": np.zeros(shape), "paid": np.zeros(shape)}


def add_to_means(memory: Memory, observed: Observations, episode: int, window: int = 0) -> Memory:
    """Add one episode (from 0): visits with a revealed reward, and their rewards."""
    shown = ~np.isnan(observed.values)
    slot = episode % window if window else 0
    added = {"seen": observed.visits * shown, "paid": observed.visits * np.where(shown, observed.values, 0.0)}
    new = {name: memory[name].copy() for name in added}
    for name, sums in added.items():
        new[name][slot] = sums if window else sums + new[name][slot]
    return new


def mean_reward(memory: Memory) -> FloatArray:
    """(R, S, 2) means in [0, 1]; 1 for pairs without observations."""
    number, paid = memory["seen"].sum(axis=0), memory["paid"].sum(axis=0)
    return np.asarray(np.divide(paid, number, out=np.ones_like(paid), where=number > 0))


def times_seen(pools: Pools, memory: Memory) -> IntArray:
    """(R, S, 2) number of visits with a revealed reward, of all arms of a payoff; the memory counts per arm."""
    arms = pools.arms_paid_alike[:, np.newaxis, np.newaxis]
    return np.asarray(np.rint(memory["seen"].sum(axis=0) * arms), dtype=np.int64)
