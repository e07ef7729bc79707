"""Every learner does what it did, byte for byte, on the processor and with the libraries that it was recorded with."""

import json

import pytest

from golden_runs import FILE, LEARNERS, TASKS, case, fingerprint

RECORDED = json.loads(FILE.read_text())


@pytest.mark.skipif(RECORDED["fingerprint"] != fingerprint(), reason="recorded on another processor or with other libraries")
@pytest.mark.parametrize("place", range(len(LEARNERS)), ids=[f"{name}-{i}" for i, (name, _) in enumerate(LEARNERS)])
@pytest.mark.parametrize("task", TASKS)
def test_runs_are_as_recorded(task: str, place: int) -> None:
    name, found = case(task, place)
    assert found == RECORDED["runs"][name]


def test_all_are_recorded() -> None:
    assert len(RECORDED["runs"]) == len(TASKS) * len(LEARNERS)
