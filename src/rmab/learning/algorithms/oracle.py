"""Learners that do not learn: the oracle, which knows everything that a fixed policy can use, and chance."""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Literal

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.learning.algorithms.ucmd_armab import ROUNDING
from rmab.learning.base import Learner, Plan
from rmab.learning.kept import Declared, Kept
from rmab.learning.options import configured, option
from rmab.learning.parts import RULE
from rmab.learning.state import Arrays, State
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy, Rounding, Rule
from rmab.solvers.fluid.fluid import fluid


@configured
class Oracle(Learner):
    """A fixed index of the true kernels and of the rewards of all episodes, added up: privileged."""

    name = "oracle"
    privileged = "knows the kernels and the rewards of all episodes"
    discounted = True
    index: Literal["lagrangian", "occupancy"] = option(default="lagrangian", help="which index ranks the arms")
    rule: Rule = option(default="fill", help=RULE)
    rounding: Rounding = option(default="top", help=ROUNDING)
    _table: ClassVar[FloatArray | None] = None

    def __post_init__(self) -> None:
        """Check the options; only probabilities can be rounded."""
        super().__post_init__()
        if self.rounding == "dependent" and self.index != "occupancy":
            raise ModelError("dependent rounding needs index 'occupancy', whose values are probabilities")

    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Oracle:  # noqa: ARG002
        """Return the oracle of this problem and these summed rewards, (N, S, 2) or (N, K, S, 2): the only way to tell it."""
        told, plan = copy(self), fluid(problem, rewards)
        make = lagrangian_index if self.index == "lagrangian" else occupancy_index
        object.__setattr__(told, "_table", make(problem, rewards, plan=plan).table)
        return told

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with the table."""
        if self._table is None:
            raise ModelError("the oracle must be told the problem first: rmab.run does, or use `informed`")
        return {"table": self._table}

    def kept(self, view: View) -> Declared:
        """Declare the table."""
        return {"table": Kept((view.arms, view.horizon, view.states))}

    def decide(self, state: State) -> Plan:
        """Activate by the table."""
        return Plan(IndexPolicy(state.arrays["table"], state.view.budget, rule=self.rule, rounding=self.rounding))

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}


class Chance(Learner):
    """A uniformly random set of B arms at every step: what everything should beat."""

    name = "random"
    discounted = True

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Keep nothing."""
        return {}

    def decide_in(self, state: State, view: View) -> Plan:
        """Rank all arms alike."""
        return self.decide(state.seen_in(view))

    def decide(self, state: State) -> Plan:
        """Rank all arms alike: ties are broken at random."""
        return Plan(IndexPolicy(np.ones((state.view.arms, state.view.states)), state.view.budget))

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}
