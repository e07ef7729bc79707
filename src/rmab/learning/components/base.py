"""The contracts of the components: what each is given and returns. Implementations are in the files beside this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning.options import Configured, configured
from rmab.learning.pools import Episode, Observations, Pools, share_of
from rmab.learning.state import ArraySpecs, Memory, whole
from rmab.model import Problem
from rmab.solvers.transitions import TransitionSets


class Component(Configured):
    """Base of all components. A component has options; what it learns is in the memory that it returns.

    draws       whether it draws arm by arm, so that results depend on the order of the arms.
    feedback    the feedback that it needs.
    anywhere    whether it takes episodes of any start, budget and horizon, not only those of the view: then neither the
                plan (`Episode.mass`) nor the policy is what was executed, and it must not use them.
    privileged  what it knows that no real programme knows, or empty. A privileged component has `inform`.
    """

    draws: ClassVar[bool] = False
    anywhere: ClassVar[bool] = False
    feedback: ClassVar[Literal["bandit", "full"]] = "bandit"
    privileged: ClassVar[str] = ""

    def inform(self, problem: Problem) -> Self:  # noqa: ARG002
        """Override in a privileged component: return one informed of the problem. `rmab.run` calls it."""
        return self

    def state_spec(self, pools: Pools) -> ArraySpecs:  # noqa: ARG002
        """Override: declare the arrays of the memory. Memories from files are checked against it."""
        return {}


class Refresh(Component, ABC):
    """A component that decides when sets are recomputed. Override all three methods."""

    anywhere = True

    @abstractmethod
    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        """Return the memory, given all counts (G, S, 2, S) so far; at the beginning, memory is empty and counts are 0."""

    @abstractmethod
    def basis(self, memory: Memory, counts: IntArray) -> IntArray:
        """(G, S, 2, S) the counts behind the sets."""

    @abstractmethod
    def until(self, pools: Pools, episode: int) -> int:
        """Return the last episode in which the current sets must hold."""


@configured
class EveryEpisode(Refresh):
    """New sets before every episode, from all counts."""

    def learn(self, memory: Memory, counts: IntArray) -> Memory:  # noqa: ARG002
        """Keep nothing."""
        return {}

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:  # noqa: ARG002
        """All counts."""
        return counts

    def until(self, pools: Pools, episode: int) -> int:  # noqa: ARG002
        """Only in this episode."""
        return episode


class ConfidenceSets(Component, ABC):
    """A component that returns confidence sets of the kernels. Override `around`; the base class counts transitions.

    confident  whether the sets must contain the observed frequencies; otherwise they contain another estimate.

    Examples
    --------
    >>> class Everything(ConfidenceSets):
    ...     def around(self, pools, counts, episode):
    ...         return TransitionSets.boxes(np.zeros(counts.shape), pools.support)
    """

    anywhere = True
    confident: ClassVar[bool] = True

    @abstractmethod
    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        """Return the sets of every group for this episode (from 0), given the transitions counted so far (G, S, 2, S)."""

    def after(self, pools: Pools, memory: Memory, basis: IntArray, episode: int) -> TransitionSets:  # noqa: ARG002
        """Override to use more than these counts: return the sets, given the memory as well."""
        return self.around(pools, basis, episode)

    def begin(self, pools: Pools) -> Memory:
        """Return the memory before the first episode: `counts` (G, S, 2, S) of transitions, and anything else."""
        return {"counts": np.zeros(pools.support.shape, dtype=np.int64)}

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the counts."""
        return {"counts": whole(*pools.support.shape)}

    def learn(self, memory: Memory, observed: Observations) -> Memory:
        """Return the memory after an episode; the sets use its `counts`: override to forget old ones."""
        return {"counts": memory["counts"] + observed.counts}


@dataclass(frozen=True, eq=False, repr=False)
class RewardEstimate:
    """Estimate of an episode's rewards.

    Parameters
    ----------
    gain : (R, S, 2) or (C, H, S, 2) float array
        Reward of a pair, in [0, 1]; or a direction of ascent for every block and step.
    ahead : (R, S, 2) float array, optional
        Forecast of the next episode, for steps that look ahead (`Lazy`); without it they use the mean of all
        gains. Steps from the last plan (`Active`) do not read it.
    memory : mapping of str to array
        Memory of the estimator.
    likely : (R, S, 2) float array, optional
        The same as `ahead`, without optimism: compared with the realised rewards (`Priced`).
    surprised : (R,) bool array, optional
        The payoffs whose rewards differ from the forecast (`Probes`).
    """

    gain: FloatArray
    ahead: FloatArray | None = None
    memory: Memory = field(default_factory=dict)
    likely: FloatArray | None = None
    surprised: BoolArray | None = None


class RewardEstimator(Component, ABC):
    """A component that estimates rewards. Override `learn`, and `begin` if it has a memory.

    Examples
    --------
    >>> class Hopeful(RewardEstimator):
    ...     def learn(self, memory, episode):
    ...         values = episode.observed.values
    ...         return RewardEstimate(np.where(np.isnan(values), 1.0, values))
    """

    @property
    def knows_zeros(self) -> bool:
        """Whether the learner inserts declared zeros into the estimate."""
        return True

    def begin(self, pools: Pools) -> Memory:  # noqa: ARG002
        """Return the memory before the first episode."""
        return {}

    @abstractmethod
    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:
        """Return the estimate after an episode."""


MadeSets = Callable[[], TransitionSets]  # builds the sets of every block on demand


@dataclass(frozen=True, eq=False, repr=False)
class StepResult:
    """A plan, and the memory of the step. It has a mass; or a share, unless `last` recomputes it from the memory.

    Parameters
    ----------
    mass : (C, H, S, 2) float array, optional
        Occupancy of every block.
    iterations : int
        Iterations of the solver.
    memory : mapping of str to array
        Memory for the next step.
    share : (C, H, S) float array, optional
        Active share of every block, step and state; by default, that of the mass.
    drawn : bool
        Whether the shares must be drawn unchanged, whichever execution is chosen.
    visits : function, optional
        Returns the expected visits of every block, state and action, (C * K, S, 2), if there is no mass.
    """

    mass: FloatArray | None = None
    iterations: int = 0
    memory: Memory = field(default_factory=dict)
    share: FloatArray | None = None
    drawn: bool = False
    visits: Callable[[], FloatArray] | None = None

    @property
    def shares(self) -> FloatArray:
        """(C, H, S) active share of every block, step and state."""
        if self.share is not None:
            return self.share
        if self.mass is None:
            raise ModelError("a plan needs a mass or a share")
        return share_of(self.mass)


class Step(Component, ABC):
    """A component that plans. Override `move`; and `begin`, unless the first plan is the projected uniform occupancy.

    stored  whether plans are occupancies, which the learner stores. Otherwise they only have shares, and are not stored:
            `again` recomputes them from the memory.
    """

    stored: ClassVar[bool] = True

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Return the first plan, before any reward is known, given the sets of every block."""
        from rmab.learning.components.steps import project_uniform  # noqa: PLC0415  (the projection, which few steps need)

        plan = project_uniform(pools, sets)
        return StepResult(plan.mass, plan.iterations)

    def __init_subclass__(cls, **options: object) -> None:
        """Let a step with `again` plan for any situation, unless it declares otherwise."""
        super().__init_subclass__(**options)
        if "anywhere" not in vars(cls):
            cls.anywhere = cls.again is not Step.again

    def again(self, memory: Memory, pools: Pools, sets: TransitionSets) -> StepResult:  # noqa: ARG002
        """Override to plan for any situation: return the plan for the start, budget and horizon of `pools`.

        Given are the memory and the sets of every block; the memory of the plan is dropped.
        """
        raise ModelError(f"{type(self).__name__} only plans for the start, budget and horizon of its view")

    def last(self, memory: Memory, pools: Pools, sets: MadeSets) -> StepResult:
        """Return the last plan of `begin` or `move`, if it is not stored; override if the memory has it."""
        return self.again(memory, pools, sets())

    def prices(self, memory: Memory) -> FloatArray | None:  # noqa: ARG002
        """Override if known: (H,) the price of an activation at each step."""
        return None

    def worthless(self, memory: Memory, pools: Pools) -> FloatArray | None:  # noqa: ARG002
        """Override if known: (H,) shares below which activation is expected to do harm, by step."""
        return None

    @abstractmethod
    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> StepResult:
        """Return the next plan, given the episode that ended, the new sets of every block, and the estimated rewards."""
