"""A tiny game for the rivals, and the sets and programmes of its episodes by the literal formulas."""

from typing import Any

import numpy as np

import instances
import literal
import oracle
import rmab
from rmab.common.arrays import FloatArray
from rmab.learning import Learner, State
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.play.feedback import Feedback

ARMS, STATES, HORIZON, EPISODES, BUDGET = 2, 2, 3, 4, 1
EPSILON = 0.9  # so that sets bind after few episodes


def game(feedback: str) -> tuple[View, Problem, FloatArray]:
    """Two arms of two states for three steps, one active; rewards (T,N,S,2) in [0, 1]."""
    rng = np.random.default_rng(11)
    problem = Problem(Arms(rng.dirichlet(np.full(STATES, 0.7), size=(ARMS, STATES, 2))), [0, 1], BUDGET, HORIZON)
    rewards = rng.random((EPISODES, ARMS, STATES, 2)) / 2
    rewards[..., 1] += 0.5  # all want to be active: the budget binds
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1, feedback=feedback)
    return task.view(), problem, rewards


def played(learner: Learner, view: View, problem: Problem, rewards: FloatArray) -> list[tuple[State, Feedback, State]]:
    """Every episode: the state before it, what was seen, and the state after it."""
    state, course = learner.begin(view, seed=3), []
    for t in range(EPISODES):
        episode = rmab.simulate(problem, learner.plan(state).policy, rewards[t], np.random.default_rng((5, t)))
        feedback = Feedback.reveal(view, t, episode, rewards[t])
        after = learner.learn(state, feedback)
        course.append((state, feedback, after))
        state = after
    return course


def iota() -> float:
    return literal.iota(states=STATES, blocks=ARMS, horizon=HORIZON, episodes=EPISODES, epsilon=EPSILON)


def ball(counts: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Centres (N,S,2,S) and radii (N,S,2) of the L1 balls."""
    centre = literal.empirical(counts, np.ones(counts.shape, dtype=bool))
    radius = np.zeros(counts.shape[:3])
    for n, s, a in np.ndindex(radius.shape):
        radius[n, s, a] = literal.l1_radius(int(counts[n, s, a].sum()), iota(), STATES)
    return centre, radius


def box(counts: np.ndarray, width: Any) -> tuple[FloatArray, FloatArray]:
    """Boxes (N,S,2,S) of a width by mean, visits and logarithm."""
    mean = literal.empirical(counts, np.ones(counts.shape, dtype=bool))
    low, high = np.zeros(counts.shape), np.zeros(counts.shape)
    for n, s, a, y in np.ndindex(counts.shape):
        reach = width(float(mean[n, s, a, y]), int(counts[n, s, a].sum()), iota())
        low[n, s, a, y], high[n, s, a, y] = literal.box(float(mean[n, s, a, y]), reach, True)
    return low, high


def epochs(course: list[tuple[State, Feedback, State]]) -> list[np.ndarray]:
    """Counts (N,S,2,S) at the beginning of the epoch of every plan: rebuilt when a pair's count has doubled."""
    counts = np.zeros((ARMS, STATES, 2, STATES), dtype=int)
    epoch, found = counts, [counts]
    for _, feedback, _ in course:
        counts = counts + literal.transition_counts(feedback.states, feedback.actions, list(range(ARMS)), STATES)
        for pair in np.ndindex(counts.shape[:3]):
            if counts[pair].sum() >= max(1, 2 * epoch[pair].sum()):
                epoch = counts
                break
        found.append(epoch)
    return found


def ball_answer(reference: FloatArray, counts: np.ndarray, budget: float) -> FloatArray:
    centre, radius = ball(counts)
    return oracle.clarabel(instances.Instance(reference, centre, None, [0, 1], budget, radius).program).z


UNIFORM = np.full((ARMS, HORIZON, STATES, 2, STATES), 1 / (2 * STATES**2))
