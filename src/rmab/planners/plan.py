"""The best policy for a problem that is known: candidates are planned, and simulated until the best is told apart.

No policy wins everywhere: an index that is all but optimal for one kind of arms is poor for another. So several are tried
with the same luck, and those that have clearly fallen behind the leader are dropped, at first after a few episodes. What the
winner earns is measured on other episodes than those that made it win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_integer
from rmab.errors import ModelError, SolverError
from rmab.model.problem import Problem
from rmab.model.time import parted
from rmab.planners.endless import Ftva, IdPolicy, stationary_index
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.planners.rolling import Rolling
from rmab.planners.whittle import Whittle, whittle, whittle_finite
from rmab.play.policy import Policy
from rmab.play.simulation import simulate_many
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.fluid import Fluid, fluid

FEW = 10  # episodes after which candidates may be dropped; then twice as many, and so on
CLEAR = 3.0  # errors of the difference, with the same luck: then a candidate has fallen behind
ROUNDING = 1e-9  # of the bound
RACE, PROOF = 0, 1  # keys of the luck: of the race, and of what the winner earns

Maker = Callable[[Problem, FloatArray, Fluid], Policy]
Told = Callable[[str], None]


def _indexable(found: Whittle) -> Policy:
    if not found.indexable.all():
        raise ModelError(f"{int((~found.indexable).sum())} of {found.indexable.size} arms are not indexable")
    return found.policy()


CANDIDATES: dict[str, Maker] = {
    "lagrangian": lambda problem, reward, plan: lagrangian_index(problem, reward, plan=plan),
    "occupancy": lambda problem, reward, plan: occupancy_index(
        problem, reward, plan=plan, rule="at-most", rounding="dependent"
    ),
    "whittle": lambda problem, reward, _: _indexable(whittle(problem, reward)),
    "whittle-finite": lambda problem, reward, _: _indexable(whittle_finite(problem, reward)),
    "rolling": lambda problem, reward, plan: Rolling(problem, reward, plan=plan),
    "stationary": lambda problem, reward, _: stationary_index(problem, reward),
    "id": lambda problem, reward, _: IdPolicy(problem, reward),
    "ftva": lambda problem, reward, _: Ftva(problem, reward),
}


@dataclass(frozen=True)
class Candidate:
    """What became of one candidate.

    Attributes
    ----------
    name : str
        A key of `CANDIDATES`.
    rounds : int
        Episodes that it played in the race; 0 where it does not apply or failed.
    mean, stderr : float
        What it earned an episode in the race, and the standard error of that.
    behind, behind_stderr : float
        What the winner earned more, episode by episode with the same luck, in those episodes that both played.
    seconds : float
        What an episode took, mostly to decide.
    why : str
        Why it does not apply; empty where it does.
    """

    name: str
    rounds: int = 0
    mean: float = np.nan
    stderr: float = np.nan
    behind: float = np.nan
    behind_stderr: float = np.nan
    seconds: float = np.nan
    why: str = ""


@dataclass(frozen=True, eq=False)
class Planned:
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
) -> Planned:
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
    made = fluid(problem, table)
    race = _Race(problem, table, made.bound, luck, tell)
    for name in names:
        race.enter(name, made)
    best = race.run(most)
    tell(f"measuring {best}")
    proof = simulate_many(problem, race.policies[best], table, np.random.default_rng((luck, PROOF)), most)
    return Planned(best, race.policies[best], proof.mean, proof.stderr, made.bound, race.standing(best), made)


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
            raise ModelError(f"unknown candidate {name!r:.40}; there are {', '.join(CANDIDATES)}")
    if not names:
        raise ModelError("candidates: at least one is needed")
    return names


class _Race:
    """Candidates that play the same episodes, a few more at a time, until they are told apart."""

    def __init__(self, problem: Problem, reward: FloatArray, bound: float, seed: int, tell: Told) -> None:
        self.problem, self.reward, self.bound, self.seed, self.tell = problem, reward, bound, seed, tell
        self.policies: dict[str, Policy] = {}
        self.earned: dict[str, FloatArray] = {}
        self.entries: dict[str, Candidate] = {}

    def enter(self, name: str, made: Fluid) -> None:
        """Plan a candidate, or note why it does not apply."""
        self.tell(f"planning {name}")
        self.entries[name] = Candidate(name)
        try:
            self.policies[name] = CANDIDATES[name](self.problem, self.reward, made)
            self.earned[name] = np.empty(0)
        except (ModelError, SolverError) as error:
            self.entries[name] = Candidate(name, why=str(error))

    def run(self, most: int) -> str:
        """Return the name of the best; SolverError where there is none."""
        left, done = list(self.policies), 0
        if not left:
            raise SolverError(f"plan: no candidate applies ({'; '.join(one.why for one in self.entries.values())})")
        while done < most and (len(left) > 1 or not done):
            more = min(max(done, FEW), most - done)
            for name in list(left):
                self.tell(f"{name}: {done + more} of at most {most} episodes, {len(left)} candidates left")
                if not self._played(name, done, more):
                    left.remove(name)
            done += more
            best = self._best(left)
            left = [name for name in left if not self._fallen(name, best)]
        return self._best(left)

    def _played(self, name: str, done: int, more: int) -> bool:
        """Play more episodes, the same for all; False, and it is out, where it fails."""
        begun = perf_counter()
        try:
            batch = simulate_many(
                self.problem, self.policies[name], self.reward, np.random.default_rng((self.seed, RACE, done)), more
            )
        except (ModelError, SolverError) as error:
            self.entries[name] = replace(self.entries[name], why=f"it failed in an episode: {error}")
            return False
        self.earned[name] = np.append(self.earned[name], batch.rewards)
        self.entries[name] = replace(self.entries[name], seconds=(perf_counter() - begun) / more)
        return True

    def _best(self, names: list[str]) -> str:
        if not names:
            raise SolverError("plan: every candidate failed in an episode")
        return max(names, key=lambda name: float(self.earned[name].mean()))

    def _behind(self, name: str, best: str) -> tuple[float, float]:
        """Return how far a candidate is behind, in the episodes that both played, and the standard error of that."""
        both = min(self.earned[name].size, self.earned[best].size)
        apart = self.earned[best][:both] - self.earned[name][:both]
        return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(both)) if both > 1 else np.nan

    def _fallen(self, name: str, best: str) -> bool:
        """Return whether a candidate is clearly behind, by luck that was seen and by luck that was not.

        Episodes that are all alike prove nothing where a rare one pays much: it may be worth what is missing to the bound.
        """
        behind, error = self._behind(name, best)
        unseen = max(self.bound - float(self.earned[best].mean()), 0.0) / np.sqrt(self.earned[best].size)
        return name != best and behind > CLEAR * float(np.hypot(error, unseen)) + ROUNDING * abs(self.bound)

    def standing(self, best: str) -> tuple[Candidate, ...]:
        """Return all candidates, the best first, those that do not apply last."""
        entries = []
        for name, entry in self.entries.items():
            earned = self.earned.get(name, np.empty(0))
            if entry.why or not earned.size:
                entries.append(entry)
                continue
            behind, error = self._behind(name, best)
            spread = float(earned.std(ddof=1) / np.sqrt(earned.size))
            own = replace(entry, rounds=earned.size, mean=float(earned.mean()), stderr=spread)
            entries.append(replace(own, behind=behind, behind_stderr=error))
        return tuple(sorted(entries, key=lambda one: (bool(one.why), one.name != best, one.behind)))
