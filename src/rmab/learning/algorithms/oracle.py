"""Learners that do not learn: the oracle, which knows everything that a fixed policy can use, and the random policy.

`planned.py` has the planners, which do not learn either.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from rmab.errors import ModelError
from rmab.learning.algorithms.planned import FixedLearner, PrivilegedLearner
from rmab.learning.base import EpisodePlan
from rmab.learning.components import ROUNDING, RULE
from rmab.learning.options import configured, option
from rmab.learning.state import State
from rmab.model import View
from rmab.planners.contract import Planner
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.play import IndexPolicy, Rounding, Rule


@configured
class Oracle(PrivilegedLearner):
    """A fixed index of the true kernels and of the rewards of all episodes, added up: privileged."""

    name = "oracle"
    index: Literal["lagrangian", "occupancy"] = option(default="lagrangian", help="which index ranks the arms")
    rule: Rule = option(default="fill", help=RULE)
    rounding: Rounding = option(default="top", help=ROUNDING)

    def __post_init__(self) -> None:
        """Check the options; only probabilities can be rounded."""
        super().__post_init__()
        if self.rounding == "dependent" and self.index != "occupancy":
            raise ModelError("dependent rounding needs index 'occupancy', whose values are probabilities")

    def solver(self) -> Planner:
        """Return the index of the fluid plan."""
        if self.index == "lagrangian":
            return partial(lagrangian_index, rule=self.rule)
        return partial(occupancy_index, rule=self.rule, rounding=self.rounding)


class RandomLearner(FixedLearner):
    """A uniformly random set of B arms at every step: the baseline that every learner should beat."""

    name = "random"

    def decide_in(self, state: State, view: View) -> EpisodePlan:
        """Rank all arms equally."""
        return self.decide(state.seen_in(view))

    def decide(self, state: State) -> EpisodePlan:
        """Rank all arms equally: ties are broken at random."""
        return EpisodePlan(IndexPolicy.of(state.view, np.ones((state.view.arms, state.view.states))))
