"""What a case is: a part and a seed. Whatever it raises is a finding; what it did is counted by name."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("solvers", "players", "files", "learners", "sharing", "arguments", "logs", "lists", "environments", "rolling")


@dataclass
class Case:
    """What a part is given: its luck, a folder of its own, and a place to count what it did."""

    part: str
    seed: int
    folder: Path
    rng: np.random.Generator
    counts: Counter[str] = field(default_factory=Counter)

    def count(self, what: str) -> None:
        """Note that something was done once more."""
        self.counts[what] += 1

    def chance(self, probability: float) -> bool:
        """Toss a coin."""
        return bool(self.rng.random() < probability)

    def whole(self, low: int, high: int) -> int:
        """Draw a whole number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices: Any) -> Any:
        """Draw one of some things."""
        return choices[int(self.rng.integers(len(choices)))]


def function_of(part: str) -> Callable[[Case], None]:
    """Return the function that plays cases of a part: `play` of the module of that name."""
    function: Callable[[Case], None] = import_module(f"fuzz.{part}").play
    return function


def play(part: str, seed: int) -> Case:
    """Play one case in this process; whatever it finds is raised."""
    key = int.from_bytes(part.encode(), "little")
    with tempfile.TemporaryDirectory(prefix="rmab-fuzz-") as folder:
        case = Case(part, seed, Path(folder), np.random.default_rng([key, seed]))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of arithmetic that went wrong unnoticed
            function_of(part)(case)
    return case


def attempt(part: str, seed: int) -> dict[str, Any]:
    """Play one case, and return what it did, or what it found, as plain data."""
    try:
        return {"counts": dict(play(part, seed).counts)}
    except BaseException as error:  # noqa: BLE001  (anything that is raised is a finding)
        line = " ".join(f"{type(error).__name__}: {error}".split())
        return {"finding": line[:2000], "where": where(error), "trace": traceback.format_exc()[-6000:]}


def where(error: BaseException) -> str:
    """Return the line of code from which a finding comes: of its first cause, and of who asked for a proof."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).stem != "proofs"]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
