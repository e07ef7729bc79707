"""Restless-UCB (Wang, Huang and Lui, NeurIPS 2020): explore, build one optimistic instance, commit to an offline oracle.

Theirs: one arm is pulled at a time, chains are birth-death that ignore actions, a state is seen only when its arm is
pulled. So every arm is pulled until each state has m(T) = T^(2/3) transitions, then probabilities are shifted by rad =
sqrt(ln T / 2m) towards states of higher reward, rewards raised by rad, and the oracle's policy is played to the end.

Knowledge: nothing of the kernels. Feedback: bandit; that of the exploration only. Ours, for controlled arms whose states are
all seen, under a hard budget of B: the horizon is T H steps; m = (T H)^(2/3) is out of reach for rare states, so exploration
also ends after T^(2/3) episodes, and rad is that of each pair's own visits; a row moves rad of its mass from the states of
lowest to those of highest mean reward; the oracle is the Lagrangian index of the fluid LP, of which the B highest are
active. Tuned: exploration of 0.15 T^(2/3) episodes, rad 0: no optimism is left, it is plain explore-then-commit
(docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.learning.components import Exploration
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.index_tables import lagrangian_table
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import empirical
from rmab.learning.state import Arrays
from rmab.model import View
from rmab.solvers.compiled.balls import lifted_rows


@configured
class RestlessUcb(IndexLearner):
    """Explore-then-commit with one optimistic instance."""

    name = "restless-ucb"
    TUNED = {"exploration": 0.15, "optimism": 0.0}
    preset: Preset = option(default="theory", help=PRESET)
    exploration: float | None = option(default=None, ge=1e-12, le=100, help="exploration episodes, in units of T^(2/3)")
    optimism: float | None = option(default=None, ge=0, le=100, help="radius, in units of sqrt(ln(T H) / 2m)")

    @property
    def explore(self) -> Exploration:
        """For c T^(2/3) episodes."""
        return Exploration(scale=self.parameter("exploration"))

    def prepare(self, known: Knowledge) -> Arrays:
        """Return the Lagrangian index of the optimistic instance."""
        pools, optimism, means = known.pools, self.parameter("optimism"), known.means
        reach = np.minimum(optimism * radius(known.task, known.visits), 1.0)
        more = np.minimum(optimism * radius(known.task, known.shown), 1.0)
        estimate = known.with_zeros(np.minimum(means + more, 1.0))
        mean, allowed = empirical(known.counts, pools.support)[pools.group], pools.support[pools.group]
        worth = means[pools.payoff].max(axis=2)
        kernels = lifted_rows(mean, 2 * reach[pools.group], allowed, worth)
        return {"table": lagrangian_table(pools, kernels, estimate[pools.payoff]), "estimate": estimate}


def radius(view: View, visits: IntArray) -> FloatArray:
    """Rad of the visits (of pairs, any shape): sqrt(ln(T H) / 2m), at most 1, and 1 where there were none."""
    wide = np.sqrt(np.log(view.episodes * view.horizon) / (2 * np.maximum(visits, 1)))
    return np.where(visits > 0, np.minimum(wide, 1.0), 1.0)
