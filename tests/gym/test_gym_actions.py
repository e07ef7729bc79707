"""Gymnasium environments: requests, scores, wrappers, and what is refused."""

import subprocess
import sys
from collections import Counter
from functools import reduce
from itertools import combinations
from operator import add
from typing import Any

import gymnasium
import numpy as np
import pytest

import rmab
import rmab.gym
from environments import SMALL, assert_alike, steps
from rmab.gym.rounds import TaskRounds


def test_too_many_requests_draw_lots_that_are_fair() -> None:
    env = gymnasium.make("rmab/cpap-v0", arms=4, budget=2, horizon=3000, bound=False)
    env.reset(seed=0)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(3000):
        info = env.step([1, 1, 0, 1])[-1]
        assert info["dropped"] == 1
        found[tuple(np.flatnonzero(info["active"]).tolist())] += 1
    assert set(found) == set(combinations((0, 1, 3), 2))
    assert all(abs(count - 1000) < 5 * np.sqrt(3000 * 2 / 9) for count in found.values())


def test_too_many_requests_may_be_an_error_that_changes_nothing() -> None:
    env = gymnasium.make("rmab/cpap-v0", over_budget="error", **SMALL)
    env.reset(seed=0)
    with pytest.raises(rmab.errors.BudgetExceeded, match="step 0: the policy activates 3 arms, the budget is 2"):
        env.step([1, 1, 0, 1])
    after = env.step([1, 1, 0, 0])
    assert after[-1]["dropped"] == 0
    env.reset(seed=0)
    assert_alike(env.step([1, 1, 0, 0]), after)


def test_requests_within_the_budget_need_no_luck() -> None:
    """The lots are separate from the arms: who is asked for decides, and the arms have the luck of the simulator."""
    task = rmab.make_task("cpap@switching", **SMALL)
    always = rmab.IndexPolicy(np.array([[4.0], [3.0], [2.0], [1.0]]) + np.zeros(3), 2)
    rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(100, 0)))
    expected = rmab.simulate(task.problem, always, task.reward(0), rng)
    env = gymnasium.make("rmab/task-v0", task=task)
    env.reset(seed=9)
    played = [env.step([1, 1, 0, 0]) for _ in range(6)]
    assert [one[0]["states"].tolist() for one in played] == expected.states[1:].tolist()
    assert reduce(add, (one[1] for one in played)) == expected.reward  # one after the other: newer Pythons' sum rounds less


def test_scores_activate_the_highest() -> None:
    env = rmab.gym.ScoreAction(gymnasium.make("rmab/cpap-v0", **SMALL))
    env.reset(seed=0)
    for scores, active in (([3, 1, 2, 0], [0, 2]), ([-np.inf, 0, np.inf, 5e300], [2, 3]), ([-9, -8, -7, -6], [2, 3])):
        assert np.flatnonzero(env.step(np.array(scores))[-1]["active"]).tolist() == active
    with pytest.raises(rmab.errors.PolicyError, match="step 3: arm 1 has the score nan"):
        env.step(np.array([0, np.nan, 0, 0]))
    with pytest.raises(rmab.errors.PolicyError, match=r"step 3: scores must have shape \(4,\), got \(3,\)"):
        env.step(np.zeros(3))
    ties = Counter(np.flatnonzero(env.env.unwrapped.top([1, 0, 0, 0]))[1] for _ in range(300))
    assert set(ties) == {1, 2, 3}


def test_a_single_vectorised_round_has_arrays_too() -> None:
    envs = gymnasium.make_vec("rmab/cpap-v0", num_envs=1, **SMALL)
    assert envs.reset(seed=0)[1]["budget"].tolist() == [2]
    last = steps(envs, np.random.default_rng(0), 6)[-1][-1]
    assert last["budget"].tolist() == [0]
    assert {name: last[name].shape for name in ("active", "dropped", "bound")} == {
        "active": (1, 4),
        "dropped": (1,),
        "bound": (1,),
    }


def test_vectorised_scores() -> None:
    envs = rmab.gym.VectorScoreAction(gymnasium.make_vec("rmab/cpap-v0", num_envs=2, **SMALL))
    assert envs.action_space.shape == (2, 4)
    envs.reset(seed=0)
    active = envs.step([[3, 1, 2, 0], [0, 1, 2, 3]])[-1]["active"]
    assert [np.flatnonzero(one).tolist() for one in active] == [[0, 2], [2, 3]]
    with pytest.raises(rmab.errors.PolicyError, match="arm 1 of round 1 has the score nan"):
        envs.step([[3, 1, 2, 0], [0, np.nan, 2, 3]])


def test_it_lives_with_gymnasium_s_wrappers() -> None:
    inner = gymnasium.make("rmab/cpap-v0", **SMALL)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.FlattenObservation(inner))
    observation, _ = env.reset(seed=0)
    assert observation.shape == (4 * 3 + 7,)
    seen = steps(env, np.random.default_rng(0), 6)
    assert seen[-1][-1]["episode"]["r"] == pytest.approx(sum(one[1] for one in seen))
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(gymnasium.make_vec("rmab/cpap-v0", num_envs=2, **SMALL))
    envs.reset(seed=0)
    assert [("episode" in one[-1]) for one in steps(envs, np.random.default_rng(0), 8)] == [False] * 5 + [True] + [False] * 2


def test_a_line_of_text() -> None:
    env = gymnasium.make("rmab/cpap-v0", render_mode="ansi", **SMALL)
    env.reset(seed=0)
    env.step([0, 0, 0, 0])
    line = env.render()
    assert line.startswith("cpap@ramp, episode 0, step 1 of 6: ")
    assert line.endswith("; earned 0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adversary": "nonsense"}, "unknown adversary 'nonsense'"),
        ({"arms": 3}, "arms: Input should be a multiple of 2"),
        ({"over_budget": "ignore"}, "over_budget must be 'draw' or 'error', got 'ignore'"),
        ({"task": rmab.make_task("cpap"), "arms": 4}, "task cpap@ramp is already built; leave out arms"),
        ({"task": rmab.make_task("cpap"), "adversary": "iid"}, "task cpap@ramp is already built; leave out adversary"),
        ({"nonsense": 1}, "nonsense: no such option"),
    ],
)
def test_wrong_options_are_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=message):
        gymnasium.make("rmab/task-v0", **{"task": "cpap", **options})


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([1, 0, 0], r"step 0: the action must have shape \(4,\), got \(3,\)"),
        ([1, 0, 2, 0], "step 0: the action of arm 2 must be 0 or 1, got 2"),
        ([1, 0, np.nan, 0], "step 0: the action of arm 2 must be 0 or 1, got nan"),
        (1, r"step 0: the action must have shape \(4,\)"),
    ],
)
def test_wrong_actions_are_said(action: Any, message: str) -> None:
    env = rmab.gym.RmabEnv("cpap", **SMALL)
    env.reset(seed=0)
    with pytest.raises(rmab.errors.PolicyError, match=message):
        env.step(action)


def test_calls_out_of_order_are_said() -> None:
    env = rmab.gym.RmabEnv("cpap", **SMALL)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0, 0, 0, 0])
    env.reset(seed=0)
    with pytest.raises(rmab.errors.ModelError, match="before the end of the episode: 0 of 6 steps"):
        env.feedback()
    steps(env, np.random.default_rng(0), 6)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0, 0, 0, 0])
    with pytest.raises(rmab.errors.ModelError, match=r"episode_number must be in 0\.\.4, got 5"):
        env.reset(options={"episode_number": 5})
    with pytest.raises(rmab.errors.ModelError, match="unknown 'episode'; available: episode_number, policy"):
        env.reset(options={"episode": 1})
    with pytest.raises(gymnasium.error.ResetNeeded):
        rmab.gym.RmabVectorEnv(2, "cpap", **SMALL).step(np.zeros((2, 4)))
    with pytest.raises(rmab.errors.ModelError, match=r"one per round \(2\), got \[1, 2, 3\]"):
        rmab.gym.RmabVectorEnv(2, "cpap", **SMALL).reset(seed=[1, 2, 3])
    with pytest.raises(rmab.errors.ModelError, match="seed must be 0 or more, got -2"):
        rmab.gym.RmabVectorEnv(2, "cpap", **SMALL).reset(seed=[1, -2])
    with pytest.raises(rmab.errors.ModelError, match="foresees the plan of the episode"):
        rmab.gym.RmabEnv("cpap", adversary="plan-aware", **SMALL).reset(seed=0)
    with pytest.raises(rmab.errors.ModelError, match="uc-o-reps needs full feedback"):
        rmab.gym.play(env, "uc-o-reps")
    with pytest.raises(rmab.errors.ModelError, match="rounds must be at least 1"):
        TaskRounds(rmab.make_task("cpap", **SMALL), 0)
    with pytest.raises(rmab.errors.ModelError, match="environment of rmab, got CartPoleEnv"):
        rmab.gym.play(gymnasium.make("CartPole-v1"), "random")


def test_a_wrong_reset_changes_nothing() -> None:
    env = rmab.gym.RmabEnv("cpap", **SMALL)
    env.reset(seed=0)
    steps(env, np.random.default_rng(0), 2)
    with pytest.raises(rmab.errors.ModelError):
        env.reset(options={"episode_number": -1})
    assert steps(env, np.random.default_rng(0), 1)[0][0]["step"] == 3


def test_without_gymnasium_the_error_names_the_extra() -> None:
    code = """
import sys
sys.modules["gymnasium"] = None
import rmab
try:
    rmab.gym
except rmab.errors.MissingExtra as error:
    print(isinstance(error, ImportError), error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "True rmab.gym needs gymnasium: pip install 'rmab[gym]'\n"


@pytest.mark.parametrize("rounds", [None, 2])
def test_masked_actions_and_scores_are_refused(rounds: int | None) -> None:
    """What a mask hides would be played: a step that is refused is not played."""
    many = rounds is not None
    env: Any = gymnasium.make_vec("rmab/cpap-v0", num_envs=2, **SMALL) if many else gymnasium.make("rmab/cpap-v0", **SMALL)
    env.reset(seed=0)
    masked: Any = np.ma.array([1, 1, 0, 0], mask=[0, 1, 0, 0])
    given = np.ma.stack([masked, masked]) if many else masked
    for call in (env.step, env.unwrapped.top if not many else env.top):
        with pytest.raises(rmab.errors.PolicyError, match=r"^step 0: (the action|scores) must not be a masked array"):
            call(given)
    assert np.all(env.step(np.zeros(given.shape, dtype=int))[0]["step"] == 1)


@pytest.mark.parametrize(
    "wrong", [[[1, 0], [1]], "none", None, [1, 0, "x", 0], [None] * 4, {"a": 1}, np.array(1), [2, 0, 0, 0]]
)
def test_what_is_no_action_is_refused_in_one_line(wrong: Any) -> None:
    env = gymnasium.make("rmab/cpap-v0", **SMALL)
    env.reset(seed=0)
    with pytest.raises(rmab.errors.PolicyError) as caught:
        env.step(wrong)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("options", ["x", ["episode_number"], 5, {1: 2}, {"episode_number": "x"}, {"episode_number": -1}])
def test_wrong_options_of_a_reset_are_refused(options: Any) -> None:
    for env in (gymnasium.make("rmab/cpap-v0", **SMALL), gymnasium.make_vec("rmab/cpap-v0", num_envs=2, **SMALL)):
        with pytest.raises(rmab.errors.ModelError, match=r"^options"):
            env.reset(seed=0, options=options)  # type: ignore[attr-defined]


WRONG_SEEDS = ["episode_number", {"a": 1}, [1], [1, None], [1, 2.5], 1.5, [-1, 2], np.array(1), np.ones((2, 2))]


@pytest.mark.parametrize("seed", WRONG_SEEDS)
def test_wrong_seeds_of_many_rounds_are_refused(seed: Any) -> None:
    envs = gymnasium.make_vec("rmab/cpap-v0", num_envs=2, **SMALL)
    with pytest.raises(rmab.errors.ModelError, match="seed must be"):
        envs.reset(seed=seed)


def test_many_rounds_that_have_not_begun_say_so() -> None:
    envs = rmab.gym.RmabVectorEnv(2, "cpap", **SMALL)
    for call in (lambda: envs.top(np.zeros((2, 4))), lambda: envs.feedback(0), lambda: envs.step(np.zeros((2, 4)))):
        with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has started"):
            call()
    envs.reset(seed=0)
    for r in (2, -1):
        with pytest.raises(rmab.errors.ModelError, match=r"r must be in 0\.\.1"):
            envs.feedback(r)


@pytest.mark.parametrize("option", ["render_mode", "over_budget", "bound"])
@pytest.mark.parametrize("value", [np.ones(3), np.array([]), 5, ["draw"]])
def test_wrong_words_of_an_environment_are_refused(option: str, value: Any) -> None:
    with pytest.raises(rmab.errors.ModelError, match=f"{option} must be"):
        rmab.gym.RmabEnv("cpap", **SMALL, **{option: value})


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
@pytest.mark.parametrize("rounds", [1, 2])
def test_wrong_seeds_are_refused(seed: Any, rounds: int) -> None:
    env = rmab.gym.RmabEnv("cpap", **SMALL) if rounds == 1 else rmab.gym.RmabVectorEnv(rounds, "cpap", **SMALL)
    with pytest.raises(rmab.errors.ModelError, match="seed must be"):
        env.reset(seed=seed)
    env.reset(seed=np.int64(3))
