"""Decisions from a model, from a learner's plan, and from indices made by hand: the same rules, the same list."""

import json
import pickle
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

RULES = {"floor": 22, "caps": {"age=20-29": 11}, "random_share": 0.2, "seed": 3}


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
    assert {"floor", "index", "lot"} <= set(by_model.rule)
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
    capped = decide(policy, states=[0, 0, 0, 0], groups={"a": "uuvv"}, caps={"u": 1})
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
        ([1.0, 2.0], {}, "budget: how many can be activated"),
        ([1.0, np.nan], {"budget": 1}, r"index\[1\] must be in"),
        ([[1.0]], {"budget": 1}, "index must be one number for each arm"),
        ([1.0, 2.0], {"budget": 1, "ids": ["a"]}, r"index must have shape \(1,\), got \(2,\)"),
        ([1.0, 2.0], {"budget": 1, "ids": ["a", "a"]}, "ids: 'a' is there twice"),
        ([1.0, 2.0], {"budget": 1, "groups": {"g": ["x"]}}, "groups: 'g' must have 2 values"),
        ([1.0, 2.0], {"budget": 1, "states": ["x"]}, "states must have 2 entries"),
        ([1.0, 2.0], {"budget": 1, "waited": [2**63 - 1, 0]}, r"waited\[0\] must be in"),
        ([1.0, 2.0], {"budget": 1, "caps": {"x": 1}}, "caps: there is no group 'x'; the groups are none"),
        (["a"], {"budget": 1}, "index: not an array of numbers"),
        (rmab.IndexPolicy([[1.0]], 1), {}, "states: where are the arms now"),
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
