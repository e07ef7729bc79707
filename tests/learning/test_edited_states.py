"""States that come from a file or another process are checked by the learner that owns them before it reads them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from golden_runs import LEARNERS
from rmab.errors import ModelError
from rmab.learning import Learner, State

SMALL = {"arms": 2, "budget": 1, "horizon": 3, "episodes": 4}


def played(name: str, options: dict[str, Any]) -> tuple[Learner, State]:
    """Return the learner, told what it must know, and its state after two episodes."""
    learner = rmab.make_learner(name, **options)
    task = rmab.make_task("cpap", feedback=learner.feedback, **SMALL)
    learner = learner.inform(task.problem, task.base_reward) if learner.privileged else learner
    state = learner.begin(task.view())
    for t in range(2):
        episode = rmab.simulate(task.problem, learner.plan(state).policy, task.reward(t), np.random.default_rng(t))
        state = learner.learn(state, rmab.Feedback.reveal(task.view(), t, episode, task.reward(t)))
    return learner, state


def wrong(array: Any, low: float, high: float) -> list[Any]:
    """Return arrays of another shape, another kind of number, and with one number outside the range."""
    others = [np.zeros((*array.shape, 2), dtype=array.dtype), array.astype(bool if array.dtype.kind != "b" else float)]
    if array.dtype.kind != "b":
        for value in (low - 1, high * 2 + 1) if array.dtype.kind == "i" else (low - 1 if low > -1e299 else -np.inf, np.nan):
            changed = array.copy()
            changed.reshape(-1)[-1:] = value
            others.append(changed)
    return others


@pytest.mark.parametrize("place", range(len(LEARNERS)), ids=[f"{name} {json.dumps(options)}" for name, options in LEARNERS])
def test_every_array_that_is_declared_is_checked(place: int, tmp_path: Path) -> None:
    learner, state = played(*LEARNERS[place])
    state.save(tmp_path / "state.npz")
    learner.plan(State.load(tmp_path / "state.npz"))
    declared = learner.state_spec(state.view)
    assert declared or state.arrays.keys() <= {"table"} or not state.arrays
    for name, wanted in declared.items():
        if name not in state.arrays:
            assert wanted.optional
            continue
        rest = {key: array for key, array in state.arrays.items() if key != name}
        if not wanted.optional:
            with pytest.raises(ModelError, match=f"^state: {name} is missing$"):
                learner.plan(replace(state, arrays=rest))
        for array in wrong(state.arrays[name], wanted.low, wanted.high):
            with pytest.raises(ModelError, match=rf"^state: {name}"):
                learner.plan(replace(state, arrays={**rest, name: array}))


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("view_start", np.array([0, 100_000_000]), "view: start"),
        ("view_feedback", "nonsense", "view: feedback must be one of bandit, active, full, got 'nonsense'"),
        ("view_high", 0.0, "view: the range needs low < high"),
        ("view_budget", 7, "view: budget must be in 0..2"),
        ("view_support", np.zeros((2, 3, 2, 3), dtype=bool), "view: support: arm 0, state 0, action 0 has no possible"),
        ("seed", -1, "seed must be 0 or more, got -1"),
        ("episode", 1.5, "episode must be a whole number, got 1.5"),
        ("learner", 3, "a state needs the signature of its learner"),
        ("array_words", np.array(["a"]), "state: words must be an array of numbers"),
    ],
)
def test_an_edited_file_is_refused_with_what_is_wrong(field: str, value: Any, line: str, tmp_path: Path) -> None:
    _, state = played("ucmd", {})
    path = tmp_path / "state.npz"
    state.save(path)
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    np.savez(path, **{**content, field: value})
    with pytest.raises(ModelError) as caught:
        State.load(path)
    assert str(caught.value).startswith(f"{path}: {line}")


def test_a_state_is_checked_once_and_again_in_another_process() -> None:
    import pickle

    learner, state = played("ucmd", {})
    assert state._trusted
    copy = pickle.loads(pickle.dumps(state))
    assert not copy._trusted
    learner.plan(copy)
    assert copy._trusted


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"looks.steps": np.array(0)}, "looks.steps is 0, outside [1, 3]"),
        ({"looks.steps": np.array(4)}, "looks.steps is 4, outside [1, 3]"),
        ({"step.trusted": np.array(False)}, "step.past.prices is missing"),
    ],
)
def test_what_ucmd_keeps_must_fit_together(changes: dict[str, Any], line: str) -> None:
    learner, state = played("ucmd", {})
    assert state.arrays["step.trusted"]
    with pytest.raises(ModelError) as error:
        learner.plan(replace(state, arrays={**state.arrays, **changes}), budget=0)
    assert str(error.value) == f"state: {line}"
