"""Problems with phases, budgets by step and start probabilities; and slow twins that look every step up by itself."""

from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

import rmab
from reference import top
from rmab.common.arrays import FloatArray


def timed_problem(
    seed: int, arms: int = 3, phases: int = 2, states: int = 2, horizon: int = 4, **changes: Any
) -> tuple[rmab.Problem, FloatArray]:
    """Return a random problem with phases in any order, budgets by step and start probabilities, and a reward."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.ones(states), size=(arms, phases, states, 2))
    kernels[rng.random(kernels.shape) < 0.2] = 0.0
    kernels[..., 0] += kernels.sum(axis=-1) == 0
    kernels /= kernels.sum(axis=-1, keepdims=True)
    phase_of = np.concatenate([np.arange(phases), rng.integers(0, phases, size=max(horizon - phases, 0))])[:horizon]
    given: dict[str, Any] = {
        "start": rng.dirichlet(np.ones(states), size=arms),
        "budget": rng.integers(0, arms + 1, size=horizon),
        "phase_of": rng.permutation(phase_of),
        "groups": None,
        **changes,
    }
    model = rmab.Arms(kernels, groups=given.pop("groups"))
    return rmab.Problem(model, horizon=horizon, **given), rng.uniform(-1, 2, size=(arms, phases, states, 2))


def by_step(problem: rmab.Problem, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return kernels (N, H, S, 2, S) and reward (N, H, S, 2), written out for every step."""
    arms = problem.arms
    if problem.phases == 1:
        return (
            np.stack([arms.kernels] * problem.horizon, axis=1),
            np.stack([np.asarray(reward, dtype=float)] * problem.horizon, axis=1),
        )
    steps = problem.phase_of.tolist()
    return np.stack([arms.kernels[:, k] for k in steps], axis=1), np.stack([reward[:, k] for k in steps], axis=1)


def starts(problem: rmab.Problem) -> dict[tuple[int, ...], float]:
    """Return the probability of every joint state in which an episode may begin."""
    law, every = {}, product(range(problem.arms.states), repeat=problem.arms.count)
    for joint in every:
        if problem.start.ndim == 1:
            chance = float(joint == tuple(problem.start.tolist()))
        else:
            chance = float(np.prod([problem.start[n, s] for n, s in enumerate(joint)]))
        if chance > 0:
            law[joint] = chance
    return law


def limits(problem: rmab.Problem) -> list[int]:
    """Return the budget of every step."""
    return [problem.budget] * problem.horizon if isinstance(problem.budget, int) else problem.budget.tolist()


def expected(problem: rmab.Problem, table: FloatArray, rule: str, reward: FloatArray) -> float:
    """Return what a 'top' policy (N, H, S) without ties earns, exactly: the joint law, step by step."""
    kernels, gains = by_step(problem, reward)
    law, total, count = starts(problem), 0.0, problem.arms.count
    for h, budget in enumerate(limits(problem)):
        ahead: dict[tuple[int, ...], float] = {}
        for joint, mass in law.items():
            active = top([table[n, h, s] for n, s in enumerate(joint)], budget, rule)
            total += mass * sum(gains[n, h, joint[n], int(active[n])] for n in range(count))
            rows = [kernels[n, h, joint[n], int(active[n])] for n in range(count)]
            for to in product(*(np.flatnonzero(row).tolist() for row in rows)):
                chance = mass * float(np.prod([row[y] for row, y in zip(rows, to, strict=True)]))
                ahead[to] = ahead.get(to, 0.0) + chance
        law = ahead
    return total


def optimum(problem: rmab.Problem, reward: FloatArray) -> float:
    """Return the best that any policy earns under the hard budget: dynamic programming over joint states and sets."""
    kernels, gains = by_step(problem, reward)
    count, every = problem.arms.count, list(product(range(problem.arms.states), repeat=problem.arms.count))
    value = dict.fromkeys(every, 0.0)
    for h in reversed(range(problem.horizon)):
        budget, now = limits(problem)[h], {}
        for joint in every:
            best = -np.inf
            for chosen in (c for b in range(budget + 1) for c in combinations(range(count), b)):
                acts = [int(n in chosen) for n in range(count)]
                law = np.ones(1)
                for n in range(count):
                    law = np.outer(law, kernels[n, h, joint[n], acts[n]]).ravel()
                later = float(law @ [value[to] for to in every])
                best = max(best, later + sum(gains[n, h, joint[n], acts[n]] for n in range(count)))
            now[joint] = best
        value = now
    return sum(chance * value[joint] for joint, chance in starts(problem).items())


def fluid_value(problem: rmab.Problem, reward: FloatArray, boxes: tuple[FloatArray, FloatArray] | None = None) -> float:
    """Return the value of the fluid LP by SciPy, arm by arm and step by step.

    Variables are flows z[n, h, s, a, y]. Kernels may be chosen within boxes low, high (N, H, S, 2, S); by default they are
    the problem's.
    """
    kernels, gains = by_step(problem, reward)
    low, high = (kernels, kernels) if boxes is None else boxes
    count, horizon, states = kernels.shape[:3]
    place = np.arange(kernels.size).reshape(kernels.shape)
    cost = -np.repeat(gains[..., np.newaxis], states, axis=4).ravel()
    masses = np.eye(states)[problem.start] if problem.start.ndim == 1 else problem.start
    equal, right, less, most = [], [], [], []
    for n, h, s in product(range(count), range(horizon), range(states)):
        row = np.zeros(kernels.size)
        row[place[n, h, s].ravel()] = 1.0
        if h > 0:
            row[place[n, h - 1, :, :, s].ravel()] -= 1.0
        equal.append(row)
        right.append(masses[n, s] if h == 0 else 0.0)
        for a, y in product(range(2), range(states)):
            for sign, bound in ((1.0, high), (-1.0, low)):  # z <= high m, z >= low m
                row = np.zeros(kernels.size)
                row[place[n, h, s, a]] = -sign * bound[n, h, s, a, y]
                row[place[n, h, s, a, y]] += sign
                less.append(row)
                most.append(0.0)
    for h, budget in enumerate(limits(problem)):
        row = np.zeros(kernels.size)
        row[place[:, h, :, 1].ravel()] = 1.0
        less.append(row)
        most.append(float(budget))
    found = linprog(cost, np.array(less), most, np.array(equal), right, method="highs")
    assert found.status == 0, found.message
    return -float(found.fun)


def rewards_of(problem: rmab.Problem, seed: int, episodes: int = 4) -> rmab.Task:
    """Return a task with random rewards in [-1, 2], by phase."""
    arms, rng = problem.arms, np.random.default_rng(seed)
    rewards = rng.uniform(-1, 2, size=(episodes, arms.count, problem.phases, arms.states, 2))
    if arms.groups is not None:
        rewards = rewards[:, arms.representatives[arms.groups]]
    return rmab.Task.from_rewards(problem, rewards, low=-1, high=2)


def certificate(problem: rmab.Problem, reward: FloatArray, plan: rmab.solvers.Fluid) -> tuple[float, float]:
    """Return what the plan's occupancy earns, after checks of flow, start and budget; and the bound of its prices."""
    kernels, gains = by_step(problem, reward)
    mass = plan.occupancy
    np.testing.assert_allclose(mass[:, 0].sum(axis=2), problem.start_masses, atol=1e-12)
    for h in range(1, problem.horizon):
        flow = np.einsum("nsa,nsay->ny", mass[:, h - 1], kernels[:, h - 1])
        np.testing.assert_allclose(mass[:, h].sum(axis=2), flow, atol=1e-12)
    assert (mass >= 0).all()
    assert (mass[..., 1].sum(axis=(0, 2)) <= np.array(limits(problem)) + 1e-9).all()
    assert (plan.prices >= 0).all()
    value = np.zeros((problem.arms.count, problem.arms.states))
    for h in reversed(range(problem.horizon)):
        worth = gains[:, h] - plan.prices[h] * np.array([0.0, 1.0]) + np.einsum("nsay,ny->nsa", kernels[:, h], value)
        value = worth.max(axis=2)
    bound = float((problem.start_masses * value).sum() + np.array(limits(problem)) @ plan.prices)
    return float((mass * gains).sum()), bound
