"""Softened plans by independent code: the objective written out, and the programme in CVXPY, solved by Clarabel."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.solvers.priced.blocks import Priced, soften_blocks


@dataclass(frozen=True)
class Case:
    """Blocks as `soften_blocks` takes them: kernels and reward by cell, start masses, budget, phases, beta."""

    kernels: FloatArray
    reward: FloatArray
    start: FloatArray
    budget: FloatArray
    phase_of: IntArray
    beta: float

    @property
    def uniform(self) -> FloatArray:
        return np.minimum(self.budget / self.start.sum(), 0.99)

    def cell(self, block: int, step: int) -> int:
        return block * (len(self.kernels) // len(self.start)) + int(self.phase_of[step])

    def solve(self, **options: object) -> Priced:
        tables = (self.kernels, self.reward, self.start, self.budget, self.beta)
        return soften_blocks(*tables, phase_of=self.phase_of, **options)  # type: ignore[arg-type]


def some_case(seed: int, beta: float | None = None, *, most: int = 4, plain: bool = False) -> Case:
    """Draw a small case; budgets of 0 and more than enough, kernels with zeros and unreachable states are common."""
    rng = np.random.default_rng(seed)
    blocks, states, horizon, phases = (int(rng.integers(1, top + 1)) for top in (most, most, most + 2, 2))
    kernels = rng.dirichlet(np.full(states, rng.choice([0.1, 1.0])), size=(blocks * phases, states, 2))
    if rng.random() < 0.3 and not plain:
        kernels = np.eye(states)[rng.integers(0, states, size=(blocks * phases, states, 2))]
    start = rng.dirichlet(np.ones(states), blocks) * rng.integers(1, 5, size=(blocks, 1))
    if rng.random() < 0.5:
        start = np.eye(states)[rng.integers(0, states, blocks)] * rng.integers(1, 5, size=(blocks, 1))
    budget = rng.uniform(0.05, 0.95, size=horizon) * start.sum()
    if not plain:
        budget[rng.random(horizon) < 0.15] = 0.0
        budget[rng.random(horizon) < 0.15] = start.sum()
    warmth = float(10.0 ** rng.uniform(-1, 1.5)) if beta is None else beta
    return Case(
        kernels, rng.normal(size=(blocks * phases, states, 2)), start, budget, rng.integers(0, phases, horizon), warmth
    )


def earned(case: Case, share: FloatArray) -> tuple[float, FloatArray]:
    """Return the objective of shares (C,H,S), entropy deducted, and what they use (H,), by following every block."""
    total, use = 0.0, np.zeros(case.budget.size)
    for c, first in enumerate(case.start):
        mass = first.copy()
        for h, rho in enumerate(case.uniform):
            part, cell = share[c, h], case.cell(c, h)
            pays = (1 - part) * case.reward[cell, :, 0] + part * case.reward[cell, :, 1]
            for chance, usual in ((part, rho), (1 - part, 1 - rho)):
                positive = np.where(chance > 0, chance, 1.0)
                pays = pays - np.where(chance > 0, chance * np.log(positive / max(usual, 1e-300)), 0.0) / case.beta
            total += float(mass @ pays)
            use[h] += mass @ part
            mass = (mass * (1 - part)) @ case.kernels[cell, :, 0] + (mass * part) @ case.kernels[cell, :, 1]
    return total, use


@dataclass(frozen=True)
class Answer:
    """Objective, masses (C,H,S,2) and prices (H,)."""

    value: float
    mass: FloatArray
    prices: FloatArray


def clarabel(case: Case) -> Answer:
    """Solve the programme over masses, as it is written, with exponential cones."""
    blocks, states = case.start.shape
    horizon, rules, gain = case.budget.size, [], 0.0
    mass = [[cp.Variable((states, 2), nonneg=True) for _ in range(horizon)] for _ in range(blocks)]
    limits = [sum(cp.sum(mass[c][h][:, 1]) for c in range(blocks)) <= case.budget[h] for h in range(horizon)]
    for c in range(blocks):
        arriving = case.start[c]
        for h, rho in enumerate(case.uniform):
            now, cell = mass[c][h], case.cell(c, h)
            rules.append(cp.sum(now, axis=1) == arriving)
            gain += cp.sum(cp.multiply(case.reward[cell], now))
            if rho == 0.0:
                rules.append(now[:, 1] == 0)
            else:
                usual = cp.sum(now, axis=1, keepdims=True) @ np.array([[1 - rho, rho]])
                gain -= cp.sum(cp.rel_entr(now, usual)) / case.beta
            arriving = sum(case.kernels[cell, :, a].T @ now[:, a] for a in range(2))
    problem = cp.Problem(cp.Maximize(gain), rules + limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    found = np.array([[np.maximum(one.value, 0.0) for one in row] for row in mass])
    return Answer(float(problem.value), found, np.array([float(np.squeeze(limit.dual_value)) for limit in limits]))
