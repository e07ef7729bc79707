from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from reference import successor as slow_successor, systematic, top, xoshiro
from rmab.common.arrays import frozen
from rmab.play.compiled.episodes import step, successor
from rmab.play.compiled.selection import add_highest, add_sampled, kth_smallest, select, uniform, whole
from strategies import MODES, some_arms

pytestmark = pytest.mark.compiled

TIED = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0])
INDICES = st.lists(TIED | st.floats(-3, 3), min_size=1, max_size=12).map(np.array)
CHANCES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), min_size=1, max_size=12).map(np.array)
WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4)
LARGEST = 1 - 2.0**-53


def stream(seed):
    return np.random.default_rng(seed).integers(0, 2**64, size=4, dtype=np.uint64)


def highest(index, wanted, words, active=None):
    active = np.zeros(index.size, dtype=bool) if active is None else active.copy()
    return add_highest(np.where(active, -np.inf, index), wanted, words, active, np.empty(index.size)), active


def sampled(index, budget, words):
    active = np.zeros(index.size, dtype=bool)
    return add_sampled(index, budget, words, active, np.empty(index.size, dtype=np.int64)), active


def selected(index, budget, rule, rounding, words):
    active = np.ones(index.size, dtype=bool)  # rubbish from the step before
    work = np.empty(index.size), np.empty(index.size, dtype=np.int64)
    floor = -np.inf if rule == "fill" else 0.0
    return select(index.copy(), budget, floor, rounding == "dependent", words, active, *work), active


class TestRandomness:
    @given(WORDS)
    def test_uniform_is_xoshiro(self, words):
        state, expected = np.array(words, dtype=np.uint64), xoshiro(words)
        assert [uniform(state) for _ in range(20)] == [next(expected) for _ in range(20)]

    def test_uniform_known_answer(self):
        # The first outputs of the published C code for the state 1, 2, 3, 4, shifted to 53 bits.
        outputs = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
        state = np.array([1, 2, 3, 4], dtype=np.uint64)
        assert [uniform(state) for _ in outputs] == [(output >> 11) * 2.0**-53 for output in outputs]

    def test_uniform_is_uniform(self):
        state = stream(0)
        draws = np.array([uniform(state) for _ in range(40_000)])
        counts = np.bincount((draws * 20).astype(int), minlength=20)
        assert counts.size == 20
        assert ((counts - 2000) ** 2 / 2000).sum() < 43.8  # chi-square with 19 degrees of freedom, one in a thousand
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(draws.size)

    @given(st.integers(1, 1000), st.integers(0, 99))
    def test_whole_is_below(self, below, seed):
        state, expected = stream(seed), xoshiro(stream(seed))
        draws = [whole(state, below) for _ in range(10)]
        assert draws == [int(next(expected) * below) for _ in range(10)]
        assert all(0 <= draw < below for draw in draws)


class TestSuccessor:
    @pytest.mark.parametrize("states", [1, 2, 5, 8, 9, 10, 11, 64, 257])
    def test_is_a_search_to_the_right(self, states):
        rng = np.random.default_rng(states)
        for _ in range(20):
            cumulative = np.cumsum(rng.dirichlet(np.ones(states)) * rng.integers(0, 2, states))
            cumulative[cumulative >= cumulative[-1]] = 1.0
            points = np.concatenate([rng.random(50), [0.0, LARGEST], cumulative[cumulative < 1]])
            expected = np.searchsorted(cumulative, points, side="right")
            assert [successor(cumulative.reshape(1, 1, 1, -1), 0, 0, 0, point) for point in points] == expected.tolist()

    @given(some_arms(), st.floats(0, LARGEST))
    def test_of_a_model_is_possible_and_right(self, arms, point):
        edges = arms.cumulative[arms.cumulative < 1]
        for u in (point, 0.0, LARGEST, *np.nextafter(edges, 0), *edges):
            for n, s, a in np.ndindex(arms.kernels.shape[:3]):
                y = successor(arms.cumulative[0], arms.group_of[n], s, a, u)
                assert arms.kernels[n, s, a, y] > 0
                assert y == slow_successor(arms.kernels[n, s, a], u)

    def test_step_moves_each_arm_with_its_own_group_action_and_draw(self):
        rng = np.random.default_rng(0)
        kernels, reward = rng.dirichlet(np.ones(3), size=(2, 3, 2)), rng.random((5, 3, 2))
        groups, start, active = np.array([0, 1, 1, 0, 1]), np.array([0, 1, 2, 2, 0]), np.array([1, 0, 1, 0, 0], dtype=bool)
        states, draws = start.copy(), xoshiro(stream(3))
        total = step(states, active, frozen(np.cumsum(kernels, axis=3)), frozen(groups), reward, stream(3))
        rows = [kernels[g, s, int(a)] for g, s, a in zip(groups, start, active, strict=True)]
        assert states.tolist() == [slow_successor(row, next(draws)) for row in rows]
        assert total == pytest.approx(reward[np.arange(5), start, active.astype(int)].sum())


class TestKthSmallest:
    @given(INDICES)
    def test_is_the_entry_of_the_sorted_array(self, values):
        assert [kth_smallest(values.copy(), values.size, k) for k in range(values.size)] == np.sort(values).tolist()

    @given(INDICES, st.data())
    def test_leaves_alone_what_is_beyond_the_length(self, values, data):
        length = data.draw(st.integers(1, values.size))
        work = values.copy()
        assert kth_smallest(work, length, length // 2) == np.sort(values[:length])[length // 2]
        assert np.sort(work[:length]).tolist() == np.sort(values[:length]).tolist()
        assert work[length:].tolist() == values[length:].tolist()

    @pytest.mark.parametrize("values", [np.arange(2000.0), -np.arange(2000.0), np.zeros(2000), np.arange(2000) % 2 / 1.0])
    def test_large_and_regular(self, values):
        for k in (0, 1, 999, 1000, 1999):
            assert kth_smallest(values.copy(), values.size, k) == np.sort(values)[k]


class TestHighest:
    @given(INDICES, st.integers(0, 14), WORDS, st.data())
    def test_takes_the_highest_of_the_inactive(self, index, wanted, words, data):
        before = data.draw(arrays(bool, index.size))
        count, active = highest(index, wanted, np.array(words, dtype=np.uint64), before)
        new = active & ~before
        assert (active >= before).all()
        assert count == new.sum() == min(wanted, (~before).sum())
        assert np.sort(index[new]).tolist() == np.sort(index[~before])[(~before).sum() - count :].tolist()

    @given(st.permutations(range(8)), st.integers(0, 8))
    def test_without_ties_draws_nothing(self, order, wanted):
        words = stream(0)
        assert highest(np.array(order, dtype=float), wanted, words)[1].tolist() == top(order, wanted).tolist()
        assert words.tolist() == stream(0).tolist()

    def test_every_set_of_tied_arms_is_equally_likely(self):
        index, words = np.array([1.0, 3.0, 1.0, 0.0, 1.0, 1.0, 1.0]), stream(1)
        counts = {(1, *pair): 0 for pair in combinations([0, 2, 4, 5, 6], 2)}
        for _ in range(20_000):
            chosen = np.flatnonzero(highest(index, 3, words)[1]).tolist()
            counts[1, *(n for n in chosen if n != 1)] += 1
        assert sum((count - 2000) ** 2 / 2000 for count in counts.values()) < 27.9  # 9 degrees of freedom, one in a thousand


class TestSampled:
    @given(CHANCES, st.integers(0, 12), WORDS)
    def test_count_is_the_sum_rounded_and_never_above_budget(self, index, budget, words):
        count, active = sampled(index, budget, np.array(words, dtype=np.uint64))
        total = min(index.sum(), budget)
        assert count == active.sum() <= budget
        assert np.floor(total + 1e-9) - (total != round(total)) <= count <= np.ceil(total - 1e-9) + 1e-9
        assert not active[index == 0].any()

    @given(CHANCES, st.integers(0, 12), st.integers(0, 999))
    def test_is_systematic_sampling(self, index, budget, seed):
        assert sampled(index, budget, stream(seed))[1].tolist() == systematic(index, budget, xoshiro(stream(seed))).tolist()

    def test_rounding_errors_do_not_break_the_budget(self):
        index, others = np.array([0.8, 0.6, 0.9]), np.random.default_rng(0)  # in some orders they sum to 1.0000000000000002
        for x, y in others.integers(0, 2**64, size=(50, 2), dtype=np.uint64):
            assert sampled(index, 1, np.array([0, x, y, 0], dtype=np.uint64))[0] == 1  # the first draw is exactly 0

    def test_certain_arms_are_active(self):
        index, words = np.array([1.0, 0.0, 0.3, 1.0, 0.7]), stream(2)
        for _ in range(1000):
            count, active = sampled(index, 4, words)
            assert count == 3
            assert active[[0, 3]].all()

    @pytest.mark.parametrize(
        ("index", "budget"),
        [
            ([0.5, 0.25, 0.9, 0.1, 0.65], 5),
            ([0.5, 0.25, 0.9, 0.1, 0.65], 1),
            ([1.0, 1.0, 0.01], 2),
            ([1.0] * 6, 4),
            ([0.2], 1),
        ],
    )
    def test_probabilities_are_kept(self, index, budget):
        index, words, rounds = np.array(index), stream(3), 20_000
        share = np.mean([sampled(index, budget, words)[1] for _ in range(rounds)], axis=0)
        expected = index * min(1.0, budget / index.sum())
        np.testing.assert_array_less(np.abs(share - expected), 4.5 * np.sqrt(expected * (1 - expected) / rounds) + 1e-9)


@pytest.mark.parametrize(("rule", "rounding"), MODES)
class TestSelect:
    @given(index=CHANCES, words=WORDS, data=st.data())
    def test_count_and_choice(self, rule, rounding, index, words, data):
        budget = data.draw(st.integers(0, index.size) | st.sampled_from([0, index.size]))
        count, active = selected(index, budget, rule, rounding, np.array(words, dtype=np.uint64))
        assert count == active.sum() <= budget
        if rule == "fill":
            assert count == budget
        else:
            assert not active[index <= 0].any()
        if rounding == "top":
            assert count == min(budget, index.size if rule == "fill" else (index > 0).sum())
            assert np.sort(index[active]).tolist() == np.sort(index)[index.size - count :].tolist()

    def test_budget_of_none_and_all(self, rule, rounding):
        index = np.array([0.5, 0.0, 1.0])
        assert selected(index, 0, rule, rounding, stream(0))[1].tolist() == [False] * 3
        active = [selected(index, 3, rule, rounding, stream(seed))[1].tolist() for seed in range(50)]
        always = [True, rule == "fill", True]
        assert [True, rule == "fill", True] in active
        assert all(a == always for a in active) == (rounding == "top" or rule == "fill")

    def test_fill_gives_free_slots_to_the_highest(self, rule, rounding):
        index = np.array([0.3, 0.0, 0.1, 0.2])
        active = [selected(index, 2, rule, rounding, stream(seed))[1] for seed in range(200)]
        if (rule, rounding) == ("fill", "dependent"):  # at most one arm is sampled, the best other one joins it
            assert {tuple(np.flatnonzero(a)) for a in active} == {(0, 3), (0, 2)}
        elif rounding == "top":
            assert {tuple(np.flatnonzero(a)) for a in active} == {(0, 3)}
        else:
            assert {tuple(np.flatnonzero(a)) for a in active} == {(), (0,), (2,), (3,)}


def test_negative_indices_with_top():
    index = np.array([-1.0, -3.0, 0.5, -2.0])
    assert np.flatnonzero(selected(index, 2, "fill", "top", stream(0))[1]).tolist() == [0, 2]
    assert np.flatnonzero(selected(index, 2, "at-most", "top", stream(0))[1]).tolist() == [2]
