"""Learners that break one clause of the contract are caught by that clause."""

import sys

import numpy as np
import pytest

import rmab
from rmab.play.index_policy import IndexPolicy
from rmab.testing import check_learner
from small_tasks import small_task


class Counting(rmab.Learner):
    """Keeps the contract: the index of a pair is what it paid so far. Below, it is broken in one way at a time."""

    name = "counting"

    def initial(self, view, seed):
        return {"paid": np.zeros((view.arms, view.states))}

    def decide(self, state):
        return rmab.EpisodePlan(IndexPolicy(state.arrays["paid"], state.view.budget))

    def update(self, state, feedback):
        return {"paid": state.arrays["paid"] + np.nan_to_num(feedback.rewards[..., 1])}


class Everyone:
    def act(self, h, states, rng):
        return np.ones(states.size, dtype=bool) if h == 4 else np.zeros(states.size, dtype=bool)


class FirstTwo:
    def act(self, h, states, rng):
        return np.arange(states.size) < 2


class ByNumber(Counting):
    def decide(self, state):
        return rmab.EpisodePlan(FirstTwo())


class Spends(Counting):
    def decide(self, state):
        return rmab.EpisodePlan(Everyone())


class SpendsByTable(Counting):
    def decide(self, state):
        return rmab.EpisodePlan(IndexPolicy(state.arrays["paid"], state.view.budget + 1))


class Fickle(Counting):
    _calls = 0

    def update(self, state, feedback):
        self._calls += 1
        return {"paid": state.arrays["paid"] + self._calls}


class Peeks(Counting):
    """Finds the coming rewards in the frames of whoever calls it."""

    def decide(self, state):
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                rewards = getattr(value, "rewards", None)
                if isinstance(rewards, np.ndarray) and rewards.ndim == 4:
                    return rmab.EpisodePlan(IndexPolicy(rewards[state.episode, ..., 1], state.view.budget))
            frame = frame.f_back
        return super().decide(state)


class Shares(Counting):
    """Keeps what it has learned in its class, by episode: every run by itself goes well."""

    PAID = {}

    def update(self, state, feedback):
        arrays = super().update(state, feedback)
        self.PAID[state.episode + 1] = arrays["paid"]
        return arrays

    def decide(self, state):
        paid = self.PAID[state.episode] if state.episode else state.arrays["paid"]
        return rmab.EpisodePlan(IndexPolicy(paid, state.view.budget))


class Unpicklable(Counting):
    def __init__(self):
        self._secret = lambda: 1


class Forgets(Counting):
    """Loses in a pickle what it was made with."""

    def __init__(self, by=1.0):
        self._by = by

    def update(self, state, feedback):
        return {"paid": super().update(state, feedback)["paid"] * self._by}

    def __reduce__(self):
        return type(self), ()


class Hides(Counting):
    """Keeps a part of what it has learned to itself: a state that was loaded has it no more."""

    def begin(self, view, seed=0):
        return self.hiding(super().begin(view, seed), 1.0)

    def learn(self, state, feedback):
        return self.hiding(super().learn(state, feedback), state.hidden + 1.0 if hasattr(state, "hidden") else 0.0)

    def hiding(self, state, number):
        object.__setattr__(state, "hidden", number)
        return state

    def decide(self, state):
        return rmab.EpisodePlan(IndexPolicy(state.arrays["paid"] * getattr(state, "hidden", 0.0), state.view.budget))


class Travels(Counting):
    """Keeps the contract in any situation."""

    def decide_in(self, state, view):
        return self.decide(state.seen_in(view))


class Overspends(Travels):
    def decide_in(self, state, view):
        return rmab.EpisodePlan(IndexPolicy(state.arrays["paid"], np.minimum(view.budgets + 1, view.arms)))


class Dithers(Travels):
    _calls = 0

    def decide_in(self, state, view):
        self._calls += 1
        return rmab.EpisodePlan(IndexPolicy(state.arrays["paid"] + self._calls, view.budget))


class Stays(Counting):
    """Says that it plans anywhere, and does not."""

    @property
    def anywhere(self):
        return True


class Credulous(Counting):
    def learn(self, state, feedback):
        self._check(state)
        return state.after()


class Crashes(Counting):
    def learn(self, state, feedback):
        self._check(state)
        if feedback.states.shape != (state.view.horizon + 1, state.view.arms):
            raise KeyError("states")
        return super().learn(state, feedback)


class Hasty(Counting):
    """Writes first and checks afterwards."""

    def learn(self, state, feedback):
        self._check(state)
        try:
            return super().learn(state, feedback)
        except rmab.errors.FeedbackError:
            state.arrays["paid"] = state.arrays["paid"] + 1
            raise


class Resentful(Counting):
    """Refuses bad feedback, but remembers it."""

    _grudge = 0.0

    def learn(self, state, feedback):
        try:
            return super().learn(state, feedback)
        except rmab.errors.FeedbackError:
            self._grudge += 1.0
            raise

    def update(self, state, feedback):
        return {"paid": super().update(state, feedback)["paid"] + self._grudge}


class Ordered(Counting):
    def decide(self, state):
        return rmab.EpisodePlan(
            IndexPolicy(state.arrays["paid"] + np.arange(state.view.arms)[:, np.newaxis], state.view.budget)
        )


class Writes(Counting):
    def update(self, state, feedback):
        feedback.rewards[np.isnan(feedback.rewards)] = 0.0
        return {}


class WritesByForce(Counting):
    def update(self, state, feedback):
        feedback.rewards.setflags(write=True)
        feedback.rewards[np.isnan(feedback.rewards)] = 0.0
        return {}


class MovesTheStart(Counting):
    def decide(self, state):
        state.view.start.setflags(write=True)
        state.view.start[0] = 1 - state.view.start[0]
        return super().decide(state)


class WritesIntoItsState(Counting):
    def update(self, state, feedback):
        state.arrays["more"] = np.zeros(1)
        return {}


class TakesAnyState(Counting):
    def _check(self, state):
        pass


class Boasts(Counting):
    privileged = "knows everything"


class TestBrokenLearners:
    def test_unbroken(self):
        for learner in (Counting(), Travels()):
            check_learner(learner)
            check_learner(learner, small_task())

    @pytest.mark.parametrize(
        ("broken", "line"),
        [
            (Spends(), "budget: episode 0: step 4: the policy activates 5 arms, the budget is 2"),
            (SpendsByTable(), "budget: episode 0: step 0: the policy activates 3 arms, the budget is 2"),
            (Fickle(), "determinism: two runs"),
            (Shares(), "isolation: another run, interleaved with this one, changes its plans or states"),
            (Peeks(), "causality: the rewards of episode 0 change the plan of episode 0"),
            (Unpicklable(), "pickling: learner, state or plan cannot be pickled"),
            (Forgets(2.0), "pickling: copies of learner, state and plan continue differently from episode 2 on"),
            (Hides(), "resume: the loaded state continues differently from episode 2 on"),
            (Overspends(), "budget: episode 2: step 0: the policy activates 4 arms, the budget is 3"),
            (Dithers(), "situations: two plans for the same situation differ"),
            (
                Stays(),
                "situations: `anywhere` is True, but a plan raises ModelError (counting only plans for the start, budget",
            ),
            (Credulous(), "bad feedback: a missing step is accepted"),
            (Crashes(), "bad feedback: a missing step raises KeyError, not FeedbackError"),
            (Hasty(), "bad feedback: a missing step raises FeedbackError, but changes the state"),
            (Resentful(), "bad feedback: it raises FeedbackError, but changes what is learned afterwards"),
            (Ordered(), "relabelling: in episode 0 an index changes by"),
            (Writes(), "read-only: learning writes to its arguments"),
            (WritesByForce(), "read-only: learning changed the feedback"),
            (MovesTheStart(), "read-only: planning changed the view or the given state"),
            (WritesIntoItsState(), "read-only: learning changed the view or the given state"),
            (TakesAnyState(), "own states: `plan` with the state of another learner is accepted"),
            (Boasts(), "privileged: a privileged learner must have `inform`"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, rmab.Learner) else "",
    )
    def test_is_caught(self, broken, line):
        with pytest.raises(AssertionError) as caught:
            check_learner(broken)
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("skipped", ["episode", "states", "budget", "range", "missing", "unrevealed"])
    def test_every_kind_of_bad_feedback_is_tried(self, skipped, monkeypatch):
        """A learner whose check overlooks one kind is caught, whichever kind it is."""
        words = {
            "episode": "expected feedback of episode",
            "states": "is in state",
            "budget": "the budget is",
            "range": "outside",
            "missing": "is missing",
            "unrevealed": "is not revealed",
        }

        class Overlooks(Counting):
            def learn(self, state, feedback):
                self._check(state)
                try:
                    return super().learn(state, feedback)
                except rmab.errors.FeedbackError as error:
                    if words[skipped] in str(error):
                        return state.after()
                    raise

        monkeypatch.setattr(sys.modules[__name__], "Overlooks", Overlooks, raising=False)
        Overlooks.__qualname__ = "Overlooks"
        with pytest.raises(AssertionError, match=r"^bad feedback: .* is accepted$"):
            check_learner(Overlooks())

    def test_an_error_of_its_own_is_passed_on(self):
        class Fails(Counting):
            def update(self, state, feedback):
                raise ValueError("the clinic is closed")

        with pytest.raises(ValueError, match=r"^the clinic is closed$"):
            check_learner(Fails())

    def test_relabelling_is_asked_of_index_policies_only(self):
        check_learner(ByNumber())

    def test_the_suite_needs_two_episodes(self):
        with pytest.raises(rmab.errors.ModelError, match="episodes must be at least 2, got 1"):
            check_learner(Counting(), episodes=1)
