"""Model files that somebody edited: everything that would be used as an index or a shape is checked when they are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from logs import mothers
from rmab.data import Fit

HUGE = 2**63 - 1


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    return json.loads(mothers(30, 10, groups=("age",)).to_bytes(".json"))


def change(fields: dict[str, Any], name: str, value: Any) -> bytes:
    return json.dumps({**fields, name: value}).encode()


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("log.arm_of", 3, HUGE),
        ("log.arm_of", 3, -1),
        ("log.period", 5, HUGE),
        ("log.state", 0, HUGE),
        ("log.state", 0, -2),
        ("log.action", 0, 2),
        ("log.factor_of", 0, [HUGE]),
        ("roster.factor_of", 0, [3]),
        ("group_of", 0, HUGE),
        ("group_of", 0, -1),
        ("group_of", 0, 0.5),
        ("present", 0, HUGE),
        ("situation.state", 0, HUGE),
        ("situation.acted_before", 0, HUGE),
        ("levels.nodes", 0, [0, 0, 1]),
        ("levels.nodes", 0, [HUGE, 0, 1]),
        ("statistics.counts", 0, [[[HUGE] * 3] * 2] * 3),
        ("statistics.counts", 0, [[[-1] * 3] * 2] * 3),
        ("rows.kernels", 0, [[[0.5] * 3] * 2] * 3),
        ("situation.belief", 0, [1.0, 1.0, 0.0]),
        ("pay.table", 0, [[1e300, 0]] * 3),
    ],
)
def test_a_wrong_entry_is_refused(fields: dict[str, Any], name: str, place: int, value: Any) -> None:
    edited = [*fields[name]]
    edited[place] = value
    with pytest.raises(rmab.errors.ModelError, match=r"^Fit: "):
        Fit.from_bytes(change(fields, name, edited))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group_of", [0, 0]),
        ("present", [[0]]),
        ("groups", ["all"]),
        ("state_names", ["a", "b"]),
        ("roster.ids", ["M01"] * 30),
        ("roster.factors", '{"age": []}'),
        ("log.periods.count", HUGE),
        ("log.periods.count", 2),
        ("log.periods.step", "week"),
        ("log.periods.first", HUGE),
        ("log.arm_of", []),
        ("pay.goal", 3),
        ("pay.unit", 5),
        ("words.action", 5),
        ("notes", '[{"what": 5, "at": [], "unit": "line"}]'),
        ("notes", "[[[["),
        ("roster.factors", "[" * 10_000),
        ("rows.unseen", [[0, 1]]),
        ("rows.strength", [[1.0, 1.0]]),
        ("statistics.moments", [[1]]),
        ("situation.belief", []),
        ("situation.streak", "x"),
    ],
)
def test_a_wrong_field_is_refused(fields: dict[str, Any], name: str, value: Any) -> None:
    content = change(fields, name, value)
    if (name, value) == ("statistics.moments", [[1]]):
        Fit.from_bytes(content)  # there are no rewards, so that nothing reads it
        return
    with pytest.raises(rmab.errors.ModelError) as error:
        Fit.from_bytes(content)
    assert "\n" not in str(error.value)


def test_a_missing_field_is_refused(fields: dict[str, Any]) -> None:
    for name in fields.keys() - {"kind", "format", "randomised", "clustered"}:  # files without these are read
        rest = {key: value for key, value in fields.items() if key != name}
        with pytest.raises((rmab.errors.ModelError, rmab.errors.FileError)):
            Fit.from_bytes(json.dumps(rest).encode())


def test_the_heap_is_safe_from_an_edited_archive(tmp_path: Path) -> None:
    """An index of 2^63 - 1 went through np.bincount into memory that was not ours."""
    path = tmp_path / "model.npz"
    mothers(30, 10).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name in ("log.state", "log.arm_of", "log.period", "group_of", "present"):
        edited = arrays[name].astype(np.int64)
        edited[-1] = HUGE
        np.savez(path, **{**arrays, name: edited})
        with pytest.raises(rmab.errors.ModelError, match="must be in"):
            Fit.load(path)


def test_models_of_the_first_format_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text('{"kind": "rmab fit", "version": 1, "arms": ["a"]}')
    with pytest.raises(rmab.errors.FileError, match=r"older rmab \(format 1, this one reads format 3\); fit the log again"):
        Fit.load(path)
