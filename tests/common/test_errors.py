"""Errors: a code and a location for programs, one line for people."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import BudgetExceeded, FeedbackError, FileError, LogError, ModelError, PolicyError, raise_as
from rmab.logs.findings import Note

TASK = rmab.make_task("cpap", arms=4, budget=1, horizon=3, episodes=2)
NOBODY = np.zeros((3, 4))


def feedback(**changes: Any) -> rmab.Feedback:
    given = {"states": np.zeros((4, 4)), "actions": NOBODY, "rewards": np.full((3, 4), 0.0), **changes}
    return rmab.Feedback.of_steps(TASK.view(), 0, **given)


def act(states: list[int]) -> Any:
    return rmab.IndexPolicy(np.zeros((4, 3)), 1).act(0, np.array(states), np.random.default_rng(0))


CASES: list[tuple[Any, str, dict[str, Any]]] = [
    (lambda: rmab.make_task("nowhere"), "unknown-name", {"task": "nowhere"}),
    (lambda: rmab.make_task("cpap@nobody"), "unknown-name", {"adversary": "nobody"}),
    (lambda: rmab.make_learner("nobody"), "unknown-name", {"learner": "nobody"}),
    (lambda: rmab.make_task("cpap", nurses=3), "unknown-option", {"task": "cpap", "option": "nurses"}),
    (lambda: rmab.make_learner("ucmd", nurses=3), "unknown-option", {"learner": "ucmd", "option": "nurses"}),
    (lambda: rmab.run(TASK, "random").regret("O4"), "unknown-name", {"comparator": "O4"}),  # type: ignore[arg-type]
    (lambda: rmab.run(TASK, "random", "one"), "bad-model", {"field": "seed"}),  # type: ignore[arg-type]
    (lambda: rmab.Arms("kernels"), "not-numbers", {"field": "kernels"}),
    (lambda: rmab.Problem.load("missing.npz"), "file-unreadable", {"path": "missing.npz"}),
    (lambda: rmab.IndexPolicy([[1.0]], 2), "bad-policy", {"field": "budget"}),
    (lambda: rmab.IndexPolicy([[np.nan]], 1), "bad-policy", {"field": "table", "arm": 0, "state": 0}),
    (lambda: act([0, 0, 7, 0]), "bad-policy", {"arm": 2}),
    (lambda: act([0, 0]), "bad-shape", {"field": "states"}),
    (lambda: feedback(actions=NOBODY + 1), "budget-exceeded", {"step": 0}),
    (lambda: feedback(states=np.full((4, 4), 9)), "bad-feedback", {"step": 0, "arm": 0}),
    (lambda: feedback(states=np.zeros((2, 4))), "bad-shape", {"field": "states"}),
    (lambda: feedback(rewards=[["a"]]), "not-numbers", {"field": "rewards"}),
    (lambda: TASK.reward(7), "bad-model", {"episode": 7}),
]


@pytest.mark.parametrize(("call", "code", "location"), CASES, ids=[f"{code} {where}" for _, code, where in CASES])
def test_an_error_has_a_code_and_a_location(call: Any, code: str, location: dict[str, Any]) -> None:
    with pytest.raises(rmab.RmabError) as caught:
        call()
    assert (caught.value.code, caught.value.location) == (code, location)


def test_a_file_of_another_kind_says_so(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    TASK.problem.save(path)
    with pytest.raises(FileError) as caught:
        rmab.Task.load(path)
    assert (caught.value.code, caught.value.location) == ("file-kind", {"path": str(path)})


def test_what_is_wrong_in_a_file_has_its_path(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    TASK.problem.save(path)
    path.write_text(path.read_text().replace('"horizon": 3', '"horizon": 0'))
    with pytest.raises(ModelError, match="horizon must be at least 1") as caught:
        rmab.Problem.load(path)
    assert caught.value.location["path"] == str(path)


class Greedy:
    def act(self, h: int, states: Any, rng: np.random.Generator) -> Any:
        return np.ones(4, dtype=bool)


def test_errors_pass_between_processes_with_all_that_they_have() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        rmab.simulate(TASK.problem, Greedy(), TASK.base_reward, np.random.default_rng(0))
    wrong = LogError("log.csv", [Note("bad state"), Note("bad action", (7, 9)), Note("bad period", (3,))])
    some = ModelError("arm 3 is wrong", code="some-code", arm=np.int64(3))
    for error in (caught.value, wrong, some, FileError("a: b", path="a"), PolicyError("no")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.code, again.location) == (type(error), str(error), error.code, error.location)
    assert (caught.value.code, caught.value.location) == ("budget-exceeded", {"step": 0})
    assert (wrong.code, wrong.location) == ("bad-log", {"path": "log.csv", "line": 7})
    assert type(some.location["arm"]) is int


def test_an_error_in_another_place_keeps_its_code() -> None:
    with pytest.raises(FeedbackError, match="file: not so") as caught, raise_as(FeedbackError, "file: ", path="file"):
        raise ModelError("not so", code="bad-shape", field="start")
    assert (caught.value.code, caught.value.location) == ("bad-shape", {"field": "start", "path": "file"})
    with pytest.raises(FeedbackError) as caught, raise_as(FeedbackError):
        raise ModelError("not so")
    assert caught.value.code == "bad-feedback", "the code of a class is not passed on to another class"
