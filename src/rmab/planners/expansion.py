"""Set expansion: a growing set of arms follows an infinite-horizon plan; the others yield to them.

A set of arms can keep following its plan, regardless of the others, as long as the budget covers what it may need.
With m the share of arms in the set, x the shares of arms in the set and in each state, and mu the masses of the
plan, it needs no more than

    alpha m + sum of (x - m mu)^+,   now and at all later steps, on average,

where alpha is the budget per arm: the distance from the plan's masses never grows. So the set is focused as long as

    sum of (x - m mu)^+ <= beta (1 - m),   beta = alpha, or min(alpha, 1 - alpha) if the budget is exact.
"""

from __future__ import annotations

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, frozen
from rmab.planners.contract import check_states
from rmab.planners.infinite import EpisodicPolicy, checked_mass, checked_shares, draw_wanted
from rmab.planners.question import question_format

WHOLE = 1e-9  # rounding tolerance of a number of arms
TURNS = 100  # limit of Newton steps; the function has fewer pieces


class SetExpansion(EpisodicPolicy):
    """A set of arms follows its plan. It grows while the budget covers it, and shrinks otherwise.

    The set-expansion policy of Hong, Xie, Chen & Wang (2024, "Unichain and aperiodicity are sufficient for asymptotic
    optimality of average-reward restless bandits"). If the plan has one recurrent class and is not periodic, the loss per
    arm vanishes as the number of identical arms grows. Arms of several blocks join in proportion.

    It has a memory, the set: `begin` returns the policy of one episode. `rmab.simulate` and `rmab.simulate_many` call it.

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
    >>> game, rng = rmab.make_task("dirichlet-355", arms=100, horizon=1000), np.random.default_rng(0)
    >>> policy = rmab.planners.SetExpansion(game.problem, game.base_reward)
    >>> bound = rmab.solvers.solve_average_fluid(game.problem, game.base_reward).bound
    >>> bool(0.9 < rmab.simulate(game.problem, policy, game.base_reward, rng).reward / (1000 * bound) < 1)
    True
    """

    aim: FloatArray  # (C * S,) the plan's share of all arms in each state of each block
    slack: float  # budget per arm outside the set

    FORMAT = question_format("rmab policy set-expansion", *EpisodicPolicy.ANSWER)

    def _prepare(self) -> None:
        mass, sizes = checked_mass(self, self.mass), np.bincount(self.blocks.block_of)
        aim = (mass.sum(axis=2) * (sizes / sizes.sum())[:, np.newaxis]).reshape(-1)
        alpha = float(self.problem.slots[0]) / self.problem.arms.count
        slack = min(alpha, 1.0 - alpha) if self.problem.exact else alpha
        self._set(share=checked_shares(self), mass=mass, aim=frozen(aim / aim.sum()), slack=slack)

    def begin(self, states: IntArray, rng: np.random.Generator) -> ExpansionEpisode:
        """Return the policy of one episode from these states (N,), with its own memory."""
        check_states(self.problem, 0, states, rng)
        return ExpansionEpisode(self)


class ExpansionEpisode:
    """One episode of `SetExpansion`: what `begin` returns. Call it once at every step; threads must not share it.

    focus  (N,) bools, the arms that follow their plans, as of the last step.
    """

    def __init__(self, policy: SetExpansion) -> None:
        self.policy, self.focus = policy, np.zeros(policy.problem.arms.count, dtype=bool)

    def __repr__(self) -> str:
        return f"ExpansionEpisode({self.policy.problem!r})"

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, in states (N,); the step h does not matter, but each is called once."""
        policy = self.policy
        now = check_states(policy.problem, h, states, rng, any_step=True)
        self.focus = self._expand(now)
        wanted = draw_wanted(policy, now, rng)
        level = np.where(wanted, np.where(self.focus, 0, 1), np.where(self.focus, 3, 2))  # those outside stay passive
        turn = np.argsort(level + rng.random(now.size))
        active = np.zeros(now.size, dtype=bool)
        active[turn[: int(policy.problem.slots[0])]] = True
        return active if policy.problem.exact else active & wanted

    def _expand(self, states: IntArray) -> BoolArray:
        """(N,) the new set: the largest superset of the last one, or its largest subset if that exceeds the budget."""
        policy, count = self.policy, states.size
        place = policy.blocks.block_of * policy.problem.arms.states + states
        every, inside = (np.bincount(place[one], minlength=policy.aim.size) for one in (slice(None), self.focus))
        part = inside.sum() / count
        keeps = np.maximum(inside / count - part * policy.aim, 0.0).sum() <= policy.slack * (1.0 - part)
        least, most = (inside, every) if keeps else (np.zeros_like(inside), inside)
        size = largest_set(least / count, most / count, policy.aim, policy.slack)
        wanted = np.floor(size * count + WHOLE).astype(np.int64)
        order = np.lexsort((~self.focus, place))  # by place, those of the last set first
        rank = np.arange(count) - (np.cumsum(every) - every)[place[order]]
        focus = np.zeros(count, dtype=bool)
        focus[order] = rank < wanted[place[order]]
        return focus


def largest_set(least: FloatArray, most: FloatArray, aim: FloatArray, slack: float) -> FloatArray:
    """Return z between least and most with the largest sum m for which sum of (z - m aim)^+ is at most slack (1 - m).

    For a given m the smallest such sum is the larger of sum of (m aim - most)^+ and sum of (least - m aim)^+. Minus the
    limit, that is convex in m, and piecewise linear: Newton's method from the right reaches the largest m in as many steps
    as there are pieces. The set of all `least` must be allowed.
    """
    part = float(most.sum())
    for _ in range(TURNS):
        over, under = part * aim > most, part * aim < least
        lacking, beyond = float((part * aim - most)[over].sum()), float((least - part * aim)[under].sum())
        excess = max(lacking, beyond) - slack * (1.0 - part)
        if excess <= WHOLE * (1.0 + slack):
            break
        slope = slack + (float(aim[over].sum()) if lacking >= beyond else -float(aim[under].sum()))
        if slope <= 0.0:
            break
        part = max(part - excess / slope, float(least.sum()))
    found = np.clip(part * aim, least, most)
    room = part - found.sum()  # spread what clipping removed or added over the rest
    free = most - found if room > 0 else found - least
    return np.asarray(found + room * free / max(float(free.sum()), 1e-300))
