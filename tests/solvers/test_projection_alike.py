"""Rows over many states that are multiples of one another but for a few entries: the same answers, at less cost."""

import numpy as np
import pytest

from instances import Instance, alike_instance, faults, random_instance, timed_instance
from rmab.solvers.projection import compact
from rmab.solvers.projection.compact import CompactNewton, NotCompactError

pytestmark = pytest.mark.compiled

ALIKE = {
    "nothing of their own": alike_instance(0, (1, 4, 16), own=0),
    "one entry": alike_instance(1, (1, 5, 30), weights=[3.0]),
    "three entries": alike_instance(2, (2, 4, 40), own=3),
    "idle steps": alike_instance(3, (1, 4, 24), own=2, budget=[0.2, 0.0, 0.4, 0.0]),
    "one step": alike_instance(4, (1, 1, 16)),
}
first, second = alike_instance(6, (1, 5, 32)), alike_instance(7, (1, 5, 32))
ALIKE["phases"] = first.but(
    low=np.stack([first.low, second.low], axis=1), high=np.stack([first.high, second.high], axis=1), phase_of=[0, 1, 1, 0, 1]
)
nearly = 1.0 + 1e-7 * (np.arange(32) == 4) * (np.arange(32) % 3 == 0)[:, None, None]
ALIKE["nearly, which is not enough"] = first.but(reference=first.reference * nearly)
UNLIKE = {
    "each its own": random_instance(0, (1, 4, 16)),
    "half of the transitions": random_instance(1, (1, 4, 16), support=0.5),
    "balls": random_instance(2, (1, 4, 16), radius=0.3),
    "phases": timed_instance(3, (1, 4, 16), 2),
    "known": random_instance(4, (1, 4, 16), width=0.0),
}


def rows(instance: Instance) -> CompactNewton:
    """Return the solver on compact rows, at its first point."""
    program = instance.program
    return CompactNewton(program, program.reach / program.reach.sum(axis=2, keepdims=True))


@pytest.mark.parametrize("name", ALIKE)
def test_alike_rows_have_few_entries_of_their_own(name: str) -> None:
    state = rows(ALIKE[name])
    states = state.program.reach.shape[2]
    assert state.compact.counts.mean() <= states / 8


@pytest.mark.parametrize("name", ["each its own", "known"])
def test_unlike_rows_are_not_compact(name: str) -> None:
    with pytest.raises(NotCompactError):
        rows(UNLIKE[name])


@pytest.mark.parametrize("name", UNLIKE)
def test_answers_of_unlike_rows_are_right(name: str) -> None:
    assert not faults(UNLIKE[name], UNLIKE[name].solve())


def test_lists_grow_where_more_entries_are_pinned_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upper bounds below what most rows want: nothing is own at first, and much is pinned in the end."""
    monkeypatch.setattr(compact, "SPARE", 0)
    instance = alike_instance(11, (2, 4, 24), own=0, weights=[1.0, 2.0])
    tight = instance.but(high=np.where(np.arange(24) % 4 == 0, 0.02, 1.0) * np.ones_like(instance.high))
    calls, widen = list[int](), CompactNewton.widen
    assert rows(tight).compact.counts.max() == 6
    monkeypatch.setattr(CompactNewton, "widen", lambda self, status: calls.append(status) or widen(self, status))
    assert not faults(tight, tight.solve())
    assert calls


def test_conjugate_gradients_that_are_too_slow_go_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "PRODUCTS", 1)
    monkeypatch.setattr(compact, "accuracy", lambda _: 1e-14)
    assert not faults(ALIKE["three entries"], ALIKE["three entries"].solve())


@pytest.mark.parametrize("name", ALIKE)
def test_answers_are_right(name: str) -> None:
    assert not faults(ALIKE[name], ALIKE[name].solve())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [0.0, 1e-12, 0.02, 1.0])
def test_answers_over_every_state_are_right(seed: int, width: float) -> None:
    """Nothing pinned, all of it, and nearly all."""
    instance = random_instance(seed, (1 + seed % 2, 4, 13 + seed), width=width)
    assert not faults(instance, instance.solve())


@pytest.mark.parametrize("seed", range(4))
def test_references_over_200_orders(seed: int) -> None:
    """Where products of reference and potentials underflow, rows are solved in logarithms."""
    instance = random_instance(seed, (1, 4, 14), width=0.5)
    powers = np.random.default_rng(seed).uniform(-200, 0, size=instance.reference.shape)
    hard = instance.but(reference=10.0**powers)
    assert not faults(hard, hard.solve(), most=120)


@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("least", [5e-324, 1e-310])
def test_a_pattern_that_would_overflow_is_none(least: float, horizon: int) -> None:
    """Three rows lead everywhere, and the entry that they are compared by is next to nothing; the others have one entry."""
    instance = random_instance(2, (1, horizon, 16), support=0.0)
    low, high, table = (np.array(x) for x in (instance.low, instance.high, instance.reference))
    low[:, [0, 6, 11]], high[:, [0, 6, 11]], table[:, :, [0, 6, 11]] = 0.0, 1.0, 0.1
    table[:, :, [0, 6, 11], :, 0] = least
    hard = instance.but(reference=table, low=low, high=high, start=[6])
    assert not faults(hard, hard.solve())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [1e2, 1e9, 1e12, 1e20])
def test_rows_that_would_cancel_go_the_long_way(seed: int, share: float) -> None:
    """Nearly all of every row wants to go to one state, where all but one are held far below that."""
    instance = alike_instance(seed, (1, 4, 16), own=0)
    table, high = instance.reference.copy(), instance.high.copy()
    table[..., 3] *= share
    high[..., 3] = 0.1
    high[:, 0, 0, 3] = 1.0
    hard = instance.but(reference=table / table.sum(axis=4, keepdims=True) / 32, high=high)
    assert not faults(hard, hard.solve(), most=20)


def test_mirror_descent_keeps_rows_alike() -> None:
    """What makes it worth the code: tilt by potentials, pin an entry now and then, project, and rows stay alike."""
    instance, rng = alike_instance(5, (1, 5, 24), own=0), np.random.default_rng(5)
    for _ in range(4):
        low, high = instance.low.copy(), instance.high.copy()
        s, a, y = rng.integers(24), rng.integers(2), rng.integers(24)
        low[0, s, a, y], high[0, s, a, y] = 0.3, 1.0
        instance = instance.but(low=low, high=high)
        assert rows(instance).compact.counts.max() <= 4
        tilt = np.exp(0.1 * rng.random((1, 1, 24, 2, 1)))
        instance = instance.but(reference=np.maximum(instance.solve().z, 1e-12) * tilt)


def test_mirror_descent_towards_one_state_takes_few_steps() -> None:
    """Where half of the rows hold that state far below what they want, nearly all that is loose in them fades."""
    rng = np.random.default_rng([34, 9])
    gain = np.zeros((1, 1, 30, 2, 1))
    gain[:, :, 3] = 1.0
    visited = (rng.random((1, 30, 2)) < 0.5)[..., None]
    visited[:, -1] = False
    high = np.where(visited, 0.3, 1.0) * np.ones(30)
    last, plan = np.full((1, 5, 30, 2, 30), 1 / 1800), None
    for _ in range(60):
        instance = Instance(np.maximum(last, 1e-12) * np.exp(gain), np.zeros_like(high), high, [0], 0.3)
        plan = instance.solve(warm=plan)
        assert plan.iterations <= 12
        last = plan.z
