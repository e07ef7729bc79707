"""The study of weekly lists, in small: effects stay near the truth, no group starves, and measurements hold."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[2] / "studies" / "closed_loop.py"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("closed_loop_study", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["closed_loop_study"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_a_few_programmes(study: ModuleType, effect: float) -> None:
    kind = study.Kind(arms=80, groups=4, budget=8, share=0.25, weeks=8, effect=effect)
    found = [study.repetition("small", number, kind) for number in range(2)]
    assert min(min(one["calls"]) for one in found) >= 1
    assert not any(one["missed"] for one in found)
    assert abs(np.mean([one["chosen_bias"] for one in found])) < 8  # points; two programmes are few
    assert all(len(one["p"]) == kind.weeks for one in found)
    if effect == 0:
        assert not any(any(one["promised"]) for one in found)


def test_the_world_is_what_it_says(study: ModuleType) -> None:
    world = study.World(study.Kind(effect=0.7, effect_spread=0.3), np.random.default_rng(0))
    assert np.allclose(world.kernels.sum(axis=-1), 1)
    states = np.zeros(200, dtype=int)
    rng = np.random.default_rng(1)
    reached = np.mean([world.step(states, np.ones(200, dtype=bool), rng) == 2 for _ in range(400)], axis=0)
    assert np.abs(reached - world.kernels[world.group, 0, 1, 2]).max() < 5 * 0.5 / 20
