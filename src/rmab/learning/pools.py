"""Pooling of arms: arms of a group share dynamics, arms of a payoff share rewards, arms of a block share both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common import BoolArray, FloatArray, IntArray, cached_property, frozen, sealed
from rmab.learning.compiled.observing import pool
from rmab.model import View, by_step, cells, masses_of, split_cells
from rmab.play import Feedback, Policy
from rmab.solvers.transitions import TransitionSets

NO_MASS = 1e-12  # states with less mass have index 0, as the paper's index is not defined there


@dataclass(frozen=True, eq=False, repr=False)
class Observations:
    """Observations of one episode, pooled.

    Parameters
    ----------
    counts : (G, S, 2, S) int array
        Transitions of all arms of a group, in a phase.
    values : (R, S, 2) float array
        Reward of a pair, in a phase, mapped to [0, 1]; NaN if not revealed.
    visits : (R, S, 2) float array
        Visits of a pair, in a phase, per arm of the payoff.
    """

    counts: IntArray
    values: FloatArray
    visits: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Pools:
    """Arms pooled as far as a view declares them identical: in groups, payoffs and blocks.

    What is learned has a first axis of cells (`rmab.model.time`): G counts the groups in every phase, R the payoffs in every
    phase. With one phase, cells are groups and payoffs.

    Parameters
    ----------
    view : View
        The view.
    group_of, payoff_of, block_of : (N,) int arrays
        Group (dynamics), payoff (rewards) and block (plan) of every arm. A block has one group, payoff and start.
    group, payoff : (C * K,) int arrays
        Cell of the dynamics, and of the rewards, of every block in every phase.
    start : (C,) int array, or (C, S) float array
        Start state of every block, or the probability of every state.
    weights : (C,) float array
        The number of arms of every block.
    cost : (C,) float array
        Cost of activating an arm of each block, relative to the mean over all arms; 1 if all cost the same.
    real : (G, S) bool array
        The states that a group has.
    support : (G, S, 2, S) bool array
        Transitions that are not declared impossible.
    zero : (R, S, 2) bool array
        Pairs whose reward is known to be zero.
    floor : float
        A reward of zero, after rewards are mapped to [0, 1].
    """

    view: View
    group_of: IntArray
    payoff_of: IntArray
    block_of: IntArray
    group: IntArray
    payoff: IntArray
    start: IntArray | FloatArray
    weights: FloatArray
    cost: FloatArray
    real: BoolArray
    support: BoolArray
    zero: BoolArray
    floor: float

    @classmethod
    @lru_cache(maxsize=16)  # a view is immutable, and used several times an episode
    def of(cls, view: View) -> Pools:
        """Pool the arms of a view as far as it declares them identical."""
        alone = np.arange(view.arms)
        groups = alone if view.groups is None else view.groups
        payoffs = groups if view.pooled_rewards else alone
        cost = np.ones(view.arms) if view.weights is None else view.weights / view.weights.mean()
        keys = np.column_stack([groups, payoffs, view.start, cost])
        _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        block_of = block_of.reshape(-1)
        member = np.unique(groups, return_index=True)[1]
        real = np.repeat(np.arange(view.states) < view.real_states[member, np.newaxis], view.phases, axis=0)  # (G, S)
        support = np.broadcast_to(real[:, np.newaxis, np.newaxis, :], (len(real), view.states, 2, view.states)).copy()
        if view.support is not None:
            support &= cells(view.support[view.support_of[member]], view.phases)
        support |= ~real[:, :, np.newaxis, np.newaxis] & np.eye(view.states, dtype=bool)[:, np.newaxis]  # padding stays put
        zero = np.zeros(((int(payoffs.max()) + 1) * view.phases, view.states, 2), dtype=bool)
        zero[..., 0] = view.passive_zero
        floor = -view.low / (view.high - view.low)
        weights = np.bincount(block_of).astype(np.float64)
        phase = np.arange(view.phases)
        group, payoff = ((of[first, np.newaxis] * view.phases + phase).reshape(-1) for of in (groups, payoffs))
        blocks = (group, payoff, view.start[first], weights, cost[first])
        pools = cls(view, groups, payoffs, block_of, *blocks, real, support, zero, floor)
        for one in fields(pools):
            if isinstance(value := getattr(pools, one.name), np.ndarray):
                frozen(value)
        return pools

    @cached_property
    def begins(self) -> FloatArray:
        """(C, S) the probability of every start state."""
        return frozen(masses_of(self.start, self.view.states))

    @cached_property
    def masses(self) -> FloatArray:
        """(C, S) the mass of every block in its start states: an arm of cost c counts as c arms with rewards 1/c each."""
        return frozen(self.begins * (self.weights * self.cost)[:, np.newaxis])

    @cached_property
    def budget(self) -> FloatArray:
        """(H,) the mass that may be active at every step, or must be if the budget is exact."""
        view = self.view
        limits = view.slots if view.weights is None else view.budgets / view.weights.mean()
        return frozen(limits.astype(np.float64))

    def pays(self, values: FloatArray) -> FloatArray:
        """(C * K, S, 2) the reward of a unit of mass in every phase, from values (R, S, 2)."""
        paid: FloatArray = values[self.payoff]
        return paid if self.view.weights is None else paid / self._by_cell

    def visits(self, masses: FloatArray) -> FloatArray:
        """(C * K, S, 2) visits of arms, from those of mass."""
        return masses if self.view.weights is None else masses / self._by_cell

    @property
    def _by_cell(self) -> FloatArray:
        return np.repeat(self.cost, self.view.phases)[:, np.newaxis, np.newaxis]

    @property
    def group_of_payoff(self) -> IntArray:
        """(R,) the group of each payoff, in its phase."""
        groups = self.group_of[np.unique(self.payoff_of, return_index=True)[1]]
        return np.asarray((groups[:, np.newaxis] * self.view.phases + np.arange(self.view.phases)).reshape(-1))

    def by_block(self, values: NDArray[Any]) -> NDArray[Any]:
        """(C, 1 or H, S, 2) values of every block, from those of every payoff (R, S, 2); (C, H, S, 2) stays as it is."""
        return values if values.ndim == 4 else by_step(values[self.payoff], self.weights.size, self.view.steps)

    def of_arms(self, table: NDArray[Any], part_of: IntArray) -> NDArray[Any]:
        """(N, ...), or (N, K, ...) with phases: a table by arm, from a table by cell, of its groups or payoffs (N,)."""
        return np.asarray(split_cells(table, self.view.phases)[part_of])

    def in_own_units(self, values: FloatArray) -> FloatArray:
        """(N, S, 2), or (N, K, S, 2): rewards of every arm, from values (R, S, 2) that were mapped to [0, 1]."""
        return self.view.low + (self.view.high - self.view.low) * self.of_arms(values, self.payoff_of)

    @cached_property
    def arms_paid_alike(self) -> IntArray:
        """(R,) the number of arms of every payoff."""
        return frozen(np.repeat(np.bincount(self.payoff_of), self.view.phases))

    def of_cells(self, values: FloatArray) -> FloatArray:
        """(R, ...) sums over the blocks of a payoff, of values by cell (C * K, ...)."""
        if self.payoff.size == len(self.zero) and (self.payoff == np.arange(self.payoff.size)).all():
            return values
        total = np.zeros((len(self.zero), *values.shape[1:]))
        np.add.at(total, self.payoff, values)
        return total

    def observe(self, feedback: Feedback) -> Observations:
        """Count and pool the observations."""
        view, counts = self.view, np.zeros(self.support.shape, dtype=np.int64)
        visits, values = np.zeros(self.zero.shape), np.full(self.zero.shape, np.nan)
        states, actions = sealed(np.ascontiguousarray(feedback.states)), sealed(np.ascontiguousarray(feedback.actions))
        rewards = sealed(np.ascontiguousarray(feedback.rewards)).reshape(view.arms, view.phases, view.states, 2)
        known = (view.steps, self.group_of, self.payoff_of, view.low, view.high)
        pool(states, actions, rewards, *known, counts, visits, values)
        values[self.zero] = self.floor
        arms = self.arms_paid_alike[:, np.newaxis, np.newaxis]
        return Observations(frozen(counts), frozen(np.clip(values, 0.0, 1.0)), frozen(visits / arms))


@dataclass(frozen=True, eq=False, repr=False)
class Episode:
    """Everything that a component may know of a finished episode.

    Parameters
    ----------
    pools : Pools
        Groups, payoffs and blocks of the arms; `pools.view` is what the learner may know.
    number : int
        Number of the episode, from 0.
    seed : int
        Seed of the learner.
    feedback : Feedback
        The trajectory of every arm, and the rewards that were revealed.
    observed : Observed
        The same, pooled.
    before, counts : (G, S, 2, S) int arrays
        Transitions counted before the episode, and with it.
    basis : (G, S, 2, S) int array
        The counts behind the current sets.
    in_force, executed : functions
        Build these sets, and the executed plan; see `sets`, `policy` and `mass`.
    """

    pools: Pools
    number: int
    seed: int
    feedback: Feedback
    observed: Observations
    before: IntArray
    counts: IntArray
    basis: IntArray
    in_force: Callable[[], TransitionSets]
    executed: Callable[[], tuple[Policy, FloatArray]]

    @cached_property
    def sets(self) -> TransitionSets:
        """The sets of every block behind the plan; built on demand."""
        return self.in_force()

    @cached_property
    def _plan(self) -> tuple[Policy, FloatArray]:
        return self.executed()

    @property
    def policy(self) -> Policy:
        """The executed policy; built on demand."""
        return self._plan[0]

    @property
    def mass(self) -> FloatArray:
        """(C, H, S, 2) the plan behind it; built on demand."""
        return self._plan[1]

    @property
    def draw_key(self) -> tuple[int, int]:
        """Seed and number: the key of this episode's random draws, so that the same state always draws the same."""
        return self.seed, self.number

    def revealed(self) -> tuple[BoolArray, FloatArray]:
        """(R, S, 2) which pairs have an observed reward, without known zeros, and the reward; 0 elsewhere."""
        values = self.observed.values
        seen = ~np.isnan(values) & ~self.pools.zero
        return seen, np.where(seen, values, 0.0)


def refuse_forced(view: View) -> str:
    """Return why a view is not supported, or an empty text: an exact budget of all arms leaves no choice."""
    forced = view.exact and bool((view.slots == view.arms).any())
    return "needs an exact budget below the number of arms, but all arms must be active at some step" if forced else ""


def share_of(mass: FloatArray) -> FloatArray:
    """(C, H, S) the active part of each node's mass (C, H, S, 2): the index of Xiong & Li (2024, Section 4.4).

    0 without mass.
    """
    total = mass.sum(axis=3)
    index = np.where(total > NO_MASS, mass[..., 1] / np.maximum(total, NO_MASS), 0.0)
    return np.asarray(np.clip(index, 0.0, 1.0))


def empirical(counts: IntArray, support: BoolArray) -> FloatArray:
    """(G, S, 2, S) the observed frequencies; uniform over possible states for unvisited pairs."""
    visits = counts.sum(axis=3, keepdims=True)
    uniform = support / support.sum(axis=3, keepdims=True)
    mean: FloatArray = np.where(visits > 0, counts / np.maximum(visits, 1), uniform)
    return mean
