"""Values of policies in a model: exact if arms are independent; by simulation if they compete for the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray, ReadOnly, frozen, sum_by_group
from rmab.estimation.fit import Fit
from rmab.model import Arms, Problem
from rmab.planners.indices import lagrangian_index
from rmab.play import Batch, IndexPolicy, simulate_many

WORK = 3_000_000  # arm-periods that are simulated for one value
LEAST, MOST = 4, 400  # episodes


@dataclass(frozen=True, eq=False)
class World(ReadOnly):
    """The current states and actions: everything that does not depend on the kernels.

    belief (N, S), group (N,) and reward (G, S, 2) of the arms, where every arm may be its own group; turn (H, N) whose
    turn it is in rotation; rate (G, S) how often the log acted.
    """

    names: tuple[str, ...]
    belief: FloatArray
    group: IntArray
    reward: FloatArray
    budget: int
    horizon: int
    turn: FloatArray
    rate: FloatArray

    @classmethod
    def of(cls, fitted: Fit, budget: int, horizon: int) -> World:
        """Return the world of a fit."""
        present = fitted.present
        groups, group = np.unique(fitted.group_of[present], return_inverse=True)
        count = present.size
        line = np.argsort(-fitted.situation.acted_before[present], kind="stable")
        place = np.empty(count, dtype=np.int64)
        place[line] = np.arange(count)
        first = (budget * np.arange(horizon)) % count
        turn = ((place - first[:, np.newaxis]) % count < budget).astype(np.float64)
        visits = fitted.counts.sum(axis=3)[groups].astype(np.float64)
        everywhere = fitted.counts.sum(axis=(0, 3)).astype(np.float64)
        usual = everywhere[:, 1] / np.maximum(everywhere.sum(axis=1), 1.0)
        rate = (visits[..., 1] + usual) / (visits.sum(axis=2) + 1.0)
        belief, reward = fitted.belief, np.asarray(fitted.pay.table[groups])
        if fitted.is_by_arm:
            rate, reward, group = rate[group.reshape(-1)], reward[group.reshape(-1)], np.arange(count)
        if fitted.leaving is not None:
            rate, reward = np.pad(rate, ((0, 0), (0, 1))), np.pad(reward, ((0, 0), (0, 1), (0, 0)))
        fields = (frozen(belief), frozen(group.reshape(-1)), frozen(reward), budget, horizon, frozen(turn), frozen(rate))
        return cls(fitted.names_ahead, *fields)

    def kernels(
        self, fitted: Fit, groups: FloatArray, rng: np.random.Generator | None = None, group_of: IntArray | None = None
    ) -> FloatArray:
        """Return the kernels of the groups here, or of the arms where they differ, by those of all groups (G, S, 2, S).

        Where arms leave, there is a state for it. With a generator, arms and rates of leaving are drawn; group_of (N,):
        clusters that were drawn.
        """
        here = np.unique(fitted.group_of[fitted.present])
        rows = fitted.arm_kernels(groups, rng, group_of)[fitted.present] if fitted.is_by_arm else groups[here]
        return fitted.with_leaving(np.asarray(rows), rng)

    def paying(self, fitted: Fit, table: FloatArray) -> World:
        """Return the same world with the rewards of all groups (G, S, 2)."""
        groups = fitted.group_of[fitted.present]
        reward = table[groups if fitted.is_by_arm else np.unique(groups)]
        return replace(self, reward=frozen(reward if fitted.leaving is None else np.pad(reward, ((0, 0), (0, 1), (0, 0)))))

    @property
    def pays(self) -> FloatArray:
        """(N, S, 2) the reward of every arm."""
        return np.asarray(self.reward[self.group])

    def problem(self, kernels: FloatArray) -> Problem:
        """Return the problem with kernels (G, S, 2, S)."""
        sure = (self.belief.max(axis=1) == 1.0).all()
        start = self.belief.argmax(axis=1) if sure else self.belief
        arms = Arms.of_groups(kernels, self.group, state_names=self.names)
        return Problem(arms, start, self.budget, self.horizon)

    def policy(self, kernels: FloatArray) -> IndexPolicy:
        """Plan for kernels (G, S, 2, S)."""
        return lagrangian_index(self.problem(kernels), self.pays)

    def play(self, policy: IndexPolicy, kernels: FloatArray, key: tuple[int, ...], work: int = WORK) -> Batch:
        """Return what a policy earns in kernels (G, S, 2, S), and how many actions it makes, in some episodes."""
        size = self.belief.shape[0] * self.horizon
        rounds = int(np.clip(work // size, LEAST, MOST))
        return simulate_many(self.problem(kernels), policy, self.pays, np.random.default_rng(key), rounds, threads=1)

    def baselines(self, kernels: FloatArray) -> dict[str, float]:
        """Return what nothing, rotation, a random draw and the rates of the log earn in kernels (G, S, 2, S): exact."""
        count = self.belief.shape[0]
        chance = min(self.budget / count, 1.0)
        mass = np.zeros((len(kernels), self.belief.shape[1]))
        np.add.at(mass, self.group, self.belief)
        none = np.zeros(mass.shape)
        return {
            "nothing": self._blocks(kernels, mass, none),
            "rotation": self._rotation(kernels),
            "random": self._blocks(kernels, mass, np.full(mass.shape, chance)),
            "as logged": self._blocks(kernels, mass, self.rate),
        }

    def _blocks(self, kernels: FloatArray, mass: FloatArray, share: FloatArray) -> float:
        """Return what is earned where every arm in a state is acted on with its own probability (G, S)."""
        moves = (1 - share)[..., np.newaxis] * kernels[:, :, 0] + share[..., np.newaxis] * kernels[:, :, 1]
        pays = (1 - share) * self.reward[..., 0] + share * self.reward[..., 1]
        total = 0.0
        for _ in range(self.horizon):
            total += float((mass * pays).sum())
            mass = np.einsum("gs,gsy->gy", mass, moves)
        return total

    def _rotation(self, kernels: FloatArray) -> float:
        belief, pays, total = self.belief, self.pays, 0.0
        for h in range(self.horizon):
            turn = self.turn[h].astype(bool)
            total += float((belief[turn] * pays[turn, :, 1]).sum() + (belief[~turn] * pays[~turn, :, 0]).sum())
            after = np.empty_like(belief)
            for action, arms in ((1, turn), (0, ~turn)):
                after[arms] = sum_by_group("ns,nsy->ny", belief[arms], kernels[:, :, action], self.group[arms])
            belief = after
        return total
