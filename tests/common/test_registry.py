"""Registries: names and summaries without imports, options of classes and functions checked in one way."""

import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
from pydantic import Field

import rmab
from rmab.common.options import Numbers, checked_options, problems, schema
from rmab.common.references import Reference
from rmab.common.registry import Entry, Registry
from rmab.errors import ModelError

LIGHT = """
import sys
from rmab.common.registry import Entry, Registry
known = Registry("x", [Entry("a", "rmab.nowhere:a", "one line", "P, 1999")], listed_by="rmab xs", returns="rmab.nowhere:A")
assert known.summaries() == {"a": "one line"} and known["a"].paper == "P, 1999" and list(known) == ["a"] and "a" in known
heavy = {"numpy", "pydantic", "numba", "rmab.nowhere"} & sys.modules.keys()
assert not heavy, heavy
"""


def ward(
    problem: Any,
    reward: Any,
    *,
    nurses: Annotated[int, Field(ge=1, description="number of nurses")] = 2,
    chance: float | None = None,
    night: bool = False,
    pay: Annotated[Any, Numbers("a number, or one per phase", "what a visit pays")] = 1.0,
) -> list[Any]:
    """Stand for a planner."""
    return [problem, reward, nurses, chance, night, pay]


PLANNERS = Registry(
    "planner",
    [Entry("ward", f"{__name__}:ward", "a ward"), Entry("far", "rmab.nowhere:far", "not there")],
    listed_by="rmab planners",
    returns="builtins:list",
    given=("problem", "reward"),
)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _here())


def _here() -> Any:
    module = type(sys)(__name__)
    module.ward = ward
    return module


def test_names_need_no_import() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_name_gets_the_nearest_one_and_the_command() -> None:
    with pytest.raises(ModelError, match=r"^unknown planner 'wrd', did you mean 'ward'\? `rmab planners` lists them$"):
        PLANNERS.load("wrd")
    assert "nothing" not in PLANNERS


def test_options_of_a_function_are_its_keywords() -> None:
    assert PLANNERS.load("ward") is ward
    assert list(PLANNERS.schema("ward").model_fields) == ["nurses", "chance", "night", "pay"]
    assert PLANNERS.checked_options("ward", {"nurses": np.int64(3), "chance": 1}) == {"nurses": 3, "chance": 1.0}
    np.testing.assert_array_equal(PLANNERS.checked_options("ward", {"pay": [1, 2]})["pay"], [1.0, 2.0])
    assert PLANNERS.name_of(ward) == "ward"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nurses": 0}, "nurses: Input should be greater than or equal to 1 (got 0)"),
        ({"nurses": "3"}, "nurses: Input should be a number (got '3')"),
        ({"nurses": True}, "nurses: Input should be a number (got True)"),
        ({"nurses": 2.5}, "nurses: Input should be a valid integer, got a number with a fractional part (got 2.5)"),
        ({"nurses": 2**60}, "nurses: Input should be below 2^53 (got 1152921504606846976)"),
        ({"chance": float("nan")}, "chance: Input should be a finite number (got nan)"),
        ({"night": 1}, "night: Input should be a valid boolean (got 1)"),
        ({"pay": "much"}, "pay: Input should be a number, or one per phase (got 'much')"),
        ({"pay": [[1.0]]}, "pay: Input should be a number, or one per phase, not an array of shape (1, 1) (got [[1.0]])"),
        ({"pay": [1.0, float("inf")]}, "pay: Input should be finite at [1] (got [1.0, inf])"),
        ({"nurse": 1}, "nurse: no such option, did you mean 'nurses'? Available: nurses, chance, night, pay (got 1)"),
    ],
)
def test_what_is_wrong_is_one_line_per_option(options: dict[str, Any], message: str) -> None:
    assert [f"{name}: {what}" for name, what in PLANNERS.problems("ward", options)] == [message]
    with pytest.raises(ModelError) as caught:
        PLANNERS.checked_options("ward", options)
    hint = "; `rmab planners ward` lists the options" if "no such option" in message else ""
    assert str(caught.value) == f"planner ward: {message}{hint}"


def test_a_function_with_free_keywords_takes_any() -> None:
    def free(seed: int, **rest: object) -> None:
        """Take anything."""

    assert checked_options("x", schema(free, ("seed",)), {"a": 1, "b": "two"}) == {"a": 1, "b": "two"}
    assert problems(schema(free), {"seed": "x"}) == [("seed", "Input should be a number (got 'x')")]


@pytest.mark.parametrize(
    ("text", "name", "against", "is_file", "modules"),
    [
        ("cpap", "cpap", "", False, set()),
        ("cpap@switching", "cpap", "switching", False, set()),
        ("cpap@mine:Foe", "cpap", "mine:Foe", False, {"mine"}),
        ("mine:ward@switching", "mine:ward", "switching", False, {"mine"}),
        ("a.b:ward@mine:Foe", "a.b:ward", "mine:Foe", False, {"a.b", "mine"}),
        ("folder/x:y@z.npz", "", "", True, set()),
    ],
)
def test_references(text: str, name: str, against: str, is_file: bool, modules: set[str]) -> None:
    found = Reference.parse(text)
    assert (found.name, found.against, found.is_file, found.modules) == (name, against, is_file, modules)


@pytest.mark.parametrize(
    ("call", "code", "location"),
    [
        (lambda: rmab.make_planner("rollin"), "unknown-name", {"planner": "rollin"}),
        (lambda: rmab.make_learner("ucmd", estimator="nope"), "bad-option", {"option": "estimator", "learner": "ucmd"}),
        (lambda: rmab.make_learner("nowhere:Mine"), "bad-reference", {"learner": "nowhere:Mine"}),
        (lambda: rmab.make_planner("own_parts:nothing"), "bad-reference", {"planner": "own_parts:nothing"}),
        (
            lambda: rmab.make_learner("planner", planner="rollin"),
            "unknown-name",
            {"planner": "rollin", "learner": "planner"},
        ),
    ],
)
def test_a_wrong_name_has_a_code_and_a_location(call: Callable[[], object], code: str, location: dict[str, str]) -> None:
    with pytest.raises(ModelError) as caught:
        call()
    assert (caught.value.code, caught.value.location) == (code, location)
