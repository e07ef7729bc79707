"""Adaptive adversaries: they react to past episodes, or to the plan of the next one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.model.adversaries import FACTOR_HIGH, FACTOR_LOW
from rmab.model.adversary import Adversary, RewardModel, first_of


@dataclass(frozen=True, eq=False)
class Answering(Adversary):
    """Raises or lowers each part of the reward by how much it is used.

    The use of a pair is the share of the visits of its state in which its action is taken. Under a tariff (units) there is
    one share per unit and part: the visits of pairs whose part is not zero, among those of states where it can be. Pairs
    that are never visited are not used.
    """

    model: RewardModel

    adaptive = True

    @property
    def base(self) -> FloatArray:
        """Reward if every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Return whether units and parts are the same within each group, so that rewards are."""
        first = first_of(groups)
        if self.model.units is None:
            return np.array_equal(first, np.arange(groups.size))
        parts = self.model.parts
        return np.array_equal(self.model.units, self.model.units[first]) and np.array_equal(parts, parts[:, first])

    def repeated(self, times: int) -> Self:
        """Return the adversary that reacts to all copies of an arm together."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the rewards, each part under the factor for its use."""
        seen = np.zeros(self.model.parts.shape[1:], dtype=np.int64) if visits is None else visits
        pay, cost = self.factors(self._shares(seen))
        return self.model.combined(np.where(self.model.parts >= 0, pay, cost))

    @abstractmethod
    def factors(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors of positive and of negative parts, for their shares of use."""

    def _uses(self) -> BoolArray:
        """Return which pairs use each part."""
        return np.asarray(self.model.parts != 0)

    def _count_uses(self, visits: IntArray) -> tuple[IntArray, IntArray]:
        """Return the visits that used each part, and those that could have."""
        uses = self._uses()
        return visits * uses, visits.sum(axis=-1, keepdims=True) * uses.any(axis=-1, keepdims=True)

    def _unit_shares(self, visits: IntArray) -> FloatArray:
        """(J, U) share of use of each part by each unit."""
        used, could = (self._by_unit(counted) for counted in self._count_uses(visits))
        return np.asarray(used / np.maximum(could, 1))

    def _by_unit(self, visits: IntArray) -> IntArray:
        """(J, U) visits of all arms of a unit."""
        of_arms = visits.sum(axis=tuple(range(2, visits.ndim)))  # (J, N)
        total = np.zeros(self.model.shape[::-1], dtype=np.int64)
        np.add.at(total, self.model.unit_of, of_arms.T)
        return total.T

    def _shares(self, visits: IntArray) -> FloatArray:
        """Return the share of use of each part, in [0, 1], to broadcast against the parts."""
        if self.model.units is not None:
            return self.model.by_unit(self._unit_shares(visits))
        used, could = self._count_uses(visits)
        return np.asarray(used / np.maximum(could, 1))


class Adaptive(Answering):
    """Lowers the parts that were used most: the factor is 1.5 - share, the share of use in all earlier episodes.

    So the factor is 1.5 if the part was never used, and 0.5 if always. Costs (negative parts) grow, as 0.5 + share.
    """

    def factors(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1.5 - share and 0.5 + share."""
        return FACTOR_HIGH - share, FACTOR_LOW + share


class PlanAware(Answering):
    """Pays nothing where the next plan acts: factor 0 for the units that the plan uses most, 1.5 for the others.

    It is stronger than the paper's adversary, which knows only the past. Its visits come from rehearsals: 32 simulations of
    the next episode with its policy, with separate random numbers, from which the learner observes nothing.

    For each part, the number of most used units is the sum of the shares of all units, rounded, at least one and not all;
    ties go to the first. That is the budget if each arm is a unit. A single unit has the factor 1.5 (1 - share). If a part
    pays for both actions, the active one uses it. Costs (negative parts) have the factor 1.5 for the units that the plan
    uses most, and 0 for the others.
    """

    foresees = True

    def factors(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1.5 (1 - share) and 1.5 share."""
        return FACTOR_HIGH * (1.0 - share), FACTOR_HIGH * share

    def _uses(self) -> BoolArray:
        uses = super()._uses()
        uses[..., 0] &= ~uses[..., 1]
        return uses

    def _shares(self, visits: IntArray) -> FloatArray:
        """Return 1 for the most used units and 0 for the others, by part."""
        share = self._unit_shares(visits)
        units = share.shape[1]
        if units > 1:
            most = np.clip(np.rint(share.sum(axis=1, keepdims=True)), 1, units - 1)
            rank = (-share).argsort(axis=1, kind="stable").argsort(axis=1)
            share = np.where(rank < most, 1.0, 0.0)
        return self.model.by_unit(share)
