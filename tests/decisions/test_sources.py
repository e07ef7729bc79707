"""Decisions from a model, from a learner's plan, and from indices made by hand: the same rules, the same list."""

import json
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rmab
from logs import mothers
from rmab.data import Candidates, Decision, Fit, Words, decide
from rmab.learning.base import EpisodePlan

RULES = {"floor": 21, "caps": {"age=20-29": 11}, "seed": 3}


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return mothers(200, 20, groups=("age",))


def columns(fitted: Fit) -> dict[str, list[str]]:
    return {"age": list(fitted.roster.labels)}


def test_a_model_a_plan_and_indices_by_hand_give_the_same_list(fitted: Fit) -> None:
    """The index of the model is given to each of the three ways in; what they list, and by which rule, is the same."""
    by_model = decide(fitted, 24, **RULES)
    context = {
        "ids": fitted.ids,
        "groups": columns(fitted),
        "waited": fitted.situation.acted_before,
        "period": by_model.period,
    }
    by_hand = decide(by_model.index, 24, states=by_model.states, **context, **RULES)
    table = np.repeat(by_model.index[:, np.newaxis], 3, axis=1)
    plan = EpisodePlan(rmab.IndexPolicy(table, 24, rule="at-most"))
    by_plan = decide(plan, states=np.maximum(fitted.situation.state, 0), **context, **RULES)
    for other in (by_hand, by_plan):
        assert other.ids == by_model.ids
        assert other.rule == by_model.rule
        assert np.array_equal(other.rank, by_model.rank)
        assert np.array_equal(other.probability, by_model.probability, equal_nan=True)
        assert other.prices == by_model.prices
    assert {"floor", "index"} <= set(by_model.rule)
    assert by_hand.states == by_model.states


def test_a_learner_s_plan_is_decided_as_it_would_be_played() -> None:
    task = rmab.make_task("cpap", arms=20)
    learner = rmab.make_learner("ucmd")
    state = learner.begin(task.view())
    plan = learner.plan(state)
    now = np.random.default_rng(0).integers(0, task.problem.arms.kernels.shape[1], 20)
    found = decide(plan, states=now, ids=[f"bed {n}" for n in range(20)], words=Words("visit", "day"))
    table = plan.policy.table
    index = table[np.arange(20), now] if table.ndim == 2 else table[np.arange(20), 0, now]
    assert np.array_equal(found.index, index)
    assert found.budget == task.problem.budget
    played = plan.policy.act(0, now, np.random.default_rng(0))
    assert found.active.sum() == played.sum()
    assert found.index[found.active].sum() == pytest.approx(index[played].sum())
    assert found.ids[0].startswith("bed ")


@pytest.mark.parametrize(("rule", "count"), [("fill", 3), ("at-most", 1), ("auto", 2)])
def test_a_policy_s_rule_says_whether_places_stay_empty(rule: str, count: int) -> None:
    policy = rmab.IndexPolicy([[-1.0], [0.0], [2.0], [-3.0]], 3, rule=rule)
    assert decide(policy, states=[0, 0, 0, 0]).active.sum() == count
    capped = decide(policy, states=[0, 0, 0, 0], groups={"a": list("uuvv")}, caps={"u": 1})
    assert capped.active.sum() == count


def test_steps_and_budgets_of_a_policy() -> None:
    policy = rmab.IndexPolicy(np.array([[[1.0], [3.0]], [[2.0], [1.0]], [[3.0], [2.0]]]), [1, 2])
    assert decide(policy, states=[0, 0, 0]).ids == ("2",)
    assert decide(policy, states=[0, 0, 0], step=1).ids == ("0", "2")
    assert decide(policy, 1, states=[0, 0, 0], step=1).ids == ("0",)


def test_indices_made_by_hand_are_a_table_or_an_array() -> None:
    by_name = decide({"ann": 0.4, "bea": -0.1, "cleo": 0.3}, 2)
    by_number = decide([0.4, -0.1, 0.3], 2, ids=["ann", "bea", "cleo"])
    assert by_name.ids == by_number.ids == ("ann", "cleo")
    assert by_name.rows() == by_number.rows()
    assert [row.reason for row in by_name.rows()] == ["1st of 3", "2nd of 3"]
    words = Words("visit", "day", "points")
    rows = decide({"ann": 0.4, "bea": 0.1}, 1, states=["well", "ill"], waited=[3, 9], words=words, floor=8).rows()
    assert rows[0].reason == "no visit for 9 days: due by the floor; 2nd of 2"
    assert rows[0].state == "ill"
    assert decide(Candidates.of([1.0, 2.0]), 1).ids == ("1",)
    assert decide([1.0, -1.0], 2).notes == ("1 of 2 places are used: an action is not expected to help anybody else",)


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        ([1.0, 2.0], {}, "budget is missing"),
        ([1.0, np.nan], {"budget": 1}, r"index\[1\] must be in"),
        ([[1.0]], {"budget": 1}, "index must be one number for each arm"),
        ([1.0, 2.0], {"budget": 1, "ids": ["a"]}, r"index must have shape \(1,\), got \(2,\)"),
        ([1.0, 2.0], {"budget": 1, "ids": ["a", "a"]}, "ids: 'a' is given twice"),
        ([1.0, 2.0], {"budget": 1, "groups": {"g": ["x"]}}, "groups: 'g' must have 2 values"),
        ([1.0, 2.0], {"budget": 1, "states": ["x"]}, "states must have 2 entries"),
        ([1.0, 2.0], {"budget": 1, "waited": [2**63 - 1, 0]}, r"waited\[0\] must be in"),
        ([1.0, 2.0], {"budget": 1, "caps": {"x": 1}}, "caps: unknown group 'x'; available: none"),
        (["a"], {"budget": 1}, "index: not an array of numbers"),
        (rmab.IndexPolicy([[1.0]], 1), {}, "states are missing"),
        (rmab.IndexPolicy([[1.0]], 1), {"states": [2**63 - 1]}, r"states\[0\] must be in"),
        (rmab.IndexPolicy([[[1.0]]], 1), {"states": [0], "step": 1}, "step"),
        (rmab.IndexPolicy([[1.0]], 1, rounding="dependent"), {"states": [0]}, "a list needs an index of every arm"),
    ],
)
def test_what_is_missing_or_wrong_is_refused(source: object, more: dict[str, object], words: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=words) as error:
        decide(source, **more)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_decision_is_stored_and_read_back(fitted: Fit, tmp_path: Path, suffix: str) -> None:
    for found in (decide(fitted, 24, **RULES), decide(fitted, 8), decide([1.0, 2.0], 1)):
        path = tmp_path / f"decision{suffix}"
        found.save(path)
        again = Decision.load(path)
        for name, value in vars(found).items():
            same = np.array_equal(value, getattr(again, name), equal_nan=True) if isinstance(value, np.ndarray) else None
            assert value == getattr(again, name) if same is None else same, name
        assert again.rows(5)[0] == found.rows(5)[0]
        assert pickle.loads(pickle.dumps(found)).ids == found.ids
    from rmab.common.storage import load_any

    assert isinstance(load_any(path), Decision)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rank", [2**63 - 1, 0]), ("index", [1.0]), ("rule", ["index", "index"]), ("probability", [2.0, 0.0]), ("budget", 9),
     ("words.action", 5), ("fairness", '[{"group": "x"}]'), ("prices", '{"a": "b"}'), ("reasons", ["a"])],
)  # fmt: skip
def test_an_edited_decision_is_refused(name: str, value: object) -> None:
    fields = json.loads(decide([1.0, 2.0], 1).to_bytes(".json"))
    with pytest.raises(rmab.errors.ModelError, match=r"^Decision: "):
        Decision.from_bytes(json.dumps({**fields, name: value}).encode())


def test_a_decision_needs_no_more_places_than_its_budget() -> None:
    found = decide([1.0, 2.0], 1)
    with pytest.raises(rmab.errors.ModelError, match=r"budget must be in 2\.\.2, got 1"):
        replace(found, rule=("index", "index"))


def test_rules_and_lists_do_not_import_models() -> None:
    """Only the module that reads a model may import it."""
    modules = "rmab.decisions.rules, rmab.decisions.decision, rmab.decisions.notes, rmab.decisions.reasons"
    code = f"import sys, {modules}; print([name for name in sys.modules if name.startswith('rmab.estimation')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


RULE_ERRORS = [
    ([1.0, 2.0], {"rules": [3]}, "rules must be a list of functions"),
    ([1.0, 2.0], {"rules": len}, "rules must be a list of functions"),
    ([1.0, 2.0], {"rules": [lambda draft: 1 / 0]}, "rule '<lambda>': raised ZeroDivisionError: division by zero"),
    ([1.0, 2.0], {"rules": [lambda draft: [[1], [2, 3]]]}, "rule '<lambda>': raised ValueError"),
    ([1.0, 2.0], {"words": 3}, "words must be a Words"),
    ([1.0, 2.0], {"groups": 3}, "groups must name columns"),
    ([1.0, 2.0], {"groups": {"g": 3}}, "groups: 'g' must have 2 values, one for each arm, got 3"),
    ([1.0, 2.0], {"ids": 3}, "ids must be one for each arm, got 3"),
    ([1.0, 2.0], {"ids": "ab"}, "ids must be one for each arm"),
    ([1.0, 2.0], {"states": 3}, "states must be one for each arm"),
    ([1.0, 2.0], {"period": 3}, "period must be text"),
    ([1.0, 2.0], {"step": 2}, "step cannot be combined with a table of indices"),
    ({"a": 1.0}, {"ids": ["b"]}, "ids cannot be combined with a table of indices"),
    (Candidates.of([1.0]), {"ids": ["b"]}, "ids cannot be combined with candidates"),
    (Candidates.of([1.0]), {"period": "x"}, "period cannot be combined with candidates"),
    (Candidates.of([1.0]), {"states": ["x"]}, "states cannot be combined with candidates"),
    ([1.0, 2.0], {"floor": 10**15, "waited": [1, 2]}, ""),
    ([1.0, 2.0], {"waited": [[1], [2, 3]]}, "waited: not an array of numbers"),
    ([1.0, 2.0], {"seed": "x"}, "seed must be a whole number"),
]


@pytest.mark.parametrize(("source", "more", "words"), RULE_ERRORS)
def test_arguments_are_refused_in_one_line_and_none_is_ignored(source: object, more: dict, words: str) -> None:
    if not words:
        assert decide(source, 1, **more).active.sum() == 1
        return
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)) as error:
        decide(source, 1, **more)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "more", [{"ids": ["a"]}, {"states": [0]}, {"groups": {}}, {"waited": [1]}, {"words": Words("x")}, {"step": 1}]
)
def test_a_model_refuses_what_it_knows(fitted: Fit, more: dict[str, object]) -> None:
    with pytest.raises(rmab.errors.ModelError, match="cannot be combined with a model"):
        decide(fitted, 3, **more)  # type: ignore[arg-type]


def test_a_plan_is_decided_by_its_policy_if_that_has_an_index() -> None:
    arms = rmab.Arms([[[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]] * 3)
    problem, reward = rmab.Problem(arms, start=0, budget=1, horizon=4), [[[0, 0], [1, 1]]] * 3
    best = rmab.plan(problem, reward, candidates=["lagrangian"], episodes=20)
    assert decide(best, states=[0, 1, 0]).ids == decide(best.policy, states=[0, 1, 0]).ids
    rolling = rmab.make_planner("rolling")(problem, reward)
    with pytest.raises(rmab.errors.ModelError, match="a list needs an index of every arm, but Rolling has none here"):
        decide(rolling, 1, states=[0, 1, 0])
    with pytest.raises(rmab.errors.ModelError, match="horizon cannot be combined with a policy"):
        decide(best, states=[0, 1, 0], horizon=3)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"rank": [0, 0]}, "rank must be 0, 1, 2, ... of the arms, each once"),
        ({"arms": ["a", "a"]}, "'a' is given twice"),
        ({"index": [-1.0, -2.0]}, "rank does not match index"),
        ({"probability": [0.0, 0.0]}, "probability is 0 for an arm that is on the list"),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"words.extra": "x"}, "unknown field 'words.extra'"),
    ],
)
def test_a_decision_that_contradicts_itself_is_refused(edit: dict[str, object], words: str) -> None:
    fields = json.loads(decide({"a": 1.0, "b": 2.0}, 1).to_bytes(".json"))
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)):
        Decision.from_bytes(json.dumps({**fields, **edit}).encode())


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda f: {"log.arms": f["log.arms"][::-1]}, "the log has other arms, states or groups"),
        (
            lambda f: {"statistics.counts": np.zeros_like(f["statistics.counts"]).tolist()},
            "statistics are not those of the log",
        ),
        (lambda f: {"pay.kind": "odd"}, "the kind of rewards must be one of"),
        (lambda f: {"situation.period": -(10**15)}, "period"),
        (lambda f: {"situation.label": "tomorrow"}, "is not tomorrow"),
        (lambda f: {"present": [0, 0, 1]}, "present must name arms in their order, each once"),
        (lambda f: {"nonsense": 1}, "unknown field 'nonsense'"),
    ],
)
def test_a_model_file_that_contradicts_itself_is_refused(fitted: Fit, edit: object, words: str) -> None:
    fields = json.loads(fitted.to_bytes(".json"))
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)) as error:
        Fit.from_bytes(json.dumps({**fields, **edit(fields)}).encode())  # type: ignore[operator]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("period", ["x", None, 1.5, 0, -1, 10**9, True])
def test_a_log_is_cut_at_one_of_its_periods(fitted: Fit, period: object) -> None:
    with pytest.raises(rmab.errors.ModelError, match="period must be"):
        fitted.log.until(period)  # type: ignore[union-attr, arg-type]


def test_negative_seeds_are_refused(fitted: Fit) -> None:
    log = fitted.log
    for work in (
        lambda: decide(fitted, 3, seed=-1),
        lambda: rmab.data.fit(log, clusters=2, seed=-1),
        lambda: rmab.data.fit(log, seed=-1),
        lambda: rmab.data.run_checks(fitted, seed=-1),
        lambda: rmab.data.estimate_effects(fitted, seed=-1),
        lambda: rmab.data.evaluate(fitted, 3, seed=-1),
        lambda: rmab.data.example_log(seed=-1),
    ):
        with pytest.raises(rmab.errors.ModelError, match="seed must be 0 or more, got -1"):
            work()
