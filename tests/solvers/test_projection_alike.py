"""Rows over many states that are multiples of one another but for a few entries: the same Hessian, at less cost."""

import numpy as np
import pytest

from instances import Instance, alike_instance, faults, random_instance, timed_instance
from rmab.common.arrays import FloatArray
from rmab.solvers.projection.compiled.alike import assemble_alike
from rmab.solvers.projection.compiled.assembly import BUFFER, assemble_step
from rmab.solvers.projection.many import ManyStates

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


def blocks(instance: Instance, *, alike: bool) -> tuple[list[bool], FloatArray, FloatArray, FloatArray]:
    """Return whether every step was assembled; the Hessian's blocks, and the coupling to the prices, of all arms."""
    program = instance.program
    state = ManyStates(program, program.reach / program.reach.sum(axis=2, keepdims=True))
    upper, leave, enter = state.factors
    arms, horizon, states = program.reach.shape
    rows, scale, done = np.empty((BUFFER + 1, states)), np.empty(BUFFER), []
    upper[:], leave[:], enter[:] = 7.0, 7.0, 7.0
    upper[:, 0] = 0.0
    for n, h in np.ndindex(arms, horizon):
        if alike:
            done.append(assemble_alike(program, n, h, state.primal, upper, leave, enter))
        else:
            assemble_step(program, n, h, state.primal, state.factors, rows, scale)
    return done, np.triu(upper), leave, enter


@pytest.mark.parametrize("name", ALIKE)
def test_the_hessian_is_that_of_the_long_way(name: str) -> None:
    done, upper, leave, enter = blocks(ALIKE[name], alike=True)
    assert all(done)
    _, upper_too, leave_too, enter_too = blocks(ALIKE[name], alike=False)
    size = np.sqrt(np.einsum("nhss->nhs", upper_too))
    np.testing.assert_array_less(np.abs(upper - upper_too), 1e-13 * size[..., None] * size[..., None, :] + 1e-300)
    np.testing.assert_allclose(leave, leave_too, rtol=1e-13)
    np.testing.assert_allclose(enter, enter_too, rtol=1e-13, atol=1e-16)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_rows_go_the_long_way_and_nothing_is_touched(name: str) -> None:
    done, upper, leave, enter = blocks(UNLIKE[name], alike=True)
    assert not any(done[:-1])  # of the last step nothing but masses is asked
    horizon = UNLIKE[name].reference.shape[1]
    assert (upper[:, 1 : horizon - 1] == np.triu(np.full(upper.shape[2:], 7.0))).all()
    assert (leave[:, : horizon - 1] == 7.0).all()
    assert (enter[:, : horizon - 1] == 7.0).all()


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
        done, *_ = blocks(instance, alike=True)
        assert all(done)
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
