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
Parameters: eta = min(1 / (24 H^3), 1 / sqrt(S H A H T)), gamma = 2 eta H (the paper's). At the sizes of this library its
bound is vacuous: exponential weights may lose H ln(2) / eta before they have chosen, which is 16.6 H^4 or more, and an arm
cannot lose more than H T. So it says nothing before 16.6 H^3 episodes, 2 million with H = 50 and 450 with H = 3 (its other
terms may ask for more), and at that rate hardly anything is learned before. Tuned: eta = 0.3 / H, gamma 2 eta H with the eta
in use, not the theory's, and a tenth of the theory's bonus; but in 50 episodes no point of its grid is more than 1 %
better than the random policy (docs/tuning.md).
Cost: as of `uob-reps`, for every node, twice.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.components import EPSILON, ROUNDING, RULE, Doubling, WideBernstein
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import Observations, Pools
from rmab.learning.state import Arrays, ArraySpec, ArraySpecs, State, whole
from rmab.learning.visits import bounds, importance, of_blocks, own_occupancy, placed
from rmab.model import View
from rmab.play import Feedback, IndexPolicy, Rounding, Rule
from rmab.solvers.compiled.bounds import dilated_bonus
from rmab.solvers.transitions import TransitionSets

EPOCHS = Doubling()
LEAST = float(np.finfo(np.float64).tiny)  # of gamma: a product of small options may be 0, and nothing is divided by that


@configured
class DilatedPo(Learner):
    """Exponential weights on losses to go, with bonuses for what is rarely reached."""

    name = "dilated-po"
    draws = True
    TUNED = {"rate": 0.3, "gamma": 1.0, "bonus": 0.1}
    preset: Preset = option(default="theory", help=PRESET)
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    rounding: Rounding = option(default="dependent", help=ROUNDING)
    rule: Rule = option(default="fill", help=RULE)
    rate: float | None = option(default=None, ge=1e-12, le=1e6, help="eta times H; None: the theory's, or the tuned one")
    gamma: float | None = option(default=None, ge=1e-12, le=1e6, help="implicit exploration, in units of 2 eta H")
    bonus: float | None = option(default=None, ge=0, le=1e6, help="the bonus, in units of the theory's")

    def eta(self, view: View) -> float:
        """Return the learning rate."""
        if self.rate is None and self.preset == "theory":
            pairs = 2 * view.states * view.horizon
            return float(min(1 / (24 * view.horizon**3), 1 / np.sqrt(pairs * view.horizon * view.episodes)))
        return self.parameter("rate") / view.horizon

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with no losses and no prices."""
        pools = Pools.of(view)
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        losses = np.zeros((pools.weights.size, view.horizon, view.states, 2))
        return {"counts": counts, **EPOCHS.learn({}, counts), "losses": losses, "prices": np.zeros(view.horizon)}

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare counts, losses and prices."""
        pools = Pools.of(view)
        table, each = whole(*pools.support.shape), ArraySpec((view.horizon,), "f", 0, 1)
        losses = ArraySpec((pools.weights.size, view.horizon, view.states, 2))
        return {"counts": table, "epoch": table, "losses": losses, "prices": each}

    def decide(self, state: State) -> EpisodePlan:
        """Execute the probabilities of being active."""
        index = self._share(state)[Pools.of(state.view).block_of]
        return EpisodePlan(IndexPolicy(index, state.view.budget, rule=self.rule, rounding=self.rounding))

    def update(self, state: State, feedback: Feedback) -> Arrays:
        """Add the losses of the episode, less the bonus, and move the prices."""
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        observed, share = pools.observe(feedback), self._share(state)
        counts = arrays["counts"] + observed.counts
        own = own_occupancy(pools, share, arrays["epoch"])
        excess = np.einsum("n,nhs->h", pools.weights, own[..., 1]) - view.budgets
        prices = np.clip(arrays["prices"] + excess / (view.arms * np.sqrt(view.episodes)), 0.0, 1.0)
        losses = arrays["losses"] + self._advance(state, feedback, observed, share)
        epoch = EPOCHS.learn({"epoch": arrays["epoch"]}, counts)
        return {"counts": counts, **epoch, "losses": losses, "prices": prices}

    def _share(self, state: State) -> FloatArray:
        """(C, H, S) pi(active)."""
        losses = state.arrays["losses"]
        with np.errstate(over="ignore"):  # the probability is then 0
            return np.asarray(1.0 / (1.0 + np.exp(-self.eta(state.view) * (losses[..., 0] - losses[..., 1]))))

    def _advance(self, state: State, feedback: Feedback, observed: Observations, share: FloatArray) -> FloatArray:
        """(C, H, S, 2) Q - B of the last episode."""
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        until = EPOCHS.until(pools, state.episode)
        sets = WideBernstein(epsilon=self.epsilon).around(pools, arrays["epoch"], until).take(pools.group)
        everywhere = np.ones(share.shape, dtype=bool)
        most, least = (bounds(pools, sets, share, everywhere, most=sign) for sign in (True, False))
        gamma = max(self.parameter("gamma") * 2 * self.eta(view) * view.horizon, LEAST)
        draw_key = (state.seed, state.episode)
        weights = importance(pools, self.decide(state).policy, share, arrays["epoch"], most, draw_key) + gamma
        to_go = of_blocks(pools, placed(view, feedback, _losses_to_go(pools, feedback, observed, arrays["prices"])))
        return to_go / weights - self.parameter("bonus") * _bonus(pools, sets, share, most, least, gamma)


def _losses_to_go(pools: Pools, feedback: Feedback, observed: Observations, prices: FloatArray) -> FloatArray:
    """(H, N) what every arm loses from step h on, prices included; hidden rewards count as no loss."""
    actions = feedback.actions.astype(np.int64)
    cell = pools.payoff_of * pools.view.phases + pools.view.steps[:, np.newaxis]
    value = observed.values[cell, feedback.states[:-1], actions]
    loss = np.where(np.isnan(value), 0.0, 1.0 - value) + prices[:, np.newaxis] * actions
    return np.asarray(loss[::-1].cumsum(axis=0)[::-1])


def _bonus(
    pools: Pools, sets: TransitionSets, share: FloatArray, most: FloatArray, least: FloatArray, gamma: float
) -> FloatArray:
    """(C, H, S, 2) B, from the most and least mass of every pair (C,H,S,2)."""
    horizon = share.shape[1]
    chance = np.stack([1.0 - share, share], axis=3)
    local = (chance * (3 * gamma * horizon + horizon * (most - least)) / (most + gamma)).sum(axis=3)
    bonus = np.empty(most.shape)
    dilated_bonus(sets.rows, pools.view.steps, share, local, 1.0 + 1.0 / horizon, bonus)
    return bonus
