"""Thompson sampling for restless arms (Jung and Tewari, NeurIPS 2019), episodic: plan for kernels drawn from the posterior.

Before every episode one kernel per group is drawn: each row from Dirichlet(prior + counts) over the transitions that are
possible. The policy is the Lagrangian index of the fluid LP of this draw.

Knowledge: nothing of the kernels; a Dirichlet prior. Feedback: bandit. The paper has rewards that are known functions of the
states; ours are running means, 1 where nothing was seen. Hard budget: the paper takes any policy map that keeps it; ours
activates the B highest indices. Theory: prior 1, uniform; tuned: 0.05 (studies/tuning.py, held-out seeds; docs/tuning.md).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.learning.base import Arrays, stream
from rmab.learning.indexed import IndexLearner
from rmab.learning.pools import Pools
from rmab.learning.presets import TunableOptions
from rmab.learning.tables import lagrangian_table
from rmab.model.view import View

__all__ = ["Thompson", "ThompsonOptions", "posterior_draw"]

KEY = 101  # of the stream that draws come from


class ThompsonOptions(TunableOptions):
    """Options of `thompson`."""

    TUNED: ClassVar[Mapping[str, float]] = {"prior": 0.05}
    prior: float | None = Field(None, gt=0, le=1e6, description="the weight of every transition before it was seen")


class Thompson(IndexLearner):
    """One draw from the posterior per episode."""

    name: ClassVar[str] = "thompson"
    paper: ClassVar[str] = "Jung & Tewari, NeurIPS 2019"
    settings: ThompsonOptions

    def _prepare(self, view: View, pools: Pools, arrays: Arrays, episode: int, seed: int) -> dict[str, NDArray[Any]]:
        prior, rng = self.settings.chosen("prior"), stream(seed, KEY, episode)
        kernels = posterior_draw(arrays["counts"], pools.support, prior, rng)
        means = self._means(pools, arrays)
        return {"table": lagrangian_table(view, pools, kernels[pools.group], means[pools.kind]), "estimate": means}


def posterior_draw(counts: IntArray, support: BoolArray, prior: float, rng: np.random.Generator) -> FloatArray:
    """(G, S, 2, S) rows drawn from Dirichlet(prior + counts) over the support, as normalised gamma variables."""
    weights = rng.standard_gamma(np.where(support, prior + counts, 0.0))
    weights = np.where(support, np.maximum(weights, np.finfo(float).tiny), 0.0)  # small priors can underflow
    return np.asarray(weights / weights.sum(axis=3, keepdims=True))
