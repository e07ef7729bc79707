"""A race of policies: they play the same episodes, a few more at a time, and those that are clearly behind drop out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.errors import RmabError, SolverError
from rmab.model import Problem
from rmab.planners.contract import Planner
from rmab.play import Batch, Policy, simulate_many
from rmab.solvers.fluid.fluid import Fluid

FEW = 10  # episodes after which candidates may be dropped; then twice as many, and so on
CLEAR = 3.0  # standard errors of the difference, in the same episodes, that count as clearly behind
ROUNDING = 1e-9  # relative to the bound
LATE = "the time limit was reached before it could play"
RACE, PROOF = 0, 1  # keys of the random streams: race, and measurement of the winner

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    """Result of one candidate.

    Attributes
    ----------
    name : str
        Name of the planner.
    episodes : int
        Episodes that it played in the race; 0 if it does not apply or failed.
    mean, stderr : float
        Mean reward per episode in the race, and its standard error.
    behind, behind_stderr : float
        Mean lead of the winner in the episodes that both played, with the same random numbers, and its standard error.
    seconds : float
        Time per episode, mostly for decisions.
    why : str
        Why it does not apply, or how it failed; empty otherwise.

    Examples
    --------
    >>> import rmab
    >>> task = rmab.make_task("cpap", arms=4, budget=2, horizon=5)
    >>> rmab.plan(task.problem, task.base_reward, candidates=["lagrangian"], episodes=5).candidates[0].name
    'lagrangian'
    """

    name: str
    episodes: int = 0
    mean: float = np.nan
    stderr: float = np.nan
    behind: float = np.nan
    behind_stderr: float = np.nan
    seconds: float = np.nan
    why: str = ""


class Race:
    """Candidates that play the same episodes, a few more at a time, until they are significantly different."""

    def __init__(
        self, problem: Problem, reward: FloatArray, bound: float, seed: int, progress: Progress, ends: float = np.inf
    ) -> None:
        self.ends = ends  # on the clock of `perf_counter`: nothing new starts after it
        self.problem, self.reward, self.bound, self.seed, self.progress = problem, reward, bound, seed, progress
        self.policies: dict[str, Policy] = {}
        self.earned: dict[str, FloatArray] = {}
        self.entries: dict[str, Candidate] = {}

    def enter(self, name: str, planner: Planner, fluid: Fluid) -> None:
        """Plan a candidate, or note why it does not apply."""
        self.progress(f"planning {name}")
        self.entries[name], self.earned[name] = Candidate(name), np.empty(0)
        if self.policies and self._is_late():
            self.entries[name] = Candidate(name, why=LATE)
            return
        try:
            policy: Any = planner(self.problem, self.reward, **({"fluid": fluid} if _takes_fluid(planner) else {}))
        except Exception as error:  # noqa: BLE001  (a custom planner may raise anything)
            self.entries[name] = Candidate(name, why=_line(error))
            return
        if isinstance(policy, Policy):
            self.policies[name] = policy
        else:
            self.entries[name] = Candidate(name, why=f"it returned {type(policy).__name__}, not a policy")

    def run(self, most: int) -> tuple[str, Batch]:
        """Return the name of the best, and the episodes that measure it; SolverError if there is none."""
        left, episodes = self._sound(), 0
        if not left:
            raise SolverError(f"plan: no candidate applies ({'; '.join(one.why for one in self.entries.values())})")
        while episodes < most and (len(left) > 1 or not episodes):
            more = min(max(episodes, FEW), most - episodes)
            for name in left:
                if self._is_late() and (episodes or any(one.size for one in self.earned.values())):
                    break
                self.progress(f"{name}: {episodes + more} of at most {most} episodes, {len(left)} candidates left")
                batch = self._play(name, (RACE, episodes), more)
                self.earned[name] = np.append(self.earned[name], [] if batch is None else batch.rewards)
            else:
                episodes += more
            if episodes:  # episodes that only some have played are not compared
                self.earned.update({name: self.earned[name][:episodes] for name in left})
            for name in [name for name in left if not self.earned[name].size and not self.entries[name].why]:
                self.entries[name] = replace(self.entries[name], why=LATE)
            best = self._best(left)
            left = [name for name in left if not self.entries[name].why and not self._is_behind(name, best)]
            if self._is_late():
                break
        while True:
            best = self._best(left)
            self.progress(f"measuring {best}")
            proof = self._play(best, (PROOF,), FEW if self._is_late() else most)
            if proof is not None:
                return best, proof

    def _play(self, name: str, key: tuple[int, ...], episodes: int) -> Batch | None:
        """Play more episodes, the same for all; None, and it drops out, if it fails."""
        start, rng = perf_counter(), np.random.default_rng((self.seed, *key))
        try:
            batch = simulate_many(self.problem, self.policies[name], self.reward, rng, episodes)
        except Exception as error:  # noqa: BLE001  (a custom policy may raise anything)
            self.entries[name] = replace(self.entries[name], why=f"it failed in an episode: {_line(error)}")
            return None
        if key[0] == RACE:
            self.entries[name] = replace(self.entries[name], seconds=(perf_counter() - start) / episodes)
        return batch

    def _is_late(self) -> bool:
        """Return whether the time is up."""
        return perf_counter() > self.ends

    def _sound(self) -> list[str]:
        """Return the candidates that have not failed."""
        return [name for name in self.policies if not self.entries[name].why]

    def _best(self, names: list[str]) -> str:
        """Return the best of these; or of all others if each of these has failed."""
        sound = self._sound()
        if not sound:
            raise SolverError(f"plan: every candidate failed ({'; '.join(one.why for one in self.entries.values())})")
        return max([name for name in names if name in sound] or sound, key=lambda name: float(self.earned[name].mean()))

    def _behind(self, name: str, best: str) -> tuple[float, float]:
        """Return how far a candidate is behind, in the episodes that both played, and its standard error."""
        both = min(self.earned[name].size, self.earned[best].size)
        apart = self.earned[best][:both] - self.earned[name][:both]
        return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(both)) if both > 1 else np.nan

    def _is_behind(self, name: str, best: str) -> bool:
        """Return whether a candidate is clearly behind, also considering rare episodes.

        Identical episodes prove nothing if a rare one pays much: it may be worth the whole distance to the bound.
        """
        behind, error = self._behind(name, best)
        unseen = max(self.bound - float(self.earned[best].mean()), 0.0) / np.sqrt(self.earned[best].size)
        return name != best and behind > CLEAR * float(np.hypot(error, unseen)) + ROUNDING * abs(self.bound)

    def standing(self, best: str) -> tuple[Candidate, ...]:
        """Return all candidates, the best first, those that do not apply last."""
        entries = []
        for name, entry in self.entries.items():
            earned = self.earned[name]
            if entry.why or not earned.size:
                entries.append(entry)
                continue
            behind, error = self._behind(name, best)
            spread = float(earned.std(ddof=1) / np.sqrt(earned.size))
            played = replace(entry, episodes=earned.size, mean=float(earned.mean()), stderr=spread)
            entries.append(replace(played, behind=behind, behind_stderr=error))
        return tuple(sorted(entries, key=lambda one: (bool(one.why), one.name != best, one.behind)))


def _takes_fluid(planner: Planner) -> bool:
    try:
        return "fluid" in inspect.signature(planner).parameters
    except (TypeError, ValueError):  # compiled code has no signature
        return False


def _line(error: Exception) -> str:
    """Return an error in one line; with its type unless it is from this library."""
    line = " ".join(str(error).split())
    return line if isinstance(error, RmabError) else f"{type(error).__name__}: {line:.300}"
