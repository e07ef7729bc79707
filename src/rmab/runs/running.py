"""One run: a learner plays all episodes of a task. Learners see only views and feedback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rmab.common import FloatArray, IntArray, as_seed, check_magnitude, check_memory, expect, frozen, is_builtin
from rmab.errors import ModelError
from rmab.learning.base import EpisodePlan, Learner
from rmab.learning.registry import make_learner
from rmab.learning.state import State
from rmab.model import FeedbackMode, Problem, View, by_phase, shape_of, split_cells
from rmab.play import Feedback, Policy, Trajectory, pairs_of, play_episode, random_streams
from rmab.runs.record import RunResult
from rmab.tasks.definition import Task
from rmab.tasks.making import find_task

SIMULATOR, REHEARSAL = 100, 101  # keys of a run's random streams; the task spawns others from the same seed


def sequence_of(seed: int, key: int, t: int, game: int = 0) -> np.random.SeedSequence:
    """Return the seed sequence of episode t for a purpose; if a task is repeated, each game has a different one."""
    return np.random.SeedSequence(seed, spawn_key=(key, t, game) if game else (key, t))


def streams_of(seeds: Sequence[int], t: int, game: int = 0) -> NDArray[np.uint64]:
    """(R, 3, 4) random streams of episode t for each seed: of the arms, of the policy, and of draws under a budget."""
    words = [np.random.PCG64(sequence_of(seed, SIMULATOR, t, game)).random_raw(12) for seed in seeds]
    return np.stack(words).reshape(-1, 3, 4)


REHEARSALS = 32  # simulations of an episode, for an adversary that foresees the plan


class Game:
    """R rounds of a task, one per seed, episode by episode.

    Parameters
    ----------
    task : Task
        The task.
    seeds : sequence of int
        One per round, 0 or more.
    view : View, optional
        What a learner may know of the task; by default, `task.view()`.

    Attributes
    ----------
    rewards : list of ndarray
        Rewards of the episode, (N, [K,] S, 2): one table per round, or one for all rounds if the adversary is not adaptive.
    visits : ndarray of int, shape (R, N, [K,] S, 2)
        Visits of each pair before the episode, as added by `count`.
    """

    def __init__(self, task: Task, seeds: Sequence[int], view: View | None = None) -> None:
        arms, adversary, horizon = task.problem.arms, task.adversary, task.problem.horizon
        size = f" times {arms.count} arms times {horizon} steps"
        check_magnitude(np.array([adversary.low, adversary.high]), "reward", arms.count * horizon, size)
        self.task, self.seeds, self.view = task, tuple(seeds), task.view() if view is None else view
        self.rewards: list[FloatArray] = []
        self.visits = np.zeros((len(self.seeds), *_shape(task.problem)), dtype=np.int64)

    def begin(self, t: int, policy: Policy | None = None, game: int = 0) -> NDArray[np.uint64]:
        """Let the adversary set the rewards of episode t; return the streams of the episode, as `streams_of` does.

        policy: the policy of the episode, for an adversary that foresees it.
        """
        adversary, self.episode = self.task.adversary, t
        seen: Sequence[IntArray | None] = list(self.visits) if adversary.adaptive else [None]
        if adversary.foresees and policy is not None:
            generators = (np.random.default_rng(sequence_of(seed, REHEARSAL, t, game)) for seed in self.seeds)
            seen = [rehearse_visits(self.task.problem_at(t), policy, rng) for rng in generators]
        self.rewards = [self.task.reward(t, one) for one in seen]
        return streams_of(self.seeds, t, game)

    def reward(self, r: int = 0) -> FloatArray:
        """Return the rewards of the episode in a round."""
        return self.rewards[r if len(self.rewards) > 1 else 0]

    def count(self, episode: Trajectory, r: int = 0) -> None:
        """Add the visits of an episode."""
        self.visits[r] += visits_of(self.task.problem, episode)

    def feedback(self, episode: Trajectory, r: int = 0) -> Feedback:
        """Return the feedback of the episode; rewards of a custom adversary are checked against what it declares."""
        reveal = Feedback.of_simulation if is_builtin(self.task.adversary) else Feedback.reveal
        return reveal(self.view, self.episode, episode, self.reward(r))


def rehearse_visits(problem: Problem, policy: Policy, rng: np.random.Generator, rounds: int = REHEARSALS) -> IntArray:
    """Simulate episodes of a policy and return the visits of each pair, (N, S, 2) or (N, K, S, 2).

    This works for any policy: a policy has no memory across episodes.
    """
    visits, unpaid = np.zeros(_shape(problem), dtype=np.int64), np.zeros(_shape(problem))
    for _ in range(rounds):
        visits += visits_of(problem, play_episode(problem, policy, unpaid, random_streams(rng, 1)))
    return visits


def visits_of(problem: Problem, episode: Trajectory) -> IntArray:
    """(N, S, 2), or (N, K, S, 2) with phases: visits of each pair in an episode."""
    shape = _shape(problem)
    pairs = pairs_of(episode.states, episode.actions, (problem.phases, problem.arms.states), problem.phase_of)
    return np.bincount(pairs.reshape(-1), minlength=int(np.prod(shape))).reshape(shape)


def _shape(problem: Problem) -> tuple[int, ...]:
    return shape_of(problem.phases, problem.arms.count, problem.arms.states, 2)


FULL_INFORMATION = "sees all rewards of an episode"


def feedback_of(learner: Learner, given: FeedbackMode, asked: FeedbackMode | None = None) -> FeedbackMode:
    """Return the feedback that a learner gets, from that of the task and the requested one.

    A requested feedback takes precedence, and is a ModelError if the learner does not support it. Otherwise a learner that
    needs full feedback gets it, and any other learner gets the feedback of the task.
    """
    if learner.feedback not in ("bandit", "full"):
        raise ModelError(f"{learner.name}: feedback must be 'bandit' or 'full', got {learner.feedback!r}")
    if learner.feedback != "full":
        return given if asked is None else asked
    if asked not in (None, "full"):
        raise ModelError(f"{learner.name} needs full feedback, got {asked!r}; leave feedback out, or set it to 'full'")
    return "full"


def run(
    task_or_name: Task | str,
    learner: Learner | str,
    seed: int = 0,
    *,
    feedback: FeedbackMode | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunResult:
    """Run a learner on all episodes of a task. The same task, learner and seed give the same run, byte for byte.

    Parameters
    ----------
    task_or_name : Task or str
        A task, or a name as for `rmab.make_task`, built with the seed of the run.
    learner : Learner or str
        A learner, or a name as for `rmab.make_learner`.
    seed : int, optional
        Random seed of the learner and of the arms' transitions, 0 or more.
    feedback : {'bandit', 'active', 'full'}, optional
        What the learner observes after an episode. By default full feedback for a learner that needs it, otherwise the
        feedback of the task. Full feedback is noted in `Run.privileged`.
    progress : callable, optional
        Called after each episode with (finished episodes, all episodes).

    Returns
    -------
    Run

    Raises
    ------
    ModelError
        If a name is unknown, the seed is wrong, or the learner does not support the feedback.

    Examples
    --------
    >>> import rmab
    >>> game = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=3)
    >>> played = rmab.run(game, "random", seed=1)
    >>> played.reward.shape, played.activations
    ((3,), array([10, 10, 10]))
    """
    number = as_seed(seed)
    task = find_task(task_or_name, number) if isinstance(task_or_name, str) else task_or_name
    player = make_learner(learner) if isinstance(learner, str) else learner
    if not isinstance(task, Task) or not isinstance(player, Learner):
        kinds = f"{type(task).__name__} and {type(player).__name__}"
        raise ModelError(f"a run needs a task and a learner, or their names, got {kinds}")
    if feedback is not None:
        expect(feedback, str, "feedback")
    wanted = feedback_of(player, task.feedback, feedback)
    task = task if wanted == task.feedback else replace(task, feedback=wanted)
    player = inform(player, task, number)
    recorder = _Recorder(Game(task, [number]))
    begin = time.perf_counter()
    for t, plan, state in learn_episodes(player, recorder.game.view, number, task.episodes, recorder.play):
        recorder.record(t, plan, player.estimate(state), begin)
        begin = time.perf_counter()
        if progress is not None:
            progress(t + 1, task.episodes)
    return recorder.finish(player, state)


def learn_episodes(
    learner: Learner, view: View, seed: int, episodes: int, play: Callable[[int, EpisodePlan], Feedback]
) -> Iterator[tuple[int, EpisodePlan, State]]:
    """Let a learner plan, act and learn, episode by episode. This is the only loop over learner and task.

    `play` takes the number of an episode and its plan, and returns the feedback. Yield both, and the learner's new state.
    """
    state = learner.begin(view, seed)
    for t in range(episodes):
        plan = learner.plan(state)
        state = learner.learn(state, play(t, plan))
        yield t, plan, state


class _Recorder:
    """Plays and records episodes."""

    def __init__(self, game: Game) -> None:
        self.game, self.task = game, game.task
        episodes, shape = self.task.episodes, game.visits.shape[1:]
        check_memory(f"a run of {episodes} episodes", 16.0 * episodes * float(np.prod(shape, dtype=np.float64)))
        self.rewards = np.empty((episodes, *shape))
        self.estimates: FloatArray | None = np.empty_like(self.rewards)
        self.floats = {name: np.full(episodes, np.nan) for name in ("reward", "seconds", "planned", "believed")}
        self.whole = {name: np.zeros(episodes, dtype=np.int64) for name in ("activations", "visited", "iterations")}

    def play(self, t: int, plan: EpisodePlan) -> Feedback:
        streams = self.game.begin(t, plan.policy)
        self.rewards[t] = self.game.reward()
        self.episode = play_episode(self.task.problem_at(t), plan.policy, self.game.reward(), streams[:, :2])
        return self.game.feedback(self.episode)

    def record(self, t: int, plan: EpisodePlan, estimate: FloatArray | None, begin: float) -> None:
        self.floats["seconds"][t] = time.perf_counter() - begin
        self.game.count(self.episode)
        self.floats["reward"][t] = self.episode.reward
        self.whole["activations"][t] = self.episode.actions.sum()
        self.whole["visited"][t] = np.count_nonzero(self.game.visits)
        self.whole["iterations"][t] = plan.iterations
        expected = expected_visits(plan, self.task.problem)
        if estimate is None or expected is None:
            self.estimates = None
            return
        if self.estimates is not None:
            self.estimates[t] = estimate
        self.floats["planned"][t] = (expected * self.rewards[t]).sum()
        self.floats["believed"][t] = (expected * estimate).sum()

    def finish(self, player: Learner, state: State) -> RunResult:
        arrays = {name: frozen(array) for name, array in {**self.floats, **self.whole}.items()}
        estimates = None if self.estimates is None else frozen(self.estimates)
        known = (player.privileged, FULL_INFORMATION if self.task.feedback == "full" else "")
        head = (self.task, player.signature, " and ".join(filter(None, known)), self.game.seeds[0])
        return RunResult(*head, rewards=frozen(self.rewards), estimates=estimates, state=state, **arrays)  # type: ignore[arg-type]


def expected_visits(plan: EpisodePlan, problem: Problem) -> FloatArray | None:
    """(N, S, 2), or (N, K, S, 2) with phases: expected visits of each pair under the plan; None if unknown."""
    if plan.block_of is None:
        return None
    if plan.counted is None:
        return None if plan.occupancy is None else by_phase(plan.occupancy, problem.phase_of, problem.phases)[plan.block_of]
    arms = np.bincount(plan.block_of).reshape(-1, *(1,) * (2 if problem.phases == 1 else 3))
    return np.asarray((split_cells(plan.counted(), problem.phases) / arms)[plan.block_of])


def inform(learner: Learner, task: Task, seed: int) -> Learner:
    """Give a privileged learner its extra knowledge; return any other learner unchanged.

    If the adversary is adaptive, the summed rewards are T times a typical reward.
    """
    if not learner.privileged:
        return learner
    if task.adversary.adaptive:
        return learner.inform(task.problem, task.episodes * task.base_reward, seed)
    return learner.inform(task.problem, np.sum([task.reward(t) for t in range(task.episodes)], axis=0), seed)
