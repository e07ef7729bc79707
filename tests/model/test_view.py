"""A view is checked as a problem is: whatever no task could have is refused before a learner sees it."""

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import view_of

SUPPORT = np.ones((3, 2, 2, 2), dtype=bool)
STUCK = SUPPORT.copy()
STUCK[1, 0, 1] = False
PADDED = SUPPORT.copy()
PADDED[2, 0, 0, 0] = False  # only the padding of arm 2 is left
OTHER = SUPPORT.copy()
OTHER[1, 0, 0, 1] = False


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"arms": 0}, "arms must be at least 1, got 0"),
        ({"arms": 2.5}, "arms must be a whole number, got 2.5"),
        ({"states": True}, "states must be a whole number, got True"),
        ({"horizon": -1}, "horizon must be at least 1, got -1"),
        ({"episodes": 0}, "episodes must be at least 1, got 0"),
        ({"budget": 4}, "budget must be in 0..3 (the number of arms), got 4"),
        ({"budget": -1}, "budget must be in 0..3 (the number of arms), got -1"),
        ({"start": np.array([0, 1, 2])}, "start[2] must be in 0..1 (the states of arm 2), got 2"),
        ({"start": np.array([0, 1e8, 0])}, "start[1] must be in 0..1 (the states of arm 1), got 1e+08"),
        ({"start": np.array([0, 1])}, "start must have shape (3,), got (2,)"),
        ({"start": 1e8}, "start must have shape (3,), got ()"),
        ({"low": 1.0}, "the range needs low < high, both finite, got [1.0, 1.0]"),
        ({"high": np.inf}, "the range needs low < high, both finite, got [0.0, inf]"),
        ({"low": "a"}, "range: not an array of numbers"),
        ({"feedback": "nonsense"}, "feedback must be one of bandit, active, full, got 'nonsense'"),
        ({"feedback": None}, "feedback must be one of bandit, active, full, got None"),
        ({"passive_zero": "no"}, "passive_zero must be True or False, got 'no'"),
        ({"pooled_rewards": 1}, "pooled_rewards must be True or False, got 1"),
        ({"passive_zero": True, "low": 1.0, "high": 2.0}, "passive rewards are declared zero, which is outside [1, 2]"),
        ({"pooled_rewards": True}, "pooled_rewards needs groups"),
        ({"groups": np.array([0, 2, 2])}, "groups must be labels 0, 1, ... without gaps"),
        ({"groups": np.array([0, -1, 0])}, "groups[1] must be in 0..2, got -1"),
        ({"groups": np.array([0, 10**9, 0])}, "groups[1] must be in 0..2, got 1e+09"),
        ({"groups": np.array([0, 1])}, "groups must have shape (3,), got (2,)"),
        ({"groups": np.zeros(3), "sizes": np.array([2, 1, 2])}, "groups: arms 0 and 1 are in one group, but differ"),
        ({"groups": np.zeros(3), "support": OTHER}, "groups: arms 0 and 1 are in one group, but differ"),
        ({"sizes": np.array([2, 3, 2])}, "sizes[1] must be in 1..2, got 3"),
        ({"sizes": np.array([2, 0, 2])}, "sizes[1] must be in 1..2, got 0"),
        ({"support": SUPPORT[:2]}, "support must be True or False, of shape (N, S, 2, S) = (3, 2, 2, 2), got (2, 2, 2, 2)"),
        ({"support": 2 * SUPPORT.astype(int)}, "support must be True or False"),
        ({"support": STUCK}, "support: arm 1, state 0, action 1 has no possible successor"),
        ({"support": PADDED, "sizes": np.array([2, 2, 1])}, "support: arm 2, state 0, action 0 has no possible successor"),
        ({"state_names": ("a", "a")}, "state_names must be 2 different names"),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, dict) else "",
)
def test_what_no_task_has_is_refused(change: dict[str, Any], line: str) -> None:
    with pytest.raises(rmab.errors.ModelError) as caught:
        dataclasses.replace(view_of(3, 2), **change)
    assert str(caught.value).startswith(f"view: {line}")
    assert "\n" not in str(caught.value)


def test_views_of_tasks_are_as_they_were() -> None:
    for task in (rmab.make_task("cpap"), rmab.make_task("deadline", known_support=True), rmab.make_task("split")):
        view = task.view()
        again = dataclasses.replace(view)
        for field in dataclasses.fields(view):
            one, other = getattr(view, field.name), getattr(again, field.name)
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_arrays_are_read_only_copies() -> None:
    start = np.zeros(3, dtype=np.int64)
    view = view_of(3, 2, start=start)
    start[0] = 1
    assert view.start.tolist() == [0, 0, 0]
    for one in (view, pickle.loads(pickle.dumps(view))):
        with pytest.raises(ValueError, match="read-only"):
            one.start[0] = 1


def test_padding_needs_no_successor() -> None:
    view = view_of(3, 2, sizes=np.array([2, 2, 1]), support=SUPPORT)
    assert view.real_states.tolist() == [2, 2, 1]
