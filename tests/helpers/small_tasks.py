"""A small task with groups, for learners."""

import numpy as np

import rmab


def small_task(*, pooled=True, passive_zero=False, feedback="bandit", budget=2, sizes=False):
    """Six arms in two groups; the second has two states only, if sizes."""
    rng, groups = np.random.default_rng(5), [0, 1, 0, 0, 1, 1]
    kernels = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    if sizes:
        pair = rng.dirichlet(np.ones(2), size=(2, 2))
        arms = rmab.Arms.of_sizes([(kernels[0], pair)[g] for g in groups], groups=groups)
    else:
        arms = rmab.Arms(kernels[groups], groups=groups)
    rewards = rng.uniform(-1, 2, size=(4, 2, 3, 2))[:, groups] if pooled else rng.uniform(-1, 2, size=(4, 6, 3, 2))
    if passive_zero:
        rewards[..., 0] = 0.0
    problem = rmab.Problem(arms, [0, 1, 2, 0, 1, 1], budget, 4)
    declared = {"low": -1, "high": 2, "passive_zero": passive_zero, "feedback": feedback}
    task = rmab.Task.from_rewards(problem, rewards, **declared)
    assert task.view().pooled_rewards == pooled
    return task
