"""Whatever `rmab.plan` returns can be saved and loaded, in another process too, and then decides the same to the byte."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FileError, ModelError, PolicyError
from rmab.planners import load_policy
from strategies import random_problem

pytestmark = pytest.mark.compiled
PROBLEM, REWARD = random_problem(4, count=5, states=3, horizon=6, budget=2)
README = """
import numpy as np, rmab
patient = [[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]
problem = rmab.Problem(rmab.Arms.identical(patient, 100), start=0, budget=20, horizon=52)
reward = np.broadcast_to([[0, 0], [1, 1]], (100, 2, 2))
"""
ACT = """
import sys
import numpy as np, rmab
policy = rmab.planners.load_policy(sys.argv[1])
states = np.arange(100) % 2
print(*(policy.act(h, states, np.random.default_rng(h)).astype(int).tolist() for h in (0, 9, 51)))
"""


def decisions(policy: rmab.Policy) -> list[Any]:
    return [rmab.simulate(PROBLEM, policy, REWARD, np.random.default_rng(k)).actions.tolist() for k in range(3)]


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("name", rmab.list_planners())
def test_every_planner_s_policy_can_be_saved_and_loaded(name: str, suffix: str, tmp_path: Path) -> None:
    policy: Any = rmab.make_planner(name)(PROBLEM, REWARD)
    path = tmp_path / f"policy{suffix}"
    policy.save(path)
    for loaded in (load_policy(path), type(policy).load(path)):
        assert type(loaded) is type(policy)
        assert repr(loaded) == repr(policy)
        assert decisions(loaded) == decisions(policy)


def test_a_loaded_policy_solves_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan may come out with other bits elsewhere, so its numbers are stored."""
    built = {name: rmab.make_planner(name)(PROBLEM, REWARD) for name in ("rolling", "id", "ftva", "set-expansion")}
    wanted = {name: decisions(policy) for name, policy in built.items()}
    for name, policy in built.items():
        policy.save(tmp_path / f"{name}.npz")  # type: ignore[attr-defined]
    for place in ("rolling.fluid_of", "infinite.solve_average_fluid"):
        monkeypatch.setattr(f"rmab.planners.{place}", None)
    assert {name: decisions(load_policy(tmp_path / f"{name}.npz")) for name in built} == wanted


@pytest.mark.slow
def test_the_plan_of_the_readme_acts_in_another_process(tmp_path: Path) -> None:
    scope: dict[str, Any] = {}
    exec(README, scope)
    best = rmab.plan(scope["problem"], scope["reward"], candidates=["lagrangian", "rolling"], episodes=30)
    assert best.name == "rolling"
    best.save(tmp_path / "plan.npz")
    best.policy.save(tmp_path / "policy.npz")  # type: ignore[attr-defined]
    states = np.arange(100) % 2
    here = [best.policy.act(h, states, np.random.default_rng(h)).astype(int).tolist() for h in (0, 9, 51)]
    for file in ("plan.npz", "policy.npz"):
        words = [sys.executable, "-c", ACT, str(tmp_path / file)]
        there = subprocess.run(words, check=True, timeout=120, capture_output=True, text=True).stdout
        assert there.strip() == " ".join(map(str, here))


def test_the_result_of_a_plan_keeps_its_numbers_and_candidates(tmp_path: Path) -> None:
    timed = rmab.Problem(PROBLEM.arms, PROBLEM.start, PROBLEM.budget, 6, discount=0.9)
    best = rmab.plan(timed, REWARD, candidates=["lagrangian", "ftva", "random"], episodes=10)
    best.save(tmp_path / "plan.npz")
    loaded = rmab.PlanResult.load(tmp_path / "plan.npz")
    assert repr(loaded) == repr(best)
    assert (loaded.name, loaded.value, loaded.stderr, loaded.bound) == (best.name, best.value, best.stderr, best.bound)
    assert repr(loaded.candidates) == repr(best.candidates)
    assert any(one.why for one in loaded.candidates)
    assert decisions(loaded.policy) == decisions(best.policy)


def test_a_policy_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    class First:
        def act(self, h: int, states: Any, rng: Any) -> Any:
            return np.arange(len(states)) == 0

    best = rmab.plan(PROBLEM, REWARD, candidates=[("first", lambda *_: First())], episodes=2)
    with pytest.raises(ModelError, match=r"^the policy of first cannot be stored: First has no `to_fields`$"):
        best.save(tmp_path / "plan.npz")


@pytest.mark.parametrize(
    ("name", "field", "value", "line"),
    [
        ("rolling", "window", 0, "window must be at least 1, got 0"),
        ("rolling", "prices", [1.0], r"prices must have shape \(6,\), got \(1,\)"),
        ("rolling", "prices", [1, 1, -2, 1, 1, 1], r"prices\[2\] must be in \[0, inf\], got -2"),
        ("rolling", "reward", [[[1]]], "reward"),
        ("rolling", "budget", 9, "budget"),
        ("id", "share", [[0.5]], r"share must have shape \(5, 3\)"),
        ("id", "share", [[0.5, 0.5, 2.0]] * 5, r"share\[0, 2\] must be in \[0, 1\], got 2"),
        ("id", "budget", [1, 2, 1, 1, 1, 1], "IdPolicy needs one budget"),
        ("ftva", "mass", [[[0.1, 0.1]] * 3] * 5, "mass: block 0 sums to 0.6, not to 1"),
        ("lp-update", "horizon", 0, "horizon"),
    ],
)
def test_edited_files_are_refused(name: str, field: str, value: Any, line: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    rmab.make_planner(name)(PROBLEM, REWARD).save(path)  # type: ignore[attr-defined]
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises((ModelError, PolicyError), match=f"policy.json: {line}"):
        load_policy(path)


def test_edited_results_are_refused(tmp_path: Path) -> None:
    best = rmab.plan(PROBLEM, REWARD, candidates=["lagrangian"], episodes=2)
    for change, line in (
        ({"candidates": '[{"name": "lagrangian", "mean": "much"}]'}, "mean Input should be a valid number"),
        ({"candidates": "none"}, "Invalid JSON"),
        ({"value": "much"}, "value must be a finite number, got 'much'"),
        ({"value": float("nan")}, "value must be a finite number, got nan"),
        ({"stderr": -0.5}, "stderr must be a finite number, 0 or more, got -0.5"),
        ({"name": "best"}, "name: 'best' is not one of the candidates"),
        ({"name": 5}, "name: 5 is not one of the candidates"),
        ({"policy_kind": "rmab ward"}, "policy: the file has kind 'rmab ward'"),
        ({"policy_kind": "rmab problem", "policy_table": None}, "policy: "),
        ({"policy_budget": 9}, "policy: budget"),
    ):
        fields = {**best.to_fields(), **change}
        with pytest.raises((ModelError, PolicyError), match=line):
            rmab.PlanResult.from_fields({name: value for name, value in fields.items() if value is not None})
    PROBLEM.save(tmp_path / "problem.npz")
    with pytest.raises(FileError, match=r"problem\.npz: the file contains a Problem, not a policy"):
        load_policy(tmp_path / "problem.npz")


SCRIPT = """
import numpy as np, rmab
from rmab.common.machine_code import Dispatcher
import gc
def compiled():
    return sorted((one.py_func.__qualname__, len(one.signatures)) for one in gc.get_objects() if type(one) is Dispatcher)
task = rmab.make_task("deadline", arms=6, budget=2, horizon=7, episodes=1)
policy = rmab.planners.Rolling(task.problem, task.base_reward)
before = compiled()
policy.act(0, task.problem.start, np.random.default_rng(0))
assert compiled() == before, set(compiled()) - set(before)
assert any(number for _, number in before)
"""


def test_the_first_decision_of_a_rolling_plan_waits_for_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
