"""Restless-UCB (Wang, Huang and Lui, NeurIPS 2020): explore, build one optimistic instance, commit to an offline oracle.

Theirs: one arm is pulled at a time, chains are birth-death and move whatever is done, a state is seen only when its arm is
pulled. So every arm is pulled until each state has m(T) = T^(2/3) transitions, then probabilities are shifted by rad =
sqrt(ln T / 2m) towards states of higher reward, rewards raised by rad, and the oracle's policy is played to the end.

Knowledge: nothing of the kernels. Feedback: bandit; that of the exploration only. Ours, for controlled arms whose states are
all seen, under a hard budget of B: the horizon is T H steps; m = (T H)^(2/3) is out of reach for rare states, so exploration
also ends after T^(2/3) episodes, and rad is that of each pair's own visits; a row moves rad of its mass from the states of
lowest to those of highest mean reward; the oracle is the Lagrangian index of the fluid LP, of which the B highest are
active. Tuned: exploration of 0.15 T^(2/3) episodes, rad 0: no optimism is left, it is plain explore-then-commit
(studies/tuning.py, held-out seeds; docs/tuning.md).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays
from rmab.learning.confidence import empirical
from rmab.learning.indexed import ExploreThenCommit
from rmab.learning.pools import Pools
from rmab.learning.presets import TunableOptions
from rmab.learning.tables import lagrangian_table
from rmab.model.view import View
from rmab.solvers.compiled.balls import lifted_rows

__all__ = ["RestlessUcb", "RestlessUcbOptions", "radius"]


class RestlessUcbOptions(TunableOptions):
    """Options of `restless-ucb`."""

    TUNED: ClassVar[Mapping[str, float]] = {"exploration": 0.15, "optimism": 0.0}
    exploration: float | None = Field(None, gt=0, le=100, description="episodes of exploration, in units of T^(2/3)")
    optimism: float | None = Field(None, ge=0, le=100, description="the radius, in units of sqrt(ln(T H) / 2m)")


class RestlessUcb(ExploreThenCommit):
    """Explore-then-commit with one optimistic instance."""

    name: ClassVar[str] = "restless-ucb"
    paper: ClassVar[str] = "Wang, Huang & Lui, NeurIPS 2020"
    settings: RestlessUcbOptions

    def _exploration(self) -> float:
        return self.settings.chosen("exploration")

    def _commit(self, view: View, pools: Pools, arrays: Arrays, episode: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        optimism, means = self.settings.chosen("optimism"), self._means(pools, arrays)
        reach = np.minimum(optimism * radius(view, arrays["counts"].sum(axis=3)), 1.0)
        more = np.minimum(optimism * radius(view, self._times_seen(pools, arrays)), 1.0)
        estimate = np.where(pools.zero, pools.floor, np.minimum(means + more, 1.0))
        mean, allowed = empirical(arrays["counts"], pools.support)[pools.group], pools.support[pools.group]
        worth = means[pools.kind].max(axis=2)
        kernels = lifted_rows(mean, 2 * reach[pools.group], allowed, worth)
        return {"table": lagrangian_table(view, pools, kernels, estimate[pools.kind]), "estimate": estimate}


def radius(view: View, visits: IntArray) -> FloatArray:
    """Rad of the visits (of pairs, any shape): sqrt(ln(T H) / 2m), at most 1, and 1 where there were none."""
    wide = np.sqrt(np.log(view.episodes * view.horizon) / (2 * np.maximum(visits, 1)))
    return np.where(visits > 0, np.minimum(wide, 1.0), 1.0)
