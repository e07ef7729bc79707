"""Hard instances: from learning runs, near-degenerate sets, references over 200 orders of magnitude, large shapes."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import corpus
import rmab
from instances import Instance, faults, infeasibility, random_instance
from rmab.common.arrays import FloatArray, IntArray
from rmab.errors import SolverError
from rmab.solvers.projection.newton import minimise_dual, tempered
from rmab.solvers.projection.program import make_program
from rmab.solvers.transitions import TransitionSets
from rmab.tasks.deadline import kernel as deadline_kernel

FILES = sorted(corpus.FOLDER.glob("*.npz"))


def one_row(row: list[float], low: list[float], high: list[float] | None, radius: float | None = None) -> Instance:
    """One arm, one step: both actions of the start state have this row, those of other states are unknown."""
    states = len(row)
    table = np.ones((1, 1, states, 2, states))
    table[0, 0, 0] = row
    bottom, top = np.zeros((1, states, 2, states)), np.ones((1, states, 2, states))
    if high is None:
        bottom[...] = low
        return Instance(table, bottom, None, [0], 1.0, np.full((1, states, 2), radius))
    bottom[0, 0], top[0, 0] = low, high
    return Instance(table, bottom, top, [0], 1.0)


def eager(passive: float) -> Instance:
    """One arm, one step, one state: nearly all of the reference is active, the budget allows half."""
    table, sure = np.array([passive, 1.0]).reshape(1, 1, 1, 2, 1), np.ones((1, 1, 2, 1))
    return Instance(table, sure, sure, [0], 0.5)


def over_200_orders(seed: int, **options: object) -> Instance:
    """Entries of the reference spread evenly, in logarithm, from 1e-200 to 1."""
    instance = random_instance(seed, **options)
    powers = np.random.default_rng(seed).uniform(-200, 0, size=instance.reference.shape)
    return instance.but(reference=np.where(instance.reference > 0, 10.0**powers, 0.0))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_instances_of_learning_runs(path: Path) -> None:
    instance = corpus.read(path)
    assert not faults(instance, instance.solve(), most=30)


def test_the_corpus_is_there() -> None:
    assert len(FILES) >= 10
    assert sum(path.stat().st_size for path in FILES) < 500_000


@pytest.mark.parametrize("options", [{}, {"rate": 30.0}, {"ball": True}], ids=["plain", "fast", "ball"])
def test_a_learning_run_warm_started_from_episode_to_episode(options: dict[str, float]) -> None:
    previous = None
    for instance in corpus.learning_run(seed=7, arms=4, budget=2, horizon=8, episodes=6, **options):
        cold, warm = instance.solve(), instance.solve(warm=previous)
        assert not faults(instance, warm, most=30)
        np.testing.assert_allclose(warm.z, cold.z, atol=1e-7)
        previous = warm


@pytest.mark.parametrize("width", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("seed", range(3))
def test_narrow_boxes(seed: int, width: float) -> None:
    instance = random_instance(seed, (3, 6, 4), width=width)
    assert not faults(instance, instance.solve(), most=30)


@pytest.mark.parametrize("seed", range(10))
def test_boxes_of_a_few_floating_point_numbers(seed: int) -> None:
    instance = random_instance(seed, (2, 4, 3), width=0.0)
    low, high, rng = instance.low.copy(), instance.high.copy(), np.random.default_rng(seed)
    for _ in range(4):
        low = np.where(rng.random(low.shape) < 0.5, np.nextafter(low, 0), low)
        high = np.where(rng.random(high.shape) < 0.5, np.nextafter(high, 1), high)
    few = instance.but(low=low, high=high)
    assert not faults(few, few.solve(), most=30)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("end", ["lower", "upper"])
def test_boxes_that_meet_the_simplex_in_one_corner(seed: int, end: str) -> None:
    """Sum of lower, or of upper, is exactly 1: the row is known, though the box is wide."""
    instance = random_instance(seed, (2, 5, 4))
    quarters = np.random.default_rng(seed).permuted(np.broadcast_to([0.5, 0.25, 0.125, 0.125], instance.low.shape), axis=3)
    low, high = (quarters, np.minimum(quarters + 0.3, 1)) if end == "lower" else (quarters / 2, quarters)
    wide = instance.but(low=low, high=high)
    answer = wide.solve()
    assert not faults(wide, answer, most=30)
    exact = instance.but(low=quarters, high=quarters).solve()
    np.testing.assert_allclose(answer.z, exact.z, atol=1e-8)


@pytest.mark.parametrize("upper", [1.0, 0.3])
def test_successors_that_no_distribution_can_use(upper: float) -> None:
    """Lower bounds that sum to 1 leave nothing for a successor whose upper bound is positive: it is never reached."""
    instance = random_instance(0, (2, 5, 3))
    low, high = np.zeros_like(instance.low), np.zeros_like(instance.high)
    low[..., 0], high[..., 0], high[..., 2] = 1.0, 1.0, upper
    low[..., 2, :, :], high[..., 2, :, :] = 0.0, 1.0
    table = np.where(high[:, None] > 0, instance.reference, 0.0)
    hard = instance.but(low=low, high=high, reference=table, start=[0, 0])
    answer = hard.solve()
    assert not faults(hard, answer, most=60)
    assert answer.mass[:, :, 1:].max() <= 1e-14


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [None, 0.2])
def test_rows_with_one_successor(seed: int, radius: float | None) -> None:
    instance = random_instance(seed, (3, 8, 5), support=0.0, radius=radius)
    answer = instance.solve()
    assert not faults(instance, answer, most=30)
    np.testing.assert_allclose(answer.kernel, np.rint(answer.kernel), atol=1e-15)


@pytest.mark.parametrize("mass", [1e-9, 1e-30, 1e-150])
@pytest.mark.parametrize("seed", range(2))
def test_masses_that_must_be_tiny(seed: int, mass: float) -> None:
    """Some successor has an upper bound of `mass`, and in other rows a lower bound of it."""
    instance = random_instance(seed, (2, 6, 3), budget=0.5)
    low, high = instance.low.copy(), instance.high.copy()
    low[..., 2], high[..., 2], high[..., 0], high[..., 1] = 0.0, mass, 1.0, 1.0
    low[:, 1, :, 2] = mass
    tiny = instance.but(low=low, high=high, start=[0, 1])
    answer = tiny.solve()
    assert not faults(tiny, answer)
    assert 0 < answer.mass[1, 1:, 2].max() <= 1.01 * mass


@pytest.mark.parametrize("eta", [1.0, 30.0, 100.0])
@pytest.mark.parametrize("radius", [None, 0.2])
def test_large_steps_of_a_learner(eta: float, radius: float | None) -> None:
    """Rewards in [0, 1], times eta, in the exponent of a reference that is spread over the whole horizon."""
    instance = random_instance(0, (4, 20, 3), spread=0.1, radius=radius, budget=1.2)
    reward = np.random.default_rng(0).random((4, 1, 3, 2, 1))
    hard = instance.but(reference=instance.reference * np.exp(eta * reward))
    assert not faults(hard, hard.solve())


@pytest.mark.parametrize("passive", [1e-2, 1e-4, 1e-6, 1e-12, 1e-15, 1e-50, 1e-200])
def test_an_arm_that_wants_to_be_active_far_beyond_the_budget(passive: float) -> None:
    instance = eager(passive)
    answer = instance.solve()
    assert not faults(instance, answer)
    np.testing.assert_allclose(answer.prices, -np.log(passive), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [4.0, 3.0, 0.4])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_references_over_200_orders(radius: float | None, budget: float) -> None:
    failures = []
    for seed, support in product(range(6), (1.0, 0.5)):
        instance = over_200_orders(seed, shape=(3, 5, 3), radius=radius, support=support, budget=budget)
        try:
            assert not faults(instance, instance.solve())
        except (AssertionError, SolverError) as error:
            failures.append((seed, support, str(error)[:80]))
    assert not failures


ROWS: dict[str, Callable[[], Instance]] = {
    "box, all far below 1": lambda: one_row([1.2e-174, 5.3e-80, 5.6e-175], [0.27, 0.08, 0.09], [0.76, 0.35, 0.95]),
    "box, all far above 1": lambda: one_row([1.2e200, 5.3e294, 5.6e199], [0.27, 0.08, 0.09], [0.76, 0.35, 0.95]),
    "box, the unlikely must take the rest": lambda: one_row([1.0, 1e-300], [0.0, 0.0], [0.5, 1.0]),
    "ball, unlikely centre": lambda: one_row([1e-20, 1.0], [0.5, 0.5], None, 0.1),
    "ball, very unlikely centre": lambda: one_row([1e-180, 1.0, 1e-90], [0.3, 0.3, 0.4], None, 0.5),
    "ball, unlikely and impossible": lambda: one_row([1e-180, 0.0, 1.0], [0.5, 0.0, 0.5], None, 1.5),
}


@pytest.mark.parametrize("name", ROWS)
def test_single_rows_of_great_spread(name: str) -> None:
    instance = ROWS[name]()
    if instance.high is None:  # one step: the other states' rows carry nothing, but need a reference too
        instance.reference[0, 0, 1:] = np.where(instance.low[0, 1:] > 0, 1.0, instance.reference[0, 0, 1:])
    assert not faults(instance, instance.solve())


def test_a_successor_that_underflows_but_must_be_used() -> None:
    """Two steps, each with a reference of 1e-200 for state 1, where the box allows at most half to state 0."""
    table = np.ones((1, 2, 2, 2, 2))
    table[0, 0, :, :, 1] = table[0, 1, 1] = 1e-200
    high = np.ones((1, 2, 2, 2))
    high[..., 0] = 0.5
    instance = Instance(table, np.zeros_like(high), high, [0], 1.0)
    answer = instance.solve()
    assert infeasibility(instance, answer) <= 1e-12
    assert not faults(instance, answer)


def test_rows_that_underflow_as_a_whole() -> None:
    """States 1 and 2 are left only for each other, at 1e-200 a step, while state 0 costs nothing."""
    table, high = np.ones((1, 3, 3, 2, 3)), np.ones((1, 3, 2, 3))
    high[0, 1:, :, 0] = 0.0
    table[0, :, 1:] = 1e-200
    table[0, :, 1:, :, 0] = 0.0
    instance = Instance(table, np.zeros_like(high), high, [0], 1.0)
    assert not faults(instance, instance.solve())


SHAPES = {"many arms": (1000, 6, 3), "many states": (2, 5, 40), "long": (2, 200, 3), "long, many states": (1, 100, 40)}


@pytest.mark.parametrize("radius", [None, 0.2])
@pytest.mark.parametrize("name", SHAPES)
def test_large_shapes(name: str, radius: float | None) -> None:
    instance = random_instance(0, SHAPES[name], radius=radius, spread=1.0)
    answer = instance.solve()
    assert infeasibility(instance, answer) <= 1e-12
    assert answer.residual <= 1e-8
    assert answer.iterations <= 60
    spent = instance.divergence(answer.z)
    assert abs(answer.value - spent) <= 1e-9 * spent
    assert abs(answer.gap) <= 1e-7 * spent
    if radius is None:
        assert not faults(instance, answer)


def test_deadline_scheduling_with_known_support_and_a_uniform_reference() -> None:
    """The first episode of a learner who knows the support: 120 states, one class of 100 spots."""
    possible: FloatArray = deadline_kernel()[None] > 0
    table = np.broadcast_to(possible[:, None] / (2 * 120**2), (1, 8, 120, 2, 120))
    instance = Instance(table, np.zeros(possible.shape), possible.astype(float), [0], 30.0, weights=[100.0])
    assert not faults(instance, instance.solve())


def test_budgets_of_very_different_sizes() -> None:
    budgets = np.array([1e-12, 3.0, 1e-6, 0.0, 1e6, 1e-3])
    instance = random_instance(0, (4, 6, 3), budget=budgets)
    answer = rmab.solvers.project(instance.reference, instance.low, instance.high, instance.start, budgets)
    assert not faults(instance, answer)
    assert (answer.mass[..., 1].sum(axis=(0, 2)) <= budgets * (1 + 1e-12)).all()


def steep_deadline(seed: int, width: float) -> Instance:
    """30 steps of the deadline class with rewards at random, 300 nats from best to worst, and kernels known up to width."""
    kernel = deadline_kernel()[None]
    possible: FloatArray = kernel > 0
    low, high = np.maximum(kernel - width, 0.0), np.minimum(kernel + width, 1.0) * possible
    exponent = 300.0 * np.random.default_rng(seed).random((120, 2))
    table = possible[:, None] * np.exp(exponent - exponent.max())[None, None, :, :, None]
    return Instance(np.broadcast_to(table, (1, 30, 120, 2, 120)), low, high, [0], 30.0, weights=[100.0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_steep_rewards_far_from_any_start(seed: int) -> None:
    """Newton with the point's own masses needs 75 to 134 iterations for these, and a path of milder references; or fails."""
    instance = steep_deadline(seed, 0.1)
    assert not faults(instance, instance.solve())


@pytest.mark.slow
def test_a_warm_start_from_another_world() -> None:
    """The plan for other rewards is no place to start from; the answer is the same."""
    one, other = steep_deadline(0, 0.1), steep_deadline(1, 0.1)
    cold, warm = other.solve(), other.solve(warm=one.solve())
    assert not faults(other, warm)
    np.testing.assert_allclose(warm.mass, cold.mass, atol=1e-7)


def spread_over_a_hundred_orders(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, float]:
    """Return reference, lower and upper bounds, start and budget: references from 1e-100 to 1 that depend on every index."""
    rng = np.random.default_rng((13, seed))
    arms, horizon, states = (int(rng.integers(1, most)) for most in (7, 13, 5))
    kernels = rng.dirichlet(np.ones(states) * rng.choice([0.02, 0.3, 1.0]), size=(arms, states, 2))
    width = rng.choice([0, 1e-6, 0.01, 0.1, 0.5, 1.0])
    sides = [(0, 0, 0, 1, 0), (1, 0, 0, 1, 0), (0, 1, 0, 1, 0), (0, 0, 1, 0, 0)]
    sides += [(1, 0, 1, 1, 0), (1, 1, 0, 0, 0), (0, 0, 0, 0, 1), (1, 1, 1, 1, 1)]
    exponent = np.zeros((arms, horizon, states, 2, states))
    for side in sides:
        weight = rng.choice([0, 0, 1.0])
        exponent += weight * rng.uniform(
            -100, 0, size=[n if own else 1 for n, own in zip(exponent.shape, side, strict=True)]
        )
    if exponent.min() < -100:
        exponent *= 100 / -exponent.min()
    if rng.random() < 0.5:
        exponent = np.round(exponent / 50) * 50
    budget = 0.5 if rng.random() < 0.7 else rng.choice([1e-9, 1e-3, arms - 1e-9, arms - 1e-3, 0.25])
    boxes = np.maximum(kernels - width, 0.0), np.minimum(kernels + width, 1.0)
    return 10.0**exponent, *boxes, rng.integers(states, size=arms), float(budget)


@pytest.mark.parametrize("seed", [3886, 4806, 13389, *range(20)])
def test_references_over_a_hundred_orders_of_magnitude(seed: int) -> None:
    """In the first three, nodes with hardly any mass asked for steps of 1e20, and left none to the others."""
    reference, low, high, start, budget = spread_over_a_hundred_orders(seed)
    answer = rmab.solvers.project(reference, low, high, start, budget)
    assert answer.residual <= 1e-8
    assert abs(answer.gap) <= 1e-6 * max(abs(answer.value), 1.0)
    assert answer.mass[..., 1].sum(axis=(0, 2)).max() <= budget + 1e-8


def test_the_path_of_powers_leads_to_the_same_point() -> None:
    reference, low, high, start, budget = spread_over_a_hundred_orders(8)
    program = make_program(reference, TransitionSets.boxes(low, high), start, budget)
    found = tempered(program, 1e-8)
    assert found is not None
    straight, _ = minimise_dual(program, None, 1e-8)
    np.testing.assert_allclose(found[0].solution().mass, straight.solution().mass, atol=1e-6)
