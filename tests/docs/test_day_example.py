"""The example of a day: what it says about arrivals, power and missing units, and its picture."""

import io
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import rmab
from rmab.tasks.charging import COMING


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[2] / "examples" / "day.py"), run_name="loaded")


def test_the_first_table_and_the_picture(example: dict[str, Any], tmp_path: Path) -> None:
    task, printed = rmab.make_task("deadline-day"), io.StringIO()
    plan, days = example["rules_table"](task, 20, 0, Console(file=printed, width=120))
    for name in ("fluid bound", "Lagrangian index", "least laxity first", "earliest deadline first", "random"):
        assert name in printed.getvalue()
    for drawn, missing in days.values():
        assert (drawn <= task.problem.budgets).all()
        assert drawn.shape == missing.shape == (288,)
    missing = {name: one.sum() for name, (_, one) in days.items()}
    assert missing["random"] > 4 * missing["least laxity first"] > 0
    assert plan.bound == pytest.approx(1634.01, abs=0.1)
    example["picture"](task.problem, plan, days, tmp_path / "deep" / "day.png")
    content = (tmp_path / "deep" / "day.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 150_000


def test_power_and_missing_units_by_hand(example: dict[str, Any]) -> None:
    problem = rmab.make_task("deadline", arms=2, budget=1, horizon=3, episodes=1, jobs=[[0.5, 0.0], [0.0, 0.5]]).problem
    names = problem.arms.state_names
    assert names is not None
    steps = [["2,2", "empty"], ["1,2", "1,1"], ["1,1", "1,0"], ["empty", "empty"]]
    states = np.array([[names.index(one) for one in row] for row in steps], dtype=np.int32)
    run = rmab.Trajectory(states, np.array([[False, True], [True, False], [False, True]]), 0.0)
    drawn, missing = example["metered"](problem, run)
    assert drawn.tolist() == [0, 1, 0]
    assert missing.tolist() == [0, 1 + 1, 1]


@pytest.mark.parametrize(("shift", "level"), [(0, 1.0), (-2, 1.0), (0, 1.3), (1, 0.85)])
def test_the_day_is_found_from_who_came(example: dict[str, Any], shift: int, level: float) -> None:
    free = np.where(np.arange(24) < 10, 400.0, 0.0)  # it is ten o'clock
    assert example["likeliest"](free, free * level * np.roll(COMING, shift)) == (shift, level)
    assert example["likeliest"](np.zeros(24), np.zeros(24)) == (0, 1.0)


def test_planning_again_keeps_the_limits_and_starts_every_day_anew(example: dict[str, Any]) -> None:
    world, reward = example["day"](-2, 1.0), rmab.make_task("deadline-day").base_reward
    policy = example["Replanner"](reward, learns=True)
    both = rmab.simulate_many(world, policy, reward, np.random.default_rng(0), 2)
    assert policy.plans == 48
    alone = rmab.simulate_many(world, example["Replanner"](reward, learns=True), reward, np.random.default_rng(0), 1)
    assert both.rewards[0] == alone.rewards[0]
    laxity = rmab.simulate_many(world, rmab.tasks.deadline.least_laxity_first(world), reward, np.random.default_rng(0), 2)
    assert both.mean > laxity.mean  # by 15 and more, on the same luck


def test_no_rule_switches_on_a_spot_that_is_empty_or_full(example: dict[str, Any]) -> None:
    """Nor does it keep a charger from a car: who is switched on beside idle spots was above them."""
    task = rmab.make_task("deadline-day")
    problem, reward = task.problem, task.base_reward
    index = rmab.planners.lagrangian_index(problem, reward)
    own = rmab.tasks.deadline
    idle = np.array([name == "empty" or name.endswith(",0") for name in problem.arms.state_names or ()])
    for policy in (
        example["with_ties"](index, problem),
        own.least_laxity_first(problem),
        own.earliest_deadline_first(problem),
    ):
        run = rmab.simulate(problem, policy, reward, np.random.default_rng(0))
        assert not (run.actions & idle[run.states[:-1]]).any()
    assert example["with_ties"](index, problem).rule == index.rule == "auto"
