"""Arms: kernels, rows that miss 1, groups, supports, sizes, and what builds them."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kernel_tables import changed, table
from rmab import errors as notices
from rmab.errors import ModelError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.tasks import Task
from strategies import some_arms

OFFER = "; normalise=True divides rows by their sums"


class TestKernels:
    @pytest.mark.parametrize(
        ("where", "value", "message"),
        [
            ((2, 1, 0), [0.5, 0.5003], f"kernels: arm 2, state 1, action 0 has row sum 1.0003, not 1{OFFER}"),
            ((1, 0, 1), [0.5, 0.5 + 2e-6], f"kernels: arm 1, state 0, action 1 has row sum 1.000002, not 1{OFFER}"),
            ((0, 0, 0), [0.0, 0.0], "kernels: arm 0, state 0, action 0 has row sum 0, not 1"),
            ((0, 0, 0), [1e308, 1e308], "kernels: arm 0, state 0, action 0 has row sum inf, not 1"),
            ((1, 0, 1), [-0.25, 1.25], "kernels: arm 1, state 0, action 1, next state 0 has probability -0.25"),
            ((0, 1, 1, 1), np.nan, "kernels: arm 0, state 1, action 1, next state 1 has probability nan"),
            ((2, 0, 0, 1), np.inf, "kernels: arm 2, state 0, action 0, next state 1 has probability inf"),
        ],
    )
    def test_a_bad_row_is_named(self, where, value, message):
        with pytest.raises(ModelError, match=f"^{re.escape(message)}$"):
            Arms(changed(where, value))

    def test_the_first_bad_row_is_named(self):
        kernels = table()
        kernels[1:, 1] = 0.4
        with pytest.raises(ModelError, match=r"arm 1, state 1, action 0 has row sum 0\.8"):
            Arms(kernels)

    def test_rounding_errors_pass_and_stay(self):
        given = changed((0, 0, 0), [0.5, 0.5 + 9e-10])
        assert Arms(given).kernels.tobytes() == Arms(given, normalise=True).kernels.tobytes() == given.tobytes()

    @pytest.mark.parametrize(
        "shape", [(), (2,), (2, 2, 2), (1, 2, 2, 3), (1, 2, 3, 2), (0, 2, 2, 2), (1, 0, 2, 0), (1, 1, 2, 1, 1)]
    )
    def test_shape(self, shape):
        with pytest.raises(ModelError, match=re.escape(f"with N, K, S >= 1, got {shape}")):
            Arms(np.ones(shape))

    @pytest.mark.parametrize("values", ["abc", [[1], [1, 2]], {"a": 1}, object()])
    def test_not_numbers(self, values):
        with pytest.raises(ModelError, match="kernels: not an array of numbers"):
            Arms(values)

    @pytest.mark.parametrize("kernels", [table().astype(str), table() + 1j])
    def test_not_real_numbers(self, kernels):
        with pytest.raises(ModelError, match="kernels: not an array of numbers"):
            Arms(kernels)

    @given(some_arms())
    def test_cumulative_rows_end_at_one_and_skip_impossible_states(self, arms):
        cumulative = arms.cumulative[0][arms.group_of]
        steps = np.diff(cumulative, axis=3, prepend=0.0)
        np.testing.assert_array_equal(cumulative[..., -1], 1.0)
        np.testing.assert_allclose(steps, arms.kernels, atol=1e-12)
        assert not steps[arms.kernels == 0].any()


class TestNormalise:
    @pytest.fixture(autouse=True)
    def nothing_said_yet(self, monkeypatch):
        monkeypatch.setattr(notices, "_topics", set())

    @pytest.mark.parametrize("miss", [2e-9, -2e-9, 1e-8, -3e-8, 1e-6, -1e-6])
    def test_printed_rows_are_mended_and_it_is_said_once(self, miss, caplog):
        given = changed((1, 0, 1), [0.3, 0.7 + miss])
        arms, again = Arms(given), Arms(given)
        np.testing.assert_array_equal(arms.kernels[1, 0, 1], given[1, 0, 1] / given[1, 0, 1].sum())
        assert abs(arms.kernels[1, 0, 1].sum() - 1) < 1e-15
        rest = np.ones((3, 2, 2), dtype=bool)
        rest[1, 0, 1] = False
        np.testing.assert_array_equal(arms.kernels[rest], given[rest])
        assert again == arms
        (said,) = caplog.messages
        assert "1 of 12 rows divided by their sums; " in said
        assert f"the largest deviation from 1 is {abs(miss):.3g} (arm 1, state 0, action 1: " in said

    def test_kernels_and_starts_of_float32_are_taken(self, caplog):
        rng = np.random.default_rng(0)
        rows, start = (rng.random(shape, dtype=np.float32) for shape in ((4, 50, 2, 50), (4, 50)))
        rows, start = rows / rows.sum(axis=-1, keepdims=True), start / start.sum(axis=-1, keepdims=True)
        problem = Problem(Arms(rows), start, 1, 3)
        assert 1e-8 < np.abs(rows.sum(axis=-1, dtype=np.float64) - 1).max() < 1e-6
        np.testing.assert_allclose(problem.arms.kernels.sum(axis=-1), 1.0, atol=1e-15)
        np.testing.assert_allclose(problem.start.sum(axis=-1), 1.0, atol=1e-15)
        assert [said.split(":")[1].strip() for said in caplog.messages] == ["kernels", "start"]

    def test_asked_for_it_divides_all_and_says_how_far_the_worst_was_off_each_time(self, caplog):
        given = changed((2, 1, 0), [1.5, 0.5])
        given[0, 0, 0] = [0.2, 0.3]
        for _ in range(2):
            arms = Arms(given, normalise=True)
            np.testing.assert_array_equal(arms.kernels[2, 1, 0], [0.75, 0.25])
            np.testing.assert_array_equal(arms.kernels[0, 0, 0], [0.4, 0.6])
        rows = "rmab: kernels: 2 of 12 rows divided by their sums"
        assert caplog.messages == 2 * [f"{rows}; the largest deviation from 1 is 1 (arm 2, state 1, action 0: 2)"]

    @pytest.mark.parametrize("row", [[0.0, 0.0], [1e308, 1e308], [-1.0, 3.0], [np.nan, 1.0]])
    def test_what_has_no_sum_to_divide_by_is_refused(self, row, caplog):
        with pytest.raises(ModelError, match=r"^kernels: arm 1, state 0, action 1(, next state 0)? has") as caught:
            Arms(changed((1, 0, 1), row), normalise=True)
        assert "normalise" not in str(caught.value)
        assert not caplog.messages

    @given(st.integers(0, 999), st.integers(-300, 300))
    def test_any_scale(self, seed, power):
        rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=(2, 3, 2))
        arms = Arms(rows * 10.0**power, normalise=True)
        np.testing.assert_allclose(arms.kernels, rows, rtol=1e-14, atol=0)
        np.testing.assert_array_equal(Arms(arms.kernels, normalise=True).kernels, arms.kernels)

    def test_every_maker_takes_it(self, tmp_path):
        twice = 2 * table(1)[0]
        assert Arms.identical(twice, 3, normalise=True) == Arms.identical(table(1)[0], 3)
        assert Arms.of_sizes([twice, [[[3], [0.1]]]], normalise=True) == Arms.of_sizes([table(1)[0], [[[1], [1]]]])
        timed = np.stack([table(2), 3 * table(2)], axis=1)
        np.testing.assert_array_equal(Arms(timed, normalise=True).kernels[:, 1], table(2))
        with pytest.raises(ModelError, match=f"arm 0, phase 1, state 0, action 0 has row sum 3, not 1{OFFER}$"):
            Arms(timed)
        groups = {"groups": ["a", "b", "a"], "support": table() > 0}
        assert Arms(2 * table(), **groups, normalise=True) == Arms(table(), **groups)
        with pytest.raises(ModelError, match="normalise must be a bool, got int"):
            Arms(table(), normalise=1)

    @pytest.mark.parametrize("kind", ["problem", "task"])
    def test_files_take_it_as_a_field(self, kind, tmp_path):
        path = tmp_path / "mine.json"
        fields = {"kind": f"rmab {kind}", "kernels": (2 * table()).tolist(), "start": 0, "budget": 1, "horizon": 2}
        fields |= {"rewards": np.arange(12.0).reshape(1, 3, 2, 2).tolist()} if kind == "task" else {}
        read = (lambda: Task.load(path).problem) if kind == "task" else (lambda: Problem.load(path))
        path.write_text(json.dumps(fields))
        with pytest.raises(
            ModelError, match=re.escape(f"{path}: kernels: arm 0, state 0, action 0 has row sum 2, not 1{OFFER}")
        ):
            read()
        path.write_text(json.dumps(fields | {"normalise": True}))
        assert read() == Problem(Arms(table()), 0, 1, 2)


class TestStructure:
    @pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["a", "a"], []])
    def test_names(self, names):
        with pytest.raises(ModelError, match=f"state_names must be 2 different names, got {len(names)}"):
            Arms(table(), state_names=names)

    @pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2, 3], []])
    def test_number_of_group_labels(self, labels):
        with pytest.raises(ModelError, match=f"groups must have one label per arm.*; got {len(labels)} labels"):
            Arms(table(), groups=labels)

    @pytest.mark.parametrize("label", [1.5, None, (1,), [1]])
    def test_kind_of_group_label(self, label):
        with pytest.raises(ModelError, match=r"groups: arm 1 has label .*; labels are integers or strings"):
            Arms(table(), groups=[0, label, 0])

    @pytest.mark.parametrize(
        "labels", [["b", "a", "b"], [7, -1, 7], np.array([9, 3, 9]), np.array(["q", "p", "q"]), [1, "1", 1]]
    )
    def test_groups_are_numbered_by_first_appearance(self, labels):
        arms = Arms(table(), groups=labels)
        assert arms.groups.tolist() == [0, 1, 0]
        assert arms.representatives.tolist() == [0, 1]

    def test_arms_without_groups_are_their_own(self):
        arms = Arms(table())
        assert arms.groups is None
        assert arms.group_of.tolist() == arms.representatives.tolist() == [0, 1, 2]

    def test_group_whose_arms_differ_in_kernel(self):
        message = "group 0: arms 0 and 2 differ at state 1, action 0, next state 0: 0.5 and 0.25"
        with pytest.raises(ModelError, match=f"^{message}$"):
            Arms(changed((2, 1, 0), [0.25, 0.75]), groups=["x", "y", "x"])

    def test_group_whose_arms_differ_in_support(self):
        kernels, support = changed((slice(None), 0, 0), [1.0, 0.0]), np.ones((3, 2, 2, 2), dtype=bool)
        support[1, 0, 0, 1] = False
        with pytest.raises(ModelError, match="group 0: arms 0 and 1 differ in their support"):
            Arms(kernels, groups=[4, 4, 5], support=support)

    def test_group_whose_arms_differ_in_size(self):
        with pytest.raises(ModelError, match="group 0: arms 0 and 1 differ in size: 2 and 1"):
            Arms(np.tile(np.eye(2)[None, :, None], (2, 1, 2, 1)), groups=[0, 0], sizes=[2, 1])

    def test_support_that_forbids_a_positive_probability(self):
        support = np.ones((3, 2, 2, 2), dtype=bool)
        support[2, 1, 0, 1] = False
        message = "support: arm 2, state 1, action 0, next state 1 is declared impossible but has probability 0.5"
        with pytest.raises(ModelError, match=f"^{message}$"):
            Arms(table(), support=support)

    def test_support_shape_and_values(self):
        with pytest.raises(ModelError, match=r"support must have the shape of kernels, \(3, 2, 2, 2\), got \(2, 2, 2\)"):
            Arms(table(), support=np.ones((2, 2, 2)))
        with pytest.raises(ModelError, match="support must contain only True and False"):
            Arms(table(), support=np.full((3, 2, 2, 2), 0.5))

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ([2, 2], r"sizes must have shape \(3,\), got \(2,\)"),
            ([2, 0, 2], r"sizes\[1\] must be in 1\.\.2, got 0"),
            ([2, 2, 3], r"sizes\[2\] must be in 1\.\.2, got 3"),
            ([2, 1.5, 2], r"sizes\[1\] must be a whole number, got .*1\.5"),
            ([2, np.nan, 2], r"sizes\[1\] must be in 1\.\.2, got nan"),
            ([2, 1, 2], "sizes: arm 1 has 1 states but moves from 0 to 1 under action 0"),
        ],
    )
    def test_sizes(self, sizes, message):
        with pytest.raises(ModelError, match=message):
            Arms(table(), sizes=sizes)


class TestBuilders:
    def test_identical(self):
        kernel = np.random.default_rng(0).dirichlet([1, 1, 1], size=(3, 2))
        arms = Arms.identical(kernel, 4, state_names="abc", support=kernel > 0)
        assert arms == Arms([kernel] * 4, groups=[0] * 4, state_names="abc", support=[kernel > 0] * 4)
        assert arms.kernels.base.size < 2 * kernel.size  # stored once
        assert Arms.identical(kernel, 1).groups.tolist() == [0]

    @pytest.mark.parametrize(
        ("kernel", "count", "message"),
        [
            (table(1)[0], 0, "count >= 1, got .* and 0"),
            (table(1)[0], 1.5, "count must be a whole number, got 1.5"),
            (table(1)[np.newaxis], 2, r"needs a kernel \(S, 2, S\)"),
            ([[[1, 1], [1, 0]], [[1, 0], [1, 0]]], 2, "state 0, action 0 has row sum 2"),
        ],
    )
    def test_identical_refuses(self, kernel, count, message):
        with pytest.raises(ModelError, match=message):
            Arms.identical(kernel, count)

    @pytest.mark.parametrize("support", [np.full((2, 2, 2), 7), np.full((2, 2, 2), np.nan), [[1], [1, 0]]])
    def test_identical_refuses_a_malformed_support(self, support):
        with pytest.raises(ModelError, match="support"):
            Arms.identical(table(1)[0], 2, support=support)

    def test_of_sizes(self):
        small, large = table(1, 1)[0], table(1, 3)[0]
        arms = Arms.of_sizes([small, large, small], groups=["s", "l", "s"])
        assert (arms.count, arms.states, arms.sizes.tolist()) == (3, 3, [1, 3, 1])
        assert arms.real_states.tolist() == [1, 3, 1]
        np.testing.assert_array_equal(arms.kernels[0], np.tile(np.eye(3)[:, None], (1, 2, 1)))
        np.testing.assert_array_equal(arms.kernels[1], large)
        np.testing.assert_array_equal(arms.support[0], arms.kernels[0] > 0)
        assert arms.support[1].all()

    @given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 99))
    def test_of_sizes_never_enters_padding(self, sizes, seed):
        rng = np.random.default_rng(seed)
        arms = Arms.of_sizes([rng.dirichlet(np.ones(size), size=(size, 2)) for size in sizes])
        for n, size in enumerate(sizes):
            assert not arms.support[n, :size, :, size:].any()
            assert arms.support[n, :size, :, :size].all()
            assert not arms.kernels[n, :size, :, size:].any()

    def test_start_in_padding_is_refused(self):
        arms = Arms.of_sizes([table(1, 3)[0], table(1, 2)[0]])
        assert Problem(arms, [2, 1], 1, 1).start.tolist() == [2, 1]
        with pytest.raises(ModelError, match=r"start\[1\] must be in 0\.\.1 \(the states of arm 1\), got 2"):
            Problem(arms, 2, 1, 1)

    @pytest.mark.parametrize(
        ("kernels", "message"),
        [
            ([], "at least one arm"),
            ([table(1)[0], np.ones((2, 2))], r"kernels\[1\] must have shape"),
            (["x"], r"kernels\[0\]: not"),
        ],
    )
    def test_of_sizes_refuses(self, kernels, message):
        with pytest.raises(ModelError, match=message):
            Arms.of_sizes(kernels)

    @given(some_arms(3, 3), st.integers(1, 3))
    def test_repeated(self, arms, times):
        again = arms.repeated(times)
        order = np.repeat(np.arange(arms.count), times)
        assert again.groups.tolist() == arms.group_of[order].tolist()
        assert again.state_names == arms.state_names
        for name in ("kernels", "support", "sizes"):
            old, new = getattr(arms, name), getattr(again, name)
            assert (old is None and new is None) or np.array_equal(new, old[order])
            assert new is None or not new.flags.writeable

    @pytest.mark.parametrize("times", [0, -1])
    def test_repeated_refuses(self, times):
        with pytest.raises(ModelError):
            Arms(table()).repeated(times)
