"""Step-by-step episodes of a problem in compiled code, for policies in Python and environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import BoolArray, FloatArray, IntArray, check_unmasked, sealed
from rmab.errors import PolicyError, raise_as
from rmab.model import Problem
from rmab.play.compiled.rounds import begin_rounds, step_rounds
from rmab.play.index_policy import IndexPolicy
from rmab.play.policy import Policy, begin_episode
from rmab.play.simulation import EMPTY, budget_error, budget_of, phases_first, start_of
from rmab.play.trajectory import Trajectory


class Rounds:
    """R parallel episodes of a problem. The caller checks the arguments.

    Parameters
    ----------
    problem : Problem
        The problem.
    rounds : int
        R, at least 1.

    Attributes
    ----------
    states : ndarray of int, shape (R, N)
        Current state of each arm.
    step : int
        Number of finished steps.
    """

    def __init__(self, problem: Problem, rounds: int = 1) -> None:
        self.problem, self.step = problem, 0
        horizon, arms = problem.horizon, problem.arms.count
        self.states = np.zeros((rounds, arms), dtype=np.int64)
        self._start, self._limits = start_of(problem), budget_of(problem)
        self._where = np.zeros((horizon + 1, rounds, arms), dtype=np.int32)
        self._active = np.zeros((horizon, rounds, arms), dtype=bool)

    @property
    def over(self) -> bool:
        """Whether all steps are done."""
        return self.step == self.problem.horizon

    @property
    def budget(self) -> float:
        """Budget of the next step; 0 after the last one."""
        return 0 if self.over else self.problem.budgets[self.step].item()

    @property
    def costs(self) -> FloatArray:
        """(N, 1 or S) costs of activations at the next step; empty if all are equal."""
        table = self._limits[2]
        return table[self.problem.phase_of[self.step] if len(table) > 1 else 0] if table.size else EMPTY

    def begin(self, rewards: Sequence[FloatArray], streams: NDArray[np.uint64]) -> None:
        """Start an episode with these rewards (N, [K,] S, 2), one per round or one for all, and streams (R, 2 or 3, 4).

        The first stream is for the arms, the last one for draws if too many arms are requested.
        """
        self.step = 0
        self._arms, self._draws = streams[:, 0].copy(), streams[:, -1].copy()
        reward, arms = sealed(np.stack([phases_first(one, self.problem) for one in rewards], axis=1)), self.problem.arms
        self._by_phase = list(zip(arms.cumulative, reward, strict=True))
        begin_rounds(*self._start, self._arms, self.states)
        self._where[0] = self.states

    def checked_actions(self, actions: ArrayLike, *, strict: bool) -> BoolArray:
        """Return actions (R, N) as a new array of bools, or raise PolicyError.

        strict: raise BudgetExceeded if they exceed the budget, PolicyError if they are fewer than an exact one.
        """
        if type(actions) is not np.ndarray:  # a plain array has no mask
            with raise_as(PolicyError, f"step {self.step}: ", step=self.step):
                check_unmasked(actions, "the action")
        try:
            given = np.asarray(actions)
        except ValueError as error:
            raise PolicyError(f"step {self.step}: the action is not an array ({error})", step=self.step) from error
        self.check_shape(given, "the action")
        if given.dtype.kind != "b":
            for r, n in np.argwhere((given != 0) & (given != 1))[:1]:
                wrong = f"step {self.step}: the action of {self.name_of(r, n)} must be 0 or 1, got {given[r, n]}"
                raise PolicyError(wrong, step=self.step, arm=n)
        active = np.array(given, dtype=bool, order="C")
        if strict:
            self.check_budget(active)
        return active

    def check_budget(self, active: BoolArray) -> None:
        """Raise BudgetExceeded if active arms (R, N) exceed the budget, PolicyError if they are fewer than an exact one."""
        for one, states in zip(active, self.states, strict=True):
            if not self.problem.keeps_budget(one, self.step, states):
                raise budget_error(self.problem, self.step, one, states)

    def check_shape(self, given: NDArray[Any], what: str) -> None:
        """Raise PolicyError unless there is a value for each round and arm, (R, N)."""
        if given.shape != self.states.shape:
            single = len(self.states) == 1  # the caller of a single round gives (N,)
            wrong = f"{what} must have shape {self.states.shape[single:]}, got {given.shape[single:]}"
            raise PolicyError(f"step {self.step}: {wrong}", code="bad-shape", step=self.step)

    def name_of(self, r: int, n: int) -> str:
        """Name an arm of a round, for messages."""
        return f"arm {n} of round {r}" if len(self.states) > 1 else f"arm {n}"

    def advance(self, active: BoolArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Advance by one step: activate the requested arms (R, N), or a random subset of them if they exceed the budget.

        If they are fewer than an exact budget, further arms are drawn at random.

        Return the total rewards (R,), discounted if the problem has a discount, the reward of each arm (R, N), and the
        number of dropped requests (R,). `active` is updated to the arms that were active.
        """
        problem, h = self.problem, self.step
        paid, totals, dropped = np.empty(active.shape), np.empty(len(active)), np.empty(len(active), dtype=np.int64)
        sums, pay = self._by_phase[problem.phase_of[h]]
        limit, model = (float(self._limits[0][h]), problem.exact, self.costs), (sums, problem.arms.group_of, pay)
        step_rounds(self.states, active, *limit, *model, self._arms, self._draws, paid, totals, dropped)
        self.step = h + 1
        self._where[h + 1], self._active[h] = self.states, active
        return totals if problem.discount == 1.0 else problem.discounts[h] * totals, paid, dropped

    def trajectory(self, r: int = 0) -> Trajectory:
        """Return the trajectory of a round so far; its reward is NaN."""
        return Trajectory(self._where[: self.step + 1, r].copy(), self._active[: self.step, r].copy(), float("nan"))


def play_steps(rounds: Rounds, policy: Policy, reward: FloatArray, streams: NDArray[np.uint64]) -> Trajectory:
    """Play one episode of any policy, like `index_episodes`, but with decisions in Python."""
    rounds.begin([reward], streams[np.newaxis])
    decide, total = decisions_of(policy, rounds.states[0], streams[1]), 0.0
    while not rounds.over:
        action = decide(rounds.step, rounds.states[0])
        active = rounds.checked_actions(action[np.newaxis] if isinstance(action, np.ndarray) else [action], strict=True)
        total += float(rounds.advance(active)[0][0])
    return replace(rounds.trajectory(), reward=total)


def decisions_of(policy: Policy, states: IntArray, stream: NDArray[np.uint64]) -> Callable[[int, IntArray], BoolArray]:
    """Return a function of step and states (N,) that decides in an episode from these states, with this stream (4,)."""
    if type(policy) is IndexPolicy:  # a subclass may decide differently
        return lambda h, now: policy.choose(h, now, stream)
    rng = np.random.default_rng(stream)
    player = begin_episode(policy, states.copy(), rng)
    return lambda h, now: player.act(h, now.copy(), rng)
