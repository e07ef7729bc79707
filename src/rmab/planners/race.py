"""A race of policies: they play the same episodes, a few more at a time, and who has clearly fallen behind drops out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, SolverError
from rmab.model.problem import Problem
from rmab.planners.endless import Ftva, IdPolicy, stationary_index
from rmab.planners.indices import lagrangian_index, occupancy_index
from rmab.planners.rolling import Rolling
from rmab.planners.whittle import WhittleResult, finite_whittle_index, whittle_index
from rmab.play.policy import Policy
from rmab.play.simulation import simulate_many
from rmab.solvers.fluid.fluid import Fluid

FEW = 10  # episodes after which candidates may be dropped; then twice as many, and so on
CLEAR = 3.0  # errors of the difference, with the same luck: then a candidate has fallen behind
ROUNDING = 1e-9  # of the bound
RACE = 0  # key of the luck

Maker = Callable[[Problem, FloatArray, Fluid], Policy]
Told = Callable[[str], None]


def _indexable(found: WhittleResult) -> Policy:
    if not found.indexable.all():
        raise ModelError(f"{int((~found.indexable).sum())} of {found.indexable.size} arms are not indexable")
    return found.policy()


CANDIDATES: dict[str, Maker] = {
    "lagrangian": lambda problem, reward, plan: lagrangian_index(problem, reward, plan=plan),
    "occupancy": lambda problem, reward, plan: occupancy_index(
        problem, reward, plan=plan, rule="at-most", rounding="dependent"
    ),
    "whittle": lambda problem, reward, _: _indexable(whittle_index(problem, reward)),
    "whittle-finite": lambda problem, reward, _: _indexable(finite_whittle_index(problem, reward)),
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


class Race:
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
