"""What is used in the parent works in forked children, and objects can be shared by threads."""

import functools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rmab
from rmab.common.processes import cached_property
from strategies import random_problem

FORKED = """
import multiprocessing, sys
import numpy as np, rmab

game = rmab.make_task("cpap", episodes=2)
problem, reward = game.problem, game.base_reward
kernels = problem.arms.kernels
low, high = np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)
reference = np.full((20, 50, 3, 2, 3), 0.05)
policy, small = rmab.planners.random_policy(problem), rmab.make_task("split")
shared = rmab.planners.LpUpdate(small.problem, small.base_reward)
many = rmab.Problem(rmab.Arms(np.tile(kernels, (100, 1, 1, 1))), 0, 500, 20)  # more than one piece of work: in threads

def work(name):
    if name == "run":
        return float(rmab.run(game, "ucmd").regret("O2").sum())
    if name == "project":
        return rmab.solvers.project(reference, low, high, problem.start, problem.budget).value
    if name == "fluid":
        exact = rmab.solvers.solve_fluid(small.problem, small.base_reward, method="highs").value
        return rmab.solvers.solve_fluid(problem, reward).value + exact
    if name == "soften":
        return rmab.solvers.soften(many, np.random.default_rng(0).random((2000, 3, 2)), 10).value
    if name == "simulate_many":
        return float(rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 3000, threads=2).rewards.sum())
    if name == "LpUpdate":
        return rmab.simulate(small.problem, shared, small.base_reward, np.random.default_rng(0)).reward
    return rmab.solvers.solve_optimistic_fluid(low, high, reward, problem.start, 3, 10).value

names = ["run", "project", "fluid", "soften", "simulate_many", "LpUpdate", "optimistic_fluid"]
here = [work(name) for name in names]
with multiprocessing.get_context("fork").Pool(1) as pool:
    there = [pool.apply_async(work, (name,)).get(timeout=60) for name in names]
assert there == here, (there, here)
print("equal")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there are no forks here")
def test_forked_children_work_after_use_in_the_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "equal\n", done.stderr[-2000:]


def test_threads_share_one_lp_update() -> None:
    problem, reward = random_problem(3, 6, 3, 5, 2)
    policy = rmab.planners.LpUpdate(problem, reward)
    alone = [
        rmab.simulate(problem, rmab.planners.LpUpdate(problem, reward), reward, np.random.default_rng(k)) for k in range(24)
    ]
    with ThreadPoolExecutor(4) as pool:
        play = functools.partial(rmab.simulate, problem, policy, reward)
        together = list(pool.map(play, [np.random.default_rng(k) for k in range(24)]))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
    assert 1 <= len(policy._free) <= 4


def test_threads_share_softened_plans() -> None:
    """All threads begin at once with the same plan to go on from, and get what one alone gets."""
    problem, reward = random_problem(3, 300, 3, 40, 60)
    last, gate = rmab.solvers.soften(problem, reward, 5), threading.Barrier(4)

    def work() -> tuple[float, list[float]]:
        gate.wait()
        plan = rmab.solvers.soften(problem, 1.1 * reward, 5, warm=last)
        return plan.value, plan.prices.tolist()

    with ThreadPoolExecutor(4) as pool:
        found = [one.result() for one in [pool.submit(work) for _ in range(4)]]
    alone = rmab.solvers.soften(problem, 1.1 * reward, 5, warm=last)
    assert found == [(alone.value, alone.prices.tolist())] * 4


def test_threads_share_problems_policies_and_learners() -> None:
    """Objects that compute something on first use: all threads begin at once, and get what one alone gets."""

    def fresh():
        game = rmab.make_task("cpap", arms=4, budget=2, horizon=6, episodes=3)
        return game, rmab.make_learner("ucmd"), rmab.planners.lagrangian_index(game.problem, game.base_reward)

    def work(shared, gate):
        game, learner, policy = shared
        gate.wait()
        batch = rmab.simulate_many(game.problem, policy, game.base_reward, np.random.default_rng(0), 50)
        return rmab.run(game, learner, seed=1).regret("O2").tolist(), batch.rewards.tolist()

    shared, gate = fresh(), threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        found = [one.result() for one in [pool.submit(work, shared, gate) for _ in range(4)]]
    assert found == [work(fresh(), threading.Barrier(1))] * 4


def test_cached_properties_hold_no_lock() -> None:
    """A thread that computes one keeps no other thread, and no forked child, waiting."""
    begun, done = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, wait: bool) -> None:
            self.wait = wait

        @cached_property
        def number(self) -> int:
            if self.wait:
                begun.set()
                done.wait(60)
            return 7

    slow, quick = threading.Thread(target=lambda: Slow(True).number), Slow(False)
    slow.start()
    begun.wait(60)
    other = threading.Thread(target=lambda: quick.number)
    other.start()
    other.join(20)
    assert not other.is_alive()
    assert vars(quick)["number"] == 7
    done.set()
    slow.join(60)
