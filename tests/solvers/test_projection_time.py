"""The projection with phases, budgets by step and start probabilities, against a solver that knows nothing but steps."""

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import rmab
from instances import (
    Instance,
    faults,
    own_sets_per_step,
    per_step,
    possible_at_steps,
    random_instance,
    row_violation,
    timed_instance,
    untimed,
)
from rmab.common.arrays import BoolArray, FloatArray
from rmab.solvers.projection.compiled.dual import dual
from rmab.solvers.projection.newton import tempered
from rmab.solvers.projection.project import project_onto
from rmab.solvers.transitions import TransitionSets

pytestmark = pytest.mark.compiled

SEEDS = range(2)


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


@CASES
def test_answer_meets_the_optimality_conditions(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    assert not faults(instance, instance.solve(), most=30)


@CASES
def test_rows_without_mass_lie_in_the_sets_of_their_steps_too(kind: str, seed: int) -> None:
    instance = KINDS[kind](seed)
    assert row_violation(instance, instance.solve().kernel).max() <= 1e-12


@pytest.mark.slow
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


def test_later_phases_cannot_be_reached_back() -> None:
    """By day state 0 leads to 1, by night to 2; nothing else moves. Nobody is in state 2 before the first night is over."""
    stay = np.broadcast_to(np.eye(3)[:, None], (3, 2, 3))
    day, night = stay.copy(), stay.copy()
    day[0], night[0] = [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]
    kernels = np.stack([day, night])[None]
    answer = rmab.solvers.project(np.full((1, 4, 3, 2, 3), 0.1), kernels, kernels, [0], 0.3, phase_of=[0, 0, 1, 0])
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_large_programmes(kind: str) -> None:
    assert not faults(LARGE[kind], LARGE[kind].solve(), most=40)


@pytest.mark.slow
def test_chunks_of_arms_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = timed_instance(8, (12, 12, 4), 3, budget=3.0)
    whole = instance.solve()
    for kind in ("few", "many"):
        monkeypatch.setattr(f"rmab.solvers.projection.{kind}.CHUNK", 1)
    np.testing.assert_allclose(instance.solve().z, whole.z, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("radius", [None, 0.3])
def test_references_over_200_orders(seed: int, radius: float | None) -> None:
    instance = timed_instance(seed, (2, 6, 4), 3, radius=radius, support=0.6)
    powers = np.random.default_rng(seed).uniform(-200, 0, size=instance.reference.shape)
    hard = instance.but(reference=np.where(instance.reference > 0, 10.0**powers, 0.0))
    assert not faults(hard, hard.solve(), most=200)


def test_powers_of_the_reference_lead_to_the_same_answer() -> None:
    instance = timed_instance(9, (2, 6, 3), 3)
    newton, _ = tempered(instance.program, 1e-10)
    np.testing.assert_allclose(newton.solution().mass, instance.solve(tolerance=1e-10).mass, atol=1e-8)


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
    assert not faults(instance.but(low=centre, reference=table), instance.but(low=centre, reference=table).solve())


def test_compiled_code_is_not_compiled_again_for_phases() -> None:
    for radius in (None, 0.3):
        random_instance(0, radius=radius).solve()
        before = len(dual.signatures)
        for kind in ("{}", "{}, K = H", "{}, one phase"):
            KINDS[kind.format("box" if radius is None else "ball")](0).solve()
        assert len(dual.signatures) == before
