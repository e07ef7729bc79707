"""Calls of `rmab warm`: each learner and planner once, on small tasks, so that all their code is compiled."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

import numpy as np

from rmab.common import compile as compiling
from rmab.errors import ModelError
from rmab.learning.registry import list_learners, make_learner
from rmab.planners.indices import lagrangian_index
from rmab.planners.whittle import finite_whittle_index, whittle_index
from rmab.play import simulate, simulate_many
from rmab.runs.running import run
from rmab.solvers.fluid.fluid import solve_fluid
from rmab.solvers.priced.soften import soften
from rmab.solvers.stationary.average import solve_average_fluid
from rmab.tasks.definition import Task
from rmab.tasks.making import make_task

OPTIONS: dict[str, list[dict[str, str]]] = {"ucmd": [{"confidence": "l1"}, {"rounding": "dependent"}]}


def steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield names and functions to call."""
    games = [
        make_task("cpap", arms=4, budget=2, horizon=6, episodes=3),
        make_task("deadline", arms=6, budget=2, horizon=7, episodes=2, known_support=True),
    ]
    yield "planners", partial(_plan, games[0])
    if find_spec("gymnasium") is not None:
        yield "environments", partial(_step, games[0])
    for name in list_learners():
        for options in ({}, *OPTIONS.get(name, [])):
            yield name, partial(_play, games, name, options)


def count_stored() -> int:
    """Return the number of functions of this version that are stored on disk."""
    return 0 if compiling._FOLDER is None else sum(1 for _ in compiling._FOLDER.glob("*.code"))


def _plan(game: Task) -> None:
    problem, reward = game.problem, game.base_reward
    solve_fluid(problem, reward, method="highs")
    solve_fluid(problem, reward, method="newton")
    soften(problem, reward, 10.0)
    solve_average_fluid(problem, reward)
    whittle_index(problem, reward, discount=0.9)
    finite_whittle_index(problem, reward)
    policy = lagrangian_index(problem, reward)
    simulate(problem, policy, reward, np.random.default_rng(0))
    simulate_many(problem, policy, reward, np.random.default_rng(0), 2)
    policy.act(0, np.zeros(problem.arms.count, dtype=np.int64), np.random.default_rng(0))


def _step(game: Task) -> None:
    from rmab.gym.rounds import TaskRounds  # needs an extra

    rounds = TaskRounds(game)
    rounds.reset([0])
    rounds.play(rounds.top(np.zeros(rounds.states.shape)))


def _play(games: list[Task], name: str, options: dict[str, str]) -> None:
    for game in games:
        try:
            run(game, make_learner(name, **options)).regret("O2")
        except ModelError:  # the learner does not support tasks of this size or kind
            continue
