"""Every learner does what it did when its runs were recorded, on every processor.

Where the processor and the libraries are recorded ones, a run must be equal to the byte, with all its plans and its state.

Elsewhere, reward, planned and believed value of every episode must be equal to 1e-6 of the largest: that is far above what
rounding does (1e-9 between all the processors that were tried) and far below what a change of an algorithm does.

Some runs fork: rounding decides a tie between arms, and from there on the run is another one, as with another seed. They are
known from runs for five processors (Intel and AMD, with and without fused multiplication and vectors), which differ there.
They have a statistical tolerance instead: the sum over episodes of each number lies within five standard deviations of its
mean over 20 seeds, both recorded.
"""

import json
from typing import Any

import numpy as np
import pytest

from golden_runs import FILE, LEARNERS, TASKS, cases, digest, distance, fingerprint, numbers, play

RECORDED = json.loads(FILE.read_text())
CLOSE, DEVIATIONS = 1e-6, 5.0


def marks(name: str) -> list[pytest.MarkDecorator]:
    """A third of the time goes into the plans of one case, for all arms at once."""
    return [pytest.mark.slow] if name == "mixed, active: colored-ucrl2-24" else []


@pytest.mark.parametrize(
    ("name", "task", "place"), [pytest.param(*case, id=case[0], marks=marks(case[0])) for case in cases()]
)
def test_runs_are_as_recorded(name: str, task: str, place: int) -> None:
    run, entry = play(task, place), RECORDED["runs"][name]
    if fingerprint() in RECORDED["fingerprints"]:
        assert digest(run) == entry["digests"][RECORDED["fingerprints"].index(fingerprint())]
    _check_numbers(numbers(run), entry)


def _check_numbers(found: dict[str, list[float]] | None, entry: dict[str, Any]) -> None:
    """Check the numbers of a run as on a processor that is not recorded."""
    expected = entry["numbers"]
    if expected is None:
        assert found is None, "a task that was refused is played"
        return
    assert found is not None, "a task that was played is refused"
    assert found.keys() == expected.keys()
    if distance(found, expected) < CLOSE:
        return
    assert "spread" in entry, (
        f"{found} instead of {expected}: if the code is as it was, this processor breaks a tie in another way; "
        "`python tests/helpers/golden_runs.py --forks` records that"
    )
    mean, deviation = np.array(entry["spread"])
    gaps = np.abs([sum(row) for row in found.values()] - mean) / (deviation + CLOSE * np.abs(mean))
    assert gaps.max() < DEVIATIONS


def test_all_are_recorded() -> None:
    assert set(RECORDED["runs"]) == {name for name, _, _ in cases()}
    assert all(len(entry["digests"]) == len(RECORDED["fingerprints"]) for entry in RECORDED["runs"].values())
    assert len(RECORDED["runs"]) == len(TASKS) * len(LEARNERS)


def test_most_runs_have_the_narrow_tolerance() -> None:
    assert sum("spread" in entry for entry in RECORDED["runs"].values()) < len(RECORDED["runs"]) / 3


def _scaled(entry: dict[str, Any], factors: np.ndarray) -> dict[str, list[float]]:
    return {
        name: np.multiply(row, factor).tolist()
        for (name, row), factor in zip(entry["numbers"].items(), factors, strict=True)
    }


def test_changed_numbers_are_seen_on_every_processor() -> None:
    played = [entry for entry in RECORDED["runs"].values() if entry["numbers"] is not None]
    for entry in (one for one in played if "spread" not in one):
        _check_numbers(_scaled(entry, np.full(len(entry["numbers"]), 1 + 1e-8)), entry)
        with pytest.raises(AssertionError, match="breaks a tie"):
            _check_numbers(_scaled(entry, np.full(len(entry["numbers"]), 1 + 1e-5)), entry)
    for entry in (one for one in played if "spread" in one):
        mean, deviation = np.array(entry["spread"])
        sums = [sum(row) for row in entry["numbers"].values()]
        _check_numbers(_scaled(entry, (mean + 4 * deviation) / sums), entry)
        with pytest.raises(AssertionError):
            _check_numbers(_scaled(entry, (mean + 6 * deviation) / sums), entry)
