"""The base of all components: options, memory in plain arrays, and what they observe of an episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from rmab.common import FloatArray, IntArray, cached_property
from rmab.learning.options import Configured
from rmab.learning.pools import Observations, Pools
from rmab.learning.state import ArraySpecs
from rmab.model import Problem
from rmab.play import Feedback, Policy
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


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """Everything that a component may know of a finished episode.

    Parameters
    ----------
    pools : Pools
        Groups, payoffs and blocks of the arms; `pools.view` is what the learner may know.
    number : int
        Number of the episode, from 0.
    seed : int
        Seed of the learner.
    feedback : Feedback
        The trajectory of every arm, and the rewards that were revealed.
    observed : Observed
        The same, pooled.
    before, counts : (G, S, 2, S) int arrays
        Transitions counted before the episode, and with it.
    basis : (G, S, 2, S) int array
        The counts behind the current sets.
    in_force, executed : functions
        Build these sets, and the executed plan; see `sets`, `policy` and `mass`.
    """

    pools: Pools
    number: int
    seed: int
    feedback: Feedback
    observed: Observations
    before: IntArray
    counts: IntArray
    basis: IntArray
    in_force: Callable[[], TransitionSets]
    executed: Callable[[], tuple[Policy, FloatArray]]

    @cached_property
    def sets(self) -> TransitionSets:
        """The sets of every block behind the plan; built on demand."""
        return self.in_force()

    @cached_property
    def _plan(self) -> tuple[Policy, FloatArray]:
        return self.executed()

    @property
    def policy(self) -> Policy:
        """The executed policy; built on demand."""
        return self._plan[0]

    @property
    def mass(self) -> FloatArray:
        """(C, H, S, 2) the plan behind it; built on demand."""
        return self._plan[1]

    @property
    def draw_key(self) -> tuple[int, int]:
        """Seed and number: the key of this episode's random draws, so that the same state always draws the same."""
        return self.seed, self.number
