"""The contract of a learner, as a suite to run on your own: `check_learner(MyLearner())` passes, or says what is broken."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import FloatArray, frozen
from rmab.common.checks import as_integer
from rmab.errors import FeedbackError, ModelError, PolicyError
from rmab.families.definition import Task
from rmab.learning.base import Learner, Plan
from rmab.learning.state import State
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.outcomes import Trajectory
from rmab.play.policy import IndexPolicy
from rmab.play.simulation import simulate
from rmab.runs.running import feedback_of

SEED, LUCK = 7, 8  # of the learner, and of the arms
ROUNDING = 1e-6  # indices may differ by this much after arms were relabelled


def check_learner(learner: Learner, task: Task | None = None, *, episodes: int = 4) -> None:
    """Play a few episodes and raise AssertionError, with one line that names the clause, where the contract is broken.

    budget         the plans never activate more arms than the budget allows.
    determinism    the same view, seed and feedback give the same plans and states, byte for byte.
    apart          two runs side by side do not touch each other: all memory is in the state.
    causality      what an episode pays changes no plan up to and including its own.
    pickling       learner, state and plan go on in another process as they would here.
    resume         a state that was saved and loaded goes on as if nothing had happened.
    bad feedback   is refused with FeedbackError, and leaves no trace.
    read-only      view, feedback and old states stay as they were.
    own states     a state of another learner is refused with ModelError; the learner itself does not change on the way.
    relabelling    another order of the arms gives the same indices in that order. It applies to index policies only, and
                   not to learners that draw arm by arm and say so (`draws`): each arm has other luck then.

    Without a task of yours, a small one is made: 5 arms of 3 states. At most `episodes` episodes of it are played, again and
    again; a learner that is not defined without full feedback gets it. A learner that must be told the problem has
    `informed(problem, summed rewards, seed)` and says so in `privileged`.
    """
    if as_integer(episodes, "episodes") < 2:
        raise ModelError(f"episodes must be at least 2, got {episodes}")
    made = _small_task(episodes) if task is None else task
    game = _Game.of(replace(made, feedback=feedback_of(learner, made.feedback)), episodes)
    require(len(game.rewards) > 1, "the task needs at least 2 episodes to check a learner on")
    try:
        _check_clauses(learner, game)
    except ModelError as error:
        if "this state belongs to" not in str(error):
            raise
        raise AssertionError(f"own states: a state is refused by the learner that made it ({error})") from error


def _check_clauses(learner: Learner, game: _Game) -> None:
    player = _told(learner, game)
    course, states = _play(player, game)
    require(course == _play(player, game)[0], "determinism: two runs with the same seed and feedback differ")
    _check_apart(player, game, course)
    _check_causality(player, game, course)
    k = len(course) // 2
    _check_pickling(player, game, course[k:], states[k])
    _check_resume(player, game, course[k:], states[k])
    _check_feedback(player, game, states[k])
    _check_foreign_states(player, game, states[k])
    _check_relabelling(learner, player, game)


@dataclass(frozen=True, eq=False)
class _Game:
    """A problem, its view, and the rewards (T, N, S, 2) of the episodes to be played."""

    problem: Problem
    view: View
    rewards: FloatArray

    @classmethod
    def of(cls, task: Task, episodes: int) -> _Game:
        arms = task.problem.arms
        nowhere = np.zeros((arms.count, arms.states, 2), dtype=np.int64)
        chosen = [task.reward(t, nowhere) for t in range(min(episodes, task.episodes))]
        return cls(task.problem, task.view(), np.stack(chosen))

    def episode(self, t: int, plan: Plan) -> Feedback:
        """Play episode t, with the same luck every time."""
        rng = np.random.default_rng((LUCK, t))
        try:
            trajectory = simulate(self.problem, plan.policy, self.rewards[t], rng)
        except PolicyError as error:  # BudgetExceeded is one
            raise AssertionError(f"budget: episode {t}: {error}") from error
        return Feedback.reveal(self.view, t, trajectory, self.rewards[t])

    def mirrored(self, t: int) -> _Game:
        """Return the same game, in which episode t pays the opposite within the range."""
        rewards = self.rewards.copy()
        rewards[t] = self.view.low + self.view.high - rewards[t]
        if self.view.passive_zero:
            rewards[t, ..., 0] = 0.0
        return replace(self, rewards=rewards)

    def relabelled(self, order: NDArray[np.int64]) -> _Game:
        """Return the same game, in which arm i is the old arm order[i]."""
        old = self.problem.arms
        declared = {name: getattr(old, name) for name in ("groups", "support", "sizes")}
        known = {name: value[order] for name, value in declared.items() if value is not None}
        arms = Arms(old.kernels[order], state_names=old.state_names, **known)
        start = frozen(self.problem.start[order])
        problem = Problem(arms, start, self.problem.budget, self.problem.horizon)
        view = replace(self.view, start=start, groups=arms.groups, support=arms.support, sizes=arms.sizes)
        return _Game(problem, view, self.rewards[:, order])


Print = tuple[Any, ...]
Course = list[tuple[Print, Print, Print]]  # of every episode: the plan, what happened, and the state after it


def require(holds: bool, otherwise: str) -> None:
    """Raise AssertionError with this line, unless it holds."""
    if not holds:
        raise AssertionError(otherwise)


def _small_task(episodes: int) -> Task:
    rng = np.random.default_rng(0)
    problem = Problem(Arms(rng.dirichlet(np.ones(3), size=(5, 3, 2))), [0, 1, 2, 0, 1], 2, 6)
    return Task.from_rewards(problem, rng.uniform(-1, 2, size=(episodes, 5, 3, 2)), low=-1, high=2)


def _told(learner: Learner, game: _Game) -> Learner:
    """Tell a privileged learner what it asks for, and nobody else."""
    if type(learner).informed is Learner.informed:
        require(not learner.privileged, "privileged: a learner that says that it is must have `informed`")
        return learner
    if not learner.privileged:  # in some versions only
        return learner
    told = learner.informed(game.problem, game.rewards.sum(axis=0), SEED)
    require(isinstance(told, Learner), "privileged: `informed` must return a learner")
    return told


def _exactly(value: object) -> Print:
    """Return something that is equal for two values only if they are equal byte for byte."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    return type(value).__name__, repr(value)


def _of_fields(thing: View | Feedback) -> Print:
    return tuple(_exactly(getattr(thing, field.name)) for field in fields(thing))


def _of_state(state: State) -> Print:
    arrays = tuple((name, _exactly(state.arrays[name])) for name in sorted(state.arrays))
    return state.learner, state.seed, state.episode, _of_fields(state.view), arrays


def _of_plan(plan: Plan, view: View) -> Print:
    """Describe a plan: the table of an index policy; of any other, what it does in some states."""
    policy, rest = plan.policy, (_exactly(plan.occupancy), _exactly(plan.block_of))
    if type(policy) is IndexPolicy:
        return _exactly(policy.table), policy.budget, policy.rule, policy.rounding, rest
    sizes = np.full(view.arms, view.states) if view.sizes is None else view.sizes
    places = np.random.default_rng(LUCK).integers(0, sizes, size=(view.horizon, view.arms))
    places[0] = view.start
    acts = [_exactly(np.asarray(policy.act(h, places[h], np.random.default_rng(h)))) for h in range(view.horizon)]
    return (*acts, rest)


def _step(learner: Learner, game: _Game, state: State, plan: Plan | None = None) -> tuple[State, Feedback]:
    """Play and learn one episode, with this plan or the learner's own, and see that nothing was written on the way."""
    feedback = game.episode(state.episode, learner.plan(state) if plan is None else plan)
    before = _of_state(state), _of_fields(feedback)
    try:
        after = learner.learn(state, feedback)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise AssertionError(f"read-only: learning writes into what it was given ({error})") from error
    require(_of_state(state) == before[0], "read-only: learning has changed the view or the state that it was given")
    require(_of_fields(feedback) == before[1], "read-only: learning has changed the feedback that it was given")
    require(after.episode == state.episode + 1, f"own states: episode {after.episode} follows {state.episode}")
    return after, feedback


def _play(
    learner: Learner, game: _Game, state: State | None = None, plan: Plan | None = None, end: int | None = None
) -> tuple[Course, list[State]]:
    """Play from this state, or from the beginning, to the end; the plan is that of the first episode, if given."""
    course: Course = []
    states = [learner.begin(game.view, SEED) if state is None else state]
    while (now := states[-1]).episode < (len(game.rewards) if end is None else end):
        before = _of_state(now)
        planned = _of_plan(learner.plan(now), game.view)
        require(_of_state(now) == before, "read-only: planning has changed the view or the state that it was given")
        after, feedback = _step(learner, game, now, plan)
        course.append((planned, _of_fields(feedback), _of_state(after)))
        states.append(after)
        plan = None
    return course, states


def _check_apart(learner: Learner, game: _Game, course: Course) -> None:
    """Play another game in turns with this one, in which every episode pays the opposite."""
    other = game
    for t in range(len(game.rewards)):
        other = other.mirrored(t)
    here, there = learner.begin(game.view, SEED), learner.begin(other.view, SEED)
    for planned, _, after in course:
        same = _of_plan(learner.plan(here), game.view) == planned
        here, there = _step(learner, game, here)[0], _step(learner, other, there)[0]
        require(same and _of_state(here) == after, "apart: another run, in turns with this one, changes its plans or states")


def _check_causality(learner: Learner, game: _Game, course: Course) -> None:
    for t in range(len(course)):
        other, _ = _play(learner, game.mirrored(t), end=t + 1)
        for k in range(t + 1):
            require(other[k][0] == course[k][0], f"causality: the rewards of episode {t} change the plan of episode {k}")


def _check_pickling(learner: Learner, game: _Game, rest: Course, state: State) -> None:
    try:
        other, copied, plan = pickle.loads(pickle.dumps((learner, state, learner.plan(state))))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"pickling: learner, state or plan cannot be pickled ({error})") from error
    same = _play(other, game, copied, plan)[0] == rest
    require(same, f"pickling: the copies of learner, state and plan go on differently from episode {state.episode} on")


def _check_resume(learner: Learner, game: _Game, rest: Course, state: State) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        state.save(path)
        loaded = State.load(path)
    same = _play(learner, game, loaded)[0] == rest
    require(same, f"resume: the loaded state goes on differently from episode {state.episode} on")


def _wrong(view: View, good: Feedback) -> Iterator[tuple[str, Feedback]]:
    """Yield feedback that is wrong in one way each, as far as the task has room for it."""
    episode, states, actions, rewards = good.episode, good.states, good.actions, good.rewards
    yield "a missing step", Feedback(episode, states[:-1], actions[:-1], rewards)
    yield "a missing arm", Feedback(episode, states[:, 1:], actions[:, 1:], rewards[1:])
    unknown = states.copy()
    unknown[-1, 0] = view.states
    yield "an unknown state", Feedback(episode, unknown, actions, rewards)
    if view.budget < view.arms:
        crowded = actions.copy()
        crowded[-1] = np.arange(view.arms) <= view.budget
        paid = np.zeros(rewards.shape) if view.passive_zero else np.full(rewards.shape, view.low)
        trajectory = Trajectory(states.astype(np.int32), crowded, 0.0)
        yield "more active arms than the budget", Feedback.reveal(view, episode, trajectory, paid)
    for where in map(tuple, np.argwhere(~np.isnan(rewards))[-1:]):
        for name, value in (("too high", view.high + 1.0), ("infinite", np.inf), ("missing", np.nan)):
            changed = rewards.copy()
            changed[where] = value
            yield f"a reward that is {name}", Feedback(episode, states, actions, changed)
    for where in map(tuple, np.argwhere(np.isnan(rewards))[:1]):
        changed = rewards.copy()
        changed[where] = 0.0 if view.passive_zero else view.low
        yield "a reward that was not revealed", Feedback(episode, states, actions, changed)
    yield "an episode too late", Feedback(episode + 1, states, actions, rewards)
    yield "an episode too early", Feedback(episode - 1, states, actions, rewards)


def _check_feedback(learner: Learner, game: _Game, state: State) -> None:
    after, good = _step(learner, game, state)
    before = _of_state(state)
    for name, wrong in _wrong(game.view, good):
        try:
            learner.learn(state, wrong)
        except FeedbackError:
            require(_of_state(state) == before, f"bad feedback: {name} is refused, but has changed the state")
        except Exception as error:
            kind = type(error).__name__
            raise AssertionError(f"bad feedback: {name} raises {kind}, not FeedbackError ({error})") from error
        else:
            raise AssertionError(f"bad feedback: {name} is taken for good")
    same = _of_state(learner.learn(state, good)) == _of_state(after)
    require(same, "bad feedback: it is refused, but changes what is learned afterwards")


def _check_relabelling(learner: Learner, player: Learner, game: _Game) -> None:
    if player.draws:
        return
    order = np.random.default_rng(LUCK).permutation(game.view.arms)
    other = game.relabelled(order)
    twin = _told(learner, other)
    here, there = player.begin(game.view, SEED), twin.begin(other.view, SEED)
    for t in range(len(game.rewards)):
        plan, relabelled = player.plan(here).policy, twin.plan(there).policy
        if not (isinstance(plan, IndexPolicy) and isinstance(relabelled, IndexPolicy)):
            return
        shapes = plan.table.shape == relabelled.table.shape
        gap = float(np.abs(plan.table[order] - relabelled.table).max()) if shapes else np.inf
        require(gap <= ROUNDING, f"relabelling: in episode {t} an index moves by {gap:.1g} when arms change places")
        here, seen = _step(player, game, here)
        there = twin.learn(there, Feedback(t, seen.states[:, order], seen.actions[:, order], seen.rewards[order]))


def _check_foreign_states(learner: Learner, game: _Game, state: State) -> None:
    feedback = game.episode(state.episode, learner.plan(state))
    foreign = replace(state, learner=f"not {state.learner}")
    for name, use in (("plan", lambda: learner.plan(foreign)), ("learn", lambda: learner.learn(foreign, feedback))):
        try:
            use()
        except ModelError:
            continue
        raise AssertionError(f"own states: `{name}` takes the state of another learner")
