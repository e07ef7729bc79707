"""The study of weekly lists, in small: effects stay near the truth, no group starves, and measurements hold."""

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from programs import load_study


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    from rmab.estimation import evaluation, one_step, optimism, repeats

    before = evaluation.REPLAN, evaluation.WORK, one_step.REPLICATES, optimism.LOGS, repeats.MOST
    yield load_study("closed_loop")
    evaluation.REPLAN, evaluation.WORK, one_step.REPLICATES, optimism.LOGS, repeats.MOST = before


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_a_few_programmes(study: ModuleType, effect: float) -> None:
    kind = study.Kind(arms=80, groups=4, budget=8, share=0.25, weeks=8, effect=effect)
    found = [study.repetition("small", number, kind) for number in range(2)]
    assert min(min(one["calls"]) for one in found) >= 1
    assert not any(one["missed"] for one in found)
    assert abs(np.mean([one["average"] for one in found])) < 8  # points; two programmes are few
    assert all(len(one["p"]) == kind.weeks for one in found)
    if effect == 0:
        assert not any(any(one["states"]) for one in found)


def test_the_world_is_what_it_says(study: ModuleType) -> None:
    world = study.World(study.Kind(arms=200, effect=0.7, effect_spread=0.3, arm_spread=0.2), np.random.default_rng(0))
    assert np.allclose(world.kernels.sum(axis=-1), 1)
    states = np.zeros(200, dtype=int)
    rng = np.random.default_rng(1)
    reached = np.mean([world.step(states, np.ones(200, dtype=bool), rng) == 2 for _ in range(400)], axis=0)
    assert np.abs(reached - world.kernels[:, 0, 1, 2]).max() < 5 * 0.5 / 20
