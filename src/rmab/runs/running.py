"""One run: a learner plays a task for all its episodes. Learners see views and feedback; everything else stays here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_integer, expect
from rmab.common.files import SUFFIXES
from rmab.common.forks import cached_property
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.families import Task, load_task, task
from rmab.learning import learner as make_learner
from rmab.learning.base import Learner, Plan
from rmab.learning.state import State
from rmab.model.problem import Problem
from rmab.model.time import by_phase, parted, shape_of
from rmab.model.view import FeedbackMode
from rmab.play.feedback import Feedback
from rmab.play.outcomes import Trajectory
from rmab.play.policy import Policy
from rmab.play.simulation import simulate
from rmab.runs.comparators import Comparator, Comparators
from rmab.runs.luck import REHEARSAL, SIMULATOR, luck_of
from rmab.runs.visits import count_visits, rehearsed

FULL_INFORMATION = "sees all rewards of an episode"
ROUNDING = 1e-9  # of what was earned: chance that loses less loses nothing


@dataclass(frozen=True, eq=False)
class Run(ReadOnly):
    """What happened in a run, episode by episode, as `run` returns it.

    Attributes
    ----------
    task : Task
        The task, with the feedback that the learner got.
    learner : str
        Name and options of the learner.
    privileged : str
        What the learner was given that no real programme has, full feedback included; empty if nothing.
    seed : int
        Seed of the run.
    reward : ndarray, shape (T,)
        What was earned.
    activations, visited, iterations : ndarray of int, shape (T,)
        Activations spent; pairs (n, s, a), in every phase, visited at least once so far; iterations of the solver behind the
        plan.
    seconds : ndarray, shape (T,)
        Wall time of the whole episode.
    rewards : ndarray, shape (T, N, S, 2), or (T, N, K, S, 2) with phases
        What the adversary chose.
    planned, believed : ndarray, shape (T,)
        What the plan's occupancy earns under the true rewards, and under the learner's own estimates; NaN for learners
        without occupancies.
    estimates : ndarray, shape of rewards, or None
        These estimates.
    state : State
        The learner's state after the last episode.

    Examples
    --------
    >>> import rmab
    >>> run = rmab.run(rmab.task("cpap", episodes=3), "random")
    >>> run.reward.shape, run.regret("O1").shape
    ((3,), (3,))
    """

    task: Task
    learner: str
    privileged: str
    seed: int
    reward: FloatArray
    activations: IntArray
    visited: IntArray
    iterations: IntArray
    seconds: FloatArray
    rewards: FloatArray
    planned: FloatArray
    believed: FloatArray
    estimates: FloatArray | None
    state: State

    @cached_property
    def comparators(self) -> Comparators:
        """O1, O2 and O3 of the rewards that were chosen."""
        return Comparators.of(self.task.problem, self.rewards)

    def regret(self, to: Comparator = "O1") -> FloatArray:
        """(T,) accumulated regret to a comparator, signed."""
        return np.asarray(np.cumsum(self.comparators.per_episode(to) - self.reward))

    def relative_regret(self, to: Comparator = "O1") -> float:
        """Return the regret of the whole run as a part of what the comparator earns in all (its size)."""
        total = float(self.comparators.per_episode(to).sum())
        lost = total - float(self.reward.sum())
        return lost / abs(total) if total else float(np.sign(lost)) * np.inf if lost else 0.0

    def chance_gap(self, to: Comparator = "O1") -> float:
        """Return what blind decisions lose to a comparator in the whole run, on average."""
        return float((self.comparators.per_episode(to) - self.comparators.chance()).sum())

    def share_of_chance(self, to: Comparator = "O1") -> float:
        """Return the regret of the whole run as a share of the chance gap: 0 is the comparator, 1 is chance.

        NaN where blind decisions lose nothing.
        """
        return part_of_gap(float(self.regret(to)[-1]), self.chance_gap(to), float(np.abs(self.reward).sum()))

    def terms(self) -> FloatArray:
        """(4, T) Term0..Term3 of every episode, which add up to its O1-regret (Xiong & Li 2024, regret decomposition).

        Over-estimation, mirror descent, the estimator, and the index policy in the true model. NaN where the learner has no
        occupancies or estimates.
        """
        if self.estimates is None:
            return np.full((4, self.reward.size), np.nan)
        bound = self.comparators.o1()
        visits = self.comparators.visits
        hoped = np.tensordot(self.estimates, visits, axes=visits.ndim)
        return np.stack([bound - hoped, hoped - self.believed, self.believed - self.planned, self.planned - self.reward])

    def to_table(self, comparators: Sequence[Comparator] = ("O1", "O2", "O3")) -> dict[str, FloatArray | IntArray]:
        """Return columns (T,) by name: what happened, what O1 (`bound`) and chance earn on average, regret to each
        comparator (accumulated), and the four terms.
        """
        columns: dict[str, FloatArray | IntArray] = {
            "episode": np.arange(self.reward.size),
            "reward": self.reward,
            "bound": self.comparators.o1(),
            "chance": self.comparators.chance(),
            "activations": self.activations,
            "visited": self.visited,
            "iterations": self.iterations,
            "seconds": self.seconds,
        }
        columns |= {f"regret_{which}": self.regret(which) for which in comparators}
        return columns | {f"term{k}": row for k, row in enumerate(self.terms())}

    def summary(self) -> dict[str, Any]:
        """Return the run in a few numbers: totals over all episodes, NaN where the learner has no terms."""
        problem, learner = self.task.problem, self.learner.partition(" ")[0]
        comparators: tuple[Comparator, ...] = ("O1", "O2", "O3")
        slots = int(problem.budgets.sum()) * self.reward.size
        return {
            "task": self.task.name,
            "learner": learner,
            "feedback": self.task.feedback,
            "privileged": self.privileged,
            "adversary": self.task.stronger,
            "seed": self.seed,
            "episodes": self.reward.size,
            "reward": float(self.reward.sum()),
            "regret": {to: float(self.regret(to)[-1]) for to in comparators},
            "relative_regret": {to: self.relative_regret(to) for to in comparators},
            "share_of_chance": {to: self.share_of_chance(to) for to in comparators},
            "terms": {f"Term{k}": float(term.sum()) for k, term in enumerate(self.terms())},
            "budget_use": float(self.activations.sum()) / slots if slots else 0.0,
            "seconds": float(self.seconds.sum()),
        }

    def __repr__(self) -> str:
        learner, earned = self.learner.partition(" ")[0], float(self.reward.sum())
        told = f", privileged: {self.privileged}" if self.privileged else ""
        told += f", adversary: {self.task.stronger}" if self.task.stronger else ""
        who = f"{learner} on {self.task.name}, seed {self.seed}"
        return f"Run({who}, {self.reward.size} episodes, reward {earned:.6g}{told})"


def part_of_gap(lost: float, gap: float, size: float) -> float:
    """Return what was lost as a part of what chance loses; NaN where that is nothing beside rewards of this size."""
    return lost / gap if gap > ROUNDING * size and gap > 0 else float("nan")


def feedback_of(learner: Learner, given: FeedbackMode, asked: FeedbackMode | None = None) -> FeedbackMode:
    """Return the feedback that a learner gets, from what the task gives and what is asked for: it is decided only here.

    What is asked for wins, and is a ModelError where the learner is not defined with it. Otherwise a learner that is not
    defined without full feedback gets that, and any other what the task gives.
    """
    if learner.feedback not in ("bandit", "full"):
        raise ModelError(f"{learner.name}: feedback must be 'bandit' or 'full', got {learner.feedback!r}")
    if learner.feedback != "full":
        return given if asked is None else asked
    if asked not in (None, "full"):
        raise ModelError(f"{learner.name} needs full feedback (got {asked!r}): leave it out, or say 'full'")
    return "full"


def run(
    task_or_name: Task | str,
    learner: Learner | str,
    seed: int = 0,
    *,
    feedback: FeedbackMode | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Let a learner play all episodes of a task. The same task, learner and seed give the same run, byte for byte.

    Parameters
    ----------
    task_or_name : Task or str
        A task; or a name as `rmab.task` takes it, made from the seed of the run.
    learner : Learner or str
        A learner, or a name as `rmab.learner` takes it.
    seed : int, optional
        Of the learner and of the arms' transitions, 0 or more.
    feedback : {'bandit', 'active', 'full'}, optional
        What the learner is told after an episode. By default full feedback for a learner that is not defined without it,
        otherwise what the task gives. Full feedback is noted in `Run.privileged`.
    progress : callable, optional
        Called after every episode with (episodes done, all episodes).

    Returns
    -------
    Run

    Raises
    ------
    ModelError
        If a name is unknown, the seed is wrong, or the learner needs other feedback than asked for.

    Examples
    --------
    >>> import rmab
    >>> game = rmab.task("cpap", arms=4, budget=2, horizon=5, episodes=3)
    >>> played = rmab.run(game, "random", seed=1)
    >>> played.reward.shape, played.activations
    ((3,), array([10, 10, 10]))
    """
    number = as_integer(seed, "seed")
    if number < 0:
        raise ModelError(f"seed must be 0 or more, got {number}")
    made = _made(task_or_name, number) if isinstance(task_or_name, str) else task_or_name
    player = make_learner(learner) if isinstance(learner, str) else learner
    if not isinstance(made, Task) or not isinstance(player, Learner):
        kinds = f"{type(made).__name__} and {type(player).__name__}"
        raise ModelError(f"a run needs a task and a learner, or their names, got {kinds}")
    if feedback is not None:
        expect(feedback, str, "feedback")
    wanted = feedback_of(player, made.feedback, feedback)
    game = made if wanted == made.feedback else replace(made, feedback=wanted)
    player = told(player, game, number)
    view, loop = game.view(), _Loop(game, number)
    begin = time.perf_counter()
    state = player.begin(view, number)
    for t in range(game.episodes):
        plan = player.plan(state)
        reward = loop.reward(t, plan.policy)
        episode = simulate(game.problem, plan.policy, reward, luck_of(number, SIMULATOR, t))
        state = player.learn(state, Feedback.reveal(view, t, episode, reward))
        loop.record(t, plan, episode, player.estimate(state), begin)
        begin = time.perf_counter()
        if progress is not None:
            progress(t + 1, game.episodes)
    return loop.finished(player, state)


def _made(name: str, seed: int) -> Task:
    """Make a task by name from the seed, or read it from a file, which has no seed."""
    return load_task(name) if Path(name).suffix in SUFFIXES else task(name, seed=seed)


class _Loop:
    """What the run writes down on its way."""

    def __init__(self, game: Task, seed: int) -> None:
        self.task, self.seed = game, seed
        episodes, arms = game.episodes, game.problem.arms
        shape = shape_of(game.problem.phases, arms.count, arms.states, 2)
        check_memory(f"a run of {episodes} episodes", 16.0 * episodes * float(np.prod(shape, dtype=np.float64)))
        self.visits, self.rewards = np.zeros(shape, dtype=np.int64), np.empty((episodes, *shape))
        self.estimates: FloatArray | None = np.empty_like(self.rewards)
        self.floats = {name: np.full(episodes, np.nan) for name in ("reward", "seconds", "planned", "believed")}
        self.whole = {name: np.zeros(episodes, dtype=np.int64) for name in ("activations", "visited", "iterations")}

    def reward(self, t: int, policy: Policy) -> FloatArray:
        """Return what the adversary chooses, which may see the policy if it foresees: its rehearsals have their own luck."""
        seen = self.visits
        if self.task.adversary.foresees:
            seen = rehearsed(self.task.problem, policy, luck_of(self.seed, REHEARSAL, t))
        chosen = self.task.reward(t, seen)
        self.rewards[t] = chosen
        return chosen

    def record(self, t: int, plan: Plan, episode: Trajectory, estimate: FloatArray | None, begin: float) -> None:
        self.floats["seconds"][t] = time.perf_counter() - begin
        problem = self.task.problem
        count_visits(problem, episode, self.visits)
        self.floats["reward"][t] = episode.reward
        self.whole["activations"][t] = episode.actions.sum()
        self.whole["visited"][t] = np.count_nonzero(self.visits)
        self.whole["iterations"][t] = plan.iterations
        expected = expected_visits(plan, problem)
        if estimate is None or expected is None:
            self.estimates = None
            return
        if self.estimates is not None:
            self.estimates[t] = estimate
        self.floats["planned"][t] = (expected * self.rewards[t]).sum()
        self.floats["believed"][t] = (expected * estimate).sum()

    def finished(self, player: Learner, state: State) -> Run:
        arrays = {name: frozen(array) for name, array in {**self.floats, **self.whole}.items()}
        estimates = None if self.estimates is None else frozen(self.estimates)
        told = (player.privileged, FULL_INFORMATION if self.task.feedback == "full" else "")
        privileged = " and ".join(filter(None, told))
        head = (self.task, player.signature, privileged, self.seed)
        return Run(*head, rewards=frozen(self.rewards), estimates=estimates, state=state, **arrays)  # type: ignore[arg-type]


def expected_visits(plan: Plan, problem: Problem) -> FloatArray | None:
    """(N, S, 2), or (N, K, S, 2) with phases: how often the plan has an arm in a state under an action; None if unknown."""
    if plan.block_of is None:
        return None
    if plan.counted is None:
        return None if plan.occupancy is None else by_phase(plan.occupancy, problem.phase_of, problem.phases)[plan.block_of]
    arms = np.bincount(plan.block_of).reshape(-1, *(1,) * (2 if problem.phases == 1 else 3))
    return np.asarray((parted(plan.counted(), problem.phases) / arms)[plan.block_of])


def told(player: Learner, game: Task, seed: int) -> Learner:
    """Return the learner that plays: a privileged one is told what it may know, any other is as it was."""
    return player.informed(game.problem, _known_rewards(game), seed) if player.privileged else player


def _known_rewards(game: Task) -> FloatArray:
    """Return the summed rewards; against an adversary that answers to what was done, T times a typical reward."""
    if game.adversary.adaptive:
        return game.episodes * game.base_reward
    total: FloatArray = np.sum([game.reward(t) for t in range(game.episodes)], axis=0)
    return total
