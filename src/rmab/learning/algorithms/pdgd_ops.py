"""PDGD-OPS (Germano, Stradi, Genalti, Castiglioni, Marchesi and Gatti, 2023): separate primal and dual descent.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full,
of rewards and constraints; the budget is constant, so the regime of stochastic constraints applies.
    q(t+1) = step from q(t) along r(t) - prices(t) a;   prices_h(t+1) = clip(prices_h(t) + eta_d (used_h / N - B / N)).
The primal learner must have no regret on any interval of episodes. The paper projects in the Euclidean norm, which has that
property. We project by divergence after mixing in 1 / T of the uniform occupancy (fixed share), which has it as well, and
needs no solver of quadratic programmes: this is a substitute, and its rate is ours.
Hard budget: given the prices arms are independent, and the plan may exceed the budget; arms are activated by dependent
rounding of its shares, scaled down to the budget (`rounding="top"`: the B highest indices, without a guarantee).
`violation(state)` is the plan's own average excess. If it is large, scaled-down shares carry little information: after 50
episodes of cpap the theory's plan activates 19 of 20 arms with a budget of 10, so drawing is nearly uniform, while the
highest indices are near the bound (docs/comparison.md has both).
Parameters: eta_p = sqrt(ln(S^2 A) / T) / G, G the largest |r - price| so far (ours); eta_d = 1 / (H sqrt(T ln(T^2 /
epsilon))) and prices within [0, T^(1/4)] (the paper's, in our reading: its rates are the least certain here).
Tuned: 64 eta_p and 1000 eta_d (docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, cached_property, log_over
from rmab.learning.algorithms.primal_dual import PricedMirror, PrimalDual, action_costs
from rmab.learning.components import StepResult
from rmab.learning.mirror_descent import RATE, ComponentSet
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, Memory
from rmab.solvers.transitions import TransitionSets

DUAL = "the rate of the prices, in units of the theory's"


@configured
class PriceAscent(PricedMirror):
    """Prices move by projected gradient ascent, within [0, T^(1/4)]."""

    dual: float = option(default=1.0, ge=1e-12, le=1e6, help=DUAL)
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help="of the rate of the prices")

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Return the first plan; no gains and no prices yet."""
        first = super().begin(pools, sets)
        return StepResult(first.mass, first.iterations, {**first.memory, "greatest": np.array(0.0)})

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the largest gain, too."""
        return {**super().state_spec(pools), "greatest": ArraySpec((), "f", 0)}

    def exponent(self, memory: Memory, episode: Episode, gain: FloatArray) -> tuple[FloatArray, Memory]:
        """Return the rate, in units of the largest |gain - price| so far, times gain less price."""
        view, excess = episode.pools.view, self.excess(episode)
        gain = gain - action_costs(memory["prices"])
        greatest = max(float(memory["greatest"]), float(np.abs(gain).max()), 1e-300)
        rate = self.rate(view) / greatest
        slowness = view.horizon * np.sqrt(view.episodes * log_over(view.episodes**2, self.epsilon))
        moved = memory["prices"] + self.dual / slowness * excess
        prices = np.clip(moved, 0.0, view.episodes**0.25)
        own = {"prices": prices, "excess": memory["excess"] + excess, "greatest": np.array(greatest)}
        return rate * gain, own


@configured
class PdgdOps(PrimalDual):
    """Mirror descent with fixed share, and prices by projected gradient ascent."""

    name = "pdgd-ops"
    TUNED = {"primal": 64.0, "dual": 1000.0}
    primal: float | None = option(default=None, ge=1e-12, le=1e6, help=RATE)
    dual: float | None = option(default=None, ge=1e-12, le=1e6, help=DUAL)

    @cached_property
    def components(self) -> ComponentSet:
        """L1 balls by doubling epochs, the true rewards, mirror descent with prices."""
        return self.assemble(PriceAscent(scale=self.parameter("primal"), dual=self.parameter("dual"), epsilon=self.epsilon))
