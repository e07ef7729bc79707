"""Upper confidence primal-dual (Qiu, Wei, Yang, Ye and Wang, NeurIPS 2020): constraints that hold on average, by queues.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full.
    theta(t+1) = argmin <V f(t) + sum_h Q_h(t) g_h, theta> + alpha D(theta || (1 - lambda) theta(t) + lambda uniform)
    Q_h(t) = max(Q_h(t-1) + <g_h, theta(t)> - c_h, 0)
Here g_h is the part of the arms that is active at step h, and c_h = B / N; losses and divergence are means over the arms,
too.
Hard budget: given the queues every arm is by itself, and the plan may exceed the budget; the B highest indices are
activated. `violation(state)` is the plan's own average excess.
Parameters: V = H sqrt(T), alpha = H T, lambda = 1 / T (the paper's, in our reading; that means over arms are taken is
ours). Queues are slow: the plan keeps the budget when T is far above 16 H^2. Tuned: 0.01 V and 0.0003 alpha, so that queues
count for far more (studies/tuning_rivals.py, docs/tuning.md).
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, State
from rmab.learning.presets import PresetOptions
from rmab.learning.primal_dual import PrimalDual, priced

__all__ = ["Ucpd", "UcpdOptions"]


class UcpdOptions(PresetOptions):
    """Options of `ucpd`."""

    TUNED: ClassVar[Mapping[str, float]] = {"v": 0.01, "alpha": 0.0003}
    v: float | None = Field(None, gt=0, le=1e6, description="V, the weight of the losses, in units of the theory's")
    alpha: float | None = Field(None, gt=0, le=1e6, description="alpha, the weight of staying, in units of the theory's")


class Ucpd(PrimalDual):
    """Mirror descent with prices that are queues of what was overspent."""

    name = "ucpd"
    paper = "Qiu, Wei, Yang, Ye & Wang, NeurIPS 2020"

    def _direction(self, state: State, rewards: FloatArray) -> tuple[FloatArray, Arrays]:
        view, arrays, excess = state.view, state.arrays, self._excess(state)
        v = self.settings.chosen("v") * view.horizon * np.sqrt(view.episodes)
        alpha = self.settings.chosen("alpha") * view.horizon * view.episodes
        prices = np.maximum(arrays["prices"] + excess, 0.0)
        return (v * rewards - priced(prices)) / alpha, {"prices": prices, "excess": arrays["excess"] + excess}
