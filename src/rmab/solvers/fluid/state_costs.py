"""Costs that depend on the state, as masses: the weight of an arm changes with its state.

An arm that costs c(s) in state s weighs c(s) there, so that the active mass is the cost of the active arms in any
states. A kernel moves weights instead of arms, P(s,a,y) c(y) / c(s), and no longer preserves their sum; a reward is per
unit of weight, r(s,a) / c(s). This is a change of variables: the LP is the same, values, advantages and prices are per unit
of cost, and all solvers apply unchanged. If costs depend on the phase, the weights of step h + 1 are those of its
phase, so that a phase here is one with its successor.

A constant is no longer the same in all states: rewards are counted from the least of each arm and phase beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.model import Problem, by_step, cells, table_of
from rmab.model.costs import ROUNDING


@dataclass(frozen=True, eq=False)
class StateCosts(ReadOnly):
    """Further data of C blocks whose weights depend on the state.

    cost (C, K, S) the weight of an arm; least (C, K) the origin of rewards; arms (C,) their number; barred
    (C, H, S) where an activation costs more than the budget; span  the widest range of one arm's rewards.
    """

    cost: FloatArray
    least: FloatArray
    arms: FloatArray
    barred: BoolArray
    span: float

    @property
    def most(self) -> float:
        """The largest mass of all arms together, in any states."""
        return float(self.arms @ self.cost.max(axis=(1, 2)))

    def join(self, place: IntArray, of: IntArray) -> StateCosts:
        """Return the data of joined blocks: place (C,) the new number of each, of (D,) one of the old ones for each."""
        arms = frozen(np.bincount(place, weights=self.arms).astype(np.float64))
        return StateCosts(frozen(self.cost[of]), frozen(self.least[of]), arms, frozen(self.barred[of]), self.span)

    def base(self, phase_of: IntArray, discounts: FloatArray) -> float:
        """Return the sum of the least rewards in an episode, discounted (H,)."""
        return float(discounts @ (self.arms @ self.least)[phase_of])


def like_arms(problem: Problem, weights: FloatArray, reward: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the first arm of every block (C,) and the block of every arm (N,): same group, costs and reward (N*K,S,2)."""
    rows = [one.reshape(problem.arms.count, -1) for one in (weights, reward)]
    same = [np.unique(one, axis=0, return_inverse=True)[1].reshape(-1) for one in rows]
    keys = np.column_stack([problem.arms.group_of, *same])
    _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, frozen(block_of.reshape(-1))


def weigh(
    problem: Problem, weights: FloatArray, reward: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], FloatArray, IntArray, IntArray, StateCosts]:
    """Return tables by cell, start masses (C, S), the block of every arm (N,), phases (H,), and further data.

    The tables are kernels (C*K,S,2,S), discounted, and rewards (C*K,S,2).
    """
    arms = problem.arms
    first, block_of = like_arms(problem, weights, reward)
    costs = table_of(weights[first], problem.phases, arms.states)
    following = np.append(problem.phase_of[1:], problem.phase_of[-1:])
    barred = costs[:, problem.phase_of] > problem.budgets[:, np.newaxis] * (1.0 + ROUNDING)
    barred &= problem.budgets[:, np.newaxis] > 0  # with budget 0 there is nothing to plan
    keys = np.column_stack([problem.phase_of, following, barred.sum(axis=(0, 2))])  # the most expensive are barred first
    _, at, phase_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    now, later, out = problem.phase_of[at], following[at], barred[:, at, :, np.newaxis]
    here, there = costs[:, now], costs[:, later]
    kernels = by_step(cells(arms.group_kernels[arms.group_of[first]], problem.phases), first.size, now)
    moved = kernels * problem.discount * there[:, :, np.newaxis, np.newaxis] / here[..., np.newaxis, np.newaxis]
    pays = reward.reshape(arms.count, -1, arms.states, 2)[first][:, now]
    pays = np.where(out, pays[..., :1], pays)
    least = pays.min(axis=(2, 3))
    paid = (pays - least[..., np.newaxis, np.newaxis]) / here[..., np.newaxis]
    moved = np.where(out[..., np.newaxis], moved[:, :, :, :1], moved)
    start = np.zeros((first.size, arms.states))
    order = np.lexsort(problem.start_masses.T)  # the order of arms must not change the sums
    np.add.at(start, block_of[order], problem.start_masses[order])
    numbers = np.bincount(block_of).astype(np.float64)
    span = float(np.ptp(pays, axis=(2, 3)).max())
    rest = StateCosts(frozen(here), frozen(least), frozen(numbers), frozen(barred), span)
    tables = (moved.reshape(-1, arms.states, 2, arms.states), paid.reshape(-1, arms.states, 2))
    return tables, start * costs[:, problem.phase_of[0]], block_of, frozen(phase_of.reshape(-1)), rest
