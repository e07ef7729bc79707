"""Problems: what is checked when one is built, and what it keeps."""

import pickle
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given

from kernel_tables import changed, table
from rmab.errors import ModelError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from strategies import problems


@pytest.fixture
def problem():
    kernels = table()[[0, 0, 0]]
    return Problem(Arms(kernels, state_names=["low", "high"], groups=["x", "y", "x"], support=kernels > 0), [0, 1, 0], 2, 5)


class TestProblem:
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"budget": -1}, r"budget must be in 0\.\.3 \(the number of arms\), got -1"),
            ({"budget": 4}, r"budget must be in 0\.\.3 \(the number of arms\), got 4"),
            ({"horizon": 0}, "horizon must be at least 1, got 0"),
            ({"start": 2}, r"start\[0\] must be in 0\.\.1 \(the states of arm 0\), got 2"),
            ({"start": [0, 0, -1]}, r"start\[2\] must be in 0\.\.1 \(the states of arm 2\), got -1"),
            ({"start": [0, 0.5, 0]}, r"start\[1\] must be in 0\.\.1 .* got 0\.5"),
            ({"start": [0, np.nan, 0]}, r"start\[1\] .* got nan"),
            ({"start": [0, 0]}, r"start must be one state or have shape \(3,\), got \(2,\)"),
            ({"start": "low"}, "start: not an array of numbers"),
            ({"arms": table()}, "arms must be rmab.Arms, got ndarray"),
            *[
                ({name: bad}, f"{name} must be a whole number")
                for name in ("budget", "horizon")
                for bad in (1.5, "1", True, None, np.nan, np.inf)
            ],
        ],
    )
    def test_refuses(self, fields, message):
        with pytest.raises(ModelError, match=message):
            Problem(**{"arms": Arms(table()), "start": 0, "budget": 1, "horizon": 1, **fields})

    def test_whole_numbers_of_any_type(self):
        problem = Problem(Arms(table()), np.float32(1), np.int8(2), 4.0)
        assert (problem.start.tolist(), problem.budget, problem.horizon) == ([1, 1, 1], 2, 4)
        assert type(problem.budget) is type(problem.horizon) is int
        assert problem.start.dtype == np.int64

    def test_changing_the_input_later_changes_nothing(self):
        kernels, start, sizes = table(), np.array([0, 1, 0]), np.array([2, 2, 2])
        support, groups = kernels > 0, np.array([0, 1, 0])
        problem = Problem(Arms(kernels, groups=groups, support=support, sizes=sizes), start, 1, 1)
        before = pickle.dumps(problem)
        for array in (kernels, start, sizes, support, groups):
            array[...] = 0
        assert pickle.dumps(problem) == before

    def test_arrays_are_read_only(self, problem):
        arms = problem.arms
        for array in (arms.kernels, arms.groups, arms.support, arms.group_of, arms.cumulative, problem.start):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_derived_arrays_are_read_only(self):
        arms = Arms(table())
        assert not arms.group_of.flags.writeable
        assert not arms.representatives.flags.writeable

    @pytest.mark.parametrize("name", ["arms", "start", "budget", "horizon", "other"])
    def test_attributes_are_frozen(self, problem, name):
        with pytest.raises(FrozenInstanceError):
            setattr(problem, name, 1)
        with pytest.raises(FrozenInstanceError):
            setattr(problem.arms, "kernels" if name == "arms" else name, 1)

    @pytest.mark.parametrize("change", ["kernels", "state_names", "groups", "support", "start", "budget", "horizon"])
    def test_equality_looks_at_every_field(self, problem, change):
        assert Problem.from_fields(problem.to_fields()) == problem
        fields = {**problem.to_fields(), "kernels": problem.arms.kernels, "support": problem.arms.support}
        assert Problem.from_fields(fields) == problem
        fields[change] = {"kernels": changed((1, 0, 0), [0.25, 0.75]), "start": 0, "budget": 1, "horizon": 4}.get(change)
        assert Problem.from_fields(fields) != problem
        assert problem != "problem"
        assert problem.arms != "arms"
        with pytest.raises(TypeError, match="unhashable"):
            hash(problem)

    def test_numbers_of_few_bits_are_compared_without_overflow(self, problem):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert Problem(problem.arms, 0, 1, np.float16(5)).horizon == 5
            with pytest.raises(ModelError, match="horizon must be a whole number"):
                Problem(problem.arms, 0, 1, np.float16("inf"))

    def test_equality_looks_at_sizes(self):
        stay = np.tile(np.eye(2)[None, :, None], (2, 1, 2, 1))
        assert Arms(stay, sizes=[2, 1]) == Arms(stay, sizes=[2.0, 1.0])
        assert Arms(stay, sizes=[2, 1]) != Arms(stay, sizes=[2, 2])
        assert Arms(stay, sizes=[2, 2]) != Arms(stay)

    def test_repr(self, problem):
        assert repr(problem) == "Problem(Arms(3 arms, 2 states, 2 groups), budget 2, horizon 5)"

    @given(problems())
    def test_pickle_round_trip(self, problem):
        again = pickle.loads(pickle.dumps(problem))
        assert again == problem
        np.testing.assert_array_equal(again.arms.cumulative, problem.arms.cumulative)
        assert not again.arms.kernels.flags.writeable

    def test_unpickled_start_is_read_only(self, problem):
        assert not pickle.loads(pickle.dumps(problem)).start.flags.writeable

    def test_pickle_of_identical_arms_is_as_small_as_one(self):
        kernel = np.random.default_rng(0).dirichlet(np.ones(20), size=(20, 2))
        one, many = (len(pickle.dumps(Arms.identical(kernel, count))) for count in (1, 1000))
        assert many - one <= 8 * 1000 + 100
        assert one < kernel.nbytes + 1000
