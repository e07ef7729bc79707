"""Learners that do not learn: the oracle, which knows everything that a fixed policy can use, and chance."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.learning.base import Learner, Plan, Privileged, State
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy, Rounding, Rule
from rmab.solvers.fluid.fluid import fluid

__all__ = ["Chance", "Oracle", "OracleOptions"]


class OracleOptions(BaseModel):
    """Options of `oracle`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    index: Literal["lagrangian", "occupancy"] = Field(
        "lagrangian", description="which index of the fluid plan ranks the arms"
    )
    rule: Rule = Field("fill", description="always activate the full budget, or drop arms of index 0 (at-most)")
    rounding: Rounding = Field("top", description="the highest indices, or dependent rounding of the occupancy index")

    @model_validator(mode="after")
    def _can_be_rounded(self) -> "OracleOptions":
        if self.rounding == "dependent" and self.index != "occupancy":
            raise ValueError("dependent rounding needs index 'occupancy', whose values are probabilities")
        return self


class Oracle(Privileged):
    """A fixed index of the true kernels and of the rewards of all episodes, added up: privileged."""

    name = "oracle"
    privileged = "knows the kernels and the rewards of all episodes"
    settings: OracleOptions

    def __init__(self, options: OracleOptions, table: FloatArray | None = None) -> None:
        self.settings, self.table = options, table

    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> "Oracle":  # noqa: ARG002
        """Return the oracle of this problem and these summed rewards (N,S,2): the only way to tell it."""
        make = lagrangian_index if self.settings.index == "lagrangian" else occupancy_index
        return Oracle(self.settings, make(problem, rewards, plan=fluid(problem, rewards)).table)

    def _begin(self, view: View, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        if self.table is None:
            raise ModelError("the oracle must be told the problem first: rmab.run does, or use `informed`")
        return {"table": self.table}

    def _plan(self, state: State) -> Plan:
        rules = self.settings
        return Plan(IndexPolicy(state.arrays["table"], state.view.budget, rule=rules.rule, rounding=rules.rounding))

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
