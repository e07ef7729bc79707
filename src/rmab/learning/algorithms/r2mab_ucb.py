"""R(MA)^2B-UCB (Xiong, Li and Singh, AAAI 2022): extended LP over the steps of an episode, index from its occupancy.

Versions: `online` solves again before every episode, rewards averaged over all of them; `generator` learns kernels from
samples of every pair, as published (privileged); `explore` replaces the generator by T^(2/3) episodes of exploration
and commits to the index that it then finds.

Knowledge: nothing of the kernels; Hoeffding boxes around the empirical ones. Feedback: bandit. Hard budget: the LP's holds
on average; the B highest indices are activated. The index is chi, the share of a state's mass that is active; `weighted` is
chi times the reward of being active, which the paper's name for it suggests (our reading). Where a state has no mass, and
among equal indices, the plan's advantage decides (`extended_lp.finite_plan`). Rewards: min(mean + delta, 1), as the
extended LP of the paper has it in our reading, or the sample mean (`rewards="mean"`), which is how Xiong & Li (2024, Section
4.3) describe it in the same words as `rmab-ucrl`; on CPAP that is far better (docs/comparison.md has both). Theory: kernels
and rewards within delta; tuned: the same, for the theory's own radius won (version `online`; docs/tuning.md).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rmab.learning.algorithms.extended_lp import MEANS, ExtendedLearner, Means, finite_plan
from rmab.learning.components import Exploration
from rmab.learning.index_learner import Knowledge
from rmab.learning.options import configured, option
from rmab.learning.state import Arrays
from rmab.model import by_step


@configured
class R2mabUcb(ExtendedLearner):
    """The extended LP over the steps of an episode, and an index from its occupancy."""

    name = "r2mab-ucb"
    version: Literal["online", "generator", "explore"] = option(default="online", help="source of transitions")
    index: Literal["share", "weighted"] = option(default="share", help="chi, or chi times the reward")
    rewards: Means = option(default="optimistic", help=MEANS)

    @property
    def explore(self) -> Exploration | None:
        """For T^(2/3) episodes, in version `explore`."""
        return Exploration() if self.version == "explore" else None

    def prepare(self, known: Knowledge) -> Arrays:
        """Solve the extended LP."""
        pools, (sets, estimate) = known.pools, self.optimistic(known)
        mass, index = finite_plan(pools, sets, estimate)
        share = index[pools.block_of]
        active = np.ascontiguousarray(estimate[..., 1])[pools.payoff]
        worth = by_step(active, pools.weights.size, pools.view.steps)[pools.block_of]
        return {"estimate": estimate, "mass": mass, "table": share * worth if self.index == "weighted" else share}
