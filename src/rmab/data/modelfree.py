"""A check without a model: what really came after the choices that the plan would have made (inverse propensities).

At every record of the log the plan says whom it would act on: an arm is acted on where its index is at least the price of
the budget, so that a rule d(group, state) in [0, 1] is left. The log acted with the propensity e(group, state), a
frequency. Records in which the log did what the plan would have done are weighted by one over the chance that it did
(Horvitz & Thompson 1952; weights are normalised, as Hajek 1971): the mean of what came next is that under the plan's
rule, whatever the kernels are. It is compared with what the model says of the same records. One period ahead, no further:
over several the weights multiply, and nothing is left to average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.data.fit import Fit
from rmab.solvers.fluid.fluid import fluid

LEAST = 0.01  # propensities below this mean that the log shows nothing of the plan's choices
GROUPS_LOST = 0.2  # part of the records in which that may be so
EFFECTIVE = 100  # records that the weighted ones must at least be worth
REPLICATES = 400
LEVEL = 0.95


@dataclass(frozen=True)
class ModelFree:
    """The check, or why there is none.

    Attributes
    ----------
    refused : str
        Why it cannot be made; empty where it was.
    value, low, high : float
        What a period brings per arm after the plan's choices, by inverse propensities, with its 95% interval over arms.
    logged : float
        What it brought in the log.
    model : float
        What the model says of the same records under the plan's choices.
    overlap : float
        Part of the plan's actions that fall where the log acted, too.
    least : float
        The smallest propensity of a choice that the plan makes.
    effective : float
        How many equally weighted records the weighted ones are worth.
    words : str
        All this in a sentence.
    """

    refused: str
    value: float
    low: float
    high: float
    logged: float
    model: float
    overlap: float
    least: float
    effective: float
    words: str


def model_free(fit: Fit, budget: int, horizon: int, *, seed: int = 0) -> ModelFree:
    """Check the plan of a fit without its model, or say why that cannot be done."""
    moves, log = fit.log.transitions, fit.log
    cell = fit.cell_of[moves.arm]
    visits = fit.counts.sum(axis=3).astype(np.float64)
    rate = np.divide(visits[..., 1], visits.sum(axis=2), out=np.zeros(visits.shape[:2]), where=visits.sum(axis=2) > 0)
    rule = rule_of(fit, budget, horizon)
    wanted, chance = rule[cell, moves.state], rate[cell, moves.state]
    acts = float(wanted.sum())
    blind = (wanted > 0) & (chance < LEAST)
    overlap = 1.0 - float(wanted[blind].sum()) / acts if acts > 0 else 1.0
    always = (wanted < 1) & (chance > 1 - LEAST)
    least = float(chance[wanted > 0].min(initial=1.0))
    refusal = _refusal(log.word, acts, overlap, float(always.mean()))
    if refusal:
        return _refused(refusal, overlap, least, 0.0)
    taken = moves.action == 1
    weight = np.where(taken, np.divide(wanted, chance, out=np.zeros_like(wanted), where=chance > 0), 0.0)
    weight += np.where(taken, 0.0, np.divide(1 - wanted, 1 - chance, out=np.zeros_like(wanted), where=chance < 1))
    pays = fit.pay.table[cell, moves.after, 0]
    effective = float(weight.sum() ** 2 / max((weight**2).sum(), 1e-300))
    if effective < EFFECTIVE:
        said = f"the records that agree with the plan are worth only {effective:.0f} (at least {EFFECTIVE} are needed)"
        return _refused(said, overlap, least, effective)
    ahead = np.einsum("gsay,gy->gsa", fit.kernels, fit.pay.table[:, :, 0])
    model = float(((1 - wanted) * ahead[cell, moves.state, 0] + wanted * ahead[cell, moves.state, 1]).mean())
    value, low, high = _averaged(pays, weight, moves.arm, len(log.arms), seed)
    agree = low <= model <= high
    unit = fit.pay.unit.split(" ", 1)[-1] if fit.pay.unit.startswith(f"{log.periods.unit}s ") else ""

    def form(number: float) -> str:
        return f"{100 * number:.1f}%" if unit else f"{number:.3g}"

    what = f"{unit} the {log.periods.unit} after" if unit else f"brought the {log.periods.unit} after"
    words = (
        f"Without the model: where the log happened to do what the plan would have done, {form(value)} ({form(low)} to "
        f"{form(high)}) were {what}; the model says {form(model)}, which {'agrees' if agree else 'does not agree'}. In the "
        f"log it was {form(float(pays.mean()))}."
    )
    return ModelFree("", value, low, high, float(pays.mean()), model, overlap, least, effective, words)


def _refusal(word: str, acts: float, overlap: float, always: float) -> str:
    if acts <= 0:
        return f"the plan would have made no {word} in the states of the log"
    if overlap < 1 - GROUPS_LOST:
        lost = f"{1 - overlap:.0%} of the {word}s that the plan wants"
        return f"{lost} are in groups and states where the log hardly ever made one"
    if always > GROUPS_LOST:
        return f"in {always:.0%} of the records the log always made a {word}, where the plan would not"
    return ""


def _refused(why: str, overlap: float, least: float, effective: float) -> ModelFree:
    nan = float("nan")
    words = f"No check without the model: {why}. A random share in the lists to come would make one possible."
    return ModelFree(why, nan, nan, nan, nan, nan, overlap, least, effective, words)


def rule_of(fit: Fit, budget: int, horizon: int) -> FloatArray:
    """(G, S) the part of a group in a state that the plan acts on now; where the plan has no arms, by its prices."""
    plan = fluid(fit.problem(budget, horizon), fit.reward)
    cells = np.unique(fit.cell_of[fit.present])
    found = np.zeros((len(fit.cells), len(fit.log.state_names)))
    block = np.zeros(cells.size, dtype=np.int64)
    block[np.searchsorted(cells, fit.cell_of[fit.present])] = plan.blocks.block_of
    advantage, price = plan.advantage[:, 0], float(plan.prices[0])
    scale = max(float(np.abs(advantage).max()), 1e-12)
    share = np.where(plan.blocks.start > 0, plan.share[:, 0], (advantage > price + 1e-6 * scale).astype(np.float64))
    found[cells] = share[block]
    return found


def _averaged(pays: FloatArray, weight: FloatArray, arm: IntArray, arms: int, seed: int) -> tuple[float, float, float]:
    """Return the weighted mean and its interval over arms that are drawn with replacement."""
    top = np.bincount(arm, weights=weight * pays, minlength=arms)
    bottom = np.bincount(arm, weights=weight, minlength=arms)
    rng = np.random.default_rng((seed, 4))
    value = float(top.sum() / bottom.sum())
    drawn = np.empty(REPLICATES)
    for k in range(REPLICATES):
        times = np.bincount(rng.integers(0, arms, arms), minlength=arms)
        drawn[k] = (times @ top) / max(float(times @ bottom), 1e-300)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return value, float(low), float(high)
