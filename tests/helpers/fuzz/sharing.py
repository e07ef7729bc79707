"""Part 4: public functions in forked children, and in threads that share their objects: they return what they do alone."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import rmab
from fuzz import draw
from fuzz.cases import Case
from fuzz.proofs import require
from rmab.errors import RmabError
from rmab.learning.registry import LEARNERS

Work = Callable[[], Any]
PATIENCE = 90.0  # seconds for a child, less than a case may take


def works(case: Case) -> dict[str, Work]:
    """Return things to do by name, on objects that they share."""
    problem = draw.problem(case, 5, 4, 6)
    reward, seed = draw.reward(case, problem), case.whole(0, 2**40)
    kernels, (count, horizon) = problem.arms.kernels, (problem.arms.count, problem.horizon)
    low, high = np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)
    states, phase_of = problem.arms.states, problem.phase_of
    table = np.full((count, horizon, states, 2, states), 0.1)
    policy, update = rmab.planners.random_policy(problem), rmab.planners.LpUpdate(problem, reward)
    task, name = draw.task(case), case.pick([one for one in LEARNERS if one != "colored-ucrl2"])
    situation, now = {"start": draw.states_of(case, task.problem.arms), "budget": 0}, np.zeros(count, dtype=int)
    learner = rmab.make_learner(name)
    task = task if learner.feedback == task.feedback else rmab.Task(task.name, task.problem, task.adversary, "full")

    def run() -> Any:
        played = rmab.run(task, learner, seed=3)
        return played.reward, played.activations, dict(played.state.arrays)

    def elsewhere() -> Any:
        state = learner.begin(task.view(), 1)
        plan = learner.plan(state, **situation)
        return plan.policy.table if isinstance(plan.policy, rmab.IndexPolicy) else None

    def rng() -> np.random.Generator:
        return np.random.default_rng(seed)

    return {
        "fluid": lambda: _fields(rmab.solvers.solve_fluid(problem, reward), "value", "bound", "prices", "occupancy"),
        "fluid newton": lambda: _fields(
            rmab.solvers.solve_fluid(problem, reward, method="newton"), "value", "prices", "occupancy"
        ),
        "fluid highs": lambda: _fields(
            rmab.solvers.solve_fluid(problem, reward, method="highs"), "value", "prices", "occupancy"
        ),
        "soften": lambda: _fields(
            rmab.solvers.soften(problem, reward, 0.5), "value", "bound", "prices", "share", "occupancy"
        ),
        "optimistic fluid": lambda: _fields(
            rmab.solvers.solve_optimistic_fluid(
                low, high, reward, problem.start, problem.budget, horizon, phase_of=phase_of
            ),
            "value",
            "mass",
            "kernel",
        ),
        "project": lambda: _fields(
            rmab.solvers.project(table, low, high, problem.start, problem.budget, phase_of=phase_of),
            "mass",
            "kernel",
            "prices",
        ),
        "project ball": lambda: _fields(
            rmab.solvers.project_ball(
                table, kernels, np.full(kernels.shape[:-1], 0.2), problem.start, problem.budget, phase_of=phase_of
            ),
            "mass",
            "gap",
        ),
        f"plan {name} elsewhere": elsewhere,
        "act": lambda: policy.act(0, now, rng()),
        "rest": lambda: rmab.planners.lagrangian_index(problem.from_step(horizon - 1, now), reward).table,
        "whittle": lambda: _fields(rmab.planners.whittle_index(problem, reward, discount=0.9), "index", "indexable"),
        "whittle finite": lambda: _fields(rmab.planners.finite_whittle_index(problem, reward), "index", "indexable"),
        "simulate": lambda: _fields(rmab.simulate(problem, policy, reward, rng()), "states", "actions", "reward"),
        "simulate many": lambda: rmab.simulate_many(problem, policy, reward, rng(), 500, threads=2).rewards,
        "LP-update": lambda: _fields(rmab.simulate(problem, update, reward, rng()), "states", "actions"),
        "lagrangian": lambda: rmab.planners.lagrangian_index(problem, reward).table,
        f"run {name}": run,
        "regret": lambda: rmab.run(task, "random" if learner.feedback != "full" else learner).regret("O2"),
    }


def _fields(answer: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(answer, name) for name in names)


def done(work: Work) -> bytes:
    """Do it, and return what came of it, to the last bit; an error of the library is an outcome, too."""
    try:
        return pickle.dumps(_plain(work()))
    except RmabError as error:
        return f"{type(error).__name__}: {error}".encode()


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _plain(one) for name, one in sorted(answer.items())}
    if isinstance(answer, tuple):
        return tuple(map(_plain, answer))
    return (str(answer.dtype), answer.shape, answer.tobytes()) if isinstance(answer, np.ndarray) else answer


def forked(tasks: list[Work]) -> list[bytes]:
    """Do all of it in one forked child."""
    context: Any = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # to fork with threads running is what is tried here
        child = context.Process(target=lambda: there.send([done(one) for one in tasks]))
        child.start()
    there.close()
    try:
        require(here.poll(PATIENCE), f"fork: no answer of the child after {PATIENCE:g} s")
        found: list[bytes] = here.recv()
    except EOFError:
        child.join()
        raise AssertionError(f"fork: the child ended with status {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    return found


def play(case: Case) -> None:
    """Do some things here, in a child that is forked while another thread is at work, and in threads all at once."""
    everything = works(case)
    names = [str(one) for one in case.rng.choice(list(everything), size=case.whole(1, 4), replace=False)]
    if case.chance(0.5):
        _in_threads(case, everything, names)
    alone = {name: done(everything[name]) for name in names}
    stop, other = threading.Event(), everything[case.pick(list(everything))]

    def busy() -> None:
        while not stop.is_set():
            done(other)

    thread = threading.Thread(target=busy)
    if case.chance(0.5):
        thread.start()
    try:
        there = forked([everything[name] for name in names])
    finally:
        stop.set()
        if thread.ident is not None:
            thread.join()
    for name, answer in zip(names, there, strict=True):
        require(answer == alone[name], f"fork: {name} differs from what it is alone")
        case.count("forked")


def _in_threads(case: Case, everything: dict[str, Work], names: list[str]) -> None:
    """All threads begin at once, before anything was computed here; then each thing is done once more, alone."""
    gate = threading.Barrier(4)

    def together(name: str) -> bytes:
        gate.wait(PATIENCE)
        return done(everything[name])

    asked = [names[k % len(names)] for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(together, asked))
    for name, answer in zip(asked, found, strict=True):
        require(answer == done(everything[name]), f"threads: {name} differs from what it is alone")
        case.count("threaded")
