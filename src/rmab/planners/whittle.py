"""Whittle indices: the price of activation at which a state's two actions are worth the same.

Infinite horizon, discounted or average, or a finite one: `rmab.solvers.whittle` computes the indices of one arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from rmab.common import BoolArray, FloatArray, ReadOnly, as_share, check_memory, frozen
from rmab.errors import ModelError
from rmab.model import Problem
from rmab.planners.indices import RuleOption, Strict
from rmab.play import IndexPolicy, Rule
from rmab.solvers.checks import check_costs_by_arm, check_timeless, checked_table
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.whittle.index import arm_whittle, arm_whittle_finite


@dataclass(frozen=True, eq=False)
class WhittleResult(ReadOnly):
    """Whittle indices of a problem's arms, as `whittle_index` and `finite_whittle_index` return them.

    Attributes
    ----------
    index : (N, S) or (N, H, S) float array
        For an infinite horizon, or a finite one; 0 in padded states. If a range of prices makes both actions equally
        good, one of these prices; the highest, if the horizon is finite.
    indexable : (N,) bool array
        Whether raising the price only ever makes states passive. If not, a state's index is the last price at
        which it becomes passive (finite horizon), or that at which the sweep makes it passive.
    problem : Problem
        The problem, which sets the budget of a policy. If arms have different costs, indices are per unit of cost.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.whittle_index(problem, reward).policy(rule="at-most").budget
    1
    """

    index: FloatArray
    indexable: BoolArray
    problem: Problem

    def __repr__(self) -> str:
        size = f"{len(self.index)} arms, {self.index.shape[-1]} states"
        return f"WhittleResult({size}, {int(self.indexable.sum())} indexable)"

    def policy(self, *, rule: Rule = "auto", strict: bool = False) -> IndexPolicy:
        """Activate the arms of highest index; with rule 'fill', also those that activation harms.

        strict: raise ModelError if an arm is not indexable.
        """
        if strict and not self.indexable.all():
            raise ModelError(f"{int((~self.indexable).sum())} of {self.indexable.size} arms are not indexable")
        return IndexPolicy.of(self.problem, self.index, rule=rule)


def whittle_index(problem: Problem, reward: ArrayLike, *, discount: float | None = None) -> WhittleResult:
    """Compute the Whittle indices of an infinite horizon.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    discount : float, optional
        Between 0 and 1; 1 means average reward. The problem's by default.

    Returns
    -------
    WhittleResult
        Indices (N, S), and which arms are indexable.

    Raises
    ------
    ModelError
        If an argument is wrong; and, at discount 1, if an arm has more than one recurrent class under some policy.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.whittle_index(problem, reward).index[0].round(3)
    array([0.5, 0.5])
    """
    table = checked_table(problem, reward, "planners.whittle_index")
    check_costs_by_arm("whittle_index", problem)
    blocks = Blocks.of(problem, table)
    check_timeless("whittle", problem.phases, "rmab.planners.finite_whittle_index supports them")
    ahead = problem.discount if discount is None else as_share(discount, "discount")
    index, indexable = np.zeros((len(blocks.kernels), problem.arms.states)), np.ones(len(blocks.kernels), dtype=bool)
    for n in np.unique(blocks.block_of, return_index=True)[1]:
        c, size = blocks.block_of[n], problem.arms.real_states[n]
        try:
            index[c, :size], indexable[c] = arm_whittle(
                problem.arms.group_kernels[problem.arms.group_of[n], :size, :, :size], blocks.reward[c, :size], ahead
            )
        except ModelError as error:
            raise ModelError(f"arm {n}: {error}") from error
    return _spread(index, indexable, problem, blocks)


def finite_whittle_index(problem: Problem, reward: ArrayLike) -> WhittleResult:
    """Compute the Whittle indices of every step of a finite horizon, exactly: the price is constant from that step on.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.

    Returns
    -------
    WhittleResult
        Indices (N, H, S), and which arms are indexable.

    Raises
    ------
    ModelError
        If an argument is wrong.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.finite_whittle_index(problem, reward).index[0, :, 0].round(3)  # of state 0, step by step
    array([0.468, 0.42 , 0.3  , 0.   ])
    """
    table = checked_table(problem, reward, "planners.finite_whittle_index")
    check_costs_by_arm("finite_whittle_index", problem)
    blocks = Blocks.of(problem, table)
    bytes_needed = 8.0 * problem.arms.count * problem.horizon * problem.arms.states
    check_memory(f"whittle_finite of {problem.arms.count} arms and {problem.horizon} steps", bytes_needed)
    index = np.zeros((blocks.count, problem.horizon, problem.arms.states))
    indexable = np.ones(blocks.count, dtype=bool)
    for n in np.unique(blocks.block_of, return_index=True)[1]:
        c, size = blocks.block_of[n], problem.arms.real_states[n]
        mine = slice(c * blocks.phases, (c + 1) * blocks.phases)
        kernel, own = blocks.kernels[mine, :size, :, :size], blocks.reward[mine, :size]
        index[c, :, :size], indexable[c] = arm_whittle_finite(kernel, own, blocks.phase_of)
    return _spread(index, indexable, problem, blocks)


def plan_whittle(
    problem: Problem,
    reward: ArrayLike,
    *,
    rule: RuleOption = "auto",
    strict: Strict = True,
    discount: Annotated[float | None, Field(description="discount of the indices, the problem's by default")] = None,
) -> IndexPolicy:
    """Return the policy of `whittle_index`: the planner `whittle`.

    Parameters
    ----------
    problem, reward, discount
        As in `whittle_index`.
    rule : {'fill', 'at-most', 'auto'}
        Whether the budget is always used, only on arms with a positive index, or on all arms that activation does not harm.
    strict : bool
        Whether to raise ModelError if an arm is not indexable.

    Returns
    -------
    IndexPolicy
    """
    return whittle_index(problem, reward, discount=discount).policy(rule=rule, strict=strict)


def plan_whittle_finite(
    problem: Problem, reward: ArrayLike, *, rule: RuleOption = "auto", strict: Strict = True
) -> IndexPolicy:
    """Return the policy of `finite_whittle_index`: the planner `whittle-finite`. Parameters are those of `plan_whittle`."""
    return finite_whittle_index(problem, reward).policy(rule=rule, strict=strict)


def _spread(index: FloatArray, indexable: BoolArray, problem: Problem, blocks: Blocks) -> WhittleResult:
    """Copy the values of each block to its arms."""
    return WhittleResult(frozen(index[blocks.block_of]), frozen(indexable[blocks.block_of]), problem)
