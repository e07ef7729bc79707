"""A short benchmark for any installation: simulator, projection, plan and run, each next to a peer.

Seconds cannot be compared between machines; the ratio to a peer, timed in the same minute, can.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.model.problem import Problem
from rmab.planners.indices import lagrangian_index
from rmab.play.policy import IndexPolicy
from rmab.play.simulation import simulate_many
from rmab.runs.running import run
from rmab.solvers.fluid.fluid import solve_fluid
from rmab.solvers.projection.project import project
from rmab.tasks.making import make_task

REPEATS = 3
ROUNDS = 500  # episodes of one timing of the simulator


@dataclass(frozen=True)
class Measured:
    """Seconds of the first call, of later calls (the best of a few) and of the peer; ratio is peer_seconds / seconds."""

    name: str
    peer: str
    first: float
    seconds: float
    peer_seconds: float
    ratio: float


@dataclass(frozen=True)
class Pair:
    """A call to time, and its peer. Times are per part: one call does `parts` of them, the peer `peer_parts`."""

    name: str
    call: Callable[[], object]
    parts: int
    peer: str
    peer_call: Callable[[], object]
    peer_parts: int

    def measured(self) -> Measured:
        """Time both."""
        first = _timed(self.call)
        self.peer_call()
        seconds = min(_timed(self.call) for _ in range(REPEATS)) / self.parts
        peer_seconds = min(_timed(self.peer_call) for _ in range(REPEATS)) / self.peer_parts
        return Measured(self.name, self.peer, first, seconds, peer_seconds, peer_seconds / seconds)


def measures() -> Iterator[Pair]:
    """Yield the pairs, all on the CPAP case study: 20 arms, 3 states, 50 steps."""
    game = make_task("cpap-adherence")
    problem, reward = game.problem, game.base_reward
    policy = lagrangian_index(problem, reward)
    yield Pair(
        "simulate an episode",
        lambda: simulate_many(problem, policy, reward, np.random.default_rng(0), ROUNDS, threads=1),
        ROUNDS,
        "the same in NumPy",
        lambda: numpy_episode(problem, policy, reward),
        1,
    )
    yield Pair(
        "plan: the fluid bound",
        lambda: solve_fluid(problem, reward, method="newton"),
        1,
        "the same LP in HiGHS",
        lambda: solve_fluid(problem, reward, method="highs"),
        1,
    )
    reference, lower, upper = _confidence(problem)
    yield Pair(
        "project onto confidence sets",
        lambda: project(reference, lower, upper, problem.start, problem.budget),
        1,
        "an LP without the sets, in HiGHS",
        lambda: solve_fluid(problem, reward, method="highs"),
        1,
    )
    short, name = make_task("cpap", episodes=5), "ucmd"
    yield Pair(
        f"run: an episode of {name}", lambda: run(short, name), 5, "an episode of random", lambda: run(short, "random"), 5
    )


def numpy_episode(problem: Problem, policy: IndexPolicy, reward: FloatArray) -> float:
    """Return the reward of one episode, each step vectorised over the arms: the loop one would write in NumPy."""
    rng, cumulative, arms = np.random.default_rng(0), problem.arms.kernels.cumsum(axis=3), np.arange(problem.arms.count)
    states, total = problem.start.copy(), 0.0
    for h in range(problem.horizon):
        active = np.zeros(arms.size, dtype=np.int64)
        active[np.argpartition(policy.table[arms, h, states], -problem.budget)[-problem.budget :]] = 1
        total += float(reward[arms, states, active].sum())
        # By rounding, the last sum may be below 1: no draw may lead beyond the last state.
        below = (cumulative[arms, states, active] <= rng.random((arms.size, 1))).sum(axis=1)
        states = np.minimum(below, problem.arms.states - 1)
    return total


def _confidence(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a reference (N, H, S, 2, S) and boxes (N, S, 2, S) of half-width 0.1 around the kernels."""
    kernels = problem.arms.kernels
    rng = np.random.default_rng(0)
    steps = rng.uniform(0.5, 1.5, (kernels.shape[0], problem.horizon, *kernels.shape[1:]))
    reference = steps / kernels.shape[1] ** 2 / 2
    return reference, np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
