"""Policy optimisation with dilated bonuses (Luo, Wei and Lee, NeurIPS 2021): exponential weights, no projection.

Knowledge: nothing of the kernels; Bernstein boxes around the empirical ones, rebuilt when a pair's count doubles. Feedback:
bandit. With L the losses of an episode from step h on, and q-bar, q-low the most and least mass over the boxes,
    Q(s,a,h) = L visited / (q-bar + gamma)
    b(s,h) = mean over actions of (3 gamma H + H (q-bar - q-low)) / (q-bar + gamma)
    B(s,a,h) = b(s,h) + (1 + 1/H) max over the boxes of the mean of B at h+1
    pi(a|s,h) ~ exp(-eta sum of (Q - B))
Hard budget: activating at step h costs a price in [0, 1], counted as a loss, that follows the arms' own active mass under
the empirical kernels with rate 1 / sqrt(T); arms are activated by dependent rounding of pi(active), scaled down to the
budget, while slots that it leaves free go to the highest indices (rule `fill`); every arm learns from its own trajectory.
An arm's visits then depend on the others: the q-bar that divides L is
the visits of the executed policy in simulated episodes, times what q-bar of a state is in units of its empirical occupancy;
that of the bonus is the arm's own.
Parameters: eta = min(1 / (24 H^3), 1 / sqrt(S H A H T)), gamma = 2 eta H (the paper's; with H = 50 and T = 50 nothing is
learned). Tuned: eta = 0.3 / H, gamma a hundredth of 2 eta H with the eta in use, not the theory's, and the bonus a
thousandth of the theory's (studies/tuning_rivals.py, docs/tuning.md).
Cost: as of `uob-reps`, for every node, twice.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, Learner, Plan, State
from rmab.learning.confidence import Confidence
from rmab.learning.exposure import bounds, importance, of_blocks, own_occupancy, placed, rows_of
from rmab.learning.occupancy import doubled
from rmab.learning.pools import Observed, Pools
from rmab.learning.presets import WeightedOptions
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy
from rmab.solvers.compiled.bounds import dilated_bonus
from rmab.solvers.compiled.optimism import Rows

__all__ = ["DilatedPo", "DilatedPoOptions"]


class DilatedPoOptions(WeightedOptions):
    """Options of `dilated-po`."""

    TUNED: ClassVar[Mapping[str, float]] = {"rate": 0.3, "gamma": 0.01, "bonus": 0.001}
    rate: float | None = Field(None, gt=0, le=1e6, description="eta times H; None: the theory's, or the tuned one")
    gamma: float | None = Field(None, gt=0, le=1e6, description="implicit exploration, in units of 2 eta H")
    bonus: float | None = Field(None, ge=0, le=1e6, description="the bonus, in units of the theory's")


class DilatedPo(Learner):
    """Exponential weights on losses to go, with bonuses for what is rarely reached."""

    name = "dilated-po"
    paper = "Luo, Wei & Lee, NeurIPS 2021"
    settings: DilatedPoOptions

    def __init__(self, options: DilatedPoOptions) -> None:
        self.settings = options

    def eta(self, view: View) -> float:
        """Return the learning rate."""
        if self.settings.rate is None and self.settings.preset == "theory":
            pairs = 2 * view.states * view.horizon
            return float(min(1 / (24 * view.horizon**3), 1 / np.sqrt(pairs * view.horizon * view.episodes)))
        return self.settings.chosen("rate") / view.horizon

    def _begin(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        pools = Pools.of(view)
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        losses = np.zeros((pools.start.size, view.horizon, view.states, 2))
        return {"counts": counts, "epoch": counts, "losses": losses, "prices": np.zeros(view.horizon)}

    def _plan(self, state: State) -> Plan:
        index = self._share(state)[Pools.of(state.view).block_of]
        return Plan(IndexPolicy(index, state.view.budget, rounding=self.settings.rounding))

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        observed = pools.observe(view, feedback)
        counts = arrays["counts"] + observed.counts
        epoch = counts if doubled(arrays["epoch"], counts) else arrays["epoch"]
        share = self._share(state)
        own = own_occupancy(view, pools, share, arrays["epoch"])
        excess = np.einsum("n,nhs->h", pools.weights, own[..., 1]) - view.budget
        prices = np.clip(arrays["prices"] + excess / (view.arms * np.sqrt(view.episodes)), 0.0, 1.0)
        losses = arrays["losses"] + self._advance(state, feedback, observed, share)
        return {"counts": counts, "epoch": epoch, "losses": losses, "prices": prices}

    def _share(self, state: State) -> FloatArray:
        """(C, H, S) pi(active)."""
        losses = state.arrays["losses"]
        return np.asarray(expit(self.eta(state.view) * (losses[..., 0] - losses[..., 1])))

    def _advance(self, state: State, feedback: Feedback, observed: Observed, share: FloatArray) -> FloatArray:
        """(C, H, S, 2) Q - B of the last episode."""
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        sets = Confidence("wide-bernstein", self.settings.epsilon)
        rows = rows_of(pools, sets.kernels(view, arrays["epoch"], pools.support, 0))
        everywhere = np.ones(share.shape, dtype=bool)
        most, least = (bounds(pools, rows, share, everywhere, most=sign) for sign in (True, False))
        gamma = self.settings.chosen("gamma") * 2 * self.eta(view) * view.horizon
        weights = (
            importance(view, pools, self._plan(state).policy, share, arrays["epoch"], most, (state.seed, state.episode))
            + gamma
        )
        to_go = of_blocks(pools, placed(view, feedback, _losses_to_go(pools, feedback, observed, arrays["prices"])))
        return to_go / weights - self.settings.chosen("bonus") * _bonus(rows, share, most, least, gamma)


def _losses_to_go(pools: Pools, feedback: Feedback, observed: Observed, prices: FloatArray) -> FloatArray:
    """(H, N) what every arm loses from step h on, prices included; rewards that were not revealed count as no loss."""
    actions = feedback.actions.astype(np.int64)
    value = observed.values[pools.kind_of, feedback.states[:-1], actions]
    loss = np.where(np.isnan(value), 0.0, 1.0 - value) + prices[:, np.newaxis] * actions
    return np.asarray(loss[::-1].cumsum(axis=0)[::-1])


def _bonus(rows: Rows, share: FloatArray, most: FloatArray, least: FloatArray, gamma: float) -> FloatArray:
    """(C, H, S, 2) B, from the most and least mass of every pair (C,H,S,2)."""
    horizon = share.shape[1]
    chance = np.stack([1.0 - share, share], axis=3)
    local = (chance * (3 * gamma * horizon + horizon * (most - least)) / (most + gamma)).sum(axis=3)
    bonus = np.empty(most.shape)
    dilated_bonus(rows, share, local, 1.0 + 1.0 / horizon, bonus)
    return bonus
