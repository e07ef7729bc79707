"""Index policies from a plan: one number per arm, step and state."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from rmab.common import BoolArray, IntArray, as_integer, check_memory, expect, sum_by_group
from rmab.model import Problem, split_cells
from rmab.play import IndexPolicy, Rounding, Rule
from rmab.solvers.checks import check_one_cost, check_problem, checked_table
from rmab.solvers.fluid.fluid import Fluid, fluid_of

ABOUT_RULE: Any = Field(
    description="use of the budget: always, on arms with a positive index, or on all arms that activation does not harm"
)
RuleOption = Annotated[Rule, ABOUT_RULE]
Strict = Annotated[bool, Field(description="whether to reject problems with arms that are not indexable")]
Lookahead = Annotated[bool, Field(description="whether to include the effect on the next reward")]
Episode = Annotated[int, Field(description="number of the episode, which continues the turns of the previous one")]


def occupancy_index(
    problem: Problem,
    reward: ArrayLike,
    *,
    fluid: Fluid | None = None,
    rule: RuleOption = "fill",
    rounding: Annotated[Rounding, Field(description="how shares become a set of arms")] = "top",
) -> IndexPolicy:
    """Index of a state: the share of its mass that the fluid plan activates (Xiong & Li 2024, Section 4.4).

    States that the plan never visits have index 0, which makes a vertex of the LP a weak policy.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    fluid : Fluid, optional
        The fluid plan of this problem and reward, to save the solve.
    rule : {'fill', 'at-most', 'auto'}
        Whether the budget is always used, only on arms with a positive index, or on all arms that activation does not harm.
    rounding : {'top', 'dependent', ...}
        How indices become a set of arms, as in `IndexPolicy`.

    Returns
    -------
    IndexPolicy
        The index of every arm, step and state.

    Raises
    ------
    ModelError
        If an argument is wrong, or the plan belongs to another problem or reward.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.occupancy_index(problem, reward).table.shape
    (3, 4, 2)
    """
    plan = _solve(problem, reward, fluid, "occupancy_index")
    return IndexPolicy.of(problem, plan.share[plan.blocks.block_of], rule=rule, rounding=rounding)


sample_occupancy = partial(occupancy_index, rule="at-most", rounding="dependent")  # the planner `occupancy`


def lagrangian_index(
    problem: Problem, reward: ArrayLike, *, fluid: Fluid | None = None, rule: RuleOption = "auto"
) -> IndexPolicy:
    """Index of a state: the gain of activating, Q(s,1) - Q(s,0), when later activations cost the fluid plan's prices.

    It is defined in every state, visited by the plan or not. If arms have different costs, it is per unit of cost.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    fluid : Fluid, optional
        The fluid plan of this problem and reward, to save the solve.
    rule : {'auto', 'fill', 'at-most'}
        Use of the budget: on all arms that activation does not harm, on any arms until the budget is used, or only on arms
        with a positive index. The budget of an exact problem is always spent.

    Returns
    -------
    IndexPolicy
        The index of every arm, step and state.

    Raises
    ------
    ModelError
        If an argument is wrong, or the plan belongs to another problem or reward.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.lagrangian_index(problem, reward).table[0, -2].round(3)  # 0.3 more chance of a reward of 1
    array([0.3, 0.3])
    """
    plan = _solve(problem, reward, fluid, "lagrangian_index")
    return IndexPolicy.of(problem, plan.advantage[plan.blocks.block_of], rule=rule)


def myopic_index(
    problem: Problem, reward: ArrayLike, *, lookahead: Lookahead = True, rule: RuleOption = "auto"
) -> IndexPolicy:
    """Index of a state: the gain of activating now, r1 - r0, plus its effect on the next passive reward, (P1 - P0) r0.

    The next reward is that of the next step's phase. If arms have different costs, it is per unit of cost.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    lookahead : bool
        Whether to include the second part, which is 0 at the last step.
    rule : {'fill', 'at-most', 'auto'}
        Whether the budget is always used, only on arms with a positive index, or on all arms that activation does not harm.

    Returns
    -------
    IndexPolicy
        The index of every arm, step and state.

    Raises
    ------
    ModelError
        If an argument is wrong.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> rmab.planners.myopic_index(problem, reward).table[0].round(3)[:, 0]  # of state 0, step by step
    array([0.3, 0.3, 0.3, 0. ])
    """
    table = checked_table(problem, reward, "planners.myopic_index")
    expect(lookahead, bool, "lookahead")
    table -= table.min(axis=(1, 2), keepdims=True)  # a constant only changes rounding
    _check_table("myopic_index", problem)
    count, phases, phase_of = problem.arms.count, problem.phases, problem.phase_of
    kernels, pays = problem.arms.group_kernels, split_cells(table, phases)
    if phases == 1:
        kernels, pays = kernels[:, np.newaxis], pays[:, np.newaxis]
    index = np.empty((count, problem.horizon, problem.arms.states))
    for h, k in enumerate(phase_of):
        index[:, h] = pays[:, k, :, 1] - pays[:, k, :, 0]
        if lookahead and h + 1 < problem.horizon:
            change, after = kernels[:, k, :, 1] - kernels[:, k, :, 0], pays[:, phase_of[h + 1], :, 0]
            index[:, h] += problem.discount * sum_by_group("ny,nsy->ns", after, change, problem.arms.group_of)
    if problem.weights is not None:
        costs = problem.weights
        index /= costs.reshape(count, 1, -1) if costs.ndim < 3 else costs[:, phase_of]
    return IndexPolicy.of(problem, index, rule=rule)


def round_robin(problem: Problem, reward: object = None, *, episode: Episode = 0) -> IndexPolicy:  # noqa: ARG001
    """Take the arms in turn, B at every step.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : optional
        Ignored: it makes the function a planner.
    episode : int
        Number of the episode, which continues the turns of the previous one.

    Returns
    -------
    IndexPolicy
        Index 1 for the arms whose turn it is, 0 for the others.

    Raises
    ------
    ModelError
        If an argument is wrong.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> policy = rmab.planners.round_robin(rmab.Problem(arms, 0, 1, 4))
    >>> policy.table[:, :, 0].argmax(axis=0)  # the arm that is active at each step
    array([0, 1, 2, 0])
    """
    check_problem(problem, "planners.round_robin")
    _check_table("round_robin", problem)
    check_one_cost("round_robin", problem)
    table = turns(problem.arms.count, problem.arms.states, problem.slots, as_integer(episode, "episode"))
    return IndexPolicy.of(problem, table, rule="at-most")


def turns(arms: int, states: int, budgets: IntArray, episode: int) -> BoolArray:
    """(N, H, S) whose turn it is, in every state, when arms are taken in turn from the first episode on; budgets (H,)."""
    before = np.concatenate([[0], np.cumsum(budgets)])  # activations before every step, and in a whole episode
    first = (episode * int(before[-1]) + before[:-1]) % arms
    turn = (np.arange(arms)[:, np.newaxis] - first) % arms < budgets
    return np.repeat(turn[..., np.newaxis], states, axis=2)


def random_policy(problem: Problem, reward: object = None) -> IndexPolicy:  # noqa: ARG001
    """Activate a uniformly random set of B arms at every step: all indices are equal, and ties are broken at random.

    Parameters
    ----------
    problem : Problem
        Arms, start states, budget and horizon.
    reward : optional
        Ignored: it makes the function a planner.

    Returns
    -------
    IndexPolicy
        Index 1 everywhere.

    Raises
    ------
    ModelError
        If the problem is not a Problem.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> policy = rmab.planners.random_policy(rmab.Problem(arms, 0, 2, 4))
    >>> import numpy as np
    >>> int(policy.act(0, np.array([0, 0, 0]), np.random.default_rng(0)).sum())
    2
    """
    check_problem(problem, "planners.random_policy")
    return IndexPolicy.of(problem, np.ones((problem.arms.count, problem.arms.states)))


def _check_table(name: str, problem: Problem) -> None:
    """Raise ModelError if a table of indices (N, H, S) does not fit in memory."""
    shape = (problem.arms.count, problem.horizon, problem.arms.states)
    check_memory(f"{name}, a table (N, H, S) = {shape},", 16.0 * shape[0] * shape[1] * shape[2])


def _solve(problem: Problem, reward: ArrayLike, fluid: Fluid | None, name: str) -> Fluid:
    table = checked_table(problem, reward, f"planners.{name}")
    _check_table(name, problem)
    return fluid_of(problem, table, fluid)
