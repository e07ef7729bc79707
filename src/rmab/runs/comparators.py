"""Comparators of a run (Xiong & Li 2024, Section 3.2), and the theorem's bound on the regret.

The best policy over all episodes cannot be computed, so there are three comparators. Regret against each of them is signed:
it is negative if the learner earns more.

O1 is an upper bound for every fixed policy: the fluid LP of the summed rewards. Executable policies may stay below it.
O2 is the best fixed policy that can be executed, given the true kernels and the summed rewards. If there are few joint
states, it is the exact optimum, by backward induction over them (`planners/joint.py`); otherwise it is the better of the
occupancy and the Lagrangian index, simulated. (On cpap, cpap-adherence and deadline the finite Whittle index was never
better, and O2 is within 1% of O1, so LP-update could not improve it.) O3 knows the rewards of each episode in advance: the
fluid LP of each episode.

The random policy activates a random set of arms at each step, as many as the budget allows. Its regret against a
comparator is the unit in which regrets on different tasks are compared: 0% is the comparator, 100% is the random policy.
The comparator's reward is not a suitable unit: it may be near 0, or consist mostly of reward that every policy earns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import numpy as np

from rmab.common import FloatArray, as_share, cached_property, check_memory, check_unmasked, expect, frozen, log_over, sealed
from rmab.errors import ModelError, many
from rmab.model import Problem, View, by_phase, cells, shape_of, words_of
from rmab.planners.indices import lagrangian_index, occupancy_index, random_policy
from rmab.play import IndexPolicy, simulate_visits
from rmab.solvers.compiled.dynamics import forward
from rmab.solvers.fluid.fluid import Fluid, solve_fluid

Comparator = Literal["O1", "O2", "O3"]

SMALL = 14  # maximum number of arms; more have too many joint states
ROUNDS, KEY = 200, 2  # number of simulated episodes for O2, and the key of their random streams
CACHED = 2  # number of comparators that later runs share


@dataclass(frozen=True, eq=False)
class Comparators:
    """Rewards of the comparators O1, O2 and O3, and of the random policy; each is computed on first use.

    Parameters
    ----------
    problem : Problem
        The problem, with its true kernels.
    rewards : array of float, shape (T, N, S, 2) or (T, N, K, S, 2)
        The rewards that the adversary chose in each episode.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> game = rmab.make_task("cpap", episodes=2)
    >>> comparators = rmab.runs.Comparators(game.problem, np.stack([game.reward(0), game.reward(1)]))
    >>> comparators
    Comparators(Problem(Arms(20 arms, 3 states), budget 10, horizon 50), 2 episodes)
    >>> comparators.per_episode("O1").shape
    (2,)
    """

    problem: Problem
    rewards: FloatArray

    def __post_init__(self) -> None:
        """Check that the rewards fit the problem; they are not copied."""
        expect(self.problem, Problem, "problem")
        arms, phases, given = self.problem.arms, self.problem.phases, self.rewards
        check_unmasked(given, "rewards")
        shape = shape_of(phases, arms.count, arms.states, 2)
        fits = isinstance(given, np.ndarray) and given.dtype == np.float64 and given.ndim > 0 and len(given) > 0
        if not fits or given.shape[1:] != shape or not np.isfinite(given).all():
            letters = words_of(phases, "N", "S", "2")
            wanted = f"finite floats of shape (T, {letters[1:]}, where {letters} = {shape}"
            raise ModelError(f"rewards must be an array, {wanted}, got {getattr(given, 'shape', type(given).__name__)}")

    @cached_property
    def plan(self) -> Fluid:
        """Solution of the fluid LP of the summed rewards."""
        return solve_fluid(self.problem, self.rewards.sum(axis=0))

    @cached_property
    def visits(self) -> FloatArray:
        """(N, S, 2), or (N, K, S, 2) with phases: mean visits per episode of O1's occupancy, discounted as rewards are."""
        counted = self.plan.occupancy * self.problem.discounts[:, np.newaxis, np.newaxis]
        return frozen(by_phase(counted, self.problem.phase_of, self.problem.phases))

    def per_episode(self, which: Comparator) -> FloatArray:
        """(T,) reward of the comparator 'O1', 'O2' or 'O3' in each episode; raise ModelError for another name."""
        known = {"O1": self.o1, "O2": self.o2, "O3": self.o3}
        if not isinstance(which, str) or which not in known:
            wrong = f"unknown comparator {which!r:.40}; available: {', '.join(known)}"
            raise ModelError(wrong, code="unknown-name", comparator=str(which))
        return known[which]()

    @classmethod
    def of(cls, problem: Problem, rewards: FloatArray, change: tuple[int, Problem] | None = None) -> Comparators:
        """Return the comparators of these rewards (T, N, S, 2), cached for other runs: they cost as much as a run.

        change: the episode from which on another problem applies, and that problem.
        """
        if change is not None:
            begin, after = change
            return _Changed(problem, rewards, (cls.of(problem, rewards[:begin]), cls.of(after, rewards[begin:])))
        return _shared(_Inputs(_fingerprint(problem, rewards), problem, rewards))

    def o1(self) -> FloatArray:
        """(T,) reward of the fluid plan of the summed rewards; its sum bounds every fixed policy, up to the plan's gap."""
        return np.asarray(np.tensordot(self.rewards, self.visits, axes=self.visits.ndim))

    def o2(self) -> FloatArray:
        """(T,) reward of the best executable fixed policy: the exact optimum if there are few joint states; otherwise the
        better of two indices, chosen on half of the simulated episodes and evaluated on all.
        """
        return np.asarray(np.tensordot(self.rewards, self._best_visits, axes=self._best_visits.ndim))

    @cached_property
    def _best_visits(self) -> FloatArray:
        total = self.rewards.sum(axis=0)
        if self.problem.arms.count <= SMALL:
            from rmab.planners.joint import few_joint_states, joint_visits  # noqa: PLC0415  (rarely needed)

            if few_joint_states(self.problem):
                return joint_visits(self.problem, total)
        candidates = [make(self.problem, total, fluid=self.plan) for make in (occupancy_index, lagrangian_index)]
        halves = [self._simulate_halves(policy) for policy in candidates]
        best = int(np.argmax([float((first / (ROUNDS // 2) * total).sum()) for first, _ in halves]))
        first, second = halves[best]
        return frozen((first + second) / ROUNDS)

    def _simulate_halves(self, policy: IndexPolicy) -> tuple[FloatArray, FloatArray]:
        """Return visits (N, S, 2), or with phases, in each half of ROUNDS simulated episodes, with common streams."""
        middle = ROUNDS // 2
        first, second = range(middle), range(middle, ROUNDS)
        return tuple(simulate_visits(self.problem, policy, KEY, half) for half in (first, second))  # type: ignore[return-value]

    def o3(self) -> FloatArray:
        """(T,) fluid bound of each episode; proportional rewards are solved only once."""
        return self._bounds

    @cached_property
    def _bounds(self) -> FloatArray:
        bounds, known = np.empty(len(self.rewards)), dict[bytes, float]()
        for t, reward in enumerate(self.rewards):
            scale = float(np.abs(reward).max()) or 1.0
            key = np.round(reward / scale, 12).tobytes()
            if key not in known:
                known[key] = solve_fluid(self.problem, reward / scale).bound
            bounds[t] = scale * known[key]
        return frozen(bounds)

    def random(self) -> FloatArray:
        """(T,) mean reward of the random policy: a random set of arms at each step, as many as the budget allows."""
        return np.asarray(np.tensordot(self.rewards, self._random_visits, axes=self._random_visits.ndim))

    @cached_property
    def _random_visits(self) -> FloatArray:
        """Mean visits of the random policy. An arm is active with equal probability in all its states, so arms decouple.

        Not so if costs differ: then what is left for an arm depends on the others, and the policy is simulated.
        """
        problem, arms = self.problem, self.problem.arms
        if problem.weights is not None:
            first_half, second_half = self._simulate_halves(random_policy(problem))
            return frozen((first_half + second_half) / ROUNDS)
        _, first, like = np.unique(
            np.column_stack([arms.group_of, problem.start_masses]), axis=0, return_index=True, return_inverse=True
        )
        kernels = np.array(cells(arms.group_kernels[arms.group_of[first]], problem.phases))
        active = problem.slots / arms.count
        share = np.tile(active[np.newaxis, :, np.newaxis], (first.size, 1, arms.states))
        occupancy, free = np.empty((*share.shape, 2)), np.full(problem.horizon, np.inf)
        forward(sealed(kernels), problem.phase_of, sealed(problem.start_masses[first]), free, share, occupancy)
        counted = occupancy * problem.discounts[:, np.newaxis, np.newaxis]
        return frozen(by_phase(counted, problem.phase_of, problem.phases)[like.reshape(-1)])

    def __repr__(self) -> str:
        return f"Comparators({self.problem!r}, {many(len(self.rewards), 'episode')})"


@dataclass(frozen=True, eq=False)
class _Changed(Comparators):
    """Comparators of a task whose kernels change: those of the two stretches, one after the other."""

    stretches: tuple[Comparators, Comparators]

    def o1(self) -> FloatArray:
        """(T,) O1 of each stretch."""
        return np.concatenate([one.o1() for one in self.stretches])

    def o2(self) -> FloatArray:
        """(T,) O2 of each stretch."""
        return np.concatenate([one.o2() for one in self.stretches])

    def o3(self) -> FloatArray:
        """(T,) O3 of each stretch."""
        return np.concatenate([one.o3() for one in self.stretches])

    def random(self) -> FloatArray:
        """(T,) mean reward of the random policy in each stretch."""
        return np.concatenate([one.random() for one in self.stretches])


@dataclass(frozen=True)
class _Inputs:
    """Inputs of comparators, compared by digest."""

    digest: bytes
    problem: Problem = field(compare=False)
    rewards: FloatArray = field(compare=False)


@lru_cache(maxsize=CACHED)
def _shared(inputs: _Inputs) -> Comparators:
    return Comparators(inputs.problem, inputs.rewards)


def _fingerprint(problem: Problem, rewards: FloatArray) -> bytes:
    """Return a digest of everything that the comparators depend on."""
    arms = problem.arms
    cost = np.ones(()) if problem.cost is None else problem.cost
    sizes = (problem.horizon, problem.phases, problem.exact, cost.shape, problem.start.shape, rewards.shape)
    digest = sha256(repr(sizes).encode())
    kernels, time = arms.group_kernels, (problem.budgets, problem.phase_of, problem.discounts)
    for array in (kernels, arms.group_of, *time, cost, problem.start, rewards):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def theory_curve(view: View, epsilon: float = 0.05) -> FloatArray:
    """Return the bound on the regret of Xiong & Li 2024, Section 5.1, after each episode.

    The bound is of order O-tilde; the curve uses its printed terms with constant 1.

    Parameters
    ----------
    view : View
        The sizes, and the range of the rewards, which scales the bound.
    epsilon : float, default 0.05
        The bound holds with probability 1 - 3 epsilon.

    Returns
    -------
    array of float, shape (T,)
        The bound on the accumulated regret after 1, 2, ..., T episodes.

    Examples
    --------
    >>> import rmab
    >>> rmab.runs.theory_curve(rmab.make_task("cpap", episodes=3).view()).round()
    array([15445., 22069., 27186.])
    """
    expect(view, View, "view")
    if as_share(epsilon, "epsilon") == 0.0:
        raise ModelError("epsilon must be above 0")
    check_memory(f"the curve of {view.episodes} episodes", 48.0 * view.episodes)
    t = np.arange(1, view.episodes + 1)
    states, arms, horizon = view.states, view.arms, view.horizon
    descent = arms * horizon * np.sqrt(t * np.log(states**2 * 2))
    feedback = horizon * np.sqrt(2 * arms * t * log_over(4 * states * 2 * arms * t, epsilon))
    index = view.slots.max() * np.sqrt(states * 2 * arms * t * horizon)
    return np.asarray((view.high - view.low) * (descent + feedback + index))
