"""What must hold of every projection, whatever is projected: hypothesis looks for counterexamples."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import kl_div

from instances import Instance, faults, possible, random_feasible, random_instance
from rmab.common.arrays import FloatArray
from rmab.solvers.projection.project import Projection

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.4, 1.0])
RADII = st.none() | st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.6, 2.0, 3.0])
EXAMPLES = settings(max_examples=60)


@st.composite
def instances(draw: st.DrawFn, *, weighted: bool = True, most: float = 2.0) -> Instance:
    """Draw shape, widths, support, budget (one, or one per step, some of them 0), scale and weights."""
    arms, horizon, states = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    one = st.sampled_from([0.0, 0.01, 0.3, 1.0, 1.5]).map(lambda share: share * arms)
    budget = draw(one | st.lists(one, min_size=horizon, max_size=horizon))
    weight = st.floats(0.1, 50)
    weights = draw(st.none() | st.lists(weight, min_size=arms, max_size=arms)) if weighted else None
    instance = random_instance(
        draw(SEEDS),
        (arms, horizon, states),
        width=draw(WIDTHS),
        radius=draw(RADII),
        support=draw(st.sampled_from([1.0, 0.6, 0.3])),
        spread=draw(st.floats(0.1, most)),
        budget=budget,
        weights=weights,
    )
    return instance.but(reference=instance.reference * draw(st.sampled_from([1e-30, 1.0, 1e6])))


def filled(instance: Instance, z: FloatArray) -> FloatArray:
    """Return z as a reference: positive where allowed, also where no mass can be."""
    return np.where((z == 0) & possible(instance)[:, None], 1.0, z)


def apart(one: Projection, other: Projection, tolerance: float = 1e-7) -> list[str]:
    """Return in what two answers differ by more than the tolerance: mass, z, prices and value."""
    alike = {
        "mass": np.allclose(one.mass, other.mass, atol=tolerance, rtol=0),
        "z": np.allclose(one.z, other.z, atol=tolerance, rtol=0),
        "prices": np.allclose(one.prices, other.prices, atol=100 * tolerance, rtol=100 * tolerance),
        "value": np.allclose(one.value, other.value, rtol=tolerance, atol=tolerance),
    }
    return [name for name, holds in alike.items() if not holds]


@pytest.mark.slow
@given(instances())
@settings(max_examples=150)
def test_answer_is_feasible_and_proves_itself_optimal(instance: Instance) -> None:
    assert not faults(instance, instance.solve())


@pytest.mark.slow
@given(instances(), SEEDS)
@EXAMPLES
def test_no_feasible_point_is_nearer(instance: Instance, seed: int) -> None:
    answer, other = instance.solve(), random_feasible(instance, seed)
    assert instance.divergence(other) >= answer.value * (1 - 1e-9) - 1e-9


@pytest.mark.slow
@given(instances(), SEEDS)
@EXAMPLES
def test_generalised_pythagorean_inequality(instance: Instance, seed: int) -> None:
    answer, other = instance.solve(), random_feasible(instance, seed)
    to_answer = float(instance.program.weights @ kl_div(other, answer.z).sum(axis=(1, 2, 3, 4)))
    left, right = instance.divergence(other), to_answer + answer.value
    assert left >= right - 1e-7 * max(1.0, abs(right))


@pytest.mark.slow
@given(instances(), SEEDS)
@EXAMPLES
def test_projection_of_a_feasible_point_is_itself(instance: Instance, seed: int) -> None:
    point = random_feasible(instance, seed)
    again = instance.but(reference=filled(instance, point))
    answer = again.solve()
    assert not faults(again, answer)
    np.testing.assert_allclose(answer.z, point, atol=1e-7)
    np.testing.assert_allclose(answer.prices, 0.0, atol=1e-6)


@pytest.mark.slow
@given(instances())
@EXAMPLES
def test_projecting_twice_changes_nothing(instance: Instance) -> None:
    """The kernels sit on the bounds of their sets now, and the budget binds without a price."""
    first = instance.solve()
    again = instance.but(reference=filled(instance, first.z))
    second = again.solve()
    assert not faults(again, second)
    np.testing.assert_allclose(second.z, first.z, atol=1e-6)


@given(instances(weighted=False), st.lists(st.integers(1, 4), min_size=4, max_size=4))
@EXAMPLES
def test_a_weight_is_that_many_copies_of_the_arm(instance: Instance, many: list[int]) -> None:
    counts = np.array(many[: len(instance.low)])
    copies = Instance(
        *(
            None if part is None else np.repeat(part, counts, axis=0)
            for part in (instance.reference, instance.low, instance.high, instance.start)
        ),
        instance.budget,
        None if instance.radius is None else np.repeat(instance.radius, counts, axis=0),
    )
    grouped, apart = instance.but(weights=counts).solve(), copies.solve()
    np.testing.assert_allclose(np.repeat(grouped.z, counts, axis=0), apart.z, atol=1e-7)
    np.testing.assert_allclose(grouped.prices, apart.prices, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(grouped.value, apart.value, rtol=1e-8, atol=1e-8)


@given(instances(), st.randoms(use_true_random=False))
@EXAMPLES
def test_permuting_arms_permutes_the_answer(instance: Instance, random: object) -> None:
    order = list(range(len(instance.low)))
    random.shuffle(order)
    parts = {
        name: np.asarray(value)[order]
        for name in ("reference", "low", "high", "start", "radius", "weights")
        if (value := getattr(instance, name)) is not None
    }
    plain, moved = instance.solve(), instance.but(**parts).solve()
    np.testing.assert_allclose(plain.z[order], moved.z, atol=1e-8)
    np.testing.assert_allclose(plain.prices, moved.prices, atol=1e-6, rtol=1e-6)


@given(instances(), st.data())
@EXAMPLES
def test_scaling_an_arm_at_a_step_changes_only_potentials(instance: Instance, data: st.DataObject) -> None:
    arms, horizon = instance.reference.shape[:2]
    exponent = np.array(data.draw(st.lists(st.integers(-40, 40), min_size=arms * horizon, max_size=arms * horizon)))
    factor = 10.0 ** exponent.reshape(arms, horizon)
    scaled = instance.but(reference=instance.reference * factor[:, :, None, None, None])
    plain, other = instance.solve(), scaled.solve()
    np.testing.assert_allclose(other.z, plain.z, atol=1e-8)
    np.testing.assert_allclose(other.prices, plain.prices, atol=1e-6, rtol=1e-6)
    # A factor at step h adds its logarithm to every potential up to h.
    shift = np.log(10.0) * exponent.reshape(arms, horizon)[:, ::-1].cumsum(axis=1)[:, ::-1]
    heavy = plain.mass.sum(axis=3) > 1e-3
    moved = other.potentials - plain.potentials - shift[..., None]
    np.testing.assert_allclose(moved[heavy], 0.0, atol=1e-4)


@given(instances())
@EXAMPLES
def test_arguments_are_not_changed(instance: Instance) -> None:
    names = ("reference", "low", "high", "radius", "start", "budget", "weights")
    given_ = {name: np.array(value) for name in names if (value := getattr(instance, name)) is not None}
    before = {name: value.copy() for name, value in given_.items()}
    answer = instance.but(**given_).solve()
    for name, value in given_.items():
        np.testing.assert_array_equal(value, before[name])
        assert value.flags.writeable
        assert not np.shares_memory(value, answer.kernel)
        assert not np.shares_memory(value, answer.mass)


@pytest.mark.slow
@given(instances())
@EXAMPLES
def test_warm_start_gives_the_same_answer_sooner(instance: Instance) -> None:
    cold = instance.solve()
    warm = instance.solve(warm=cold)
    assert not faults(instance, warm)
    assert not apart(warm, cold)
    assert warm.iterations <= cold.iterations


@given(instances(), SEEDS)
@EXAMPLES
def test_warm_start_from_another_answer_gives_the_same_answer(instance: Instance, seed: int) -> None:
    """An earlier projection with other rewards and other budgets, as a learner has it at hand."""
    rng = np.random.default_rng(seed)
    other = instance.but(
        reference=instance.reference * np.exp(rng.random(instance.reference.shape)), budget=rng.random() * len(instance.low)
    )
    assert not apart(instance.solve(warm=other.solve()), instance.solve())


@given(instances(), st.floats(1.1, 3))
@EXAMPLES
def test_more_freedom_brings_the_projection_nearer(instance: Instance, factor: float) -> None:
    answer = instance.solve()
    richer = instance.but(budget=np.asarray(instance.budget) * factor + 0.01).solve()
    assert richer.value <= answer.value * (1 + 1e-9) + 1e-9
    if instance.high is None:
        wider = instance.but(radius=instance.radius * factor + 0.01)
    else:
        wider = instance.but(low=instance.low / factor, high=np.minimum(instance.high * factor, 1.0))
    assert wider.solve().value <= answer.value * (1 + 1e-9) + 1e-9


@given(instances())
@EXAMPLES
def test_the_same_call_gives_the_same_bits(instance: Instance) -> None:
    one, two = instance.solve(), instance.solve()
    np.testing.assert_array_equal(one.z, two.z)
    np.testing.assert_array_equal(one.potentials, two.potentials)
    assert (one.value, one.gap, one.residual, one.iterations) == (two.value, two.gap, two.residual, two.iterations)


@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch, seed: int, radius: float | None) -> None:
    instance = random_instance(seed, (7, 5, 3), radius=radius, budget=1.5)
    answers = []
    for chunk in (1, 200, 10**9):
        for kind in ("few", "many"):
            monkeypatch.setattr(f"rmab.solvers.projection.{kind}.CHUNK", chunk)
        answers.append(instance.solve())
    for other in answers[1:]:
        assert not apart(other, answers[0], 1e-12)
        assert other.iterations == answers[0].iterations


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    from rmab.common import processes as threads

    for kind in ("few", "many"):
        monkeypatch.setattr(f"rmab.solvers.projection.{kind}.CHUNK", 1)
    instance = random_instance(0, (7, 5, 3))
    usual = instance.solve()
    monkeypatch.setattr("rmab.common.processes.cores", lambda: count)
    threads.pool.cache_clear()
    try:
        other = instance.solve()
    finally:
        threads.pool().shutdown()
        threads.pool.cache_clear()
    np.testing.assert_array_equal(other.z, usual.z)
