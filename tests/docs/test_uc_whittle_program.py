"""UCWhittle's published program, as studies/uc_whittle.py plays it: its kernels need no solver, and its counts matter."""

import runpy
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the study defines; its neighbour is imported for this test only."""
    monkeypatch.syspath_prepend(STUDIES)
    yield runpy.run_path(str(STUDIES / "uc_whittle.py"))
    for name in ("tables", "kept"):
        sys.modules.pop(name, None)


def values(chance: FloatArray, price: float) -> FloatArray:
    """(S,) the value of an arm whose good state pays 1, at a price of activation, by iteration."""
    found = np.zeros(2)
    for _ in range(400):
        ahead = chance * found[1] + (1 - chance) * found[0]
        found = (np.array([[0.0], [1.0]]) - np.array([0.0, price]) + 0.9 * ahead).max(axis=1)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_most_promising_kernel_has_the_largest_chances(program: dict[str, Any], seed: int) -> None:
    """Over a grid of all kernels in the intervals where neither activity nor a good state harms."""
    rng = np.random.default_rng(seed)
    truth = np.sort(np.sort(rng.random((2, 2)), axis=0), axis=1)
    low, high = np.maximum(truth - rng.random((2, 2)), 0.0), np.minimum(truth + rng.random((2, 2)), 1.0)
    chosen = program["value"](low[None], high[None])[0]
    assert (chosen >= low).all()
    assert (chosen <= high).all()
    for price in (0.0, 0.2, 0.7):
        best = values(chosen, price)
        for parts in product((0.0, 0.3, 0.7, 1.0), repeat=4):
            other = low + (high - low) * np.reshape(parts, (2, 2))
            if (other[:, 1] >= other[:, 0]).all() and (other[1] >= other[0]).all():
                assert (values(other, price) <= best + 1e-9).all()


def test_intervals_by_hand(program: dict[str, Any]) -> None:
    visits, good = np.array([[[0, 1600], [400, 1]]]), np.array([[[0, 640], [400, 1]]])
    low, high = program["intervals"](good, visits, 2)
    wide = np.sqrt(4 * np.log(2 * 2 * 2 * 1 * 3**4 / 1e-3) / 400)
    np.testing.assert_allclose(low[0], [[0.0, 0.4 - wide / 2], [1.0 - wide, 0.0]])
    np.testing.assert_allclose(high[0], [[1.0, 0.4 + wide / 2], [1.0, 1.0]])


def test_rounds_that_are_there_are_not_played_again(program: dict[str, Any], tmp_path: Path) -> None:
    program["play"](tmp_path, 2)
    kept = program["Kept"].of(tmp_path / program["FILE"])
    earned = kept.found
    assert len(kept.versions) == 1
    assert kept.versions[0].startswith(f"rmab {rmab.__version__}, revision ")
    assert all(len(each) == 2 for each in earned.values())
    task = rmab.make_task("good-bad", seed=1)
    assert earned["uc-whittle"][1] == float(rmab.run(task, "uc-whittle", 1).reward.sum())
    steps = task.episodes * task.problem.horizon * len(task.problem.arms.kernels)
    assert all(0 < one < steps for each in earned.values() for one in each)
    before = (tmp_path / "uc_whittle.json").read_bytes()
    program["play"](tmp_path, 2)
    assert (tmp_path / "uc_whittle.json").read_bytes() == before
    assert program["table"](kept).count("\n") == 2 + len(earned)
