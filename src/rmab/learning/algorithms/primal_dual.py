"""Shared code of primal-dual learners: the budget is priced, not enforced, and holds on average over episodes at best.

Their constraint is that the active mass, averaged over episodes, is at most the budget at every step. The hard budget is
kept by the index policy of the plan; the plan's excess is recorded and reported.
"""

import numpy as np

from rmab.common import FloatArray
from rmab.learning.components import Centred, StepResult
from rmab.learning.epochs import EpochLearner
from rmab.learning.options import configured
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, State
from rmab.model import View
from rmab.solvers.transitions import TransitionSets


@configured
class PricedMirror(Centred):
    """Online mirror descent without the budget, and prices (H,) of activation; subclasses define how they move."""

    coupled = False

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Return the first plan; with zero prices and no excess."""
        first, nothing = super().begin(pools, sets), np.zeros(pools.view.horizon)
        return StepResult(first.mass, first.iterations, {**first.memory, "prices": nothing, "excess": nothing})

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare prices, and the excess."""
        each = ArraySpec((pools.view.horizon,))
        return {**super().state_spec(pools), "prices": each, "excess": each}

    def uniform_share(self, view: View) -> float:
        """Return 1 / T: fixed share, so that the plan can always turn back."""
        return 1.0 / view.episodes

    def excess(self, episode: Episode) -> FloatArray:
        """(H,) active mass of the last plan beyond the budget, per arm."""
        view = episode.pools.view
        used = np.einsum("n,nhs->h", episode.pools.weights, episode.mass[..., 1])
        return np.asarray((used - view.budgets) / view.arms)


class PrimalDual(EpochLearner):
    """Learners whose step prices the budget."""

    def violation(self, state: State) -> float:
        """Return by how much the plans exceed the budget at the worst step, averaged over episodes, relative to it."""
        if state.episode == 0:
            return 0.0
        mean = state.arrays["step.excess"] / state.episode
        return max(0.0, float((mean * state.view.arms / np.maximum(state.view.budgets, 1)).max()))


def action_costs(prices: FloatArray) -> FloatArray:
    """(1, H, 1, 2) what prices (H,) cost the passive and the active."""
    return np.stack([np.zeros_like(prices), prices], axis=1)[np.newaxis, :, np.newaxis]
