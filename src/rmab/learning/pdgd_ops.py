"""PDGD-OPS (Germano, Stradi, Genalti, Castiglioni, Marchesi and Gatti, 2023): primal and dual descent, each for itself.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full,
of rewards and constraints; the budget is constant, so the regime of stochastic constraints applies.
    q(t+1) = step from q(t) along r(t) - prices(t) a;   prices_h(t+1) = clip(prices_h(t) + eta_d (used_h / N - B / N)).
The primal learner must have no regret on any interval of episodes. The paper projects in the Euclidean norm, which has that
property. We project by divergence after mixing in 1 / T of the uniform occupancy (fixed share), which has it as well, and
needs no solver of quadratic programmes: this is a substitute, and its rate is ours.
Hard budget: given the prices every arm is by itself, and the plan may exceed the budget; the B highest indices are
activated. `violation(state)` is the plan's own average excess.
Parameters: eta_p = sqrt(ln(S^2 A) / T) / G, G the largest |r - price| so far (ours); eta_d = 1 / (H sqrt(T ln(T^2 /
epsilon))) and prices within [0, T^(1/4)] (the paper's, in our reading: its rates are the least sure of all rivals here).
Tuned: 64 eta_p and 1000 eta_d (studies/tuning_rivals.py, docs/tuning.md).
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, State
from rmab.learning.mirror import paper_rate
from rmab.learning.pools import Pools
from rmab.learning.presets import PresetOptions
from rmab.learning.primal_dual import PrimalDual, priced
from rmab.model.view import View

__all__ = ["PdgdOps", "PdgdOpsOptions"]


class PdgdOpsOptions(PresetOptions):
    """Options of `pdgd-ops`."""

    TUNED: ClassVar[Mapping[str, float]] = {"primal": 64.0, "dual": 1000.0}
    primal: float | None = Field(None, gt=0, le=1e6, description="the learning rate, in units of the theory's")
    dual: float | None = Field(None, gt=0, le=1e6, description="the rate of the prices, in units of the theory's")


class PdgdOps(PrimalDual):
    """Mirror descent with fixed share, and prices by projected gradient ascent."""

    name = "pdgd-ops"
    paper = "Germano, Stradi, Genalti, Castiglioni, Marchesi & Gatti, 2023"

    def _first(self, view: View, pools: Pools) -> Arrays:
        return {**super()._first(view, pools), "greatest": np.array(0.0)}

    def _direction(self, state: State, rewards: FloatArray) -> tuple[FloatArray, Arrays]:
        view, arrays, excess = state.view, state.arrays, self._excess(state)
        gain = rewards - priced(arrays["prices"])
        greatest = max(float(arrays["greatest"]), float(np.abs(gain).max()), 1e-300)
        rate = self.settings.chosen("primal") * paper_rate(view) / greatest
        slowness = view.horizon * np.sqrt(view.episodes * np.log(view.episodes**2 / self.settings.epsilon))
        moved = arrays["prices"] + self.settings.chosen("dual") / slowness * excess
        prices = np.clip(moved, 0.0, view.episodes**0.25)
        own = {"prices": prices, "excess": arrays["excess"] + excess, "greatest": np.array(greatest)}
        return rate * gain, own
