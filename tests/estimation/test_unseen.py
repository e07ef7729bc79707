"""Where a log never acted, nothing is known of rivals that act there."""

import numpy as np

import rmab
from logs import read, table
from rmab.data import Evaluation, evaluate, run_checks


def called_in_the_worst_state(share: float) -> Evaluation:
    """Evaluate a log of three states in which those in the worst are often called, and others seldom, or never."""
    rng, rows = np.random.default_rng(0), []
    for n in range(150):
        state = int(rng.integers(3))
        for week in range(20):
            act = int(rng.random() < (0.4 if state == 0 else share))
            rows.append((f"n{n}", week, f"s{state}", act))
            up = rng.random() < 0.25 + 0.3 * act
            state = min(state + 1 + int(rng.random() < 0.5), 2) if up else max(state - int(rng.random() < 0.4), 0)
    fitted = rmab.data.fit(read(table(*rows)), reward={"s2": 1})
    checks = [one for one in run_checks(fitted, replicates=40) if one.verdict != "problem"]
    return evaluate(fitted, 15, horizon=8, replicates=40, checks=checks)


def test_no_benefit_is_stated_over_rivals_that_act_where_the_log_never_did() -> None:
    found = called_in_the_worst_state(0.0)
    assert found.standing == "conditional"
    assert found.unseen is not None
    assert set(found.unseen.shares) == {"rotation", "random"}
    assert found.unseen.shares["random"] > 0.4
    first, second, *_ = found.sentences()
    assert first.startswith("The gain over rotation is not stated: ")
    assert "'s1'" in first
    assert "more weeks s2" in second
    assert found.shows("nothing")
    assert not found.shows("rotation")
    fields = found.fields()
    assert fields["conditional_benefits"]["rotation"] is None
    assert fields["conditional_benefits"]["nothing"]["low"] > 0
    assert "over nothing" in repr(found)


def test_benefits_are_stated_where_the_log_acted_in_every_state() -> None:
    found = called_in_the_worst_state(0.1)
    assert found.unseen is not None
    assert not found.unseen.shares
    assert "not stated" not in " ".join(found.sentences())
