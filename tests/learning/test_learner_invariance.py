"""A constant added to all rewards, or a positive factor, changes no learner's decisions."""

import json

import numpy as np
import pytest

import rmab
from golden_runs import LEARNERS

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
