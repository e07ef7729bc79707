"""Gymnasium environments: the same games as `rmab.run`, told honestly, by Gymnasium's rules."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rmab
import rmab.gym
from environments import SMALL, assert_alike, steps
from rmab.tasks import TASKS
from timed import timed_problem


def timed_task(seed: int = 0, **options: Any) -> rmab.Task:
    """Return a task with phases, budgets by step and drawn starts."""
    problem, reward = timed_problem(seed, arms=4, phases=3, horizon=5, **options)
    rewards = np.random.default_rng(seed).uniform(0, 1, size=(4, *reward.shape))
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1)


class Memory(rmab.Learner):
    """Its policy remembers, and draws."""

    name = "memory"

    def initial(self, view: rmab.View, seed: int) -> dict[str, Any]:
        return {}

    def decide(self, state: rmab.State) -> rmab.EpisodePlan:
        return rmab.EpisodePlan(Turns(state.view.arms, int(state.view.budgets.min())))

    def update(self, state: rmab.State, feedback: rmab.Feedback) -> dict[str, Any]:
        return {}


class Turns:
    """Arms in a random order, from where the last step stopped."""

    def __init__(self, arms: int, budget: int) -> None:
        self.arms, self.budget = arms, budget
        self.at, self.order = 0, np.arange(arms)

    def begin(self, states: Any, rng: np.random.Generator) -> "Turns":
        player = Turns(self.arms, self.budget)
        player.order = rng.permutation(self.arms)
        return player

    def act(self, h: int, states: Any, rng: np.random.Generator) -> Any:
        active = np.zeros(self.arms, dtype=bool)
        active[self.order[(self.at + np.arange(self.budget)) % self.arms]] = True
        self.at += self.budget + int(rng.integers(2))
        return active


def test_a_task_whose_kernels_change_is_no_environment() -> None:
    with pytest.raises(rmab.errors.ModelError, match="task drift: cannot be an environment, as its kernels change between"):
        gymnasium.make("rmab/drift-v0")


@pytest.mark.parametrize("name", [name for name in TASKS if rmab.make_task(name).change is None])
def test_gymnasium_s_own_checker_has_nothing_to_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"rmab/{name}-v0", bound=False)
        check_env(env.unwrapped)


@pytest.mark.parametrize("adversary", ["switching", "adaptive"])
def test_the_checker_is_silent_on_adversaries_and_scores(adversary: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("rmab/cpap-v0", adversary=adversary, **SMALL)
        check_env(env.unwrapped)
        scored = rmab.gym.ScoreAction(env.unwrapped)
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")  # it is a wrapper
        check_env(scored)


@pytest.mark.compiled
@pytest.mark.parametrize("learner", ["random", "ucmd", "ucmd-armab", "rmab-ucrl", "thompson", "q-whittle", "oracle"])
@pytest.mark.parametrize("adversary", ["ramp", "switching", "adaptive", "plan-aware"])
def test_a_learner_earns_what_run_says(learner: str, adversary: str) -> None:
    env = gymnasium.make("rmab/cpap-v0", adversary=adversary, **SMALL)
    expected = rmab.run(rmab.make_task(f"cpap@{adversary}", **SMALL), learner, seed=3)
    assert np.array_equal(rmab.gym.play(env, learner, seed=3), expected.reward)


@pytest.mark.parametrize(
    ("task", "learner"),
    [
        (timed_task(0), "ucmd"),
        (timed_task(1), "random"),
        (timed_task(2, discount=0.9), "random"),
        (timed_task(3, discount=0.8), "oracle"),
        (timed_task(4, budget=2), Memory()),
        (rmab.make_task("cpap@switching", **SMALL, feedback="full"), "uc-o-reps"),
        (rmab.make_task("cpap@mixed", **SMALL, feedback="active"), "ucmd"),
        (rmab.make_task("cpap-adherence@drifting", **SMALL), Memory()),
        (rmab.make_task("cpap@noisy", **SMALL), rmab.make_learner("ucmd", rounding="dependent", rule="at-most")),
        (rmab.make_task("deadline@adaptive", arms=5, budget=2, horizon=7, episodes=3), "ucmd"),
        (
            rmab.make_task("deadline-day", arms=4, budget=2, horizon=24, phases=4, arrival=0.5, tariff=0.2, episodes=2),
            "random",
        ),
        (rmab.make_task("two-way", episodes=4), "ucmd"),
    ],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "name", None),
)
def test_so_it_is_in_tasks_of_every_kind(task: rmab.Task, learner: Any) -> None:
    env = gymnasium.make("rmab/task-v0", task=task)
    assert np.array_equal(rmab.gym.play(env, learner, seed=1), rmab.run(task, learner, seed=1).reward)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "options",
    [
        {"task": "cpap", "adversary": "switching", **SMALL},
        {"task": "cpap", "adversary": "adaptive", "bound": True, **SMALL},
        {"task": timed_task(5)},
    ],
)
def test_the_vectorised_environment_says_what_single_ones_say(options: dict[str, Any]) -> None:
    """Over more than one game, with too many requests, and the next episode beginning by itself."""
    ours = gymnasium.make_vec("rmab/task-v0", num_envs=3, **options)
    plain = gymnasium.make_vec("rmab/task-v0", num_envs=3, vectorization_mode="sync", **options)
    assert isinstance(ours, rmab.gym.RmabVectorEnv)
    assert (ours.observation_space, ours.action_space) == (plain.observation_space, plain.action_space)
    assert_alike(ours.reset(seed=7), plain.reset(seed=7))
    assert_alike(*(steps(one, np.random.default_rng(0), 40) for one in (ours, plain)))
    assert_alike(ours.reset(seed=[3, 1, 3]), plain.reset(seed=[3, 1, 3]))
    seen = steps(ours, np.random.default_rng(0), 4)
    assert_alike(seen, steps(plain, np.random.default_rng(0), 4))
    assert ours.reset(options={"episode_number": 2})[1]["episode_number"].tolist() == [2, 2, 2]


def test_rewards_of_an_episode_and_its_bound() -> None:
    task = rmab.make_task("cpap@switching", **SMALL)
    env = gymnasium.make("rmab/task-v0", task=task)
    for t in range(3):
        env.reset(seed=0) if t == 0 else env.reset()
        last = steps(env, np.random.default_rng(0), 6)[-1]
        assert last[2:4] == (True, False)
        assert last[-1]["bound"] == rmab.solvers.solve_fluid(task.problem, task.reward(t)).bound == env.unwrapped.bound()
    quiet = gymnasium.make("rmab/cpap-v0", adversary="adaptive", **SMALL)
    quiet.reset(seed=0)
    assert "bound" not in steps(quiet, np.random.default_rng(0), 6)[-1][-1]


def test_information_is_of_visited_pairs_only() -> None:
    """What is paid is the reward of the pair that was visited; feedback of all tells no more than the task's mode."""
    for mode in ("bandit", "active", "full"):
        task = rmab.make_task("cpap-adherence@switching", **SMALL, feedback=mode)
        env = gymnasium.make("rmab/task-v0", task=task, bound=False)
        before, _ = env.reset(seed=2)
        actions, seen = [], [before["states"]]
        for _ in range(6):
            after, reward, *_, info = env.step(env.action_space.sample())
            assert info.keys() == {"budget", "active", "dropped", "paid"}
            truth = task.reward(0)[np.arange(4), seen[-1], info["active"].astype(int)]
            shown = info["active"] if mode == "active" else np.ones(4, dtype=bool)
            assert np.array_equal(info["paid"], np.where(shown, truth, np.nan), equal_nan=True)
            assert reward == pytest.approx(truth.sum(), abs=1e-12)
            actions.append(info["active"])
            seen.append(after["states"])
        played = rmab.Trajectory(np.array(seen), np.array(actions), 0.0)
        expected = rmab.Feedback.reveal(task.view(), 0, played, task.reward(0))
        told = env.unwrapped.feedback()
        assert np.array_equal(told.rewards, expected.rewards, equal_nan=True)
        assert np.array_equal(told.states, expected.states)
        assert np.array_equal(told.actions, expected.actions)


def test_time_passes_with_episodes_that_are_played() -> None:
    env = gymnasium.make("rmab/cpap-v0", adversary="switching", **SMALL)
    _, told = env.reset(seed=4)
    assert (told["episode_number"], told["game"]) == (0, 0)
    assert env.reset()[1]["episode_number"] == 0, "no step was played"
    env.step([1, 0, 0, 0])
    assert env.reset()[1]["episode_number"] == 1, "an episode that was left early is over"
    assert env.reset(options={"episode_number": 4})[1]["episode_number"] == 4
    steps(env, np.random.default_rng(0), 6)
    _, told = env.reset()
    assert (told["episode_number"], told["game"]) == (0, 1)
    assert env.reset(seed=4)[1]["game"] == 0


def test_games_have_luck_of_their_own_and_seeds_repeat_it() -> None:
    env = gymnasium.make("rmab/cpap-v0", arms=20, budget=5, horizon=20, episodes=1, bound=False)

    def game() -> list[Any]:
        return [one[0]["states"].tolist() for one in steps(env, np.random.default_rng(0), 20)]

    env.reset(seed=1)
    first = game()
    env.reset()
    second = game()
    env.reset(seed=1)
    assert game() == first != second
    env.reset()
    assert game() == second
    env.reset(seed=2)
    assert game() != first


def test_an_unseeded_environment_tells_the_seed_that_it_drew() -> None:
    env, other = (gymnasium.make("rmab/cpap-v0", **SMALL) for _ in range(2))
    env.reset()
    seed = env.unwrapped.np_random_seed
    assert seed is not None
    other.reset(seed=seed)
    assert_alike(*(steps(one, np.random.default_rng(0), 6) for one in (env, other)))


def test_an_answering_adversary_sees_what_was_played() -> None:
    """By hand: one arm is always active, so its active pairs pay least in the next episode."""
    env = gymnasium.make("rmab/cpap-v0", adversary="adaptive", **SMALL)
    env.reset(seed=0)
    visits = np.zeros((4, 3, 2), dtype=int)
    states = env.unwrapped._rounds.states[0].copy()
    for _ in range(6):
        visits[np.arange(4), states, [1, 0, 0, 0]] += 1
        states = env.step([1, 0, 0, 0])[0]["states"]
    env.reset()
    expected = env.unwrapped.task.reward(1, visits)
    assert np.array_equal(env.unwrapped._rounds.game.rewards[0], expected)
    assert env.reset(seed=0)[1]["episode_number"] == 0
    assert np.array_equal(env.unwrapped._rounds.game.rewards[0], env.unwrapped.task.reward(0)), "a new game forgets"
