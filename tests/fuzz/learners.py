"""Part 3: every learner with random legal options on random tasks: the budget, the same again, and saved states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rmab
from fuzz import draw
from fuzz.cases import Case
from fuzz.players import check_trajectory
from fuzz.proofs import require
from rmab.errors import ModelError
from rmab.learning.registry import LEARNERS, learner_options
from rmab.testing import check_learner

LARGEST = 1e9  # of an option without a limit


def options(case: Case, name: str) -> dict[str, Any]:
    """Draw legal options of a learner, as its schema declares them; about half are left at their defaults."""
    declared = learner_options(name).model_json_schema().get("properties", {})
    return {key: value(case, one) for key, one in declared.items() if case.chance(0.5)}


def value(case: Case, declared: dict[str, Any]) -> Any:
    """Draw a legal value of one option."""
    if "anyOf" in declared:
        return value(case, case.pick(declared["anyOf"]))
    if "enum" in declared:
        return case.pick(declared["enum"])
    if "names" in declared:
        return case.pick([one for one in declared["names"] if ":" not in one])
    if declared["type"] == "null":
        return None
    if declared["type"] == "boolean":
        return case.chance(0.5)
    drawn = number(case, declared)
    return round(drawn) if declared["type"] == "integer" else drawn


def number(case: Case, declared: dict[str, Any]) -> float:
    """Draw a number within its limits: at an end, or of any order of magnitude between them."""
    low = float(declared.get("minimum", declared.get("exclusiveMinimum", -LARGEST)))
    high = float(declared.get("maximum", declared.get("exclusiveMaximum", LARGEST)))
    least = low if "minimum" in declared else math.nextafter(low, high) if case.chance(0.1) else low + 1e-9 * (high - low)
    most = high if "maximum" in declared else math.nextafter(high, low)
    if case.chance(0.2):
        return case.pick([least, most])
    return float(min(max(low + (high - low) * 10.0 ** case.rng.uniform(-9, 0), least), most))


def play_on(case: Case, learner: rmab.Learner, task: rmab.Task, state: rmab.State, luck: int) -> list[bytes]:
    """Play all episodes that are left, check each, and return what was done and kept, to the last bit."""
    view, course = task.view(), []
    visits = np.zeros((view.arms, view.states, 2), dtype=np.int64)
    for t in range(state.episode, task.episodes):
        plan = learner.plan(state)
        reward = task.reward(t, visits)
        seen = rmab.simulate(task.problem, plan.policy, reward, np.random.default_rng([luck, t]))
        check_trajectory(task.problem, reward, seen)
        state = learner.learn(state, rmab.Feedback.reveal(view, t, seen, reward))
        estimate = learner.estimate(state)
        require(estimate is None or np.isfinite(estimate).all(), "estimate: not finite")
        kept = b"".join(name.encode() + np.ascontiguousarray(one).tobytes() for name, one in sorted(state.arrays.items()))
        course.append(seen.actions.tobytes() + kept)
        if t == task.episodes // 2:
            state.save(case.folder / "state.npz")
    return course


def play(case: Case) -> None:
    """Let one learner, chosen by the seed, play a random task."""
    name = list(LEARNERS)[case.seed % len(LEARNERS)]
    chosen = options(case, name)
    try:
        learner = rmab.learner(name, **chosen)
    except ModelError as error:  # options that do not go together
        require("\n" not in str(error), "a refusal of more than one line")
        case.count(f"{name} options refused")
        return
    feedback = "full" if learner.feedback == "full" else case.pick(["bandit", "active", "full"])
    task = draw.task(case, feedback=feedback)
    luck = case.whole(0, 2**40)
    try:
        if learner.privileged:
            learner = learner.informed(task.problem, task.base_reward, luck)
        first = learner.begin(task.view(), luck)
    except ModelError as error:
        require("\n" not in str(error), "a refusal of more than one line")
        case.count(f"{name} refused")
        return
    course = play_on(case, learner, task, first, luck)
    again = play_on(case, learner, task, learner.begin(task.view(), luck), luck)
    require(course == again, f"{name}: another course the second time")
    if not task.adversary.adaptive:  # its rewards depend on visits, which a state does not have
        loaded = rmab.State.load(case.folder / "state.npz")
        fresh = rmab.learner(name, **chosen)
        fresh = fresh.informed(task.problem, task.base_reward, luck) if fresh.privileged else fresh
        rest = play_on(case, fresh, task, loaded, luck)
        require(rest == course[loaded.episode :], f"{name}: goes on differently from a state that was saved")
    if case.chance(0.2):
        check_learner(rmab.learner(name, **chosen), task, episodes=3)
        case.count("contracts")
    case.count(name)
