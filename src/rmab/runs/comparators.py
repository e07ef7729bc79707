"""What a run is held against (paper, eq. regret): comparators, signed regret, its sources, and the theory's curve.

The best policy over all episodes cannot be computed. O1 bounds it from above: the fluid LP of the summed rewards, whose gap
to any executable policy stays. O2 is the best fixed policy that we can execute with the true kernels and the summed rewards
at hand: the better one of occupancy and Lagrangian index, simulated. (On cpap, cpap-adherence and deadline the finite
Whittle index was never better, and O2 is within 1% of O1: LP-update has nothing left to find there.) O3 knows the rewards of
each episode before it begins: the fluid LP, episode by episode. Regret is signed, and negative where a learner beats the
comparator.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from threading import Lock
from typing import Literal

import numpy as np

from rmab.common.arrays import FloatArray, frozen
from rmab.errors import ModelError
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.play.policy import IndexPolicy
from rmab.play.simulation import simulate_visits
from rmab.solvers.fluid.fluid import Fluid, fluid

__all__ = ["Comparator", "Comparators", "theory_curve"]

Comparator = Literal["O1", "O2", "O3"]

ROUNDS, LUCK = 200, 2  # simulated episodes behind O2, and the key of their luck
KEPT = 2  # comparators that are shared by later runs


@dataclass(frozen=True, eq=False)
class Comparators:
    """The comparators of a problem and the rewards (T, N, S, 2) that its adversary chose, each computed when asked for."""

    problem: Problem
    rewards: FloatArray

    @cached_property
    def plan(self) -> Fluid:
        """The fluid LP of the summed rewards."""
        return fluid(self.problem, self.rewards.sum(axis=0))

    @cached_property
    def visits(self) -> FloatArray:
        """(N, S, 2) mean visits per episode of O1's occupancy."""
        return frozen(self.plan.occupancy.sum(axis=1))

    def per_episode(self, which: Comparator) -> FloatArray:
        """(T,) what the comparator earns in every episode."""
        known = {"O1": self.o1, "O2": self.o2, "O3": self.o3}
        if which not in known:
            raise ModelError(f"unknown comparator {which!r}; there are {', '.join(known)}")
        return known[which]()

    @classmethod
    def of(cls, problem: Problem, rewards: FloatArray) -> "Comparators":
        """Return the comparators, shared with earlier runs of the same problem and rewards: they cost as much as a run."""
        key = _fingerprint(problem, rewards)
        with _LOCK:
            shared = _SHARED.pop(key, None) or cls(problem, rewards)
            _SHARED[key] = shared
            while len(_SHARED) > KEPT:
                _SHARED.pop(next(iter(_SHARED)))
        return shared

    def o1(self) -> FloatArray:
        """(T,) what the fluid plan of the summed rewards earns: in all, a bound for every fixed policy, up to its gap."""
        return np.asarray(np.tensordot(self.rewards, self.visits, axes=3))

    def o2(self) -> FloatArray:
        """(T,) what the best executable fixed policy earns: chosen on one half of the simulated episodes, valued on both."""
        return np.asarray(np.tensordot(self.rewards, self._best_visits, axes=3))

    @cached_property
    def _best_visits(self) -> FloatArray:
        total = self.rewards.sum(axis=0)
        candidates = [make(self.problem, total, plan=self.plan) for make in (occupancy_index, lagrangian_index)]
        samples = [self._simulated(policy) for policy in candidates]
        halves = [float((sample[: ROUNDS // 2].mean(axis=0) * total).sum()) for sample in samples]
        return frozen(samples[int(np.argmax(halves))].mean(axis=0))

    def _simulated(self, policy: IndexPolicy) -> FloatArray:
        """(ROUNDS, N, S, 2) visits in simulated episodes, the same luck for every policy."""
        return simulate_visits(self.problem, policy, LUCK, ROUNDS)

    def o3(self) -> FloatArray:
        """(T,) the fluid bound of every episode by itself; rewards in the same proportions are solved once."""
        return self._bounds

    @cached_property
    def _bounds(self) -> FloatArray:
        bounds, known = np.empty(len(self.rewards)), dict[bytes, float]()
        for t, reward in enumerate(self.rewards):
            scale = float(np.abs(reward).max()) or 1.0
            key = np.round(reward / scale, 12).tobytes()
            if key not in known:
                known[key] = fluid(self.problem, reward / scale).bound
            bounds[t] = scale * known[key]
        return frozen(bounds)


_SHARED: dict[bytes, Comparators] = {}  # the oldest first
_LOCK = Lock()


def _fingerprint(problem: Problem, rewards: FloatArray) -> bytes:
    """Return a digest of all that comparators depend on."""
    arms = problem.arms
    digest = sha256(repr((problem.budget, problem.horizon, rewards.shape)).encode())
    for array in (arms.kernels[arms.representatives], arms.group_of, problem.start, rewards):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def theory_curve(view: View, epsilon: float = 0.05) -> FloatArray:
    """(T,) the bound of Theorem regret after t episodes, with its printed constants, in the rewards' own units."""
    t = np.arange(1, view.episodes + 1)
    states, arms, horizon = view.states, view.arms, view.horizon
    descent = arms * horizon * np.sqrt(t * np.log(states**2 * 2))
    feedback = horizon * np.sqrt(2 * arms * t * np.log(4 * states * 2 * arms * t / epsilon))
    index = view.budget * np.sqrt(states * 2 * arms * t * horizon)
    return np.asarray((view.high - view.low) * (descent + feedback + index))
