"""Learners put together from parts that do not fit, or of one's own: named at once, and never mistaken for another."""

import numpy as np
import pytest

import rmab
from rmab.learning import L1, Direct, Kl, Lazy, Revealed, RewardEstimate, RewardEstimator, Step, StepResult, Ucmd, option
from rmab.learning.algorithms.uob_reps import UpperOccupancy

TASK = rmab.make_task("cpap", episodes=3, arms=4, budget=2, horizon=5)


class Blank(Step):
    """Plans nothing."""

    def move(self, memory, episode, sets, estimate):
        return StepResult(np.zeros(episode.mass.shape))


class Flat(RewardEstimator):
    """Forgets the arms."""

    def learn(self, memory, episode):
        return RewardEstimate(np.ones(episode.pools.zero.shape[1:]))


class Nothing(RewardEstimator):
    def learn(self, memory, episode):
        return None


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"step": Blank()}, "Blank: the masses of a step of the plan must sum to 1; they are off by 1"),
        ({"estimator": Flat()}, r"Flat: gain is \(3, 2\), not \(4, 3, 2\) or \(4, 5, 3, 2\)"),
        ({"estimator": Nothing()}, "Nothing: learn must return a RewardEstimate, got NoneType"),
    ],
)
def test_a_part_that_errs_is_named_in_a_run(parts, line):
    with pytest.raises(rmab.errors.ModelError, match=f"^{line}"):
        rmab.run(TASK, Ucmd(**parts))


def test_parts_that_need_full_feedback_get_it():
    learner = Ucmd(estimator=Revealed())
    assert learner.feedback == "full"
    run = rmab.run(TASK, learner)
    assert run.task.feedback == "full"
    assert run.privileged == "sees all rewards of an episode"
    with pytest.raises(rmab.errors.ModelError, match="ucmd needs full feedback"):
        rmab.run(TASK, learner, feedback="bandit")


def test_balls_bound_occupancies_by_the_boxes_around_them():
    run = rmab.run(TASK, Ucmd(estimator=UpperOccupancy(), confidence=L1(), step=Lazy()))
    assert np.isfinite(run.reward).all()


class Guess(RewardEstimator):
    """An estimator whose parameter is no declared option."""

    def __init__(self, value):
        self.value = value

    def learn(self, memory, episode):
        values = episode.observed.values
        return RewardEstimate(np.where(np.isnan(values), self.value, values))


@pytest.mark.parametrize(("one", "other"), [(0.1, 0.9), (np.zeros(3), np.ones(3)), (Kl(epsilon=0.1), Kl(epsilon=0.2))])
def test_states_of_parts_that_differ_are_told_apart(one, other):
    state = Ucmd(estimator=Guess(one)).begin(TASK.view())
    Ucmd(estimator=Guess(one)).plan(state)
    with pytest.raises(rmab.errors.ModelError, match="this state belongs to ucmd"):
        Ucmd(estimator=Guess(other)).plan(state)


def test_a_class_of_the_same_name_is_another_class():
    twin = type("Direct", (Direct,), {})
    state = Ucmd(estimator=Direct()).begin(TASK.view())
    with pytest.raises(rmab.errors.ModelError, match=r"this state belongs to .*abc\.Direct"):
        Ucmd(estimator=Direct()).plan(Ucmd(estimator=twin()).begin(TASK.view()))
    Ucmd(estimator=Direct()).plan(state)


def test_a_forgotten_mark_is_named():
    class Unmarked(RewardEstimator):
        size: int = option(default=3, help="of something")

        def learn(self, memory, episode):
            return RewardEstimate(np.ones(episode.pools.zero.shape))

    with pytest.raises(
        rmab.errors.ModelError, match=r"^Unmarked: size is an option, but the class is not marked @configured$"
    ):
        Unmarked()


class Once(RewardEstimator):
    """Remembers something for one episode only."""

    def learn(self, memory, episode):
        kept = {} if "first" in memory else {"first": np.ones(2)}
        return RewardEstimate(np.ones(episode.pools.zero.shape), memory=kept)


def test_memory_is_what_was_returned_last():
    states, learner = [], Ucmd(estimator=Once())
    state = learner.begin(TASK.view())
    for t in range(3):
        episode = rmab.simulate(TASK.problem, learner.plan(state).policy, TASK.reward(t), np.random.default_rng(t))
        state = learner.learn(state, rmab.Feedback.reveal(TASK.view(), t, episode, TASK.reward(t)))
        states.append("rewards.first" in state.arrays)
    assert states == [True, False, True]


def test_every_part_can_be_named(monkeypatch):
    learner = rmab.make_learner("ucmd", rounding="rmab.learning:DependentRounding", refresh="rmab.learning:Doubling")
    assert repr(learner.rounding) == "DependentRounding(rule='fill')"
    assert repr(learner.refresh) == "Doubling()"
    assert repr(rmab.make_learner("ucmd", refresh="doubling").refresh) == "Doubling()"
    with pytest.raises(
        rmab.errors.ModelError, match=r"rounding rmab.learning:Kl: rejected: a class of .*derives from Execution"
    ):
        rmab.make_learner("ucmd", rounding="rmab.learning:Kl")


def test_a_learner_without_a_name_has_that_of_its_class():
    class Nameless(rmab.Learner):
        def initial(self, view, seed):
            return {}

        def decide(self, state):
            return rmab.make_learner("random").decide(state)

        def update(self, state, feedback):
            return None

    assert Nameless().name == "nameless"
    with pytest.raises(rmab.errors.ModelError, match="nameless: update must return arrays by name, got NoneType"):
        rmab.run(TASK, Nameless())


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e4, 1e6])
@pytest.mark.parametrize("epsilon", [1e-12, 0.05, 0.999999])
def test_the_papers_learner_runs_with_every_legal_option(scale, epsilon):
    run = rmab.run(TASK, rmab.make_learner("ucmd-armab", scale=scale, epsilon=epsilon))
    assert (run.activations <= 2 * 5).all()
