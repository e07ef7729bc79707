"""Tasks and learners of the studies in questions.py, for whose questions alone they are made."""

from typing import Any

import numpy as np

import rmab
from rmab.common.processes import cached_property
from rmab.learning import Kl
from rmab.learning.algorithms.shifted_uc_o_reps import ShiftedUcOReps, ShiftedWeights
from rmab.learning.algorithms.uob_reps import UobReps, UpperOccupancy
from rmab.learning.mirror_descent import ComponentSet
from rmab.learning.options import configured


def halfway(seed: int = 0, episodes: int = 400) -> rmab.Task:  # noqa: ARG001
    """Return `turns` with one half in the first episode, under a name of its own."""
    return rmab.make_task("turns", episodes=episodes, first=0.5)


def ferry(seed: int = 0, episodes: int = 400) -> rmab.Task:
    """Return one arm of three states and four steps, a plain decision process: what is done decides where it goes.

    Being active moves it on with probability .9 and back otherwise, being passive the other way. Passive at the near end it
    is paid u(0, .4) in an episode, active at the far end u(.8, 1): to cross is best, and two right moves away.
    """
    rng, moves = np.random.default_rng(seed), np.zeros((1, 3, 2, 3))
    for state in range(3):
        on, back = min(state + 1, 2), max(state - 1, 0)
        moves[0, state, 1, [on, back]] = 0.9, 0.1
        moves[0, state, 0, [on, back]] = 0.1, 0.9
    rewards = np.zeros((episodes, 1, 3, 2))
    rewards[:, 0, 0, 0], rewards[:, 0, 2, 1] = rng.uniform(0, 0.4, episodes), rng.uniform(0.8, 1, episodes)
    return rmab.Task.from_rewards(rmab.Problem(rmab.Arms(moves), 0, 1, 4), rewards, low=0, high=1, name="ferry")


def coins(seed: int = 0, episodes: int = 60) -> rmab.Task:
    """Return 20 arms of one state that pay 0 or 1 in an episode, each by its own odds; 4 may be active."""
    rng = np.random.default_rng(seed)
    rewards = np.zeros((episodes, 20, 1, 2))
    rewards[:, :, 0, 1] = rng.random((episodes, 20)) < rng.uniform(size=20)
    problem = rmab.Problem(rmab.Arms(np.ones((20, 1, 2, 1))), 0, 4, 10)
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1, passive_zero=True, name="coins")


def modest(seed: int = 0, episodes: int = 60, wider: float = 1.0) -> rmab.Task:
    """Return 10 random arms whose pay varies by a fifth, in a declared range that is `wider` than 0 to 1."""
    rng = np.random.default_rng(seed)
    moves, rewards = rng.dirichlet(np.ones(3), (10, 3, 2)), np.zeros((episodes, 10, 3, 2))
    rewards[..., 1] = rng.uniform(size=(10, 3)) * rng.uniform(0.8, 1.2, (episodes, 10, 3)) / 1.2
    problem = rmab.Problem(rmab.Arms(moves), 0, 3, 20)
    return rmab.Task.from_rewards(problem, rewards, low=0, high=wider, name="modest")


def halves(seed: int = 0, episodes: int = 60, every: int = 1) -> rmab.Task:
    """Return the arms of cpap, whose two halves are paid 1.5 and 0.1 times their reward in turns of `every` episodes."""
    game = rmab.make_task("cpap", seed=seed, episodes=episodes)
    arms = game.problem.arms.count
    first = np.random.default_rng(seed).permutation(arms) < arms // 2
    turn = np.arange(episodes)[:, np.newaxis] // every % 2 == 0
    paid = np.where(turn == first, 1.5, 0.1)[..., np.newaxis, np.newaxis]
    low, high = game.adversary.low, game.adversary.high
    return rmab.Task.from_rewards(
        game.problem, paid * game.base_reward, low=low, high=high, passive_zero=True, name="halves"
    )


class Coin(rmab.Learner):
    """Activates every arm with probability one half, within the budget."""

    name = "coin"

    def initial(self, view: rmab.View, seed: int) -> dict[str, Any]:  # noqa: ARG002
        """Keep nothing."""
        return {}

    def decide(self, state: rmab.State) -> rmab.EpisodePlan:
        """Toss a coin at every step."""
        share = np.full((state.view.arms, state.view.states), 0.5)
        return rmab.EpisodePlan(rmab.IndexPolicy(share, state.view.budget, rounding="dependent", rule="at-most"))

    def update(self, state: rmab.State, feedback: rmab.Feedback) -> dict[str, Any]:  # noqa: ARG002
        """Learn nothing."""
        return {}


@configured
class UobRepsKl(UobReps):
    """UOB-REPS with KL sets in the place of its Bernstein boxes."""

    name = "uob-reps-kl"

    @cached_property
    def components(self) -> ComponentSet:
        """As published, but for the sets."""
        return super().components._replace(confidence=Kl(epsilon=self.epsilon))


class ExactZeros(UpperOccupancy):
    """Losses over upper occupancy bounds, but those of declared zeros as they are."""

    alike = False


@configured
class UobRepsExact(UobReps):
    """UOB-REPS that takes declared zeros as they are."""

    name = "uob-reps-exact"

    @cached_property
    def components(self) -> ComponentSet:
        """As published, but for declared zeros."""
        return super().components._replace(estimator=ExactZeros(epsilon=self.epsilon, gamma=self.parameter("gamma")))


class AllWeighed(ShiftedWeights):
    """Losses over the plan's own occupancy, those of declared zeros as well."""

    alike = True


@configured
class ShiftedAlike(ShiftedUcOReps):
    """Shifted UC-O-REPS that weighs declared zeros like all other losses."""

    name = "shifted-alike"

    @cached_property
    def components(self) -> ComponentSet:
        """As published, but for declared zeros."""
        return super().components._replace(estimator=AllWeighed(shift=self.parameter("shift")))
