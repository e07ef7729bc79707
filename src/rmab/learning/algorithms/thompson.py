"""Thompson sampling for restless arms (Jung and Tewari, NeurIPS 2019), episodic: plan for kernels drawn from the posterior.

Before every episode one kernel per group is drawn: each row from Dirichlet(prior + counts) over the transitions that are
possible. The policy is the Lagrangian index of the fluid LP of this draw.

Knowledge: nothing of the kernels; a Dirichlet prior. Feedback: bandit. The paper has rewards that are known functions of the
states; ours are running means, 1 if never seen. Hard budget: the paper takes any policy map that keeps it; ours
activates the B highest indices. Theory: prior 1, uniform; tuned: 2 (docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.learning.base import stream
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.index_tables import lagrangian_table
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import refuse_forced
from rmab.learning.state import Arrays
from rmab.model import View

KEY = 101  # key of the random stream


@configured
class Thompson(IndexLearner):
    """One draw from the posterior per episode."""

    name = "thompson"
    draws = True
    any_budget = True
    TUNED = {"prior": 2.0}
    preset: Preset = option(default="theory", help=PRESET)
    prior: float | None = option(default=None, ge=1e-12, le=1e6, help="prior weight of every transition")

    def refuses(self, view: View) -> str:
        """Reject budgets that leave no choice."""
        return refuse_forced(view)

    def prepare(self, known: Knowledge) -> Arrays:
        """Return the Lagrangian index of the draw."""
        pools, rng = known.pools, stream(known.seed, KEY, known.episode)
        kernels = posterior_draw(known.counts, pools.support, self.parameter("prior"), rng)
        table = lagrangian_table(pools, kernels[pools.group], pools.pays(known.means))
        return {"table": table, "estimate": known.means}


def posterior_draw(counts: IntArray, support: BoolArray, prior: float, rng: np.random.Generator) -> FloatArray:
    """(G, S, 2, S) rows drawn from Dirichlet(prior + counts) over the support, as normalised gamma variables."""
    weights = rng.standard_gamma(np.where(support, prior + counts, 0.0))
    weights = np.where(support, np.maximum(weights, np.finfo(float).tiny), 0.0)  # small priors can underflow
    return np.asarray(weights / weights.sum(axis=3, keepdims=True))
