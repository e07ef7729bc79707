"""Part 7: Gymnasium environments on random models play as the simulator plays; wrong steps are refused, and not played."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import rmab
import rmab.gym
from fuzz import draw
from fuzz.arguments import odd
from fuzz.cases import Case
from fuzz.players import check_trajectory
from fuzz.proofs import budgets, near, require, stake
from rmab.errors import RmabError
from rmab.gym import RmabEnv, RmabVectorEnv

GYM = gymnasium.error.Error


def task_of(case: Case) -> tuple[rmab.Task, Any]:
    """Draw a task whose rewards are the same in every episode, and return them, too."""
    problem = draw.problem(case)
    reward = draw.reward(case, problem)
    low, high = float(reward.min()), float(reward.max())
    room = (abs(low) + abs(high)) or 1.0
    return rmab.Task.from_rewards(problem, np.stack([reward] * 2), low=low - room, high=high + room), reward


def request(case: Case, count: int, limit: int) -> Any:
    """Draw who is asked for: nobody, some, or more than the budget."""
    size = case.whole(0, count) if case.chance(0.3) else case.whole(0, limit)
    action = np.zeros(count, dtype=case.pick([bool, np.int8, np.int64, float]))
    action[case.rng.choice(count, size=size, replace=False)] = 1
    return action if case.chance(0.7) else action.tolist()


def refuse(case: Case, env: RmabEnv, right: Any) -> None:
    """Give a wrong action, options or seed: it is refused in one line, and nothing has changed, or it was a right one."""
    before = env._rounds.step
    try:
        env.step(odd(case, right))
    except RmabError as error:
        require(len(str(error).splitlines()) == 1, f"gym: no line, or more than one: {error}")
        require(env._rounds.step == before, "gym: a step that was refused was played")
        case.count("refused")
        return
    case.count("taken")


def play_single(case: Case, task: rmab.Task, reward: Any) -> None:
    """Play an episode by hand; its trajectory, reward and feedback are checked."""
    env, seed = RmabEnv(task, over_budget=case.pick(["draw", "error"])), case.whole(0, 2**31)
    first, info = env.reset(seed=seed)
    require(env.observation_space.contains(first), "gym: the first observation is outside its space")
    states, actions, total = [first["states"]], [], 0.0
    limits, over = budgets(task.problem.budget, task.problem.horizon), False
    while not over:
        limit = int(limits[len(actions)])
        require(info["budget"] == limit, "gym: budget")
        action = request(case, task.problem.arms.count, limit)
        if case.chance(0.1):
            refuse(case, env, np.asarray(action))
            if env._rounds.step > len(actions):  # it was an action after all
                return
        try:
            seen, earned, over, _, info = env.step(action)
        except rmab.errors.BudgetExceeded:
            require(int(np.sum(action)) > limit, "gym: a request within the budget is refused")
            continue
        require(int(info["dropped"]) == max(int(np.sum(action)) - limit, 0), "gym: dropped")
        require((np.asarray(action, dtype=bool) | ~info["active"]).all(), "gym: somebody is active who was not asked for")
        states.append(seen["states"])
        actions.append(info["active"])
        total += earned
    run = rmab.Trajectory(np.array(states, dtype=np.int32), np.array(actions), total)
    check_trajectory(task.problem, reward, run)
    told = env.feedback()
    require(np.array_equal(told.states, run.states) and np.array_equal(told.actions, run.actions), "gym: feedback")
    if "bound" in info:
        near(info["bound"], rmab.solvers.solve_fluid(task.problem, reward).bound, stake(task.problem, reward), "gym: bound")
    case.count("episodes")


def play_many(case: Case, task: rmab.Task) -> None:
    """Play rounds side by side: each is the one that an environment of its seed plays."""
    count, seed, rounds = task.problem.arms.count, case.whole(0, 2**31), case.whole(1, 4)
    many = RmabVectorEnv(rounds, task, bound=False)
    alone = [RmabEnv(task, bound=False) for _ in range(rounds)]
    first, _ = many.reset(seed=seed)
    for r, env in enumerate(alone):
        require(np.array_equal(env.reset(seed=seed + r)[0]["states"], first["states"][r]), "gym: rounds begin otherwise")
    for _ in range(task.problem.horizon):
        actions = case.rng.integers(2, size=(rounds, count))
        seen, earned, over, _, info = many.step(actions)
        for r, env in enumerate(alone):
            own = env.step(actions[r])
            same = np.array_equal(own[0]["states"], seen["states"][r]) and own[1] == earned[r] and own[2] == over[r]
            require(same and np.array_equal(own[4]["active"], info["active"][r]), "gym: rounds differ from single ones")
    case.count("rounds")


def reset_wrongly(case: Case, task: rmab.Task) -> None:
    """Give a wrong seed or wrong options: refused in one line, by this library or by Gymnasium."""
    env = RmabEnv(task) if case.chance(0.5) else RmabVectorEnv(2, task)
    right: dict[str, Any] = {"seed": 1, "options": {"episode_number": 0}}
    key = case.pick(list(right))
    given = {**right, key: odd(case, right[key]) if case.chance(0.6) else {"episode_number": odd(case, 0)}}
    try:
        env.reset(**given)
        case.count("taken")
    except (RmabError, GYM) as error:
        require(len(str(error).splitlines()) == 1, f"gym: no line, or more than one: {error}")
        case.count("refused")


def play(case: Case) -> None:
    """Play an episode, rounds side by side, or something wrong."""
    task, reward = task_of(case)
    kind = case.seed % 4
    if kind == 3:
        reset_wrongly(case, task)
    elif kind == 2:
        play_many(case, task)
    else:
        play_single(case, task, reward)
