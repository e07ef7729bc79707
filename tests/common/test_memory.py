"""What would need far more memory than there is says so in one line, at once, and how much it would be."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import view_of
from rmab.common import checks as memory
from rmab.common.checks import available, check_memory, in_words
from rmab.errors import FileError, ModelError
from rmab.play.simulation import visit_rates
from rmab.study import Study
from rmab.tasks.definition import Task
from strategies import random_problem

HUGE, FAR = 10**9, 10**14
PROBLEM, REWARD = random_problem(0, 3, 2, 4, 1)
RNG = np.random.default_rng(0)


def long(steps: int = HUGE) -> rmab.Problem:
    """Return a problem whose episodes are barely short enough to be a problem at all."""
    problem = rmab.Problem(PROBLEM.arms, 0, 1, 4)
    object.__setattr__(problem, "horizon", steps)
    return problem


def many_arms(count: int) -> dict[str, Any]:
    return {"arms": count, "budget": 1, "horizon": 2, "episodes": 2}


CALLS: dict[str, Callable[[], Any]] = {
    "problem": lambda: rmab.Problem(PROBLEM.arms, 0, 1, 10**12),
    "view": lambda: view_of(3, 2, 10**12),
    "view of many states": lambda: view_of(3, 10**12, 4),
    "identical": lambda: rmab.Arms.identical(PROBLEM.arms.kernels[0], FAR),
    "repeated": lambda: PROBLEM.arms.repeated(FAR),
    "copies": lambda: rmab.make_task("cpap", copies=FAR),
    "cpap": lambda: rmab.make_task("cpap", **many_arms(10**12)),
    "deadline": lambda: rmab.make_task("deadline", **many_arms(10**12)),
    "episodes": lambda: rmab.make_task("cpap@noisy", episodes=FAR),
    "split": lambda: rmab.make_task("split@iid", episodes=FAR),
    "rewards": lambda: rmab.RewardModel(np.broadcast_to(1.0, (1, 10**10, 3, 2)), 0, 2),
    "from_rewards": lambda: Task.from_rewards(PROBLEM, np.broadcast_to(1.0, (10**12, 3, 2, 2))),
    "kernels": lambda: rmab.Arms(np.broadcast_to(1.0, (10**12, 1, 2, 1))),
    "simulate": lambda: rmab.simulate(long(10**12), rmab.IndexPolicy(np.ones((3, 2)), 1), REWARD, RNG),
    "simulate_many": lambda: rmab.simulate_many(PROBLEM, rmab.planners.random_policy(PROBLEM), REWARD, RNG, FAR),
    "visit rates": lambda: visit_rates(PROBLEM, rmab.planners.random_policy(PROBLEM), RNG, FAR),
    "fluid": lambda: rmab.solvers.solve_fluid(long(10**10), REWARD),
    "fluid by HiGHS": lambda: rmab.solvers.solve_fluid(long(10**10), REWARD, method="highs"),
    "soften": lambda: rmab.solvers.soften(long(10**10), REWARD, 1.0),
    "prices of soften": lambda: rmab.solvers.soften(long(3 * 10**6), REWARD, 1.0),
    "optimistic fluid": lambda: rmab.solvers.solve_optimistic_fluid(
        np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2)), REWARD, [0] * 3, 1, 10**12
    ),
    "many prices": lambda: rmab.solvers.solve_optimistic_fluid(
        np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2)), REWARD, [0] * 3, 1, 3 * 10**6
    ),
    "project": lambda: rmab.solvers.project(
        np.broadcast_to(0.1, (3, 10**11, 2, 2, 2)), np.zeros((3, 2, 2, 2)), np.ones((3, 2, 2, 2)), [0] * 3, 1
    ),
    "occupancy index": lambda: rmab.planners.occupancy_index(long(10**11), REWARD),
    "lagrangian index": lambda: rmab.planners.lagrangian_index(long(10**11), REWARD),
    "myopic index": lambda: rmab.planners.myopic_index(long(10**11), REWARD),
    "round robin": lambda: rmab.planners.round_robin(long(10**11)),
    "whittle": lambda: rmab.planners.finite_whittle_index(long(10**12), REWARD),
    "LP-update": lambda: rmab.planners.LpUpdate(long(10**11), REWARD).act(0, PROBLEM.start, RNG),
    "run": lambda: rmab.run(rmab.make_task("cpap@adaptive", episodes=10**12), "random"),
    "save": lambda: replace(rmab.make_task("cpap"), adversary=_infinite()).save("never.npz"),
    "learner": lambda: rmab.make_learner("ucmd").begin(view_of(2, 100, 2 * 10**8)),
    "rival": lambda: rmab.make_learner("r2mab-ucb").begin(view_of(2, 100, 2 * 10**8)),
    "theory curve": lambda: rmab.runs.theory_curve(view_of(episodes=10**14)),
    "jobs": lambda: _long_study().jobs(),
}


def _infinite() -> Any:
    """Return an adversary of so many episodes that their rewards have no room."""
    against = rmab.make_task("cpap@adaptive", episodes=10**12).adversary
    object.__setattr__(against, "adaptive", False)
    return against


def _long_study() -> Study:
    tasks = [{"name": "cpap", "label": f"task {k}"} for k in range(100)]
    learners = [{"name": "random", "label": f"learner {k}"} for k in range(100)]
    return Study.model_validate({"name": "x", "rounds": 10**7, "tasks": tasks, "learners": learners})


@pytest.mark.parametrize("name", CALLS)
def test_huge_sizes_are_refused_with_what_they_would_need(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 24e9)
    with pytest.raises(ModelError) as caught:
        CALLS[name]()
    line = str(caught.value)
    assert "would need" in line
    assert line.endswith("of memory; 24 GB are available")
    assert len(line.splitlines()) == 1


def test_the_line_says_what_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 24e9)
    with pytest.raises(ModelError) as caught:
        CALLS["simulate"]()
    expected = "simulate, 3 arms and 1000000000000 steps, would need 15 TB of memory; 24 GB are available"
    assert str(caught.value) == expected


def test_a_study_of_too_many_rounds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\nrounds = 1000000000000000\n[[tasks]]\nname = "cpap"\n[[learners]]\nname = "random"\n')
    with pytest.raises(ModelError, match=r"rounds: Input should be less than or equal to 10000000 \(got 10{15}\)"):
        Study.load(path)


def test_a_study_whose_task_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    task, learner = 'name = "cpap"\noptions = { arms = 1000000000000 }', 'name = "random"'
    path.write_text(f'name = "x"\nrounds = 1\n[[tasks]]\n{task}\n[[learners]]\n{learner}\n')
    with pytest.raises(ModelError, match=r"tasks\[0\].options: a task of 1000000000000 arms would need 500 TB of memory"):
        Study.load(path)


def test_an_archive_that_unpacks_to_more_than_there_is_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kernels.npy", bytes(10**6))
    monkeypatch.setattr(memory, "SMALL", 10**5)
    monkeypatch.setattr(memory, "available", lambda: 2e5)
    with pytest.raises(FileError) as caught:
        rmab.Problem.load(path)
    assert str(caught.value) == f"{path}: its content would need 1 MB of memory; 200 kB are available"


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    path = tmp_path / "lying.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kernels.npy", header.getvalue() + bytes(8))
    with pytest.raises(FileError, match=f"^{path}: too large for the available memory"):
        rmab.Task.load(path)


def test_small_sizes_do_not_look_at_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> float:
        raise AssertionError

    monkeypatch.setattr(memory, "available", never)
    check_memory("little", 1e6)
    rmab.solvers.solve_fluid(PROBLEM, REWARD)


def test_what_fits_is_let_through() -> None:
    check_memory("all that there is", 0.99 * available() if np.isfinite(available()) else 1e30)


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "1 bytes"), (2e8, "200 MB"), (24e9, "24 GB"), (7.45e11, "745 GB"), (1e21, "1e+03 EB"), (1e30, "1e+12 EB")],
)
def test_bytes_in_words(size: float, words: str) -> None:
    assert in_words(size) == words


class TestWhatThereIs:
    def test_is_plausible(self) -> None:
        assert available() > 2**26

    def test_the_least_of_all_limits_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for least in ("_of_machine", "_of_group", "_of_process"):
            for name in ("_of_machine", "_of_group", "_of_process"):
                monkeypatch.setattr(memory, name, lambda size=1e9 if name == least else 2e9: size)
            assert available() == 1e9

    def test_where_nothing_is_told_nothing_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unreadable(*_: object, **__: object) -> str:
            raise OSError

        monkeypatch.setattr(Path, "read_text", unreadable)
        monkeypatch.setattr(memory.os, "sysconf", unreadable)
        monkeypatch.setattr(memory, "resource", None)
        assert available() == float("inf")
        check_memory("anything", 1e30)

    def test_a_container_counts_what_it_has_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        says = {"memory.max": "3000000000\n", "memory.current": "1000000000\n"}
        monkeypatch.setattr(Path, "read_text", lambda path, **_: says[path.name])
        assert memory._of_group() == 2e9
        says["memory.max"] = "max\n"
        assert memory._of_group() == float("inf")
