"""Learners that do not learn: the oracle, which knows everything that a fixed policy can use, and chance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.arrays import FloatArray
from rmab.errors import ModelError
from rmab.learning.base import Learner, Plan, Privileged, State
from rmab.learning.feedback import Feedback
from rmab.planners.fluid import fluid
from rmab.planners.indices import lagrangian_index
from rmab.policy import IndexPolicy
from rmab.problem import Problem, View

__all__ = ["Chance", "Oracle"]


class Oracle(Privileged):
    """The Lagrangian index of the true kernels and of the rewards of all episodes, added up: fixed, and privileged."""

    name = "oracle"
    privileged = "knows the kernels and the rewards of all episodes"

    def __init__(self, table: FloatArray | None = None) -> None:
        self.table = table

    def informed(self, problem: Problem, rewards: FloatArray) -> "Oracle":
        """Return the oracle of this problem and these summed rewards (N,S,2): the only way to tell it."""
        return Oracle(lagrangian_index(problem, rewards, plan=fluid(problem, rewards)).table)

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        if self.table is None:
            raise ModelError("the oracle must be told the problem first: rmab.run does, or use `informed`")
        return {"table": self.table}

    def _plan(self, state: State) -> Plan:
        return Plan(IndexPolicy(state.arrays["table"], state.view.budget))

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        return {}


class Chance(Learner):
    """A uniformly random set of B arms at every step: what everything should beat."""

    name = "random"

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        return {}

    def _plan(self, state: State) -> Plan:
        return Plan(IndexPolicy(np.ones((state.view.arms, state.view.states)), state.view.budget))

    def _learn(self, state: State, feedback: Feedback) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        return {}
