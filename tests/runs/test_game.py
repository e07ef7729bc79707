"""Runs and environments play one game. Feedback of the simulator is what `reveal` shows, and is not checked twice."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError
from rmab.play.simulation import play_episode
from rmab.runs.running import Game, rehearse_visits, visits_of
from timed import timed_problem

SIZES = {"arms": 4, "budget": 2, "horizon": 6, "episodes": 3}


def timed_task() -> rmab.Task:
    problem, reward = timed_problem(0, arms=4, phases=3, horizon=5)
    return rmab.Task.from_rewards(problem, np.random.default_rng(0).uniform(0, 1, size=(3, *reward.shape)), low=0, high=1)


TASKS = {
    "bandit": rmab.make_task("cpap-adherence@noisy", **SIZES),
    "active": rmab.make_task("cpap@switching", feedback="active", **SIZES),
    "full": rmab.make_task("deadline@ramp", feedback="full", arms=4, budget=2, horizon=6, episodes=3),
    "answers": rmab.make_task("cpap@adaptive", **SIZES),
    "timed": timed_task(),
}


def played(game: Game, t: int = 0) -> rmab.Trajectory:
    problem = game.task.problem
    streams = game.begin(t)
    return play_episode(problem, rmab.planners.random_policy(problem), game.reward(), streams[:, :2])


@pytest.mark.parametrize("name", TASKS)
def test_feedback_of_the_simulator_is_what_reveal_returns(name: str) -> None:
    game = Game(TASKS[name], [3])
    episode = played(game)
    ours, public = game.feedback(episode), rmab.Feedback.reveal(game.view, 0, episode, game.reward())
    for field in ("states", "actions", "rewards"):
        one, other = getattr(ours, field), getattr(public, field)
        assert (one.dtype, one.flags.writeable) == (other.dtype, False)
        np.testing.assert_array_equal(one, other)
    assert np.shares_memory(ours.actions, episode.actions), "nothing is copied"
    rmab.Feedback(0, ours.states, ours.actions, ours.rewards).check(game.view, 0)  # it passes all checks, if they are made


def test_trust_is_for_the_very_view_that_was_played() -> None:
    game = Game(TASKS["bandit"], [3])
    feedback = game.feedback(played(game))
    feedback.check(game.view, 0)
    with pytest.raises(FeedbackError, match="expected feedback of episode 1") as caught:
        feedback.check(game.view, 1)
    assert caught.value.code == "wrong-episode"
    with pytest.raises(FeedbackError, match="step 0: 2 arms are active, the budget is 1"):
        feedback.check(replace(game.view, budget=1), 0)
    again = pickle.loads(pickle.dumps(feedback))
    assert "_view" not in vars(again), "another process checks for itself"
    again.check(game.view, 0)


class PaysPassive(rmab.Adversary):
    """Breaks what it declares."""

    @property
    def base(self) -> Any:
        return np.ones((4, 3, 2)) * [0, 1]

    def choose(self, t: int, visits: Any) -> Any:
        return np.ones((4, 3, 2))


def test_a_custom_adversary_is_not_trusted() -> None:
    task = replace(TASKS["bandit"], adversary=PaysPassive(3, 0.0, 1.0, True))
    with pytest.raises(FeedbackError, match=r"arm 0, state 0, action 0 paid 1\.0, outside") as caught:
        rmab.run(task, "random")
    assert caught.value.location == {"field": "rewards", "arm": 0, "state": 0, "action": 0}


class Keeps(rmab.Adversary):
    """Returns the same array every time, and writes into the visits."""

    adaptive = True
    table = np.full((4, 3, 2), 0.5)

    @property
    def base(self) -> Any:
        return self.table

    def choose(self, t: int, visits: Any) -> Any:
        visits[:] = 7
        return self.table


def test_what_a_custom_adversary_holds_is_copied() -> None:
    task = replace(TASKS["bandit"], adversary=Keeps(3, 0.0, 1.0, False))
    game = Game(task, [0])
    game.begin(0)
    assert game.visits.sum() == 0
    assert Keeps.table.flags.writeable
    assert not np.shares_memory(game.reward(), Keeps.table)


def test_visits_add_up() -> None:
    game = Game(TASKS["timed"], [1])
    problem, total = TASKS["timed"].problem, np.zeros((4, 3, 2, 2), dtype=np.int64)
    for t in range(3):
        episode = played(game, t)
        game.count(episode)
        for h, n in np.ndindex(episode.actions.shape):
            total[n, problem.phase_of[h], episode.states[h, n], int(episode.actions[h, n])] += 1
    np.testing.assert_array_equal(game.visits[0], total)
    policy = rmab.planners.random_policy(problem)
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    one = sum(visits_of(problem, rmab.simulate(problem, policy, np.zeros((4, 3, 2, 2)), again)) for _ in range(7))
    np.testing.assert_array_equal(rehearse_visits(problem, policy, rng, 7), one)


def test_a_table_that_is_not_finite_is_refused_without_a_copy() -> None:
    table = np.ones((2, 3, 2))
    policy = rmab.IndexPolicy.of_steps(table, 1)
    assert np.shares_memory(policy.table, table)
    wrong = np.ones((2, 3, 2))
    wrong[1, 2, 0] = np.nan
    with pytest.raises(rmab.errors.PolicyError, match="arm 2, step 1, state 0 needs a finite index") as caught:
        rmab.IndexPolicy.of_steps(wrong, 1)
    assert caught.value.location == {"field": "table", "arm": 2, "step": 1, "state": 0}
