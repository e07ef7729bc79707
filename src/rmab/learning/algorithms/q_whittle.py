"""Whittle-index Q-learning, tabular, on two time scales (Avrachenkov and Borkar, Automatica 2022; Robledo et al., 2022).

For every reference state x an arm keeps Q_x(s, a), learned at the price lambda(x) of activation, and moves the price slowly
until both actions are worth the same in x: lambda(x) is then the Whittle index of x.
    Q_x(s,a) += fast(visits of (s,a)) * (r - lambda(x) a + discount * max Q_x(s',.) - Q_x(s,a))
    lambda(x) += slow(steps) * (Q_x(x,1) - Q_x(x,0))
    fast(m) = min(1, c / ceil(m / 500)), slow(n) = c' / (1 + ceil(n ln n / 500)), c = 0.1, c' = 0.2 (our reading)

Knowledge: nothing, no model is kept. Feedback: bandit; a pair whose reward is not shown teaches nothing. Hard budget: as
published, the B highest indices are activated; with probability 0.1 a step is for exploration, and its B arms are random.
The discount is 1 - 1/H. Arms that are alike learn together: transitions of one pair at one step count as one, with their
mean. Tuned: c and c' as they are, exploration 0.3 of 0.1 (studies/tuning.py, held-out seeds; docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.learning.base import Learner, Plan, stream
from rmab.learning.index_tables import endless_discount
from rmab.learning.kept import MOST, Declared, Kept, whole
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import Pools
from rmab.learning.state import Arrays, State
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import IndexPolicy

FAST, SLOW, PATIENCE, EXPLORATION = 0.1, 0.2, 500.0, 0.1
KEY = 102  # of the stream that says which steps are for exploration


class Tables:
    """Q (R,S,S,2) by payoff, reference state, state and action; index (R,S); visits (R,S,2); steps so far."""

    def __init__(self, quality: FloatArray, index: FloatArray, visits: FloatArray, steps: int) -> None:
        self.quality, self.index, self.visits, self.steps = quality.copy(), index.copy(), visits.copy(), steps

    def step(
        self,
        payoff: IntArray,
        here: IntArray,
        action: IntArray,
        paid: FloatArray,
        there: IntArray,
        rates: tuple[float, float, float],
    ) -> None:
        """Learn from the arms' moves (N,) at one step; paid is NaN where it was not shown; rates: fast, slow, discount."""
        fast, slow, discount = rates
        self.steps += 1
        known = ~np.isnan(paid)
        k, s, a = payoff[known], here[known], action[known]
        ahead = self.quality[k, :, there[known]].max(axis=2)  # (N, S): by reference state
        target = paid[known, np.newaxis] - self.index[k] * a[:, np.newaxis] + discount * ahead
        number, total = np.zeros(self.visits.shape), np.zeros((*self.visits.shape, self.index.shape[1]))
        np.add.at(number, (k, s, a), 1.0)
        np.add.at(total, (k, s, a), target)
        met = np.nonzero(number)
        self.visits[met] += 1.0
        rate = fast_rate(self.visits[met], fast)[:, np.newaxis]
        mean, view = total[met] / number[met][:, np.newaxis], self.quality.transpose(0, 2, 3, 1)
        view[met] += rate * (mean - view[met])
        states = np.arange(self.index.shape[1])
        own = self.quality[:, states, states]
        self.index += slow_rate(self.steps, slow) * (own[..., 1] - own[..., 0])


def fast_rate(visits: FloatArray, scale: float) -> FloatArray:
    """Return the rate of Q at the m-th visit of a pair."""
    return np.minimum(scale * FAST / np.ceil(visits / PATIENCE), 1.0)


def slow_rate(steps: int, scale: float) -> float:
    """Return the rate of the indices at the n-th step: small beside that of Q in the long run."""
    return float(scale * SLOW / (1.0 + np.ceil(steps * np.log(steps) / PATIENCE)))


@configured
class QWhittle(Learner):
    """No model: a price per state that is moved until it makes no difference."""

    name = "q-whittle"
    paper = "Avrachenkov & Borkar, Automatica 2022; Robledo, Borkar, Ayesta & Avrachenkov, 2022"
    TUNED = {"fast": 1.0, "slow": 1.0, "exploration": 0.3}
    preset: Preset = option(default="theory", help=PRESET)
    fast: float | None = option(default=None, ge=1e-12, le=1e4, help="the rate of Q, in units of the papers'")
    slow: float | None = option(default=None, ge=1e-12, le=1e4, help="the rate of the indices, in units of the papers'")
    exploration: float | None = option(default=None, ge=0, le=10, help="the part of steps played at random, in units of 0.1")

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with zeros."""
        payoffs, states = len(Pools.of(view).zero), view.states
        tables = {"quality": np.zeros((payoffs, states, states, 2)), "index": np.zeros((payoffs, states))}
        return {**tables, "visits": np.zeros((payoffs, states, 2)), "steps": np.array(0)}

    def kept(self, view: View) -> Declared:
        """Declare the tables."""
        payoffs, states = len(Pools.of(view).zero), view.states
        tables = {"quality": Kept((payoffs, states, states, 2)), "index": Kept((payoffs, states))}
        return {**tables, "visits": Kept((payoffs, states, 2), "f", 0, MOST), "steps": whole()}

    def decide_in(self, state: State, view: View) -> Plan:
        """Activate the highest indices, which depend on no situation."""
        return self.decide(state.seen_in(view))

    def refuses(self, view: View) -> str:
        """Return that an endless horizon knows no phases."""
        return "learns the Whittle index of an endless horizon, which knows no phases" if view.phases > 1 else ""

    def decide(self, state: State) -> Plan:
        """Activate the highest indices, or random arms at the steps that are for exploration."""
        view = state.view
        luck = stream(state.seed, KEY, state.episode).random(view.horizon)
        greedy = luck >= EXPLORATION * self.chosen("exploration")
        index = state.arrays["index"][Pools.of(view).payoff_of]
        table = np.where(greedy[:, np.newaxis], index[:, np.newaxis], 0.0)  # equal indices: B arms at random
        return Plan(IndexPolicy(table, view.budget))

    def update(self, state: State, feedback: Feedback) -> Arrays:
        """Learn from one step after the other."""
        view, arrays, pools = state.view, state.arrays, Pools.of(state.view)
        tables = Tables(arrays["quality"], arrays["index"], arrays["visits"], int(arrays["steps"]))
        rates = (self.chosen("fast"), self.chosen("slow"), endless_discount(view))
        values, states, actions = pools.observe(feedback).values, feedback.states, feedback.actions.astype(np.int64)
        for h in range(len(actions)):
            paid = values[pools.payoff_of, states[h], actions[h]]
            tables.step(pools.payoff_of, states[h], actions[h], paid, states[h + 1], rates)
        return {"quality": tables.quality, "index": tables.index, "visits": tables.visits, "steps": np.array(tables.steps)}
