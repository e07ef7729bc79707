"""Whittle indices against markovianbandit-pkg, bisection, closed forms and numbers of the literature."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import reference
import rmab
from policy_iteration import advantage
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.solvers.whittle.index import BLOCK, arm_whittle, arm_whittle_finite
from rmab.tasks.deadline import kernel as deadline_kernel, reward_parts
from strategies import random_problem

pytestmark = pytest.mark.compiled

KERNEL = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]])
REWARD = np.array([[0.5, 2.0], [0.5, 1.0]])


def finite(kernel: FloatArray, reward: FloatArray, horizon: int) -> tuple[FloatArray, bool]:
    """Return the indices of an arm that does not depend on the time."""
    return arm_whittle_finite(kernel[np.newaxis], np.asarray(reward, dtype=float)[np.newaxis], np.zeros(horizon, dtype=int))


@pytest.fixture
def peer() -> Iterator[Any]:
    """Return markovianbandit; importing it makes NumPy raise on divisions, for everybody: undone here."""
    before = np.geterr()
    import markovianbandit

    yield markovianbandit
    np.seterr(**before)


def random_arm(states: int, seed: int, *, sparse: bool = False) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(states, 0.2 if sparse else 1.0), size=(states, 2))
    return kernel, rng.uniform(-1, 1, size=(states, 2))


@pytest.mark.parametrize(("discount", "index"), [(0.9, [1.5, 10 / 11]), (1.0, [1.5, 1.0]), (0.0, [1.5, 0.5])])
def test_known_numbers(discount: float, index: list[float]) -> None:
    found, indexable = arm_whittle(KERNEL, REWARD, discount)
    np.testing.assert_allclose(found, index, rtol=1e-14)
    assert indexable


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("states", [1, 2, 7, 40, BLOCK + 1, 3 * BLOCK])
def test_as_markovianbandit(peer: Any, states: int, discount: float) -> None:
    for seed in range(2 if states > 10 else 10):
        kernel, reward = random_arm(states, seed)
        arm = peer.restless_bandit_from_P0P1_R0R1(kernel[:, 0], kernel[:, 1], reward[:, 0], reward[:, 1])
        theirs = arm.whittle_indices(discount=discount)
        index, indexable = arm_whittle(kernel, reward, discount)
        assert indexable == arm.is_indexable(discount=discount)
        if indexable:
            np.testing.assert_allclose(index, theirs, atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_discounted_by_bisection(seed: int) -> None:
    kernel, reward = random_arm(4, seed, sparse=True)
    index, indexable = arm_whittle(kernel, reward, 0.9)
    assert indexable
    for s in range(4):
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if advantage(kernel, reward, 0.9, middle)[s] > 0 else (low, middle)
        assert index[s] == pytest.approx(low, abs=1e-9)


def grid_verdict(kernel: FloatArray, reward: FloatArray, discount: float) -> bool:
    """Whether passive sets grow along a fine grid of prices."""
    prices = np.linspace(-15, 15, 6001)
    active = np.array([advantage(kernel, reward, discount, price) > 1e-9 for price in prices])
    return bool((active[1:] <= active[:-1]).all())


def test_the_verdict_on_indexability() -> None:
    """Arms that are not indexable are rare: found among sparse random ones, and confirmed on a grid of prices."""
    doubtful = [seed for seed in range(1500) if not arm_whittle(*random_arm(3, seed, sparse=True), 0.95)[1]]
    assert 0 < len(doubtful) < 75
    for seed in doubtful[:2]:
        assert not grid_verdict(*random_arm(3, seed, sparse=True), 0.95)
        assert np.isfinite(arm_whittle(*random_arm(3, seed, sparse=True), 0.95)[0]).all()
    for seed in (1, 2):
        assert seed not in doubtful
        assert grid_verdict(*random_arm(3, seed, sparse=True), 0.95)


def test_two_recurrent_classes_have_no_average_index() -> None:
    stays = np.tile(np.eye(2)[:, np.newaxis], (1, 2, 1))
    problem = Problem(Arms(np.stack([KERNEL, stays])), 0, 1, 3)
    with pytest.raises(ModelError, match="arm 1: more than one recurrent class if always active; give a discount below 1"):
        rmab.planners.whittle_index(problem, np.stack([REWARD, REWARD]))
    splits = KERNEL.copy()
    splits[:, 0] = np.eye(2)
    with pytest.raises(ModelError, match="arm 0: more than one recurrent class under some policy"):
        rmab.planners.whittle_index(Problem(Arms(splits[np.newaxis]), 0, 1, 3), REWARD[np.newaxis])
    assert rmab.planners.whittle_index(problem, np.stack([REWARD, REWARD]), discount=0.9).indexable.all()


def test_closed_form_of_deadline() -> None:
    problem = rmab.make_task("deadline", arms=3, budget=1).problem
    reward = np.tile(reward_parts().sum(axis=0), (3, 1, 1))
    for discount in (0.5, 0.9, 0.99):
        whole = rmab.planners.whittle_index(problem, reward, discount=discount)
        assert whole.indexable.all()
        np.testing.assert_allclose(
            rmab.tasks.deadline.deadline_whittle(problem, discount=discount).index, whole.index, atol=1e-9
        )
    # By hand, discount 1: (1, 1) saves .2, (1, 3) saves .2 (9 - 4), (2, 2) saves .2, and (3, 1) can wait.
    names = problem.arms.state_names
    assert names is not None
    hand = {"empty": 0.0, "5,0": 0.0, "1,1": 0.7, "1,3": 1.5, "2,2": 0.7, "3,1": 0.5, "3,9": 0.5 + 0.2 * 13}
    table = rmab.tasks.deadline.deadline_whittle(problem).index[1]
    assert {name: table[names.index(name)] for name in hand} == pytest.approx(hand)
    with pytest.raises(ModelError, match="the arms are not charging spots"):
        rmab.tasks.deadline.deadline_whittle(rmab.make_task("cpap").problem)
    with pytest.raises(ModelError, match=r"^discount must be in \[0, 1\], got 1.5$"):
        rmab.tasks.deadline.deadline_whittle(problem, discount=1.5)


@pytest.mark.parametrize("seed", range(4))
def test_finite_horizon_by_bisection(seed: int) -> None:
    kernel, reward = random_arm(3, seed, sparse=True)
    index, indexable = finite(kernel, reward, 6)
    assert indexable
    for h, s in np.ndindex(6, 3):
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            _, quality = reference.backward(kernel, np.tile(reward - middle * np.array([0.0, 1.0]), (6, 1, 1)), 6)
            low, high = (middle, high) if quality[h, s, 1] > quality[h, s, 0] else (low, middle)
        assert index[h, s] == pytest.approx(low, abs=1e-10)


def test_finite_horizon_by_hand() -> None:
    """One step: r1 - r0. Two: the active arm goes to state 0 for sure, which pays max(.5, 2 - price) next."""
    index, _ = finite(KERNEL, REWARD, 2)
    np.testing.assert_allclose(index[1], [1.5, 0.5])
    # State 0: 1.5 - p + (v0 - v1)/2 = 0 at p = 1.5, where v0 = v1 = .5. State 1: .5 - p + (v0 - v1)/4, v0 - v1 = 1.5 - p.
    np.testing.assert_allclose(index[0], [1.5, (0.5 + 1.5 / 4) / 1.25])


def test_a_long_horizon_comes_to_the_average_index() -> None:
    kernel, reward = random_arm(4, 3)
    index, _ = finite(kernel, reward, 80)
    np.testing.assert_allclose(index[0], arm_whittle(kernel, reward, 1.0)[0], atol=1e-6)


def test_where_a_range_of_prices_will_do_the_highest_is_the_finite_index() -> None:
    """Now or later is all the same: state 0 can still be served in state 1, where the offer, worth 3, ends."""
    kernel = np.zeros((3, 2, 3))
    kernel[0, 0, 1] = kernel[0, 1, 2] = kernel[1, :, 2] = kernel[2, :, 2] = 1.0
    reward = np.array([[0.0, 3.0], [0.0, 3.0], [0.0, 0.0]])
    index, indexable = finite(kernel, reward, 2)
    np.testing.assert_allclose(index, [[3.0, 3.0, 0.0], [3.0, 3.0, 0.0]])
    assert indexable
    infinite, _ = arm_whittle(kernel, reward, 1.0)
    np.testing.assert_allclose(infinite[1:], [3.0, 0.0], atol=1e-9)
    assert 0.0 <= infinite[0] <= 3.0  # any price in this range


@pytest.mark.parametrize("unit", [1e10, 1e-12, 2.0**40, 2.0**-40])
def test_indices_are_in_the_units_of_the_rewards(unit: float) -> None:
    """Verdicts, too. In units that are powers of two, not a bit of an index is different."""
    tolerance = {"rtol": 1e-9, "atol": 1e-11 * unit} if unit in (1e10, 1e-12) else {"rtol": 0.0, "atol": 0.0}
    doubtful = 0
    for seed in range(120):
        kernel, reward = random_arm(3, seed, sparse=True)
        for discount in (0.95, 1.0):
            index, indexable = arm_whittle(kernel, reward, discount)
            scaled, verdict = arm_whittle(kernel, unit * reward, discount)
            np.testing.assert_allclose(scaled, unit * index, **tolerance)
            assert verdict == indexable
            doubtful += not indexable
        if seed < 20:
            index, indexable = finite(kernel, reward, 6)
            scaled, verdict = finite(kernel, unit * reward, 6)
            np.testing.assert_allclose(scaled, unit * index, **tolerance)
            assert verdict == indexable
    assert doubtful


def test_a_steady_pay_has_index_0() -> None:
    """Rewards without any difference, and the same on top of some: it changes no finite index."""
    kernel, reward = random_arm(3, 1)
    for steady in (0.0, 7.0, 1e-12, 1e10):
        index, indexable = finite(kernel, np.full((3, 2), steady), 5)
        np.testing.assert_array_equal(index, 0.0)
        assert indexable
    plain, _ = finite(kernel, reward, 5)
    np.testing.assert_allclose(finite(kernel, reward + 1024.0, 5)[0], plain, atol=1e-11)


def test_padding_and_groups() -> None:
    other, pay = random_arm(3, 5)
    arms = Arms.of_sizes([KERNEL, other, KERNEL], groups=["a", "b", "a"])
    reward = np.zeros((3, 3, 2))
    reward[[0, 2], :2], reward[1] = REWARD, pay
    problem = Problem(arms, 0, 2, 4)
    for found in (rmab.planners.whittle_index(problem, reward), rmab.planners.finite_whittle_index(problem, reward)):
        assert found.index[0, ..., 2].max() == found.index[0, ..., 2].min() == 0.0
        np.testing.assert_array_equal(found.index[0], found.index[2])
        assert found.policy().budget == 2
        assert found.policy(rule="at-most").rule == "at-most"
    np.testing.assert_allclose(rmab.planners.whittle_index(problem, reward).index[0, :2], [1.5, 1.0])
    np.testing.assert_allclose(rmab.planners.whittle_index(problem, reward).index[1], arm_whittle(other, pay, 1.0)[0])
    np.testing.assert_allclose(rmab.planners.finite_whittle_index(problem, reward).index[1], finite(other, pay, 4)[0])


def test_wrong_arguments() -> None:
    problem, reward = random_problem(0, count=2, states=2, horizon=2, budget=1)
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(ModelError, match="discount must be in"):
            rmab.planners.whittle_index(problem, reward, discount=wrong)


def test_the_policy_is_good() -> None:
    problem, reward = random_problem(8, count=4, states=3, horizon=6, budget=2)
    optimum = reference.optimal_value(problem, reward)
    for found in (rmab.planners.whittle_index(problem, reward), rmab.planners.finite_whittle_index(problem, reward)):
        batch = rmab.simulate_many(problem, found.policy(), reward, np.random.default_rng(0), 1500)
        assert 0.95 * optimum - 4 * batch.stderr <= batch.mean <= optimum + 4 * batch.stderr


def test_deadline_is_indexable_at_every_step() -> None:
    _, indexable = finite(deadline_kernel(), reward_parts().sum(axis=0), 30)
    assert indexable


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-9, 3e7])
@pytest.mark.parametrize(("pay", "index", "indexable"), [(1.0, -11.0, True), (0.5, -11.5, True), (1.5, 1.5, False)])
def test_an_advantage_that_touches_zero_leaves_an_arm_indexable(scale, pay, index, indexable) -> None:
    """State 0 may stay passive and be paid 1 per later activation (state 1), or be active once, for `pay`, and never again.

    At prices from -5 to 1, its advantage is pay - 2 + price; above, pay - price: largest at 1, where it is pay - 1.
    """
    kernel = np.zeros((3, 2, 3))
    kernel[0, 0, 1] = kernel[0, 1, 2] = kernel[1, :, 1] = kernel[2, :, 2] = 1.0
    reward = scale * np.array([[0.0, pay], [0.0, 1.0], [0.0, -5.0]])
    found, fits = finite(kernel, reward, 3)
    assert fits == indexable
    assert found[0, 0] == pytest.approx(scale * index, rel=1e-9)
