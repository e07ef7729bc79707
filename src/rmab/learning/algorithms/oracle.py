"""Learners that do not learn: the oracle, which knows everything that a fixed policy can use, and chance.

`planned.py` has the planners, which do not learn either.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import ClassVar, Literal

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.learning.algorithms.ucmd_armab import ROUNDING
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.components import RULE
from rmab.learning.kept import Declared, Kept
from rmab.learning.options import configured, option
from rmab.learning.state import Arrays, State
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy, Rounding, Rule
from rmab.solvers.fluid.fluid import solve_fluid


class Told(Learner):
    """A table of indices, made before the first episode of the true kernels and the rewards of all episodes: privileged.

    A subclass says in `ranked` which, and has the options `rule` and, if it likes, `rounding`.
    """

    privileged = "knows the kernels and the rewards of all episodes"
    discounted = True
    rule: Rule
    rounding: ClassVar[Rounding] = "top"
    _table: ClassVar[FloatArray | None] = None

    @abstractmethod
    def ranked(self, problem: Problem, rewards: FloatArray) -> FloatArray:
        """(N, H, S) the index of every arm, step and state; summed rewards (N, S, 2) or (N, K, S, 2)."""

    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Told:  # noqa: ARG002
        """Return the one that knows this problem and these summed rewards: the only way to tell it."""
        told = copy(self)
        object.__setattr__(told, "_table", self.ranked(problem, rewards))
        return told

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with the table."""
        if self._table is None:
            who = "the oracle" if self.name == "oracle" else self.name
            raise ModelError(f"{who} must be told the problem first: rmab.run does, or use `informed`")
        return {"table": self._table}

    def kept(self, view: View) -> Declared:
        """Declare the table."""
        return {"table": Kept((view.arms, view.horizon, view.states))}

    def decide(self, state: State) -> EpisodePlan:
        """Activate by the table."""
        return EpisodePlan(IndexPolicy(state.arrays["table"], state.view.budget, rule=self.rule, rounding=self.rounding))

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}


@configured
class Oracle(Told):
    """A fixed index of the true kernels and of the rewards of all episodes, added up: privileged."""

    name = "oracle"
    index: Literal["lagrangian", "occupancy"] = option(default="lagrangian", help="which index ranks the arms")
    rule: Rule = option(default="fill", help=RULE)
    rounding: Rounding = option(default="top", help=ROUNDING)  # type: ignore[misc]

    def __post_init__(self) -> None:
        """Check the options; only probabilities can be rounded."""
        super().__post_init__()
        if self.rounding == "dependent" and self.index != "occupancy":
            raise ModelError("dependent rounding needs index 'occupancy', whose values are probabilities")

    def ranked(self, problem: Problem, rewards: FloatArray) -> FloatArray:
        """(N, H, S) the index of the fluid plan."""
        make = lagrangian_index if self.index == "lagrangian" else occupancy_index
        return make(problem, rewards, plan=solve_fluid(problem, rewards)).table


class Chance(Learner):
    """A uniformly random set of B arms at every step: what everything should beat."""

    name = "random"
    discounted = True

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Keep nothing."""
        return {}

    def decide_in(self, state: State, view: View) -> EpisodePlan:
        """Rank all arms alike."""
        return self.decide(state.seen_in(view))

    def decide(self, state: State) -> EpisodePlan:
        """Rank all arms alike: ties are broken at random."""
        return EpisodePlan(IndexPolicy(np.ones((state.view.arms, state.view.states)), state.view.budget))

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}
