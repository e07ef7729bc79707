"""Proofs of answers, in plain NumPy and Python: none of the library's own solvers is believed, nor its certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.special import rel_entr

import rmab
from rmab.common.arrays import FloatArray

ROUNDING = 1e-9


def require(holds: object, what: str) -> None:
    """Raise AssertionError unless it holds; also where Python leaves out `assert`."""
    if not holds:
        raise AssertionError(what)


def near(one: float, other: float, scale: float, what: str, slack: float = ROUNDING) -> None:
    """Require two numbers to be the same up to rounding of what is at stake."""
    off = abs(one - other)
    require(off <= slack * scale + 5e-324, f"{what}: {one!r} is not {other!r} (off by {off:.3g}, of {scale:.3g})")


def in_steps(table: FloatArray, plain: int, phase_of: Sequence[int]) -> FloatArray:
    """(N, H, ...) what a table has at every step: one of `plain` axes holds at all, one more axis is that of the phases."""
    return np.stack(
        [np.asarray(table)[:, int(k)] if np.ndim(table) > plain else np.asarray(table) for k in phase_of], axis=1
    )


def written_out(problem: rmab.Problem, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return kernels (N, H, S, 2, S) and reward (N, H, S, 2), step by step."""
    return in_steps(problem.arms.kernels, 4, problem.phase_of), in_steps(reward, 3, problem.phase_of)  # type: ignore[arg-type]


def in_phases(problem: rmab.Problem, reward: FloatArray) -> FloatArray:
    """Return the reward with the axis of phases that the problem has."""
    bare = problem.phases == 1 or reward.ndim == 4
    return reward if bare else np.repeat(reward[:, np.newaxis], problem.phases, axis=1)


def masses(start: FloatArray, states: int) -> FloatArray:
    """(N, S) the probability of every start state, from states (N,) or as it is."""
    return np.asarray(start) if np.ndim(start) == 2 else np.array([[float(s == y) for y in range(states)] for s in start])


def budgets(budget: Any, horizon: int) -> FloatArray:
    """(H,) the budget of every step."""
    return np.array([float(budget)] * horizon) if np.ndim(budget) == 0 else np.asarray(budget, dtype=float)


def check_occupancy(mass: FloatArray, kernel: FloatArray, law: FloatArray, budget: FloatArray, many: FloatArray) -> None:
    """Require mass (N,H,S,2) to flow through kernel (N,H,S,2,S) from law (N,S), within the budget (H,) of all arms."""
    count, horizon, states, _ = mass.shape
    require(np.isfinite(mass).all() and mass.min() >= -ROUNDING, f"mass: least {mass.min():.3g}")
    for h in range(horizon):
        off = float(np.abs(mass[:, h].sum(axis=2) - law).max())
        require(off <= 1e-8, f"flow: step {h} misses the law of the states by {off:.3g}")
        law = np.einsum("nsa,nsay->ny", mass[:, h], np.broadcast_to(kernel[:, h], (count, states, 2, states)))
    used = np.einsum("n,nhs->h", many, mass[..., 1])
    over = float(((used - budget) / np.maximum(budget, 1.0)).max())
    require(over <= 1e-8, f"budget: exceeded by {over:.3g}, of itself where above 1")


def induction(kernel: FloatArray, reward: FloatArray, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One arm, kernel (H,S,2,S), reward (H,S,2): values (H+1,S), and Q (H,S,2) where activating costs prices (H,)."""
    horizon, states = prices.size, kernel.shape[-1]
    values, worth = np.zeros((horizon + 1, states)), np.zeros((horizon, states, 2))
    for h in reversed(range(horizon)):
        for s in range(states):
            for a in range(2):
                ahead = sum(kernel[h, s, a, y] * values[h + 1, y] for y in range(states))
                worth[h, s, a] = reward[h, s, a] - a * prices[h] + ahead
            values[h, s] = max(worth[h, s])
    return values, worth


def best_row(low: FloatArray, high: FloatArray, values: FloatArray) -> float:
    """Return the most that a distribution between low and high (S,) can expect of the values (S,), greedily."""
    left, total = 1.0 - float(low.sum()), float(low @ values)
    for y in np.argsort(-values):
        more = min(max(left, 0.0), float(high[y] - low[y]))
        total, left = total + more * float(values[y]), left - more
    return total


def optimistic_value(low: FloatArray, high: FloatArray, reward: FloatArray, start: FloatArray, prices: FloatArray) -> float:
    """Return the most that an arm earns over plans and kernels in boxes (H,S,2,S), reward (H,S,2), from start (S,).

    Activating costs prices (H,).
    """
    values = np.zeros(low.shape[-1])
    for h in reversed(range(prices.size)):
        worth = [
            max(reward[h, s, a] - a * prices[h] + best_row(low[h, s, a], high[h, s, a], values) for a in range(2))
            for s in range(low.shape[-1])
        ]
        values = np.array(worth)
    return float(start @ values)


def stake(problem: rmab.Problem, reward: FloatArray) -> float:
    """Return the most that could be earned or lost in an episode: what rounding is relative to."""
    return float(np.abs(reward).max()) * problem.arms.count * problem.horizon


def check_fluid(problem: rmab.Problem, reward: FloatArray, plan: rmab.solvers.Fluid) -> None:
    """Require the plan to be feasible, to earn what it says, and its bound to be the dual value of its prices."""
    arms, scale = problem.arms, stake(problem, reward)
    kernel, gains = written_out(problem, reward)
    budget, law = budgets(problem.budget, problem.horizon), masses(problem.start, arms.states)
    occupancy = plan.occupancy
    check_occupancy(occupancy, kernel, law, budget, np.ones(arms.count))
    near(plan.value, float((occupancy * gains).sum()), scale, "value")
    require((plan.prices >= 0).all(), "prices: negative")
    values = [float(law[n] @ induction(kernel[n], gains[n], plan.prices)[0][0]) for n in range(arms.count)]
    spent = float(budget @ plan.prices)
    near(plan.bound, sum(values) + spent, scale + spent, "bound")
    require(plan.bound >= plan.value - ROUNDING * scale, f"bound {plan.bound} below value {plan.value}")
    require(plan.gap <= 1e-6, f"gap {plan.gap}")
    # The gap in its own units: what decisions can change, counted from the least reward of each arm at each step.
    wide = float((gains.max(axis=(2, 3)) - gains.min(axis=(2, 3))).max())
    least = float(gains.min(axis=(2, 3)).sum())
    room = 1.1e-6 * max(plan.bound - least, wide) + ROUNDING * scale
    require(plan.bound - plan.value <= room, f"bound {plan.bound} is far above value {plan.value}")


def check_softened(problem: rmab.Problem, reward: FloatArray, plan: rmab.solvers.SoftPlan) -> None:
    """Require the plan to be feasible, to be worth what it says, and its bound to be the dual value of its prices."""
    arms = problem.arms
    scale = stake(problem, reward) + arms.count * problem.horizon / plan.beta  # entropies are rounded, too
    kernel, gains = written_out(problem, reward)
    budget, law = budgets(problem.budget, problem.horizon), masses(problem.start, arms.states)
    occupancy, rate = plan.occupancy, np.minimum(budget / arms.count, 0.99)
    check_occupancy(occupancy, kernel, law, budget * (1 + 1e-9), np.ones(arms.count))
    mass = occupancy.sum(axis=3, keepdims=True)
    shares = np.divide(occupancy, mass, out=np.zeros_like(occupancy), where=mass > 0)  # of the least masses, products are 0
    entropy = (mass * rel_entr(shares, np.stack([1 - rate, rate], axis=1)[:, np.newaxis])).sum()
    value = float((occupancy * gains).sum() - entropy / plan.beta)
    require((plan.prices >= 0).all(), "prices: negative")
    ahead = np.zeros((arms.count, arms.states))
    for h in range(problem.horizon - 1, -1, -1):
        worth = gains[:, h] + np.einsum("nsay,ny->nsa", kernel[:, h], ahead) - plan.prices[h] * np.arange(2)
        with np.errstate(divide="ignore"):
            ahead = np.logaddexp(np.log(1 - rate[h]) + plan.beta * worth[..., 0],
                                 np.log(rate[h]) + plan.beta * worth[..., 1]) / plan.beta  # fmt: skip
    spent = float(budget @ plan.prices)
    near(plan.bound, float((law * ahead).sum()) + spent, scale + spent, "bound")
    wide = float((gains.max(axis=(2, 3)) - gains.min(axis=(2, 3))).max())
    room = 1.1e-6 * max(plan.bound - float(gains.min(axis=(2, 3)).sum()), wide) + ROUNDING * scale
    require(abs(plan.value - value) <= room, f"value {plan.value}, but the plan is worth {value}")
    require(plan.bound - value <= room and plan.value <= plan.bound, f"bound {plan.bound} is far above value {value}")
    require(0 <= plan.gap <= 1e-6, f"gap {plan.gap}")


UNDECIDED = (3, 4)  # of SciPy's LP solver: numerical difficulties, and unbounded, which masses never are: it proves nothing


def fluid_by_linprog(problem: rmab.Problem, reward: FloatArray) -> float | None:
    """Return the optimum of the fluid LP by SciPy, in units of the largest reward."""
    arms, horizon = problem.arms, problem.horizon
    count, states = arms.count, arms.states
    kernel, gains = written_out(problem, reward)
    law = masses(problem.start, states)
    index = np.arange(count * horizon * states * 2).reshape(count, horizon, states, 2)
    flow, right = np.zeros((count * horizon * states, index.size)), np.zeros(count * horizon * states)
    for n, h, s in np.ndindex(count, horizon, states):
        row = (n * horizon + h) * states + s
        flow[row, index[n, h, s]] = 1.0
        if h == 0:
            right[row] = law[n, s]
        else:
            flow[row, index[n, h - 1].reshape(-1)] -= kernel[n, h - 1, :, :, s].reshape(-1)
    spent = np.zeros((horizon, index.size))
    for h in range(horizon):
        spent[h, index[:, h, :, 1].reshape(-1)] = 1.0
    scale, limit = float(np.abs(reward).max()) or 1.0, budgets(problem.budget, horizon)
    answer = linprog(-gains.reshape(-1) / scale, A_ub=spent, b_ub=limit, A_eq=flow, b_eq=right, method="highs")
    if answer.status in UNDECIDED:
        return None
    require(answer.success, f"linprog: {answer.message}")
    return -float(answer.fun)
