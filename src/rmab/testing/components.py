"""Contract tests of components: each is used in `Ucmd`, its calls are checked, and so is the contract of the learner."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning import (
    Component,
    ConfidenceSets,
    Episode,
    Execution,
    Lazy,
    Observations,
    Pools,
    Probes,
    Refresh,
    RewardEstimate,
    RewardEstimator,
    Step,
    StepResult,
    Ucmd,
)
from rmab.learning.options import describe
from rmab.learning.state import Memory
from rmab.model import Arms, FeedbackMode, Problem
from rmab.play import Policy, begin_episode
from rmab.solvers import TransitionSets
from rmab.tasks.definition import Task
from rmab.testing.games import copy_of, require
from rmab.testing.learner import check_learner

EPISODES = 3
ROUNDING = 1e-6


def check_sets(part: ConfidenceSets) -> None:
    """Check confidence sets; raise AssertionError with the broken clause.

    returns   `around` returns TransitionSets of all groups, in which impossible transitions stay impossible.
    mean      they contain the observed frequencies, unless `confident` is False.
    counting  the memory has `counts` (G, S, 2, S) of observed transitions.
    raises    no exceptions are raised.
    And all clauses of `check_learner`, for a learner with this component.
    """
    _check(part, ConfidenceSets, "confidence", _WatchedSets(part))


def check_rewards(part: RewardEstimator) -> None:
    """Check a reward estimator; raise AssertionError with the broken clause.

    returns  gain is (R, S, 2) or (C, H, S, 2), ahead None or (R, S, 2), finite and at most 1; the memory is plain arrays.
    raises   no exceptions are raised.
    And all clauses of `check_learner`, for a learner with this component.
    """
    _check(part, RewardEstimator, "estimator", part)


def check_step(part: Step) -> None:
    """Check a step; raise AssertionError with the broken clause.

    returns  the plan is an occupancy (C, H, S, 2): nonnegative, all mass starts in the start state, every step has mass
             1; or, for a step that is not `stored`, shares (C, H, S) within [0, 1]. The memory is plain arrays. A plan
             may exceed the budget, which the execution enforces.
    sets     the mass that enters a state is possible under some kernel of the sets.
    raises   no exceptions are raised.
    And all clauses of `check_learner`, for a learner with this component.
    """
    _check(part, Step, "step", _WatchedStep(part))


def check_execution(part: Execution) -> None:
    """Check an execution; raise AssertionError with the broken clause.

    policy  `policy` returns an object with `act(h, states, rng)`.
    budget  active arms are within the budget for all plans and states.
    raises  no exceptions are raised.
    And all clauses of `check_learner`, for a learner with this component.
    """
    require(isinstance(part, Execution), f"kind: {type(part).__name__} does not derive from Execution")
    for task in _tasks():
        pools, rng = Pools.of(task.view()), np.random.default_rng(3)
        shape = (pools.weights.size, task.problem.horizon, task.problem.arms.states)
        for share in (np.zeros(shape), np.ones(shape), rng.random(shape)):
            policy = _call_policy(part, pools, share)
            require(isinstance(policy, Policy), "policy: it must have a method act(h, states, rng)")
            player = begin_episode(policy, task.problem.start_masses.argmax(axis=1), rng)
            for h in range(task.problem.horizon):
                states = rng.integers(0, task.problem.arms.real_states)
                active = int(np.sum(player.act(h, states, rng)))
                most = int(task.problem.budgets[h])
                require(active <= most, f"budget: {active} arms are active, the budget is {most}")
    _check(part, Execution, "rounding", part)


def _call_policy(part: Execution, pools: Pools, share: FloatArray) -> Policy:
    try:
        return part.policy(pools, share)
    except Exception as error:  # custom code may raise anything
        raise AssertionError(f"raises: {type(error).__name__}: {error}") from error


def check_refresh(part: Refresh) -> None:
    """Check a refresh rule; raise AssertionError with the broken clause.

    returns  the counts for the sets have the shape of all counts, and are between 0 and these.
    until    sets are used at least in the episode that they are computed for, and at most until the last.
    raises   no exceptions are raised.
    And all clauses of `check_learner`, for a learner with this component.
    """
    _check(part, Refresh, "refresh", _WatchedRefresh(part))


def _check(part: Component, kind: type[Component], name: str, watched: Component) -> None:
    require(isinstance(part, kind), f"kind: {type(part).__name__} does not derive from {kind.__name__}")
    copy = copy_of(part, "the component")
    require(describe(copy) == describe(part), f"pickling: a copy is {describe(copy)}, not {describe(part)}")
    # Probes draw random numbers per arm, and would hide a component that does; gains by step need a step that uses them.
    components: dict[str, Any] = {
        "probes": Probes(every=0),
        **({"step": Lazy()} if kind is RewardEstimator else {}),
        name: watched,
    }
    for task in _tasks(part.feedback):
        try:
            check_learner(Ucmd(**components), task, episodes=EPISODES)
        except AssertionError:
            raise
        except Exception as error:  # custom code may raise anything
            clause = "returns" if isinstance(error, ModelError) else f"raises: {type(error).__name__}"
            raise AssertionError(f"{clause}: {error}") from error


def _tasks(feedback: FeedbackMode = "bandit") -> Iterator[Task]:
    """Yield small tasks: different arms; and groups of two sizes with equal rewards, and passive rewards of zero."""
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(3), size=(4, 3, 2))), [0, 1, 2, 0], 2, 4)
    yield Task.from_rewards(problem, rng.uniform(-1, 2, size=(EPISODES, 4, 3, 2)), low=-1, high=2, feedback=feedback)
    groups, kernels = [0, 1, 0, 1], [rng.dirichlet(np.ones(size), size=(size, 2)) for size in (3, 2)]
    problem = Problem(Arms.of_sizes([kernels[g] for g in groups], groups=groups), [0, 1, 0, 1], 1, 5)
    rewards = rng.uniform(0, 2, size=(EPISODES, 2, 3, 2))[:, groups] * [0, 1]
    yield Task.from_rewards(problem, rewards, low=-1, high=2, passive_zero=True, feedback=feedback)


class _Watched:
    """Wrapper of a component that checks its calls."""

    def __init__(self, part: Any) -> None:
        self._part, self.draws, self.feedback, self.anywhere = part, part.draws, part.feedback, part.anywhere
        self.stored = getattr(part, "stored", True)

    @property
    def options(self) -> dict[str, Any]:
        """The component."""
        return {"part": self._part}


class _WatchedSets(_Watched, ConfidenceSets):
    def begin(self, pools: Pools) -> Memory:
        memory: Memory = self._part.begin(pools)
        found = memory["counts"].shape if "counts" in memory else None
        require(found == pools.support.shape, f"counting: counts must be {pools.support.shape}, got {found}")
        return memory

    def learn(self, memory: Memory, observed: Observations) -> Memory:
        after: Memory = self._part.learn(memory, observed)
        counted = (after["counts"] >= 0) & (after["counts"] <= memory["counts"] + observed.counts)
        require(bool(counted.all()), "counting: the memory's counts are not those of observed transitions")
        return after

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        sets: TransitionSets = self._part.around(pools, counts, episode)
        if not isinstance(sets, TransitionSets) or sets.low.shape != counts.shape:
            return sets  # the learner reports the problem
        visits = counts.sum(axis=3, keepdims=True)
        mean = np.where(visits > 0, counts / np.maximum(visits, 1), sets.low if sets.centre is None else sets.centre)
        off = np.maximum(sets.low - mean, mean - sets.high).max(axis=3)
        if sets.centre is not None and sets.radius is not None:
            off = np.maximum(off, np.abs(mean - sets.centre).sum(axis=3) - sets.radius)
        inside = (off <= ROUNDING) | (visits[..., 0] == 0)
        require(bool(inside.all()) or not self._part.confident, "mean: a set does not contain the observed frequencies")
        return sets


class _WatchedStep(_Watched, Step):
    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        return self.checked_plan(self._part.begin(pools, sets), sets)

    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> StepResult:
        tight = _tight(sets)
        self.checked_plan(self._part.move(memory, episode, tight, estimate), tight)  # sets of a few episodes exclude little
        return self.checked_plan(self._part.move(memory, episode, sets, estimate), sets)

    def again(self, memory: Memory, pools: Pools, sets: TransitionSets) -> StepResult:
        return self.checked_plan(self._part.again(memory, pools, sets), sets)

    def checked_plan(self, plan: StepResult, sets: TransitionSets) -> StepResult:
        mass = plan.mass if isinstance(plan, StepResult) else None
        if mass is None or np.ndim(mass) != 4 or mass.shape[::2] != sets.low.shape[:2]:
            return plan  # only shares; or the learner reports the problem
        if (mass >= 0).all():
            low, high = (np.einsum("nhsa,nsay->nhy", mass, ends)[:, :-1] for ends in (sets.low, sets.high))
            entered = mass[:, 1:].sum(axis=3)
            inside = (entered >= low - ROUNDING) & (entered <= high + ROUNDING)
            require(bool(inside.all()), "sets: no kernel of the sets gives this mass")
        return plan


def _tight(sets: TransitionSets) -> TransitionSets:
    """Return sets with a single kernel each, in the middle of the given ones."""
    middle = sets.low + sets.high if sets.centre is None else sets.centre
    return TransitionSets.known(middle / middle.sum(axis=3, keepdims=True))


class _WatchedRefresh(_Watched, Refresh):
    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        return self._part.learn(memory, counts)  # type: ignore[no-any-return]

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:
        return self._part.basis(memory, counts)  # type: ignore[no-any-return]

    def until(self, pools: Pools, episode: int) -> int:
        last: int = self._part.until(pools, episode)
        fine = min(episode, pools.view.episodes - 1) <= last <= pools.view.episodes
        require(fine, f"until: sets for episode {episode} of {pools.view.episodes} are used until {last}")
        return last
