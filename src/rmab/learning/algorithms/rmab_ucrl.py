"""RMAB-UCRL (Xiong, Wang and Li, NeurIPS 2022), the paper's rival: mean rewards with optimism, extended LP, index, top-B.

Made for rewards that do not change. Versions: `stationary`, UC-R2MAB as published (average reward over an endless horizon,
one index per state); `finite`, for episodes of H steps, so that it is not handicapped by the horizon; `window`, finite with
rewards averaged over the last sqrt(T) episodes only, the obvious answer to rewards that change; `generator`, GM-R2MAB, the
stationary LP on samples of a generator (privileged).

Knowledge: nothing of the kernels; Hoeffding boxes. Feedback: bandit. Hard budget: the LP's holds on average; the B highest
indices are activated. Theory: kernels and rewards within delta; tuned: within 0.1 delta (studies/tuning.py, held-out seeds,
version `stationary`; docs/tuning.md).

The index of a state without mass is not defined as published. Stationary masses are in few states, so it matters: there, it
is what the plan would do, 1 or 0 (`StationaryFluid.share`). The finite versions leave it at 0.

The width of a mean reward is that of the visits whose reward was shown. That of `window` is deliberately that of all visits,
not of the window's: with the few of those, every reward would be hoped to be 1 for ever.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.algorithms.extended_lp import OPTIMISM, SAMPLES, ExtendedLearner, finite_plan
from rmab.learning.index_learner import Known
from rmab.learning.kept import Declared, masses
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.parts import EPSILON
from rmab.learning.pools import Pools, share_of
from rmab.learning.state import Arrays, State
from rmab.model.view import View
from rmab.solvers.checks import check_one_budget
from rmab.solvers.stationary.stationary import stationary_fluid


@configured
class RmabUcrl(ExtendedLearner):
    """Optimism about kernels and rewards; the reward of a pair is taken for min(mean + delta, 1)."""

    name = "rmab-ucrl"
    paper = "Xiong, Wang & Li, NeurIPS 2022"
    TUNED = {"optimism": 0.1}
    preset: Preset = option(default="theory", help=PRESET)
    version: Literal["stationary", "finite", "window", "generator"] = option(
        default="stationary", help="as published, for a finite horizon, with a window of sqrt(T), or from a generator"
    )
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    optimism: float | None = option(default=None, ge=0, le=100, help=OPTIMISM)
    samples: int | None = option(default=None, ge=1, le=10**9, help=SAMPLES)

    def prepare(self, known: Known) -> Arrays:
        """Solve the extended LP; the share of a state's mass that is active is the index of its block."""
        pools, (sets, estimate) = known.pools, self.optimistic(known)
        if self.version in ("finite", "window"):
            mass = finite_plan(pools, sets, estimate)
            return {"estimate": estimate, "mass": mass, "share": share_of(mass)}
        blocks, view = sets.take(pools.group), pools.view
        rest = (check_one_budget(self.name, view.budget), pools.weights, pools.real[pools.group])
        endless = stationary_fluid(blocks.low, blocks.high, estimate[pools.payoff], *rest)
        mass, share = (np.repeat(one[:, np.newaxis], view.horizon, axis=1) for one in (endless.mass, endless.share))
        return {"estimate": estimate, "mass": mass, "share": share}

    def kept(self, view: View) -> Declared:
        """Declare the shares, too."""
        return {**super().kept(view), "share": masses(Pools.of(view).weights.size, view.horizon, view.states)}

    def refuses(self, view: View) -> str:
        """Return that an endless horizon knows neither phases nor budgets by step."""
        endless = self.version in ("stationary", "generator") and (view.phases > 1 or not isinstance(view.budget, int))
        why = f"version {self.version!r} plans for ever, with one phase and one budget: take version 'finite' or 'window'"
        return why if endless else ""

    def table(self, state: State) -> FloatArray:
        """(N, H, S) the share of every arm's block."""
        return state.arrays["share"][Pools.of(state.view).block_of]

    def times_seen(self, known: Known) -> IntArray:
        """(R, S, 2) the visits whose reward was shown; with a window deliberately all visits."""
        return known.visits[known.pools.group_of_payoff] if self.version == "window" else known.shown

    def window(self, view: View) -> int:
        """Return sqrt(T) in the version of that name."""
        return max(1, round(view.episodes**0.5)) if self.version == "window" else 0
