"""UCWhittle (Wang, Xu, Taneja and Tambe, AAAI 2023), value form: Whittle indices of the most optimistic kernels.

Before every episode, kernels are those of the L1 balls that maximise the discounted value of reward - price * a, at the
current price of activation (extended value iteration replaces the paper's bilinear programme); arms are ranked by the
Whittle index of these kernels; the next price is the B-th largest index, averaged over the steps of the episode.

Knowledge: nothing of the kernels; L1 balls of radius sqrt(2 S ln(2 S A N t^4 / epsilon) / m). Feedback: bandit. The paper
knows the rewards; ours are running means, 1 if never seen. Hard budget: as published, the B highest indices are
activated. The discount, which the paper leaves open, is 1 - 1/H. Tuned: the theory's own radius won
(docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray, IntArray, log_over
from rmab.errors import SolverError
from rmab.learning.components import EPSILON
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.index_tables import infinite_discount, whittle_table
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import Pools, empirical
from rmab.learning.state import Arrays, ArraySpec, ArraySpecs, State
from rmab.model import View, limits_of, slots_of
from rmab.play import Feedback
from rmab.solvers.compiled.balls import iterate_lifted_values

ROUNDS = 100_000  # of value iteration, at most
CLOSE = 1e-9  # values


@configured
class UcWhittle(IndexLearner):
    """Whittle indices of optimistic kernels."""

    name = "uc-whittle"
    TUNED = {"optimism": 1.0}
    preset: Preset = option(default="theory", help=PRESET)
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    optimism: float | None = option(default=None, ge=0, le=100, help="radius, in units of the theory's")

    def prepare(self, known: Knowledge) -> Arrays:
        """Return the Whittle indices of the most optimistic kernels at the current price."""
        pools, means = known.pools, known.means
        price, discount = float(known.arrays.get("price", np.array(0.0))), infinite_discount(pools.view)
        wide = whittle_radius(pools.view, known.visits, known.episode, self.epsilon)
        wide = np.minimum(self.parameter("optimism") * wide, 2.0)
        kernels, values = optimistic_kernels(pools, known.counts, means, wide, price, discount)
        table = whittle_table(pools, kernels, means[pools.payoff], discount)
        return {"table": table, "estimate": means, "values": values, "price": np.array(price)}

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare the price, too, and the index of an infinite horizon."""
        return {**super().state_spec(view), "price": ArraySpec(()), "table": ArraySpec((view.arms, view.states))}

    def observe(self, state: State, feedback: Feedback) -> Arrays:
        """Keep the price that would have cleared the budget."""
        steps = len(feedback.actions)
        budgets = state.view.slots[:steps]
        if feedback.budget is not None:
            budgets = slots_of(limits_of(feedback.budget, steps), state.view.cost)
        return {"price": np.array(clearing_price(state.arrays["table"], feedback.states[:-1], budgets))}

    def refuses(self, view: View) -> str:
        """Reject phases."""
        return "ranks by the Whittle index of an infinite horizon, which does not support phases" if view.phases > 1 else ""


def whittle_radius(view: View, visits: IntArray, episode: int, epsilon: float) -> FloatArray:
    """(G, S, 2) L1 radius sqrt(2 S ln(2 S A N t^4 / epsilon) / m), t from 1; 2, which allows every kernel, where m is 0."""
    log = log_over(2 * view.states * 2 * view.arms, epsilon) + 4 * np.log(episode + 1)
    return np.where(visits > 0, np.minimum(np.sqrt(2 * view.states * log / np.maximum(visits, 1)), 2.0), 2.0)


def optimistic_kernels(
    pools: Pools, counts: IntArray, reward: FloatArray, radius: FloatArray, price: float, discount: float
) -> tuple[FloatArray, FloatArray]:
    """(C, S, 2, S) kernels of the balls (G,S,2) that are most optimistic at this price, and these values (C, S)."""
    mean = empirical(counts, pools.support)[pools.group]
    values, rows = np.zeros(mean.shape[:2]), np.empty_like(mean)
    balls = (mean, radius[pools.group], pools.support[pools.group])
    if not iterate_lifted_values(*balls, reward[pools.payoff], price, discount, CLOSE, ROUNDS, values, rows):
        raise SolverError(f"uc-whittle: value iteration did not converge in {ROUNDS} rounds")
    return rows, values


def clearing_price(table: FloatArray, states: IntArray, budgets: IntArray) -> float:
    """Return the B-th largest index (N,S) among the arms in their states (H,N), mean over the steps; 0 without budget.

    The budgets (H,) are those of the steps.
    """
    index = np.sort(table[np.arange(len(table)), states], axis=1)
    clearing = index[np.arange(len(index)), -np.maximum(budgets, 1)]
    return float(np.where(budgets > 0, clearing, 0.0).mean())
