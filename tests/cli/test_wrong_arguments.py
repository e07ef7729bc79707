"""Arguments of a wrong kind are refused with one line of the library's own; the fuzzer found each of these."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError, FileError, ModelError, PolicyError, RmabError, SolverError
from rmab.learning.state import ArraySpec, check_arrays
from rmab.study import Failure, Job, Study
from rmab.study.failures import read_failures, store_failure
from rmab.testing import check_learner
from strategies import random_problem

PROBLEM, REWARD = random_problem(0, 3, 2, 4, 1)
TASK = rmab.make_task("cpap", arms=2, budget=1, horizon=3, episodes=2)
MODEL = rmab.RewardModel(np.ones((1, 3, 2, 2)), 0, 2)
POLICY = rmab.planners.random_policy(PROBLEM)
RNG = np.random.default_rng(0)
LINES = np.zeros((3, 3))  # an array is shown in several lines, and has no truth value
POINT: Any = np.array(True)  # an array without a dimension has no length, and nothing to go through
RAGGED: Any = [1, [2]]
WRONG: Any = 3

CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: rmab.Arms(PROBLEM.arms.kernels, groups=np.array(1)), "groups must be a list of labels"),
    (lambda: rmab.Arms(PROBLEM.arms.kernels, state_names=np.array(1)), "state_names must be a list of names"),
    (
        lambda: rmab.Arms(PROBLEM.arms.kernels, state_names=["a", "\0"]),
        "the name of state 1 must not contain a NUL character",
    ),
    (lambda: replace(rmab.make_task("cpap"), name="a\0b"), "name must not contain a NUL character"),
    (lambda: rmab.Arms.of_sizes(WRONG), "kernels must be a list of kernels, one per arm, got int"),
    (lambda: rmab.Task("x", WRONG, TASK.adversary), "problem must be a Problem, got int"),
    (lambda: rmab.Task("x", PROBLEM, WRONG), "adversary must be an Adversary, got int"),
    (lambda: rmab.make_task(WRONG), "a task is built from a name or a file, got int"),
    (lambda: rmab.make_learner(WRONG), "the name of a learner must be text, got int"),
    (lambda: rmab.make_adversary(WRONG, MODEL, 2, RNG), "the name of an adversary must be text, got int"),
    (lambda: rmab.make_adversary("iid", WRONG, 2, RNG), "model must be a RewardModel, got int"),
    (lambda: rmab.make_adversary("iid", MODEL, 2, WRONG), "rng must be a numpy.random.Generator"),
    (lambda: rmab.planners.whittle_index(PROBLEM, REWARD, discount=RAGGED), r"discount must be in \[0, 1\]"),
    (
        lambda: rmab.tasks.deadline.deadline_whittle(WRONG),
        "problem must be a Problem, got int; for a task, use task.problem",
    ),
    (lambda: rmab.tasks.deadline.least_laxity_first(WRONG), "problem must be a Problem"),
    (lambda: rmab.solvers.solve_fluid(PROBLEM, REWARD, method=LINES), "method must be one of"),
    (lambda: rmab.solvers.solve_fluid(PROBLEM, REWARD, tolerance=10**400), "tolerance must be a positive number"),
    (lambda: rmab.planners.lagrangian_index(PROBLEM, REWARD, fluid=WRONG), "fluid must be a Fluid, got int"),
    (lambda: rmab.planners.myopic_index(PROBLEM, REWARD, lookahead=LINES), "lookahead must be a bool"),
    (lambda: rmab.IndexPolicy(REWARD[..., 0], 1, rule=LINES), "rule must be 'fill', 'at-most' or 'auto'"),
    (lambda: rmab.IndexPolicy(REWARD[..., 0], 1, rounding=LINES), "rounding must be 'top' or 'dependent'"),
    (lambda: POLICY.act(0, PROBLEM.start, WRONG), "rng must be a numpy.random.Generator"),
    (lambda: POLICY.act(0, RAGGED, RNG), "states: not an array"),
    (lambda: rmab.planners.LpUpdate(PROBLEM, REWARD).act(0, RAGGED, RNG), "states: not an array"),
    (lambda: rmab.planners.LpUpdate(PROBLEM, REWARD).act(0, PROBLEM.start, WRONG), "rng must be a numpy.random.Generator"),
    (lambda: rmab.simulate(WRONG, POLICY, REWARD, RNG), "problem must be a Problem"),
    (lambda: rmab.simulate_many(PROBLEM, POLICY, REWARD, RNG, LINES), "rounds must be a whole number"),
    (lambda: rmab.Feedback.of_steps(WRONG, 0, [[0]], [[0]], [[0]]), "view must be a View, got int"),
    (lambda: rmab.Feedback.reveal(TASK.view(), 0, WRONG, REWARD), "trajectory must be a Trajectory, got int"),
    (lambda: rmab.Feedback(0, [[0], [0]], [[1e300]], REWARD), "actions must be a table of whole numbers"),
    (lambda: rmab.make_learner("random").plan(WRONG), "state must be a State, got int"),
    (lambda: rmab.make_learner("random").learn(_begun(), WRONG), "feedback must be a Feedback, got int"),
    (lambda: replace(_begun(), arrays=WRONG), "arrays must be a Mapping, got int; give arrays by name"),
    (lambda: rmab.run(TASK, "random", feedback=LINES), "feedback must be text, got ndarray"),
    (lambda: rmab.runs.Comparators(WRONG, REWARD), "problem must be a Problem"),
    (lambda: rmab.runs.Comparators(PROBLEM, WRONG), "rewards must be an array, finite floats of shape"),
    (lambda: rmab.runs.Comparators(PROBLEM, np.full((2, 3, 2, 2), np.nan)), "rewards must be an array, finite floats"),
    (lambda: rmab.runs.Comparators(PROBLEM, REWARD[np.newaxis]).per_episode(RAGGED), r"unknown comparator \[1, \[2\]\]"),
    (lambda: rmab.runs.theory_curve(WRONG), "view must be a View, got int"),
    (lambda: rmab.runs.theory_curve(TASK.view(), epsilon=0.0), "epsilon must be above 0"),
    (lambda: rmab.Task.load(WRONG), "3: a path must be text or a pathlib object, got int"),
    (lambda: rmab.Problem.load("\0.npz"), "cannot be read"),
    (lambda: Study.load(WRONG), "a study is a name or the path of a file, got int"),
    (lambda: Study.load("\0"), "cannot be read"),
    (lambda: Job.from_text(WRONG), "the text of a job must be text, got int"),
    (lambda: rmab.data.decide([1.0], 1, ids=POINT), "ids must be one for each arm"),
    (lambda: rmab.data.decide([1.0], 1, states=POINT), "states must be one for each arm"),
    (lambda: rmab.data.decide([1.0], 1, must=POINT), "must must be a list of ids"),
    (lambda: rmab.data.decide([1.0], 1, rules=POINT), "rules must be a list of functions"),
    (lambda: rmab.data.decide([1.0], 1, groups={"side": POINT}), "groups: 'side' must have 1 values"),
    (lambda: rmab.data.decide([1.0], 1, horizon=LINES), "horizon must be a whole number"),
    (lambda: rmab.data.decide([1.0], 1, step=LINES), "step must be a whole number"),
    (lambda: rmab.data.Statistics.merge(POINT), "merge needs a list of Statistics"),
    (lambda: rmab.data.example_log(weeks=10**12), "weeks must be in 2..10000"),
    (lambda: rmab.data.read_log("x.csv", arm="a", period="b", state="c", action="d", decimal=LINES), "decimal must be"),
    (
        lambda: rmab.data.read_log("x.csv", arm="a", period="b", state="c", action="d", states={"low": 10**400}),
        "states: the smallest reading of 'low' must be a number",
    ),
    (lambda: rmab.plan(PROBLEM, REWARD, candidates=POINT), "candidates must be a list"),
    (lambda: Job.from_text("{}"), r"the text of a job must be as to_text wrote it \('task'\)"),
]


def _begun() -> rmab.State:
    return rmab.make_learner("random").begin(TASK.view())


@pytest.mark.parametrize(("call", "line"), CALLS, ids=[f"{place}: {line}" for place, (_, line) in enumerate(CALLS)])
def test_wrong_kinds_are_refused_in_one_line(call: Callable[[], Any], line: str) -> None:
    with pytest.raises(RmabError, match=line) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("kind", [ModelError, FileError, FeedbackError, PolicyError, SolverError])
def test_a_message_is_one_line_whatever_it_quotes(kind: type[RmabError]) -> None:
    assert str(kind("got [[1, 2],\n     [3, 4]]\u2028\n")) == "got [[1, 2], [3, 4]]"
    assert str(kind("/a  folder/x.npz: no")) == "/a  folder/x.npz: no"
    assert kind().args == ()


def test_a_state_without_the_table_that_is_played_is_refused() -> None:
    for name, missing in (("thompson", "table"), ("rmab-ucrl", "share"), ("colored-ucrl2", "choice")):
        learner = rmab.make_learner(name)
        state = learner.begin(TASK.view())
        rest = {key: array for key, array in state.arrays.items() if key != missing}
        with pytest.raises(ModelError, match=f"^state: {missing} is missing$"):
            learner.plan(replace(state, arrays=rest))


@pytest.mark.parametrize(("dtype", "fits"), [("f2", True), ("f4", True), ("g", True), (">f8", False), ("i8", False)])
def test_arrays_of_other_precision_are_compared_without_overflow(dtype: str, fits: bool) -> None:
    declared = {"x": ArraySpec((2,), "f", 0)}
    if fits:
        check_arrays({"x": np.zeros(2, dtype=dtype)}, declared)
        return
    with pytest.raises(ModelError, match="x must contain real numbers"):
        check_arrays({"x": np.zeros(2, dtype=dtype)}, declared)


@pytest.mark.parametrize(
    "changed", [{"message": None}, {"message": "two\nlines"}, {"trace": 1}, {"id": "another"}, {"more": "x"}, [], None]
)
def test_a_failure_that_was_changed_is_said_to_be_so(changed: Any, tmp_path: Path) -> None:
    store_failure(tmp_path, Failure("run", "why", "where\nit was"))
    assert read_failures(tmp_path, ["run"]) == (Failure("run", "why"),)
    path = tmp_path / "failures" / "run.json"
    whole = {**json.loads(path.read_text()), **changed} if isinstance(changed, dict) else changed
    path.write_text(json.dumps(whole))
    (failure,) = read_failures(tmp_path, ["run"])
    assert failure.id == "run"
    assert failure.message.startswith(f"{path}: cannot be read (")
    assert "\n" not in failure.message


def test_an_archive_with_something_else_than_arrays_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kernels.txt", b"no array")
    with pytest.raises(
        FileError, match=r"^\S+: not a readable .npz archive \('kernels.txt' is not an array of numbers or text\)$"
    ):
        rmab.Problem.load(path)


@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (-1e6, 1e-3), (0.0, 1e120), (0.0, 1e-120)])
def test_a_learner_keeps_its_contract_at_any_offset_and_scale(offset: float, scale: float) -> None:
    """The suite's own rewards, opposite or wrong, are so in spite of rounding."""
    rewards = offset + scale * np.random.default_rng(0).random((3, 3, 2, 2))
    check_learner(rmab.make_learner("random"), rmab.Task.from_rewards(PROBLEM, rewards), episodes=3)


def test_names_of_states_are_shown_as_far_as_a_line_goes() -> None:
    with pytest.raises(ModelError) as caught:
        rmab.Arms(PROBLEM.arms.kernels, state_names=["z" * 5000, "\ud800", "x"])
    assert len(str(caught.value)) < 300
    with pytest.raises(ModelError, match=r"got 1: \\ud800$"):
        rmab.Arms(PROBLEM.arms.kernels, state_names=["\ud800"])


def test_a_million_threads_are_not_started() -> None:
    game = rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1)
    policy, rounds = rmab.planners.random_policy(game.problem), 5000
    many, one = (
        rmab.simulate_many(game.problem, policy, game.base_reward, np.random.default_rng(0), rounds, threads=threads)
        for threads in (10**6, 1)
    )
    np.testing.assert_array_equal(many.rewards, one.rewards)


def test_a_long_kind_is_quoted_in_part(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"kind": "' + "z" * 5000 + '"}')
    with pytest.raises(rmab.errors.FileError) as caught:
        rmab.Problem.load(tmp_path / "p.json")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))
