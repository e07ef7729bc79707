"""Policies for any number of steps, from an infinite-horizon plan: an index, the ID policy, follow the virtual advice.

The papers of the last two activate exactly B arms: unused budget goes to arms that the plan leaves passive. So
it is here if the budget is exact. If B is a maximum, an arm is active only if its plan activates it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray, expect, frozen
from rmab.errors import ModelError, PolicyError
from rmab.model import Problem
from rmab.planners.contract import check_states
from rmab.planners.indices import RuleOption
from rmab.planners.question import ROUNDING, QuestionPolicy, checked_answer, question_format
from rmab.play import IndexPolicy
from rmab.play.compiled.episodes import step
from rmab.solvers.checks import check_one_budget, check_one_cost, check_timeless, checked_table
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.stationary.average import AverageFluid, solve_average_fluid


class Planned(Protocol):
    """A policy from a plan: shares (C, S), and their blocks."""

    problem: Problem
    blocks: Blocks
    share: FloatArray


def stationary_index(
    problem: Problem, reward: ArrayLike, *, average: AverageFluid | None = None, rule: RuleOption = "auto"
) -> IndexPolicy:
    """Index of a state: gain of activating over an infinite horizon, when later activations cost the plan's price.

    The priorities are those of the LP (Verloop 2016; Gast, Gaujal & Yan 2023). Like Whittle's, they may stay below the
    bound for any number of arms, if the shares of the states do not converge to the plan's.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are ignored.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    average : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.
    rule : {'fill', 'at-most', 'auto'}
        Whether the budget is always used, only on arms with a positive index, or on all arms that activation does not harm.

    Returns
    -------
    IndexPolicy
        The index of every arm and state, for any step.

    Raises
    ------
    ModelError
        If arguments do not fit or depend on time, or the plan belongs to another problem.

    Examples
    --------
    >>> import rmab
    >>> game = rmab.make_task("gast-1", arms=10)
    >>> rmab.planners.stationary_index(game.problem, game.base_reward).table[0].round(3)
    array([0.655, 0.308, 0.237])
    """
    plan = solve_infinite(problem, reward, average, "stationary_index")[1]
    return IndexPolicy.of(problem, plan.advantage[plan.blocks.block_of], rule=rule)


class IdPolicy(QuestionPolicy):
    """Each arm draws an action from its plan; arms get it in the order of their numbers, as far as the budget allows.

    The ID policy of Hong, Xie, Chen & Wang (2024, "Unichain and aperiodicity are sufficient for asymptotic optimality of
    average-reward restless bandits"). The first arms always get their actions, so they converge to the masses of the plan,
    and then leave enough for the next ones. For identical arms that have one recurrent class under their shares and are not
    periodic, the loss per arm vanishes as the number of arms grows. Arms of several blocks take turns in proportion.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are ignored.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    average : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.

    Raises
    ------
    ModelError
        If arguments do not fit or depend on time, or the plan belongs to another problem.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> game = rmab.make_task("conveyor", arms=6)
    >>> policy = rmab.planners.IdPolicy(game.problem, game.base_reward)  # of states 0..7, the plan activates the first four
    >>> policy.act(0, np.array([1, 5, 2, 3, 0, 7]), np.random.default_rng(0))
    array([ True, False,  True,  True, False, False])
    """

    share: FloatArray  # (C, S) how often the plan activates an arm of a block in a state
    order: IntArray  # (N,) the arms in order of priority

    ANSWER = ("share",)
    FORMAT = question_format("rmab policy id", *ANSWER)

    def __init__(self, problem: Problem, reward: ArrayLike, *, average: AverageFluid | None = None) -> None:
        table, plan = solve_infinite(problem, reward, average, "IdPolicy")
        self._hold(problem, table, share=plan.share)

    def _prepare(self) -> None:
        self._set(share=checked_shares(self), order=frozen(_in_turn(self.blocks.block_of)))

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, in states (N,); the step h does not matter."""
        now = check_states(self.problem, h, states, rng, any_step=True)
        wanted, budget = draw_wanted(self, now, rng)[self.order], int(self.problem.slots[0])
        chosen = wanted & (np.cumsum(wanted) <= budget)
        if self.problem.exact:  # the last in the order stay passive
            chosen[np.flatnonzero(~chosen)[::-1][: budget - int(chosen.sum())]] = True
        active = np.zeros(now.size, dtype=bool)
        active[self.order] = chosen
        return active


class EpisodicPolicy(QuestionPolicy):
    """Base of policies that follow an infinite-horizon plan with a memory, which `begin` makes for every episode.

    A subclass sets `FORMAT` and has `begin`. Parameters are those of `Ftva`.
    """

    share: FloatArray  # (C, S) how often the plan activates an arm of a block in a state
    mass: FloatArray  # (C, S, 2) the share of the steps in a state, passive and active

    ANSWER = ("share", "mass")

    def __init__(self, problem: Problem, reward: ArrayLike, *, average: AverageFluid | None = None) -> None:
        table, plan = solve_infinite(problem, reward, average, type(self).__name__)
        self._hold(problem, table, share=plan.share, mass=plan.mass)

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:  # noqa: ARG002
        """Raise PolicyError: no memory before `begin`."""
        name = type(self).__name__
        raise PolicyError(f"{name} needs a memory for every episode; use policy.begin(states, rng).act(h, states, rng)")


class Ftva(EpisodicPolicy):
    """Follow the virtual advice: each arm follows a virtual twin that obeys the plan without a budget.

    The policy of Hong, Xie, Chen & Wang (2023, "Restless bandits with average reward: breaking the uniform global attractor
    assumption"). Arms take the actions of their twins as far as the budget allows, arms in the state of their
    twin first. An arm in the same state and under the same action as its twin moves with it. For identical arms the loss
    per arm vanishes as their number grows, if the plan has one recurrent class, is not periodic, and an arm that always
    does what its twin does meets it in the end. Twins begin in states drawn by the masses of the plan.

    It has a memory: `begin` returns the policy of one episode, to be called at every step. `rmab.simulate` and
    `rmab.simulate_many` call `begin`; `act` without it is an error.

    Parameters
    ----------
    problem : Problem
        Arms and budget; start and horizon are ignored.
    reward : (N, S, 2) array
        Reward of each arm, state and action.
    average : AverageFluid, optional
        The plan of these arms, this budget and this reward, to save the solve.

    Raises
    ------
    ModelError
        If arguments do not fit or depend on time, or the plan belongs to another problem.

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

    FORMAT = question_format("rmab policy ftva", *EpisodicPolicy.ANSWER)

    def _prepare(self) -> None:
        self._set(share=checked_shares(self), mass=checked_mass(self, self.mass))

    def begin(self, states: IntArray, rng: np.random.Generator) -> FtvaEpisode:
        """Return the policy of one episode from these states (N,), with its own memory."""
        check_states(self.problem, 0, states, rng)
        sums = np.cumsum(self.mass.sum(axis=2), axis=1)
        sums[sums >= sums[:, -1:]] = 1.0  # no gap below 1
        points = rng.random(self.blocks.block_of.size)
        return FtvaEpisode(self, (sums[self.blocks.block_of] <= points[:, np.newaxis]).sum(axis=1))


class FtvaEpisode:
    """One episode of `Ftva`: what `begin` returns. Call it once at every step; threads must not share it.

    virtual  (N,) the states of the twins at the last step; `act` first moves them to the current step.
    """

    def __init__(self, policy: Ftva, virtual: IntArray) -> None:
        arms = policy.problem.arms
        self.policy, self.virtual = policy, virtual
        self._wanted, self._together = np.zeros(arms.count, dtype=bool), np.zeros(arms.count, dtype=bool)
        self._begun, self._nothing = False, np.zeros((arms.count, arms.states, 2))

    def __repr__(self) -> str:
        return f"FtvaEpisode({self.policy.problem!r})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, in states (N,); the step h does not matter, but each is called once."""
        now = check_states(self.policy.problem, h, states, rng, any_step=True)
        if self._begun:
            self._move(now, rng)
        wanted, good = draw_wanted(self.policy, self.virtual, rng), now == self.virtual
        turn = np.argsort(rng.random(now.size) - good - 2.0 * wanted)  # wanted and good, wanted, and then the others
        active = np.zeros(now.size, dtype=bool)
        active[turn[: int(self.policy.problem.slots[0])]] = True
        if not self.policy.problem.exact:
            active &= wanted
        self._wanted, self._together, self._begun = wanted, good & (active == wanted), True
        return active

    def _move(self, now: IntArray, rng: np.random.Generator) -> None:
        """Move the twins: with their arms, which are in states `now` (N,), or by an independent draw."""
        arms, moved = self.policy.problem.arms, self.virtual.copy()
        stream = rng.integers(0, 2**64, size=4, dtype=np.uint64)
        step(moved, self._wanted, arms.cumulative[0], arms.group_of, self._nothing, stream)
        self.virtual = np.where(self._together, now, moved)


def solve_infinite(
    problem: Problem, reward: ArrayLike, average: AverageFluid | None, name: str
) -> tuple[FloatArray, AverageFluid]:
    """Return the reward by cell, and the infinite-horizon plan: the given one, if it matches."""
    table = checked_table(problem, reward, f"planners.{name}")
    _check_infinite(name, problem)
    if average is None:
        return table, solve_average_fluid(problem, reward)
    expect(average, AverageFluid, "average")
    average.check_made_for(problem, table)
    return table, average


def _check_infinite(name: str, problem: Problem) -> None:
    check_timeless(name, problem.phases)
    check_one_budget(name, problem.budget)
    if name != "stationary_index":
        check_one_cost(name, problem)


def checked_shares(policy: Planned) -> FloatArray:
    """(C, S) the shares of a policy; ModelError if they are not shares, or the problem depends on time."""
    _check_infinite(type(policy).__name__, policy.problem)
    return checked_answer(policy.share, "share", policy.blocks.start.shape, 1.0)


def checked_mass(policy: QuestionPolicy, given: FloatArray) -> FloatArray:
    """(C, S, 2) the masses of a plan; ModelError unless those of each block sum to 1."""
    mass = checked_answer(given, "mass", (*policy.blocks.start.shape, 2), 1.0)
    for c in np.flatnonzero(np.abs(mass.sum(axis=(1, 2)) - 1.0) > ROUNDING)[:1]:
        raise ModelError(f"mass: block {c} sums to {mass[c].sum():g}, not to 1")
    return mass


def draw_wanted(policy: Planned, states: IntArray, rng: np.random.Generator) -> BoolArray:
    """(N,) which arms the plan activates in these states (N,), by independent draws."""
    return np.asarray(rng.random(states.size) < policy.share[policy.blocks.block_of, states])


def _in_turn(block_of: IntArray) -> IntArray:
    """(N,) arms in order of their numbers, blocks interleaved in proportion."""
    sizes, place = np.bincount(block_of), np.empty(block_of.size)
    by_block = np.argsort(block_of, kind="stable")
    before = np.cumsum(sizes) - sizes
    place[by_block] = np.arange(block_of.size) - before[block_of[by_block]]
    return np.argsort((place + 0.5) / sizes[block_of], kind="stable")
