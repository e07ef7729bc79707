"""Adversaries that answer to what the learner does: to what it did so far, or to what it is about to do."""

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
    """Raises or lowers every part by how much it is used.

    How much a pair is used is the share of the visits of its state in which its action is taken. Under a tariff (units)
    there is one share per unit and part: the visits of the pairs where the part is not zero, among those of the states where
    it can be. What is never visited is not used.
    """

    model: RewardModel

    adaptive = True

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Return whether units and parts are the same within each group: then tariffs are, otherwise each arm differs."""
        first = first_of(groups)
        if self.model.units is None:
            return np.array_equal(first, np.arange(groups.size))
        parts = self.model.parts
        return np.array_equal(self.model.units, self.model.units[first]) and np.array_equal(parts, parts[:, first])

    def repeated(self, times: int) -> Self:
        """Return the adversary that answers to all copies of an arm together."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the parts, each under the factor that its use gives it."""
        seen = np.zeros(self.model.parts.shape[1:], dtype=np.int64) if visits is None else visits
        pay, cost = self.factors(self._shares(seen))
        return self.model.combined(np.where(self.model.parts >= 0, pay, cost))

    @abstractmethod
    def factors(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors of what pays and of what costs, by how much it is used."""

    def _uses(self) -> BoolArray:
        """Return which pairs use each part."""
        return np.asarray(self.model.parts != 0)

    def _counted(self, visits: IntArray) -> tuple[IntArray, IntArray]:
        """Return the visits that used each part, and those that could have."""
        uses = self._uses()
        return visits * uses, visits.sum(axis=-1, keepdims=True) * uses.any(axis=-1, keepdims=True)

    def _unit_shares(self, visits: IntArray) -> FloatArray:
        """(J, U) how much each unit uses each part."""
        used, could = (self._by_unit(counted) for counted in self._counted(visits))
        return np.asarray(used / np.maximum(could, 1))

    def _by_unit(self, visits: IntArray) -> IntArray:
        """(J, U) the visits of all arms of a unit."""
        of_arms = visits.sum(axis=tuple(range(2, visits.ndim)))  # (J, N)
        total = np.zeros(self.model.shape[::-1], dtype=np.int64)
        np.add.at(total, self.model.unit_of, of_arms.T)
        return total.T

    def _shares(self, visits: IntArray) -> FloatArray:
        """Return how much each part is used, in [0, 1], to broadcast against the parts."""
        if self.model.units is not None:
            return self.model.by_unit(self._unit_shares(visits))
        used, could = self._counted(visits)
        return np.asarray(used / np.maximum(could, 1))


class Adaptive(Answering):
    """Lowers what was used most so far: 1.5 - share times the part, by its share of the visits of all earlier episodes.

    So the factor is 1.5 where it was never used, and 0.5 where always. Costs (negative parts) grow instead, as 0.5 + share.
    """

    def factors(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 1.5 - share and 0.5 + share."""
        return FACTOR_HIGH - share, FACTOR_LOW + share


class PlanAware(Answering):
    """Pays nothing where the coming plan acts: 0 times the part for the units that the plan uses most, 1.5 for the others.

    Stronger than the paper's adversary, which knows the past alone. The visits that it is given are those of rehearsals: the
    policy of the coming episode plays it beforehand, 32 times over, with luck of its own, and nobody learns from that.

    For each part, the units that are used most are as many as the shares of all units sum to, rounded, at least one and not
    all of them; of equal ones the first. That is the budget where one arm is one unit. A lone unit pays 1.5 (1 - share).
    Where a part pays for both actions, the active one uses it. Costs (negative parts) are 1.5 times the part for the units
    that the plan uses most, and 0 for the others.
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
        """Return 1 for the units that are used most and 0 for the others, by part."""
        share = self._unit_shares(visits)
        units = share.shape[1]
        if units > 1:
            most = np.clip(np.rint(share.sum(axis=1, keepdims=True)), 1, units - 1)
            rank = (-share).argsort(axis=1, kind="stable").argsort(axis=1)
            share = np.where(rank < most, 1.0, 0.0)
        return self.model.by_unit(share)
