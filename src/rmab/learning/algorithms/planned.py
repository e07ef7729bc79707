"""Planners as learners, so that they take part in runs and studies: they learn nothing, and most of them are privileged."""

from __future__ import annotations

from rmab.common.arrays import FloatArray
from rmab.learning.algorithms.oracle import Told
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.components import RULE
from rmab.learning.options import configured, option
from rmab.learning.state import Arrays, State
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.planners.indices import lagrangian_index, myopic_index, turns
from rmab.planners.whittle import finite_whittle_index
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy, Rule


class RoundRobin(Learner):
    """All arms in turn, B at every step, each episode from where the last one stopped: what many programmes do."""

    name = "round-robin"
    discounted = True
    draws = True  # nothing is drawn, but whose turn it is depends on the order of the arms

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Keep nothing: the number of the episode says whose turn it is."""
        return {}

    def decide(self, state: State) -> EpisodePlan:
        """Activate those whose turn it is."""
        view = state.view
        table = turns(view.arms, view.states, view.budgets, state.episode)
        return EpisodePlan(IndexPolicy(table, view.budget, rule="at-most"))

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}


@configured
class PlannedMyopic(Told):
    """What activating pays now and changes in the next reward (`myopic_index`), of the true kernels: privileged."""

    name = "myopic"
    rule: Rule = option(default="auto", help=RULE)

    def ranked(self, problem: Problem, rewards: FloatArray) -> FloatArray:
        """(N, H, S) the myopic index."""
        return myopic_index(problem, rewards).table


@configured
class PlannedWhittle(Told):
    """Whittle indices of every step (`rmab.planners.finite_whittle_index`), of the true kernels: privileged.

    Where an arm is not indexable, its index is the last price at which a state becomes passive.
    """

    name = "whittle"
    rule: Rule = option(default="auto", help=RULE)

    def ranked(self, problem: Problem, rewards: FloatArray) -> FloatArray:
        """(N, H, S) the Whittle index."""
        return finite_whittle_index(problem, rewards).index


@configured
class PlannedLagrangian(Told):
    """What activating is worth at the prices of the fluid plan (`lagrangian_index`), of the true kernels: privileged.

    As `oracle`, which however fills the budget also with arms that it harms.
    """

    name = "lagrangian"
    rule: Rule = option(default="auto", help=RULE)

    def ranked(self, problem: Problem, rewards: FloatArray) -> FloatArray:
        """(N, H, S) the Lagrangian index."""
        return lagrangian_index(problem, rewards).table
