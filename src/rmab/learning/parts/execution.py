"""From a plan to decisions that keep the hard budget (Xiong & Li 2024, Section 4.4)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rmab.common.arrays import FloatArray
from rmab.learning.options import configured, option
from rmab.learning.parts.base import Part
from rmab.learning.pools import Pools
from rmab.play.policy import IndexPolicy, Policy, Rule

RULE = "always activate the full budget (fill), or leave arms of index 0 (at-most) or below (auto) passive"


class Execution(Part, ABC):
    """A part that says who is activated. Override `policy`; every policy must keep the budget."""

    anywhere = True

    @abstractmethod
    def policy(self, pools: Pools, mass: FloatArray) -> Policy:
        """Return the policy that executes the occupancies (C, H, S, 2) of a plan."""


@configured
class TopB(Execution):
    """Activate the arms with the highest share of active mass in their state: the paper's index policy."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, mass: FloatArray) -> Policy:
        """Return the index policy of the shares."""
        return IndexPolicy(pools.index_of(mass), pools.view.budget, rule=self.rule)


@configured
class DependentRounding(Execution):
    """Activate each arm with the plan's own probability, as far as the budget allows."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, mass: FloatArray) -> Policy:
        """Return the policy that draws."""
        return IndexPolicy(pools.index_of(mass), pools.view.budget, rule=self.rule, rounding="dependent")
