"""What the rivals that descend in occupancies share: doubling epochs, a projection with or without the budget, the index."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Arrays, Learner, Plan, State
from rmab.learning.confidence import Confidence, Kernels, Kind
from rmab.learning.mirror import first_step, tilted_step
from rmab.learning.pools import Observed, Pools
from rmab.learning.presets import PresetOptions
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy
from rmab.solvers.projection.project import Projection

__all__ = ["FullInformation", "OccupancyLearner", "doubled"]


def doubled(epoch: IntArray, counts: IntArray) -> bool:
    """Whether some pair has been counted twice as often (G,S,2,S) as when the epoch began: then the next one begins."""
    return bool((counts.sum(axis=3) >= np.maximum(2 * epoch.sum(axis=3), 1)).any())


class OccupancyLearner(Learner):
    """Online mirror descent over occupancies whose kernels are in the epoch's sets; the index policy of what comes out.

    sets     the shape of the confidence sets.
    coupled  whether the budget of all arms together is a constraint of the projection; otherwise the learner prices it.
    """

    sets: ClassVar[Kind]
    coupled: ClassVar[bool] = True
    settings: PresetOptions

    def __init__(self, options: PresetOptions) -> None:
        self.settings = options

    def _begin(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        pools = Pools.of(view)
        counts = np.zeros(pools.support.shape, dtype=np.int64)
        plan = first_step(view, pools, self._kernels(view, pools, counts), budget=self._budget(view))
        return {"counts": counts, "epoch": counts, **_kept(plan), **self._first(view, pools)}

    def _plan(self, state: State) -> Plan:
        mass, pools = state.arrays["mass"], Pools.of(state.view)
        policy = IndexPolicy(pools.index_of(mass), state.view.budget, rounding=self.settings.rounding)
        return Plan(policy, mass, pools.block_of, int(state.arrays["iterations"]))

    def _learn(self, state: State, feedback: Feedback) -> Arrays:
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        observed = pools.observe(view, feedback)
        tilt, own = self._tilt(state, feedback, observed)
        counts = arrays["counts"] + observed.counts
        epoch = counts if doubled(arrays["epoch"], counts) else arrays["epoch"]
        rules = {"fixed_share": self._fixed_share(view), "budget": self._budget(view)}
        kernels, exponent = self._kernels(view, pools, epoch), np.broadcast_to(tilt, arrays["mass"].shape)
        plan = tilted_step(view, pools, kernels, arrays["flow"], arrays["mass"], exponent, **rules)  # type: ignore[arg-type]
        return {"counts": counts, "epoch": epoch, **_kept(plan), **own}

    def _kernels(self, view: View, pools: Pools, epoch: IntArray) -> Kernels:
        return Confidence(self.sets, self.settings.epsilon).kernels(view, epoch, pools.support, 0)

    def _budget(self, view: View) -> float | None:
        return None if self.coupled else float(view.arms)

    def _fixed_share(self, view: View) -> float:  # noqa: ARG002
        return 0.0

    def _first(self, view: View, pools: Pools) -> Arrays:  # noqa: ARG002
        """Return what the learner keeps of its own."""
        return {}

    @abstractmethod
    def _tilt(self, state: State, feedback: Feedback, observed: Observed) -> tuple[FloatArray, Arrays]:
        """Return the exponent, of a shape that broadcasts to (C,H,S,2), by which the occupancy is tilted; and own arrays."""


class FullInformation(OccupancyLearner):
    """The same, for learners that are told every reward: they keep those of the last episode, values (R,S,2)."""

    feedback: ClassVar[Literal["bandit", "full"]] = "full"
    sets: ClassVar[Kind] = "l1"

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2) the rewards of the last episode, which were revealed; None before the first."""
        return Pools.of(state.view).in_own_units(state.view, state.arrays["values"]) if state.episode else None

    def _first(self, view: View, pools: Pools) -> Arrays:  # noqa: ARG002
        return {"values": np.zeros(pools.zero.shape)}

    def _tilt(self, state: State, feedback: Feedback, observed: Observed) -> tuple[FloatArray, Arrays]:  # noqa: ARG002
        values = np.nan_to_num(observed.values)  # padding has no reward
        exponent, own = self._direction(state, values[Pools.of(state.view).kind][:, np.newaxis])
        return exponent, {"values": values, **own}

    @abstractmethod
    def _direction(self, state: State, rewards: FloatArray) -> tuple[FloatArray, Arrays]:
        """Return the exponent, and own arrays, from the rewards (C,1,S,2) of the last episode, in [0, 1]."""


def _kept(plan: Projection) -> Arrays:
    return {"mass": plan.mass, "flow": plan.z, "iterations": np.array(plan.iterations)}
