"""Slow, obvious twins of the compiled code, in plain Python and NumPy."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray
from rmab.model.problem import Problem
from rmab.solvers.projection.compiled.program import Program

WORD = 2**64 - 1


def xoshiro(words: Iterable[int | np.uint64]) -> Iterator[float]:
    """Uniform numbers of xoshiro256++ from four words, as published by Blackman & Vigna."""

    def rotl(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & WORD

    s = [int(word) for word in words]
    while True:
        result = (rotl((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        t = (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        yield (result >> 11) * 2.0**-53


def top(index: ArrayLike, budget: int, rule: str = "fill") -> BoolArray:
    """Return the arms that a 'top' policy activates, where all indices differ."""
    values = np.asarray(index)
    active = np.zeros(len(values), dtype=bool)
    for n in sorted(range(len(values)), key=lambda n: -values[n])[:budget]:
        active[n] = rule == "fill" or values[n] > 0
    return active


def episode(
    problem: Problem, table: FloatArray, budget: int, rule: str, reward: FloatArray, words: NDArray[np.uint64]
) -> tuple[list[list[int]], list[list[bool]], float]:
    """States, actions and reward of one episode of a 'top' policy (N, H, S) without ties; one draw per arm and step."""
    draws, now, total = xoshiro(words), [int(s) for s in problem.start], 0.0
    states, actions = [list(now)], []
    for h in range(problem.horizon):
        active = top([table[n, h, s] for n, s in enumerate(now)], budget, rule)
        actions.append([bool(a) for a in active])
        for n, s in enumerate(now):
            total += reward[n, s, int(active[n])]
            row = problem.arms.kernels[n, s, int(active[n])]
            now[n] = successor(row, next(draws))
        states.append(list(now))
    return states, actions, total


def successor(row: FloatArray, point: float) -> int:
    """Return the state in whose stretch of [0, 1) the point lies; the last possible state takes what rounding leaves."""
    reached = 0.0
    for s, p in enumerate(row):
        reached += p
        if point < reached:
            return s
    return int(np.flatnonzero(row)[-1])


def joint_states(problem: Problem) -> list[tuple[int, ...]]:
    """Return all S^N joint states."""
    return list(product(range(problem.arms.states), repeat=problem.arms.count))


def successors(problem: Problem, joint: tuple[int, ...], active: ArrayLike) -> FloatArray:
    """(S^N,) probability of every joint state, in the order of joint_states, one step after `joint`."""
    law = np.ones(1)
    for n, (s, a) in enumerate(zip(joint, np.asarray(active, dtype=int), strict=True)):
        law = np.outer(law, problem.arms.kernels[n, s, a]).ravel()
    return law


def earned(reward: FloatArray, joint: tuple[int, ...], active: ArrayLike) -> float:
    """Return the reward of all arms at one step."""
    return float(sum(reward[n, s, int(a)] for n, (s, a) in enumerate(zip(joint, np.asarray(active), strict=True))))


def expected_reward(problem: Problem, table: FloatArray, budget: int, rule: str, reward: FloatArray) -> float:
    """Return the exact expected reward of a 'top' policy (N, H, S) without ties: the joint law, step by step."""
    everything = joint_states(problem)
    law = {tuple(int(s) for s in problem.start): 1.0}
    total = 0.0
    for h in range(problem.horizon):
        ahead = np.zeros(len(everything))
        for joint, mass in law.items():
            active = top([table[n, h, s] for n, s in enumerate(joint)], budget, rule)
            total += mass * earned(reward, joint, active)
            ahead += mass * successors(problem, joint, active)
        law = {joint: mass for joint, mass in zip(everything, ahead, strict=True) if mass > 0}
    return total


def optimal_value(problem: Problem, reward: FloatArray) -> float:
    """Return the exact optimum under the hard budget: dynamic programming over joint states and all allowed sets of arms."""
    everything, count = joint_states(problem), problem.arms.count
    actions = [
        np.isin(np.arange(count), chosen) for b in range(problem.budget + 1) for chosen in combinations(range(count), b)
    ]
    moves = [[(earned(reward, joint, a), successors(problem, joint, a)) for a in actions] for joint in everything]
    value = np.zeros(len(everything))
    for _ in range(problem.horizon):
        value = np.array([max(gain + law @ value for gain, law in options) for options in moves])
    return float(value[everything.index(tuple(int(s) for s in problem.start))])


def backward(kernel: FloatArray, reward: FloatArray, horizon: int) -> tuple[FloatArray, FloatArray]:
    """One arm alone, kernel (S, 2, S) and reward (S, 2) or (H, S, 2): optimal V (H+1, S) and Q (H, S, 2)."""
    gains = np.broadcast_to(reward, (horizon, *kernel.shape[:2]))
    V, Q = np.zeros((horizon + 1, len(kernel))), np.zeros((horizon, len(kernel), 2))
    for h in reversed(range(horizon)):
        Q[h] = gains[h] + kernel @ V[h + 1]
        V[h] = Q[h].max(axis=1)
    return V, Q


def occupancy(kernel: FloatArray, start: int, policy: FloatArray) -> FloatArray:
    """One arm alone, kernel (S, 2, S): mu (H, S, 2) of the policy (H, S), the probability of being active."""
    law, mu = np.eye(len(kernel))[start], np.zeros((*policy.shape, 2))
    for h, chance in enumerate(policy):
        mu[h] = law[:, None] * np.stack([1 - chance, chance], axis=1)
        law = np.einsum("sa,say->y", mu[h], kernel)
    return mu


def systematic(index: FloatArray, budget: int, draws: Iterator[float]) -> BoolArray:
    """Dependent rounding: shuffle, lay the probabilities end to end, and take those that hold u, u+1, u+2, ..."""
    point, order = next(draws), np.arange(len(index))
    for i in range(len(order)):
        j = i + int(next(draws) * (len(order) - i))
        order[[i, j]] = order[[j, i]]
    ends = np.cumsum(index[order] * min(1.0, budget / max(index.sum(), 1e-300)))
    active = np.zeros(len(index), dtype=bool)
    active[order] = np.ceil(ends - point) > np.ceil(np.concatenate([[0.0], ends[:-1]]) - point)
    return active


def bisect(too_low: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray, steps: int) -> FloatArray:
    """Return, place by place, where `too_low` turns false between low and high."""
    for _ in range(steps):
        middle = (low + high) / 2
        below = too_low(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def box_rows(log_q: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """(..., S) distributions of least sum p ln(p/q) between low and high: clip(c q, low, high), by bisection on ln c."""

    def rows(log_c: FloatArray) -> FloatArray:
        return np.clip(np.exp(np.minimum(log_c[..., None] + log_q, 1.0)), low, high)

    first = -log_q.max(axis=-1) - 100.0
    last = -np.where(high > 0, log_q, np.inf).min(axis=-1) + 1.0
    return rows(bisect(lambda log_c: rows(log_c).sum(axis=-1) < 1, first, last, 100))


def ball_rows(log_q: FloatArray, centre: FloatArray, radius: FloatArray) -> FloatArray:
    """(..., S) distributions of least sum p ln(p/q) within L1 distance radius of centre: clip(centre, c q / t, c q t)."""

    def rows(log_t: FloatArray) -> FloatArray:
        def scaled(log_c: FloatArray) -> FloatArray:
            x = log_c[..., None] + log_q
            ends = (np.exp(np.minimum(x + sign * log_t[..., None], 1.0)) for sign in (-1, 1))
            return np.clip(centre, *ends)

        first = -log_q.max(axis=-1) - log_t - 100.0
        last = -np.where(np.isfinite(log_q), log_q, np.inf).min(axis=-1) + log_t + 1.0
        return scaled(bisect(lambda log_c: scaled(log_c).sum(axis=-1) < 1, first, last, 60))

    start = np.zeros(log_q.shape[:-1])
    inside = np.abs(rows(start) - centre).sum(axis=-1) <= radius
    log_t = bisect(lambda t: np.abs(rows(t) - centre).sum(axis=-1) > radius, start, start + 800.0, 60)
    return rows(np.where(inside, 0.0, log_t))


@dataclass(frozen=True)
class Dual:
    """What a dual point stands for: value f, gradient (N,H,S) per arm, kernel p, mass m, phi, and active mass used (H,)."""

    value: float
    gradient: FloatArray
    used: FloatArray
    kernel: FloatArray
    mass: FloatArray
    phi: FloatArray


def at_steps(program: Program, table: np.ndarray) -> np.ndarray:
    """(N, H, ...) what a table of cells (N*K, ...) holds for every step."""
    return table.reshape(program.reach.shape[0], program.phases, *table.shape[1:])[:, program.phase]


def projection_dual(program: Program, budget: FloatArray, potentials: FloatArray, prices: FloatArray) -> Dual:
    """Evaluate the reduced dual of the projection at potentials (N,H,S) and prices (H,), straight from its definition.

    Where the budget is 0 nobody is active, at any price. Nodes to which no kernel of the sets leads carry nothing.
    """
    arms, horizon, states = potentials.shape
    ahead = np.concatenate([potentials[:, 1:], np.zeros((arms, 1, states))], axis=1)
    possible = np.zeros(program.low.shape, dtype=bool)
    for c, s, a in np.ndindex(program.counts.shape):
        possible[c, s, a, program.successors[c, s, a, : program.counts[c, s, a]]] = True
    with np.errstate(divide="ignore", invalid="ignore"):
        log_q = np.where(at_steps(program, possible), np.log(program.reference) + ahead[:, :, None, None], -np.inf)
        low, high = at_steps(program, program.low), at_steps(program, np.where(possible, program.high, 0.0))
        kernel = ball_rows(log_q, low, at_steps(program, program.radius)) if program.ball else box_rows(log_q, low, high)
        phi = np.where(kernel > 0, kernel * (np.log(kernel) - log_q), 0.0).sum(axis=4)
    exponent = -prices[:, None, None] * np.arange(2) * program.cost[:, None, None, None] - potentials[..., None] - phi
    mass = np.exp(np.where(program.reach[..., None], exponent, -np.inf))
    mass[:, budget == 0, :, 1] = 0.0
    inflow = np.zeros((arms, horizon, states))
    inflow[:, 0] = program.start
    inflow[:, 1:] = np.einsum("nhsa,nhsay->nhy", mass, kernel)[:, :-1]
    begin = (program.start * potentials[:, 0]).sum(axis=1)
    value = program.weights @ (mass.sum(axis=(1, 2, 3)) + begin) + budget @ prices
    used = np.einsum("n,nhs->h", program.weights * program.cost, mass[..., 1])
    return Dual(float(value), inflow - mass.sum(axis=3), used, kernel, mass, phi)
