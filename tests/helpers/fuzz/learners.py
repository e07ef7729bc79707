"""Part 3: every learner with random legal options on random tasks: the budget, the same again, and saved states."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from fuzz import draw
from fuzz.cases import Case
from fuzz.players import check_trajectory
from fuzz.proofs import masses, require
from rmab.common.arrays import FloatArray
from rmab.common.options import json_schema
from rmab.errors import FeedbackError, ModelError, RmabError
from rmab.learning.registry import LEARNERS
from rmab.testing import check_learner

TIMELESS = ("colored-ucrl2", "uc-whittle", "q-whittle", "rmab-ucrl")  # some of them, or some versions, know no phases
LARGEST = 1e9  # of an option without a limit


def options(case: Case, name: str) -> dict[str, Any]:
    """Draw legal options of a learner, as its schema declares them; about half are left at their defaults."""
    declared = json_schema(LEARNERS.schema(name)).get("properties", {})
    return {key: value(case, one) for key, one in declared.items() if case.chance(0.5)}


def value(case: Case, declared: dict[str, Any]) -> Any:
    """Draw a legal value of one option."""
    if "anyOf" in declared:
        return value(case, case.pick(declared["anyOf"]))
    if "enum" in declared:
        return case.pick(declared["enum"])
    if "names" in declared:
        return case.pick([one for one in declared["names"] if ":" not in one])
    if declared.get("type") in (None, "null"):  # an array, or nothing
        return declared.get("default")
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


def situation(luck: int, t: int, task: rmab.Task) -> dict[str, Any]:
    """Draw where the arms are, how much may be spent, and how long: some of it, or nothing; by the luck of an episode."""
    case = Case("situation", t, Path(), np.random.default_rng([luck, t, 1]))
    arms, horizon = task.problem.arms, case.whole(1, task.problem.horizon)
    found: dict[str, Any] = {}
    if case.chance(0.5):
        starts = [
            draw.states_of(case, arms),
            draw.starts_of(case, arms),
            np.array(draw.states_of(case, arms), dtype="u1"),
            0,
        ]
        found["start"] = case.pick(starts)
    if case.chance(0.5):
        found["horizon"] = horizon
    if case.chance(0.5):
        steps = found.get("horizon", task.problem.horizon)
        found["budget"] = draw.budget_of(case, arms.count, case.pick([None, steps]))
    return found


def situated(problem: rmab.Problem, asked: dict[str, Any]) -> rmab.Problem:
    """Return the problem of an episode in this situation."""
    horizon = asked.get("horizon", problem.horizon)
    limits = problem.budget if np.ndim(problem.budget) == 0 else problem.budget[:horizon]  # type: ignore[index]
    budget, start = asked.get("budget", limits), asked.get("start", problem.start)
    return rmab.Problem(problem.arms, start, budget, horizon, problem.phase_of[:horizon])


def refused(call: Callable[[], Any], *kinds: type[RmabError]) -> bool:
    """Whether it is refused with an error of this kind, in one line."""
    try:
        call()
    except kinds as error:
        require(len(str(error).splitlines()) == 1, f"not one line: {str(error)!r}")
        return True
    return False


def planned(learner: rmab.Learner, state: rmab.State, task: rmab.Task, luck: int) -> tuple[rmab.EpisodePlan, dict[str, Any]]:
    """Return a plan for some situation, and the situation; that of the view where the learner knows no other."""
    asked = situation(luck, state.episode, task)
    if not asked:
        return learner.plan(state), {}
    elsewhere = state.view.situated(**asked) is not state.view  # what is asked for may be what the view says
    if elsewhere and not learner.anywhere:
        require(refused(lambda: learner.plan(state, **asked), ModelError), "plans elsewhere, but says that it does not")
        return learner.plan(state), {}
    try:
        plan = learner.plan(state, **asked)
    except ModelError as error:
        require(learner.refuses(task.view().situated(**asked)), f"a situation is refused: {error}")
        require(len(str(error).splitlines()) == 1, f"not one line: {str(error)!r}")
        return learner.plan(state), {}
    problem = situated(task.problem, asked)
    if plan.occupancy is not None and plan.block_of is not None:
        mass, law = plan.occupancy[plan.block_of], masses(problem.start, problem.arms.states)
        require(mass.shape[:2] == (problem.arms.count, problem.horizon), "plan: of another horizon")
        infinite = learner.options.get("version") in ("stationary", "generator")
        require(infinite or np.abs(mass[:, 0].sum(axis=2) - law).max() <= 1e-6, "plan: from another start")
    same = learner.plan(state, **asked).policy
    if isinstance(plan.policy, rmab.IndexPolicy) and isinstance(same, rmab.IndexPolicy):
        require((plan.policy.table == same.table).all(), "plan: another one the second time")
    return plan, asked


def check_elsewhere(learner: rmab.Learner, state: rmab.State, task: rmab.Task, reward: FloatArray, luck: int) -> None:
    """A learner of one situation must not learn from episodes of another."""
    asked = situation(luck, state.episode + 100, task)
    problem, view = situated(task.problem, asked), task.view()
    if learner.anywhere or not asked:
        return
    seen = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(luck))
    told = rmab.Feedback.reveal(view, state.episode, seen, reward, budget=asked.get("budget"))
    if told.elsewhere(view):
        require(refused(lambda: learner.learn(state, told), FeedbackError), "learns from an episode that it does not know")


def play_on(case: Case, learner: rmab.Learner, task: rmab.Task, state: rmab.State, luck: int) -> list[bytes]:
    """Play all episodes that are left, check each, and return what was done and kept, to the last bit."""
    view, course = task.view(), []
    visits = np.zeros(task.base_reward.shape, dtype=np.int64)
    for t in range(state.episode, task.episodes):
        plan, asked = planned(learner, state, task, luck)
        reward, problem = task.reward(t, visits), situated(task.problem, asked)
        seen = rmab.simulate(problem, plan.policy, reward, np.random.default_rng([luck, t]))
        check_trajectory(problem, reward, seen)
        for h, n in np.ndindex(seen.actions.shape):
            pair = (int(seen.states[h, n]), int(seen.actions[h, n]))
            visits[(n, *pair) if visits.ndim == 3 else (n, int(problem.phase_of[h]), *pair)] += 1
        check_elsewhere(learner, state, task, reward, luck)
        before = _bytes(state)
        told = rmab.Feedback.reveal(view, t, seen, reward, budget=asked.get("budget"))
        after = learner.learn(state, told)
        require(_bytes(state) == before, "learn: the old state has changed")
        state = after
        estimate = learner.estimate(state)
        require(estimate is None or np.isfinite(estimate).all(), "estimate: not finite")
        require(estimate is None or estimate.shape == reward.shape, "estimate: another shape than rewards have")
        course.append(seen.actions.tobytes() + _bytes(state))
        if t == task.episodes // 2:
            state.save(case.folder / "state.npz")
    return course


def _bytes(state: rmab.State) -> bytes:
    return b"".join(name.encode() + np.ascontiguousarray(one).tobytes() for name, one in sorted(state.arrays.items()))


def play(case: Case) -> None:
    """Let one learner, chosen by the seed, play a random task."""
    name = list(LEARNERS)[case.seed % len(LEARNERS)]
    chosen = options(case, name)
    try:
        learner = rmab.make_learner(name, **chosen)
    except ModelError as error:  # options that do not go together
        require("\n" not in str(error), "a refusal of more than one line")
        case.count(f"{name} options refused")
        return
    feedback = "full" if learner.feedback == "full" else case.pick(["bandit", "active", "full"])
    task = draw.task(case, feedback=feedback, phased=case.chance(0.5) if name in TIMELESS else True)
    luck = case.whole(0, 2**40)
    try:
        if learner.privileged:
            learner = learner.inform(task.problem, task.base_reward, luck)
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
        fresh = rmab.make_learner(name, **chosen)
        fresh = fresh.inform(task.problem, task.base_reward, luck) if fresh.privileged else fresh
        rest = play_on(case, fresh, task, loaded, luck)
        require(rest == course[loaded.episode :], f"{name}: goes on differently from a state that was saved")
    if case.chance(0.2):
        check_learner(rmab.make_learner(name, **chosen), task, episodes=3)
        case.count("contracts")
    case.count(name)
