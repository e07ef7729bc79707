"""The best policy for a problem that is known: candidates are planned, and simulated until the best is told apart.

No policy wins everywhere: an index that is all but optimal for one kind of arms is poor for another. So several are tried
with the same luck, and those that have clearly fallen behind the leader are dropped, at first after a few episodes. What the
winner earns is measured on other episodes than those that made it win.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.checks import as_integer
from rmab.errors import ModelError
from rmab.model.problem import Problem
from rmab.model.time import parted
from rmab.planners.race import CANDIDATES, Candidate, Race, Told
from rmab.play.policy import Policy
from rmab.play.simulation import simulate_many
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.fluid import Fluid, solve_fluid

PROOF = 1  # key of the luck that measures the winner


@dataclass(frozen=True, eq=False)
class PlanResult:
    """The best policy that was found, as `rmab.plan` returns it.

    Attributes
    ----------
    name : str
        Which candidate it is.
    policy : Policy
        What decides: `policy.act(h, states, rng)`.
    value, stderr : float
        What it earns an episode, on episodes that had no part in choosing it, and the standard error of that.
    bound : float
        What no policy can earn more than.
    candidates : tuple of Candidate
        All of them, the best first.
    fluid : Fluid
        The fluid plan: prices, shares and bound.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem = rmab.Problem(arms, start=0, budget=1, horizon=4)
    >>> rmab.plan(problem, [[[0, 0], [1, 1]]] * 3, rounds=20).bound.__round__(3)
    2.376
    """

    name: str
    policy: Policy
    value: float
    stderr: float
    bound: float
    candidates: tuple[Candidate, ...]
    fluid: Fluid

    @property
    def short(self) -> float:
        """How far the value lies below the bound, relative to the bound; NaN where that is 0."""
        return (self.bound - self.value) / abs(self.bound) if self.bound else np.nan

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g} +- {self.stderr:.2g}, bound {self.bound:.6g}"
        return f"Planned({self.name}, {numbers}, {sum(not one.why for one in self.candidates)} candidates)"


def plan(
    problem: Problem,
    reward: ArrayLike,
    *,
    candidates: Iterable[str] | None = None,
    rounds: int = 100,
    seed: int = 0,
    told: Told | None = None,
) -> PlanResult:
    """Find the best policy for a problem whose kernels and rewards are known.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, where it depends on the time.
    candidates : names, optional
        Which are tried; all by default: 'lagrangian' (the index at the fluid plan's prices), 'occupancy' (its shares, as
        probabilities), 'whittle', 'whittle-finite', 'rolling' (planned again at every step), and from the plan of an endless
        horizon 'stationary' (its index), 'id' and 'ftva'. What does not apply to the problem is left out, and says why.
    rounds : int, default 100
        Most episodes that a candidate plays in the race, and those that measure the winner. 'rolling' takes the most time:
        some milliseconds a step.
    seed : int
        Of the simulations: the same seed leads to the same answer.
    told : function, optional
        Is called with a line now and then: what is going on.

    Returns
    -------
    Planned
        The best policy, what it earns, and what became of the others.

    Raises
    ------
    ModelError
        Where this is no problem, the reward does not fit it, or a candidate is unknown.
    SolverError
        Where the fluid bound cannot be certified.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem = rmab.Problem(arms, start=0, budget=1, horizon=4)
    >>> best = rmab.plan(problem, [[[0, 0], [1, 1]]] * 3, candidates=["lagrangian", "rolling"])
    >>> best.value < best.bound + 4 * best.stderr
    True
    """
    table = parted(checked_table(problem, reward, "plan"), problem.phases)
    names, most = _names(candidates), as_integer(rounds, "rounds")
    if most < 2:
        raise ModelError(f"rounds must be at least 2, got {most}")
    luck = as_integer(seed, "seed")
    if luck < 0:
        raise ModelError(f"seed must be 0 or more, got {luck}")
    if told is not None and not callable(told):
        raise ModelError(f"told must be a function of a line, got {type(told).__name__}")
    tell = told or _nothing
    tell("solving the fluid plan")
    made = solve_fluid(problem, table)
    race = Race(problem, table, made.bound, luck, tell)
    for name in names:
        race.enter(name, made)
    best = race.run(most)
    tell(f"measuring {best}")
    proof = simulate_many(problem, race.policies[best], table, np.random.default_rng((luck, PROOF)), most)
    return PlanResult(best, race.policies[best], proof.mean, proof.stderr, made.bound, race.standing(best), made)


def _nothing(line: str) -> None:
    """Tell nobody."""


def _names(candidates: Iterable[str] | None) -> list[str]:
    """Return the names of candidates, each once, or raise ModelError."""
    if candidates is None:
        return list(CANDIDATES)
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise ModelError(f"candidates must be a list of names, got {candidates!r:.40}")
    names: list[str] = []
    for name in candidates:
        if isinstance(name, str) and name in CANDIDATES:
            names += [name] if name not in names else []
        else:
            wrong = f"unknown candidate {name!r:.40}; there are {', '.join(CANDIDATES)}"
            raise ModelError(wrong, code="unknown-name", candidate=str(name))
    if not names:
        raise ModelError("candidates: at least one is needed")
    return names
