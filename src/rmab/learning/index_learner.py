"""Learners that count transitions, average rewards, and compute a table of indices from both before every episode."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray, cached_property
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.components import OBSERVING, Counting, Exploration, add_to_means, begin_means, mean_reward, times_seen
from rmab.learning.pools import Pools
from rmab.learning.state import MOST, Arrays, ArraySpec, ArraySpecs, State, masses, whole
from rmab.model import View
from rmab.play import Feedback, IndexPolicy


@dataclass(frozen=True, eq=False, repr=False)
class Knowledge:
    """Knowledge of an index learner before an episode.

    Parameters
    ----------
    pools : Pools
        Groups, payoffs and blocks of the arms; `pools.view` has start, budget and horizon of the coming episode.
    task : View
        What the learner may know of the task: counts are of its episodes, and widths are for its horizon.
    episode, seed : int
        The coming episode, from 0, and the learner's seed.
    until : int
        The last episode in which the sets must hold.
    arrays : mapping of str to array
        All arrays of the learner, with the new `counts` (G, S, 2, S) and rewards; custom arrays are still the old ones.
    """

    pools: Pools
    task: View
    episode: int
    seed: int
    until: int
    arrays: Arrays

    @property
    def counts(self) -> IntArray:
        """(G, S, 2, S) transitions so far."""
        return self.arrays["counts"]

    @property
    def visits(self) -> IntArray:
        """(G, S, 2) visits so far."""
        return np.asarray(self.counts.sum(axis=3))

    @cached_property
    def means(self) -> FloatArray:
        """(R, S, 2) mean rewards in [0, 1]: 1 for pairs without observations, 0 for known zeros."""
        return self.with_zeros(mean_reward(self.arrays))

    @property
    def shown(self) -> IntArray:
        """(R, S, 2) number of visits with a revealed reward."""
        return times_seen(self.pools, self.arrays)

    def with_zeros(self, values: FloatArray) -> FloatArray:
        """Return values (R, S, 2) with the rewards that are known to be zero."""
        return np.where(self.pools.zero, self.pools.floor, values)


class IndexLearner(Learner):
    """Keeps counts and means of rewards. Override `prepare`, which computes a table of indices.

    Examples
    --------
    >>> class Greedy(IndexLearner):
    ...     name = "greedy"
    ...     def prepare(self, known):
    ...         return {"table": known.means[known.pools.payoff_of, :, 1], "estimate": known.means}
    """

    @abstractmethod
    def prepare(self, known: Knowledge) -> Arrays:
        """Override: return `table` (N, S) or (N, H, S) for the coming episode, `estimate` (R, S, 2) in [0, 1]; other arrays
        are stored, too. Arrays that are not returned stay. `known.pools.view` has start, budget and horizon of the
        episode, which may differ from those of the task.
        """

    def observe(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Override to store more of an episode than counts and rewards: return it."""
        return {}

    def window(self, view: View) -> int:  # noqa: ARG002
        """Override: return how many episodes the means of rewards go back; 0: all."""
        return 0

    @property
    def counting(self) -> Counting:
        """Override: the source of transitions."""
        return OBSERVING

    @property
    def explore(self) -> Exploration | None:
        """Override: the exploration before the first index, which is then final; None: no exploration."""
        return None

    def table(self, state: State) -> FloatArray:
        """(N, S) or (N, H, S) the indices of the coming episode."""
        return state.arrays["table"]

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2), or (N, K, S, 2): its estimate of rewards, in their units; None before the first episode."""
        return Pools.of(state.view).in_own_units(state.arrays["estimate"]) if state.episode else None

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare counts and rewards, and the arrays of most index learners."""
        pools = Pools.of(view)
        sums = ArraySpec((max(self.window(view), 1), *pools.zero.shape), "f", 0, MOST)
        own = {"counts": whole(*pools.support.shape), "seen": sums, "paid": sums, "estimate": ArraySpec(pools.zero.shape)}
        plan = {"mass": masses(pools.weights.size, view.horizon, view.states, 2, optional=True)}
        own_way = type(self).table is not IndexLearner.table or type(self).decide is not IndexLearner.decide
        table = ArraySpec((view.arms, view.states), optional=own_way, other=(view.arms, view.horizon, view.states))
        return {**own, **plan, "table": table, "committed": ArraySpec((), "b", optional=True)}

    def initial(self, view: View, seed: int) -> Arrays:
        """Begin with zero counts, or with a generator's samples."""
        pools = Pools.of(view)
        arrays = {"counts": self.counting.begin(pools), **begin_means(pools, self.window(view))}
        return {**arrays, **self._prepare_episode(pools, view, arrays, 0, seed)}

    def decide_in(self, state: State, view: View) -> EpisodePlan:
        """Recompute the index for this situation; counts and means do not depend on it."""
        arrays = self._prepare_episode(Pools.of(view), state.view, state.arrays, state.episode, state.seed)
        return self.decide(replace(state, view=view, arrays={**state.arrays, **arrays}))

    def decide(self, state: State) -> EpisodePlan:
        """Activate the highest indices."""
        policy, mass = IndexPolicy.of(state.view, self.table(state)), state.arrays.get("mass")
        return EpisodePlan(policy) if mass is None else EpisodePlan(policy, mass, Pools.of(state.view).block_of)

    def update(self, state: State, feedback: Feedback) -> Arrays:
        """Count, average, and compute a new index; do nothing after the learner has committed."""
        if state.arrays.get("committed", False):
            return {}
        pools = Pools.of(state.view)
        observed, aside = pools.observe(feedback), self.observe(state, feedback)
        means = add_to_means(state.arrays, observed, state.episode, self.window(state.view))
        arrays = {"counts": self.counting.learn(state.arrays["counts"], observed), **means, **aside}
        return {
            **arrays,
            **self._prepare_episode(pools, state.view, {**state.arrays, **arrays}, state.episode + 1, state.seed),
        }

    def _prepare_episode(self, pools: Pools, task: View, arrays: Arrays, episode: int, seed: int) -> Arrays:
        """Return what the coming episode needs."""
        known = Knowledge(pools, task, episode, seed, self.counting.until(task, episode), arrays)
        if self.explore is None:
            return self.prepare(known)
        if self.explore.continues(Pools.of(task), known.visits, episode):
            table = self.explore.table(pools, known.visits)
            return {"committed": np.array(False), "table": table, "estimate": known.means}
        return {"committed": np.array(True), **self.prepare(known)}
