"""The projection with phases: what must be equal is equal, and any instance meets the optimality conditions."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from instances import (
    Instance,
    differing,
    faults,
    own_sets_per_step,
    per_step,
    random_feasible,
    random_instance,
    timed_instance,
    untimed,
)

pytestmark = pytest.mark.compiled


def repeated(instance: Instance, phases: int) -> Instance:
    """Return the instance with its sets in each of several phases, the last without any step."""
    tables = {name: getattr(instance, name) for name in ("low", "high", "radius")}
    every = {k: None if t is None else np.stack([t] * phases, axis=1) for k, t in tables.items()}
    horizon = instance.reference.shape[1]
    return instance.but(phase_of=np.random.default_rng(0).integers(phases - 1, size=horizon), **every)


ONE_PHASE = {
    "box": random_instance(0, (3, 6, 3)),
    "box, zeros": random_instance(1, (3, 6, 4), support=0.5),
    "ball": random_instance(2, (3, 6, 3), radius=0.3),
    "many states": random_instance(3, (2, 4, 14), width=0.1),
    "few successors": random_instance(4, (1, 8, 30), support=0.05),
    "few successors, three arms": random_instance(5, (3, 8, 30), support=0.05),
    "long": random_instance(6, (2, 80, 2)),
    "idle steps, weights": random_instance(7, (2, 5, 3), budget=per_step(2, 5), weights=[2.0, 0.5]),
    "chances": untimed(8, (3, 6, 3)),
}


@pytest.mark.parametrize("kind", ONE_PHASE)
def test_phases_that_are_all_alike_are_one_phase(kind: str) -> None:
    instance = ONE_PHASE[kind]
    assert not differing(repeated(instance, 4).solve(), instance.solve())


@pytest.mark.parametrize("kind", ["box", "ball"])
def test_one_phase_may_have_an_axis_and_any_phases_of_steps(kind: str) -> None:
    """A problem whose rewards alone have phases: its kernels, and their sets, have one."""
    instance = ONE_PHASE[kind]
    named = instance.solve(phase_of=[0, 1, 2, 9, 1, 0])
    assert not differing(named, instance.solve())
    tables = {name: getattr(instance, name) for name in ("low", "high", "radius")}
    assert not differing(instance.but(**{k: None if t is None else t[:, None] for k, t in tables.items()}).solve(), named)


@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("shape", [(3, 6, 3), (1, 5, 16)], ids=str)
def test_a_phase_per_step_is_the_same_sets_at_every_step(shape: tuple[int, int, int], radius: float | None) -> None:
    instance = timed_instance(0, shape, 3, radius=radius)
    assert not differing(own_sets_per_step(instance).solve(), instance.solve())


def test_names_of_phases_do_not_matter() -> None:
    instance = timed_instance(1, (3, 8, 3), 4, support=0.6)
    order = np.array([2, 0, 3, 1])
    turned = instance.but(low=instance.low[:, order], high=instance.high[:, order])
    assert not differing(turned.but(phase_of=np.argsort(order)[instance.phase_of]).solve(), instance.solve())


@pytest.mark.parametrize("radius", [None, 0.3])
def test_a_start_for_certain_is_a_state(radius: float | None) -> None:
    instance = timed_instance(2, (3, 6, 3), radius=radius, spread_start=False)
    assert not differing(instance.but(start=np.eye(3)[instance.start]).solve(), instance.solve())


def test_some_arms_may_start_for_certain() -> None:
    instance = timed_instance(3, (3, 4, 3))
    start = np.array(instance.start)
    start[1] = [0.0, 1.0, 0.0]
    mixed = instance.but(start=start)
    answer = mixed.solve()
    assert not faults(mixed, answer)
    np.testing.assert_array_equal(answer.mass[1, 0].sum(axis=1), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("chance", [1e-3, 1e-9, 1e-30, 1e-200, 5e-324])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_starts_that_hardly_ever_happen(chance: float, radius: float | None) -> None:
    instance = timed_instance(4, (3, 5, 3), radius=radius)
    rare = instance.but(start=[[chance, 1.0 - chance, 0.0], [0.0, chance, 1.0 - chance], [0.5, 0.5, 0.0]])
    answer = rare.solve()
    assert not faults(rare, answer)
    np.testing.assert_allclose(answer.mass[:, 0].sum(axis=2), rare.start, rtol=1e-12)
    assert not faults(rare, rare.solve(warm=instance.solve()))


def test_probabilities_that_sum_to_one_by_rounding_only_are_taken() -> None:
    for off in (1e-13, -1e-13, 9e-10, -9e-10):
        instance = timed_instance(5, (2, 4, 2)).but(start=[[0.5 + off, 0.5], [0.3, 0.7]], budget=2.0)
        assert not faults(instance, instance.solve())


@pytest.mark.parametrize("radius", [None, 0.3])
def test_a_weight_stands_for_like_arms(radius: float | None) -> None:
    """A block of three arms whose start state is one or another, in phases; and the arms one by one."""
    block = timed_instance(6, (2, 5, 3), radius=radius, weights=[3.0, 1.0], budget=1.2)
    every = [0, 0, 0, 1]
    names = ("reference", "low", "high", "radius", "start")
    tables = {name: getattr(block, name) for name in names}
    alone = block.but(weights=None, **{k: None if t is None else np.asarray(t)[every] for k, t in tables.items()})
    together, apart = block.solve(), alone.solve()
    assert not faults(alone, apart)
    np.testing.assert_allclose(apart.mass, together.mass[every], atol=1e-7)
    np.testing.assert_allclose(apart.value, together.value, rtol=1e-9)


COUNTS = st.integers(1, 5)
RADII = st.none() | st.sampled_from([0.0, 1e-3, 0.1, 0.6, 3.0])


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Draw shape, phases (as few as 1, and more than steps), sets, start, budgets and weights."""
    arms, horizon, states, phases = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(COUNTS), draw(st.integers(1, 7))
    one = st.sampled_from([0.0, 0.01, 0.3, 1.0, 1.5]).map(lambda share: share * arms)
    weights = st.lists(st.floats(0.1, 50), min_size=arms, max_size=arms)
    instance = timed_instance(
        draw(st.integers(0, 2**32 - 1)),
        (arms, horizon, states),
        phases,
        spread_start=draw(st.booleans()),
        width=draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.4, 1.0])),
        radius=draw(RADII),
        support=draw(st.sampled_from([1.0, 0.6, 0.3])),
        spread=draw(st.floats(0.1, 2.0)),
        budget=draw(one | st.lists(one, min_size=horizon, max_size=horizon)),
        weights=draw(st.none() | weights),
    )
    return instance.but(reference=instance.reference * draw(st.sampled_from([1e-30, 1.0, 1e6])))


@pytest.mark.slow
@given(instances())
@settings(max_examples=100)
def test_any_answer_is_feasible_and_proves_itself_optimal(instance: Instance) -> None:
    assert not faults(instance, instance.solve())


@pytest.mark.slow
@given(instances(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_no_feasible_point_is_nearer(instance: Instance, seed: int) -> None:
    other = random_feasible(instance, seed)
    assert instance.divergence(other) >= instance.solve().value * (1 - 1e-9) - 1e-9


@given(instances())
@settings(max_examples=60)
def test_any_phases_are_sets_at_every_step(instance: Instance) -> None:
    if instance.high is not None:  # of balls, a step alone may exclude what its phase does not
        assert not differing(own_sets_per_step(instance).solve(), instance.solve())
