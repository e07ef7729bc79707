"""The extended LP of infinite horizon and average reward (RMAB-UCRL as published), by the price of an activation.

One constraint joins the blocks, the budget, so there is one price. At a given price every block is a Markov decision process
in which kernels are chosen, too; policy iteration solves it (`compiled/gains.py`). Their total reward, plus
the price of the budget, is a convex, piecewise linear function of the price, and its minimum is the optimum of the LP. Every
plan gives a line below it. Two lines, of a plan that uses more than the budget and of one that does not, meet at the next
price to try, until the function is no higher there. Then both plans are optimal at this price, and so is the mixture that
uses just the budget. All blocks mix in the same proportion, so that the result does not depend on the order of
blocks.
"""

import math
from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, ReadOnly, frozen
from rmab.errors import SolverError
from rmab.solvers.checks import Units
from rmab.solvers.stationary.compiled.gains import JUMP, LEAST, NEW, best_gains
from rmab.solvers.transitions import TransitionSets

PRICES = 200  # most prices to try
EXACT = 1e-12  # relative differences that are rounding
JUMPS = (1e3, 3e4, 1e6)  # cost of a jump, in units of the largest range or price; raised if a plan pays it
SLACK = 1e-9  # tolerance of flow, boxes and budget
NO_MASS = 1e-12  # in a state that the plan does not use
ONCE = np.zeros(1, dtype=np.int64)  # values are those of one step


@dataclass(frozen=True, eq=False)
class StationaryFluid(ReadOnly):
    """Solution of the stationary LP.

    value   reward of the masses per step, with all weights; bound  the dual value, no less; price  of an activation.
    gap     bound - value, relative to the larger of the bound and the widest range of rewards, times the arms, all counted
            from the least reward of each block: certified.
    z       (C, S, 2, S) masses and moves of one arm of each block.
    share   (C, S) the active share of a state's mass. Without mass: 1 if activating gains more than
            its price, 0 if less, and if equal, the proportion in which all blocks mix their two plans.
    advantage  (C, S) gain of activating over staying passive, at the price but before it is paid; 0 without a
            choice.
    """

    value: float
    bound: float
    price: float
    gap: float
    z: FloatArray
    share: FloatArray
    advantage: FloatArray

    def __repr__(self) -> str:
        numbers = f"value {self.value:.6g}, bound {self.bound:.6g}, gap {self.gap:.0e}, price {self.price:.6g}"
        return f"StationaryFluid({numbers})"

    @property
    def mass(self) -> FloatArray:
        """(C, S, 2) masses of one arm of each block."""
        return frozen(self.z.sum(axis=3))


def stationary_fluid(
    low: FloatArray,
    high: FloatArray,
    reward: FloatArray,
    budget: float,
    weights: FloatArray,
    real: BoolArray | None = None,
    *,
    exact: bool = False,
    tolerance: float = 1e-9,
    charge: FloatArray | None = None,
) -> StationaryFluid:
    """Maximise the mean reward (C,S,2) over stationary masses whose kernels lie in the boxes low..high (C,S,2,S).

    weights (C,) the arms of a block, or their cost; real (C,S) its real states. exact: the
    budget must be used, at a price of either sign. The masses are in the best classes of states, whether or not a start
    state leads there. charge (C,S): how much of the budget an activation uses in each state, 1 by default; then prices and
    advantages are per unit of it. To a certified relative gap of at most `tolerance`, or SolverError.
    """
    model = Model(low, high, reward, weights, np.ones(reward.shape[:2], dtype=bool) if real is None else real, charge)
    plans = Plans(model, model.reward)
    price, free = 0.0, plans.at(0.0)
    if free.used <= budget + EXACT * model.arms and (not exact or free.used >= budget - EXACT * model.arms):
        return certify(model, plans, price, free.z, 0.0, budget, tolerance)
    dear = free.used > budget  # a positive price; otherwise an exact budget forces activations, and the price is negative
    other = Plans(model, np.zeros_like(reward)).at(1.0 if dear else -1.0)
    over, under = (free, other) if dear else (other, free)
    if under.used > budget + SLACK or over.used < budget - SLACK:
        most, used = ("more", under.used) if dear else ("less", over.used)
        raise SolverError(f"stationary LP: every plan uses {used:.6g} or {most}, but the budget is {budget:.6g}")
    for _ in range(PRICES):
        if over.used - under.used <= EXACT * model.arms:
            break
        price = (over.earned - under.earned) / (over.used - under.used)
        price = max(price, 0.0) if dear else min(price, 0.0)
        line, crossing = plans.at(price), over.earned - price * over.used
        if plans.bound - crossing <= EXACT * model.arms:
            break
        over, under = (line, under) if line.used > budget + EXACT * model.arms else (over, line)
    part = min(max((budget - under.used) / max(over.used - under.used, EXACT * model.arms), 0.0), 1.0)
    return certify(model, plans, price, part * over.z + (1.0 - part) * under.z, part, budget, tolerance)


class Model:
    """Sets, rewards, and the pairs that can be used (C,S,2)."""

    def __init__(
        self,
        low: FloatArray,
        high: FloatArray,
        reward: FloatArray,
        weights: FloatArray,
        real: BoolArray,
        charge: FloatArray | None,
    ) -> None:
        least, most = low, np.where(real[:, np.newaxis, np.newaxis], high, 0.0)
        if low is not high:  # rounding errors of a box; the transitions of a known kernel count, however rare
            least, most = np.where(low > LEAST, low, 0.0), np.where(high > LEAST, most, 0.0)
        fits = (least.sum(axis=3) <= 1.0 + SLACK) & (most.sum(axis=3) >= 1.0 - SLACK) & (least <= most).all(axis=3)
        self.usable = fits & real[..., np.newaxis]
        self.sets, self.units = TransitionSets(least, most), Units.of(reward, self.usable)
        self.reward = self.units.reward
        self.weights, self.arms = weights, float(weights.sum())
        self.by_state, self.charge = charge is not None, np.ones(reward.shape[:2]) if charge is None else charge

    def reward_of(self, z: FloatArray) -> float:
        """Return the reward of z (C,S,2,S), the same in any order of the blocks."""
        return math.fsum(self.weights * (z.sum(axis=3) * self.reward).sum(axis=(1, 2)))

    def budget_of(self, z: FloatArray) -> float:
        """Return the budget that z (C,S,2,S) uses, the same in any order of the blocks."""
        if self.by_state:
            return math.fsum(self.weights * (z[:, :, 1].sum(axis=2) * self.charge).sum(axis=1))
        return math.fsum(self.weights * z[:, :, 1].sum(axis=(1, 2)))

    def violation(self, z: FloatArray, budget: float) -> float:
        """Return the largest constraint violation of z (C,S,2,S): masses that sum to 1 and stay, the boxes, the budget."""
        mass = z.sum(axis=3, keepdims=True)
        flow = np.abs(mass.sum(axis=(2, 3)) - z.sum(axis=(1, 2))).max()
        whole = np.abs(mass.sum(axis=(1, 2, 3)) - 1.0).max()
        box = max(float((z - self.sets.high * mass).max()), float((self.sets.low * mass - z).max()))
        return max(float(flow), float(whole), box, -float(z.min()), self.budget_of(z) - budget)


@dataclass(frozen=True, eq=False)
class Line:
    """A plan z (C,S,2,S), its reward and its use."""

    z: FloatArray
    earned: float
    used: float


class Plans:
    """The best plans for a reward (C,S,2) at one price after another, each found from the one before.

    Afterwards: bound, an upper bound at this price; advantage (C,S), of activating, less its price.
    """

    def __init__(self, model: Model, reward: FloatArray) -> None:
        blocks, states = reward.shape[:2]
        self.model, self.reward = model, reward
        self.action, self.rows = np.full((blocks, states), NEW, dtype=np.int64), np.zeros((blocks, states, states))
        self.law, self.values = np.zeros((blocks, states)), np.zeros((blocks, 1, states))
        self.advantage, self.bounds = np.zeros((blocks, states)), np.zeros(blocks)
        self.bound = np.inf

    def at(self, price: float) -> Line:
        """Plan every block separately when activating costs this much."""
        model = self.model
        scale = max(float(np.abs(self.reward).max()), abs(price) * float(model.charge.max())) or 1.0
        for cost in JUMPS:
            best_gains(
                model.sets.rows, model.usable, self.reward, price, model.charge, cost * scale,
                self.action, self.rows, self.law, self.values, self.advantage, self.bounds,
            )  # fmt: skip
            jumping = ((self.law > 0.0) & (self.action == JUMP)).any(axis=1)
            if not jumping.any():
                break
        else:
            rare = "or leaves them with a probability too small to plan with: set such probabilities to 0 if they mean never"
            raise SolverError(f"stationary LP: block {int(jumping.argmax())} has no recurrent states, {rare}")
        self.bound = math.fsum(model.weights * self.bounds)
        z = np.zeros((*self.reward.shape, self.reward.shape[1]))
        place = np.minimum(self.action, 1)[:, :, np.newaxis, np.newaxis]  # no mass jumps
        np.put_along_axis(z, place, (self.law[..., np.newaxis] * self.rows)[:, :, np.newaxis], axis=2)
        return Line(z, model.reward_of(z), model.budget_of(z))


def certify(
    model: Model, plans: Plans, price: float, z: FloatArray, part: float, budget: float, tolerance: float
) -> StationaryFluid:
    """Prove that z (C,S,2,S) is feasible, and optimal by the bound of these plans at this price, or raise SolverError."""
    violation = model.violation(z, budget)
    if not violation <= SLACK:
        raise SolverError(f"stationary LP: the plan violates a constraint by {violation:.2e}")
    value, bound = model.reward_of(z), plans.bound + budget * price
    gap = model.units.gap(bound, value, model.arms)
    if not gap <= tolerance:
        raise SolverError(f"stationary LP: the certified gap is {gap:.2e}, above the tolerance {tolerance:.2e}")
    mass = z.sum(axis=3)
    total, level = mass.sum(axis=2), EXACT * (np.abs(plans.values[:, 0]) + 1.0)
    own = np.where(plans.advantage > level, 1.0, np.where(plans.advantage < -level, 0.0, part))
    share = np.where(total > NO_MASS, mass[..., 1] / np.maximum(total, NO_MASS), own)
    earned, most = (model.units.whole(one, model.weights, ONCE) for one in (value, bound))
    scale, share = model.units.scale, np.clip(share, 0.0, 1.0)
    worth = np.where(model.usable.all(axis=2), scale * (plans.advantage / model.charge + price), 0.0)
    return StationaryFluid(earned, most, scale * price, gap, frozen(z), frozen(share), frozen(worth))
