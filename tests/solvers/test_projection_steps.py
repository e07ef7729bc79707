"""The steps of the projection's solver: the masses in its Hessian, and where it starts."""

import numpy as np
import pytest

import rmab
from instances import faults, random_instance
from rmab.errors import SolverError
from rmab.solvers.projection.compiled.dual import mean_masses
from rmab.solvers.projection.compiled.steps import ENDLESS, price_step
from rmab.solvers.projection.dual_newton import DualNewton
from rmab.solvers.projection.few import FewStates
from rmab.solvers.projection.newton import new_solve


def test_masses_in_the_hessian_are_those_that_solve_a_node_by_itself() -> None:
    """One node: f(x) = out exp(-x) + in x is least at ln(out / in), and Newton gets there in one step with this mass."""
    out, into = np.array([1e-20, 1e-3, 0.5, 0.3, 0.25]), np.array([0.5, 0.5, 0.5, 0.2, 0.25])
    mass = np.stack([0.25 * out, 0.75 * out], axis=1)[None, None]
    mean = np.empty_like(mass)
    mean_masses(mass, (into - out)[None, None], mean)
    np.testing.assert_allclose((out - into) / mean.sum(axis=3)[0, 0], np.log(out / into), rtol=1e-12)
    np.testing.assert_allclose(mean[..., 1], 3 * mean[..., 0])


def test_masses_in_the_hessian_at_the_edges() -> None:
    mass = np.array([[0.2, 0.2], [0.0, 0.0], [1e-60, 0.0], [1e-320, 0.0]])[None, None]
    mean = np.empty_like(mass)
    mean_masses(
        mass, np.array([-0.4, 0.0, 0.0, 0.1])[None, None], mean
    )  # nothing in; no way there; negligible; beyond floats
    np.testing.assert_allclose(mean[0, 0, :3], [[0.02, 0.02], [0.0, 0.0], [1e-25, 0.0]])
    assert np.isfinite(mean).all()


def test_another_start_is_taken_only_where_the_dual_function_is_lower() -> None:
    program = random_instance(0, (3, 5, 3), spread=20.0, budget=0.4).program
    uniform = program.reach / program.reach.sum(axis=2, keepdims=True)
    skewed = uniform * np.array([1.0, 1e-6, 1e-3])
    skewed /= np.maximum(skewed.sum(axis=2, keepdims=True), 1e-300)
    points = [new_solve(program, marginals) for marginals in (uniform, skewed)]
    better, worse = sorted(points, key=lambda one: one.value)
    assert better.value < worse.value
    low, high = (uniform, skewed) if better is points[0] else (skewed, uniform)
    stays, moves = new_solve(program, low), new_solve(program, high)
    stays.reopen(high)
    moves.reopen(low)
    for one in (stays, moves):
        np.testing.assert_allclose([one.value, one.flow], [better.value, better.flow], rtol=1e-9)
        for name in ("v", "prices", "gradient", "used"):
            np.testing.assert_allclose(getattr(one, name), getattr(better, name), rtol=1e-9, atol=1e-12, err_msg=name)
        for name in ("mass", "phi"):
            own, other = (state.by_arm(getattr(state.primal, name))[program.reach] for state in (one, better))
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(one.kernel(), better.kernel(), rtol=1e-9, atol=1e-12)


STEPPED = {
    "whole steps": random_instance(1, (9, 6, 3), spread=0.3, budget=0.4),
    "weights, costs": random_instance(2, (3, 5, 4), weights=[1.0, 2.5, 0.5]).but(cost=[0.4, 1.7, 1.0]),
    "idle steps": random_instance(6, (2, 4, 3), budget=[0.3, 0.0, 0.5, 0.0]),
    "no budget binds": random_instance(3, (2, 4, 3), budget=2.0),
    "ball": random_instance(11, (2, 4, 3), radius=0.3),
    "steep": random_instance(0, (3, 8, 3), spread=40.0, budget=0.4),
}


@pytest.mark.parametrize("name", STEPPED)
def test_all_steps_in_one_call_are_those_one_by_one(name: str) -> None:
    program = STEPPED[name].program
    uniform = program.reach / program.reach.sum(axis=2, keepdims=True)
    for whole in (False, True):
        for most in (0, 1, 3, 30):
            at_once, one_by_one = FewStates(program, uniform), FewStates(program, uniform)
            slow = DualNewton.descend(one_by_one, 1e-6, most, whole=whole)
            assert at_once.descend(1e-6, most, whole=whole) == slow
            np.testing.assert_allclose(at_once.value, one_by_one.value, rtol=1e-10)
            for part in ("v", "prices", "used", "gradient"):
                own, other = getattr(at_once, part), getattr(one_by_one, part)
                np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-8, err_msg=part)


def test_a_step_that_leads_nowhere_leaves_the_point() -> None:
    """The dual function claims to be lower here than it is anywhere."""
    program = random_instance(0, (2, 4, 3)).program
    state = FewStates(program, program.reach / program.reach.sum(axis=2, keepdims=True))
    v, prices, state.value = state.v.copy(), state.prices.copy(), state.value - 1e3
    assert state.descend(1e-8, 5) == (1, 0.0)
    np.testing.assert_array_equal(state.v, v)
    np.testing.assert_array_equal(state.prices, prices)
    with pytest.raises(SolverError, match="the line search failed"):
        state.improve()


def test_other_starts_help_where_the_first_has_no_step_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, descend, calls = random_instance(0, (2, 4, 3)), FewStates.descend, []

    def stuck(newton: FewStates, tolerance: float, most: int, *, whole: bool = False) -> tuple[int, float]:
        calls.append(newton.value)
        return (1, 0.0) if len(calls) == 1 else descend(newton, tolerance, most, whole=whole)

    monkeypatch.setattr(FewStates, "descend", stuck)
    assert not faults(instance, instance.solve())
    assert len(calls) > 1


def test_a_step_that_is_no_number_is_an_error_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_instance(0, (2, 4, 3)).program
    state = new_solve(program, program.reach / program.reach.sum(axis=2, keepdims=True))
    monkeypatch.setattr(type(state), "newton_step", lambda _: (np.full(4, np.inf), -1.0))
    state.used, state.step[:] = state.budget + np.array([1, -1, 1, -1]), 0.0  # what is expected of the step is inf - inf
    with pytest.raises(SolverError, match="the line search failed"):
        state.improve()


def test_prices_that_nothing_responds_to_do_not_run_away() -> None:
    """A system of rank one but for rounding: by itself its step is endless."""
    matrix = np.ones((6, 6)) + np.diag(1e-17 * np.arange(6.0))
    step = price_step(matrix, 1e-7 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 1.0)
    assert np.abs(step).max() <= ENDLESS
    sound = np.diag([2.0, 1.0, 4.0])
    np.testing.assert_allclose(price_step(sound, np.array([2.0, 3.0, 2.0]), 4.0), [1.0, 3.0, 0.5], rtol=1e-14)


@pytest.mark.slow
@pytest.mark.compiled
def test_a_steep_plan_whose_prices_are_lost_in_rounding_is_found() -> None:
    """References over 19 orders of magnitude, and active masses that fill the budget to 1e-9."""
    seed, sizes = 2765259680529440, {"arms": 4, "budget": 2, "horizon": 50, "episodes": 50}
    played = rmab.run(rmab.make_task("cpap@switching", seed=seed, **sizes), rmab.make_learner("uc-o-reps", rate=64.0), seed)
    assert np.isfinite(played.rewards).all()
