"""Small tasks, and a learner that learns nothing."""

import numpy as np

import rmab
from rmab.learning import Learner, State
from rmab.play.feedback import Feedback
from rmab.play.index_policy import IndexPolicy

EPISODES = 5


def small_task(seed=0, low=-1.0, high=2.0, **declared):
    rng = np.random.default_rng(seed)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(3), size=(4, 3, 2))), [0, 1, 2, 0], 2, 4)
    rewards = rng.uniform(low, high, size=(EPISODES, 4, 3, 2))
    return rmab.Task.from_rewards(problem, rewards, low=low, high=high, **declared)


def known_task(pays=(1.0, 0.0), episodes=3):
    """Two arms that never leave their only state; arm n pays pays[n] if active, and nothing otherwise."""
    problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1))), 0, 1, 4)
    rewards = np.zeros((episodes, 2, 1, 2))
    rewards[..., 0, 1] = pays
    return rmab.Task.from_rewards(problem, rewards, low=0, high=1)


class Always(rmab.Learner):
    """Activates one arm, always."""

    name = "always"

    def __init__(self, arm):
        self.arm = arm

    def initial(self, view, seed):
        return {}

    def decide(self, state):
        return rmab.EpisodePlan(IndexPolicy(np.eye(state.view.arms)[self.arm][:, np.newaxis], state.view.budget))

    def update(self, state, feedback):
        return {}


def played(learner: Learner, task: rmab.Task, seed: int = 0) -> list[State]:
    """Return the states before every episode."""
    told = learner.inform(task.problem, task.reward(0), seed) if hasattr(learner, "inform") else learner
    states = [told.begin(task.view(), seed)]
    for t in range(task.episodes):
        reward = task.reward(t)
        trajectory = rmab.simulate(task.problem, told.plan(states[-1]).policy, reward, np.random.default_rng((seed, t)))
        states.append(told.learn(states[-1], Feedback.reveal(task.view(), t, trajectory, reward)))
    return states[:-1]
