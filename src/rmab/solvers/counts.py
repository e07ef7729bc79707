"""Joint counts of identical arms, and the step of dynamic programming on them; `rmab.solvers.exact` solves with it.

Arms with the same kernels and rewards are exchangeable: they form a type, and the joint state is, for every type, how many
of its arms are in each state. A decision splits the counts of a type into active arms u and passive arms w. Afterwards both
move independently, so that the expected value of all splits with b active arms is one product of three matrices (Puterman
1994, Section 4.3, for the induction): D1[b] V D0[n - b], where D1[b][u, x] is the probability that arms which are active in
the states u end in the states x, and V[x, y] is the value of the counts x + y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, IntArray, check_memory, frozen
from rmab.errors import ModelError
from rmab.model import Problem, table_of
from rmab.model.costs import ROUNDING
from rmab.solvers.checks import checked_table

MOST = 50_000_000  # limit of splits of all counts: beyond it the induction would take hours


@dataclass(frozen=True, eq=False)
class Type:
    """Identical arms.

    number  n, how many; kernels (K, S, 2, S), rewards (K, S, 2), in each phase, of the states that they have; start (n, S);
    cost (K, S) of one active arm, in each phase and state
    """

    number: int
    kernels: FloatArray
    rewards: FloatArray
    start: FloatArray
    cost: FloatArray

    @property
    def states(self) -> int:
        """S, the number of states."""
        return int(self.kernels.shape[1])

    @cached_property
    def layouts(self) -> list[IntArray]:
        """For m = 0..n: all ways (L, S) to put m arms into the states, in lexicographic order."""
        found = [np.full((1, 1), m) for m in range(self.number + 1)]
        for _ in range(self.states - 1):
            found = [
                np.concatenate([np.insert(found[m - first], 0, first, axis=1) for first in range(m + 1)])
                for m in range(self.number + 1)
            ]
        return found

    def place(self, layouts: IntArray) -> IntArray:
        """Return the rank of each layout (..., S) among the layouts of the same number of arms.

        Before it are the layouts that agree in the first states and have fewer arms in the next one. With r arms left for
        the next state, which has c of them, and k states after it, they are C(r + k, k) - C(r + k - c, k).
        """
        left = np.flip(np.cumsum(np.flip(layouts, axis=-1), axis=-1), axis=-1)
        after = np.arange(self.states - 1, -1, -1)
        return np.asarray(
            (self._ways[left + after, after] - self._ways[left - layouts + after, after])[..., :-1].sum(axis=-1)
        )

    @cached_property
    def _ways(self) -> IntArray:
        """C(i, k), as far as needed."""
        most = self.number + self.states
        return np.array([[comb(i, k) if i - k <= self.number else 0 for k in range(self.states)] for i in range(most)])

    def moves(self, phase: int, action: int, most: int) -> list[FloatArray]:
        """For m = 0..most: (L, L) the probability that m arms in one layout end in another."""
        kernel = self.kernels[phase, :, action]
        found = [np.ones((1, 1))]
        for m in range(1, most + 1):
            layouts, fewer = self.layouts[m], self.layouts[m - 1]
            state = np.argmax(layouts > 0, axis=1)  # of one arm; the others are a layout of m - 1
            others = layouts - np.eye(self.states, dtype=np.intp)[state]
            before = found[-1][self.place(others)]
            table = np.zeros((len(layouts), len(layouts)))
            for after in range(self.states):
                ends = self.place(fewer + np.eye(self.states, dtype=np.intp)[after])
                table[:, ends] += kernel[state, after][:, np.newaxis] * before
            found.append(table)
        return found

    @cached_property
    def joined(self) -> list[IntArray]:
        """For b = 0..n: the layout of all arms (U, W) that active and passive ones form, where b are active."""
        return [self.place(one[:, np.newaxis] + other) for one, other in zip(self.layouts, self.layouts[::-1], strict=True)]

    @cached_property
    def begin(self) -> FloatArray:
        """(L,) the probability of every layout at the start of an episode."""
        mass = np.ones(1)
        for m, one in enumerate(self.start):
            further = np.zeros(len(self.layouts[m + 1]))
            for state in np.flatnonzero(one):
                ends = self.place(self.layouts[m] + np.eye(self.states, dtype=np.intp)[state])
                further[ends] += one[state] * mass
            mass = further
        return mass


class Counts:
    """The joint counts of a problem, and the step of backward induction on them."""

    def __init__(self, problem: Problem, reward: ArrayLike, name: str, most: float = MOST) -> None:
        rewards, arms = checked_table(problem, reward, name), problem.arms
        # As many arms of one type with two states, or one, have the fewest splits; larger problems are rejected at once.
        least = comb(arms.count + 3, 3) if arms.states > 1 else arms.count + 1
        table = rewards.reshape(arms.count, problem.phases, *rewards.shape[1:])
        self.type_of, first = (
            _find_types(problem, table) if least <= most else (frozen(np.arange(arms.count)), np.zeros(0, int))
        )
        sizes, numbers = arms.real_states[first], np.bincount(self.type_of)
        pairs = [(int(n), int(s)) for n, s in zip(numbers[: first.size], sizes, strict=True)]
        splits = prod(comb(n + 2 * s - 1, 2 * s - 1) for n, s in pairs) if pairs else least
        if splits > most:
            words = f"the arms have {splits:.1e} splits of their counts or more, the limit is {most:.0e}; use a bound"
            raise ModelError(f"{name.rpartition('.')[2]}: {words}", code="too-large")
        layouts = [comb(n + s - 1, s - 1) for n, s in pairs]
        moves = 8.0 * problem.phases * sum(2 * n * one**2 for (n, _), one in zip(pairs, layouts, strict=True))
        check_memory(f"the moves of {max(layouts):,} counts", moves + 32.0 * splits)
        own, start = arms.group_kernels.reshape(-1, *table.shape[1:], arms.states), problem.start_masses
        weights = np.ones(arms.count) if problem.weights is None else problem.weights
        cost, self.by_state = table_of(weights, problem.phases, arms.states), weights.ndim > 1
        self.types = [
            Type(
                number,
                own[arms.group_of[n]][:, :s, :, :s],
                table[n][:, :s],
                start[self.type_of == place, :s],
                cost[n, :, :s],
            )
            for place, (n, (number, s)) in enumerate(zip(first, pairs, strict=True))
        ]
        self.most, self.exact = int(problem.slots.max()), problem.exact
        self.shape = tuple(layouts)
        self._moves: dict[tuple[int, int, int], list[FloatArray]] = {}

    @cached_property
    def start(self) -> FloatArray:
        """The probability of the joint counts at the start."""
        mass = np.ones(())
        for one in self.types:
            mass = np.multiply.outer(mass, one.begin)
        return mass

    def step_back(self, value: FloatArray, phase: int, budget: float) -> FloatArray:
        """Return the value one step earlier: the best over all splits within the budget."""
        best = np.full(value.size, -np.inf)
        for active in self._iterate_allocations(budget, phase):
            after, target = value, np.zeros((), dtype=np.intp)
            earned, spent = np.zeros(()), np.zeros(())
            for place, (kind, b) in enumerate(zip(self.types, active, strict=True)):
                joined = kind.joined[b]
                # The type's axis becomes two, of its active and its passive layouts; the axes of later types stay behind.
                after = np.moveaxis(after, 2 * place, -1)[..., joined]
                passive = self._move(place, phase, 0)[kind.number - b]
                after = self._move(place, phase, 1)[b] @ after @ passive.T
                after = np.moveaxis(after, (-2, -1), (2 * place, 2 * place + 1))
                pay = kind.rewards[phase]
                mine = np.add.outer(kind.layouts[b] @ pay[:, 1], kind.layouts[kind.number - b] @ pay[:, 0])
                earned = np.add.outer(earned, mine)
                target = np.add.outer(target * self.shape[place], joined)
                if self.by_state:
                    spent = np.add.outer(
                        spent, np.broadcast_to((kind.layouts[b] @ kind.cost[phase])[:, np.newaxis], mine.shape)
                    )
            if self.by_state:
                after = np.where(spent <= budget * (1.0 + ROUNDING), after, -np.inf)
            np.maximum.at(best, target.reshape(-1), (after + earned).reshape(-1))
        return best.reshape(value.shape)

    def _iterate_allocations(self, budget: float, phase: int) -> Iterator[tuple[int, ...]]:
        """Yield how many arms of every type may be active, at the least cost of its states."""
        most, costs = budget * (1.0 + ROUNDING), [float(one.cost[phase].min()) for one in self.types]
        numbers = (range(min(one.number, int(most / cost)) + 1) for one, cost in zip(self.types, costs, strict=True))
        for active in product(*numbers):
            spent = sum(b * cost for b, cost in zip(active, costs, strict=True))
            if spent == budget if self.exact else spent <= most:
                yield active

    def _move(self, place: int, phase: int, action: int) -> list[FloatArray]:
        key = (place, phase, action)
        if key not in self._moves:
            kind = self.types[place]
            self._moves[key] = kind.moves(phase, action, min(kind.number, self.most) if action else kind.number)
        return self._moves[key]


def _find_types(problem: Problem, table: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the type of every arm (N,), by kernels, cost and rewards (N, K, S, 2), and the first arm of every type."""
    arms = problem.arms
    cost = np.ones(arms.count) if problem.weights is None else problem.weights.reshape(arms.count, -1)
    same: dict[bytes, int] = {}
    kernel_of = np.array([same.setdefault(one.tobytes(), len(same)) for one in arms.group_kernels])[arms.group_of]
    rows = np.column_stack([kernel_of, arms.real_states, cost, table.reshape(arms.count, -1)])
    _, first, type_of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return frozen(type_of.reshape(-1)), first
