"""Every learner keeps the contract; learners that break one clause of it are caught by that clause."""

import sys

import numpy as np
import pytest

import rmab
from rmab.learning.parts.named import ESTIMATORS, SETS, STEPS
from rmab.play.policy import IndexPolicy
from rmab.testing import check_learner

NAMES = {"confidence": list(SETS), "estimator": list(ESTIMATORS), "step": list(STEPS)}
PARTS = [{option: names[i % len(names)] for option, names in NAMES.items()} for i in range(max(map(len, NAMES.values())))]
DRAWING = [
    *[("ucmd", parts) for parts in PARTS if parts["estimator"] == "implicit"],
    ("shifted-uc-o-reps", {}),
    ("uob-reps", {"rate": 20.0}),
    ("dilated-po", {"rate": 1.0, "bonus": 0.1}),
    ("r2mab-ucb", {"version": "generator"}),
    ("thompson", {}),
    ("rmab-ucrl", {"version": "generator", "optimism": 0.1}),
]
DESCENDING = ["uc-o-reps", "shifted-uc-o-reps", "uob-reps", "dilated-po", "ucpd", "pdgd-ops"]
CASES = [
    ("ucmd", {}),
    *[("ucmd", parts) for parts in PARTS if parts["estimator"] != "implicit"],
    ("ucmd", {"rule": "at-most", "rounding": "dependent", "scale": 2.0, "epsilon": 0.2}),
    ("ucmd-armab", {}),
    ("uc-o-reps", {}),
    ("ucpd", {"preset": "tuned"}),
    ("pdgd-ops", {"preset": "tuned"}),
    ("rmab-ucrl", {"version": "stationary"}),
    ("rmab-ucrl", {"version": "finite"}),
    ("rmab-ucrl", {"version": "window"}),
    ("restless-ucb", {}),
    ("restless-ucb", {"preset": "tuned"}),
    ("r2mab-ucb", {}),
    ("r2mab-ucb", {"version": "explore", "index": "weighted"}),
    ("colored-ucrl2", {}),
    ("uc-whittle", {}),
    ("q-whittle", {}),
    ("random", {}),
    ("oracle", {}),
]


def small_task(*, pooled=True, passive_zero=False, feedback="bandit", budget=2, sizes=False):
    """Six arms in two groups; the second has two states only, if sizes."""
    rng, groups = np.random.default_rng(5), [0, 1, 0, 0, 1, 1]
    kernels = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    if sizes:
        pair = rng.dirichlet(np.ones(2), size=(2, 2))
        arms = rmab.Arms.of_sizes([(kernels[0], pair)[g] for g in groups], groups=groups)
    else:
        arms = rmab.Arms(kernels[groups], groups=groups)
    rewards = rng.uniform(-1, 2, size=(4, 2, 3, 2))[:, groups] if pooled else rng.uniform(-1, 2, size=(4, 6, 3, 2))
    if passive_zero:
        rewards[..., 0] = 0.0
    problem = rmab.Problem(arms, [0, 1, 2, 0, 1, 1], budget, 4)
    declared = {"low": -1, "high": 2, "passive_zero": passive_zero, "feedback": feedback}
    task = rmab.Task.from_rewards(problem, rewards, **declared)
    assert task.view().pooled_rewards == pooled
    return task


class TestLearners:
    def test_all_are_here(self):
        names = {case[0] for case in CASES + DRAWING}
        assert names == set(rmab.learners())
        for option, names in NAMES.items():
            assert {parts[option] for parts in PARTS} == set(names)

    @pytest.mark.parametrize(("name", "options"), CASES)
    def test_on_the_task_of_the_suite(self, name, options):
        learner = rmab.learner(name, **options)
        check_learner(learner, small_task(feedback="full", pooled=False) if learner.feedback == "full" else None, episodes=3)

    @pytest.mark.parametrize(("name", "options"), DRAWING)
    def test_learners_that_draw_say_so_and_keep_all_other_clauses(self, name, options, monkeypatch):
        """They draw arm by arm: in another order, each arm has other luck."""
        learner = rmab.learner(name, **options)
        check_learner(learner, episodes=3)
        monkeypatch.setattr(type(learner), "draws", False)
        with pytest.raises(AssertionError, match=r"^relabelling: in episode \d"):
            check_learner(learner, episodes=3)

    @pytest.mark.parametrize(("name", "options"), CASES + DRAWING)
    def test_no_learner_draws_without_need(self, name, options):
        assert rmab.learner(name, **options).draws == ((name, options) in DRAWING)

    @pytest.mark.parametrize("name", ["ucmd", "ucmd-armab", "rmab-ucrl", "oracle", "random", *DESCENDING])
    @pytest.mark.parametrize(
        "declared",
        [
            {"passive_zero": True, "feedback": "active"},
            {"pooled": False, "feedback": "full"},
            {"sizes": True, "budget": 1},
            {"budget": 0},
            {"budget": 6},
        ],
        ids=lambda declared: "-".join(f"{key}={value}" for key, value in declared.items()),
    )
    def test_on_other_tasks(self, name, declared):
        learner = rmab.learner(name, **({"version": "finite"} if name == "rmab-ucrl" else {}))
        if learner.feedback == "full":
            declared = {**declared, "feedback": "full"}
        check_learner(learner, small_task(**declared), episodes=2)

    @pytest.mark.parametrize("name", ["uc-o-reps", "ucpd", "pdgd-ops"])
    def test_learners_of_full_information_refuse_less(self, name):
        with pytest.raises(rmab.ModelError, match=f"{name} needs full feedback, this task gives bandit"):
            rmab.learner(name).begin(small_task().view())

    def test_against_an_adaptive_adversary(self):
        game = rmab.task("deadline@adaptive", arms=4, budget=2, horizon=3, episodes=3)
        check_learner(rmab.learner("ucmd-armab"), game, episodes=2)


class Counting(rmab.Learner):
    """Keeps the contract: the index of a pair is what it paid so far. Below, it is broken in one way at a time."""

    name = "counting"

    def initial(self, view, seed):
        return {"paid": np.zeros((view.arms, view.states))}

    def decide(self, state):
        return rmab.Plan(IndexPolicy(state.arrays["paid"], state.view.budget))

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
        return rmab.Plan(FirstTwo())


class Spends(Counting):
    def decide(self, state):
        return rmab.Plan(Everyone())


class SpendsByTable(Counting):
    def decide(self, state):
        return rmab.Plan(IndexPolicy(state.arrays["paid"], state.view.budget + 1))


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
                    return rmab.Plan(IndexPolicy(rewards[state.episode, ..., 1], state.view.budget))
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
        return rmab.Plan(IndexPolicy(paid, state.view.budget))


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
        return rmab.Plan(IndexPolicy(state.arrays["paid"] * getattr(state, "hidden", 0.0), state.view.budget))


class Travels(Counting):
    """Keeps the contract in any situation."""

    def decide_in(self, state, view):
        return self.decide(state.seen_in(view))


class Overspends(Travels):
    def decide_in(self, state, view):
        return rmab.Plan(IndexPolicy(state.arrays["paid"], np.minimum(view.budgets + 1, view.arms)))


class Dithers(Travels):
    _calls = 0

    def decide_in(self, state, view):
        self._calls += 1
        return rmab.Plan(IndexPolicy(state.arrays["paid"] + self._calls, view.budget))


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
        except rmab.FeedbackError:
            state.arrays["paid"] = state.arrays["paid"] + 1
            raise


class Resentful(Counting):
    """Refuses bad feedback, but remembers it."""

    _grudge = 0.0

    def learn(self, state, feedback):
        try:
            return super().learn(state, feedback)
        except rmab.FeedbackError:
            self._grudge += 1.0
            raise

    def update(self, state, feedback):
        return {"paid": super().update(state, feedback)["paid"] + self._grudge}


class Ordered(Counting):
    def decide(self, state):
        return rmab.Plan(IndexPolicy(state.arrays["paid"] + np.arange(state.view.arms)[:, np.newaxis], state.view.budget))


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
            (Shares(), "apart: another run, in turns with this one, changes its plans or states"),
            (Peeks(), "causality: the rewards of episode 0 change the plan of episode 0"),
            (Unpicklable(), "pickling: learner, state or plan cannot be pickled"),
            (Forgets(2.0), "pickling: the copies of learner, state and plan go on differently from episode 2 on"),
            (Hides(), "resume: the loaded state goes on differently from episode 2 on"),
            (Overspends(), "budget: episode 2: step 0: the policy activates 4 arms, the budget is 3"),
            (Dithers(), "situations: two plans for the same one differ"),
            (Stays(), "situations: it plans anywhere, but refuses one (counting plans for the start, budget and horizon"),
            (Credulous(), "bad feedback: a missing step is taken for good"),
            (Crashes(), "bad feedback: a missing step raises KeyError, not FeedbackError"),
            (Hasty(), "bad feedback: a missing step is refused, but has changed the state"),
            (Resentful(), "bad feedback: it is refused, but changes what is learned afterwards"),
            (Ordered(), "relabelling: in episode 0 an index moves by"),
            (Writes(), "read-only: learning writes into what it was given"),
            (WritesByForce(), "read-only: learning has changed the feedback"),
            (MovesTheStart(), "read-only: planning has changed the view or the state"),
            (WritesIntoItsState(), "read-only: learning has changed the view or the state"),
            (TakesAnyState(), "own states: `plan` takes the state of another learner"),
            (Boasts(), "privileged: a learner that says that it is must have `informed`"),
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
            "episode": "is due",
            "states": "it has states",
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
                except rmab.FeedbackError as error:
                    if words[skipped] in str(error):
                        return state.after()
                    raise

        monkeypatch.setattr(sys.modules[__name__], "Overlooks", Overlooks, raising=False)
        Overlooks.__qualname__ = "Overlooks"
        with pytest.raises(AssertionError, match=r"^bad feedback: .* is taken for good$"):
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
        with pytest.raises(rmab.ModelError, match="episodes must be at least 2, got 1"):
            check_learner(Counting(), episodes=1)
