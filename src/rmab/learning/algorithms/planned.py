"""Planners as learners, so that they take part in runs and studies: they learn nothing, and most are privileged."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar

from rmab.common import FloatArray
from rmab.errors import ModelError
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.components import RULE
from rmab.learning.options import configured, option
from rmab.learning.state import Arrays, ArraySpec, ArraySpecs, State
from rmab.model import Problem, View
from rmab.planners.contract import Planner
from rmab.planners.indices import turns
from rmab.planners.registry import make_planner
from rmab.play import Feedback, IndexPolicy, Policy, Rule


class FixedLearner(Learner):
    """A learner that learns nothing."""

    discounted = True
    any_budget = True
    state_costs = True

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Store nothing."""
        return {}

    def update(self, state: State, feedback: Feedback) -> Arrays:  # noqa: ARG002
        """Learn nothing."""
        return {}


class PrivilegedLearner(FixedLearner):
    """A learner that plays the policy of a planner, for the true kernels and the summed rewards: privileged.

    A subclass returns the planner in `solver`.
    """

    privileged = "knows the kernels and the rewards of all episodes"
    _policy: ClassVar[Policy | None] = None

    @abstractmethod
    def solver(self) -> Planner:
        """Override: return the planner that is called with the problem and the summed rewards."""

    def inform(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> PrivilegedLearner:  # noqa: ARG002
        """Return the learner that knows this problem and these summed rewards: the only way to inform it."""
        policy: Any = self.solver()(problem, rewards)
        if not isinstance(policy, Policy):
            raise ModelError(f"{self.name}: the planner returned {type(policy).__name__}, not a policy")
        player = copy(self)
        object.__setattr__(player, "_policy", policy)
        return player

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with the table of an index policy; other policies are not arrays, and stay with the learner."""
        policy = self._plan()
        return {"table": policy.table} if isinstance(policy, IndexPolicy) else {}

    def state_spec(self, view: View) -> ArraySpecs:  # noqa: ARG002
        """Declare the table."""
        policy = self._plan()
        return {"table": ArraySpec(policy.table.shape)} if isinstance(policy, IndexPolicy) else {}

    def decide(self, state: State) -> EpisodePlan:
        """Play the policy."""
        policy = self._plan()
        if isinstance(policy, IndexPolicy):
            policy = IndexPolicy.of(state.view, state.arrays["table"], rule=policy.rule, rounding=policy.rounding)
        return EpisodePlan(policy)

    def _plan(self) -> Policy:
        if self._policy is None:
            raise ModelError(f"{self.name} must be informed of the problem first: rmab.run does, or call `inform`")
        return self._policy


@configured
class PlannerLearner(PrivilegedLearner):
    """Any planner, for the true kernels and the summed rewards: privileged.

    Examples
    --------
    >>> import rmab
    >>> task = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=3)
    >>> rmab.run(task, rmab.make_learner("planner", planner="rolling")).privileged
    'knows the kernels and the rewards of all episodes'
    """

    name = "planner"
    draws = True  # a planner may treat identical arms differently
    planner: Any = option(
        default="lagrangian", help="name of a planner, module:planner, a table of its name and options, or a planner"
    )

    def __post_init__(self) -> None:
        """Check that there is such a planner."""
        super().__post_init__()
        self.solver()

    def solver(self) -> Planner:
        """Return the planner."""
        planner = {"name": self.planner} if isinstance(self.planner, str) else self.planner
        if isinstance(planner, Mapping) and "name" in planner:
            return make_planner(**planner)
        if not callable(planner):
            raise ModelError(f"planner must be a planner, its name, or a table with its name, got {planner!r:.60}")
        return planner  # type: ignore[no-any-return]


class RoundRobin(FixedLearner):
    """All arms in turn, B at every step, each episode from where the last one stopped: what many programmes do."""

    name = "round-robin"
    draws = True  # no random draws, but turns depend on the order of the arms

    def decide(self, state: State) -> EpisodePlan:
        """Activate those whose turn it is."""
        view = state.view
        table = turns(view.arms, view.states, view.slots, state.episode)
        return EpisodePlan(IndexPolicy.of(view, table, rule="at-most"))

    def refuses(self, view: View) -> str:
        """Reject unequal costs."""
        return "takes turns among arms that all cost the same" if view.weights is not None else ""


@configured
class RuleLearner(PrivilegedLearner):
    """Base of the index planners that are learners under their own name: `PLANNER` and its fixed options."""

    PLANNER: ClassVar[Mapping[str, Any]]
    rule: Rule = option(default="auto", help=RULE)

    def solver(self) -> Planner:
        """Return the planner, with the rule."""
        return make_planner(**self.PLANNER, rule=self.rule)


@configured
class MyopicLearner(RuleLearner):
    """Gain of activating in this and the next reward (`myopic_index`), under the true kernels: privileged."""

    name, PLANNER = "myopic", {"name": "myopic"}


@configured
class WhittleLearner(RuleLearner):
    """Whittle indices of every step (`rmab.planners.finite_whittle_index`), under the true kernels: privileged.

    Where an arm is not indexable, its index is the last price at which a state becomes passive.
    """

    name, PLANNER = "whittle", {"name": "whittle-finite", "strict": False}


@configured
class LagrangianLearner(RuleLearner):
    """Gain of activating at the prices of the fluid plan (`lagrangian_index`), under the true kernels: privileged.

    Like `oracle`, which also fills the budget with arms that activation harms.
    """

    name, PLANNER = "lagrangian", {"name": "lagrangian"}
