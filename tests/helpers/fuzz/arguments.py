"""Part 5: wrong arguments at public functions. They are taken, or refused with an error of the library in one line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

import numpy as np

import rmab
from fuzz.cases import Case
from fuzz.mutations import odd_array
from fuzz.programme_calls import KERNEL, data_calls, live_calls
from fuzz.proofs import require
from rmab import planners, solvers
from rmab.errors import RmabError
from rmab.learning import Ucmd
from rmab.study import Study
from rmab.study.spec import Job

HUGE = (10**6, 10**9, 10**12, 2**53 - 1, 2**53, 2**63, 10**30)


class Strange:
    """An object that is nothing that anybody asks for."""

    def __repr__(self) -> str:
        return "Strange()"


WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), *HUGE, "", "x", "1", "1\n2",
    b"x", [], [[]], [1, [2]], [None], ["a"], {}, {"a": 1}, (), (1, 2), {1}, 1j, range(3), Strange, Strange(),
    np.float64(0.5), np.int8(3), np.array([]), np.array(1), np.array("x"), np.array([1, None]), np.zeros((3, 3)),
    np.ones((2, 2, 2)), np.full((3, 2, 2), np.nan), np.ma.masked_array([1.0, 2.0], [0, 1]), np.zeros((0, 2)),
    np.array(["2020"], dtype="M8[D]"), np.array([1 + 1j]), np.random.default_rng(0), len, "a:b", "a.json", "\0.npz", 10**400,
    [0, 0, 1, 1], [0, 1], [0, 0, 10**6, 1], [0, 0, 999_999, 1], [0, 0, 2**70, 1], [0, float("nan"), 1, 0], [0, None, 1, 0],
    [1, 1, 1], [1, [1], 1, 1], [[1, 1, 1, 1]], [0.5] * 4, ["0"] * 4, [True] * 4, [np.ma.masked_array([1, 1], [0, 1])] * 2,
    [[0.5, 0.5], [1.0], [0.5, 0.5]], np.full((3, 2), 0.5), np.full((3, 2), np.nan), [[1.0, -0.0]] * 3, [[2.0, -1.0]] * 3,
    np.full((3, 2), 0.5, dtype="f2"), np.eye(3)[:, :2], np.ones((3, 2), dtype=object), np.arange(4, dtype="u1"), iter([1]),
)  # fmt: skip


@cache
def calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return public functions by name, each with arguments that are right."""
    arms = rmab.Arms([KERNEL] * 3)
    problem = rmab.Problem(arms, 0, 1, 4)
    reward, kernels = np.tile([[0.0, 0.2], [1.0, 1.5]], (3, 1, 1)), arms.kernels
    low, high = np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)
    task = rmab.make_task("cpap", arms=2, budget=1, horizon=3, episodes=2)
    view, model = task.view(), rmab.RewardModel(np.ones((1, 3, 2, 2)), 0, 2)
    policy, plan = planners.random_policy(problem), solvers.solve_fluid(problem, reward)
    infinite = {"problem": problem, "reward": reward, "average": solvers.solve_average_fluid(problem, reward)}
    learner = rmab.make_learner("ucmd")
    state, rng = learner.begin(view), np.random.default_rng(0)
    seen = rmab.simulate(task.problem, learner.plan(state).policy, task.reward(0), np.random.default_rng(0))
    feedback = rmab.Feedback.reveal(view, 0, seen, task.reward(0))
    solve = {"start": problem.start, "budget": 1.0, "weights": np.ones(3)}
    table = np.full((3, 4, 2, 2, 2), 0.1)
    study = {"name": "x", "rounds": 1, "tasks": [{"name": "cpap"}], "learners": [{"name": "random"}]}
    sizes = {"arms": 2, "budget": 1, "horizon": 3, "episodes": 2}
    whole = {name: getattr(view, name) for name in fields_of(view)}
    draws = {"problem": problem, "policy": policy, "reward": reward, "rng": rng}
    return timed_calls() | data_calls() | live_calls() | {
        "Arms": (rmab.Arms, {"kernels": kernels, "state_names": ["a", "b"], "groups": [0, 0, 0], "support": kernels > 0,
                             "sizes": [2, 2, 2], "normalise": True}),
        "identical": (rmab.Arms.identical, {"kernel": KERNEL, "count": 3, "normalise": True}),
        "of_sizes": (rmab.Arms.of_sizes, {"kernels": [KERNEL, KERNEL], "groups": ["a", "b"], "normalise": True}),
        "repeated": (arms.repeated, {"times": 2}),
        "Problem": (rmab.Problem, {"arms": arms, "start": 0, "budget": 1, "horizon": 4, "phase_of": [0, 0, 0, 0]}),
        "View": (rmab.View, whole),
        "RewardModel": (rmab.RewardModel, {"parts": np.ones((1, 3, 2, 2)), "low": 0.0, "high": 2.0, "units": [0, 0, 1]}),
        "adversary": (rmab.make_adversary, {"name": "noisy", "model": model, "episodes": 3, "rng": rng}),
        "reward": (task.reward, {"t": 0, "visits": np.zeros((2, 3, 2))}),
        "task": (rmab.make_task, {"name": "cpap@noisy", "seed": 0, "feedback": "bandit", "copies": 1, **sizes}),
        "deadline": (rmab.make_task, {"name": "deadline", **sizes, "grouped": True, "known_support": False}),
        "from_rewards": (rmab.Task.from_rewards, {"problem": problem, "rewards": np.ones((2, 3, 2, 2)), "low": 0.0,
                                                  "high": 2.0, "passive_zero": False, "feedback": "bandit", "name": "own"}),
        "Task": (rmab.Task, {"name": "own", "problem": task.problem, "adversary": task.adversary, "feedback": "bandit"}),
        "load_task": (rmab.Task.load, {"path": "missing.npz"}),
        "Problem.load": (rmab.Problem.load, {"path": "missing.npz"}),
        "State.load": (rmab.State.load, {"path": "missing.npz"}),
        "fluid": (solvers.solve_fluid, {"problem": problem, "reward": reward, "method": "auto", "tolerance": 1e-6}),
        "soften": (solvers.soften, {"problem": problem, "reward": reward, "beta": 3.0, "warm": None, "tolerance": 1e-6}),
        "optimistic_fluid": (solvers.solve_optimistic_fluid, {"lower": low, "upper": high, "reward": reward, "horizon": 4,
                                                     "tolerance": 1e-6, **solve}),
        "project": (solvers.project, {"reference": table, "lower": low, "upper": high, "warm": None, "tolerance": 1e-8,
                                      **solve}),
        "project_ball": (solvers.project_ball, {"reference": table, "centre": kernels, "radius": np.full((3, 2, 2), 0.1),
                                             "warm": None, "tolerance": 1e-8, **solve}),
        "occupancy_index": (planners.occupancy_index, {"problem": problem, "reward": reward, "fluid": plan, "rule": "fill",
                                                   "rounding": "top"}),
        "lagrangian_index": (planners.lagrangian_index, {"problem": problem, "reward": reward, "fluid": plan,
                                                     "rule": "fill"}),
        "myopic_index": (planners.myopic_index, {"problem": problem, "reward": reward, "lookahead": True, "rule": "fill"}),
        "round_robin": (planners.round_robin, {"problem": problem, "episode": 0}),
        "random_policy": (planners.random_policy, {"problem": problem}),
        "LpUpdate": (planners.LpUpdate, {"problem": problem, "reward": reward}),
        "average_fluid": (solvers.solve_average_fluid, {"problem": problem, "reward": reward, "tolerance": 1e-9}),
        "stationary_index": (planners.stationary_index, {**infinite, "rule": "fill"}),
        "IdPolicy": (planners.IdPolicy, infinite),
        "Ftva": (planners.Ftva, infinite),
        "SetExpansion": (planners.SetExpansion, infinite),
        "Ftva.begin": (planners.Ftva(**infinite).begin, {"states": np.array([0, 1, 0]), "rng": rng}),
        "IdPolicy.act": (planners.IdPolicy(**infinite).act, {"h": 0, "states": np.array([0, 1, 0]), "rng": rng}),
        "whittle": (planners.whittle_index, {"problem": problem, "reward": reward, "discount": 0.9}),
        "whittle_finite": (planners.finite_whittle_index, {"problem": problem, "reward": reward}),
        "deadline_whittle": (rmab.tasks.deadline.deadline_whittle, {"problem": problem, "discount": 0.9}),
        "least_laxity_first": (rmab.tasks.deadline.least_laxity_first, {"problem": problem}),
        "IndexPolicy": (rmab.IndexPolicy, {"table": np.ones((3, 2)), "budget": 1, "rule": "fill", "rounding": "top"}),
        "act": (policy.act, {"h": 0, "states": np.array([0, 1, 0]), "rng": rng}),
        "simulate": (rmab.simulate, draws),
        "simulate_many": (rmab.simulate_many, {**draws, "rounds": 3, "threads": 1}),
        "Feedback": (rmab.Feedback, {"episode": 0, "states": seen.states, "actions": seen.actions,
                                     "rewards": task.reward(0)}),
        "of_steps": (rmab.Feedback.of_steps, {"view": view, "episode": 0, "states": seen.states, "actions": seen.actions,
                                              "rewards": np.full((3, 2), np.nan)}),
        "learner": (rmab.make_learner, {"name": "ucmd", "epsilon": 0.1, "scale": 1.0, "rule": "fill", "rounding": "top"}),
        "rmab-ucrl": (rmab.make_learner, {"name": "rmab-ucrl", "version": "generator", "samples": 3, "optimism": 1.0}),
        "Ucmd": (Ucmd, {"estimator": None, "confidence": None, "step": None, "rounding": None, "refresh": None}),
        "begin": (learner.begin, {"view": view, "seed": 0}),
        "plan": (learner.plan, {"state": state, "start": [0, 1], "budget": [1, 0], "horizon": 2}),
        "learn": (learner.learn, {"state": state, "feedback": feedback}),
        "State": (rmab.State, {"learner": "x", "view": view, "seed": 0, "episode": 0, "arrays": {"a": np.zeros(2)}}),
        "run": (rmab.run, {"task_or_name": task, "learner": "random", "seed": 0, "feedback": "bandit"}),
        "Comparators": (_compared, {"problem": problem, "rewards": np.stack([reward, reward]), "which": "O3"}),
        "theory_curve": (rmab.runs.theory_curve, {"view": view, "epsilon": 0.05}),
        "Study": (lambda **given: Study.load(given["source"]), {"source": "paper-cpap"}),
        "with_rounds": (Study.model_validate(study).with_rounds, {"rounds": 2}),
        "Job": (Job.from_text, {"text": Study.model_validate(study).jobs()[0].to_text()}),
    }  # fmt: skip


@cache
def timed_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return what takes phases, budgets by step and start probabilities, with arguments that are right."""
    rng, phase_of, budget = np.random.default_rng(0), [0, 1, 1, 0], [1, 0, 2, 3]
    kernels = rng.dirichlet(np.ones(2), size=(3, 2, 2, 2))
    start, reward = [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]], rng.random((3, 2, 2, 2))
    arms, time = rmab.Arms(kernels), {"start": start, "budget": budget, "phase_of": phase_of}
    problem = rmab.Problem(arms, start, budget, 4, phase_of)
    low, high = np.maximum(kernels - 0.1, 0.0), np.minimum(kernels + 0.1, 1.0)
    task = rmab.Task.from_rewards(problem, np.stack([reward, reward]), low=0, high=1)
    flat = rmab.Task("flat", problem, rmab.make_adversary("adaptive", rmab.RewardModel(np.ones((1, 3, 2, 2)), 0, 2), 2, rng))
    view, policy, plan = task.view(), planners.random_policy(problem), solvers.solve_fluid(problem, reward)
    seen = rmab.simulate(problem, policy, reward, np.random.default_rng(0))
    told, table = rmab.Feedback.reveal(view, 0, seen, reward), np.full((3, 4, 2, 2, 2), 0.1)
    situation = {"start": [0, 1, 0], "budget": [1, 0], "horizon": 2}
    every: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "Arms": (rmab.Arms, {"kernels": kernels, "groups": [0, 1, 2], "support": kernels > 0, "sizes": [2, 2, 2]}),
        "identical": (rmab.Arms.identical, {"kernel": kernels[0], "count": 3, "support": kernels[0] > 0}),
        "of_sizes": (rmab.Arms.of_sizes, {"kernels": [kernels[0], kernels[1]], "groups": ["a", "b"]}),
        "Problem": (rmab.Problem, {"arms": arms, "horizon": 4, **time}),
        "Problem plain": (rmab.Problem, {"arms": rmab.Arms(kernels[:, 0]), "horizon": 4, **time}),
        "from_step": (problem.from_step, {"step": 2, "start": start}),
        "View": (rmab.View, {name: getattr(view, name) for name in fields_of(view)}),
        "situated": (view.situated, situation),
        "RewardModel": (rmab.RewardModel, {"parts": np.ones((1, 3, 2, 2, 2)), "low": 0.0, "high": 2.0, "units": [0, 0, 1]}),
        "reward": (task.reward, {"t": 0, "visits": np.zeros((3, 2, 2, 2))}),
        "reward flat": (flat.reward, {"t": 1, "visits": np.zeros((3, 2, 2, 2))}),
        "from_rewards": (rmab.Task.from_rewards, {"problem": problem, "rewards": np.ones((2, 3, 2, 2, 2)), "low": 0.0,
                                                  "high": 2.0, "passive_zero": False}),
        "fluid": (solvers.solve_fluid, {"problem": problem, "reward": reward}),
        "soften": (solvers.soften, {"problem": problem, "reward": reward, "beta": 3.0}),
        "optimistic_fluid": (solvers.solve_optimistic_fluid, {"lower": low, "upper": high, "reward": reward, "horizon": 4,
                                                     "weights": np.ones(3), **time}),
        "project": (solvers.project, {"reference": table, "lower": low, "upper": high, "weights": np.ones(3), **time}),
        "project_ball": (solvers.project_ball, {"reference": table, "centre": kernels, "radius": np.full((3, 2, 2, 2), 0.1),
                                             **time}),
        "occupancy_index": (planners.occupancy_index, {"problem": problem, "reward": reward, "fluid": plan}),
        "lagrangian_index": (planners.lagrangian_index, {"problem": problem, "reward": reward, "fluid": plan}),
        "myopic_index": (planners.myopic_index, {"problem": problem, "reward": reward}),
        "LpUpdate": (planners.LpUpdate, {"problem": problem, "reward": reward}),
        "whittle": (planners.whittle_index, {"problem": problem, "reward": reward}),
        "whittle_finite": (planners.finite_whittle_index, {"problem": problem, "reward": reward}),
        "IndexPolicy": (rmab.IndexPolicy, {"table": np.ones((3, 4, 2)), "budget": budget}),
        "IndexPolicy plain": (rmab.IndexPolicy, {"table": np.ones((3, 2)), "budget": budget}),
        "IndexPolicy.load": (rmab.IndexPolicy.load, {"path": "missing.npz"}),
        "act": (policy.act, {"h": 2, "states": np.array([0, 1, 0]), "rng": rng}),
        "simulate": (rmab.simulate, {"problem": problem, "policy": policy, "reward": reward, "rng": rng}),
        "Feedback": (rmab.Feedback, {"episode": 0, "states": seen.states, "actions": seen.actions, "rewards": told.rewards,
                                     "budget": budget}),
        "reveal": (rmab.Feedback.reveal, {"view": view, "episode": 0, "trajectory": seen, "reward": reward,
                                          "budget": budget}),
        "of_steps": (rmab.Feedback.of_steps, {"view": view, "episode": 0, "states": seen.states, "actions": seen.actions,
                                              "rewards": np.full((4, 3), np.nan), "budget": budget}),
        "Comparators": (_compared, {"problem": problem, "rewards": np.stack([reward, reward]), "which": "O2"}),
        "begin": (lambda **given: rmab.make_learner("random").begin(rmab.View(**given)), {
            name: getattr(view, name) for name in fields_of(view)}),
    }  # fmt: skip
    for name in ("ucmd", "thompson", "r2mab-ucb", "restless-ucb", "random", "uob-reps"):
        learner = rmab.make_learner(name)
        state = learner.begin(view)
        every[f"plan {name}"] = (learner.plan, {"state": state, **situation})
        every[f"learn {name}"] = (partial(_learned, learner, state, view), {
            "states": seen.states[:3], "actions": seen.actions[:2], "budget": [1, 0]})  # fmt: skip
    return {f"timed {name}": one for name, one in every.items()}


def _learned(learner: rmab.Learner, state: rmab.State, view: rmab.View, states: Any, actions: Any, budget: Any) -> Any:
    paid = np.full(np.shape(np.asarray(actions, dtype=object)), 0.5)
    return learner.learn(state, rmab.Feedback.of_steps(view, 0, states, actions, paid, budget=budget))


def fields_of(view: rmab.View) -> list[str]:
    """Return the arguments of a view by name."""
    return [one.name for one in fields(view)]


def _compared(problem: Any, rewards: Any, which: Any) -> Any:
    return rmab.runs.Comparators(problem, rewards).per_episode(which)


def odd(case: Case, value: Any) -> Any:
    """Return something wrong in the place of a value: anything, or something much like it."""
    if isinstance(value, np.ndarray | list) and case.chance(0.5):
        return odd_array(case, value)
    if isinstance(value, int) and case.chance(0.4):
        return case.pick(HUGE)
    return copy.deepcopy(case.pick(WRONG))


def play(case: Case) -> None:
    """Call one function, chosen by the seed, with one or two arguments that are wrong."""
    name = list(calls())[case.seed % len(calls())]
    function, right = calls()[name]
    given = dict(right)
    for key in case.rng.choice(list(right), size=min(case.whole(1, 2), len(right)), replace=False):
        given[str(key)] = odd(case, right[str(key)])
    shown = {key: f"{value!r:.60}" for key, value in given.items() if value is not right[key]}
    try:
        function(**given)
        case.count("taken")
    except RmabError as error:
        line = str(error)
        require(len(line.splitlines()) == 1, f"{name}: no line, or more than one: {line!r}")
        require(len(line) < 4000, f"{name}: a line of {len(line)} characters")
        case.count("refused")
    except Exception as error:
        kind, said = type(error).__name__, " ".join(str(error).split())[:300]
        raise AssertionError(f"{name}({shown}) raised {kind}: {said}") from error
