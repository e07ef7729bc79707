import pickle
import re
from dataclasses import FrozenInstanceError
from threading import current_thread

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rmab
from reference import episode
from rmab.errors import BudgetExceeded, ModelError, PolicyError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.index_policy import IndexPolicy
from rmab.play.simulation import simulate, simulate_many, simulate_visits
from strategies import MODES, RULES, distinct, policies, problems, random_problem, rewards

pytestmark = pytest.mark.compiled

PLACE = np.arange(12).reshape(3, 2, 2)


class Calls:
    """A policy made of a function of (h, states, rng)."""

    def __init__(self, function):
        self.act = function


def rng(seed=0):
    return np.random.default_rng(seed)


def same(one, other):
    histories = [(run.states.tolist(), run.actions.tolist(), run.reward) for run in (one, other)]
    return histories[0] == histories[1]


class TestOneEpisode:
    @pytest.mark.parametrize("rule", RULES)
    @given(problem=problems(), data=st.data(), seed=st.integers(0, 2**32))
    def test_is_the_reference_episode(self, rule, problem, data, seed):
        table, reward = distinct(problem, seed), data.draw(rewards(problem))
        budget = data.draw(st.integers(0, problem.budget))
        run = simulate(problem, IndexPolicy(table, budget, rule=rule), reward, rng(seed))
        words = rng(seed).integers(0, 2**64, size=(1, 2, 4), dtype=np.uint64)[0, 0]
        states, actions, total = episode(problem, table, budget, rule, reward, words)
        assert run.states.tolist() == states
        assert run.actions.tolist() == actions
        assert run.reward == pytest.approx(total, abs=1e-12)

    @given(problems(), st.data(), st.integers(0, 99))
    def test_obeys_the_model_and_the_budget(self, problem, data, seed):
        policy, reward = data.draw(policies(problem)), data.draw(rewards(problem))
        run = simulate(problem, policy, reward, rng(seed))
        H, n = problem.horizon, np.arange(problem.arms.count)
        assert run.states.shape == (H + 1, n.size)
        assert run.actions.shape == (H, n.size)
        assert run.states[0].tolist() == problem.start.tolist()
        taken = run.actions.astype(int)
        assert (problem.arms.kernels[n, run.states[:-1], taken, run.states[1:]] > 0).all()
        assert (run.states < problem.arms.real_states).all()
        used = run.actions.sum(axis=1)
        assert (used == policy.budget).all() if policy.rule == "fill" else (used <= policy.budget).all()
        assert run.reward == pytest.approx(reward[n, run.states[:-1], taken].sum(), abs=1e-12)
        assert same(run, simulate(problem, policy, reward, rng(seed)))

    def test_is_read_only(self):
        problem, reward = random_problem(0, 3, 2, 4, 1)
        run = simulate(problem, IndexPolicy(np.zeros((3, 2)), 1), reward, rng())
        for array in (run.states, run.actions):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(FrozenInstanceError):
            run.reward = 0.0

    @given(problems(), st.data(), st.integers(0, 99))
    def test_arms_meet_the_same_luck_under_any_policy(self, problem, data, seed):
        reward = np.zeros((problem.arms.count, problem.arms.states, 2))
        one, other = (simulate(problem, data.draw(policies(problem)), reward, rng(seed)) for _ in range(2))
        for n in range(problem.arms.count):
            for h in range(problem.horizon + 1):
                if np.array_equal(one.actions[:h, n], other.actions[:h, n]):
                    assert one.states[h, n] == other.states[h, n]

    def test_every_arm_moves_even_when_passive(self):
        stay, go = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
        problem = Problem(Arms([np.stack([go, stay], axis=1)] * 2), 0, 1, 4)  # passive: switch, active: stay
        run = simulate(problem, IndexPolicy([[1.0, 1.0], [0.0, 0.0]], 1), np.zeros((2, 2, 2)), rng())
        assert run.states.T.tolist() == [[0, 0, 0, 0, 0], [0, 1, 0, 1, 0]]


class TestObjectPolicy:
    @given(problems(), st.integers(0, 99), st.data())
    def test_equals_the_compiled_run(self, problem, seed, data):
        policy = IndexPolicy(distinct(problem, seed), problem.budget, rule=data.draw(st.sampled_from(RULES)))
        reward = data.draw(rewards(problem))
        compiled = simulate(problem, policy, reward, rng(seed))
        assert same(simulate(problem, Calls(policy.act), reward, rng(seed)), compiled)
        as_list = Calls(lambda *now: policy.act(*now).astype(int).tolist())
        assert same(simulate(problem, as_list, reward, rng(seed)), compiled)

    def test_may_ruin_the_states_that_it_is_handed(self):
        problem, reward = random_problem(1, 4, 3, 10, 2)
        policy, seen = IndexPolicy(distinct(problem, 1), 2), []

        def ruin(h, states, generator):
            seen.append(states.tolist())
            active = policy.act(h, states, generator)
            states[:] = 99
            return active

        run = simulate(problem, Calls(ruin), reward, rng(7))
        assert same(run, simulate(problem, policy, reward, rng(7)))
        assert seen == run.states[:-1].tolist()

    def test_of_many_rounds_runs_in_the_thread_of_the_caller(self):
        problem, reward = random_problem(2, 3, 2, 6, 2)
        threads = set()

        def note(*_):
            threads.add(current_thread())
            return [0, 0, 0]

        simulate_many(problem, Calls(note), reward, rng(), 3)
        assert threads == {current_thread()}

    def test_may_reuse_the_actions_that_it_returned(self):
        problem, reward = random_problem(2, 3, 2, 6, 2)
        active = np.zeros(3, dtype=bool)

        def rotate(h, *_):
            active[:] = np.arange(3) == h % 3
            return active

        run = simulate(problem, Calls(rotate), reward, rng())
        assert run.actions.tolist() == [[n == h % 3 for n in range(3)] for h in range(6)]

    def test_draws_only_from_its_own_generator(self):
        problem, reward = random_problem(3, 3, 3, 8, 0)
        idle = Calls(lambda *_: [0, 0, 0])
        thirsty = Calls(lambda h, _, generator: generator.random((h, 3)).sum(axis=0) < 0)
        assert same(*(simulate(problem, policy, reward, rng(1)) for policy in (idle, thirsty)))

    def test_has_a_generator_of_its_own_in_every_round_and_for_every_seed(self):
        problem, reward = random_problem(3, 3, 3, 2, 0)
        drawn, expected = [], []
        noting = Calls(lambda h, states, generator: drawn.append(generator.random()) or [0, 0, 0])
        for seed in (1, 2):
            simulate_many(problem, noting, reward, rng(seed), 3)
            streams = rng(seed).integers(0, 2**64, size=(3, 2, 4), dtype=np.uint64)  # four words for the arms, four for it
            expected += [x for _, words in streams for x in rng(words).random(2)]
        assert drawn == expected
        assert len(set(drawn)) == 12

    def test_may_be_an_index_policy_that_decides_otherwise(self):
        threads = set()

        class Contrary(IndexPolicy):
            def act(self, h, states, rng):
                threads.add(current_thread())
                return ~super().act(h, states, rng)

        problem, _ = random_problem(5, 4, 2, 6, 2)
        reward = np.zeros((4, 2, 2))
        reward[2:, :, 1] = 1.0  # the table prefers arms 0 and 1, the method arms 2 and 3
        policy = Contrary([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]], 2)
        assert simulate(problem, policy, reward, rng()).reward == 12.0
        assert simulate_many(problem, policy, reward, rng(), 3, threads=2).rewards.tolist() == [12.0] * 3
        assert threads == {current_thread()}

    @pytest.mark.parametrize(
        ("action", "message"),
        [
            ([0, 1], r"step 2: the action must have shape \(3,\), got \(2,\)"),
            ([[0, 1, 0]], r"step 2: the action must have shape \(3,\), got \(1, 3\)"),
            (1, r"step 2: the action must have shape \(3,\), got \(\)"),
            (None, r"step 2: the action must have shape \(3,\), got \(\)"),
            ([0, 2, 0], "step 2: the action of arm 1 must be 0 or 1, got 2"),
            ([0, 0, -1], "step 2: the action of arm 2 must be 0 or 1, got -1"),
            ([0.5, 0, 0], "step 2: the action of arm 0 must be 0 or 1, got 0.5"),
            ([0, np.nan, 0], "step 2: the action of arm 1 must be 0 or 1, got nan"),
            (["0", "1", "0"], "step 2: the action of arm 0 must be 0 or 1"),
        ],
    )
    def test_malformed_action(self, action, message):
        problem, reward = random_problem(0, 3, 2, 4, 2)
        policy = Calls(lambda h, *_: [0, 0, 1] if h < 2 else action)
        for run in (simulate, lambda *task: simulate_many(*task, 2)):
            with pytest.raises(PolicyError, match=f"^{message}"):
                run(problem, policy, reward, rng())

    def test_ragged_action(self):
        problem, reward = random_problem(0, 3, 2, 4, 2)
        with pytest.raises(PolicyError):
            simulate(problem, Calls(lambda *_: [[0], [0, 1], 0]), reward, rng())


class TestBudget:
    @pytest.mark.parametrize("run", [simulate, lambda *task: simulate_many(*task, 3)])
    def test_object_policy(self, run):
        problem, reward = random_problem(0, 4, 2, 5, 2)
        policy = Calls(lambda h, *_: np.arange(4) <= h)
        with pytest.raises(BudgetExceeded, match=r"^step 2: the policy activates 3 arms, the budget is 2$") as caught:
            run(problem, policy, reward, rng())
        assert (caught.value.step, caught.value.count, caught.value.budget) == (2, 3, 2)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # as between processes

    @pytest.mark.parametrize("run", [simulate, lambda *task: simulate_many(*task, 3)])
    @pytest.mark.parametrize(("rule", "rounding"), MODES)
    def test_index_policy_with_a_larger_budget(self, run, rule, rounding):
        problem, reward = random_problem(0, 4, 2, 5, 2)
        table = np.zeros((4, 5, 2))
        table[:2] = table[:, 3:] = 1.0  # two arms at first, all of them from step 3
        with pytest.raises(BudgetExceeded) as caught:
            run(problem, IndexPolicy(table, 4, rule=rule, rounding=rounding), reward, rng())
        assert (caught.value.step, caught.value.count, caught.value.budget) == (0 if rule == "fill" else 3, 4, 2)

    def test_a_larger_budget_that_is_not_used_is_fine(self):
        problem, reward = random_problem(0, 4, 2, 5, 2)
        policy = IndexPolicy([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], 4, rule="at-most")
        assert simulate(problem, policy, reward, rng()).actions.sum() == 10

    def test_error_of_the_first_failing_round_whatever_the_threads(self):
        problem, reward = random_problem(0, 4, 3, 6, 2)
        table = [[0.5, 0.5, 0.51]] * 4  # two arms, and rarely a third
        policy = IndexPolicy(table, 4, rule="at-most", rounding="dependent")
        assert (simulate(problem, policy, reward, rng(1)).actions.sum(axis=1) <= 2).all()  # round 0 is lucky
        errors = set()
        for threads in (1, 2, 3):
            with pytest.raises(BudgetExceeded) as caught:
                simulate_many(problem, policy, reward, rng(1), 3000, threads=threads)
            errors.add(str(caught.value))
        assert len(errors) == 1


@pytest.mark.parametrize("run", [simulate, lambda *task: simulate_many(*task, 2)])
class TestInputs:
    @pytest.mark.parametrize("shape", [(2, 5, 2), (4, 5, 2), (3, 4, 2), (3, 6, 2), (3, 5, 3), (2, 2), (3, 3)])
    def test_table_of_another_problem(self, run, shape):
        problem, reward = random_problem(0, 3, 2, 5, 1)
        message = f"table has shape {shape}, the problem has Arms(3 arms, 2 states), horizon 5"
        with pytest.raises(PolicyError, match=re.escape(message)):
            run(problem, IndexPolicy(np.zeros(shape), 1), reward, rng())

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda r: r[:2], r"reward must have shape \(N, S, 2\) = \(3, 2, 2\), got \(2, 2, 2\)"),
            (lambda r: r[..., 0], r"= \(3, 2, 2\), got \(3, 2\)"),
            (lambda r: r.sum(), r"= \(3, 2, 2\), got \(\)"),
            (lambda r: np.where(PLACE == 7, np.nan, r), "reward: arm 1, state 1, action 1 is nan"),
            (lambda r: np.where(PLACE == 8, -np.inf, r), "reward: arm 2, state 0, action 0 is -inf"),
            (lambda _: "none", "reward: not an array of numbers"),
        ],
    )
    def test_reward(self, run, change, message):
        problem, reward = random_problem(0, 3, 2, 5, 1)
        with pytest.raises(ModelError, match=message):
            run(problem, IndexPolicy(np.zeros((3, 2)), 1), change(reward), rng())


class TestMany:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rounds": 0}, "rounds and threads must be at least 1, got 0 and"),
            ({"rounds": 1.5}, "rounds must be a whole number, got 1.5"),
            ({"threads": 0}, "rounds and threads must be at least 1, got 5 and 0"),
            ({"threads": "2"}, "threads must be a whole number, got '2'"),
        ],
    )
    def test_refuses(self, options, message):
        problem, reward = random_problem(0, 3, 2, 5, 1)
        with pytest.raises(ModelError, match=message):
            simulate_many(problem, IndexPolicy(np.zeros((3, 2)), 1), reward, rng(), **{"rounds": 5, **options})

    @given(problems(), st.data(), st.integers(0, 99))
    def test_round_0_is_the_episode_of_simulate(self, problem, data, seed):
        policy, reward = data.draw(policies(problem)), data.draw(rewards(problem))
        for player in (policy, Calls(policy.act)):
            run, batch = simulate(problem, player, reward, rng(seed)), simulate_many(problem, player, reward, rng(seed), 3)
            assert batch.rewards[0] == run.reward
            assert batch.activations[0] == run.actions.sum()

    @pytest.mark.parametrize(("rule", "rounding"), MODES)
    @pytest.mark.parametrize("rounds", [1, 2, 7, 2500])
    def test_does_not_depend_on_threads(self, rule, rounding, rounds):
        problem, reward = random_problem(5, 5, 3, 4, 2)
        policy = IndexPolicy(rng(0).integers(0, 3, size=(5, 4, 3)) / 2, 2, rule=rule, rounding=rounding)
        luck = [rng(9) for _ in range(4)]
        batches = [
            simulate_many(problem, policy, reward, generator, rounds, threads=threads)
            for generator, threads in zip(luck, (1, 2, 3, None), strict=True)
        ]
        assert len({generator.random() for generator in luck}) == 1  # the generator is left in the same state
        for batch in batches[1:]:
            assert batch.rewards.tolist() == batches[0].rewards.tolist()
            assert batch.activations.tolist() == batches[0].activations.tolist()
        assert batches[0].rewards.shape == batches[0].activations.shape == (rounds,)

    def test_rounds_differ_and_a_longer_run_starts_alike(self):
        problem, reward = random_problem(5, 5, 3, 4, 2)
        policy = IndexPolicy(np.zeros((5, 3)), 2)
        short, long = (simulate_many(problem, policy, reward, rng(9), rounds).rewards for rounds in (50, 2000))
        assert short.tolist() == long[:50].tolist()
        assert len(set(short.tolist())) > 40

    def test_mean_and_standard_error(self):
        problem, reward = random_problem(5, 5, 3, 4, 2)
        batch = simulate_many(problem, IndexPolicy(np.zeros((5, 3)), 2), reward, rng(), 10)
        assert batch.mean == pytest.approx(sum(batch.rewards) / 10)
        assert batch.stderr == pytest.approx(np.sqrt(sum((x - batch.mean) ** 2 for x in batch.rewards) / 9 / 10))
        assert simulate_many(problem, IndexPolicy(np.zeros((5, 3)), 2), reward, rng(), 1).stderr == np.inf

    def test_is_read_only(self):
        problem, reward = random_problem(0, 3, 2, 4, 1)
        policy = IndexPolicy(np.zeros((3, 2)), 1)
        batches = [simulate_many(problem, player, reward, rng(), 3) for player in (policy, Calls(policy.act))]
        assert [batch.rewards.flags.writeable for batch in batches] == [False, False]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"policy": None}, PolicyError, r"a policy needs a method act\(h, states, rng\), NoneType has none"),
        ({"rng": 3}, ModelError, "rng must be a numpy.random.Generator, .* got int"),
    ],
)
def test_wrong_policies_and_generators_are_refused(change, error, message):
    problem, reward = random_problem(0, 3, 2, 4, 1)
    arguments = {"policy": IndexPolicy(np.zeros((3, 2)), 1), "rng": rng(), **change}
    with pytest.raises(error, match=message):
        simulate(problem, arguments["policy"], reward, arguments["rng"])


@pytest.mark.parametrize("compiled", [True, False])
def test_visits_are_those_of_the_episodes_of_simulate(compiled: bool) -> None:
    task = rmab.make_task("cpap", seed=1, arms=6, budget=2, horizon=7)
    policy = rmab.planners.occupancy_index(task.problem, task.base_reward)
    played: rmab.Policy = policy if compiled else Plain(policy)
    for k in range(1, 4):
        found = simulate_visits(task.problem, played, 5, range(k, k + 1))
        episode = rmab.simulate(task.problem, played, task.base_reward, np.random.default_rng((5, k)))
        counted = np.zeros((6, 3, 2))
        for h in range(7):
            for n in range(6):
                counted[n, episode.states[h, n], int(episode.actions[h, n])] += 1
        np.testing.assert_array_equal(found, counted)
    one, two, both = (simulate_visits(task.problem, played, 5, part) for part in (range(2), range(2, 5), range(5)))
    np.testing.assert_array_equal(one + two, both)


class Plain:
    """A policy that is not an IndexPolicy, and so is played step by step."""

    def __init__(self, policy: rmab.IndexPolicy) -> None:
        self.policy = policy

    def act(self, h, states, rng):
        return self.policy.act(h, states, rng)
