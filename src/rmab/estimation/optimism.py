"""The optimism of a plan: how much better it looks in its own model than it is, by a parametric bootstrap.

The fitted model plays the truth. Records of every arm are drawn from it, with the visits that the arm had; they are fitted,
and a plan is made, as for the log itself. What that plan claims in its own model, less what it brings in the one that drew
the records, is its optimism: the winner's curse of choosing, and whatever shrinkage adds or takes (Efron & Tibshirani 1993,
Section 10; Smith & Winkler 2006, "The optimizer's curse"). The mean over some such logs is subtracted from the estimate.

Not all of these plans make as many actions. Where an effect seems to be small or harmful, a plan makes few, and can promise
little that does not come true. So what plans claim too much over nothing counts by action: its sum over logs, by that of
the actions of their plans, times the actions of the plan in question.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rmab.common import FloatArray, cores
from rmab.estimation.clusters import count_by_arm
from rmab.estimation.fit import Fit
from rmab.estimation.shrinkage import shrink
from rmab.estimation.values import World

LOGS = 16  # that are drawn
WORK = 100_000  # arm-periods simulated in each
NOTHING = 1  # the place of the first baseline in what is returned


def estimate_optimism(fit: Fit, world: World, actions: float, key: int) -> FloatArray:
    """(1 + B,) by how much the model is expected to overstate what a plan of so many actions, and each baseline, brings."""
    visits = count_by_arm(fit.require_log()).sum(axis=3).astype(np.int64)  # (N, S, 2)

    def one(k: int) -> tuple[FloatArray, float]:
        rng = np.random.default_rng((key, 9, k))
        truth = fit.arm_kernels(np.asarray(fit.kernels), rng)
        drawn = rng.multinomial(visits, truth).astype(np.float64)
        counts = np.zeros(fit.counts.shape)
        np.add.at(counts, fit.group_of, drawn)
        rows, arms = np.asarray(shrink(counts, fit.levels).kernels), fit.arm_rows
        again = None if arms is None else arms.recount(drawn)
        arm_rows = [rows[fit.group_of] if again is None else again.kernels(rows, how) for how in (None, rng)]
        mean, spread, real = (_here(fit, one) for one in (*arm_rows, truth))
        policy, seed = world.policy(mean), (key, 9, k)
        claim, fact = (world.play(policy, one, seed, WORK) for one in (spread, real))
        base = [np.array([*world.baselines(one).values()]) for one in (spread, real)]
        return np.array([claim.mean - fact.mean, *(base[0] - base[1])]), float(claim.activations.mean())

    with ThreadPoolExecutor(cores()) as pool:
        found = list(pool.map(one, range(LOGS)))
    excess, used = np.mean([one for one, _ in found], axis=0), float(np.mean([one for _, one in found]))
    if used > 0:  # else nobody is acted on in any log
        excess[0] = excess[NOTHING] + (excess[0] - excess[NOTHING]) * actions / used
    return np.asarray(excess)


def _here(fit: Fit, kernels: FloatArray) -> FloatArray:
    """Return kernels, of arms (N, S, 2, S), of those who are still there: by arm, or of one in each group; with leaving."""
    first = fit.present[np.unique(fit.group_of[fit.present], return_index=True)[1]]
    return fit.with_leaving(np.asarray(kernels[fit.present if fit.is_by_arm else first]))
