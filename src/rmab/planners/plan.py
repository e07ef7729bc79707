"""The best policy for a known problem: planners return candidates, which are simulated until the best is clear.

No policy is best everywhere: an index that is nearly optimal for one kind of arms is poor for another. So several play
the same episodes, and those that are clearly behind the leader are dropped, the first after a few. The winner's value
is measured on episodes that were not used to choose it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import TypeAdapter, ValidationError

from rmab.common import Format, Stored, as_amount, as_integer, as_seed, build_any, is_number, is_several, load_any
from rmab.errors import FileError, ModelError
from rmab.model import Problem, split_cells
from rmab.planners.contract import Planner
from rmab.planners.race import Candidate, Progress, Race
from rmab.planners.registry import CANDIDATES, make_planner
from rmab.play import Policy
from rmab.solvers.checks import checked_table
from rmab.solvers.exact import quick_optimum
from rmab.solvers.fluid.fluid import solve_fluid

Single: TypeAlias = "str | Planner | Mapping[str, Any]"  # a name, a planner, or a table of a name and options
Candidates: TypeAlias = "Iterable[Single | tuple[str, Single]] | Mapping[str, Single]"


@dataclass(frozen=True, eq=False)
class PlanResult(Stored):
    """The best policy found by `rmab.plan`. It can be saved and loaded, with its numbers.

    Attributes
    ----------
    name : str
        Name of the candidate.
    policy : Policy
        The policy: `policy.act(h, states, rng)`.
    value, stderr : float
        Mean reward per episode, on episodes that were not used to choose it, and its standard error.
    bound : float
        Upper bound on the value of any policy.
    candidates : tuple of Candidate
        All of them, the best first.
    optimum : float or None
        Exact value of an optimal policy, if it is quick to compute because many arms are identical.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem = rmab.Problem(arms, start=0, budget=1, horizon=4)
    >>> rmab.plan(problem, [[[0, 0], [1, 1]]] * 3, episodes=20).bound.__round__(3)
    2.376
    """

    name: str
    policy: Policy
    value: float
    stderr: float
    bound: float
    candidates: tuple[Candidate, ...]
    optimum: float | None = None

    FORMAT = Format(
        "rmab plan", 1, {"name", "value", "stderr", "bound", "candidates"}, {"optimum"}, prefix="policy_", suffixes=(".npz",)
    )

    @property
    def short(self) -> float:
        """How far the value lies below the bound, relative to the bound; NaN if that is 0."""
        return (self.bound - self.value) / abs(self.bound) if self.bound else np.nan

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g} +- {self.stderr:.2g}, bound {self.bound:.6g}"
        return f"PlanResult({self.name}, {numbers}, {sum(not one.why for one in self.candidates)} candidates)"

    def to_fields(self) -> dict[str, Any]:
        """Return the numbers, the candidates by column, and the fields of the policy by name."""
        if not isinstance(self.policy, Stored):
            raise ModelError(f"the policy of {self.name} cannot be stored: {type(self.policy).__name__} has no `to_fields`")
        form, rows = self.policy.FORMAT, json.dumps([asdict(one) for one in self.candidates])
        policy = {"kind": form.kind, "format": form.version, **self.policy.to_fields()}
        numbers = {name: getattr(self, name) for name in ("name", "value", "stderr", "bound")}
        numbers |= {} if self.optimum is None else {"optimum": self.optimum}
        return {**numbers, "candidates": rows, **{f"policy_{name}": value for name, value in policy.items()}}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build the result from its fields; ModelError or PolicyError if they do not fit."""
        try:
            rows = TypeAdapter(tuple[Candidate, ...]).validate_json(fields["candidates"])
            policy: Any = build_any({key[7:]: value for key, value in fields.items() if key.startswith("policy_")}, "policy")
        except (FileError, ValidationError) as error:
            raise ModelError(str(error)) from error
        if not isinstance(policy, Policy):
            raise ModelError(f"policy: {type(policy).__name__} is not a policy")
        for name in [one for one in ("value", "stderr", "bound", "optimum") if one in fields]:
            if not is_number(fields[name]) or not np.isfinite(fields[name]) or (name == "stderr" and fields[name] < 0):
                least = ", 0 or more" if name == "stderr" else ""
                raise ModelError(f"{name} must be a finite number{least}, got {fields[name]!r:.40}", field=name)
        if not isinstance(fields["name"], str) or fields["name"] not in (one.name for one in rows if not one.why):
            raise ModelError(f"name: {fields['name']!r:.40} is not one of the candidates", field="name")
        value, stderr, bound = (float(fields[name]) for name in ("value", "stderr", "bound"))
        return cls(
            fields["name"], policy, value, stderr, bound, rows, float(fields["optimum"]) if "optimum" in fields else None
        )


def plan(
    problem: Problem,
    reward: ArrayLike,
    *,
    candidates: Candidates | None = None,
    episodes: int = 100,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> PlanResult:
    """Find the best policy for a problem whose kernels and rewards are known.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    candidates : list or mapping, optional
        Planners to try: names of `rmab.list_planners()`, `module:planner`, functions of a problem and a reward, tables of a
        name and options (``{"name": "rolling", "window": 5}``), or pairs (name, planner); or a mapping of name to planner.
        By default 'lagrangian' (the index at the fluid plan's prices),
        'occupancy' (its shares, as probabilities), 'whittle', 'whittle-finite', 'rolling' (planned again at every step), and
        from an infinite-horizon plan 'stationary' (its index), 'id' and 'ftva'. One that does not apply to the
        problem, or fails, is reported with its reason.
    episodes : int, default 100
        Most episodes per candidate in the race, and episodes that measure the winner. 'rolling' takes the most time:
        some milliseconds a step.
    seed : int
        Random seed of the simulations. The same seed gives the same result, unless a time limit is reached.
    time_limit : float, optional
        Seconds after which nothing new starts: candidates that have not played are reported as such, and the best so far
        is measured in 10 episodes. The first candidate always plays, so put a quick one first.
    progress : function, optional
        Called with a line of text about the progress.

    Returns
    -------
    PlanResult
        The best policy, its value, and the results of all candidates.

    Raises
    ------
    ModelError
        If an argument is wrong, or a candidate is unknown.
    SolverError
        If the fluid bound cannot be certified.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    >>> problem = rmab.Problem(arms, start=0, budget=1, horizon=4)
    >>> best = rmab.plan(problem, [[[0, 0], [1, 1]]] * 3, candidates=["lagrangian", "rolling"])
    >>> best.value < best.bound + 4 * best.stderr
    True
    """
    table = split_cells(checked_table(problem, reward, "plan"), problem.phases)
    planners, most = _planners(candidates), as_integer(episodes, "episodes")
    if most < 2:
        raise ModelError(f"episodes must be at least 2, got {most}")
    number, ends = as_seed(seed), perf_counter() + (np.inf if time_limit is None else as_amount(time_limit, "time_limit"))
    if progress is not None and not callable(progress):
        raise ModelError(f"progress must be a function of a line of text, got {type(progress).__name__}")
    report = progress or (lambda _: None)
    report("solving the fluid plan")
    fluid = solve_fluid(problem, table)
    race = Race(problem, table, fluid.bound, number, report, ends)
    for name, planner in planners.items():
        race.enter(name, planner, fluid)
    best, proof = race.run(most)
    optimum = quick_optimum(problem, table)
    return PlanResult(best, race.policies[best], proof.mean, proof.stderr, fluid.bound, race.standing(best), optimum)


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy of any kind from a file: one that was saved itself, or the winner of a saved `PlanResult`.

    Parameters
    ----------
    path : str or path
        What `save` of a policy, `PlanResult.save` or `rmab plan --save` wrote.

    Returns
    -------
    Policy
        A policy with exactly the same decisions as the saved one.

    Raises
    ------
    FileError, ModelError, PolicyError
        If the file cannot be read, contains something else, or is not valid.

    Examples
    --------
    >>> import tempfile, pathlib, rmab
    >>> task = rmab.make_task("cpap", arms=4, budget=2, horizon=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rmab.planners.Rolling(task.problem, task.base_reward).save(pathlib.Path(folder) / "policy.npz")
    ...     rmab.planners.load_policy(pathlib.Path(folder) / "policy.npz")
    Rolling(Problem(Arms(4 arms, 3 states), budget 2, horizon 5), window 10)
    """
    loaded: Any = load_any(path)
    policy: Any = loaded.policy if isinstance(loaded, PlanResult) else loaded
    if not isinstance(policy, Policy):
        raise FileError(f"{path}: the file contains a {type(policy).__name__}, not a policy")
    return policy


def _planners(candidates: Candidates | None) -> dict[str, Planner]:
    """Return the planners by name, or raise ModelError."""
    given: Any = CANDIDATES if candidates is None else candidates
    if not is_several(given):
        raise ModelError(f"candidates must be a list of names and planners, got {given!r:.40}")
    planners: dict[str, Planner] = {}
    for one in given.items() if isinstance(given, Mapping) else given:
        name, planner = one if isinstance(one, tuple) and len(one) == 2 else (_name_of(one), one)
        table = {"name": planner} if isinstance(planner, str) else planner
        if not isinstance(name, str) or not (callable(planner) or (isinstance(table, Mapping) and "name" in table)):
            kinds = "the name of a planner, a table of its name and options, a planner, or (name, planner)"
            raise ModelError(f"a candidate is {kinds}, got {one!r:.40}")
        if name in planners:
            raise ModelError(f"two candidates have the name {name!r}; give them as (name, planner)")
        planners[name] = planner if callable(planner) else make_planner(**table)
    if not planners:
        raise ModelError("candidates must have at least one planner")
    return planners


def _name_of(planner: Any) -> Any:
    """Return the name of a planner, with its options, or that of its function or class."""
    if isinstance(planner, Mapping):
        options = ", ".join(f"{key}={value}" for key, value in planner.items() if key != "name")
        return f"{planner.get('name')}, {options}" if options else planner.get("name")
    function = getattr(planner, "func", planner)  # of a partial
    return planner if isinstance(planner, str) else getattr(function, "__name__", type(planner).__name__)
