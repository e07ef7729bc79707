"""Scale and offset of rewards, the order of arms, and a stop in between change no decisions.

Also where the components of `ucmd` act: seasons, shocks, kernels that change, arms that activation hurts, phases.
"""

import json
from typing import Any

import numpy as np
import pytest

import rmab
from golden_runs import LEARNERS
from rmab.testing import check_learner

ARMS, HORIZON, EPISODES = 3, 4, 4


def game(factor: float, offset: float) -> rmab.Task:
    """Return a small task whose rewards, multiples of 1/64 in [0, 1], are multiplied and shifted: exactly, in binary."""
    rng = np.random.default_rng(11)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(2), size=(ARMS, 2, 2))), [0, 1, 0], 1, HORIZON)
    rewards = rng.integers(0, 65, size=(EPISODES, ARMS, 2, 2)) / 64
    return rmab.Task.from_rewards(problem, factor * rewards + offset, low=offset, high=factor + offset)


@pytest.mark.parametrize("place", range(len(LEARNERS)), ids=[f"{name} {json.dumps(options)}" for name, options in LEARNERS])
def test_decisions_do_not_depend_on_offset_and_scale(place: int) -> None:
    name, options = LEARNERS[place]
    plain = rmab.run(game(1.0, 0.0), rmab.make_learner(name, **options), seed=3)
    for factor, offset in ((4.0, 16.0), (0.25, -8.0)):
        moved = rmab.run(game(factor, offset), rmab.make_learner(name, **options), seed=3)
        paid = factor * plain.reward + offset * ARMS * HORIZON
        np.testing.assert_allclose(moved.reward, paid, rtol=1e-12, err_msg=f"factor {factor}, offset {offset}")
        np.testing.assert_array_equal(moved.visited, plain.visited)


def patterned(kind: str, factor: float, offset: float) -> rmab.Task:
    """Return a task in which a component acts; rewards are multiples of 1/1024, multiplied and shifted exactly."""
    rng, t = np.random.default_rng(5), np.arange(15)[:, np.newaxis]
    level = {"season": np.where(rng.random((3, 6)) < 0.5, 1.0, 0.125)[t[:, 0] % 3], "shock": rng.integers(2, 9, (15, 1)) / 8}
    pays = rng.integers(16, 129, (6, 3, 1)) / 128 * np.ones(2)
    rewards = level.get(kind, np.ones((15, 1)))[:, :, np.newaxis, np.newaxis] * pays
    kernels = rng.dirichlet(np.ones(3), (2, 6, 3, 2))
    if kind == "harm":
        kernels[0, :4, :, 1] = [0.9, 0.1, 0.0]
    problem = rmab.Problem(rmab.Arms(kernels[0]), 1, 5 if kind == "harm" else 2, 8)
    task = rmab.Task.from_rewards(problem, factor * rewards + offset, low=offset, high=factor + offset)
    return task.changed(8, rmab.Problem(rmab.Arms(kernels[1]), 1, 2, 8)) if kind == "change" else task


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["season", "shock", "change", "harm"])
def test_components_do_not_depend_on_offset_and_scale(kind: str) -> None:
    plain = rmab.run(patterned(kind, 1.0, 0.0), "ucmd", seed=3)
    moved = rmab.run(patterned(kind, 4.0, -8.0), "ucmd", seed=3)
    np.testing.assert_allclose(moved.reward, 4.0 * plain.reward - 8.0 * 6 * 8, rtol=1e-12)
    np.testing.assert_array_equal(moved.visited, plain.visited)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["cpap@weekly", "cpap@weather", "harm@noisy", "drift", "clock@noisy", "many"])
def test_components_do_not_depend_on_labels_or_stops(name: str) -> None:
    """The whole contract, over enough episodes for the components to act; replays and probes draw, and are left out."""
    options: dict[str, Any] = {"hurt": 4} if name == "harm@noisy" else {"phases": 4} if name == "clock@noisy" else {}
    if name == "many":
        name, options = "harm@noisy", {"arms": 64, "budget": 20, "hurt": 40, "horizon": 5}
    task = rmab.make_task(name, **{"seed": 1, "arms": 6, "budget": 2, "horizon": 8, "episodes": 9, **options})
    check_learner(rmab.make_learner("ucmd", probes={"every": 0.0}, replay=False), task, episodes=9)
    check_learner(rmab.make_learner("ucmd"), task, episodes=9)
