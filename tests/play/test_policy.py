import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reference import top
from rmab.errors import PolicyError
from rmab.play.compiled.selection import sort_by_index
from rmab.play.index_policy import IndexPolicy
from rmab.play.policy import Policy
from strategies import MODES, RULES, distinct, policies, problems

pytestmark = pytest.mark.compiled

TABLE = np.arange(24).reshape(2, 3, 4) / 24


def rng(seed=0):
    return np.random.default_rng(seed)


class TestErrors:
    @pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1, 1)])
    def test_shape(self, shape):
        with pytest.raises(PolicyError, match=r"table must have shape \(N, H, S\) or \(N, S\), got \("):
            IndexPolicy(np.zeros(shape), 0)

    @pytest.mark.parametrize(
        ("rounding", "value", "need"),
        [
            *[("top", bad, "a finite index") for bad in (np.nan, np.inf, -np.inf)],
            *[("dependent", bad, r"a probability in \[0, 1\]") for bad in (np.nan, -0.1, 1.1, np.inf)],
        ],
    )
    def test_a_bad_value_is_named(self, rounding, value, need):
        table = TABLE.copy()
        table[1, 2, 3] = value
        with pytest.raises(PolicyError, match=f"^table: arm 1, step 2, state 3 needs {need}, got {value}$"):
            IndexPolicy(table, 1, rounding=rounding)
        with pytest.raises(PolicyError, match=f"^table: arm 1, state 3 needs {need}, got {value}$"):
            IndexPolicy(table[:, 2], 1, rounding=rounding)

    def test_top_takes_any_finite_index_and_dependent_both_ends(self):
        assert IndexPolicy([[-1e300, 1e300]], 1).table.tolist() == [[-1e300, 1e300]]
        assert IndexPolicy([[0.0, 1.0]], 1, rounding="dependent").table.tolist() == [[0.0, 1.0]]

    @pytest.mark.parametrize("options", [{"rule": "top"}, {"rule": None}, {"rounding": "fill"}, {"rounding": "Top"}])
    def test_options(self, options):
        ((name, value),) = options.items()
        with pytest.raises(PolicyError, match=f"{name} must be '.*' or '.*', got {value!r}"):
            IndexPolicy(TABLE, 1, **options)

    @pytest.mark.parametrize("budget", [-1, 3])
    def test_budget(self, budget):
        with pytest.raises(PolicyError, match=rf"budget must be in 0\.\.2 \(the number of arms\), got {budget}"):
            IndexPolicy(TABLE, budget)

    @pytest.mark.parametrize("budget", [1.5, True, "1", None, float("nan")])
    def test_budget_is_a_whole_number(self, budget):
        with pytest.raises(PolicyError, match="budget"):
            IndexPolicy(TABLE, budget)

    @pytest.mark.parametrize("table", ["x", [[1], [1, 2]], {"a": 1}])
    def test_table_is_numbers(self, table):
        with pytest.raises(PolicyError, match="table"):
            IndexPolicy(table, 0)


class TestTable:
    @pytest.mark.parametrize("table", [TABLE, TABLE[:, 0], np.asfortranarray(TABLE)])
    def test_is_a_read_only_copy(self, table):
        given = table.copy()
        policy = IndexPolicy(given, 1)
        given[...] = -1
        np.testing.assert_array_equal(policy.table, table)
        with pytest.raises(ValueError, match="read-only"):
            policy.table[0] = 0
        with pytest.raises(ValueError, match="read-only"):
            policy.by_step(3)[0] = 0

    @pytest.mark.parametrize("name", ["table", "budget", "rule", "rounding", "other"])
    def test_attributes_are_frozen(self, name):
        with pytest.raises(FrozenInstanceError):
            setattr(IndexPolicy(TABLE, 1), name, 1)

    def test_by_step(self):
        np.testing.assert_array_equal(IndexPolicy(TABLE, 1).by_step(3), TABLE.transpose(1, 0, 2))
        np.testing.assert_array_equal(IndexPolicy(TABLE[:, 0], 1).by_step(5), np.stack([TABLE[:, 0]] * 5))

    def test_pickle_round_trip(self):
        policy = pickle.loads(pickle.dumps(IndexPolicy(TABLE, 1, rule="at-most", rounding="dependent")))
        assert (policy.budget, policy.rule, policy.rounding) == (1, "at-most", "dependent")
        np.testing.assert_array_equal(policy.table, TABLE)


class TestAct:
    def test_is_a_policy(self):
        assert isinstance(IndexPolicy(TABLE, 1), Policy)

    @pytest.mark.parametrize("rule", RULES)
    @given(problem=problems(), seed=st.integers(0, 99))
    def test_takes_the_highest(self, rule, problem, seed):
        table = distinct(problem, seed)
        policy = IndexPolicy(table, problem.budget, rule=rule)
        for h in range(problem.horizon):
            states = rng(seed + h).integers(problem.arms.states, size=problem.arms.count)
            expected = top([table[n, h, s] for n, s in enumerate(states)], problem.budget, rule)
            assert policy.act(h, states, rng()).tolist() == expected.tolist()

    @given(problems(), st.data())
    def test_keeps_the_rule(self, problem, data):
        policy = data.draw(policies(problem))
        h = problem.horizon - 1
        active = policy.act(h, problem.start, rng())
        index = policy.by_step(problem.horizon)[h][np.arange(problem.arms.count), problem.start]
        assert active.shape == (problem.arms.count,)
        assert active.dtype == bool
        assert active.sum() <= policy.budget
        if policy.rule == "fill":
            assert active.sum() == policy.budget
        else:
            assert not active[index <= 0].any()

    @pytest.mark.parametrize(("rule", "rounding"), MODES)
    def test_one_table_for_all_steps(self, rule, rounding):
        table = np.array([[0.5, 0.5], [0.5, 0.2], [0.5, 0.0], [0.1, 0.3]])
        flat = IndexPolicy(table, 2, rule=rule, rounding=rounding)
        full = IndexPolicy(np.repeat(table[:, None], 3, axis=1), 2, rule=rule, rounding=rounding)
        for seed in range(30):
            states = rng(seed).integers(2, size=4)
            active = [policy.act(seed % 3, states, rng(seed)).tolist() for policy in (flat, full)]
            assert active[0] == active[1]

    def test_all_luck_comes_from_the_generator(self):
        policy, states = IndexPolicy(np.zeros((9, 1)), 4), np.zeros(9, dtype=np.int64)
        one, two = rng(5), rng(5)
        first, second = ([policy.act(0, states, generator).tolist() for _ in range(8)] for generator in (one, two))
        assert first == second
        assert len({tuple(active) for active in first}) > 1

    def test_dependent_keeps_the_probabilities(self):
        table = np.array([[0.9], [0.3], [0.5], [0.1]])
        policy, generator = IndexPolicy(table, 2, rule="at-most", rounding="dependent"), rng(1)
        share = np.mean([policy.act(0, np.zeros(4, dtype=np.int64), generator) for _ in range(5000)], axis=0)
        np.testing.assert_array_less(np.abs(share - table[:, 0]), 4.5 * np.sqrt(0.25 / 5000))


@pytest.mark.parametrize(
    ("h", "states", "message"),
    [
        (0, [-1, 0], "arm 0 is in state -1, expected 0"),
        (0, [0, 99], "arm 1 is in state 99"),
        (0, [0], "states must be 2 integers, one per arm"),
        (0, [0.0, 1.0], "states must be 2 integers"),
        (99, [0, 0], "step must be in 0"),
    ],
)
def test_act_refuses_a_place_outside_the_table(h, states, message):
    with pytest.raises(PolicyError, match=message):
        IndexPolicy(TABLE, 1).act(h, np.array(states), np.random.default_rng(0))


def test_another_table_keeps_the_rule():
    for rule, rounding in MODES:
        policy = IndexPolicy(TABLE, 1, rule=rule, rounding=rounding)
        other = policy.with_table(policy.table * 0.5)
        assert (other.rule, other.rounding, other.budget) == (rule, rounding, 1)
        assert np.array_equal(other.table, policy.table * 0.5)
    with pytest.raises(PolicyError, match="budget must be in"):
        IndexPolicy(TABLE, 2).with_table(TABLE[:1])


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 33])
def test_arms_are_ranked_from_high_to_low_and_equals_stay_in_their_order(size: int) -> None:
    rng = np.random.default_rng(size)
    index, order = rng.integers(-2, 3, size).astype(float), rng.permutation(size)
    index[: size // 4] = -np.inf
    expected = order[np.argsort(-index[order], kind="stable")]
    np.testing.assert_array_equal(sort_by_index(index, order), expected)
