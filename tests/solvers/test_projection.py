"""The projection against an independent solver, and against its own optimality conditions recomputed in plain NumPy."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rmab
from instances import Instance, faults, possible, random_instance, row_violation
from oracle import clarabel
from rmab.common.arrays import FloatArray

SEEDS = range(3)


def known(instance: Instance) -> Instance:
    """Every kernel is known exactly."""
    middle = (instance.low + instance.high) / 2
    middle /= middle.sum(axis=3, keepdims=True)
    return instance.but(low=middle, high=middle)


def unvisited(instance: Instance) -> Instance:
    """Nothing is known of any pair."""
    return instance.but(low=np.zeros_like(instance.low), high=(instance.high > 0).astype(float))


def mixed(instance: Instance) -> Instance:
    """A third of the rows is known, a third unvisited, and the rest in between."""
    rows = np.random.default_rng(0).integers(3, size=(*instance.low.shape[:3], 1))
    sure, unsure = known(instance), unvisited(instance)
    choice = [rows == 0, rows == 1]
    return instance.but(
        low=np.select(choice, [sure.low, unsure.low], instance.low),
        high=np.select(choice, [sure.high, unsure.high], instance.high),
    )


def secluded(instance: Instance) -> Instance:
    """No row leads to the last state: it stays empty, wherever nobody starts in it."""
    last = instance.low.shape[1] - 1
    low, high, table = instance.low.copy(), instance.high.copy(), instance.reference.copy()
    low[..., last], high[..., last], table[..., last] = 0.0, 0.0, 0.0
    high[..., 0] = 1.0
    return instance.but(low=low, high=high, reference=table, start=np.minimum(instance.start, last - 1))


def some_radii(instance: Instance) -> Instance:
    """Balls of radius 0, small, middling and so large that they hold every distribution."""
    sizes = np.random.default_rng(0).choice([0.0, 1e-3, 0.3, 2.0, 5.0], size=instance.radius.shape)
    return instance.but(radius=sizes)


def row_of(instance: Instance) -> FloatArray:
    """(N,) what an active arm takes of the budget."""
    return np.asarray(instance.program.weights * instance.program.cost)


def per_step(arms: int, horizon: int) -> FloatArray:
    """(H,) budgets: zero, tight, slack, in turn."""
    return np.resize([0.4 * arms, 0.0, 0.1, arms + 1.0, 0.05], horizon)


KINDS: dict[str, Callable[[int], Instance]] = {
    "generic": lambda seed: random_instance(seed, spread=0.5),
    "narrow": lambda seed: random_instance(seed, width=1e-3, spread=0.5),
    "known": lambda seed: known(random_instance(seed, spread=0.5)),
    "unvisited": lambda seed: unvisited(random_instance(seed, spread=0.5)),
    "mixed": lambda seed: mixed(random_instance(seed, (3, 3, 3), spread=0.5)),
    "zeros": lambda seed: random_instance(seed, (2, 4, 4), support=0.4, spread=0.5),
    "unvisited with zeros": lambda seed: unvisited(random_instance(seed, (2, 4, 4), support=0.4, spread=0.5)),
    "unreachable state": lambda seed: secluded(random_instance(seed, (2, 4, 4), spread=0.5)),
    "tight budget": lambda seed: random_instance(seed, budget=0.02, spread=0.5),
    "slack budget": lambda seed: random_instance(seed, budget=1.9, spread=0.5),
    "budget of everyone": lambda seed: random_instance(seed, budget=2.0, spread=0.5),
    "budget beyond everyone": lambda seed: random_instance(seed, budget=7.0, spread=0.5),
    "no budget": lambda seed: random_instance(seed, budget=0.0, spread=0.5),
    "no budget, zeros": lambda seed: random_instance(seed, (2, 4, 4), support=0.4, budget=0.0, spread=0.5),
    "budget per step": lambda seed: random_instance(seed, (2, 5, 3), budget=per_step(2, 5), spread=0.5),
    "weights": lambda seed: random_instance(seed, (3, 3, 3), weights=[1.0, 7.0, 2.5], budget=3.0, spread=0.5),
    "one step": lambda seed: random_instance(seed, (3, 1, 3), spread=0.5),
    "two states": lambda seed: random_instance(seed, (3, 4, 2), spread=0.5),
    "one state": lambda seed: random_instance(seed, (3, 4, 1), spread=0.5),
    "one arm": lambda seed: random_instance(seed, (1, 5, 3), spread=0.5),
    "nine states": lambda seed: random_instance(seed, (1, 3, 9), width=0.1, spread=0.5),  # beyond a small row's own code
    "ball of radius 0": lambda seed: random_instance(seed, radius=0.0, spread=0.5),
    "small ball": lambda seed: random_instance(seed, radius=0.05, spread=0.5),
    "ball": lambda seed: random_instance(seed, radius=0.5, spread=0.5),
    "ball of everything": lambda seed: random_instance(seed, radius=2.5, spread=0.5),
    "balls of every size": lambda seed: some_radii(random_instance(seed, (3, 3, 3), radius=1.0, spread=0.5)),
    "ball with zeros": lambda seed: random_instance(seed, (2, 4, 4), radius=0.3, support=0.4, spread=0.5),
    "ball, all else": lambda seed: random_instance(
        seed, (3, 5, 2), radius=0.2, budget=per_step(3, 5), weights=[2.0, 0.5, 1.0], spread=0.5
    ),
}
KINDS |= {  # test_projection_derivatives.py has the other ways to the derivatives by prices
    "costs": lambda seed: random_instance(seed, (3, 3, 3), weights=[1.0, 7.0, 2.5], budget=5.0, spread=0.5).but(
        cost=[0.3, 2.0, 5.0]
    ),
    "costs, ball": lambda seed: random_instance(seed, radius=0.3, spread=0.5).but(cost=[0.4, 1.7]),
    "costs, one arm": lambda seed: random_instance(seed, (1, 4, 3), spread=0.5).but(cost=[3.0], budget=0.9),
}
CASES = pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind in KINDS for seed in SEEDS])


@pytest.mark.slow
@CASES
def test_answer_meets_the_optimality_conditions(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    assert not faults(instance, instance.solve(), most=30)


@CASES
def test_answer_is_that_of_an_independent_solver(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    answer, other = instance.solve(), clarabel(instance.program)
    scale = max(1.0, abs(other.value))
    assert np.isfinite(other.z).all()  # the independent solver has an answer
    assert abs(answer.value - other.value) <= 1e-6 * scale
    np.testing.assert_allclose(answer.z, other.z, atol=1e-4, rtol=0)
    limit, used = instance.limit, np.einsum("n,nhs->h", row_of(instance), answer.mass[..., 1])
    strict = (limit > 0) & ((answer.prices > 1e-3) | (limit - used > 1e-3))
    np.testing.assert_allclose(answer.prices[strict], other.prices[strict], atol=1e-3, rtol=1e-3)
    # A price must buy something: where the budget binds with a price, the independent solver spends it all as well.
    paid = strict & (answer.prices > 1e-3)
    spent = np.einsum("n,nhsay->ha", row_of(instance), other.z)[:, 1]
    np.testing.assert_allclose(spent[paid], limit[paid], atol=1e-5)


def test_kinds_differ_in_what_binds() -> None:
    """The kinds above would prove little if no budget ever bound, or no bound of a box or ball was ever met."""
    binding = {kind: bool((KINDS[kind](0).solve().prices > 1e-3).any()) for kind in KINDS}
    assert binding["generic"]
    assert binding["tight budget"]
    assert binding["budget per step"]
    assert not binding["slack budget"]
    assert not binding["budget beyond everyone"]
    instance = KINDS["generic"](0)
    kernel, reach = instance.solve().kernel, instance.program.reach
    pinned = (kernel == instance.low[:, None]) | (kernel == instance.high[:, None])
    assert 0.1 < pinned[reach].mean() < 0.9
    ball = KINDS["ball"](0)
    distance = np.abs(ball.solve().kernel - ball.low[:, None]).sum(axis=4)[ball.program.reach]
    assert 0.1 < np.isclose(distance, 0.5).mean() < 0.9


@pytest.mark.parametrize("spread", [1.5, 3.0, 5.0])
@pytest.mark.parametrize("radius", [None, 0.2])
@pytest.mark.parametrize("seed", SEEDS)
def test_references_that_the_independent_solver_gives_up_on(seed: int, radius: float | None, spread: float) -> None:
    instance = random_instance(seed, (3, 6, 4), spread=spread, radius=radius)
    assert not faults(instance, instance.solve(), most=40)


def test_closed_form_of_one_step() -> None:
    """One arm, one step, one state: shares proportional to the reference, until the budget binds."""
    table, one = np.array([1.0, 3.0]).reshape(1, 1, 1, 2, 1), np.ones((1, 1, 2, 1))
    free = rmab.solvers.project(table, one, one, [0], 1)
    np.testing.assert_allclose(free.mass.ravel(), [0.25, 0.75], atol=1e-9)
    assert free.prices[0] == 0
    bound = rmab.solvers.project(table, one, one, [0], 0.5)
    np.testing.assert_allclose(bound.mass.ravel(), [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(bound.prices, np.log(3), atol=1e-7)
    np.testing.assert_allclose(bound.value, 0.5 * np.log(0.5) + 0.5 * np.log(0.5 / 3) - 1 + 4, atol=1e-9)


def test_closed_form_of_two_steps() -> None:
    """Uniform reference, nothing known: a path's weight is a product, so the first step only counts what follows."""
    states, horizon = 3, 2
    table = np.ones((1, horizon, states, 2, states))
    shape = (1, states, 2, states)
    answer = rmab.solvers.project(table, np.zeros(shape), np.ones(shape), [1], 1)
    np.testing.assert_allclose(answer.mass[0, 0], [[0, 0], [0.5, 0.5], [0, 0]], atol=1e-8)
    np.testing.assert_allclose(answer.mass[0, 1], np.full((3, 2), 1 / 6), atol=1e-8)
    np.testing.assert_allclose(answer.kernel, 1 / 3, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_ball_over_two_states_is_a_box(seed: int) -> None:
    """|p - c|_1 = 2 |p_0 - c_0|: two entry points, two solvers of a row, one programme."""
    ball = random_instance(seed, (3, 5, 2), radius=0.3, spread=2.0)
    low, high = np.maximum(ball.low - 0.15, 0.0), np.minimum(ball.low + 0.15, 1.0)
    box = ball.but(low=low, high=high, radius=None)
    round_, square = ball.solve(), box.solve()
    np.testing.assert_allclose(round_.z, square.z, atol=1e-8)
    np.testing.assert_allclose(round_.prices, square.prices, atol=1e-6)
    np.testing.assert_allclose(round_.value, square.value, rtol=1e-9)


def test_lists_and_other_number_types_are_read_like_arrays() -> None:
    instance = random_instance(0, (2, 2, 2), budget=1)
    expected = instance.solve()
    lists = rmab.solvers.project(
        instance.reference, instance.low.tolist(), instance.high.tolist(), [int(s) for s in instance.start], [1, 1]
    )
    np.testing.assert_array_equal(lists.z, expected.z)
    strided = np.asfortranarray(instance.reference)
    np.testing.assert_array_equal(instance.but(reference=strided).solve().z, expected.z)
    single = instance.but(reference=instance.reference.astype(np.float32)).solve()
    np.testing.assert_allclose(single.z, expected.z, atol=1e-6)


def test_answer_is_read_only_and_can_be_sent_to_another_process() -> None:
    answer = random_instance(0).solve()
    copy = pickle.loads(pickle.dumps(answer))
    for one in (answer, copy):
        for name in ("mass", "kernel", "prices", "potentials"):
            array = getattr(one, name)
            np.testing.assert_array_equal(array, getattr(answer, name))
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    assert (copy.residual, copy.iterations, copy.value, copy.gap) == (
        answer.residual, answer.iterations, answer.value, answer.gap,
    )  # fmt: skip
    np.testing.assert_array_equal(answer.z, answer.mass[..., None] * answer.kernel)


def test_many_callers_at_once_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("few", "many"):
        monkeypatch.setattr(f"rmab.solvers.projection.{kind}.CHUNK", 1)
    instances = [random_instance(seed, (3, 4, 3)) for seed in range(8)]
    alone = [instance.solve() for instance in instances]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(Instance.solve, instances))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.z, other.z)
        assert one.value == other.value


@pytest.mark.parametrize("kind", ["zeros", "no budget, zeros", "unreachable state", "ball with zeros"])
def test_every_row_of_the_kernel_is_in_its_set(kind: str) -> None:
    """Also where no mass can get to: `kernel` is documented as the transitions chosen in the sets."""
    instances = [KINDS[kind](seed) for seed in range(20)]
    assert max(row_violation(instance, instance.solve().kernel).max() for instance in instances) <= 1e-12


def test_impossible_transitions_cost_nothing_and_change_nothing() -> None:
    """Whatever the reference holds where a transition is impossible only adds to the divergence."""
    instance = random_instance(3, (2, 4, 4), support=0.5)
    noise = np.where(possible(instance)[:, None], 0.0, np.random.default_rng(0).random(instance.reference.shape))
    plain, noisy = instance.solve(), instance.but(reference=instance.reference + noise).solve()
    assert noise.sum() > 1
    np.testing.assert_array_equal(noisy.z, plain.z)
    np.testing.assert_allclose(noisy.value, plain.value + noise.sum(), rtol=1e-12)


@pytest.mark.parametrize("states", [3, 14])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-20, 2.0**40])
def test_the_currency_of_costs_and_budgets_does_not_matter(unit: float, states: int) -> None:
    costs = np.array([0.3, 2.0, 1.0])
    instance = random_instance(3, (3, 4, states), budget=0.5).but(cost=costs)
    one, other = instance.solve(), instance.but(cost=unit * costs, budget=unit * 0.5).solve()
    np.testing.assert_array_equal(one.z, other.z)
    np.testing.assert_array_equal(one.prices, unit * other.prices)
