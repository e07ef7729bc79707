"""The skeleton of UCMD-ARMAB (Xiong & Li 2024, Algorithm 2): confidence sets x reward estimator x step x rounding.

    decide   rounding     which arms to activate                 Section 4.4
             probes       forced exploration
    update   confidence   sets of plausible kernels              Section 4.1
             estimator    estimate of the rewards                Section 4.3
             step         the next plan                          Section 4.2

What a component returns is checked immediately, so that errors name a custom component.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.learning.base import EpisodePlan, Feedbacks, Learner
from rmab.learning.components.base import (
    Component,
    ConfidenceSets,
    EveryEpisode,
    Refresh,
    RewardEstimate,
    RewardEstimator,
    Step,
    StepResult,
)
from rmab.learning.components.checks import checked_basis, checked_estimate, checked_memory, checked_plan, checked_sets
from rmab.learning.components.execution import Execution, Probes, rest_in_first_episode, rest_worthless
from rmab.learning.pools import Episode, Observations, Pools
from rmab.learning.state import Arrays, ArraySpec, ArraySpecs, Changes, Memory, State, masses, whole
from rmab.model import Problem, View
from rmab.play import Feedback, Policy
from rmab.solvers.transitions import TransitionSets

RATE = "learning rate, in units of the theory's"


class ComponentSet(NamedTuple):
    """The components of a learner of this family."""

    confidence: ConfidenceSets
    estimator: RewardEstimator
    step: Step
    rounding: Execution
    refresh: Refresh = EveryEpisode()
    probes: Probes = Probes(every=0.0)

    def by_memory(self) -> dict[str, Component]:
        """Return the components that keep a memory, by name in the state."""
        memories = {"sets": self.confidence, "refresh": self.refresh, "rewards": self.estimator}
        return {**memories, "step": self.step, "looks": self.probes}


class MirrorDescent(Learner):
    """Base of all learners of this family. Override `components`, or pass components to `Ucmd`.

    Its state has the memory of every component, with its name as a prefix (`sets.counts`), and `mass`, the plan
    (C, H, S, 2), unless the step recomputes it from its memory.
    """

    @property
    @abstractmethod
    def components(self) -> ComponentSet:
        """Override: the components, the same at every call."""

    _informed: ClassVar[ComponentSet | None] = None  # after privileged ones were informed

    @property
    def _components(self) -> ComponentSet:
        return self._informed or self.components

    @property
    def privileged(self) -> str:
        """What its components know that no real programme knows."""
        return " and ".join(filter(None, (part.privileged for part in self.components)))

    def inform(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Self:  # noqa: ARG002
        """Return the learner with its privileged components informed of this problem."""
        informed, own = copy(self), self.components
        object.__setattr__(
            informed, "_informed", own._replace(**{k: one.inform(problem) for k, one in own._asdict().items()})
        )
        return informed

    @property
    def feedback(self) -> Feedbacks:
        """The feedback that the components need."""
        return "full" if any(part.feedback == "full" for part in self.components) else "bandit"

    @property
    def draws(self) -> bool:
        """Whether some component draws arm by arm."""
        return any(part.draws for part in self.components)

    def estimate(self, state: State) -> FloatArray | None:
        """(N, S, 2), or (N, K, S, 2): the estimated rewards of the last episode.

        None before the first, and if only directions are known.
        """
        if state.episode == 0 or "estimate" not in state.arrays:
            return None
        return Pools.of(state.view).in_own_units(state.arrays["estimate"])

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare the plan, and the memories of all components."""
        pools, components = Pools.of(view), self.components
        plan = {"mass": masses(pools.weights.size, view.horizon, view.states, 2)} if components.step.stored else {}
        own = {**plan, "iterations": whole(), "estimate": ArraySpec(pools.zero.shape, optional=True)}
        named = components.by_memory().items()
        return {**own, **{f"{k}.{name}": one for k, part in named for name, one in part.state_spec(pools).items()}}

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Plan for the first sets, before any reward is known."""
        pools, components = Pools.of(view), self._components
        sets = checked_memory(components.confidence, components.confidence.begin(pools))
        refresh = checked_memory(components.refresh, components.refresh.learn({}, sets["counts"]))
        rewards = checked_memory(components.estimator, components.estimator.begin(pools))
        plan = checked_plan(components.step, pools, components.step.begin(pools, self._sets(pools, refresh, sets, 0)))
        return {
            **_prefix_names(sets=sets, refresh=refresh, rewards=rewards, looks=components.probes.begin(pools)),
            **_plan_arrays(plan),
        }

    @property
    def anywhere(self) -> bool:
        """Whether all components support episodes of any start, budget and horizon."""
        return all(part.anywhere for part in self.components)

    def decide_in(self, state: State, view: View) -> EpisodePlan:
        """Plan again for this situation, with what is known: the sets are those of the task, however short the episode."""
        pools, known = Pools.of(view), (state.of("refresh"), state.of("sets"), state.episode)
        sets = self._sets(Pools.of(state.view), *known, blocks=pools.group)
        return self._make_episode_plan(state, pools, self._again(state, pools, sets))

    def decide(self, state: State) -> EpisodePlan:
        """Execute the plan."""
        pools = Pools.of(state.view)
        return self._make_episode_plan(state, pools, self._plan(state, pools))

    def _plan(self, state: State, pools: Pools) -> StepResult:
        """Return the current plan, stored or recomputed."""
        if self._components.step.stored:
            return StepResult(state.arrays["mass"], int(state.arrays["iterations"]))
        known = (state.of("refresh"), state.of("sets"), state.episode)
        plan = self._components.step.last(state.of("step"), pools, partial(self._sets, pools, *known))
        return replace(checked_plan(self._components.step, pools, plan), iterations=int(state.arrays["iterations"]))

    def _again(self, state: State, pools: Pools, sets: TransitionSets) -> StepResult:
        return checked_plan(self._components.step, pools, self._components.step.again(state.of("step"), pools, sets))

    def _make_episode_plan(self, state: State, pools: Pools, plan: StepResult) -> EpisodePlan:
        """Return the policy of a plan, including its probes."""
        policy, rest = self._policy(pools, plan), (plan.mass, pools.block_of, plan.iterations, plan.visits)
        del plan  # shares are in the policy, and may be large
        worthless = self._components.step.worthless(state.of("step"), pools)
        if worthless is not None:
            tried = pools.of_arms(state.arrays["sets.counts"][:, :, 1].sum(axis=2), pools.group_of)
            policy = rest_worthless(
                policy, worthless, tried[:, pools.view.steps] if tried.ndim == 3 else tried[:, np.newaxis]
            )
        prices, draw_key = self._components.step.prices(state.of("step")), (state.seed, state.episode)
        if worthless is not None and state.episode == 0:
            policy = rest_in_first_episode(policy, pools, draw_key)
        return EpisodePlan(self._components.probes.added(state.of("looks"), policy, pools, prices, draw_key), *rest)

    def _policy(self, pools: Pools, plan: StepResult) -> Policy:
        execute = self._components.rounding.drawing() if plan.drawn else self._components.rounding
        return execute.policy(pools, plan.shares)

    def update(self, state: State, feedback: Feedback) -> Changes:
        """Update sets and reward estimates, and plan again."""
        components, pools = self._components, Pools.of(state.view)
        observed = pools.observe(feedback)
        sets = checked_memory(components.confidence, components.confidence.learn(state.of("sets"), observed))
        episode, counts = self._episode(state, feedback, observed, sets["counts"]), sets["counts"]
        refresh = checked_memory(components.refresh, components.refresh.learn(state.of("refresh"), counts))
        estimate = checked_estimate(components.estimator, episode, components.estimator.learn(state.of("rewards"), episode))
        estimate = _with_zeros(pools, estimate) if components.estimator.knows_zeros else estimate
        new = self._sets(pools, refresh, sets, state.episode + 1)
        plan = checked_plan(components.step, pools, components.step.move(state.of("step"), episode, new, estimate))
        looks = components.probes.learn(state.of("looks"), episode, estimate)
        known = {"estimate": estimate.gain} if estimate.gain.ndim == 3 else {}
        memories = _prefix_names(sets=sets, refresh=refresh, rewards=estimate.memory, looks=looks)
        arrays = {**memories, **known, **_plan_arrays(plan)}
        return {**dict.fromkeys(state.arrays), **arrays}  # arrays that are no longer stored are removed

    def _sets(
        self, pools: Pools, refresh: Memory, known: Memory, episode: int, blocks: IntArray | None = None
    ) -> TransitionSets:
        """Return the sets of every block; blocks: their groups, if they differ from those of the pools."""
        components, counts = self._components, known["counts"]
        basis = checked_basis(components.refresh, components.refresh.basis(refresh, counts), counts)
        sets = components.confidence.after(pools, known, basis, components.refresh.until(pools, episode))
        return checked_sets(components.confidence, pools, sets).take(pools.group if blocks is None else blocks)

    def _episode(self, state: State, feedback: Feedback, observed: Observations, counts: IntArray) -> Episode:
        pools, refresh, before = Pools.of(state.view), state.of("refresh"), state.arrays["sets.counts"]
        return Episode(
            pools,
            state.episode,
            state.seed,
            feedback,
            observed,
            before,
            counts,
            self._components.refresh.basis(refresh, before),
            lambda: self._sets(pools, refresh, state.of("sets"), state.episode),
            lambda: self._executed_mass(state, pools),
        )

    def _executed_mass(self, state: State, pools: Pools) -> tuple[Policy, FloatArray]:
        """Return the executed policy, and its occupancy: the plan's, or under the empirical kernels."""
        from rmab.learning.visits import own_occupancy  # noqa: PLC0415  (few components need it)

        plan = self._plan(state, pools)
        counts = state.arrays["sets.counts"]
        mass = own_occupancy(pools, plan.shares, counts) if plan.mass is None else plan.mass
        return self._policy(pools, plan), mass


def _prefix_names(**memories: Memory) -> Arrays:
    """Return the arrays of components, prefixed with the component's name."""
    return {f"{part}.{name}": array for part, memory in memories.items() for name, array in memory.items()}


def _plan_arrays(plan: StepResult) -> Arrays:
    mass = {} if plan.mass is None else {"mass": plan.mass}
    return {**mass, "iterations": np.array(plan.iterations), **_prefix_names(step=plan.memory)}


def _with_zeros(pools: Pools, estimate: RewardEstimate) -> RewardEstimate:
    """Insert known zeros into estimates by pair."""
    if estimate.gain.ndim == 4:
        return estimate
    gain = np.where(pools.zero, pools.floor, estimate.gain)
    tables = (estimate.ahead, estimate.likely)
    ahead, likely = (None if one is None else np.where(pools.zero, pools.floor, one) for one in tables)
    return replace(estimate, gain=gain, ahead=ahead, likely=likely)
