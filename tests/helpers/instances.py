"""Programmes for the projection, seeded, and the proof that an answer to one of them is right: no solver is believed."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.special import kl_div, rel_entr

import reference
import rmab
from rmab.common.arrays import BoolArray, FloatArray
from rmab.errors import ModelError
from rmab.solvers.checks import checked_budget
from rmab.solvers.projection.compiled.program import Program
from rmab.solvers.projection.program import make_program
from rmab.solvers.projection.project import Projection
from rmab.solvers.transitions import TransitionSets


@dataclass(frozen=True)
class Instance:
    """One projection: boxes low..high (N,S,2,S), or where high is None, L1 balls of radius (N,S,2) around low.

    With K phases there is an axis for them after that of the arms.
    """

    reference: FloatArray
    low: FloatArray
    high: FloatArray | None
    start: ArrayLike
    budget: ArrayLike
    radius: FloatArray | None = None
    weights: ArrayLike | None = None
    phase_of: ArrayLike | None = None
    cost: ArrayLike | None = None

    @property
    def limit(self) -> FloatArray:
        """(H,) the budget of every step."""
        return checked_budget(self.budget, self.reference.shape[1])

    def at_steps(self, table: FloatArray) -> FloatArray:
        """(N, H, ...) what a table (N, ...) or (N, K, ...) of the sets holds for every step."""
        horizon = self.reference.shape[1]
        if self.low.ndim == 4:
            return np.stack([table] * horizon, axis=1)
        phases = range(horizon) if self.phase_of is None else self.phase_of
        return np.stack([table[:, int(k)] for k in phases], axis=1)

    @property
    def masses(self) -> FloatArray:
        """(N, S) where every arm starts."""
        return np.asarray(self.start) if np.ndim(self.start) == 2 else np.eye(self.low.shape[-1])[np.asarray(self.start)]

    @property
    def program(self) -> Program:
        """Return the instance as the solver sees it."""
        boxes = self.high is not None
        sets = TransitionSets.boxes(self.low, self.high) if boxes else TransitionSets.balls(self.low, self.radius)
        return make_program(self.reference, sets, self.start, self.budget, self.weights, self.phase_of, self.cost)

    def solve(self, **options: Any) -> Projection:
        """Project."""
        options = {"weights": self.weights, "phase_of": self.phase_of, "cost": self.cost, **options}
        if self.high is None:
            return rmab.solvers.project_ball(self.reference, self.low, self.radius, self.start, self.budget, **options)
        return rmab.solvers.project(self.reference, self.low, self.high, self.start, self.budget, **options)

    def divergence(self, z: FloatArray) -> float:
        """Return D(z || reference), arms weighted, straight from the definition."""
        return float(self.program.weights @ kl_div(z, self.reference).sum(axis=(1, 2, 3, 4)))

    def but(self, **changes: Any) -> "Instance":
        """Return the same instance with some fields changed."""
        return replace(self, **changes)


def random_instance(
    seed: int,
    shape: tuple[int, int, int] = (2, 4, 3),
    *,
    width: float = 0.2,
    budget: ArrayLike | None = None,
    spread: float = 1.0,
    radius: float | None = None,
    support: float = 1.0,
    weights: ArrayLike | None = None,
) -> Instance:
    """Return an instance of shape (N, H, S) whose sets hold a random kernel.

    width, radius: the largest distance of a bound from the kernel, or the radius of every ball. spread: of ln reference.
    support: the chance of a transition to be possible; where impossible, the reference is 0 too.
    """
    arms, horizon, states = shape
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.ones(states), size=(arms, states, 2))
    possible = rng.random(kernel.shape) < support
    np.put_along_axis(possible, rng.integers(states, size=(arms, states, 2, 1)), True, axis=3)
    kernel = np.where(possible, np.maximum(kernel, 1e-3), 0.0)
    kernel /= kernel.sum(axis=3, keepdims=True)
    table = np.exp(spread * rng.normal(size=(arms, horizon, states, 2, states))) / (2 * states**2)
    table *= possible[:, None]
    low = np.maximum(kernel - width * rng.random(kernel.shape), 0.0)
    high = np.where(possible, np.minimum(kernel + width * rng.random(kernel.shape), 1.0), 0.0)
    start = rng.integers(states, size=arms)
    limit = 0.3 * arms if budget is None else budget
    if radius is None:
        return Instance(table, low, high, start, limit, weights=weights)
    return Instance(table, kernel, None, start, limit, np.full(kernel.shape[:3], radius), weights)


def alike_instance(seed: int, shape: tuple[int, int, int], own: int = 1, **options: Any) -> Instance:
    """Return an instance whose rows are multiples of one distribution at each step, but for `own` entries, or fewer.

    Of these some are held by their bounds, some are not. All other transitions may have any probability.
    """
    arms, horizon, states = shape
    rng = np.random.default_rng([seed, 2])
    made = random_instance(seed, shape, spread=0.0, **options)
    shared = np.exp(rng.normal(size=(arms, horizon, 1, 1, states)))
    table = shared * np.exp(rng.normal(size=(arms, horizon, states, 2, 1))) / (2 * states**2)
    low, high = np.zeros((arms, states, 2, states)), np.ones((arms, states, 2, states))
    for n, s, a in np.ndindex(arms, states, 2):
        for y in rng.choice(states, size=rng.integers(own + 1), replace=False):
            kind = rng.integers(3)
            if kind == 0:
                low[n, s, a, y] = rng.uniform(0.1, 0.9) / max(own, 1)
            elif kind == 1:
                high[n, s, a, y] = 0.3 / states
            else:
                table[n, :, s, a, y] *= np.exp(rng.normal(size=horizon))
    return made.but(reference=table, low=low, high=high)


def timed_instance(
    seed: int,
    shape: tuple[int, int, int] = (2, 4, 3),
    phases: int = 2,
    *,
    spread_start: bool = True,
    weights: ArrayLike | None = None,
    budget: ArrayLike | None = None,
    **options: Any,
) -> Instance:
    """Return an instance of shape (N, H, S) with sets of their own in every phase, which take turns by chance.

    spread_start: arms start in one state or another, and for sure not in all of them. options: of `random_instance`.
    """
    arms, horizon, states = shape
    rng = np.random.default_rng([seed, 1])
    all_cells = random_instance(seed, (arms * phases, horizon, states), **options)
    phase_of = rng.permutation(np.resize(rng.permutation(phases), horizon))

    def parted(table: FloatArray | None) -> FloatArray | None:
        return None if table is None else table.reshape(arms, phases, *table.shape[1:])

    chance = rng.dirichlet(np.ones(states), size=arms) * (rng.random((arms, states)) < 0.6)
    chance[np.arange(arms), rng.integers(states, size=arms)] += 0.1
    return Instance(
        parted(all_cells.reference)[:, phase_of, np.arange(horizon)],
        parted(all_cells.low),
        parted(all_cells.high),
        chance / chance.sum(axis=1, keepdims=True) if spread_start else rng.integers(states, size=arms),
        0.3 * arms if budget is None else budget,
        parted(all_cells.radius),
        weights,
        phase_of,
    )


def possible(instance: Instance) -> BoolArray:
    """(N, S, 2, S) the transitions that sets without phases allow."""
    return instance.high > 0 if instance.high is not None else instance.reference.max(axis=1) > 0


def possible_at_steps(instance: Instance) -> BoolArray:
    """(N, H, S, 2, S) the transitions that the sets allow at every step: of balls, all that a step of the phase has."""
    if instance.high is not None:
        return instance.at_steps(instance.high) > 0
    horizon, everywhere = instance.reference.shape[1], instance.reference > 0
    if instance.low.ndim == 4:
        phases = np.zeros(horizon)
    else:
        phases = np.arange(horizon) if instance.phase_of is None else np.asarray(instance.phase_of)
    return np.stack([everywhere[:, phases == k].any(axis=1) for k in phases], axis=1)


def random_feasible(instance: Instance, seed: int) -> FloatArray:
    """(N, H, S, 2, S) occupancy of a random policy and random kernels of the sets, within the budget."""
    program, limit, rng = instance.program, instance.limit, np.random.default_rng(seed)
    arms, horizon, states = program.reach.shape
    ratio = np.minimum(limit / program.weights.sum(), 1.0)[:, None] * rng.random((arms, horizon, states))
    log_q = np.where(possible_at_steps(instance), rng.normal(size=instance.reference.shape), -np.inf)
    if program.ball:
        rows = reference.ball_rows(log_q, instance.at_steps(instance.low), instance.at_steps(instance.radius))
    else:
        low, high = (reference.at_steps(program, table) for table in (program.low, program.high))
        rows = reference.box_rows(log_q, low, high)
    z, law = np.zeros(instance.reference.shape), instance.masses
    for h in range(horizon):
        z[:, h] = (law[..., None] * np.stack([1 - ratio[:, h], ratio[:, h]], axis=2))[..., None] * rows[:, h]
        law = z[:, h].sum(axis=(1, 2))
    return z


def infeasibility(instance: Instance, answer: Projection) -> float:
    """Return the largest violation of any constraint by the returned mass and kernel (of a budget above 1: relative)."""
    program, limit = instance.program, instance.limit
    z, mass, kernel = answer.z, answer.mass, answer.kernel
    arms, horizon, states = program.reach.shape
    expected = np.zeros((arms, horizon, states))
    expected[:, 0] = instance.masses
    expected[:, 1:] = z[:, :-1].sum(axis=(2, 3))
    used = np.einsum("n,nhsay->ha", program.weights * program.cost, z)[:, 1]
    return max(
        float(np.abs(z.sum(axis=(3, 4)) - expected).max()),
        float(((used - limit) / np.maximum(limit, 1.0)).max()),
        float(row_violation(instance, kernel)[mass > 0].max()),
        float(-mass.min()),
    )


def row_violation(instance: Instance, kernel: FloatArray) -> FloatArray:
    """(N, H, S, 2) by how much each row misses being a distribution in its confidence set."""
    low, high = instance.at_steps(instance.low), instance.high
    worst = np.maximum(np.abs(kernel.sum(axis=4) - 1), -kernel.min(axis=4))
    if high is None:
        worst = np.maximum(worst, np.abs(kernel - low).sum(axis=4) - instance.at_steps(instance.radius))
        worst = np.maximum(worst, np.where(possible_at_steps(instance), 0.0, kernel).max(axis=4))
    else:
        worst = np.maximum(worst, np.maximum(low - kernel, kernel - instance.at_steps(high)).max(axis=4))
    return worst


def faults(instance: Instance, answer: Projection, *, tolerance: float = 1e-8, most: int = 60) -> list[str]:
    """Return why the answer is not the projection: it is feasible, meets the optimality conditions, and has no gap."""
    program, limit = instance.program, instance.limit
    slow = reference.projection_dual(program, limit, answer.potentials, answer.prices)
    slack = np.where(limit == 0, 0.0, (limit - slow.used) / np.maximum(limit, 1.0))
    complementarity = np.abs(np.minimum(answer.prices, slack))[limit > 0].max(initial=0.0)
    # The returned point is the one that these multipliers stand for, up to what they violate.
    near = 10 * program.reach.shape[1] * max(answer.residual, 1e-11)
    value = instance.divergence(answer.z)
    # The constant sum of the reference is left out of both: it may dwarf them.
    spent = rel_entr(answer.z, instance.reference) - answer.z
    primal = program.weights @ spent.sum(axis=(1, 2, 3, 4))
    gap, scale = primal + slow.value, max(1.0, abs(primal))
    # The answer follows the multipliers' own shares and kernels: its gap is KL(mass || their mass), of second order in the
    # residual, plus price times unused budget, which the residual bounds.
    unused = limit - np.einsum("n,nhs->h", program.weights * program.cost, answer.mass[..., 1])
    idle = answer.prices @ np.clip(unused, 0.0, 1.01 * tolerance * np.maximum(limit, 1.0))
    conditions = {  # what is measured, and the most that it may be
        "infeasible": (infeasibility(instance, answer), 1e-12),
        "a negative price": (-answer.prices.min(), 0.0),
        "residual": (answer.residual, tolerance),
        "iterations": (answer.iterations, most),
        "flow": (np.abs(slow.gradient).max(), 1.01 * tolerance + 1e-11),
        "complementarity": (complementarity, 1.01 * tolerance + 1e-11),
        "another mass": (np.abs(answer.mass - slow.mass).max(), near),
        "another occupancy": (np.abs(answer.z - slow.mass[..., None] * slow.kernel).max(), near),
        "another value": (abs(answer.value - value), 1e-9 * max(1.0, abs(value))),
        "a negative gap": (-gap, 1e-9 * scale),
        "gap": (gap, 1e-7 * scale + float(idle)),
        "another gap": (abs(answer.gap - gap), 1e-9 * scale),
    }
    return [f"{name}: {found:.3g}, above {limit:.3g}" for name, (found, limit) in conditions.items() if not found <= limit]


def differing(one: Projection, other: Projection) -> list[str]:
    """Return in what two answers differ, be it in the last bit."""
    names = ("mass", "kernel", "prices", "potentials", "value", "gap", "residual", "iterations")
    return [name for name in names if not np.array_equal(getattr(one, name), getattr(other, name))]


def unsaid(instance: Instance, *words: str, **options: Any) -> list[str]:
    """Return the words that are missing where the instance is refused; a second line counts as one that is missing."""
    with pytest.raises(ModelError) as caught:
        instance.solve(**options)
    message = str(caught.value)
    return [word for word in words if word not in message] + (["one line"] if "\n" in message else [])


def changed(array: Any, *changes: tuple[Any, float]) -> Any:
    """Return a copy with some entries changed."""
    copy = np.array(array, dtype=float)
    for place, value in changes:
        copy[place] = value
    return copy


def own_sets_per_step(instance: Instance) -> Instance:
    """Give every step a phase of its own, with the sets that it has anyway: K = H."""
    tables = {name: getattr(instance, name) for name in ("low", "high", "radius")}
    return instance.but(phase_of=None, **{k: None if t is None else instance.at_steps(t) for k, t in tables.items()})


def untimed(seed: int, shape: tuple[int, int, int], **options: Any) -> Instance:
    """One phase, with start probabilities all the same."""
    return random_instance(seed, shape, **options).but(start=timed_instance(seed, shape).start)


def per_step(arms: int, horizon: int) -> FloatArray:
    """(H,) budgets: tight, zero, slack, in turn."""
    return np.resize([0.4 * arms, 0.0, 0.1, arms + 1.0, 0.0, 0.05], horizon)
