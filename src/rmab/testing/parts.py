"""The contracts of parts: yours is put into `Ucmd`, watched at every call, and the learner must keep its contract, too."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from rmab.common.arrays import IntArray
from rmab.families.task import Task
from rmab.learning import (
    Episode,
    Estimate,
    Execution,
    Observed,
    Part,
    Pools,
    Refresh,
    Rewards,
    Sets,
    Step,
    Stepped,
    TransitionSets,
    Ucmd,
)
from rmab.learning.state import Memory
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.policy import Policy
from rmab.testing.learner import check_learner, require

EPISODES = 3
ROUNDING = 1e-6


def check_sets(part: Sets) -> None:
    """Check a transition set: raises AssertionError with the clause that is broken.

    shape     `around` returns TransitionSets of all groups.
    mean      they hold the observed frequencies.
    support   transitions that are declared impossible stay impossible.
    counting  the memory has `counts` (G, S, 2, S), of all transitions.
    And all clauses of `check_learner`, for a learner with this part.
    """
    _check(part, Sets, "sets", _WatchedSets(part))


def check_rewards(part: Rewards) -> None:
    """Check a reward estimator: raises AssertionError with the clause that is broken.

    shape   gain is (R, S, 2) or (C, H, S, 2), ahead None or (R, S, 2), the memory plain arrays.
    values  all are finite; rewards pair by pair are at most 1.
    And all clauses of `check_learner`, for a learner with this part.
    """
    _check(part, Rewards, "rewards", _WatchedRewards(part))


def check_step(part: Step) -> None:
    """Check a step: raises AssertionError with the clause that is broken.

    shape      the plan is (C, H, S, 2), the memory plain arrays.
    occupancy  nothing is negative, all mass starts in the start state, and every step has mass 1.
    sets       what enters a state is no less and no more than the kernels of the sets can bring there.
    And all clauses of `check_learner`, for a learner with this part.
    """
    _check(part, Step, "step", _WatchedStep(part))


def check_execution(part: Execution) -> None:
    """Check an execution: raises AssertionError with the clause that is broken.

    policy  `policy` returns an object with `act(h, states, rng)`.
    budget  whatever the plan and the states, no more arms are active than the budget allows.
    And all clauses of `check_learner`, for a learner with this part.
    """
    _check(part, Execution, "execute", part)
    for task in _tasks():
        pools, rng = Pools.of(task.view()), np.random.default_rng(3)
        shape = (pools.start.size, task.problem.horizon, task.problem.arms.states, 2)
        for mass in (np.zeros(shape), np.ones(shape), rng.random(shape)):
            policy = part.policy(pools, mass)
            require(isinstance(policy, Policy), "policy: it must have a method act(h, states, rng)")
            for h in range(task.problem.horizon):
                states = rng.integers(0, task.problem.arms.real_states)
                active = int(np.sum(policy.act(h, states, rng)))
                require(active <= task.problem.budget, f"budget: {active} arms are active, of {task.problem.budget}")


def check_refresh(part: Refresh) -> None:
    """Check a refresh rule: raises AssertionError with the clause that is broken.

    basis  the counts that sets are made of have the shape of all counts, and are no more than these.
    And all clauses of `check_learner`, for a learner with this part.
    """
    _check(part, Refresh, "refresh", _WatchedRefresh(part))


def _check(part: Part, kind: type[Part], name: str, watched: Part) -> None:
    require(isinstance(part, kind), f"kind: {type(part).__name__} does not derive from {kind.__name__}")
    try:
        copy = pickle.loads(pickle.dumps(part))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"pickling: the part cannot be pickled ({error})") from error
    require(repr(copy) == repr(part), f"repr: a copy is {copy!r}, not {part!r}; declare what it is made of with `option`")
    for task in _tasks():
        parts: dict[str, Any] = {name: watched}
        check_learner(Ucmd(**parts), task, episodes=EPISODES)


def _tasks() -> Iterator[Task]:
    """Yield small tasks: arms that differ; groups that are paid alike, of two sizes, with passive rewards of zero."""
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(3), size=(4, 3, 2))), [0, 1, 2, 0], 2, 4)
    yield Task.from_rewards(problem, rng.uniform(-1, 2, size=(EPISODES, 4, 3, 2)), low=-1, high=2)
    groups, kernels = [0, 1, 0, 1], [rng.dirichlet(np.ones(size), size=(size, 2)) for size in (3, 2)]
    problem = Problem(Arms.of_sizes([kernels[g] for g in groups], groups=groups), [0, 1, 0, 1], 1, 5)
    rewards = rng.uniform(0, 2, size=(EPISODES, 2, 3, 2))[:, groups] * [0, 1]
    yield Task.from_rewards(problem, rewards, low=-1, high=2, passive_zero=True)


def _check_memory(memory: Memory) -> Memory:
    for name, array in memory.items():
        plain = isinstance(array, np.ndarray | np.generic) and array.dtype.kind in "biuf"
        require(plain, f"memory: {name} must be an array of numbers, got {type(array).__name__}")
    return memory


class _Watched:
    """Stands for a part, and is called what the part is called."""

    def __init__(self, part: Any) -> None:
        self.part, self.draws = part, part.draws

    def __repr__(self) -> str:
        return repr(self.part)


class _WatchedSets(_Watched, Sets):
    def begin(self, pools: Pools) -> Memory:
        memory = _check_memory(self.part.begin(pools))
        found = memory["counts"].shape if "counts" in memory else None
        require(found == pools.support.shape, f"counting: counts must be {pools.support.shape}, got {found}")
        return memory

    def learn(self, memory: Memory, observed: Observed) -> Memory:
        after = _check_memory(self.part.learn(memory, observed))
        counted = np.array_equal(after["counts"], memory["counts"] + observed.counts)
        require(counted, "counting: the memory's counts are not those of all transitions")
        return after

    def around(self, pools: Pools, counts: IntArray, episode: int) -> TransitionSets:
        sets: TransitionSets = self.part.around(pools, counts, episode)
        require(isinstance(sets, TransitionSets), f"shape: around must return TransitionSets, got {type(sets).__name__}")
        require(sets.low.shape == counts.shape, f"shape: the sets are {sets.low.shape}, not {counts.shape}")
        if sets.radius is None:
            require(not sets.high[~pools.support].any(), "support: a transition that is declared impossible is possible")
        visits = counts.sum(axis=3, keepdims=True)
        mean = np.where(visits > 0, counts / np.maximum(visits, 1), sets.low)
        off = np.maximum(sets.low - mean, mean - sets.high).max(axis=3)
        inside = off <= ROUNDING if sets.radius is None else np.abs(mean - sets.low).sum(axis=3) <= sets.radius + ROUNDING
        require(bool((inside | (visits[..., 0] == 0)).all()), "mean: a set does not hold the observed frequencies")
        return sets


class _WatchedRewards(_Watched, Rewards):
    def begin(self, pools: Pools) -> Memory:
        return _check_memory(self.part.begin(pools))

    def learn(self, memory: Memory, episode: Episode) -> Estimate:
        estimate: Estimate = self.part.learn(memory, episode)
        pools = episode.pools
        require(isinstance(estimate, Estimate), f"shape: learn must return an Estimate, got {type(estimate).__name__}")
        allowed = (pools.zero.shape, episode.mass.shape)
        require(estimate.gain.shape in allowed, f"shape: gain is {estimate.gain.shape}, not {allowed[0]} or {allowed[1]}")
        tables = [estimate.gain] if estimate.ahead is None else [estimate.gain, estimate.ahead]
        require(tables[-1].shape in allowed, f"shape: ahead is {tables[-1].shape}, not {allowed[0]} or {allowed[1]}")
        require(all(np.isfinite(one).all() for one in tables), "values: all estimates must be finite")
        above = max(float(one.max()) for one in tables) > 1 + ROUNDING
        require(not above, "values: rewards are mapped to [0, 1], and none can be above 1")
        _check_memory(estimate.memory)
        return estimate


class _WatchedStep(_Watched, Step):
    def begin(self, pools: Pools, sets: TransitionSets) -> Stepped:
        return self.seen(self.part.begin(pools, sets), pools, sets)

    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: Estimate) -> Stepped:
        return self.seen(self.part.move(memory, episode, sets, estimate), episode.pools, sets)

    def seen(self, plan: Stepped, pools: Pools, sets: TransitionSets) -> Stepped:
        require(isinstance(plan, Stepped), f"shape: a step must return Stepped, got {type(plan).__name__}")
        view, mass = pools.view, plan.mass
        shape = (pools.start.size, view.horizon, view.states, 2)
        require(mass.shape == shape, f"shape: the plan is {mass.shape}, not {shape}")
        require(bool((mass >= -ROUNDING).all()), "occupancy: a mass is negative")
        whole = np.abs(mass.sum(axis=(2, 3)) - 1.0).max()
        require(whole <= ROUNDING, f"occupancy: a step has mass 1 only up to {whole:.1e}")
        first = mass[np.arange(pools.start.size), 0, pools.start].sum(axis=1)
        require(bool((first >= 1 - ROUNDING).all()), "occupancy: not all mass starts in the start state")
        if sets.radius is None:
            low, high = (np.einsum("nhsa,nsay->nhy", mass, ends)[:, :-1] for ends in (sets.low, sets.high))
            entered = mass[:, 1:].sum(axis=3)
            inside = (entered >= low - ROUNDING) & (entered <= high + ROUNDING)
            require(bool(inside.all()), "sets: no kernel of the sets brings so much, or so little, mass there")
        _check_memory(plan.memory)
        return plan


class _WatchedRefresh(_Watched, Refresh):
    def learn(self, memory: Memory, counts: IntArray) -> Memory:
        return _check_memory(self.part.learn(memory, counts))

    def basis(self, memory: Memory, counts: IntArray) -> IntArray:
        found: IntArray = self.part.basis(memory, counts)
        require(found.shape == counts.shape, f"basis: it has shape {found.shape}, not {counts.shape}")
        require(bool((found <= counts).all()), "basis: more transitions than were counted")
        return found

    def until(self, pools: Pools, episode: int) -> int:
        last: int = self.part.until(pools, episode)
        require(last >= min(episode, pools.view.episodes - 1), f"basis: sets made for episode {episode} hold until {last}")
        return last
