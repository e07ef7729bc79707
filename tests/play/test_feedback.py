"""Feedback: what each mode reveals, and the refusal of everything that no episode can give."""

import pickle

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError
from rmab.play.feedback import Feedback
from rmab.play.simulation import Trajectory

# Three arms with two states, two steps, budget 1.
STATES = [[0, 1, 0], [1, 1, 0], [0, 1, 1]]
ACTIONS = [[1, 0, 0], [0, 1, 0]]
VISITED = {(0, 0, 1), (0, 1, 0), (1, 1, 0), (1, 1, 1), (2, 0, 0)}
REWARD = np.arange(12.0).reshape(3, 2, 2) / 10 - 0.1  # from -0.1 to 1.0


def view(feedback="bandit", *, low=-0.5, high=1.5, passive_zero=False, **arms):
    kernels = arms.pop("kernels", np.full((3, 2, 2, 2), 0.5))
    problem = rmab.Problem(rmab.Arms(kernels, **arms), [0, 1, 0], 1, 2)
    rewards = np.zeros((4, 3, 2, 2))
    declared = {"low": low, "high": high, "passive_zero": passive_zero, "feedback": feedback}
    return rmab.Task.from_rewards(problem, rewards, **declared).view()


def trajectory(states=STATES, actions=ACTIONS):
    return Trajectory(np.array(states, dtype=np.int32), np.array(actions, dtype=bool), 0.0)


def good(feedback="bandit", **declared):
    seen = view(feedback, **declared)
    return seen, Feedback.reveal(seen, 2, trajectory(), REWARD)


def known(feedback):
    return {tuple(place) for place in np.argwhere(~np.isnan(feedback.rewards)).tolist()}


class TestReveal:
    def test_bandit_shows_what_was_visited(self):
        seen, feedback = good()
        assert known(feedback) == VISITED
        for place in VISITED:
            assert feedback.rewards[place] == REWARD[place]
        feedback.check(seen, 2)

    def test_active_shows_what_was_visited_actively(self):
        seen, feedback = good("active")
        assert known(feedback) == {(0, 0, 1), (1, 1, 1)}
        feedback.check(seen, 2)

    def test_full_shows_everything(self):
        seen, feedback = good("full")
        np.testing.assert_array_equal(feedback.rewards, REWARD)
        feedback.check(seen, 2)

    def test_full_shows_no_padding(self):
        kernels = [np.full((2, 2, 2), 0.5)] * 2 + [np.ones((1, 2, 1))]
        problem = rmab.Problem(rmab.Arms.of_sizes(kernels), [0, 1, 0], 1, 2)
        seen = rmab.Task.from_rewards(problem, np.zeros((4, 3, 2, 2)), low=-1, high=2, feedback="full").view()
        feedback = Feedback.reveal(seen, 0, trajectory([[0, 1, 0], [1, 1, 0], [0, 1, 0]]), REWARD)
        assert known(feedback) == {(n, s, a) for n in range(3) for s in range(2) for a in range(2)} - {(2, 1, 0), (2, 1, 1)}
        feedback.check(seen, 0)

    def test_the_last_state_pays_nothing(self):
        _, feedback = good()
        assert np.isnan(feedback.rewards[2, 1]).all()

    @pytest.mark.parametrize("mode", ["bandit", "active", "full"])
    def test_simulated_episodes_pass(self, mode):
        rng = np.random.default_rng(1)
        problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(4), size=(6, 4, 2))), rng.integers(0, 4, 6), 2, 5)
        rewards = rng.uniform(-3, 1, size=(5, 6, 4, 2))
        task = rmab.Task.from_rewards(problem, rewards, feedback=mode)
        for t in range(5):
            episode = rmab.simulate(problem, rmab.planners.random_policy(problem), rewards[t], rng)
            feedback = Feedback.reveal(task.view(), t, episode, rewards[t])
            feedback.check(task.view(), t)
            if mode == "bandit":
                arm, acts = np.arange(6), episode.actions.astype(int)
                assert feedback.rewards[arm, episode.states[:-1], acts].sum() == pytest.approx(episode.reward)

    def test_is_read_only_also_after_pickling(self):
        _, feedback = good()
        for one in (feedback, pickle.loads(pickle.dumps(feedback))):
            for name in ("states", "actions", "rewards"):
                assert not getattr(one, name).flags.writeable

    def test_copies_what_it_is_given(self):
        states, rewards = np.array(STATES), REWARD.copy()
        feedback = Feedback(0, states, ACTIONS, rewards)
        states[:], rewards[:] = 9, 9
        assert feedback.states.tolist() == STATES
        np.testing.assert_array_equal(feedback.rewards, REWARD)


def changed(table, place, value):
    result = np.array(table, dtype=float)
    result[place] = value
    return result


class TestMaking:
    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (("two", STATES, ACTIONS, REWARD), "episode must be a whole number, got 'two'"),
            ((0, STATES[0], ACTIONS, REWARD), "states must be a table of whole numbers, one row per step"),
            (
                (0, changed(STATES, (0, 0), 0.5), ACTIONS, REWARD),
                "states must be a table of whole numbers, one row per step",
            ),
            ((0, STATES, changed(ACTIONS, (0, 0), np.nan), REWARD), "actions must be a table of whole numbers"),
            ((0, STATES, "x", REWARD), "actions"),
            ((0, STATES, ACTIONS, [["a"]]), "rewards"),
        ],
    )
    def test_what_is_no_table_of_numbers(self, arguments, line):
        with pytest.raises(FeedbackError) as caught:
            Feedback(*arguments)
        assert str(caught.value).startswith(line)

    @pytest.mark.parametrize("action", [2, -1])
    def test_an_action_is_0_or_1(self, action):
        with pytest.raises(FeedbackError, match="action"):
            Feedback(0, STATES, changed(ACTIONS, (0, 0), action), REWARD)


def refusal(seen, feedback, episode=2):
    """Return the line with which the feedback is refused."""
    with pytest.raises(FeedbackError) as caught:
        feedback.check(seen, episode)
    return str(caught.value)


class TestCheck:
    @pytest.mark.parametrize("episode", [0, 1, 3])
    def test_episode(self, episode):
        assert refusal(*good(), episode) == f"expected feedback of episode {episode}, got episode 2"

    def test_lengths(self):
        seen, one = good()
        short = Feedback(2, STATES[:-1], ACTIONS, one.rewards)
        assert refusal(seen, short) == "states must have shape (H+1, N) = (3, 3), got (2, 3)"
        short = Feedback(2, STATES, ACTIONS[:-1], one.rewards)
        assert refusal(seen, short) == "states must have shape (H+1, N) = (2, 3), got (3, 3)"
        long = Feedback(2, np.repeat(STATES, 2, axis=0), np.repeat(ACTIONS, 2, axis=0), one.rewards)
        assert refusal(seen, long) == "actions must have shape (H, N) = (2, 3), or fewer steps, got (4, 3)"
        short = Feedback(2, STATES, ACTIONS, one.rewards[1:])
        assert refusal(seen, short) == "rewards must have shape (3, 2, 2), got (2, 2, 2)"

    @pytest.mark.parametrize("state", [-1, 2])
    def test_unknown_state(self, state):
        seen, one = good()
        wrong = Feedback(2, changed(STATES, (1, 0), state), ACTIONS, one.rewards)
        assert refusal(seen, wrong) == f"step 1: arm 0 is in state {state}, expected 0..1"

    def test_padding_is_no_state(self):
        kernels = np.full((3, 2, 2, 2), 0.5)
        kernels[2] = np.eye(2)[:, np.newaxis]
        seen = view(kernels=kernels, sizes=[2, 2, 1])
        wrong = Feedback(2, STATES, ACTIONS, good()[1].rewards)
        assert refusal(seen, wrong) == "step 2: arm 2 is in state 1, expected 0..0"

    def test_start(self):
        seen, one = good()
        wrong = Feedback(2, changed(STATES, (0, 1), 0), ACTIONS, one.rewards)
        assert wrong.elsewhere(seen) == "arm 1 starts in state 0, not 1"
        assert one.elsewhere(seen) == ""

    def test_budget(self):
        seen, one = good()
        wrong = Feedback(2, STATES, changed(ACTIONS, (1, 2), 1), one.rewards)
        assert refusal(seen, wrong) == "step 1: 2 arms are active, the budget is 1"

    def test_support(self):
        support, kernels = np.ones((3, 2, 2, 2), dtype=bool), np.full((3, 2, 2, 2), 0.5)
        support[2, 0, 0, 1], kernels[2, 0, 0] = False, [1.0, 0.0]
        seen = view(kernels=kernels, support=support)
        wrong = Feedback(2, STATES, ACTIONS, good()[1].rewards)
        assert refusal(seen, wrong) == "step 1: arm 2 moves from state 0 to 1, which is declared impossible"
        Feedback.reveal(seen, 2, trajectory([*STATES[:2], [0, 1, 0]]), REWARD).check(seen, 2)

    @pytest.mark.parametrize("place", sorted(VISITED))
    def test_missing(self, place):
        seen, one = good()
        wrong = Feedback(2, STATES, ACTIONS, changed(one.rewards, place, np.nan))
        n, s, a = place
        assert refusal(seen, wrong) == f"rewards: arm {n}, state {s}, action {a} was visited, but its reward is missing"

    @pytest.mark.parametrize(("mode", "place"), [("bandit", (2, 0, 1)), ("active", (1, 1, 0)), ("active", (0, 1, 1))])
    def test_not_revealed(self, mode, place):
        seen, one = good(mode)
        wrong = Feedback(2, STATES, ACTIONS, changed(one.rewards, place, 0.5))
        n, s, a = place
        assert refusal(seen, wrong) == f"rewards: arm {n}, state {s}, action {a} is not revealed under {mode} feedback"

    @pytest.mark.parametrize("value", [-0.6, 1.6, np.inf, -np.inf])
    def test_range(self, value):
        seen, one = good()
        wrong = Feedback(2, STATES, ACTIONS, changed(one.rewards, (1, 1, 1), value))
        assert refusal(seen, wrong) == f"rewards: arm 1, state 1, action 1 paid {value}, outside [-0.5, 1.5]"

    @pytest.mark.parametrize("value", [-0.5, 1.5, 1.5 + 1e-10])
    def test_both_ends_belong_to_the_range(self, value):
        seen, one = good()
        edge = Feedback(2, STATES, ACTIONS, changed(one.rewards, (1, 1, 1), value))
        edge.check(seen, 2)
        assert edge.rewards[1, 1, 1] == value
        assert "outside" in refusal(seen, Feedback(2, STATES, ACTIONS, changed(one.rewards, (1, 1, 1), 1.001 * value)))

    def test_passive_zero(self):
        seen = view(passive_zero=True)
        zero = REWARD.copy()
        zero[..., 0] = 0.0
        fine = Feedback.reveal(seen, 2, trajectory(), zero)
        fine.check(seen, 2)
        wrong = Feedback(2, STATES, ACTIONS, changed(fine.rewards, (0, 1, 0), 0.5))
        assert refusal(seen, wrong) == "rewards: arm 0, state 1, action 0 paid 0.5, outside [0, 0]"

    def test_arms_that_are_paid_alike(self):
        problem = rmab.Problem(rmab.Arms(np.full((3, 1, 2, 1), 1.0), groups=[0, 0, 1]), 0, 1, 1)
        seen = rmab.Task.from_rewards(problem, np.full((1, 3, 1, 2), 0.5), low=0, high=1).view()
        assert seen.pooled_rewards
        paid = np.array([[[0.5, np.nan]], [[0.25, np.nan]], [[0.5, np.nan]]])
        with pytest.raises(FeedbackError, match=r"arm 1, state 0, action 0 paid 0\.25, .*arm 0"):
            Feedback(0, [[0] * 3] * 2, [[0] * 3], paid).check(seen, 0)


class TestOfSteps:
    PAID = [[REWARD[n, STATES[h][n], ACTIONS[h][n]] for n in range(3)] for h in range(2)]

    def test_is_what_reveal_shows(self):
        seen, one = good()
        steps = Feedback.of_steps(seen, 2, STATES, ACTIONS, self.PAID)
        np.testing.assert_array_equal(steps.rewards, one.rewards)
        np.testing.assert_array_equal(steps.states, one.states)
        np.testing.assert_array_equal(steps.actions, one.actions)
        steps.check(seen, 2)

    def test_unseen_steps_are_nan(self):
        seen, one = good("active")
        paid = np.where(np.array(ACTIONS) == 1, self.PAID, np.nan)
        np.testing.assert_array_equal(Feedback.of_steps(seen, 2, STATES, ACTIONS, paid).rewards, one.rewards)

    def test_one_of_two_visits_suffices(self):
        seen, one = good()
        paid = changed(self.PAID, (0, 2), np.nan)  # arm 2 is passive in state 0 twice
        np.testing.assert_array_equal(Feedback.of_steps(seen, 2, STATES, ACTIONS, paid).rewards, one.rewards)

    @pytest.mark.parametrize(
        ("states", "actions", "paid", "line"),
        [
            (STATES, ACTIONS, [[0.0] * 3], "rewards must have shape (H, N) = (2, 3), got (1, 3)"),
            (STATES[1:], ACTIONS, PAID, "states must have shape (H+1, N) = (3, 3), got (2, 3)"),
            (STATES, [[1, 1, 0], [0, 1, 0]], PAID, "step 0: 2 arms are active, the budget is 1"),
            (changed(STATES, (2, 1), 7), ACTIONS, PAID, "step 2: arm 1 is in state 7, expected 0..1"),
            (
                STATES,
                ACTIONS,
                changed(PAID, (1, 2), 0.25),
                f"rewards: the reward of arm 2 at step 0 is {PAID[0][2]}, but another step has a different one for the same "
                "pair",
            ),
        ],
    )
    def test_refusals(self, states, actions, paid, line):
        with pytest.raises(FeedbackError) as caught:
            Feedback.of_steps(view(), 2, states, actions, paid)
        assert str(caught.value) == line

    def test_rewards_that_are_no_numbers(self):
        with pytest.raises(FeedbackError, match="rewards"):
            Feedback.of_steps(view(), 2, STATES, ACTIONS, [["a"] * 3] * 2)


def test_rewards_of_another_shape_are_not_revealed():
    with pytest.raises(FeedbackError, match=r"^reward must have shape \(N, S, 2\) = \(3, 2, 2\), got \(2, 2\)$"):
        Feedback.reveal(view(), 0, trajectory(), REWARD[0])
