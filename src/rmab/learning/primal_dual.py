"""What the primal-dual rivals share: the budget is priced, not enforced, and is kept on average over the episodes at best.

Their own constraint is that the active mass, averaged over episodes, is at most the budget at every step. The hard budget is
kept by the index policy that is read off the plan; the plan's own excess is recorded, so that it can be reported.
"""

from typing import ClassVar

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, State
from rmab.learning.occupancy import FullInformation
from rmab.learning.pools import Pools
from rmab.model.view import View

__all__ = ["PrimalDual", "priced"]


class PrimalDual(FullInformation):
    """Prices (H,) of activation, raised where the plan's active mass is above the budget, lowered where it is below."""

    coupled: ClassVar[bool] = False

    def violation(self, state: State) -> float:
        """Return by how much the plans exceed the budget at the worst step, on average over episodes, as a part of it."""
        if state.episode == 0:
            return 0.0
        mean = state.arrays["excess"] / state.episode
        return max(0.0, float(mean.max()) * state.view.arms / max(state.view.budget, 1))

    def _first(self, view: View, pools: Pools) -> Arrays:
        return {**super()._first(view, pools), "prices": np.zeros(view.horizon), "excess": np.zeros(view.horizon)}

    def _fixed_share(self, view: View) -> float:
        return 1.0 / view.episodes

    def _excess(self, state: State) -> FloatArray:
        """(H,) active mass of the last plan beyond the budget, per arm."""
        view, weights = state.view, Pools.of(state.view).weights
        used = np.einsum("n,nhs->h", weights, state.arrays["mass"][..., 1])
        return np.asarray((used - view.budget) / view.arms)


def priced(prices: FloatArray) -> FloatArray:
    """(1, H, 1, 2) what prices (H,) cost the passive and the active."""
    return np.stack([np.zeros_like(prices), prices], axis=1)[np.newaxis, :, np.newaxis]
