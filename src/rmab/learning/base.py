"""The base of every learner: `begin` builds a state from a view, `plan` returns a policy, `learn` the next state.

A learner never owns the loop, and stores nothing itself: everything it has learned is in the state.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, IntArray, ReadOnly, as_seed, expect, frozen
from rmab.errors import FeedbackError, ModelError
from rmab.learning.options import Configured, class_name, describe, ours
from rmab.learning.state import Arrays, ArraySpecs, Changes, State, check_arrays
from rmab.model import Problem, View
from rmab.play import Feedback, Policy

Feedbacks = Literal["bandit", "full"]


@dataclass(frozen=True, eq=False, repr=False)
class EpisodePlan(ReadOnly):
    """What a learner will do in the coming episode.

    Parameters
    ----------
    policy : Policy
        Which arms to activate at each step.
    occupancy : (C, H, S, 2) float array, optional
        The plan of each block, if the learner plans with occupancies.
    block_of : (N,) int array, optional
        The block of each arm.
    iterations : int
        Iterations of the solver.
    counted : function, optional
        Returns the expected visits of each block, state and action in an episode, in every phase,
        (C * K, S, 2): instead of the occupancy.

    Examples
    --------
    >>> import rmab
    >>> learner = rmab.make_learner("random")
    >>> learner.plan(learner.begin(rmab.make_task("cpap").view()))
    Plan(IndexPolicy, 0 iterations)
    """

    policy: Policy
    occupancy: FloatArray | None = None
    block_of: IntArray | None = None
    iterations: int = 0
    counted: Callable[[], FloatArray] | None = None

    def __repr__(self) -> str:
        return f"Plan({type(self.policy).__name__}, {self.iterations} iterations)"


class Learner(Configured, ABC):
    """An algorithm with its options. It reaches the problem through a View and Feedback only.

    For a custom learner, override `initial`, `decide` and `update`; `rmab.testing.check_learner` checks the
    contract. Arrays may have any names; numbers are stored as arrays, too: `np.array(3)`.

    Attributes
    ----------
    name : str
        Name in tables.
    feedback, draws, privileged, discounted, any_budget, state_costs
        Override with class attributes if they apply: `feedback = "full"`, `draws = True`, `privileged = "knows ..."`,
        `discounted = True`, `any_budget = True`.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> class Stubborn(rmab.Learner):
    ...     name = "stubborn"
    ...     def initial(self, view, seed):
    ...         return {}
    ...     def decide(self, state):
    ...         first = np.arange(state.view.arms)[::-1, np.newaxis] + np.zeros(state.view.states)
    ...         return rmab.EpisodePlan(rmab.IndexPolicy(first, state.view.budget))
    ...     def update(self, state, feedback):
    ...         return {}
    >>> rmab.run(rmab.make_task("cpap", episodes=2), Stubborn()).activations
    array([500, 500])
    """

    name: ClassVar[str]

    def __init_subclass__(cls, **options: object) -> None:
        """Give a class without a name its own, in small letters."""
        super().__init_subclass__(**options)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__.lower()

    @property
    def feedback(self) -> Feedbacks:
        """The feedback that it needs; a learner for full feedback is not defined without it."""
        return "bandit"

    @property
    def draws(self) -> bool:
        """Whether plans depend on random draws arm by arm: then results depend on the order of arms."""
        return False

    @property
    def privileged(self) -> str:
        """What it knows that no real programme knows; empty for learners without such knowledge."""
        return ""

    @property
    def discounted(self) -> bool:
        """Whether it supports discounting; the others reject a view whose discount is not 1."""
        return False

    @property
    def any_budget(self) -> bool:
        """Whether it supports exact budgets and costs, as `IndexPolicy.of(view, ...)` does; the others reject such views."""
        return False

    @property
    def state_costs(self) -> bool:
        """Whether it supports costs that depend on the state; the others reject such views."""
        return False

    @property
    def anywhere(self) -> bool:
        """Whether it plans for, and learns from, episodes of another start, budget or horizon than its view's.

        By default, it does if `decide_in` is overridden.
        """
        return type(self).decide_in is not Learner.decide_in

    @property
    def signature(self) -> str:
        """Name and options in one line: identifies the states of a learner."""
        known: str | None = vars(self).get("_signature")
        if known is not None:
            return known
        line = self._describe()
        if ours(self):  # nobody can change a learner of this library
            object.__setattr__(self, "_signature", line)
        return line

    def _describe(self) -> str:
        own = {} if type(self).__module__.startswith("rmab.") else {"class": class_name(type(self))}
        return f"{self.name} {json.dumps({**own, **self.options}, sort_keys=True, default=describe)}"

    def begin(self, view: View, seed: int = 0) -> State:
        """Return the state before the first episode."""
        if not isinstance(view, View):
            raise ModelError(f"a learner begins with a View, for example task.view(), got {type(view).__name__}")
        if self.feedback == "full" and view.feedback != "full":
            raise ModelError(f"{self.name} needs full feedback, got {view.feedback!r}; set feedback to 'full'")
        number = as_seed(seed)
        if view.discount < 1.0 and not self.discounted:
            raise ModelError(f"{self.name} does not support discounting, but the view has discount {view.discount:g}")
        if (view.exact or view.cost is not None) and not self.any_budget:
            what = "is exact" if view.exact else "has costs"
            raise ModelError(
                f"{self.name} supports budgets of at most B arms of cost 1, but this budget {what}", code="unsupported"
            )
        if view.weights is not None and view.weights.ndim > 1 and not self.state_costs:
            wrong = f"{self.name} needs one cost per arm, but these costs depend on the state"
            raise ModelError(wrong, code="unsupported")
        if why := self.refuses(view):
            raise ModelError(f"{self.name} {why}")
        arrays = {name: frozen(np.asarray(array)) for name, array in self.initial(view, number).items()}
        return _mark_trusted(State(self.signature, view, number, 0, arrays))

    def plan(
        self, state: State, *, start: ArrayLike | None = None, budget: ArrayLike | None = None, horizon: int | None = None
    ) -> EpisodePlan:
        """Return the plan of the coming episode, in the current situation.

        A programme that continues passes its last states at every call: ``plan(state, start=feedback.states[-1])``.

        Parameters
        ----------
        state : State
            The current state of the learner.
        start : int or array_like, shape (N,) or (N, S), optional
            Start states of the arms, or the probability of every state; by default, the view's.
        budget : int or array_like of int, shape (H,), optional
            The budget of the episode; by default, the view's.
        horizon : int, optional
            Number of steps, at most the view's, which is the default.

        Returns
        -------
        Plan

        Raises
        ------
        ModelError
            For a state of another learner; and for a situation other than the view's, if the learner only plans for that.
        """
        self._check(state)
        view = state.view.situated(start, budget, horizon)
        if view is state.view:
            return self.decide(state)
        if not self.anywhere:
            return Learner.decide_in(self, state, view)  # which says so
        if why := self.refuses(view):
            raise ModelError(f"{self.name} {why}")
        return self.decide_in(state, view)

    def learn(self, state: State, feedback: Feedback) -> State:
        """Return the state after this feedback; wrong feedback raises FeedbackError and changes nothing."""
        self._check(state)
        expect(feedback, Feedback, "feedback")
        feedback.check(state.view, state.episode)
        if not self.anywhere and (elsewhere := feedback.elsewhere(state.view)):
            raise FeedbackError(f"{elsewhere}: {self.name} only learns from episodes as its view declares them")
        arrays = self.update(state, feedback)
        if not isinstance(arrays, Mapping):
            raise ModelError(f"{self.name}: update must return arrays by name, got {type(arrays).__name__}")
        return _mark_trusted(state.after(**arrays))

    @abstractmethod
    def initial(self, view: View, seed: int) -> Arrays:
        """Override: return the arrays of the first state."""

    @abstractmethod
    def decide(self, state: State) -> EpisodePlan:
        """Override: return the plan of the coming episode, a function of the state only."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback) -> Changes:
        """Override: return the arrays that this feedback changes; the others stay the same, None removes one.

        The feedback was checked.
        """

    def decide_in(self, state: State, view: View) -> EpisodePlan:  # noqa: ARG002
        """Override to plan for any situation: return the plan where `view` has the current start, budget and horizon.

        It is a function of the two only. By default, every situation other than the view's is a ModelError.
        """
        raise ModelError(f"{self.name} only plans for the start, budget and horizon of its view")

    def refuses(self, view: View) -> str:  # noqa: ARG002
        """Override: return why it does not support this task, as the rest of a sentence; empty if it does."""
        return ""

    def state_spec(self, view: View) -> ArraySpecs:  # noqa: ARG002
        """Override: declare the arrays of a state. States from files and other processes are checked against it."""
        return {}

    def estimate(self, state: State) -> FloatArray | None:  # noqa: ARG002
        """(N, S, 2), or (N, K, S, 2) with phases: its estimate of the last episode's rewards, in their units.

        None if it makes no estimates.
        """
        return None

    def inform(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Learner:  # noqa: ARG002
        """Override in a privileged learner: return a learner informed of the problem and summed rewards (N, S, 2).

        `rmab.run` calls it before the first episode, for privileged learners only. The seed is that of the run.
        """
        return self

    def _check(self, state: State) -> None:
        expect(state, State, "state")
        if state.learner != self.signature:
            raise ModelError(f"this state belongs to {state.learner}, not to {self.signature}", code="foreign-state")
        if not state._trusted:
            check_arrays(state.arrays, self.state_spec(state.view))
            _mark_trusted(state)


def _mark_trusted(state: State) -> State:
    """Return the state, marked as built or checked by its learner in this process."""
    object.__setattr__(state, "_trusted", True)
    return state


def stream(seed: int, key: int, episode: int = 0) -> np.random.Generator:
    """Return a learner's random generator of an episode. Keys are 101 and up: 0 and 1 make the task, 100 is the run's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, episode)))
