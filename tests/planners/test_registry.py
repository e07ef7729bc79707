"""Planners by name, custom planners, and what becomes of those that break the contract."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError, SolverError
from rmab.learning.registry import component_names
from rmab.planners.registry import CANDIDATES, PLANNERS
from strategies import random_problem

pytestmark = pytest.mark.compiled
PROBLEM, REWARD = random_problem(4, count=5, states=3, horizon=6, budget=2)
MINE = """
import numpy as np
import rmab

def greedy(problem, reward, *, sign: int = 1):
    return rmab.IndexPolicy(sign * np.ptp(reward, axis=-1), problem.budget)

def nothing(problem, reward) -> int:
    return 3
"""
LIGHT = """
import sys
from rmab.planners.registry import PLANNERS
assert PLANNERS.summaries()["random"] == "a random set of arms at every step"
heavy = {"numpy", "pydantic", "numba", "rmab.planners.rolling"} & sys.modules.keys()
assert not heavy, heavy
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module with custom planners."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def greedy(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    return rmab.IndexPolicy(np.ptp(reward, axis=-1), problem.budget)


class Crowd:
    """Exceed the budget from the second episode on."""

    def __init__(self, problem: rmab.Problem, reward: FloatArray) -> None:
        self.asked = 0

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        self.asked += 1
        return np.arange(states.size) < (2 if self.asked < 60 else 3)


class Brittle(rmab.planners.Rolling):
    """As good as `rolling`, but it fails in the episodes that measure the winner."""

    def begin(self, states: IntArray, rng: np.random.Generator) -> Any:
        vars(self).setdefault("asked", []).append(1)
        if len(vars(self)["asked"]) > 10:
            raise ZeroDivisionError("worn out")
        return super().begin(states, rng)


def test_listing_planners_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_planner_has_a_summary_and_described_options() -> None:
    assert set(CANDIDATES) < set(rmab.list_planners())
    for name, summary in rmab.list_planners().items():
        assert summary
        for option, one in PLANNERS.schema(name).model_json_schema().get("properties", {}).items():
            assert one.get("description"), f"{name}: {option}"


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        ("roling", {}, "unknown planner 'roling', did you mean 'rolling'"),
        ("rolling", {"window": 0}, "planner rolling: window: Input should be greater than or equal to 1"),
        ("rolling", {"width": 3}, "planner rolling: width: no such option"),
        ("lagrangian", {"fluid": 3}, "planner lagrangian: fluid: no such option"),
        ("nowhere:planner", {}, "planner nowhere:planner: there is no module 'nowhere'"),
        (3, {}, "the name of a planner must be text, got int"),
    ],
)
def test_wrong_names_and_options(name: Any, options: dict[str, Any], line: str) -> None:
    with pytest.raises(ModelError, match=line):
        rmab.make_planner(name, **options)


def test_options_reach_the_planner() -> None:
    assert rmab.make_planner("rolling", window=3)(PROBLEM, REWARD).window == 3  # type: ignore[attr-defined]
    assert rmab.make_planner("myopic", rule="fill")(PROBLEM, REWARD).rule == "fill"  # type: ignore[attr-defined]


def test_a_planner_that_is_strict_refuses_arms_that_are_not_indexable(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rmab.planners.finite_whittle_index(PROBLEM, REWARD)
    object.__setattr__(found, "indexable", np.arange(5) > 0)
    monkeypatch.setattr("rmab.planners.whittle.finite_whittle_index", lambda *_: found)
    with pytest.raises(ModelError, match=r"^1 of 5 arms are not indexable$"):
        rmab.make_planner("whittle-finite")(PROBLEM, REWARD)
    assert rmab.make_planner("whittle-finite", strict=False)(PROBLEM, REWARD) is not None


def names_of(candidates: Any) -> list[str]:
    best = rmab.plan(PROBLEM, REWARD, candidates=candidates, episodes=4)
    assert not any(one.why for one in best.candidates)
    return sorted(one.name for one in best.candidates)


def test_candidates_are_names_functions_pairs_or_a_mapping(mine: str) -> None:
    assert names_of(["lagrangian", greedy]) == ["greedy", "lagrangian"]
    assert names_of([("mine", greedy), partial(greedy), "random"]) == ["greedy", "mine", "random"]
    assert names_of(["rolling", {"name": "rolling", "window": 2}]) == ["rolling", "rolling, window=2"]
    short = rmab.make_planner("rolling", window=2)
    assert names_of({"short": short, "long": "rolling", "custom": greedy}) == ["custom", "long", "short"]
    assert names_of([f"{mine}:greedy"]) == [f"{mine}:greedy"]
    with pytest.raises(ModelError, match="two candidates have the name 'greedy'; give them as"):
        names_of([greedy, partial(greedy)])
    with pytest.raises(ModelError, match="two candidates have the name 'random'"):
        names_of(["random", "random"])


def test_planners_that_take_the_fluid_plan_share_one_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []
    solve = rmab.solvers.solve_fluid
    for place in ("rmab.planners.plan.solve_fluid", "rmab.solvers.fluid.fluid.solve_fluid"):
        monkeypatch.setattr(place, lambda *given, **named: solved.append(1) or solve(*given, **named))
    given: list[Any] = []
    curious = ("curious", lambda problem, reward, fluid: given.append(fluid) or greedy(problem, reward))
    rmab.plan(PROBLEM, REWARD, candidates=["lagrangian", "occupancy", "rolling", curious], episodes=2)
    assert len(solved) == 1
    assert isinstance(given[0], rmab.solvers.Fluid)


@pytest.mark.parametrize(
    ("planner", "why"),
    [
        (lambda problem, reward: 1 / 0, "^ZeroDivisionError: division by zero$"),
        (lambda problem, reward: 3, "^it returned int, not a policy$"),
        (lambda: None, "^TypeError: .*positional argument"),
        (Crowd, "^it failed in an episode: step .: the policy activates 3 arms, the budget is 2$"),
    ],
)
def test_one_that_breaks_the_contract_is_reported_and_hides_nobody(planner: Any, why: str) -> None:
    best = rmab.plan(PROBLEM, REWARD, candidates=[("broken", planner), "lagrangian", "random"], episodes=20)
    broken = best.candidates[-1]
    assert best.name == "lagrangian"
    assert [one.name for one in best.candidates if not one.why] == ["lagrangian", "random"]
    assert broken.name == "broken"
    assert re.search(why, broken.why)
    assert broken.episodes == 0


def test_a_winner_that_fails_when_it_is_measured_leaves_the_others() -> None:
    poor = ("poor", lambda problem, _: rmab.IndexPolicy(np.zeros((5, 3)), problem.budget, rule="at-most"))
    best = rmab.plan(PROBLEM, REWARD, candidates=[Brittle, poor], episodes=10)
    assert best.name == "poor"
    assert best.candidates[-1].why == "it failed in an episode: ZeroDivisionError: worn out"
    with pytest.raises(SolverError, match=r"plan: every candidate failed \(it failed in an episode: ZeroDivisionError"):
        rmab.plan(PROBLEM, REWARD, candidates=[Brittle], episodes=10)


class TestLearner:
    """Any planner plays in runs and studies."""

    @pytest.mark.parametrize("name", ["rolling", "lp-update", "id", "ftva", "stationary"])
    def test_it_plays_the_policy_of_the_summed_rewards(self, name: str) -> None:
        task = rmab.make_task("gast-1", arms=6, horizon=5, episodes=3)
        run = rmab.run(task, rmab.make_learner("planner", planner=name), seed=2)
        policy = rmab.make_planner(name)(task.problem, sum(task.reward(t) for t in range(3)))
        assert run.privileged == "knows the kernels and the rewards of all episodes"
        for t in range(3):
            rng = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(100, t)))
            assert rmab.simulate(task.problem, policy, run.rewards[t], rng).reward == run.reward[t]

    @pytest.mark.parametrize("planner", ["rolling", "ftva", {"name": "rolling", "window": 2}, greedy])
    def test_it_keeps_the_contract_of_learners(self, planner: Any) -> None:
        rmab.testing.check_learner(rmab.make_learner("planner", planner=planner), episodes=2)

    def test_it_takes_a_name_a_table_and_a_function(self, mine: str) -> None:
        task = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=2)
        for planner in (f"{mine}:greedy", {"name": f"{mine}:greedy", "sign": 1}, greedy):
            run = rmab.run(task, rmab.make_learner("planner", planner=planner))
            assert np.array_equal(run.reward, rmab.run(task, rmab.make_learner("planner", planner=greedy)).reward)
        worse = rmab.run(task, rmab.make_learner("planner", planner={"name": f"{mine}:greedy", "sign": -1}))
        assert worse.reward.sum() < run.reward.sum()

    def test_studies_know_the_custom_module_of_its_planner(self) -> None:
        for planner in ("mine:greedy", {"name": "mine:greedy", "sign": 1}):
            assert component_names("planner", {"planner": planner}) == {"mine:greedy"}

    @pytest.mark.parametrize(
        ("planner", "line"),
        [
            ("roling", "unknown planner 'roling'"),
            ({"name": "rolling", "window": 0}, "window"),
            ({"window": 3}, "planner must be a planner, its name, or a table with its name"),
            (3, "planner must be a planner, its name, or a table with its name, got 3"),
        ],
    )
    def test_a_wrong_planner_is_refused_at_once(self, planner: Any, line: str) -> None:
        with pytest.raises(ModelError, match=line):
            rmab.make_learner("planner", planner=planner)

    def test_a_planner_that_does_not_apply_or_returns_no_policy_is_refused(self) -> None:
        task = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=2)
        with pytest.raises(ModelError, match="planner: the planner returned int, not a policy"):
            rmab.run(task, rmab.make_learner("planner", planner=lambda problem, reward: 3))
        with pytest.raises(ModelError, match="planner must be informed of the problem first"):
            rmab.make_learner("planner").begin(task.view())
