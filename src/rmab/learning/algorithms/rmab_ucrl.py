"""RMAB-UCRL (Xiong, Wang and Li, NeurIPS 2022), the paper's rival: mean rewards, optimistic kernels, extended LP, top-B.

For rewards that do not change. Versions: `stationary`, UC-R2MAB as published (average reward over an infinite horizon,
one index per state); `finite`, for episodes of H steps, so that it is not handicapped by the horizon; `window`, finite with
rewards averaged over the last sqrt(T) episodes only, the natural variant for rewards that change; `generator`, GM-R2MAB, the
stationary LP on samples of a generator (privileged).

Knowledge: nothing of the kernels; Hoeffding boxes. Feedback: bandit. Hard budget: the LP's holds on average; the B highest
indices are activated. Theory: kernels and rewards within delta; tuned: the same, for the theory's own radius won (version
`stationary`, rewards by sample means; docs/tuning.md).

Rewards: the sample mean of all that was seen (`mean`, the default), which is how Xiong & Li (2024, Section 4.3) describe
the estimator of this rival; or min(mean + delta, 1), as the extended LP of 2022 has it in our reading (`optimistic`). A pair
that was never visited (with a window: not in the window) has 1. Where delta is large it hides every difference: on
deadline scheduling min(mean + delta, 1) is 1 for nearly all pairs for a hundred episodes.

The index of a state without mass is not defined as published, nor is the order of equal indices. Stationary masses are
in few states, and most indices are 0 or 1, so both matter; random ties would be a handicap that its paper does not ask for.
Both are decided by the plan's advantage, the gain of activating over staying passive at the plan's price: a state
without mass has 1 where that is positive and 0 elsewhere, and equal indices are ranked by it. (On deadline scheduling
with optimistic rewards the price is 0, seven states of ten have no mass, and two fifths of all indices are 1 exactly after
40 episodes: with random ties, the B highest would be nearly random. docs/details.md has the numbers.)

The width of a mean reward is that of the visits whose reward was shown. That of `window` is deliberately that of all visits,
not of the window's: with the few of those, every optimistic reward would stay at 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.learning.algorithms.extended_lp import MEANS, ExtendedLearner, Means, break_ties, finite_plan
from rmab.learning.index_learner import Knowledge
from rmab.learning.options import configured, option
from rmab.learning.pools import Pools, refuse_forced
from rmab.learning.state import Arrays, ArraySpecs, State, masses
from rmab.model import View
from rmab.solvers.checks import check_one_budget
from rmab.solvers.stationary.stationary import stationary_fluid


@configured
class RmabUcrl(ExtendedLearner):
    """Optimism about kernels; the reward of a pair is its mean, or min(mean + delta, 1)."""

    name = "rmab-ucrl"
    any_budget = True
    version: Literal["stationary", "finite", "window", "generator"] = option(
        default="stationary", help="as published, for a finite horizon, with a window of sqrt(T), or from a generator"
    )
    rewards: Means = option(default="mean", help=MEANS)

    def prepare(self, known: Knowledge) -> Arrays:
        """Solve the extended LP; the share of a state's mass that is active is the index of its block."""
        pools, (sets, estimate) = known.pools, self.optimistic(known)
        if self.version in ("finite", "window"):
            mass, share = finite_plan(pools, sets, estimate)
            return {"estimate": estimate, "mass": mass, "share": share}
        blocks, view = sets.take(pools.group), pools.view
        check_one_budget(self.name, view.budget)
        rest = (float(pools.budget[0]), pools.weights * pools.cost, pools.real[pools.group])
        infinite = stationary_fluid(blocks.low, blocks.high, pools.pays(estimate), *rest, exact=view.exact)
        index = break_ties(infinite.share, infinite.advantage)
        mass, share = (np.repeat(one[:, np.newaxis], view.horizon, axis=1) for one in (infinite.mass, index))
        return {"estimate": estimate, "mass": mass, "share": share}

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare the shares, too."""
        return {**super().state_spec(view), "share": masses(Pools.of(view).weights.size, view.horizon, view.states)}

    def refuses(self, view: View) -> str:
        """Reject phases, and budgets that change from step to step, in stationary versions."""
        infinite = self.version in ("stationary", "generator") and (view.phases > 1 or isinstance(view.budget, np.ndarray))
        why = f"version {self.version!r} plans for one phase and one budget; use version 'finite' or 'window'"
        return why if infinite else refuse_forced(view)

    def table(self, state: State) -> FloatArray:
        """(N, H, S) the share of every arm's block."""
        return state.arrays["share"][Pools.of(state.view).block_of]

    def times_seen(self, known: Knowledge) -> IntArray:
        """(R, S, 2) the visits whose reward was shown; with a window deliberately all visits."""
        return known.visits[known.pools.group_of_payoff] if self.version == "window" else known.shown

    def window(self, view: View) -> int:
        """Return sqrt(T) in version `window`."""
        return max(1, round(view.episodes**0.5)) if self.version == "window" else 0
