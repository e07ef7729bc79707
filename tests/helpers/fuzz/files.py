"""Part 2: files that were changed are refused in one line, or hold something valid; nothing else is raised."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from fuzz.cases import Case
from fuzz.mutations import changed_bytes, changed_json, changed_npz, changed_words
from fuzz.proofs import budgets, masses, require
from rmab.common.storage import load_any
from rmab.errors import FileError, ModelError, PolicyError, RmabError, SolverError
from rmab.planners.question import QuestionPolicy
from rmab.play import begin_episode
from rmab.study import Failure, Results, Study
from rmab.study.failures import store_failure
from rmab.study.shards import encode_table, write_shard
from rmab.study.single_run import attempt
from stored import SAMPLES

SIZES = {"arms": 4, "budget": 2, "horizon": 5, "episodes": 3}
LEARNERS = ("ucmd", "ucmd-armab", "rmab-ucrl", "q-whittle", "thompson")
TIMED_LEARNERS = ("ucmd", "thompson", "r2mab-ucb")
KINDS = (
    "rmab view",
    "rmab fit",
    "rmab decision",
    "rmab plan",
    *(f"rmab policy {one}" for one in ("rolling", "lp-update", "id", "ftva")),
)
STUDY = """name = "small"
title = "a title"
kind = "learning"
rounds = 2
seed = 7
[[tasks]]
name = "cpap@noisy"
label = "one"
rounds = 1
options = { arms = 4, budget = 2, horizon = 5, episodes = 3 }
[[tasks]]
name = "deadline"
options = { arms = 3, budget = 1, horizon = 2, episodes = 2, grouped = false, copies = 2 }
[[learners]]
name = "ucmd"
options = { epsilon = 0.1, confidence = "l1" }
[[learners]]
name = "rmab-ucrl"
label = "rival"
feedback = "bandit"
options = { version = "finite", optimism = 0.5 }
"""


@cache
def originals() -> dict[str, bytes]:
    """Return whole files by name, made once in a process."""
    task, timed = rmab.make_task("cpap@noisy", **SIZES), _timed_task()
    found = {"study.toml": STUDY.encode()}
    with tempfile.TemporaryDirectory() as folder:
        for one, place in ((task, Path(folder)), (timed, Path(folder) / "timed")):
            place.mkdir(exist_ok=True)
            for suffix in ("npz", "json"):
                one.save(place / f"task.{suffix}")
                one.problem.save(place / f"problem.{suffix}")
                rmab.planners.lagrangian_index(one.problem, one.base_reward).save(place / f"policy.{suffix}")
        (Path(folder) / "stored").mkdir()
        for kind in KINDS:
            one = SAMPLES[kind]()
            for suffix in one.FORMAT.suffixes:
                one.save(Path(folder) / "stored" / f"{kind}{suffix}")
        for name in LEARNERS:
            rmab.run(task, name).state.save(Path(folder) / f"{name}.npz")
        for name in TIMED_LEARNERS:
            rmab.run(timed, name).state.save(Path(folder) / "timed" / f"{name}.npz")
        _old_state(Path(folder))
        _results(Path(folder) / "out")
        for path in sorted(Path(folder).rglob("*.*")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def _timed_task() -> rmab.Task:
    """Return a task of two phases, with budgets by step, start probabilities, groups and sizes."""
    rng = np.random.default_rng(0)
    kernels = [rng.dirichlet(np.ones(size), size=(2, size, 2)) for size in (3, 2)]
    arms = rmab.Arms.of_sizes([kernels[0], kernels[1], kernels[0]], groups=["a", "b", "a"])
    start = [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    problem = rmab.Problem(arms, start, [1, 0, 2, 1], 4, [1, 0, 0, 1])
    rewards = rng.random((3, 2, 2, 3, 2))[:, [0, 1, 0]]
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1)


def _old_state(folder: Path) -> None:
    """Write a state as it was before there were phases."""
    (folder / "old").mkdir()
    with np.load(folder / "thompson.npz") as archive:
        kept = {name: archive[name] for name in archive.files if name not in ("view_phase_of", "view_phases")}
    np.savez(folder / "old" / "thompson.npz", **kept)
    assert rmab.State.load(folder / "old" / "thompson.npz").view.phases == 1


def _results(folder: Path) -> None:
    """Write the folder of a study of two runs that are finished and one that failed."""
    task = {"name": "cpap@noisy", "options": SIZES}
    study = Study.model_validate({"name": "x", "rounds": 3, "tasks": [task], "learners": [{"name": "random"}]})
    (folder / "runs").mkdir(parents=True)
    Results(folder, study).save()
    for job in study.jobs()[:2]:
        content, _, _ = attempt(job, "none")
        assert content is not None
        write_shard(folder, job.id, content)
    store_failure(folder, Failure(study.jobs()[2].id, "raised something", "a trace"))


def refused(case: Case, path: Path, load: Callable[[], Any], *allowed: type[RmabError]) -> Any:
    """Return what was loaded, or None where it was refused with one line that begins with the path."""
    try:
        return load()
    except (FileError, ModelError, *allowed) as error:
        line = str(error)
        require(len(line.splitlines()) == 1, f"not one line: {line!r}")
        require(len(line) < 4000, f"a line of {len(line)} characters")
        require(not isinstance(error, FileError) or line.startswith(str(path)), f"does not name the file: {line}")
        case.count("refused")
        return None


def check_task(case: Case, path: Path) -> None:
    """A task that was loaded can be viewed and paid, and is the same after it was saved again."""
    task = refused(case, path, lambda: rmab.Task.load(path))
    if task is None:
        return
    _check_problem(task.problem)
    require(repr(task.view()) and task.reward(0).shape == task.base_reward.shape, "task: view or reward")
    task.save(case.folder / "again.npz")
    again = rmab.Task.load(case.folder / "again.npz")
    same = again.problem == task.problem and (again.adversary.low, again.name) == (task.adversary.low, task.name)
    require(same, "task: another one after it was saved again")
    case.count("loaded")


def check_problem(case: Case, path: Path) -> None:
    """A problem that was loaded is one."""
    problem = refused(case, path, lambda: rmab.Problem.load(path))
    if problem is not None:
        _check_problem(problem)
        case.count("loaded")


def _check_problem(problem: rmab.Problem) -> None:
    arms = problem.arms
    require(np.allclose(arms.kernels.sum(axis=-1), 1.0) and arms.kernels.min() >= 0, "problem: kernels")
    limits, law = budgets(problem.budget, problem.horizon), masses(problem.start, arms.states)
    require(limits.shape == (problem.horizon,) and problem.horizon >= 1, "problem: budget or horizon")
    require(((limits >= 0) & (limits <= arms.count)).all(), "problem: budget")
    require(law.min() >= 0 and np.allclose(law.sum(axis=1), 1.0), "problem: start")
    require(not law[np.arange(arms.states) >= arms.real_states[:, np.newaxis]].any(), "problem: starts in padding")
    steps = problem.phase_of
    require(steps.shape == limits.shape and steps.min() >= 0 and steps.max() < problem.phases, "problem: phases")


def check_state(case: Case, path: Path) -> None:
    """A state that was loaded can be planned from within the budget, or its learner says in one line why not."""
    state = refused(case, path, lambda: rmab.State.load(path))
    if state is None:
        return
    learner = rmab.make_learner(path.stem)
    view = state.view
    start, limits = masses(view.start, view.states).argmax(axis=1), budgets(view.budget, view.horizon)
    asked: dict[str, Any] = {"start": start, "horizon": 1} if case.chance(0.5) else {}
    plan = refused(case, path, lambda: learner.plan(state, **asked), PolicyError, SolverError)
    if plan is not None:
        active = refused(case, path, lambda: plan.policy.act(0, start, np.random.default_rng(0)), PolicyError)
        require(active is None or int(np.sum(active)) <= limits[0], "state: a plan beyond the budget")
        case.count("loaded")


def check_policy(case: Case, path: Path) -> None:
    """A policy that was loaded decides within its budget, at every step, and is the same after it was saved again."""
    policy = refused(case, path, lambda: rmab.IndexPolicy.load(path), PolicyError)
    if policy is None:
        return
    steps = policy.table.shape[1] if policy.table.ndim == 3 else np.size(policy.budget)
    for h, limit in enumerate(budgets(policy.budget, steps)):
        active = policy.act(h, np.zeros(len(policy.table), dtype=int), case.rng)
        require(int(active.sum()) <= limit <= len(policy.table), "policy: beyond its budget")
    policy.save(case.folder / "again.json")
    again = rmab.IndexPolicy.load(case.folder / "again.json")
    require(repr(again) == repr(policy) and np.array_equal(again.table, policy.table), "policy: another one after saving")
    case.count("loaded")


def check_any(case: Case, path: Path) -> None:
    """Whatever was loaded is the same after it was saved again, and does what it is for."""
    found = refused(case, path, lambda: load_any(path), PolicyError, SolverError)
    if found is None:
        return
    content = found.to_bytes()
    require(type(found).from_bytes(content).to_bytes() == content, f"{type(found).__name__}: another one after saving")
    policy = found.policy if isinstance(found, rmab.PlanResult) else found
    if isinstance(policy, QuestionPolicy):
        problem, h = policy.problem, case.whole(0, policy.problem.horizon - 1)
        now = case.rng.integers(0, problem.arms.real_states)
        active = refused(
            case, path, lambda: begin_episode(policy, now, case.rng).act(h, now, case.rng), PolicyError, SolverError
        )
        limit = budgets(problem.budget, problem.horizon)[h]
        require(active is None or int(np.sum(active)) <= limit, "policy: beyond its budget")
    elif isinstance(found, rmab.data.Fit):
        made = refused(case, path, lambda: rmab.data.decide(found, 1, horizon=2), SolverError)
        require(made is None or int(made.active.sum()) <= 1, "fit: a list beyond its budget")
    elif isinstance(found, rmab.data.Decision):
        require(len(list(found.rows())) <= found.budget, "decision: a list beyond its budget")
    case.count("loaded")


def check_study(case: Case, path: Path) -> None:
    """A study that was loaded has jobs, with ids that differ."""
    study = refused(case, path, lambda: Study.load(path))
    if study is not None:
        ids = [job.id for job in study.with_rounds(2).jobs()]
        require(len(ids) == len(set(ids)) and study.hash, "study: two jobs of one id")
        case.count("loaded")


def check_results(case: Case, path: Path) -> None:
    """Of a study's folder in which one file was changed, runs are as they were, or missing, or damaged."""
    folder = next(one for one in path.parents if one.name == "out")
    for name, content in originals().items():
        place = case.folder / name
        if name.startswith("out/") and place != path:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    results = refused(case, path, lambda: Results.open(folder))
    if results is None:
        return
    if results.study.rounds > 10**4:
        case.count("results of too many rounds")
        return
    status = results.status()
    table = results.table()
    require(0 <= status.finished <= 2 and len(results.provenance()) == status.finished, "results: more runs than there are")
    require(table.num_rows == 3 * status.finished, "results: rows")
    require(all("\n" not in one.message for one in status.failures if one.trace == ""), "results: a failure of many lines")
    if path.suffix == ".parquet":
        whole = _whole_table()
        for run in set(table["id"].to_pylist()):
            rows, known = (one.filter([value == run for value in one["id"].to_pylist()]) for one in (table, whole))
            require(
                encode_table(rows.combine_chunks()) == encode_table(known.combine_chunks()),
                f"results: run {run} is not as it was written",
            )
    case.count("loaded")


@cache
def _whole_table() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in originals().items():
            if name.startswith("out/"):
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_bytes(content)
        return Results.open(Path(folder) / "out").table()


def _check_of(name: str) -> Callable[[Case, Path], None]:
    if name.startswith(("out/", "stored/")):
        return check_results if name.startswith("out/") else check_any
    known = {"task": check_task, "problem": check_problem, "policy": check_policy, "study": check_study}
    return known.get(Path(name).stem, check_state)


def changed(case: Case, name: str, content: bytes) -> bytes:
    """Return the file with some change that fits its kind, or any."""
    fitting = {".json": (changed_json, changed_words), ".npz": (changed_npz,), ".toml": (changed_words,)}
    return case.pick([changed_bytes, *2 * fitting.get(Path(name).suffix, ())])(case, content)  # type: ignore[operator,no-any-return]


def play(case: Case) -> None:
    """Change one file, chosen by the seed, and read it."""
    names = sorted(originals())
    name = names[case.seed % len(names)]
    path = case.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(changed(case, name, originals()[name]))
    _check_of(name)(case, path)
    case.count(Path(name).suffix)
