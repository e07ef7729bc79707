"""Blocks: arms with the same dynamics and reward are solved once, with their total mass.

Exact: from a feasible occupancy of the sum, every arm follows the block's shares from its start state.

Costs are masses, too: an arm of cost c is c units of mass with 1/c of its reward each. So the active mass
is the cost of the active arms, and values, advantages and prices are per unit of cost.

At steps at which an exact budget leaves no choice, because all arms must be active, the passive action becomes the active
one, in a separate phase, and no arm is activated. At steps at which an arm costs more than the budget, its active
action is replaced by the passive one in the same way.

A discount is a loss of mass: with kernels times the discount, the masses of step h, their rewards and the budget that
they may use are all weighted by discount ** h, and values and prices are those of the step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, ReadOnly, frozen, sealed
from rmab.model import Problem, cells
from rmab.model.costs import ROUNDING
from rmab.solvers.checks import Units, reachable, steps_reached
from rmab.solvers.compiled.dynamics import backward

if TYPE_CHECKING:
    from rmab.solvers.fluid.state_costs import StateCosts


@dataclass(frozen=True, eq=False)
class Blocks(ReadOnly):
    """C blocks of arms, with K phases: kernels (C*K,S,2,S), discounted, and reward (C*K,S,2) by cell (`rmab.model.time`).

    start (C,S) is the number of arms per state, or their cost; block_of (N,) the block of every arm, phase_of (H,) the phase
    of every step, budget (H,) the mass that may be active, and exact whether it must be; weights, the costs of the arms in
    the problem, None if they are equal; by_state, more data if costs depend on the state.
    """

    kernels: FloatArray
    reward: FloatArray
    start: FloatArray
    block_of: IntArray
    phase_of: IntArray
    budget: FloatArray
    exact: bool = False
    weights: FloatArray | None = None
    by_state: StateCosts | None = None

    @classmethod
    def of(cls, problem: Problem, reward: FloatArray) -> Blocks:
        """Join the arms that share group, cost and reward (N*K,S,2)."""
        arms, phases, weights = problem.arms, problem.phases, problem.weights
        if weights is not None and weights.ndim > 1:
            return cls._by_state(problem, weights, reward)
        by_arm = reward.reshape(arms.count, -1)
        budget = (problem.slots if weights is None else problem.budgets).astype(np.float64)
        if weights is not None:
            by_arm = by_arm / weights[:, np.newaxis]
            keys = np.column_stack([arms.group_of, weights, np.unique(by_arm, axis=0, return_inverse=True)[1].reshape(-1)])
            _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        elif arms.groups is None:
            first, block_of = np.arange(arms.count), np.arange(arms.count)
        elif np.array_equal(by_arm, by_arm[arms.representatives][arms.groups]):  # by far the most common case, and faster
            first, block_of = arms.representatives, arms.groups
        else:
            keys = np.column_stack([arms.groups, np.unique(by_arm, axis=0, return_inverse=True)[1].reshape(-1)])
            _, first, block_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        start = np.zeros((len(first), arms.states))
        masses = problem.start_masses if weights is None else problem.start_masses * weights[:, np.newaxis]
        order = np.lexsort(masses.T) if problem.start.ndim > 1 else slice(None)  # the order of arms must not change the sums
        np.add.at(start, block_of.reshape(-1)[order], masses[order])
        kernels = np.ascontiguousarray(cells(arms.group_kernels[arms.group_of[first]], phases))
        kernels = kernels if problem.discount == 1.0 else kernels * problem.discount
        pays = np.ascontiguousarray(by_arm[first].reshape(-1, arms.states, 2))
        tables, phase_of = (kernels, pays), problem.phase_of
        if problem.exact and (forced := budget == arms.count).any():
            tables, phase_of = _with_forced(*tables, phases, phase_of, forced)
            budget[forced] = 0.0
        elif weights is not None and (barred := too_dear(weights[first, np.newaxis], budget)).any():
            tables, phase_of = _with_barred(*tables, phase_of, barred)
        plain = (frozen(start), frozen(block_of.reshape(-1)), phase_of, frozen(budget), problem.exact, weights)
        return cls(frozen(tables[0]), frozen(tables[1]), *plain)

    @classmethod
    def _by_state(cls, problem: Problem, weights: FloatArray, reward: FloatArray) -> Blocks:
        """Join arms whose costs depend on the state (`state_costs`)."""
        from rmab.solvers.fluid.state_costs import weigh  # noqa: PLC0415  (rarely needed)

        (kernels, pays), start, block_of, phase_of, rest = weigh(problem, weights, reward)
        budget = frozen(problem.budgets.astype(np.float64))
        return cls(frozen(kernels), frozen(pays), frozen(start), block_of, phase_of, budget, False, weights, rest)

    @property
    def count(self) -> int:
        """C, the number of blocks."""
        return len(self.start)

    @property
    def barred(self) -> BoolArray | None:
        """(C, H) which blocks cost more than the budget of a step, so that they are passive; None without costs.

        (C, H, S) if costs depend on the state.
        """
        if self.weights is None or self.by_state is not None:
            return None if self.by_state is None else self.by_state.barred
        first = np.unique(self.block_of, return_index=True)[1]
        return too_dear(self.weights[first, np.newaxis], self.budget)

    @property
    def unit(self) -> float:
        """Mean mass of an arm: the unit of temperatures, so that the unit of costs has no effect."""
        return 1.0 if self.weights is None else float(self.weights.mean())

    @property
    def span(self) -> float:
        """The widest range of one arm's rewards, in units of the widest per unit of mass: the unit of gaps."""
        if self.weights is None:
            return 1.0
        if self.by_state is not None:
            return self.by_state.span / (float(self.reward.max()) or 1.0) or self.unit
        first = np.unique(self.block_of, return_index=True)[1]
        ranges = np.ptp(self.reward, axis=(1, 2)).reshape(self.count, -1).max(axis=1)
        return float((ranges * self.weights[first]).max() / (ranges.max() or 1.0)) or self.unit

    @property
    def most(self) -> float | None:
        """The largest possible mass if kernels do not preserve it; None if they do."""
        return None if self.by_state is None else self.by_state.most

    def base(self, discounts: FloatArray) -> float:
        """Return the least reward of all arms in an episode, discounted (H,), if rewards are counted from that; else 0."""
        return 0.0 if self.by_state is None else self.by_state.base(self.phase_of, discounts)

    @property
    def phases(self) -> int:
        """K, the number of phases."""
        return len(self.kernels) // len(self.start)

    @property
    def horizon(self) -> int:
        """H, the number of steps."""
        return self.phase_of.size

    @property
    def moves(self) -> BoolArray:
        """(C*K, S, S) which transitions some action allows."""
        return np.asarray(self.kernels.max(axis=2) > 0)

    def reachable(self) -> BoolArray:
        """(C, H, S) whether any policy can bring mass there."""
        return np.stack(list(steps_reached(self.moves, self.start > 0, self.phase_of)), axis=1)

    def values(self, prices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Backward induction under prices (H,): values (C, H+1, S) and advantages Q(s,1) - Q(s,0) (C, H, S)."""
        shape = (self.count, prices.size, self.kernels.shape[1])
        values, advantage = np.empty((shape[0], shape[1] + 1, shape[2])), np.empty(shape)
        backward(self.kernels, self.reward, self.phase_of, sealed(prices), values, advantage)
        return values, advantage

    def advantage(self, prices: FloatArray) -> FloatArray:
        """(C, H, S) Q(s,1) - Q(s,0) when later activations cost their prices (H,), before the price of the step itself.

        Rewards are counted from the least of each cell: a constant would only cost precision.
        """
        if self.by_state is not None:
            return self.values(prices)[1] + prices[:, np.newaxis]
        above = self.reward - self.reward.min(axis=(1, 2), keepdims=True)
        above.setflags(write=self.reward.flags.writeable)  # compiled code exists for one kind
        return replace(self, reward=above).values(prices)[1] + prices[:, np.newaxis]

    def units(self) -> Units:
        """Return the normalised rewards of the reachable states."""
        return Units.of(self.reward, reachable(self.moves, self.start > 0, self.phase_of), shift=self.most is None)

    def bound(self, prices: FloatArray, budget: FloatArray) -> float:
        """Return the dual value at these prices >= 0 (H,): no policy within the budget (H,) earns more, by weak duality."""
        values, _ = self.values(prices)
        return float((self.start * values[:, 0]).sum() + budget @ prices)

    def in_canonical_order(self) -> tuple[Blocks, IntArray]:
        """Return the blocks ordered by what they contain, like ones joined, and where each of these is (C,).

        Optimal plans and prices are rarely unique, and the order of blocks decides which of them a solver finds, by its
        pivots or by rounding. In this order the answer does not depend on how the arms are numbered.
        """
        if self.count == 1:
            return self, np.zeros(1, dtype=np.int64)
        first = np.unique(self.block_of, return_index=True)[1]
        cost = np.zeros(self.count) if self.weights is None else self.weights[first]
        unit = self.units().reward  # so that units and offsets of rewards do not matter, either
        rows = [one.reshape(self.count, -1) for one in (self.kernels, cost, self.reward, unit, self.start)]
        like = [_digest(one[c] for one in rows[:3]) for c in range(self.count)]
        content = [[_digest([*(one[c] for one in rows[:2]), rows[3][c]]), _digest([rows[4][c]])] for c in range(self.count)]
        order = sorted(range(self.count), key=lambda c: (*content[c], like[c]))
        number = {one: k for k, one in enumerate(dict.fromkeys(like[c] for c in order))}
        place = np.array([number[one] for one in like])
        if np.array_equal(place, np.arange(self.count)):
            return self, place
        of = np.unique(place, return_index=True)[1]
        start = np.zeros((of.size, self.start.shape[1]))
        np.add.at(start, place[order], self.start[order])
        kernels, reward = (
            frozen(own.reshape(self.count, -1, *own.shape[1:])[of].reshape(-1, *own.shape[1:]))
            for own in (self.kernels, self.reward)
        )
        by_state = None if self.by_state is None else self.by_state.join(place, of)
        rest = (self.phase_of, self.budget, self.exact, self.weights, by_state)
        return Blocks(kernels, reward, frozen(start), frozen(place[self.block_of]), *rest), place

    def same_rewards(self, other: Blocks) -> bool:
        """Return whether every arm has the same reward."""
        return all(np.array_equal(getattr(self, one), getattr(other, one)) for one in ("reward", "block_of"))

    def count_arms(self, states: IntArray, step: int) -> FloatArray:
        """(C, S) the mass of every block in every state, if the arms are in these states (N,) at a step."""
        masses = np.zeros_like(self.start)
        weights = 1.0 if self.weights is None else self.weights
        if self.by_state is not None:
            weights = self.by_state.cost[self.block_of, self.phase_of[step], states]
        np.add.at(masses, (self.block_of, states), weights)
        return masses


def _digest(tables: Iterable[FloatArray]) -> bytes:
    """Return a hash of what some tables contain; 0.0 and -0.0 are the same."""
    found = hashlib.blake2b(digest_size=16)
    for one in tables:
        found.update(np.add(one, 0.0).data)
    return found.digest()


def _with_forced(
    kernels: FloatArray, reward: FloatArray, phases: int, phase_of: IntArray, forced: BoolArray
) -> tuple[tuple[FloatArray, FloatArray], IntArray]:
    """Return tables by cell, and phases (H,), with K more phases: those of forced steps (H,), with all arms active."""
    every = []
    for table in (kernels, reward):
        own = table.reshape(-1, phases, *table.shape[1:])
        active = np.repeat(own[:, :, :, 1:], 2, axis=3)
        every.append(np.ascontiguousarray(np.concatenate([own, active], axis=1).reshape(-1, *table.shape[1:])))
    return (every[0], every[1]), frozen(phase_of + phases * forced)


def too_dear(cost: FloatArray, budget: FloatArray) -> BoolArray:
    """Return where a cost exceeds a budget that is not 0 (with budget 0 there is nothing to plan)."""
    return np.asarray((cost > budget * (1.0 + ROUNDING)) & (budget > 0))


def _with_barred(
    kernels: FloatArray, reward: FloatArray, phase_of: IntArray, barred: BoolArray
) -> tuple[tuple[FloatArray, FloatArray], IntArray]:
    """Return tables by cell, and phases (H,), in which blocks are passive at the steps at which they are barred (C, H)."""
    keys = np.column_stack([phase_of, barred.sum(axis=0)])  # the most expensive are barred first
    _, first, phase = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    every = []
    for table in (kernels, reward):
        own = table.reshape(len(barred), -1, *table.shape[1:])[:, phase_of[first]]
        passive = barred[:, first].reshape(len(barred), -1, *[1] * (own.ndim - 2))
        every.append(np.ascontiguousarray(np.where(passive, own[:, :, :, :1], own).reshape(-1, *table.shape[1:])))
    return (every[0], every[1]), frozen(phase.reshape(-1))
