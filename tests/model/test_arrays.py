"""Arrays that NumPy would silently use as data are refused: masked ones, and ones of objects."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rmab

KERNELS = np.full((2, 2, 2, 2), 0.5)
Mask = Callable[[Any], Any]


def problem(start: Any = 0) -> rmab.Problem:
    return rmab.Problem(rmab.Arms(KERNELS), start, 1, 3)


CALLS: dict[str, Callable[[Mask], object]] = {
    "kernels": lambda mask: rmab.Arms(mask(KERNELS)),
    "kernels of sizes": lambda mask: rmab.Arms.of_sizes([mask(KERNELS[0])]),
    "a list of kernels": lambda mask: rmab.Arms([mask(one) for one in KERNELS]),
    "start": lambda mask: problem(mask(np.zeros(2))),
    "table": lambda mask: rmab.IndexPolicy(mask(np.ones((2, 2))), 1),
    "parts": lambda mask: rmab.RewardModel(mask(np.ones((1, 2, 2, 2))), 0, 1),
    "reward": lambda mask: rmab.solvers.solve_fluid(problem(), mask(np.ones((2, 2, 2)))),
    "rewards": lambda mask: rmab.Task.from_rewards(problem(), mask(np.ones((3, 2, 2, 2))), low=0, high=1),
    "reference": lambda mask: rmab.solvers.project(
        mask(np.full((2, 3, 2, 2, 2), 0.1)), 0 * KERNELS, 0 * KERNELS + 1, [0, 0], 1
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_masked_arrays_are_refused(name: str) -> None:
    with pytest.raises(
        (rmab.errors.ModelError, rmab.errors.PolicyError), match="must not be a masked array; replace masked values"
    ):
        CALLS[name](lambda array: np.ma.masked_array(array, mask=array > 10))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "reference"])
def test_arrays_of_objects_are_refused(name: str) -> None:
    with pytest.raises((rmab.errors.ModelError, rmab.errors.PolicyError), match="not an array of numbers"):
        CALLS[name](lambda array: array.astype(object))


def test_whole_numbers_that_are_too_large_say_so() -> None:
    with pytest.raises(rmab.errors.ModelError, match=r"seed must be a whole number below 2\^53, got 1180591620717411303424"):
        rmab.run("cpap", "random", seed=2**70)
