"""Upper confidence primal-dual (Qiu, Wei, Yang, Ye and Wang, NeurIPS 2020): constraints that hold on average, by queues.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full.
    theta(t+1) = argmin <V f(t) + sum_h Q_h(t) g_h, theta> + alpha D(theta || (1 - lambda) theta(t) + lambda uniform)
    Q_h(t) = max(Q_h(t-1) + <g_h, theta(t)> - c_h, 0)
Here g_h is the part of the arms that is active at step h, and c_h = B / N; losses and divergence are means over the arms,
too.
Hard budget: given the queues arms are independent, and the plan may exceed the budget; arms are activated by dependent
rounding of its shares, scaled down to the budget (`rounding="top"`: the B highest indices, without a guarantee).
`violation(state)` is the plan's own average excess. If it is large, scaled-down shares carry little information: after 50
episodes of cpap the theory's plan activates 18 of 20 arms with a budget of 10, so drawing is nearly uniform, while the
highest indices are near the bound (docs/comparison.md has both).
Parameters: V = H sqrt(T), alpha = H T, lambda = 1 / T (the paper's, in our reading; that means over arms are taken is
ours). Queues are slow: the plan keeps the budget when T is far above 16 H^2. Tuned: 0.01 V and 0.0003 alpha, so that queues
count for far more (docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, cached_property
from rmab.learning.algorithms.primal_dual import PricedMirror, PrimalDual, action_costs
from rmab.learning.mirror_descent import ComponentSet
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode
from rmab.learning.state import Memory

V = "V, the weight of the losses, in units of the theory's"
ALPHA = "alpha, weight of the last plan, in units of the theory's"


@configured
class Queues(PricedMirror):
    """Prices are queues of the excess over the budget."""

    v: float = option(default=1.0, ge=1e-12, le=1e6, help=V)
    alpha: float = option(default=1.0, ge=1e-12, le=1e6, help=ALPHA)

    def exponent(self, memory: Memory, episode: Episode, gain: FloatArray) -> tuple[FloatArray, Memory]:
        """Return (V gain - prices) / alpha, with the prices after this episode."""
        view, excess = episode.pools.view, self.excess(episode)
        v = self.v * view.horizon * np.sqrt(view.episodes)
        alpha = self.alpha * view.horizon * view.episodes
        prices = np.maximum(memory["prices"] + excess, 0.0)
        return (v * gain - action_costs(prices)) / alpha, {"prices": prices, "excess": memory["excess"] + excess}


@configured
class Ucpd(PrimalDual):
    """Mirror descent with prices that are queues of the excess over the budget."""

    name = "ucpd"
    TUNED = {"v": 0.01, "alpha": 0.0003}
    v: float | None = option(default=None, ge=1e-12, le=1e6, help=V)
    alpha: float | None = option(default=None, ge=1e-12, le=1e6, help=ALPHA)

    @cached_property
    def components(self) -> ComponentSet:
        """L1 balls by doubling epochs, the true rewards, mirror descent with queues."""
        return self.assemble(Queues(v=self.parameter("v"), alpha=self.parameter("alpha")))
