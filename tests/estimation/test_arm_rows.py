"""Arms that differ within their groups: their own records move them, and arms that are alike stay together."""

import numpy as np
import pytest

import rmab
from logs import HEADER, mothers, read, table
from rmab.estimation.arm_rows import find_arm_rows


def differing(spread: float, *, arms: int = 120, weeks: int = 40) -> tuple[rmab.data.Fit, np.ndarray]:
    """A log of three states in which arms of one group have baselines of their own, and their kernels without a call."""
    rng, rows = np.random.default_rng(0), []
    base = spread * rng.normal(size=arms)
    far = -1.0 * abs(np.subtract.outer(np.arange(3), np.arange(3)))
    kernels = np.exp(far + np.arange(3) * base[:, np.newaxis, np.newaxis])
    kernels /= kernels.sum(axis=2, keepdims=True)
    for n in range(arms):
        state = 1
        for week in range(weeks):
            rows.append((f"n{n:03d}", week, f"s{state}", int(rng.random() < 0.1)))
            state = int(rng.choice(3, p=kernels[n, state]))
    return rmab.data.fit(read(table(*rows, names=HEADER)), reward={"s2": 1}), kernels


def test_arms_that_differ_are_told_apart() -> None:
    fitted, truth = differing(1.0)
    found = fitted.arm_rows
    assert found is not None
    kernels = found.kernels(np.asarray(fitted.kernels))
    own, group = (np.sqrt(((one - truth) ** 2).mean()) for one in (kernels[:, :, 0], fitted.kernels[0, :, 0]))
    assert own < 0.7 * group
    assert np.allclose(kernels.sum(axis=3), 1)
    drawn = found.kernels(np.asarray(fitted.kernels), np.random.default_rng(0))
    assert drawn[:, 2, 0, 2].std() > kernels[:, 2, 0, 2].std()
    assert fitted.problem(10, 5).arms.count == 120
    assert np.array_equal(fitted.problem(10, 5).arms.kernels, kernels)


def test_levels_of_arms_are_not_taken_for_the_effect_of_the_state() -> None:
    """The odds of staying, and the spread of levels, are those of the world: 4 on the scale of logits, and 0.64."""
    fitted, _ = differing(0.8, arms=400, weeks=30)
    found, score = fitted.arm_rows, np.arange(3) - 1.0
    assert found is not None
    rows = fitted.kernels[0, :, 0] * found.ratio
    plain, real = (np.log(one[0, 0] * one[2, 2] / one[0, 2] / one[2, 0]) for one in (fitted.kernels[0, :, 0], rows))
    assert plain > 5.2
    assert real == pytest.approx(4.0, abs=0.25)
    level = float(score @ found.spread @ score + (found.centre @ score).var()) / 4
    assert level == pytest.approx(0.64, rel=0.2)


def test_arms_that_are_alike_are_not() -> None:
    assert differing(0.0)[0].arm_rows is None
    assert mothers(200, 25).arm_rows is None


def test_the_effect_is_that_of_the_group_as_a_tilt() -> None:
    fitted, _ = differing(1.0)
    groups = np.array(fitted.kernels)
    found = find_arm_rows(fitted.log, fitted.group_of, groups)
    assert found is not None
    groups[:, :, 1] = groups[:, :, 0] * [1.0, 1.0, 2.0]
    groups[:, :, 1] /= groups[:, :, 1].sum(axis=2, keepdims=True)
    kernels = found.kernels(groups)
    ratio = kernels[:, :, 1] / kernels[:, :, 0]
    assert np.allclose(ratio[:, :, 2] / ratio[:, :, 0], 2.0)
