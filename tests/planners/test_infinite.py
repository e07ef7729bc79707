"""Policies of an infinite horizon: within the budget, never above the bound, exact where they must be, and their loss."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rmab
from rmab.errors import ModelError, PolicyError
from rmab.planners.infinite import FtvaEpisode, _in_turn
from rmab.tasks.published import kernel_of
from strategies import problems, random_problem, rewards

pytestmark = pytest.mark.compiled

MAKERS = (rmab.planners.stationary_index, rmab.planners.IdPolicy, rmab.planners.Ftva, rmab.planners.SetExpansion)


def rng(seed=0):
    return np.random.default_rng(seed)


def late(problem, policy, reward, rounds=4):
    """Return the mean reward per step over the second half of some episodes, and its standard error."""
    each = []
    for k in range(rounds):
        seen = rmab.simulate(problem, policy, reward, rng(k))
        steps, arms = range(problem.horizon // 2, problem.horizon), np.arange(problem.arms.count)
        each.append(np.mean([reward[arms, seen.states[h], seen.actions[h].astype(int)].sum() for h in steps]))
    return np.mean(each), np.std(each, ddof=1) / np.sqrt(rounds)


def in_the_long_run(problem, reward, steps):
    """Return the problem with starts drawn by the masses of its plan, and the plan."""
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    law = plan.occupancy.sum(axis=2)
    return rmab.Problem(problem.arms, law / law.sum(axis=1, keepdims=True), problem.budget, steps), plan


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_budget_is_never_broken_and_the_same_seed_gives_the_same_episode(data):
    problem = data.draw(problems())
    reward = data.draw(rewards(problem))
    plan = rmab.solvers.solve_average_fluid(problem, reward)
    for make in MAKERS:
        policy = make(problem, reward, average=plan)
        first, again = (rmab.simulate(problem, policy, reward, rng(3)) for _ in range(2))
        assert (first.actions.sum(axis=1) <= problem.budget).all()
        np.testing.assert_array_equal(first.actions, again.actions)
        restored = pickle.loads(pickle.dumps(policy))
        np.testing.assert_array_equal(rmab.simulate(problem, restored, reward, rng(3)).actions, first.actions)
        if make is rmab.planners.IdPolicy:
            share = plan.share[plan.blocks.block_of]
            wanted = share[np.arange(problem.arms.count), first.states[:-1]]
            assert not first.actions[wanted == 0].any()
            assert first.actions[(wanted == 1) & ((wanted > 0).sum(axis=1) <= problem.budget)[:, None]].all()


@pytest.mark.parametrize("make", MAKERS)
def test_nobody_beats_the_bound(make):
    """Ten different arms, long episodes from the masses of the plan."""
    for seed in range(3):
        problem, reward = random_problem(seed, count=10, states=4, horizon=1, budget=3)
        problem, plan = in_the_long_run(problem, reward, 400)
        batch = rmab.simulate_many(problem, make(problem, reward, average=plan), reward, rng(seed), 8)
        assert batch.mean / 400 <= plan.bound + 4 * batch.stderr / 400
        assert batch.mean / 400 >= 0.85 * plan.bound  # it is no test of a policy that does nothing


@pytest.mark.parametrize("make", MAKERS[1:])
@pytest.mark.parametrize(("count", "steps", "rounds"), [(1, 1500, 6), (50, 300, 10)])
def test_with_a_budget_for_all_the_plan_is_followed(make, count, steps, rounds):
    """The average of the plan itself, to the standard error; for FTVA once arms have met their twins."""
    arms = rmab.Arms.identical(kernel_of("gast-2"), count)
    reward = np.broadcast_to([[0.2, 0.5], [0.0, 0.4], [0.3, 0.1]], (count, 3, 2))
    problem, plan = in_the_long_run(rmab.Problem(arms, 0, count, 1), reward, steps)
    batch = rmab.simulate_many(problem, make(problem, reward, average=plan), reward, rng(1), rounds)
    assert plan.price == 0
    first = 2.0 * count / steps if make is rmab.planners.Ftva else 0.0  # what is lost until they meet
    assert -4.5 * batch.stderr - first * steps <= batch.mean - steps * plan.bound <= 4.5 * batch.stderr
    assert batch.stderr / steps < 0.01 * plan.bound


def test_arms_out_of_step_share_one_activation():
    """A cycle of two that pays for being active in state 1: one of two arms is there at every step, and gets it."""
    kernel = np.zeros((2, 2, 2))
    kernel[0, :, 1] = kernel[1, :, 0] = 1.0
    problem = rmab.Problem(rmab.Arms.identical(kernel, 2), [0, 1], 1, 100)
    reward = np.broadcast_to([[0.0, 0.0], [0.0, 2.0]], (2, 2, 2))
    assert rmab.solvers.solve_average_fluid(problem, reward).bound == pytest.approx(2.0)
    assert rmab.simulate(problem, rmab.planners.IdPolicy(problem, reward), reward, rng()).reward == 100 * 2.0


class TestFtvaEpisode:
    def test_twins_live_by_the_plan_whatever_the_arms_do(self):
        """At every step, each state has its mass of twins; arms start elsewhere, and the budget is short of their wishes."""
        arms = rmab.Arms.identical(kernel_of("gast-2"), 2000)
        reward = np.broadcast_to(rmab.make_task("gast-2", arms=1).base_reward, (2000, 3, 2))
        problem = rmab.Problem(arms, 2, 800, 12)
        plan, luck, states = rmab.solvers.solve_average_fluid(problem, reward), rng(5), np.full(2000, 2)
        player = rmab.planners.Ftva(problem, reward, average=plan).begin(states, luck)
        law = plan.mass[0].sum(axis=1)
        met = []
        for h in range(12):
            active = player.act(h, states, luck)
            counts = np.bincount(player.virtual, minlength=3)
            assert (np.abs(counts - 2000 * law) < 4.5 * np.sqrt(2000 * law * (1 - law))).all(), h
            met.append((player.virtual == states).mean())
            odds = np.cumsum(arms.kernels[0][states, active.astype(int)], axis=1)
            states = (odds < luck.random((2000, 1))).sum(axis=1)
        assert met[0] < 0.5
        assert met[-1] > 0.8

    def test_who_is_with_its_twin_comes_first_and_moves_with_it(self):
        """Three arms want the one activation; only arm 1 is where its twin is. It alone moves together with it."""
        problem = rmab.Problem(rmab.Arms.identical(np.full((3, 2, 3), 1 / 3), 3), 0, 1, 9)
        plan = rmab.solvers.solve_average_fluid(problem, np.zeros((3, 3, 2)))
        policy = rmab.planners.Ftva(problem, np.zeros((3, 3, 2)), average=replace(plan, share=np.ones((1, 3))))
        apart = 0
        for seed in range(40):
            player = FtvaEpisode(policy, np.array([1, 0, 2]))
            np.testing.assert_array_equal(player.act(0, np.zeros(3, dtype=int), rng(seed)), [False, True, False])
            player.act(1, np.full(3, 2), rng(seed))
            assert player.virtual[1] == 2
            apart += (player.virtual[[0, 2]] != 2).sum()
        assert 80 * 2 / 3 - 18 < apart < 80 * 2 / 3 + 18

    def test_an_arm_that_is_denied_leaves_its_twin(self):
        """After a passive move the state is 0, after an active one 1: the twin of the arm that stays behind is in 1."""
        kernel = np.zeros((2, 2, 2))
        kernel[:, 0, 0] = kernel[:, 1, 1] = 1.0
        problem = rmab.Problem(rmab.Arms.identical(kernel, 2), 0, 1, 9)
        plan = rmab.solvers.solve_average_fluid(problem, np.zeros((2, 2, 2)))
        policy = rmab.planners.Ftva(problem, np.zeros((2, 2, 2)), average=replace(plan, share=np.ones((1, 2))))
        player = FtvaEpisode(policy, np.zeros(2, dtype=int))
        active = player.act(0, np.zeros(2, dtype=int), rng(1))
        assert active.sum() == 1
        player.act(1, active.astype(int), rng(2))
        np.testing.assert_array_equal(player.virtual, [1, 1])

    def test_rounds_have_memories_of_their_own(self):
        problem, reward = random_problem(3, count=5, states=3, horizon=30, budget=2)
        policy = rmab.planners.Ftva(problem, reward)
        batch = rmab.simulate_many(problem, policy, reward, rng(7), 3, threads=2)
        assert batch.rewards[0] == rmab.simulate(problem, policy, reward, rng(7)).reward
        one, two = (policy.begin(problem.start, rng(1)) for _ in range(2))
        one.act(0, problem.start, rng(2))
        three = policy.begin(problem.start, rng(1))
        for h in range(3):
            np.testing.assert_array_equal(two.act(h, problem.start, rng(h)), three.act(h, problem.start, rng(h)))

    def test_a_wrong_question_changes_nothing(self):
        problem, reward = random_problem(3, count=5, states=3, horizon=30, budget=2)
        one, two = (rmab.planners.Ftva(problem, reward).begin(problem.start, rng(1)) for _ in range(2))
        one.act(0, problem.start, rng(2))
        two.act(0, problem.start, rng(2))
        with pytest.raises(PolicyError, match="arm 1 is in state 3, expected 0"):
            one.act(1, np.array([0, 3, 0, 0, 0]), rng(3))
        with pytest.raises(ModelError, match=r"rng must be a numpy\.random\.Generator"):
            one.act(1, problem.start, 3)
        np.testing.assert_array_equal(one.act(1, problem.start, rng(3)), two.act(1, problem.start, rng(3)))

    def test_what_was_not_begun_cannot_act(self):
        problem, reward = random_problem(3, count=5, states=3, horizon=30, budget=2)
        with pytest.raises(PolicyError, match=r"^Ftva needs a memory for every episode; use policy\.begin\(states, rng\)"):
            rmab.planners.Ftva(problem, reward).act(0, problem.start, rng())


class Counting:
    """Activates arm h at step h, counting by itself, where begun."""

    def __init__(self):
        self.step = -1

    def begin(self, states, rng):
        return Counting()

    def act(self, h, states, rng):
        self.step += 1
        return np.arange(len(states)) == self.step


class TestBegin:
    def test_any_policy_may_have_a_memory(self):
        problem, reward = random_problem(3, count=3, states=2, horizon=3, budget=1)
        policy = Counting()
        for seed in range(2):
            np.testing.assert_array_equal(rmab.simulate(problem, policy, reward, rng(seed)).actions, np.eye(3, dtype=bool))
        assert rmab.simulate_many(problem, policy, reward, rng(), 5).activations.tolist() == [3] * 5
        assert policy.step == -1

    def test_what_begin_returns_must_be_a_policy(self):
        problem, reward = random_problem(3, count=3, states=2, horizon=3, budget=1)
        policy = Counting()
        policy.begin = lambda states, rng: None
        line = r"^Counting\.begin\(states, rng\) must return an object with a method act\(h, states, rng\), not NoneType$"
        with pytest.raises(PolicyError, match=line):
            rmab.simulate(problem, policy, reward, rng())


class TestTypes:
    def test_each_arm_follows_the_share_of_its_block(self):
        """Arms of type 0 pay for being active, those of type 1 for being passive."""
        arms = rmab.Arms(np.ones((6, 1, 2, 1)), groups=[0, 1, 0, 1, 0, 1])
        reward = np.array([[[0.0, 1.0]], [[1.0, 0.0]]] * 3)
        problem = rmab.Problem(arms, 0, 4, 5)
        for make in MAKERS[1:]:
            seen = rmab.simulate(problem, make(problem, reward), reward, rng())
            np.testing.assert_array_equal(seen.actions, [[True, False] * 3] * 5)

    def test_blocks_take_turns_in_proportion(self):
        np.testing.assert_array_equal(_in_turn(np.zeros(4, dtype=int)), [0, 1, 2, 3])
        np.testing.assert_array_equal(_in_turn(np.arange(4)), [0, 1, 2, 3])
        np.testing.assert_array_equal(_in_turn(np.array([0, 0, 0, 0, 1, 1])), [0, 4, 1, 2, 5, 3])

    def test_the_first_arms_always_get_what_they_want(self):
        arms = rmab.Arms.identical(np.ones((1, 2, 1)), 5)
        problem = rmab.Problem(arms, 0, 2, 5)
        reward = np.broadcast_to([[0.0, 1.0]], (5, 1, 2))
        policy = rmab.planners.IdPolicy(problem, reward)
        assert policy.share == pytest.approx(np.full((1, 1), 0.4))
        draws = np.array([policy.act(9, np.zeros(5, dtype=int), rng(k)) for k in range(1500)])
        often = draws.mean(axis=0)  # the third gets it unless both before do; the others, ever less
        expected = [0.4, 0.4, 0.4 * (1 - 0.16)]
        np.testing.assert_allclose(often[:3], expected, atol=4.5 * np.sqrt(0.24 / 1500))
        assert often[4] < often[3] < often[2]


class TestManyArms:
    """What is lost to the bound, relative: 1/sqrt(N) by these policies, and for ever by priorities on example 2 of Gast."""

    def lost(self, name, count, make, steps=500, **options):
        task = rmab.make_task(name, arms=count, horizon=steps)
        plan = rmab.solvers.solve_average_fluid(task.problem, task.base_reward)
        policy = make(task.problem, task.base_reward, average=plan, **options)
        mean, error = late(task.problem, policy, task.base_reward)
        return 1 - mean / plan.bound, error / plan.bound

    @pytest.mark.parametrize("make", MAKERS[1:])
    def test_the_loss_vanishes(self, make):
        (few, noise), (many, less) = self.lost("gast-2", 100, make), self.lost("gast-2", 1600, make)
        assert few > 0.03
        assert many < few / 4 + 4 * (noise / 4 + less)
        assert many < 0.02

    def test_that_of_priorities_stays(self):
        (few, noise), (many, less) = (self.lost("gast-2", count, rmab.planners.stationary_index) for count in (100, 1600))
        assert few > 0.05
        assert many > few - 4 * (noise + less)

    def test_twins_that_nobody_meets(self):
        """The example made for it: who does what its twin does returns to where it was, and earns nothing."""
        assert self.lost("non-sa", 100, rmab.planners.Ftva, 200)[0] == 1
        assert self.lost("non-sa", 400, rmab.planners.IdPolicy, 400)[0] < 0.1

    def test_priorities_that_fill_the_budget_earn_nothing_on_the_conveyor(self):
        assert self.lost("conveyor", 100, rmab.planners.stationary_index, 600, rule="fill")[0] == 1
        assert self.lost("conveyor", 100, rmab.planners.stationary_index, 600)[0] < 0.1
