"""Policies for any number of steps, from the plan of an endless horizon: an index, the ID policy, follow the virtual advice.

The papers of the last two activate exactly B arms: what the plans leave over goes to arms that would rather be passive. Here
B is the most: an arm is active only if its plan wants it, so no arm is turned aside to use up the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import check_rng, expect
from rmab.errors import PolicyError
from rmab.model.problem import Problem
from rmab.play.compiled.episodes import step
from rmab.play.policy import IndexPolicy, Rule, checked_states
from rmab.solvers.checks import check_one_budget, check_timeless, checked_table
from rmab.solvers.stationary.average import AverageFluid, solve_average_fluid


def stationary_index(
    problem: Problem, reward: ArrayLike, *, plan: AverageFluid | None = None, rule: Rule = "auto"
) -> IndexPolicy:
    """Index of a state: what activating is worth in an endless horizon, when later activations cost the plan's price.

    The priorities are those of the LP (Verloop 2016; Gast, Gaujal & Yan 2023). Like Whittle's they may stay away from the
    bound for any number of arms, where the shares of the states do not settle at those of the plan.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are of no consequence.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    plan : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.
    rule : {'fill', 'at-most', 'auto'}
        Whether the budget is always used, only on arms with a positive index, or on all that it does not harm.

    Returns
    -------
    IndexPolicy
        The index of every arm and state, for any step.

    Raises
    ------
    ModelError
        Where the arguments do not fit, depend on the time, or the plan is another's.

    Examples
    --------
    >>> import rmab
    >>> game = rmab.make_task("gast-1", arms=10)
    >>> rmab.planners.stationary_index(game.problem, game.base_reward).table[0].round(3)
    array([0.655, 0.308, 0.237])
    """
    made = _planned(problem, reward, plan, "stationary_index")
    return IndexPolicy(made.advantage[made.blocks.block_of], problem.budget, rule=rule)


@dataclass(frozen=True, eq=False)
class IdPolicy(ReadOnly):
    """Each arm draws the action that its plan wants; in the order of their numbers, as many as the budget allows get it.

    The ID policy of Hong, Xie, Chen & Wang (2024, "Unichain and aperiodicity are sufficient for asymptotic optimality of
    average-reward restless bandits"). The first arms always get what they want, so they settle at the masses of the plan,
    and then leave enough for the next ones. For like arms that have one recurrent class under their shares, and are not
    periodic, the loss per arm vanishes as the number of arms grows. Arms of several blocks take turns in proportion.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are of no consequence.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    plan : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.

    Raises
    ------
    ModelError
        Where the arguments do not fit, depend on the time, or the plan is another's.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> game = rmab.make_task("conveyor", arms=6)
    >>> policy = rmab.planners.IdPolicy(game.problem, game.base_reward)  # of states 0..7, the plan activates the first four
    >>> policy.act(0, np.array([1, 5, 2, 3, 0, 7]), np.random.default_rng(0))
    array([ True, False,  True,  True, False, False])
    """

    plan: AverageFluid
    order: IntArray = field(init=False)  # (N,) the arms, those that come first in front

    def __init__(self, problem: Problem, reward: ArrayLike, *, plan: AverageFluid | None = None) -> None:
        object.__setattr__(self, "plan", _planned(problem, reward, plan, "IdPolicy"))
        object.__setattr__(self, "order", frozen(_in_turn(self.plan.blocks.block_of)))

    def __repr__(self) -> str:
        return f"IdPolicy({self.plan.problem!r})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, in states (N,); the step h does not matter."""
        now = _checked_states(self.plan, h, states, rng)
        wanted = _drawn(self.plan, now, rng)[self.order]
        active = np.zeros(now.size, dtype=bool)
        active[self.order] = wanted & (np.cumsum(wanted) <= self.plan.problem.budget)
        return active


@dataclass(frozen=True, eq=False)
class Ftva(ReadOnly):
    """Follow the virtual advice: each arm has a virtual twin that lives by the plan, without a budget, and is followed.

    The policy of Hong, Xie, Chen & Wang (2023, "Restless bandits with average reward: breaking the uniform global attractor
    assumption"). The twins want actions; they get them in any order as far as the budget allows, arms in the state of their
    twin first. An arm in the same state and under the same action as its twin moves together with it. For like arms the loss
    per arm vanishes as their number grows, where the plan has one recurrent class, is not periodic, and an arm that always
    does what its twin does meets it in the end. Twins begin in states drawn by the masses of the plan.

    It has a memory: `begin` returns the policy of one episode, which is to be asked at every step. `rmab.simulate` and
    `rmab.simulate_many` call it. What was not begun cannot act.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are of no consequence.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    plan : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.

    Raises
    ------
    ModelError
        Where the arguments do not fit, depend on the time, or the plan is another's.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> game, rng = rmab.make_task("conveyor", arms=100, horizon=1000), np.random.default_rng(0)
    >>> policy = rmab.planners.Ftva(game.problem, game.base_reward)
    >>> bound = rmab.solvers.solve_average_fluid(game.problem, game.base_reward).bound
    >>> bool(0.8 < rmab.simulate(game.problem, policy, game.base_reward, rng).reward / (1000 * bound) < 1)
    True
    """

    plan: AverageFluid

    def __init__(self, problem: Problem, reward: ArrayLike, *, plan: AverageFluid | None = None) -> None:
        object.__setattr__(self, "plan", _planned(problem, reward, plan, "Ftva"))

    def __repr__(self) -> str:
        return f"Ftva({self.plan.problem!r})"

    def begin(self, states: IntArray, rng: np.random.Generator) -> Following:
        """Return the policy of one episode from these states (N,), with a memory of its own."""
        _checked_states(self.plan, 0, states, rng)
        sums = np.cumsum(self.plan.mass.sum(axis=2), axis=1)
        sums[sums >= sums[:, -1:]] = 1.0  # no gap below 1
        points = rng.random(self.plan.blocks.block_of.size)
        return Following(self.plan, (sums[self.plan.blocks.block_of] <= points[:, np.newaxis]).sum(axis=1))

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:  # noqa: ARG002
        """Raise PolicyError: there is no memory before `begin`."""
        raise PolicyError("Ftva needs a memory for every episode: ask policy.begin(states, rng).act(h, states, rng)")


class Following:
    """One episode of `Ftva`: what `begin` returns. Ask it once at every step; threads must not share it.

    virtual  (N,) where the twins are: before `act`, as it left them; it first moves them to the step that is asked for.
    """

    def __init__(self, plan: AverageFluid, virtual: IntArray) -> None:
        arms = plan.problem.arms
        self.plan, self.virtual = plan, virtual
        self._budget = check_one_budget("Ftva", plan.problem.budget)
        self._wanted, self._together = np.zeros(arms.count, dtype=bool), np.zeros(arms.count, dtype=bool)
        self._begun, self._nothing = False, np.zeros((arms.count, arms.states, 2))

    def __repr__(self) -> str:
        return f"Following({self.plan.problem!r})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, in states (N,); the step h does not matter, but each is asked once."""
        now = _checked_states(self.plan, h, states, rng)
        if self._begun:
            self._move(now, rng)
        wanted, good = _drawn(self.plan, self.virtual, rng), now == self.virtual
        turn = np.argsort(rng.random(now.size) - good - 2.0 * wanted)  # wanted and good, wanted, and then the others
        active = np.zeros(now.size, dtype=bool)
        active[turn[: self._budget]] = True
        active &= wanted
        self._wanted, self._together, self._begun = wanted, good & (active == wanted), True
        return active

    def _move(self, now: IntArray, rng: np.random.Generator) -> None:
        """Move the twins: together with their arms, which are in states `now` (N,), or by a draw of their own."""
        arms, moved = self.plan.problem.arms, self.virtual.copy()
        stream = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        step(moved, self._wanted, arms.cumulative[0], arms.group_of, self._nothing, stream)
        self.virtual = np.where(self._together, now, moved)


def _planned(problem: Problem, reward: ArrayLike, plan: AverageFluid | None, name: str) -> AverageFluid:
    table = checked_table(problem, reward, f"planners.{name}")
    check_timeless(name, problem.phases)
    check_one_budget(name, problem.budget)
    if plan is None:
        return solve_average_fluid(problem, reward)
    expect(plan, AverageFluid, "plan")
    plan.check_made_for(problem, table)
    return plan


def _checked_states(plan: AverageFluid, h: int, states: IntArray, rng: np.random.Generator) -> IntArray:
    check_rng(rng)
    arms = plan.problem.arms
    return checked_states(h, states, arms.count, None, arms.states)


def _drawn(plan: AverageFluid, states: IntArray, rng: np.random.Generator) -> BoolArray:
    """(N,) which arms the plan activates in these states (N,), each by a draw of its own."""
    share: FloatArray = plan.share[plan.blocks.block_of, states]
    return np.asarray(rng.random(states.size) < share)


def _in_turn(block_of: IntArray) -> IntArray:
    """(N,) arms in order of their numbers, blocks interleaved: the first ones are of all blocks, in proportion."""
    sizes, place = np.bincount(block_of), np.empty(block_of.size)
    by_block = np.argsort(block_of, kind="stable")
    before = np.cumsum(sizes) - sizes
    place[by_block] = np.arange(block_of.size) - before[block_of[by_block]]
    return np.argsort((place + 0.5) / sizes[block_of], kind="stable")
