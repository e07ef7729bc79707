"""Learners that count transitions, average rewards, and make both into a table of indices before every episode."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays, Learner, Plan, State
from rmab.learning.means import add_to_means, begin_means, mean_reward, times_seen
from rmab.learning.pools import Observed, Pools
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy

__all__ = ["ExploreThenCommit", "IndexLearner"]


class IndexLearner(Learner):
    """Keeps counts (G,S,2,S) and means of rewards; what it makes of them, `_prepare` says."""

    settings: BaseModel

    def __init__(self, options: BaseModel) -> None:
        self.settings = options

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2) what it takes rewards for after the last episode, in their own units; None before the first."""
        if state.episode == 0:
            return None
        return Pools.of(state.view).in_own_units(state.view, state.arrays["estimate"])

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:
        pools = Pools.of(view)
        arrays = {"counts": self._first_counts(pools), **begin_means(pools, self._window(view))}
        return {**arrays, **self._prepare(view, pools, arrays, 0, seed)}

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:
        view, pools = state.view, Pools.of(state.view)
        observed = pools.observe(view, feedback)
        means = add_to_means(state.arrays, observed, state.episode, self._window(view))
        arrays = {"counts": self._counted(state.arrays["counts"], observed), **means}
        return {**arrays, **self._prepare(view, pools, {**state.arrays, **arrays}, state.episode + 1, state.seed)}

    def _plan(self, state: State) -> Plan:
        return Plan(IndexPolicy(state.arrays["table"], state.view.budget))

    @abstractmethod
    def _prepare(self, view: View, pools: Pools, arrays: Arrays, episode: int, seed: int) -> dict[str, NDArray[Any]]:
        """Return what the coming episode (from 0) needs: `table` (N,S) or (N,H,S), and `estimate` (R,S,2) in [0, 1]."""

    def _window(self, view: View) -> int:  # noqa: ARG002
        """Return how many episodes the means of rewards go back; 0: all."""
        return 0

    def _first_counts(self, pools: Pools) -> IntArray:
        return np.zeros(pools.support.shape, dtype=np.int64)

    def _counted(self, counts: IntArray, observed: Observed) -> IntArray:
        return counts + observed.counts

    def _counted_until(self, view: View, episode: int) -> int:  # noqa: ARG002
        """Return the episode up to which the widths of the kernels' sets are to hold."""
        return episode

    def _times_seen(self, pools: Pools, arrays: Arrays) -> IntArray:
        """(R, S, 2) the number of visits that the width of a mean reward is for."""
        return times_seen(pools, arrays)

    def _means(self, pools: Pools, arrays: Arrays) -> FloatArray:
        """(R, S, 2) mean rewards, 1 where nothing was seen, known zeros where they are."""
        return np.where(pools.zero, pools.floor, mean_reward(arrays))


class ExploreThenCommit(IndexLearner):
    """Explores for c T^(2/3) episodes, or until every pair has ceil((T H)^(2/3)) transitions; then learns nothing more.

    Explores by activating arms in the states in which they were active least, ties at random: a round robin that does not
    depend on how arms are numbered. At least the last episode is played by the committed policy.
    """

    def _prepare(self, view: View, pools: Pools, arrays: Arrays, episode: int, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        visits = arrays["counts"].sum(axis=3)
        if self._explores(view, pools, visits, episode):
            table = -visits[pools.group_of, :, 1].astype(np.float64)
            return {"committed": np.array(False), "table": table, "estimate": self._means(pools, arrays)}
        return {"committed": np.array(True), **self._commit(view, pools, arrays, episode)}

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:
        return {} if state.arrays["committed"] else super()._learn(state, feedback)

    def _explores(self, view: View, pools: Pools, visits: IntArray, episode: int) -> bool:
        longest = min(np.ceil(self._exploration() * view.episodes ** (2 / 3)), view.episodes - 1)
        enough = np.ceil((view.episodes * view.horizon) ** (2 / 3))
        return bool(episode < longest and visits[pools.real].min() < enough)

    @abstractmethod
    def _exploration(self) -> float:
        """Return c."""

    @abstractmethod
    def _commit(self, view: View, pools: Pools, arrays: Arrays, episode: int) -> dict[str, NDArray[Any]]:
        """Return `table` and `estimate` for all episodes to come."""
