"""The rolling plan: the next W periods from the current states, in blocks of arms of one group; its first step is an index.

Arms of one group are one block with a mass in each state; an arm whose state was not reported is spread over the states by
belief. So the cost grows with groups, not with arms. The plan is the priced step (`rmab.solvers.soften`) with the budgets
of the periods ahead. The index of a group and state is the gain of activating now: Q(s, 1) - Q(s, 0) at the plan's prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError, SolverError
from rmab.estimation.fit import Fit
from rmab.estimation.rewards import make_pay
from rmab.estimation.shrinkage import Levels, Shrinkage, draw_rows, shrink
from rmab.estimation.statistics import Statistics
from rmab.live.events import WarmStart
from rmab.live.forgetting import WINDOW, forget
from rmab.live.ledger import Ledger
from rmab.live.observing import Observer
from rmab.logs.words import PLAIN_WORDS
from rmab.planners.rolling import SOFTEST, STEEPNESS, TOLERANCE
from rmab.solvers.priced.blocks import soften_blocks

RARE = 1e-12  # relative to the largest index: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class Model:
    """The learned model of a programme.

    Attributes
    ----------
    rows : Shrinkage
        Kernels (G, S, 2, S) of what was executed, shrunk towards those of all groups.
    counts : (G, S, 2, S) float array
        Observed transitions, including warm starts, weighted by the probability that they are still valid.
    reach : (G,) float array
        Fraction of decisions that are carried out.
    reward : (G, S, 2) float array
        Reward of a period that begins in a state, executed or not.
    worth : (S,) float array, optional
        Reward of a period that ends in a state, if declared.
    """

    rows: Shrinkage
    counts: FloatArray
    reach: FloatArray
    reward: FloatArray
    worth: FloatArray | None = None

    @property
    def visits(self) -> FloatArray:
        """(G, S, 2) number of observations of each."""
        return np.asarray(self.counts.sum(axis=3))

    @property
    def decided(self) -> tuple[FloatArray, FloatArray]:
        """Kernels and rewards of a decision, which is carried out with the group's reach rate q: q P1 + (1 - q) P0."""
        return tuple(_mix_by_reach(one, self.reach) for one in (self.rows.kernels, self.reward))  # type: ignore[return-value]

    @property
    def knows_effect(self) -> bool:
        """Whether there are observations with and without an action."""
        return bool((self.visits.sum(axis=(0, 1)) > 0).all())

    @property
    def ignorance(self) -> str:
        """Why a plan cannot be made with it; empty if one can."""
        if not self.knows_effect:
            return "no report shows the effect of an action yet"
        return "no reward has been reported yet" if np.ptp(self.reward) <= 0 else ""

    def effect(self) -> tuple[FloatArray, FloatArray]:
        """Two (G, S): the effect of a decision on the reward of its period, and the variance of that estimate."""
        gain = np.diff(self.reward, axis=2)[..., 0] * self.reach[:, np.newaxis]
        strength = np.minimum(self.rows.strength[-1], self.visits.sum(axis=0)) if len(self.visits) > 1 else 0.0
        spread = np.ptp(self.reward) ** 2 / 4.0
        variance = (spread / (self.visits + strength + 1.0)).sum(axis=2) * self.reach[:, np.newaxis] ** 2
        return gain, variance


@dataclass(frozen=True, eq=False)
class Plan:
    """The first step of a plan: the index (G, S) of groups in states, and the price of the budget now."""

    index: FloatArray
    price: float


def learn(ledger: Ledger, observer: Observer) -> Model:
    """Return the model of all reports and warm starts, weighted by how likely they are still valid.

    With several periods a day, daily patterns would look like changes, so nothing is discounted.
    """
    statistics = observer.statistics(ledger)
    recent = observer.recent(ledger, WINDOW) if ledger.declared.rhythm.kind != "time" else []
    counts = statistics.counts.astype(np.float64)
    for seen in recent:
        counts[: len(seen)] -= seen
    for one in ledger.warm:
        own = np.array(one.counts)
        visits = own.sum(axis=3, keepdims=True)
        part = np.minimum(1.0, one.trust / np.maximum(visits, 1e-300))
        np.add.at(counts, [ledger.groups.index(name) for name in one.groups], own * part)
    counts = forget(recent, counts)
    rows, config, worth = shrink(counts, _levels(counts)), ledger.declared, None
    if config.reward is not None:
        worth = np.array([config.reward.get(one, 0.0) for one in config.states])
        reward = np.asarray(rows.kernels @ worth)
    elif len(statistics.numbers):
        reward = np.asarray(make_pay(statistics, tuple(config.states), PLAIN_WORDS, None, ordered=False).table)
    else:
        reward = np.zeros(rows.kernels.shape[:3])
    return Model(rows, counts, observer.reach(ledger), reward, worth)


def sample_model(model: Model, rng: np.random.Generator) -> Model:
    """Return a model drawn from the posterior: kernels of groups, their priors, and the strength of these.

    Planning with it tries uncertain groups as often as they may be the best (Thompson 1933).
    """
    kernels = draw_rows(rng.standard_gamma(model.counts), model.rows, _levels(model.counts), rng, model.counts)
    reward = model.reward if model.worth is None else np.asarray(kernels @ model.worth)
    return replace(model, rows=replace(model.rows, kernels=kernels), reward=reward)


def _levels(counts: FloatArray) -> Levels:
    groups = len(counts)
    return Levels(np.arange(groups)[np.newaxis][: groups > 1])


def as_warm_start(source: Fit | Statistics, groups: Sequence[str], trust: float, states: Sequence[str]) -> WarmStart:
    """Return the counts of a fitted model, or of statistics of groups, as the event of a warm start."""
    labels: Sequence[str] = groups or ("",)
    if isinstance(source, Fit):
        if set(source.state_names) != set(states):
            raise ModelError(f"warm_start: the model has states {', '.join(source.state_names)}, not {', '.join(states)}")
        order = [source.state_names.index(one) for one in states]
        counts = source.statistics.counts[:, order][..., order]
        labels = source.groups if source.groups != ("everybody",) else ("",)
    else:
        counts = source.counts
    return WarmStart.checked(groups=list(labels), counts=counts.astype(np.float64).tolist(), trust=float(trust))


def plan_ahead(model: Model, group_of: IntArray, belief: FloatArray, budgets: FloatArray) -> Plan:
    """Plan from belief (M, S) of arms in groups (M,), with the budgets (W,) of the periods ahead.

    Raises
    ------
    SolverError
        If no plan could be certified.
    """
    here = np.unique(group_of)
    mass = np.zeros((len(model.reach), belief.shape[1]))
    np.add.at(mass, group_of, belief)
    kernels, reward = (np.ascontiguousarray(one[here]) for one in model.decided)
    index = np.zeros(mass.shape)
    scale = float(np.ptp(reward))
    if scale <= 0:
        return Plan(index, 0.0)
    beta = STEEPNESS / scale
    limits = np.minimum(budgets, mass.sum())
    while True:
        try:
            found = soften_blocks(kernels, reward, np.ascontiguousarray(mass[here]), limits, beta, tolerance=TOLERANCE)
            break
        except SolverError:
            if beta < SOFTEST * STEEPNESS / scale:
                raise
            beta /= 4.0
    ahead = found.values[:, 1] if budgets.size > 1 else np.zeros(reward.shape[:2])
    own = np.diff(reward, axis=2)[..., 0] + np.einsum("gsy,gy->gs", kernels[:, :, 1] - kernels[:, :, 0], ahead)
    largest = float(np.abs(own).max(initial=0.0)) or 1.0
    index[here] = np.where(np.abs(own) > RARE * largest, own, 0.0)
    return Plan(index, float(found.prices[0]))


def plan_period(ledger: Ledger, period: int, arms: IntArray, belief: FloatArray, model: Model) -> Plan:
    """Return the plan of a period for arms (M,), with belief (M, S)."""
    ahead = range(period, period + ledger.declared.lookahead)
    budgets = np.array([ledger.budget(one) for one in ahead], dtype=np.float64)
    return plan_ahead(model, ledger.group_of[arms], belief, np.maximum(budgets, 1e-9))


def _mix_by_reach(table: FloatArray, reach: FloatArray) -> FloatArray:
    share = reach.reshape(-1, *(1,) * (table.ndim - 2))
    return np.stack([table[:, :, 0], (1.0 - share) * table[:, :, 0] + share * table[:, :, 1]], axis=2)
