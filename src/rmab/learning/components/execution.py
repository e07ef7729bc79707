"""From a plan to decisions that keep the hard budget (Xiong & Li 2024, Section 4.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.learning.components.base import Component
from rmab.learning.options import configured, option
from rmab.learning.pools import Pools
from rmab.play.policy import LARGE, IndexPolicy, Policy, Rule

RULE = "always activate the full budget (fill), or leave arms of index 0 (at-most) or below (auto) passive"


class Execution(Component, ABC):
    """A part that says who is activated. Override `policy`; every policy must keep the budget."""

    anywhere = True

    @abstractmethod
    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that executes a plan: the share (C, H, S) of every block that is active in a state at a step."""

    def drawing(self) -> Execution:
        """Return the execution for plans whose shares must be drawn as they are."""
        return DependentRounding()


@configured
class TopB(Execution):
    """Activate the arms with the highest share of active mass in their state: the paper's index policy."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the index policy of the shares."""
        return IndexPolicy.of_steps(_of_arms(pools, share), pools.view.budget, rule=self.rule)

    def drawing(self) -> Execution:
        """Return dependent rounding, with the same rule."""
        return DependentRounding(rule=self.rule)


@configured
class DependentRounding(Execution):
    """Activate each arm with the plan's own probability, as far as the budget allows."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that draws."""
        return IndexPolicy.of_steps(_of_arms(pools, share), pools.view.budget, rule=self.rule, rounding="dependent")

    def drawing(self) -> Execution:
        """Return itself."""
        return self


def _of_arms(pools: Pools, share: FloatArray) -> FloatArray:
    """(H, N, S) the share of every arm, from that of its block (C, H, S): laid out as policies are, in one copy."""
    if share.size <= LARGE:
        return np.array(share[pools.block_of].transpose(1, 0, 2), order="C")
    table = np.empty((share.shape[1], pools.block_of.size, share.shape[2]))
    for h, step in enumerate(table):
        np.take(share[:, h], pools.block_of, axis=0, out=step)
    return table
