"""The projection with phases, budgets by step and start probabilities, against a solver that knows nothing but steps."""

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmab
from instances import (
    Instance,
    certify,
    possible_at_steps,
    random_feasible,
    random_instance,
    row_violation,
    timed_instance,
)
from rmab.common.arrays import BoolArray, FloatArray
from rmab.errors import ModelError
from rmab.solvers.projection.compiled.dual import dual
from rmab.solvers.projection.newton import tempered
from rmab.solvers.projection.project import Projection, project_onto
from rmab.solvers.transitions import TransitionSets

pytestmark = pytest.mark.compiled

SEEDS = range(2)


def own_sets_per_step(instance: Instance) -> Instance:
    """Give every step a phase of its own, with the sets that it has anyway: K = H."""
    tables = {name: getattr(instance, name) for name in ("low", "high", "radius")}
    return instance.but(phase_of=None, **{k: None if t is None else instance.at_steps(t) for k, t in tables.items()})


def untimed(seed: int, shape: tuple[int, int, int], **options: Any) -> Instance:
    """One phase, with start probabilities all the same."""
    return random_instance(seed, shape, **options).but(start=timed_instance(seed, shape).start)


def some_radii(instance: Instance) -> Instance:
    """Balls of radius 0, small, middling and so large that they hold every distribution."""
    return instance.but(radius=np.random.default_rng(0).choice([0.0, 1e-3, 0.3, 2.0, 5.0], size=instance.radius.shape))


def known_by_night(instance: Instance) -> Instance:
    """In phase 0 nothing is known of any pair, in phase 1 all is."""
    middle = (instance.low + instance.high) / 2
    middle /= middle.sum(axis=4, keepdims=True)
    low, high = np.zeros_like(middle), np.where(instance.high > 0, 1.0, 0.0)
    low[:, 1], high[:, 1] = middle[:, 1], middle[:, 1]
    return instance.but(low=low, high=high)


def per_step(arms: int, horizon: int) -> FloatArray:
    """(H,) budgets: tight, zero, slack, in turn."""
    return np.resize([0.4 * arms, 0.0, 0.1, arms + 1.0, 0.0, 0.05], horizon)


KINDS: dict[str, Callable[[int], Instance]] = {
    "box": lambda seed: timed_instance(seed, spread=0.5),
    "box, states to start from": lambda seed: timed_instance(seed, (3, 5, 3), 3, spread=0.5, spread_start=False),
    "box, K = H": lambda seed: own_sets_per_step(timed_instance(seed, (2, 4, 3), 4, spread=0.5)),
    "box, zeros": lambda seed: timed_instance(seed, (2, 4, 4), 3, support=0.4, spread=0.5),
    "box, known by night": lambda seed: known_by_night(timed_instance(seed, (2, 5, 3), spread=0.5)),
    "box, one phase": lambda seed: untimed(seed, (3, 4, 3), spread=0.5),
    "box, a phase without steps": lambda seed: timed_instance(seed, (2, 3, 3), 9, spread=0.5),
    "ball": lambda seed: timed_instance(seed, radius=0.4, spread=0.5),
    "ball, K = H": lambda seed: own_sets_per_step(timed_instance(seed, (2, 4, 3), 4, radius=0.3, spread=0.5)),
    "ball, zeros": lambda seed: timed_instance(seed, (2, 4, 4), 3, radius=0.3, support=0.4, spread=0.5),
    "ball, one phase": lambda seed: untimed(seed, (2, 4, 3), radius=0.3, spread=0.5),
    "ball, a phase without steps": lambda seed: timed_instance(seed, (2, 3, 3), 9, radius=0.3, support=0.6, spread=0.5),
    "balls of every size": lambda seed: some_radii(timed_instance(seed, (2, 4, 3), radius=1.0, spread=0.5)),
    "budget per step": lambda seed: timed_instance(seed, (2, 6, 3), 3, budget=per_step(2, 6), spread=0.5),
    "budget per step, zeros": lambda seed: timed_instance(
        seed, (2, 6, 3), 3, budget=per_step(2, 6), support=0.5, spread=0.5
    ),
    "budget per step, ball": lambda seed: timed_instance(
        seed, (2, 6, 3), 3, budget=per_step(2, 6), radius=0.2, support=0.6, spread=0.5
    ),
    "no budget": lambda seed: timed_instance(seed, (2, 4, 4), budget=0.0, support=0.4, spread=0.5),
    "budget of everyone": lambda seed: timed_instance(seed, (3, 4, 3), budget=3.0, spread=0.5),
    "weights": lambda seed: timed_instance(seed, (3, 4, 3), weights=[1.0, 7.0, 2.5], budget=3.0, spread=0.5),
    "weights, ball": lambda seed: timed_instance(
        seed, (3, 4, 2), weights=[1.0, 7.0, 2.5], budget=3.0, radius=0.3, spread=0.5
    ),
    "one arm": lambda seed: timed_instance(seed, (1, 5, 3), 3, spread=0.5),
    "one step": lambda seed: timed_instance(seed, (3, 1, 3), 2, spread=0.5),
    "one state": lambda seed: timed_instance(seed, (3, 4, 1), spread=0.5),
    "fourteen states": lambda seed: timed_instance(seed, (1, 2, 14), width=0.1, spread=0.5),
    "few successors": lambda seed: timed_instance(seed, (1, 4, 14), support=0.02, spread=0.5),
}
CASES = pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind in KINDS for seed in SEEDS])


def within_reach(allowed: BoolArray, start: FloatArray, limit: FloatArray) -> BoolArray:
    """(N, H, S, 2, S) the transitions that can carry mass, allowed (N, H, S, 2, S): followed from the start, one by one."""
    live = np.zeros_like(allowed)
    for n in range(len(allowed)):
        here = set(np.flatnonzero(start[n]))
        for h in range(limit.size):
            for s in here:
                live[n, h, s, : 1 if limit[h] == 0 else 2] = allowed[n, h, s, : 1 if limit[h] == 0 else 2]
            here = set(np.flatnonzero(live[n, h].any(axis=(0, 1))))
    return live


def by_clarabel(instance: Instance) -> tuple[FloatArray, FloatArray, float]:
    """Return z, prices and value by CVXPY and Clarabel, from the sets of every step: nothing here knows phases or cells."""
    limit, arms = instance.limit, len(instance.low)
    weights = np.ones(arms) if instance.weights is None else np.asarray(instance.weights)
    live = within_reach(possible_at_steps(instance), instance.masses, limit)
    at = np.argwhere(live)
    z, index = cp.Variable(len(at), nonneg=True), np.full(live.shape, -1)
    index[live] = np.arange(len(at))
    low, constraints = instance.at_steps(instance.low), list[Any]()
    high = None if instance.high is None else instance.at_steps(instance.high)
    radius = None if instance.radius is None else instance.at_steps(instance.radius)
    for n, h, s in np.argwhere(live.any(axis=(3, 4))):
        into = index[n, h - 1, :, :, s][live[n, h - 1, :, :, s]]
        begin = cp.sum(z[into]) if h > 0 else instance.masses[n, s]
        constraints.append(cp.sum(z[index[n, h, s][live[n, h, s]]]) == begin)
    for n, h, s, a in np.argwhere(live.any(axis=4)):
        y = np.flatnonzero(live[n, h, s, a])
        if y.size == 1:  # nothing is left to choose
            continue
        row, place = z[index[n, h, s, a, y]], (n, h, s, a, y)
        if high is None:
            constraints.append(cp.norm1(row - low[place] * cp.sum(row)) <= radius[n, h, s, a] * cp.sum(row))
        else:
            constraints += [row >= low[place] * cp.sum(row), row <= high[place] * cp.sum(row)]
    many, busy = weights[at[:, 0]], [np.flatnonzero((at[:, 1] == h) & (at[:, 3] == 1)) for h in range(limit.size)]
    bounds = {h: many[place] @ z[place] <= limit[h] for h, place in enumerate(busy) if place.size}
    problem = cp.Problem(cp.Minimize(many @ cp.kl_div(z, instance.reference[live])), [*constraints, *bounds.values()])
    problem.solve(solver=cp.CLARABEL)
    full, prices = np.zeros(live.shape), np.zeros(limit.size)
    full[live] = z.value
    for h, bound in bounds.items():
        prices[h] = float(bound.dual_value)
    dropped = weights @ np.where(live, 0.0, instance.reference).sum(axis=(1, 2, 3, 4))
    return full, prices, float(problem.value + dropped)


def same(one: Projection, other: Projection) -> None:
    """Assert that two answers are the same to the last bit."""
    for name in ("mass", "kernel", "prices", "potentials", "value", "gap", "residual", "iterations"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@CASES
def test_answer_meets_the_optimality_conditions(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    certify(instance, instance.solve(), most=30)


@CASES
def test_rows_without_mass_lie_in_the_sets_of_their_steps_too(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    assert row_violation(instance, instance.solve().kernel).max() <= 1e-12


@CASES
def test_answer_is_that_of_an_independent_solver(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    answer, (z, prices, value) = instance.solve(), by_clarabel(instance)
    assert abs(answer.value - value) <= 1e-6 * max(1.0, abs(value))
    np.testing.assert_allclose(answer.z, z, atol=1e-4, rtol=0)
    limit, used = instance.limit, np.einsum("n,nhs->h", instance.program.weights, answer.mass[..., 1])
    strict = (limit > 0) & ((answer.prices > 1e-3) | (limit - used > 1e-3))
    np.testing.assert_allclose(answer.prices[strict], prices[strict], atol=1e-3, rtol=1e-3)


def test_kinds_differ_in_what_binds() -> None:
    """The kinds above would prove little if the budget, or a bound of the sets, never bound; or phases were much alike."""
    assert (KINDS["box"](0).solve().prices > 1e-3).any()
    assert (KINDS["budget per step"](0).solve().prices > 1e-3).any()
    box, ball = KINDS["box"](0), KINDS["ball"](0)
    kernel, reach = box.solve().kernel, box.program.reach
    pinned = (kernel == box.at_steps(box.low)) | (kernel == box.at_steps(box.high))
    assert 0.1 < pinned[reach].mean() < 0.9
    distance = np.abs(ball.solve().kernel - ball.at_steps(ball.low)).sum(axis=4)[ball.program.reach]
    assert 0.1 < np.isclose(distance, 0.4).mean() < 0.9
    for instance in (box, ball):
        assert len(set(instance.phase_of)) == 2
        swapped = instance.but(phase_of=1 - np.asarray(instance.phase_of))
        assert abs(swapped.solve().value - instance.solve().value) > 1e-3


@CASES
def test_nodes_within_reach_are_those_that_a_walk_finds(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    live = within_reach(possible_at_steps(instance), instance.masses, instance.limit)
    np.testing.assert_array_equal(instance.program.reach, live.any(axis=(3, 4)))


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
    same(repeated(instance, 4).solve(), instance.solve())


@pytest.mark.parametrize("kind", ["box", "ball"])
def test_one_phase_may_have_an_axis_and_any_phases_of_steps(kind: str) -> None:
    """A problem whose rewards alone have phases: its kernels, and their sets, have one."""
    instance = ONE_PHASE[kind]
    named = instance.solve(phase_of=[0, 1, 2, 9, 1, 0])
    same(named, instance.solve())
    tables = {name: getattr(instance, name) for name in ("low", "high", "radius")}
    same(instance.but(**{k: None if t is None else t[:, None] for k, t in tables.items()}).solve(), named)


@pytest.mark.parametrize("radius", [None, 0.3])
@pytest.mark.parametrize("shape", [(3, 6, 3), (1, 5, 16)], ids=str)
def test_a_phase_per_step_is_the_same_sets_at_every_step(shape: tuple[int, int, int], radius: float | None) -> None:
    instance = timed_instance(0, shape, 3, radius=radius)
    same(own_sets_per_step(instance).solve(), instance.solve())


def test_names_of_phases_do_not_matter() -> None:
    instance = timed_instance(1, (3, 8, 3), 4, support=0.6)
    order = np.array([2, 0, 3, 1])
    turned = instance.but(low=instance.low[:, order], high=instance.high[:, order])
    same(turned.but(phase_of=np.argsort(order)[instance.phase_of]).solve(), instance.solve())


@pytest.mark.parametrize("radius", [None, 0.3])
def test_a_start_for_certain_is_a_state(radius: float | None) -> None:
    instance = timed_instance(2, (3, 6, 3), radius=radius, spread_start=False)
    same(instance.but(start=np.eye(3)[instance.start]).solve(), instance.solve())


def test_some_arms_may_start_for_certain() -> None:
    instance = timed_instance(3, (3, 4, 3))
    start = np.array(instance.start)
    start[1] = [0.0, 1.0, 0.0]
    mixed = instance.but(start=start)
    answer = mixed.solve()
    certify(mixed, answer)
    np.testing.assert_array_equal(answer.mass[1, 0].sum(axis=1), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("chance", [1e-3, 1e-9, 1e-30, 1e-200, 5e-324])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_starts_that_hardly_ever_happen(chance: float, radius: float | None) -> None:
    instance = timed_instance(4, (3, 5, 3), radius=radius)
    rare = instance.but(start=[[chance, 1.0 - chance, 0.0], [0.0, chance, 1.0 - chance], [0.5, 0.5, 0.0]])
    answer = rare.solve()
    certify(rare, answer)
    np.testing.assert_allclose(answer.mass[:, 0].sum(axis=2), rare.start, rtol=1e-12)
    certify(rare, rare.solve(warm=instance.solve()))


def test_probabilities_that_sum_to_one_by_rounding_only_are_taken() -> None:
    for off in (1e-13, -1e-13, 9e-10, -9e-10):
        instance = timed_instance(5, (2, 4, 2)).but(start=[[0.5 + off, 0.5], [0.3, 0.7]], budget=2.0)
        certify(instance, instance.solve())


@pytest.mark.parametrize("radius", [None, 0.3])
def test_a_weight_stands_for_like_arms(radius: float | None) -> None:
    """A block of three arms whose start state is one or another, in phases; and the arms one by one."""
    block = timed_instance(6, (2, 5, 3), radius=radius, weights=[3.0, 1.0], budget=1.2)
    every = [0, 0, 0, 1]
    names = ("reference", "low", "high", "radius", "start")
    tables = {name: getattr(block, name) for name in names}
    alone = block.but(weights=None, **{k: None if t is None else np.asarray(t)[every] for k, t in tables.items()})
    together, apart = block.solve(), alone.solve()
    certify(alone, apart)
    np.testing.assert_allclose(apart.mass, together.mass[every], atol=1e-7)
    np.testing.assert_allclose(apart.value, together.value, rtol=1e-9)


def test_later_phases_cannot_be_reached_back() -> None:
    """By day state 0 leads to 1, by night to 2; nothing else moves. Nobody is in state 2 before the first night is over."""
    stay = np.broadcast_to(np.eye(3)[:, None], (3, 2, 3))
    day, night = stay.copy(), stay.copy()
    day[0], night[0] = [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]
    kernels = np.stack([day, night])[None]
    answer = rmab.project(np.full((1, 4, 3, 2, 3), 0.1), kernels, kernels, [0], 0.3, phase_of=[0, 0, 1, 0])
    np.testing.assert_allclose(
        answer.mass[0].sum(axis=2), [[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.75, 0], [0.125, 0.75, 0.125]], atol=1e-12
    )


LARGE = {
    "many states": timed_instance(0, (2, 5, 16), 3, width=0.1),
    "many states, ball": timed_instance(1, (2, 4, 14), 3, radius=0.3),
    "few successors": timed_instance(2, (1, 12, 30), 2, support=0.02, weights=[3.0]),
    "few successors, idle": timed_instance(3, (1, 6, 30), 2, support=0.02, budget=per_step(1, 6)),
    "few successors, three arms": timed_instance(4, (3, 12, 30), 3, support=0.01, weights=[1.0, 2.0, 0.5]),
    "few successors, ball": timed_instance(5, (2, 6, 30), 2, support=0.02, radius=0.3),
    "long": timed_instance(6, (2, 120, 2), 24),
    "long, many states": timed_instance(7, (1, 60, 13), 5, width=0.1),
    "many arms": timed_instance(8, (60, 12, 4), 3, budget=12.0),
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_programmes(kind: str) -> None:
    certify(LARGE[kind], LARGE[kind].solve(), most=40)


def test_chunks_of_arms_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = LARGE["many arms"]
    whole = instance.solve()
    monkeypatch.setattr("rmab.solvers.projection.newton.CHUNK", 1)
    np.testing.assert_allclose(instance.solve().z, whole.z, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("radius", [None, 0.3])
def test_references_over_200_orders(seed: int, radius: float | None) -> None:
    instance = timed_instance(seed, (2, 6, 4), 3, radius=radius, support=0.6)
    powers = np.random.default_rng(seed).uniform(-200, 0, size=instance.reference.shape)
    hard = instance.but(reference=np.where(instance.reference > 0, 10.0**powers, 0.0))
    certify(hard, hard.solve(), most=200)


def test_powers_of_the_reference_lead_to_the_same_answer() -> None:
    instance = timed_instance(9, (2, 6, 3), 3)
    newton, _ = tempered(instance.program, 1e-10)
    np.testing.assert_allclose(newton.flow_masses(), instance.solve(tol=1e-10).mass, atol=1e-8)


@pytest.mark.parametrize("radius", [None, 0.3])
def test_warm_starts(radius: float | None) -> None:
    instance = timed_instance(10, (3, 8, 3), 3, radius=radius)
    answer = instance.solve()
    again = instance.solve(warm=answer)
    assert again.iterations <= answer.iterations
    np.testing.assert_allclose(again.z, answer.z, atol=1e-7)


def test_balls_with_transitions_said_to_be_possible() -> None:
    """What is impossible in a phase is so at its steps alone; the reference may say otherwise."""
    instance = timed_instance(11, (2, 6, 3), 2, radius=0.5)
    allowed = np.ones(instance.low.shape, dtype=bool)
    allowed[:, 0, :, :, 2] = False
    centre = np.where(allowed, instance.low, 0.0)
    centre /= centre.sum(axis=4, keepdims=True)
    sets = TransitionSets.balls(centre, instance.radius, allowed)
    answer = project_onto(instance.reference, sets, instance.start, 0.6, phase_of=instance.phase_of)
    first = np.asarray(instance.phase_of) == 0
    assert 0 < first.sum() < 6
    assert (answer.kernel[:, first, ..., 2] == 0).all()
    assert (answer.kernel[:, ~first, ..., 2] > 0).all()
    table = np.where(instance.at_steps(allowed), instance.reference, 0.0)
    certify(instance.but(low=centre, reference=table), instance.but(low=centre, reference=table).solve())


def test_compiled_code_is_not_compiled_again_for_phases() -> None:
    for radius in (None, 0.3):
        random_instance(0, radius=radius).solve()
        before = len(dual.signatures)
        for kind in ("{}", "{}, K = H", "{}, one phase"):
            KINDS[kind.format("box" if radius is None else "ball")](0).solve()
        assert len(dual.signatures) == before


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


@given(instances())
@settings(max_examples=100)
def test_any_answer_is_feasible_and_proves_itself_optimal(instance: Instance) -> None:
    certify(instance, instance.solve())


@given(instances(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_no_feasible_point_is_nearer(instance: Instance, seed: int) -> None:
    other = random_feasible(instance, seed)
    assert instance.divergence(other) >= instance.solve().value * (1 - 1e-9) - 1e-9


@given(instances())
@settings(max_examples=60)
def test_any_phases_are_sets_at_every_step(instance: Instance) -> None:
    if instance.high is not None:  # of balls, a step alone may exclude what its phase does not
        same(own_sets_per_step(instance).solve(), instance.solve())


BOX, BALL = timed_instance(0, (2, 5, 3), 3), timed_instance(0, (2, 5, 3), 3, radius=0.2)
BOTH = pytest.mark.parametrize("instance", [BOX, BALL], ids=["box", "ball"])


def refused(instance: Instance, *words: str, **options: Any) -> None:
    """Assert that the instance is refused with a single line that holds these words."""
    with pytest.raises(ModelError) as caught:
        instance.solve(**options)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def changed(table: FloatArray, place: Any, value: float) -> FloatArray:
    """Return a copy with one entry changed."""
    copy = np.array(table)
    copy[place] = value
    return copy


@BOTH
def test_phases_are_needed_unless_every_step_has_its_own(instance: Instance) -> None:
    refused(instance.but(phase_of=None), "phase_of", "3 phases", "5 steps")


@BOTH
@pytest.mark.parametrize("phases", [[0, 1, 2, 0], [0] * 6, 0, [[0] * 5], []], ids=str)
def test_phases_of_another_length(instance: Instance, phases: Any) -> None:
    refused(instance.but(phase_of=phases), "phase_of", "(5,)", str(np.shape(phases)))


@BOTH
@pytest.mark.parametrize("value", [-1, 3, 0.5, np.nan, np.inf])
def test_phases_that_there_are_not(instance: Instance, value: float) -> None:
    refused(instance.but(phase_of=[0, 1, 2, value, 0]), "phase_of", "step 3", "0..2", f"{value:g}")


@pytest.mark.parametrize("phases", ["day", ["day"] * 5, {}, 1j, [[0], [0, 1]]], ids=str)
def test_phases_that_are_no_numbers(phases: Any) -> None:
    refused(BOX.but(phase_of=phases), "phase_of")


@pytest.mark.parametrize("value", [-1, 0.5, np.nan])
def test_phases_are_looked_at_where_sets_have_but_one(value: float) -> None:
    refused(random_instance(0, (2, 3, 3)).but(phase_of=[0, value, 0]), "phase_of", "step 1", "whole number")


@pytest.mark.parametrize("shape", [(3, 2, 3, 2, 3), (1, 6, 3, 2, 3), (6, 3, 2, 3), (4, 3, 2, 3), (2, 3, 4, 2, 4)], ids=str)
def test_sets_of_another_shape(shape: tuple[int, ...]) -> None:
    """Also where there are as many cells as there should be, of other arms."""
    refused(BOX.but(low=np.zeros(shape), high=np.ones(shape)), "lower and upper", "(2, 3, 2, 3)", "(N, K, S, 2, S)")
    centre = np.full(shape, 1 / shape[-1])
    refused(BALL.but(low=centre, radius=np.ones(shape[:-1])), "centre", "(2, 3, 2, 3)", "(N, K, S, 2, S)")


@pytest.mark.parametrize("shape", [(2, 3, 2), (2, 1, 3, 2), (2, 3, 3), (3, 2, 3, 2), (2, 3, 3, 2, 3)], ids=str)
def test_radius_of_another_shape(shape: tuple[int, ...]) -> None:
    refused(BALL.but(radius=np.ones(shape)), "radius", "(N, K, S, 2)", "(2, 3, 3, 2, 3)")


def test_radius_with_phases_where_the_centre_has_none() -> None:
    plain = random_instance(0, (2, 5, 3), radius=0.2)
    refused(plain.but(radius=np.ones((2, 3, 3, 2))), "radius", "(N, S, 2)", "(2, 3, 3, 2)")


PLACE = ("arm 1", "phase 2", "state 0", "action 1")


def test_sets_that_are_none() -> None:
    refused(BOX.but(low=changed(BOX.low, (1, 2, 0, 1, 0), 1.5)), *PLACE, "next state 0", "no interval")
    refused(BOX.but(high=changed(BOX.high, (1, 2, 0, 1), 0.0), low=changed(BOX.low, (1, 2, 0, 1), 0.0)), *PLACE, "sums to 0")
    refused(BALL.but(low=changed(BALL.low, (1, 2, 0, 1, 0), 0.9)), *PLACE, "distribution")
    refused(BALL.but(radius=changed(BALL.radius, (1, 2, 0, 1), -1.0)), *PLACE, "radius")


@BOTH
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_a_reference_that_is_no_measure(instance: Instance, value: float) -> None:
    step = f"step 3 (phase {np.asarray(instance.phase_of)[3]})"
    wrong = instance.but(reference=changed(instance.reference, (1, 3, 2, 1, 0), value))
    refused(wrong, "reference", "arm 1", step, "state 2", "action 1", "next state 0")


def test_a_centre_that_needs_what_the_reference_excludes_in_its_phase() -> None:
    steps = np.flatnonzero(np.asarray(BALL.phase_of) == 2)
    assert 0 < steps.size < 5
    table = np.array(BALL.reference)
    for h in steps:
        table[1, h, 0, 1, 2] = 0.0
    refused(BALL.but(reference=table), *PLACE, "next state 2", "centre")


@BOTH
@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (1, 3)], ids=str)
def test_start_probabilities_of_another_shape(instance: Instance, shape: tuple[int, int]) -> None:
    refused(instance.but(start=np.full(shape, 1 / shape[1])), "start", "(N, S) = (2, 3)", str(shape))


@BOTH
@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_start_probabilities_that_are_none(instance: Instance, value: float) -> None:
    refused(instance.but(start=[[0.5, 0.5, 0.0], [0.0, 1.0 - value, value]]), "start", "arm 1", "state")


@BOTH
def test_start_probabilities_that_do_not_sum_to_one(instance: Instance) -> None:
    refused(instance.but(start=[[0.5, 0.5, 0.0], [0.2, 0.2, 0.2]]), "start", "arm 1", "0.6")


@pytest.mark.parametrize("start", [[[1.0], [0.5, 0.5]], [["a"]], 1j, np.ones((2, 3, 1))], ids=lambda one: str(one)[:20])
def test_starts_that_are_neither(start: Any) -> None:
    refused(BOX.but(start=start), "start")
