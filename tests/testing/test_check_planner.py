"""`check_planner`: the planners of the library pass, and each clause catches one that breaks nothing else."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.testing import check_planner

pytestmark = pytest.mark.compiled
CALLS = count()


@pytest.mark.slow
@pytest.mark.parametrize("name", rmab.list_planners())
def test_the_planners_of_the_library_pass(name: str) -> None:
    check_planner(name)


def sound(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    """Rank by what a state pays on average over the phases."""
    worth = np.ptp(reward, axis=-1).reshape(problem.arms.count, -1, problem.arms.states)
    return rmab.IndexPolicy.of(problem, worth.mean(axis=1))


def refusing(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    raise ModelError("nothing is good enough")


def fussy(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    if problem.arms.count == 1:
        raise ZeroDivisionError("one arm")
    return sound(problem, reward)


def generous(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    policy = sound(problem, reward)
    return rmab.IndexPolicy(policy.table, np.maximum(problem.budget, 1))


def writing(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    policy = sound(problem, reward)
    reward[...] = 0.0
    return policy


def moody(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    policy = sound(problem, reward)
    return rmab.IndexPolicy(policy.table * (-1) ** next(CALLS), problem.budget)


def wavering(problem: rmab.Problem, reward: FloatArray) -> rmab.IndexPolicy:
    if problem.discount < 1 and next(CALLS) % 2:
        raise ModelError("not today")
    return sound(problem, reward)


@pytest.mark.parametrize(
    ("planner", "line"),
    [
        (3, r"kind: a planner must be a function of a problem and a reward, got int$"),
        (lambda problem, reward: 7, r"returns: int is not a policy \(problem: plain\)$"),
        (refusing, r"returns: it raises ModelError for a plain problem \(problem: plain\)$"),
        (fussy, r"raises: ZeroDivisionError: one arm \(problem: one arm\)$"),
        (generous, r"budget: .* 1 arms are active, the budget is 0 \(problem: budget 0\)$"),
        (writing, r"read-only: planning changed the problem or the reward \(problem: plain\)$"),
        (moody, r"determinism: two plans of the same problem make different decisions \(problem: plain\)$"),
        (wavering, r"determinism: .*\(problem: discount\)$"),
    ],
)
def test_each_clause_catches_what_breaks_it(planner: Any, line: str) -> None:
    global CALLS  # noqa: PLW0603
    CALLS = count()
    with pytest.raises(AssertionError, match=f"^{line}"):
        check_planner(planner)


def test_a_custom_planner_that_keeps_the_contract_passes() -> None:
    check_planner(sound)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ModelError, match="unknown planner 'roling', did you mean 'rolling'"):
        check_planner("roling")
