"""Looks: an arm whose pay was not seen for long is activated once, where that costs least."""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.learning.kept import Declared, whole
from rmab.learning.options import configured, option
from rmab.learning.parts.base import Episode, Part
from rmab.learning.parts.rewards import Estimate
from rmab.learning.pools import Pools
from rmab.learning.state import Memory
from rmab.play.policy import IndexPolicy, Policy

KEY = 8  # of the stream that they draw from
FIRST = 2.0  # an index above all shares
CHEAP = 0.1  # part of the steps, the cheapest ones, in which looks are made


@configured
class Looks(Part):
    """Activate every arm now and then, to see what it pays: a rule without which a plan never learns that it was wrong.

    An arm is due when its pay for being active was not revealed during the last `every` * t episodes, t the episodes since
    the last surprise: often at first and after a change, ever more rarely while nothing happens, so that the number of looks
    grows as the logarithm of T. Due arms are activated once, at one of the steps at which the plan's prices say that an
    activation is worth least. Looks take no more than the part `most` of all activations; those of longest ago come first.
    """

    anywhere = True
    every: float = option(
        default=0.1, ge=0, le=1e6, help="how long an arm may be unseen, as a part of the calm; 0: no looks"
    )
    most: float = option(default=0.04, ge=0, le=1, help="part of all activations that may be looks")

    @property
    def draws(self) -> bool:  # type: ignore[override]  # an attribute of other parts
        """Whether there are any: who comes first among equals is drawn."""
        return self.every > 0

    def begin(self, pools: Pools) -> Memory:
        """Return for how many episodes each arm was not seen, and how long nothing has surprised."""
        if self.every == 0:
            return {}
        return {"unseen": np.zeros(pools.view.arms, dtype=np.int64), "calm": np.array(0)}

    def kept(self, pools: Pools) -> Declared:
        """Declare them."""
        return {"unseen": whole(pools.view.arms), "calm": whole()} if self.every else {}

    def learn(self, memory: Memory, episode: Episode, estimate: Estimate) -> Memory:
        """Note who was seen, and whether an arm that had not been surprised."""
        if self.every == 0:
            return {}
        pools = episode.pools
        paid = ~np.isnan(episode.observed.values[..., 1]) & ~pools.zero[..., 1]
        seen = _of_arms(pools, paid.max(axis=1))
        surprised = None if estimate.surprised is None else _of_arms(pools, estimate.surprised)
        new = surprised is not None and bool((surprised & (memory["unseen"] > 0)).any())
        return {"unseen": np.where(seen, 0, memory["unseen"] + 1), "calm": np.array(0 if new else memory["calm"] + 1)}

    def added(
        self, memory: Memory, policy: Policy, pools: Pools, prices: FloatArray | None, luck: tuple[int, int]
    ) -> Policy:
        """Return the policy with its looks; prices (H,): what an activation is worth at each step, where that is known."""
        if self.every == 0 or not isinstance(policy, IndexPolicy) or policy.table.ndim != 3:
            return policy
        rng = np.random.default_rng((KEY, *luck))
        budgets = pools.view.budgets
        due = np.flatnonzero(memory["unseen"] >= max(1.0, self.every * float(memory["calm"])))
        oldest = np.argsort(-(memory["unseen"][due] + rng.random(due.size)))
        arms = due[oldest][: int(np.ceil(self.most * float(budgets.sum())))]
        if arms.size == 0:
            return policy
        steps = _cheapest(budgets, prices, arms.size, rng)
        drawn = policy.rounding == "dependent"
        table = np.array(policy.by_step(budgets.size), order="C")
        table[steps, arms] = 1.0 if drawn else FIRST
        return IndexPolicy.of_steps(table, policy.budget, rule=policy.rule, rounding=policy.rounding)


def _of_arms(pools: Pools, rows: BoolArray) -> BoolArray:
    """(N,) whether it holds of the payoff of an arm in some phase, given (R,)."""
    return np.asarray(rows.reshape(-1, pools.view.phases).max(axis=1)[pools.payoff_of])


def _cheapest(budgets: IntArray, prices: FloatArray | None, number: int, rng: np.random.Generator) -> IntArray:
    """Draw so many steps among the cheapest, as many of them as have room, and a tenth at least."""
    order = rng.permutation(np.flatnonzero(budgets > 0))
    if prices is not None:
        order = order[np.argsort(prices[-budgets.size :][order], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(budgets[order]), number)) + 1
    return np.asarray(rng.permutation(np.resize(order[: max(enough, int(np.ceil(CHEAP * order.size)))], number)))
