"""Arms of a group share one kernel, in memory and in files: many arms of two groups cost about what one group costs."""

import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common import arrays, checks as memory, sum_by_group
from rmab.errors import ModelError
from rmab.model.arms import Arms
from strategies import random_problem

ARMS, STATES = 1500, 24
MOST = 2.5  # times the memory of one group; with a kernel for each arm it would be far above 10


def kernels_of(groups: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.ones(STATES), size=(groups, STATES, 2))


def problem_of(groups: int) -> rmab.Problem:
    kernels = kernels_of(groups)
    arms = Arms(kernels, groups=np.arange(ARMS) % groups, support=kernels > 0)
    return rmab.Problem(arms, 0, 100, 2)


def reward_of(problem: rmab.Problem) -> np.ndarray:
    every = np.random.default_rng(1).random((2, STATES, 2))
    return every[problem.arms.group_of]


def task_of(problem: rmab.Problem) -> rmab.Task:
    return rmab.Task.from_rewards(problem, reward_of(problem)[np.newaxis], low=0, high=1)


def learn(problem: rmab.Problem) -> None:
    """Play an episode, and check what was seen against the declared support."""
    rmab.run(task_of(problem), "ucmd")


def simulated(problem: rmab.Problem) -> object:
    policy = rmab.planners.random_policy(problem)
    return rmab.simulate(problem, policy, reward_of(problem), np.random.default_rng(0))


USES: dict[str, Callable[[rmab.Problem], object]] = {
    "build": lambda problem: problem_of(len(problem.arms.group_kernels)),
    "in phases": lambda problem: rmab.Problem(problem.arms, 0, 100, 2, [0, 1]),
    "repeat": lambda problem: problem.arms.repeated(2),
    "equal": lambda problem: problem == problem_of(len(problem.arms.group_kernels)),
    "pickle": lambda problem: pickle.loads(pickle.dumps(problem)),
    "npz": lambda problem: rmab.Problem.from_bytes(problem.to_bytes()),
    "json": lambda problem: rmab.Problem.from_bytes(problem.to_bytes(".json")),
    "task": lambda problem: rmab.Task.from_bytes(task_of(problem).to_bytes()),
    "view": lambda problem: rmab.View.from_bytes(task_of(problem).view().situated(budget=3).to_bytes()),
    "simulate": simulated,
    "fluid": lambda problem: rmab.solvers.solve_fluid(problem, reward_of(problem)).value,
    "myopic": lambda problem: rmab.planners.myopic_index(problem, reward_of(problem)),
    "whittle": lambda problem: rmab.planners.whittle_index(problem, reward_of(problem), discount=0.5),
    "rolling": lambda problem: rmab.planners.Rolling.from_bytes(
        rmab.planners.Rolling(problem, reward_of(problem)).to_bytes()
    ),
    "learn": learn,
}


def peak(call: Callable[[], object]) -> int:
    """Return the bytes that a call has at most, when it is called a second time: the first one may compile."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("use", USES)
def test_two_groups_need_about_as_much_as_one(use: str) -> None:
    one, two = problem_of(1), problem_of(2)
    ratio = peak(lambda: USES[use](two)) / peak(lambda: USES[use](one))
    assert ratio < MOST, f"{ratio:.1f} times the memory of one group"


def test_charging_spots_of_two_classes_need_about_as_much_as_one() -> None:
    def made(classes: list[dict[str, Any]] | None) -> int:
        sizes: dict[str, Any] = {"arms": 400, "budget": 9, "horizon": 4, "episodes": 1, "phases": 2, "known_support": True}
        return peak(lambda: rmab.make_task("deadline", **sizes, classes=classes).view())

    assert made([{"arms": 200}, {"arms": 200, "arrival": 0.4}]) < MOST * made(None)


def test_the_kernels_of_all_arms_are_built_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = Arms.of_groups(kernels_of(2), np.arange(ARMS) % 2)
    assert np.array_equal(arms.kernels, kernels_of(2)[np.arange(ARMS) % 2])
    assert not arms.kernels.flags.writeable
    monkeypatch.setattr(memory, "SMALL", 10**6)
    monkeypatch.setattr(memory, "available", lambda: 1e7)
    with pytest.raises(
        ModelError, match=r"a table for each of 1500 arms would need 13\.8 MB of memory; 10 MB are available"
    ):
        _ = arms.kernels


class TestOneKernelPerGroup:
    """With groups, arms are given by arm or by group, and are the same either way."""

    @pytest.mark.parametrize("labels", [["b", "a", "b", "a"], [7, 3, 7, 3], [0, 1, 0, 1]])
    def test_rows_are_in_the_order_in_which_labels_appear(self, labels: list[object]) -> None:
        kernels = kernels_of(2)
        found = Arms(kernels, groups=labels, support=kernels > 0, sizes=[STATES, STATES])
        every = kernels[[0, 1, 0, 1]]
        assert found == Arms(every, groups=labels, support=every > 0, sizes=[STATES] * 4)
        assert np.array_equal(found.support, every > 0)
        assert np.array_equal(found.sizes, [STATES] * 4)

    def test_labels_that_are_numbers_of_rows_mean_these_rows(self) -> None:
        kernels = kernels_of(2)
        assert np.array_equal(Arms(kernels, groups=[1, 0, 1]).kernels, kernels[[1, 0, 1]])
        assert Arms(kernels, groups=[1, 0, 1]) == Arms.of_groups(kernels, [1, 0, 1])

    def test_as_many_kernels_as_arms_are_those_of_the_arms(self) -> None:
        kernels = kernels_of(2)
        assert np.array_equal(Arms(kernels, groups=[1, 0]).kernels, kernels)

    @pytest.mark.parametrize("groups", [[1, 0], [1, 0, 1], [2, 0, 1], [2, 2, 0, 1]])
    def test_files_keep_whose_kernel_is_whose(self, groups: list[int]) -> None:
        kernels = kernels_of(max(groups) + 1)
        problem = rmab.Problem(Arms.of_groups(kernels, groups), 0, 1, 2)
        for suffix in (".npz", ".json"):
            again = rmab.Problem.from_bytes(problem.to_bytes(suffix))
            assert np.array_equal(again.arms.kernels, kernels[groups])

    def test_files_hold_one_kernel_per_group(self) -> None:
        problem = problem_of(2)
        assert problem.to_fields()["kernels"].shape == (2, STATES, 2, STATES)
        assert task_of(problem).view().support.shape == (2, STATES, 2, STATES)

    def test_supports_of_other_arms_are_refused_by_a_view(self) -> None:
        view = task_of(problem_of(2)).view()
        fields = {**view.to_fields(), "support": view.support[view.groups]}
        assert np.array_equal(rmab.View(**fields).support, view.support)
        fields["support"][4, 0, 0, 0] = False
        with pytest.raises(ModelError, match="arms 0 and 4 are in one group, but differ in size or support"):
            rmab.View(**fields)
        with pytest.raises(ModelError, match="support: not an array of numbers"):
            rmab.View(**{**fields, "support": [[1], [1, 0]]})
        fields["support"] = view.support[[0, 1, 1]]
        with pytest.raises(ModelError, match="support must be True or False, of shape"):
            rmab.View(**fields)

    def test_a_view_whose_groups_are_single_arms_keeps_their_supports(self) -> None:
        problem, _ = random_problem(0, 2, 3, 4, 1)
        support = np.array([np.ones((3, 2, 3)), np.eye(3)[:, np.newaxis].repeat(2, axis=1)], dtype=bool)
        arms = Arms(np.where(support, problem.arms.kernels, 0.0), support=support, normalise=True)
        view = task_like(arms).view()
        turned = rmab.View(**{**view.to_fields(), "groups": [1, 0]})
        for one in (turned, turned.situated(budget=0), rmab.View.from_bytes(turned.to_bytes())):
            assert np.array_equal(one.support, support)
            assert np.array_equal(one.support_of, [0, 1])


def task_like(arms: Arms) -> rmab.Task:
    return rmab.Task.from_rewards(rmab.Problem(arms, 0, 1, 2), np.zeros((1, arms.count, arms.states, 2)), low=0, high=1)


@pytest.mark.parametrize("formula", ["ns,nsy->ny", "ny,nsy->ns"])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_sums_by_group_are_those_of_all_kernels(formula: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte, whatever the size of the pieces."""
    rng = np.random.default_rng(count)
    kernels, group, values = rng.random((3, 5, 5)), rng.integers(3, size=count), rng.random((count, 5))
    expected = np.einsum(formula, values, kernels[group])
    for piece in (2**22, 80, 1):
        monkeypatch.setattr(arrays, "PIECE", piece)
        assert np.array_equal(sum_by_group(formula, values, kernels, group), expected)
