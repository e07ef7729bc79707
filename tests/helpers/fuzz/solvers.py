"""Part 1a: random models through every solver; each answer is proved by other code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import highs_stationary
import rmab
import timed
from fuzz import draw
from fuzz.cases import Case
from fuzz.proofs import (
    ROUNDING,
    budgets,
    check_fluid,
    check_occupancy,
    check_softened,
    fluid_by_linprog,
    in_phases,
    in_steps,
    induction,
    masses,
    near,
    optimistic_value,
    require,
    stake,
    written_out,
)
from instances import Instance, faults
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, SolverError
from rmab.solvers.stationary.stationary import stationary_fluid

RARE, NARROW = 1e-4, 1e-6


def fluid(case: Case) -> None:
    """The fluid LP by all methods, against SciPy, brute force, and its own prices."""
    problem = draw.problem(case)
    reward = draw.reward(case, problem)
    plans = []
    for method in ("auto", "highs", "newton"):
        try:
            plans.append(rmab.solvers.solve_fluid(problem, reward, method=method))  # type: ignore[arg-type]
        except SolverError:
            case.count(f"fluid {method} unsolved")
    for plan in plans:
        check_fluid(problem, reward, plan)
    scale, arms = stake(problem, reward) or 1.0, problem.arms
    largest = float(np.abs(reward).max()) or 1.0
    if plans and arms.count * problem.horizon * arms.states <= 120:
        found = fluid_by_linprog(problem, reward)
        case.count("fluid beside SciPy" if found is not None else "fluid where SciPy is undecided")
        for plan in plans if found is not None else []:
            best = (found or 0.0) * largest
            require(plan.value <= best + 1e-6 * scale, f"value {plan.value} above SciPy's optimum {best}")
            require(plan.bound >= best - 1e-6 * scale, f"bound {plan.bound} below SciPy's optimum {best}")
    if plans and arms.states**arms.count * 2**arms.count <= 200:
        best = timed.optimum(problem, in_phases(problem, reward) / largest) * largest
        require(plans[0].bound >= best - 1e-9 * scale, f"bound {plans[0].bound} below a policy that earns {best}")


def soften(case: Case) -> None:
    """A softened plan: feasible, earning what it says less its entropy, and its bound recomputed from its prices."""
    problem = draw.problem(case)
    reward = draw.reward(case, problem)
    beta = min(10.0 ** case.rng.uniform(-2, 4) / (float(np.abs(reward).max()) or 1.0), 1e300)
    try:
        plan = rmab.solvers.soften(problem, reward, beta)
        if case.chance(0.5):
            plan = rmab.solvers.soften(problem, reward * case.rng.uniform(0.9, 1.1), beta, warm=plan)
            plan = rmab.solvers.soften(problem, reward, beta, warm=plan)
    except SolverError:
        case.count("soften unsolved")
        return
    check_softened(problem, reward, plan)


def timed_sets(case: Case, count: int, horizon: int) -> tuple[tuple[int, ...], list[int] | None]:
    """Draw the first axes of tables of sets, (N,) or (N, K), and the phase of every step; None where it may be left out."""
    if case.chance(0.5):
        return (count,), None
    phases, phase_of = draw.phases_of(case, horizon)
    return (count, phases), None if phases == horizon and case.chance(0.3) else phase_of


def some_start(case: Case, count: int, states: int) -> FloatArray:
    """(N,) states, or (N, S) probabilities."""
    if case.chance(0.6):
        return case.rng.integers(states, size=count)  # type: ignore[no-any-return]
    return draw.starts_of(case, rmab.Arms(np.broadcast_to(np.eye(states)[:, np.newaxis], (count, states, 2, states)) * 1.0))


def optimistic_fluid(case: Case) -> None:
    """The optimistic fluid LP: feasible, earning what it says, its bound recomputed greedily row by row."""
    count, states, horizon = case.whole(1, 4), case.whole(1, 4), case.whole(1, 8)
    shape, phase_of = timed_sets(case, count, horizon)
    low, high = (one.reshape(*shape, states, 2, states) for one in draw.boxes(case, int(np.prod(shape)), states)[:2])
    reward = draw.stakes(case, (*(shape if case.chance(0.7) else (count,)), states, 2))
    if shape == (count, 1):  # an axis of one phase may be left out, in any of the tables
        reward = reward.reshape(*case.pick([(count,), shape]), states, 2)
    if len(shape) == 2 and reward.ndim == 4 and phase_of is not None and case.chance(0.2):  # boxes that hold in all phases
        low, high = low[:, 0], high[:, 0]
    start = some_start(case, count, states)
    many = case.rng.integers(1, 5, size=count).astype(float) if case.chance(0.5) else np.ones(count)
    budget = case.pick([0.0, 1.0]) * case.rng.random(horizon) * many.sum() if case.chance(0.3) else case.whole(0, count)
    if case.chance(0.3):
        budget = budgets(budget, horizon) * (case.rng.random(horizon) < 0.6)
    try:
        plan = rmab.solvers.solve_optimistic_fluid(
            low, high, reward, start, budget, horizon, weights=many, phase_of=phase_of
        )
    except SolverError:
        case.count("optimistic fluid unsolved")
        return
    steps = range(horizon) if phase_of is None and len(shape) == 2 and shape[1] > 1 else phase_of or [0] * horizon
    limit, law = budgets(budget, horizon), masses(start, states)
    check_occupancy(plan.mass, plan.kernel, law, limit, many)
    least, most, gains = in_steps(low, 4, steps), in_steps(high, 4, steps), in_steps(reward, 3, steps)
    off = float(np.maximum(least - plan.kernel, plan.kernel - most).max())
    off = max(off, float(np.abs(plan.kernel.sum(axis=4) - 1.0).max()))
    require(off <= 1e-8, f"kernel: outside its box by {off:.3g}")
    scale = float(np.abs(reward).max()) * float(many.sum()) * horizon
    near(plan.value, float(np.einsum("n,nhsa,nhsa->", many, plan.mass, gains)), scale, "value", 1e-8)
    each = [many[n] * optimistic_value(least[n], most[n], gains[n], law[n], plan.prices) for n in range(count)]
    spent = float(limit @ plan.prices)
    near(plan.bound, sum(each) + spent, scale + spent, "bound", 1e-8)
    require(plan.gap <= 1e-6 and plan.bound >= plan.value - 1e-8 * scale, f"gap {plan.gap}")


def project(case: Case) -> None:
    """The projection onto boxes or balls, proved by an independent evaluation of its dual."""
    count, states, horizon = case.whole(1, 4), case.whole(1, 4), case.whole(1, 7)
    shape, phase_of = timed_sets(case, count, horizon)
    cells, whole = int(np.prod(shape)), (*shape, states, 2, states)
    low, high, possible = (one.reshape(whole) for one in draw.boxes(case, cells, states))
    spread = case.pick([0.1, 1.0, 3.0, 8.0])
    table = np.exp(spread * case.rng.normal(size=(count, horizon, states, 2, states)))
    start = some_start(case, count, states)
    many = case.rng.integers(1, 5, size=count).astype(float) if case.chance(0.3) else None
    total = count if many is None else many.sum()
    some = case.rng.random(horizon) * total
    budget = case.pick([0.0, total, 0.3 * total, 1e-3, some, some * (case.rng.random(horizon) < 0.6)])
    if case.chance(0.4):
        kernel = draw.rows(case, cells, states).reshape(whole)
        radius = case.pick([0.0, 1e-6, 0.2, 2.0]) * case.rng.random(whole[:-1])
        table *= in_steps((kernel > 0) | possible, 4, range(horizon) if phase_of is None else phase_of)
        instance = Instance(table, kernel, None, start, budget, radius, many, phase_of)
    else:
        instance = Instance(table, low, high, start, budget, None, many, phase_of)
    try:
        answer = instance.solve()
    except SolverError:
        case.count("projection unsolved")
        return
    found = faults(instance, answer, most=200)
    require(not found, f"project: {'; '.join(found)}")
    warm = instance.solve(warm=answer)
    np.testing.assert_allclose(warm.mass, answer.mass, atol=1e-6)


def stationary(case: Case) -> None:
    """The stationary LP against HiGHS, constraint by constraint."""
    count, states = case.whole(1, 4), case.whole(1, 5)
    low, high, _ = draw.boxes(case, count, states)
    reward = draw.stakes(case, (count, states, 2))
    many = case.rng.integers(1, 6, size=count).astype(float)
    budget = float(case.pick([0.0, 0.1, 0.5, 1.0, 1.3]) * many.sum())
    scale = float(np.abs(reward).max()) or 1.0
    try:
        plan = stationary_fluid(low, high, reward, budget, many)
    except SolverError:
        case.count("stationary unsolved")
        return
    z, mass = plan.z, plan.mass
    flow = float(np.abs(mass.sum(axis=2) - z.sum(axis=(1, 2))).max())
    box = float(np.maximum(z - high * mass[..., np.newaxis], low * mass[..., np.newaxis] - z).max())
    whole = float(np.abs(mass.sum(axis=(1, 2)) - 1.0).max())
    used = float(many @ mass[:, :, 1].sum(axis=1)) - budget
    worst = max(flow, box, whole, used, -float(z.min()))
    require(worst <= 2 * ROUNDING, f"stationary: a constraint is missed by {worst:.3g}")
    total = scale * float(many.sum())
    near(plan.value, float(np.einsum("n,nsa,nsa->", many, mass, reward)), total, "stationary value")
    width = (high - low)[high > low]
    if ((high > 0) & (high < RARE)).any() or width.min(initial=1.0) < NARROW:  # HiGHS takes them for its own rounding
        case.count("stationary without HiGHS")
        return
    best = highs_stationary.highs_value(low, high, reward / scale, budget, many) * scale
    require(abs(plan.value - best) <= 1e-5 * total, f"stationary value {plan.value}, HiGHS {best}")


def whittle_finite(case: Case) -> None:
    """Finite Whittle indices: at the index both actions are worth the same; above it, passive is as good."""
    problem = draw.problem(case, 3, 4, 6)
    reward = draw.reward(case, problem)
    found = rmab.planners.finite_whittle_index(problem, reward)
    kernels, gains = written_out(problem, reward)
    for n in range(problem.arms.count):
        size, own = int(problem.arms.real_states[n]), gains[n]
        scale = float((own.max(axis=(1, 2)) - own.min(axis=(1, 2))).max()) * (problem.horizon + 1)
        kernel = kernels[n, :, :size, :, :size]
        own = own[:, :size] - own[:, :size].min(axis=(1, 2), keepdims=True)
        require((found.index[n, :, size:] == 0).all(), "whittle: padded states have an index")
        for h, s in np.ndindex(problem.horizon, size):
            price = float(found.index[n, h, s])
            better = _advantage(kernel[h:], own[h:], price)[0, s]
            require(abs(better) <= 1e-8 * scale, f"whittle: arm {n}, step {h}, state {s}: {better:.3g} at its index")
            above = _advantage(kernel[h:], own[h:], price + 1e-3 * scale)[0, s]
            require(above <= 1e-8 * scale, f"whittle: arm {n}, step {h}, state {s}: {above:.3g} above its index")


def whittle(case: Case) -> None:
    """Discounted Whittle indices of indexable arms: at the index both actions are worth the same."""
    problem = draw.problem(case, 3, 4, 3)
    reward, discount = draw.reward(case, problem), case.pick([0.0, 0.5, 0.9, 0.99, 1.0])
    try:
        found = rmab.planners.whittle_index(problem, reward, discount=discount)
    except ModelError:
        require(discount == 1.0 or problem.phases > 1, "whittle: a discounted arm is refused")
        case.count("whittle refused")
        return
    require(problem.phases == 1, "whittle: an infinite horizon with phases")
    require(np.isfinite(found.index).all(), "whittle: an index is not finite")
    for n in np.flatnonzero(found.indexable) if discount < 1.0 else []:
        size = int(problem.arms.real_states[n])
        kernel, own = problem.arms.kernels[n, :size, :, :size], reward[n, :size] - reward[n, :size].min()
        scale = (_range(own) + float(np.abs(found.index[n]).max())) / (1 - discount)
        for s in range(size):
            better = _infinite(kernel, own, float(found.index[n, s]), discount)[s]
            require(abs(better) <= 1e-7 * scale, f"whittle: arm {n}, state {s}: {better:.3g} at its index, of {scale:.3g}")


def indices(case: Case) -> None:
    """Index tables of a plan, recomputed."""
    problem = draw.problem(case)
    reward = draw.reward(case, problem)
    try:
        plan = rmab.solvers.solve_fluid(problem, reward)
    except SolverError:
        case.count("fluid auto unsolved")
        return
    share = rmab.planners.occupancy_index(problem, reward, fluid=plan).table
    mass = plan.occupancy
    visited = mass.sum(axis=3) > 1e-9
    off = np.abs(share * mass.sum(axis=3) - mass[..., 1])[visited].max(initial=0.0)
    require(off <= 1e-9, f"occupancy index: off by {off:.3g}")
    worth = rmab.planners.lagrangian_index(problem, reward, fluid=plan).table
    kernels, gains = written_out(problem, reward)
    wide = _ranges(gains)
    scale = float(wide.max()) * problem.horizon + float(plan.prices.sum())
    for n in range(problem.arms.count):
        own = gains[n] - gains[n].min(axis=(1, 2), keepdims=True)
        Q = induction(kernels[n], own, plan.prices)[1]
        off = float(np.abs(Q[..., 1] - Q[..., 0] + plan.prices[:, np.newaxis] - worth[n]).max())
        require(off <= ROUNDING * scale + 5e-324, f"lagrangian index: arm {n} is off by {off:.3g}, of {scale:.3g}")
    ahead, now = (
        rmab.planners.myopic_index(problem, reward).table,
        rmab.planners.myopic_index(problem, reward, lookahead=False).table,
    )
    for n, h, s in np.ndindex(problem.arms.count, problem.horizon, problem.arms.states):
        own = gains[n] - gains[n].min(axis=(1, 2), keepdims=True)
        change, pays = kernels[n, h, s, 1] - kernels[n, h, s, 0], float(own[h, s, 1] - own[h, s, 0])
        near(float(now[n, h, s]), pays, float(wide[n, h]), "myopic index")
        if h + 1 < problem.horizon:
            stakes = float(wide[n, h] + wide[n, h + 1])
            near(float(ahead[n, h, s]), pays + float(change @ own[h + 1, :, 0]), stakes, "myopic index")
    check_rest(case, problem, reward)


def check_rest(case: Case, problem: rmab.Problem, reward: FloatArray) -> None:
    """What is left of an episode from a step on is the problem that says so in words."""
    h = case.pick([0, problem.horizon - 1, case.whole(0, problem.horizon - 1)])
    start = draw.states_of(case, problem.arms) if case.chance(0.5) else draw.starts_of(case, problem.arms)
    rest = problem.from_step(h, start)
    kernels, gains = written_out(problem, reward)
    left, paid = written_out(rest, reward)
    require(np.array_equal(left, kernels[:, h:]) and np.array_equal(paid, gains[:, h:]), "from_step: other steps")
    limits = budgets(problem.budget, problem.horizon)[h:]
    require(np.array_equal(budgets(rest.budget, rest.horizon), limits), "from_step: another budget")
    require(np.array_equal(masses(rest.start, rest.arms.states), masses(start, rest.arms.states)), "from_step: start")  # type: ignore[arg-type]
    try:
        check_fluid(rest, reward, rmab.solvers.solve_fluid(rest, reward))
    except SolverError:
        case.count("fluid auto unsolved")


def _ranges(gains: FloatArray) -> FloatArray:
    return np.asarray(gains.max(axis=(-2, -1)) - gains.min(axis=(-2, -1)))


def _range(reward: FloatArray) -> float:
    return float(reward.max() - reward.min())


def _advantage(kernel: FloatArray, reward: FloatArray, price: float) -> FloatArray:
    """(H, S) Q(s,1) - Q(s,0) at a price that stays."""
    worth = induction(kernel, reward, np.full(len(kernel), price))[1]
    return np.asarray(worth[..., 1] - worth[..., 0])


def _infinite(kernel: FloatArray, reward: FloatArray, price: float, discount: float) -> FloatArray:
    """(S,) Q(s,1) - Q(s,0) of an infinite horizon, by policy iteration."""
    states = len(kernel)
    action, priced = np.zeros(states, dtype=int), reward - price * np.array([0.0, 1.0])
    for _ in range(2**states + 1):
        chosen = np.arange(states), action
        values = np.linalg.solve(np.eye(states) - discount * kernel[chosen], priced[chosen])
        worth = priced + discount * kernel @ values
        best = np.where(worth.max(axis=1) > worth[chosen] + 1e-13 * np.abs(worth).max(), worth.argmax(axis=1), action)
        if (best == action).all():
            break
        action = best
    return np.asarray(worth[:, 1] - worth[:, 0])


CHECKS: dict[str, Callable[[Case], None]] = {
    one.__name__: one
    for one in (fluid, optimistic_fluid, soften, project, stationary, whittle_finite, whittle, indices)
}  # fmt: skip


def play(case: Case) -> None:
    """Check one solver, chosen by the seed."""
    name = list(CHECKS)[case.seed % len(CHECKS)]
    CHECKS[name](case)
    case.count(name)
