"""Contract test of learners: `check_learner(MyLearner())` passes, or names the broken clause."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from rmab.common import as_integer
from rmab.errors import FeedbackError, ModelError, RmabError
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.state import State
from rmab.model import Problem, View
from rmab.play import Feedback, IndexPolicy, Trajectory
from rmab.runs.running import feedback_of
from rmab.tasks.definition import Task
from rmab.testing.games import (
    ARM_SEED,
    SEED,
    Game,
    Print,
    copy_of,
    of_fields,
    of_plan,
    of_state,
    require,
    require_refusal,
    small_task,
)

ROUNDING = 1e-6  # maximum difference of indices after reordering arms


def check_learner(learner: Learner, task: Task | None = None, *, episodes: int = 4) -> None:
    """Check a learner in a few episodes; raise AssertionError, in one line, with the broken clause.

    budget         plans never exceed the budget.
    determinism    the same view, seed and feedback give the same plans and states, byte for byte.
    isolation      two interleaved runs do not affect each other: all memory is in the state.
    causality      the rewards of an episode change no plan up to and including its own.
    pickling       pickled copies of learner, state and plan continue in the same way.
    resume         a saved and loaded state continues in the same way.
    situations     plans for another start, budget and horizon are within that budget, deterministic, and can be learned
                   from; a learner that does not plan `anywhere` raises ModelError.
    bad feedback   raises FeedbackError, and changes nothing.
    read-only      view, feedback and old states are not changed.
    own states     a state of another learner raises ModelError; the learner itself does not change.
    relabelling    another order of the arms gives the same indices in that order. This applies only to index policies, and
                   not to learners that draw random numbers per arm (`draws`), whose results depend on the order of arms.

    Without a task, a small one is built: 5 arms of 3 states. Several runs of at most `episodes` episodes are played; a
    learner that needs full feedback gets it. A privileged learner has `inform(problem, summed rewards, seed)`, and
    describes what it knows in `privileged`.
    """
    if as_integer(episodes, "episodes") < 2:
        raise ModelError(f"episodes must be at least 2, got {episodes}")
    chosen = small_task(episodes) if task is None else task
    game = Game.of(replace(chosen, feedback=feedback_of(learner, chosen.feedback)), episodes)
    require(len(game.rewards) > 1, "the task must have at least 2 episodes")
    try:
        _check_clauses(learner, game)
    except ModelError as error:
        if error.code != "foreign-state":
            raise
        raise AssertionError(f"own states: the learner rejects its own state ({error})") from error


def _check_clauses(learner: Learner, game: Game) -> None:
    player = _inform(learner, game)
    course, states = _play(player, game)
    require(course == _play(player, game)[0], "determinism: two runs with the same seed and feedback differ")
    _check_isolation(player, game, course)
    _check_causality(player, game, course)
    k = len(course) // 2
    _check_pickling(player, game, course[k:], states[k])
    _check_resume(player, game, course[k:], states[k])
    _check_situation(player, game, states[k])
    _check_feedback(player, game, states[k])
    _check_foreign_states(player, game, states[k])
    _check_relabelling(learner, player, game)


Course = list[tuple[Print, Print, Print]]  # prints of plan, feedback and next state of each episode


def _inform(learner: Learner, game: Game) -> Learner:
    """Give a privileged learner its extra knowledge; return any other learner unchanged."""
    if type(learner).inform is Learner.inform:
        require(not learner.privileged, "privileged: a privileged learner must have `inform`")
        return learner
    if not learner.privileged:  # privileged only with some options
        return learner
    informed = learner.inform(game.problem, game.rewards.sum(axis=0), SEED)
    require(isinstance(informed, Learner), "privileged: `inform` must return a learner")
    return informed


def _step(learner: Learner, game: Game, state: State, plan: EpisodePlan | None = None) -> tuple[State, Feedback]:
    """Play and learn one episode, with this plan or the learner's, and check that no argument was changed."""
    feedback = game.episode(state.episode, learner.plan(state) if plan is None else plan)
    before = of_state(state), of_fields(feedback)
    try:
        after = learner.learn(state, feedback)
    except ValueError as error:
        if isinstance(error, RmabError) or "read-only" not in str(
            error
        ):  # the message of NumPy, which has no class for this
            raise
        raise AssertionError(f"read-only: learning writes to its arguments ({error})") from error
    require(of_state(state) == before[0], "read-only: learning changed the view or the given state")
    require(of_fields(feedback) == before[1], "read-only: learning changed the feedback")
    require(after.episode == state.episode + 1, f"own states: episode {after.episode} follows {state.episode}")
    return after, feedback


def _play(
    learner: Learner, game: Game, state: State | None = None, plan: EpisodePlan | None = None, end: int | None = None
) -> tuple[Course, list[State]]:
    """Play from this state, or from the start, to the end; plan: that of the first episode, if given."""
    course: Course = []
    states = [learner.begin(game.view, SEED) if state is None else state]
    while (now := states[-1]).episode < (len(game.rewards) if end is None else end):
        before = of_state(now)
        planned = of_plan(learner.plan(now), game.view)
        require(of_state(now) == before, "read-only: planning changed the view or the given state")
        after, feedback = _step(learner, game, now, plan)
        course.append((planned, of_fields(feedback), of_state(after)))
        states.append(after)
        plan = None
    return course, states


def _check_isolation(learner: Learner, game: Game, course: Course) -> None:
    """Interleave the run with one of a game with mirrored rewards."""
    other = game
    for t in range(len(game.rewards)):
        other = other.mirror_rewards(t)
    here, there = learner.begin(game.view, SEED), learner.begin(other.view, SEED)
    for planned, _, after in course:
        same = of_plan(learner.plan(here), game.view) == planned
        here, there = _step(learner, game, here)[0], _step(learner, other, there)[0]
        require(
            same and of_state(here) == after,
            "isolation: another run, interleaved with this one, changes its plans or states",
        )


def _check_causality(learner: Learner, game: Game, course: Course) -> None:
    for t in range(len(course)):
        other, _ = _play(learner, game.mirror_rewards(t), end=t + 1)
        for k in range(t + 1):
            require(other[k][0] == course[k][0], f"causality: the rewards of episode {t} change the plan of episode {k}")


def _check_pickling(learner: Learner, game: Game, rest: Course, state: State) -> None:
    other, copied, plan = copy_of((learner, state, learner.plan(state)), "learner, state or plan")
    same = _play(other, game, copied, plan)[0] == rest
    require(same, f"pickling: copies of learner, state and plan continue differently from episode {state.episode} on")


def _check_resume(learner: Learner, game: Game, rest: Course, state: State) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        state.save(path)
        loaded = State.load(path)
    same = _play(learner, game, loaded)[0] == rest
    require(same, f"resume: the loaded state continues differently from episode {state.episode} on")


def _wrong(view: View, good: Feedback) -> Iterator[tuple[str, Feedback]]:
    """Yield feedback with one error each, as far as the task allows it."""
    episode, states, actions, rewards = good.episode, good.states, good.actions, good.rewards
    yield "a missing step", Feedback(episode, states[:-1], actions, rewards)
    yield "a missing arm", Feedback(episode, states[:, 1:], actions[:, 1:], rewards[1:])
    unknown = states.copy()
    unknown[-1, 0] = view.states
    yield "an unknown state", Feedback(episode, unknown, actions, rewards)
    if view.weights is None and view.slots[-1] < view.arms:
        crowded = actions.copy()
        crowded[-1] = np.arange(view.arms) <= view.slots[-1]
        paid = np.zeros(rewards.shape) if view.passive_zero else np.full(rewards.shape, view.low)
        trajectory = Trajectory(states.astype(np.int32), crowded, 0.0)
        yield "more active arms than the budget", Feedback.reveal(view, episode, trajectory, paid)
    for where in map(tuple, np.argwhere(~np.isnan(rewards))[-1:]):
        for name, value in (("too high", 2 * view.high - view.low), ("infinite", np.inf), ("missing", np.nan)):
            changed = rewards.copy()
            changed[where] = value
            yield f"a reward that is {name}", Feedback(episode, states, actions, changed)
    for where in map(tuple, np.argwhere(np.isnan(rewards))[:1]):
        changed = rewards.copy()
        changed[where] = 0.0 if view.passive_zero else view.low
        yield "a reward that was not revealed", Feedback(episode, states, actions, changed)
    yield "an episode too late", Feedback(episode + 1, states, actions, rewards)
    yield "an episode too early", Feedback(episode - 1, states, actions, rewards)


def _check_feedback(learner: Learner, game: Game, state: State) -> None:
    after, good = _step(learner, game, state)
    before = of_state(state)
    for name, wrong in _wrong(game.view, good):
        require_refusal("bad feedback", name, partial(learner.learn, state, wrong), FeedbackError)
        require(of_state(state) == before, f"bad feedback: {name} raises FeedbackError, but changes the state")
    same = of_state(learner.learn(state, good)) == of_state(after)
    require(same, "bad feedback: it raises FeedbackError, but changes what is learned afterwards")


def _check_situation(learner: Learner, game: Game, state: State) -> None:
    """Plan, play and learn an episode with another start, a larger budget and a shorter horizon."""
    base, before = game.problem, of_state(state)
    steps = max(base.horizon - 1, 1)
    start = np.random.default_rng(ARM_SEED).integers(0, base.arms.real_states)
    unit = 1 if base.cost is None else base.cost.flat[0]
    budget = base.budgets[:steps] + unit
    budget = np.minimum(budget, base.arms.count * unit) if base.weights is None else budget
    if learner.refuses(game.view.situated(start, budget, steps)):
        return
    try:
        plans = [learner.plan(state, start=start, budget=budget, horizon=steps) for _ in range(2)]
    except ModelError as error:
        require(not learner.anywhere, f"situations: `anywhere` is True, but a plan raises ModelError ({error})")
        return
    view = game.view.situated(start, budget, steps)
    require(of_plan(plans[0], view) == of_plan(plans[1], view), "situations: two plans for the same situation differ")
    problem = Problem(base.arms, start, budget, steps, base.phase_of[:steps], exact=base.exact, cost=base.cost)
    now = replace(game, problem=problem)
    seen = now.episode(state.episode, plans[0])
    after = learner.learn(state, Feedback(seen.episode, seen.states, seen.actions, seen.rewards, budget))
    require(after.episode == state.episode + 1, f"situations: episode {after.episode} follows {state.episode}")
    require(of_state(state) == before, "situations: planning or learning changed the given state")


def _check_relabelling(learner: Learner, player: Learner, game: Game) -> None:
    if player.draws:
        return
    order = np.random.default_rng(ARM_SEED).permutation(game.view.arms)
    other = game.reorder_arms(order)
    twin = _inform(learner, other)
    here, there = player.begin(game.view, SEED), twin.begin(other.view, SEED)
    for t in range(len(game.rewards)):
        plan, relabelled = player.plan(here).policy, twin.plan(there).policy
        if not (isinstance(plan, IndexPolicy) and isinstance(relabelled, IndexPolicy)):
            return
        shapes = plan.table.shape == relabelled.table.shape
        gap = float(np.abs(plan.table[order] - relabelled.table).max()) if shapes else np.inf
        require(gap <= ROUNDING, f"relabelling: in episode {t} an index changes by {gap:.1g} when arms are reordered")
        here, seen = _step(player, game, here)
        there = twin.learn(there, Feedback(t, seen.states[:, order], seen.actions[:, order], seen.rewards[order]))


def _check_foreign_states(learner: Learner, game: Game, state: State) -> None:
    feedback = game.episode(state.episode, learner.plan(state))
    foreign = replace(state, learner=f"not {state.learner}")
    for name, use in (("plan", partial(learner.plan, foreign)), ("learn", partial(learner.learn, foreign, feedback))):
        require_refusal("own states", f"`{name}` with the state of another learner", use, ModelError)
