"""Public functions from a log to a list, and those that controllers and agents call, with arguments that are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

import rmab
from rmab import planners
from rmab.gym import RmabEnv, RmabVectorEnv

KERNEL = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]


@cache
def data_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return what goes from a log to a list, with arguments that are right."""
    data = rmab.data
    log = data.read_log(data.example_log(arms=30, weeks=10), arm="id", period="week", state="state", action="called",
                        groups=["age"])  # fmt: skip
    model = data.fit(log, reward={"engaged": 1})
    seen, few = model.statistics, {"ann": 0.4, "bea": 0.1, "cleo": 0.3}
    columns = {"id": ["a", "a", "b"], "week": [1, 2, 1], "state": ["ok", "low", "ok"], "called": [1, 0, 0]}
    roles = {"arm": "id", "period": "week", "state": "state", "action": "called"}
    every: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "read_log": (data.read_log, {"log": pa.table(columns), **roles, "reward": None, "groups": (),
                                     "states": ["low", "ok"], "decimal": ".", "encoding": None}),
        "fit": (data.fit, {"log": log, "reward": {"engaged": 1}, "clusters": None, "gone_after": 3, "seed": 0}),
        "from_log": (data.Statistics.from_log, {"log": log, "group_of": np.zeros(30, dtype=int), "groups": 1}),
        "from_counts": (data.Statistics.from_counts, {"counts": np.ones((2, 3, 2, 3), dtype=int)}),
        "fit_statistics": (data.fit_statistics, {"statistics": seen, "group_of": model.group_of,
                                                 "states": model.situation.belief, "ids": list(log.arms),
                                                 "groups": None, "state_names": list(model.state_names),
                                                 "reward": {"engaged": 1}, "waited": None, "period": "now"}),
        "problem": (model.problem, {"budget": 3, "horizon": 4}),
        "decide": (data.decide, {"source": few, "budget": 2, "floor": None, "must": ["bea"], "must_not": ["cleo"],
                                 "random_share": 0.5, "seed": 0, "period": "week 3"}),
        "decide by model": (data.decide, {"source": model, "budget": 4, "horizon": 5, "floor": 2, "must": [log.arms[3]],
                                          "caps": {"age=under 25": 2}, "random_share": 0.25, "seed": 0}),
        "example_log": (data.example_log, {"name": "mothers", "arms": 5, "weeks": 4, "seed": 0, "spread": 0.0}),
        "example_truth": (data.example_truth, {"name": "mothers", "arms": 5, "seed": 0, "spread": 0.0}),
        "evaluate": (data.evaluate, {"fit": model, "budget": 3, "horizon": 3, "replicates": 40, "seed": 0}),
        "run_checks": (data.run_checks, {"fit": model, "replicates": 40, "seed": 0}),
        "estimate_effects": (data.estimate_effects, {"fit": model, "replicates": 40, "seed": 0}),
        "Fit.load": (data.Fit.load, {"path": "missing.npz"}),
        "Decision.load": (data.Decision.load, {"path": "missing.npz"}),
        "Decision.from_bytes": (data.Decision.from_bytes, {"content": data.decide(few, budget=2).to_bytes()}),
    }  # fmt: skip
    return {f"data {name}": one for name, one in every.items()}


@cache
def live_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return what a controller and an agent call: rolling plans, tables, windows and environments."""
    problem = rmab.Problem(rmab.Arms([KERNEL] * 3), 0, 1, 4)
    reward = np.tile([[0.0, 0.2], [1.0, 1.5]], (3, 1, 1))
    plan, task = planners.Rolling(problem, reward), rmab.make_task("cpap", arms=4, budget=1, horizon=4, episodes=2)
    now = {"h": 0, "states": np.array([0, 1, 0]), "rng": np.random.default_rng(0)}
    table = planners.lagrangian_index(problem, reward)

    def after_reset(call: str, maker: Any, **given: Any) -> Any:
        env = maker()
        env.reset(seed=0)
        return getattr(env, call)(**given)

    single, many = partial(RmabEnv, task), partial(RmabVectorEnv, 2, task)
    every: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "Rolling": (planners.Rolling, {"problem": problem, "reward": reward, "window": 3, "fluid": None}),
        "Rolling.act": (plan.act, now),
        "Rolling.begin": (plan.begin, {"states": now["states"], "rng": now["rng"]}),
        "RollingEpisode.act": (plan.begin(now["states"], now["rng"]).act, now),
        "Rolling.from_bytes": (planners.Rolling.from_bytes, {"content": plan.to_bytes()}),
        "load_policy": (planners.load_policy, {"path": "missing.npz"}),
        "of_groups": (rmab.Arms.of_groups, {"kernels": [KERNEL] * 2, "groups": [1, 0, 1], "state_names": ["a", "b"]}),
        "Arms by group": (rmab.Arms, {"kernels": [KERNEL] * 2, "groups": ["x", "y", "x"], "sizes": [2, 2]}),
        "window": (problem.window, {"step": 3, "length": 6, "start": [0, 1, 0]}),
        "with_table": (table.with_table, {"table": table.table + 0.1}),
        "RmabEnv": (RmabEnv, {"task": task, "over_budget": "draw", "bound": False, "render_mode": None}),
        "RmabEnv by name": (RmabEnv, {"task": "cpap", "adversary": "noisy", "arms": 4, "budget": 1, "horizon": 3,
                                      "episodes": 2}),
        "RmabVectorEnv": (RmabVectorEnv, {"num_envs": 2, "task": task, "over_budget": "draw", "bound": False}),
        "step": (partial(after_reset, "step", single), {"action": np.array([1, 0, 0, 0])}),
        "top": (partial(after_reset, "top", single), {"scores": np.array([0.3, 0.2, 0.1, 0.0])}),
        "vector step": (partial(after_reset, "step", many), {"actions": np.zeros((2, 4), dtype=int)}),
        "vector top": (partial(after_reset, "top", many), {"scores": np.zeros((2, 4))}),
        "vector feedback": (partial(after_reset, "feedback", many), {"r": 0}),
    }  # fmt: skip
    return {f"live {name}": one for name, one in every.items()}
