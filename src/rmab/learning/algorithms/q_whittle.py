"""Whittle-index Q-learning, tabular, on two time scales (Avrachenkov and Borkar, Automatica 2022).

For every reference state x an arm keeps Q_x(s, a), learned at the price lambda(x) of activation by relative value iteration
(average reward), and moves the price slowly until both actions are worth the same in x: lambda(x) is then the Whittle index.
    Q_x(s,a) += fast(visits of (s,a)) * (r - lambda(x) a + max Q_x(s',.) - mean Q_x - Q_x(s,a))        at every step
    lambda(x) += slow(n) * (Q_x(x,1) - Q_x(x,0))                                                       at every N-th step
    fast(m) = min(1, c / ceil(m / 500)), slow(n) = c' / (1 + ceil(n ln n / 500)), N arms, n steps
With probability 0.1 a step is for exploration: its B arms are random; else the B highest indices are activated.

This is theirs; c = 0.1, c' = 1 and the following are our reading:
- Identical arms learn together: transitions of one pair at one step count as one, with their mean.
- A price moves only if both actions were met in its state since it moved last, and n is N times the number of its moves. In
  their examples, with a hundred identical arms, that is at every N-th step. Where every arm learns alone, prices
  would otherwise diverge on outdated Q.
- Prices stay within -H..H, which is all that an activation can change in an episode (rewards are mapped to [0, 1]).
- The mean is over the states that the arm has.

Robledo et al. (2022) discount instead. With a discount of 1 - 1/H, Q is of the size of H while pairs not yet met are at 0,
and prices that move at every step follow the difference: on `circulant` (N = 100, H = 100) they passed 1e6 where no index
is above 1. Relative value iteration alone fixes that; moving at every N-th step keeps the first prices small, too. As it is,
60 episodes come within 0.1 of the indices there, and within 0.25 on `restart`, in the right order.

Knowledge: nothing, no model is kept. Feedback: bandit; a pair whose reward is not shown teaches nothing, so prices do not
move where those of passive pairs never are. Hard budget: as published. Tuned: ten times the rate of Q, which follows
rewards that change (docs/tuning.md).
"""

from __future__ import annotations

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.learning.base import EpisodePlan, Learner, stream
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import Pools
from rmab.learning.state import MOST, Arrays, ArraySpec, ArraySpecs, State, whole
from rmab.model import View
from rmab.play import Feedback, IndexPolicy

FAST, SLOW, PATIENCE, EXPLORATION = 0.1, 1.0, 500.0, 0.1
TABLES = ("quality", "index", "visits", "moves", "met")
KEY = 102  # key of the random stream of exploration steps


class Tables:
    """Tables by payoff, reference state, state and action, with the clocks of the prices.

    quality (R, S, S, 2); index (R, S); visits (R, S, 2); moves (R, S) of the prices; met (R, S, 2): the visits when a price
    moved last; steps so far. real (R, S): which states exist.
    """

    def __init__(self, arrays: Arrays, real: BoolArray) -> None:
        self.quality, self.index, self.visits, self.moves, self.met = (arrays[name].copy() for name in TABLES)
        self.steps, self.real = int(arrays["steps"]), real
        self.weight = real / (2.0 * real.sum(axis=1, keepdims=True))  # (R, S): of either pair of a state in the mean

    def step(
        self, payoff: IntArray, here: IntArray, action: IntArray, paid: FloatArray, there: IntArray, fast: float
    ) -> None:
        """Learn Q from the arms' moves (N,) at one step; paid is NaN where it was not shown."""
        self.steps += 1
        known = ~np.isnan(paid)
        k, s, a = payoff[known], here[known], action[known]
        ahead = self.quality[k, :, there[known]].max(axis=2)  # (N, S): by reference state
        level = np.einsum("kxsa,ks->kx", self.quality, self.weight)  # estimate of the average reward
        target = paid[known, np.newaxis] - self.index[k] * a[:, np.newaxis] + ahead - level[k]
        number, total = np.zeros(self.visits.shape), np.zeros((*self.visits.shape, self.index.shape[1]))
        np.add.at(number, (k, s, a), 1.0)
        np.add.at(total, (k, s, a), target)
        pairs = np.nonzero(number)
        self.visits[pairs] += 1.0
        rate = fast_rate(self.visits[pairs], fast)[:, np.newaxis]
        mean, view = total[pairs] / number[pairs][:, np.newaxis], self.quality.transpose(0, 2, 3, 1)
        view[pairs] += rate * (mean - view[pairs])

    def move_prices(self, arms: int, slow: float, most: float) -> None:
        """Move the prices of the states in which both actions were met since they moved last."""
        due = (self.visits > self.met).all(axis=2)
        self.moves[due] += 1.0
        self.met[due] = self.visits[due]
        states = np.arange(self.index.shape[1])
        own = self.quality[:, states, states]
        rate = slow_rate(arms * self.moves[due], slow)
        self.index[due] = np.clip(self.index[due] + rate * (own[due, 1] - own[due, 0]), -most, most)

    @property
    def arrays(self) -> Arrays:
        """All arrays to store."""
        return {**{name: getattr(self, name) for name in TABLES}, "steps": np.array(self.steps)}


def fast_rate(visits: FloatArray, scale: float) -> FloatArray:
    """Return the rate of Q at the m-th visit of a pair."""
    return np.minimum(scale * FAST / np.ceil(visits / PATIENCE), 1.0)


def slow_rate(steps: FloatArray, scale: float) -> FloatArray:
    """Return the rate of a price at the n-th step of its clock: small beside that of Q in the long run."""
    return np.asarray(scale * SLOW / (1.0 + np.ceil(steps * np.log(steps) / PATIENCE)))


@configured
class QWhittle(Learner):
    """Model-free: the price of each state moves until both actions are worth the same."""

    name = "q-whittle"
    TUNED = {"fast": 10.0, "exploration": 1.0}
    preset: Preset = option(default="theory", help=PRESET)
    fast: float | None = option(default=None, ge=1e-12, le=1e4, help="initial rate of Q, in units of 0.1")
    slow: float | None = option(default=None, ge=1e-12, le=1e4, help="initial rate of the indices, in units of 1")
    exploration: float | None = option(default=None, ge=0, le=10, help="fraction of random steps, in units of 0.1")

    def initial(self, view: View, seed: int) -> Arrays:  # noqa: ARG002
        """Begin with zeros."""
        payoffs, states = len(Pools.of(view).zero), view.states
        prices = {"index": np.zeros((payoffs, states)), "moves": np.zeros((payoffs, states))}
        counts = {"visits": np.zeros((payoffs, states, 2)), "met": np.zeros((payoffs, states, 2))}
        return {"quality": np.zeros((payoffs, states, states, 2)), **prices, **counts, "steps": np.array(0)}

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare the tables."""
        payoffs, states = len(Pools.of(view).zero), view.states
        tables = {"quality": ArraySpec((payoffs, states, states, 2)), "index": ArraySpec((payoffs, states))}
        counts = {name: ArraySpec((payoffs, states, 2), "f", 0, MOST) for name in ("visits", "met")}
        return {**tables, **counts, "moves": ArraySpec((payoffs, states), "f", 0, MOST), "steps": whole()}

    def decide_in(self, state: State, view: View) -> EpisodePlan:
        """Activate the highest indices, which depend on no situation."""
        return self.decide(state.seen_in(view))

    def refuses(self, view: View) -> str:
        """Reject phases."""
        return "learns the Whittle index of an infinite horizon, which does not support phases" if view.phases > 1 else ""

    def decide(self, state: State) -> EpisodePlan:
        """Activate the highest indices, or random arms at the steps that are for exploration."""
        view = state.view
        numbers = stream(state.seed, KEY, state.episode).random(view.horizon)
        greedy = numbers >= EXPLORATION * self.parameter("exploration")
        index = state.arrays["index"][Pools.of(view).payoff_of]
        table = np.where(greedy[:, np.newaxis], index[:, np.newaxis], 0.0)  # equal indices: B arms at random
        return EpisodePlan(IndexPolicy(table, view.budget))

    def update(self, state: State, feedback: Feedback) -> Arrays:
        """Learn from one step after the other."""
        view, pools = state.view, Pools.of(state.view)
        tables = Tables(state.arrays, pools.real[pools.group_of_payoff])
        fast, slow = self.parameter("fast"), self.parameter("slow")
        values, states, actions = pools.observe(feedback).values, feedback.states, feedback.actions.astype(np.int64)
        for h in range(len(actions)):
            paid = values[pools.payoff_of, states[h], actions[h]]
            tables.step(pools.payoff_of, states[h], actions[h], paid, states[h + 1], fast)
            if tables.steps % view.arms == 0:
                tables.move_prices(view.arms, slow, float(view.horizon))
        return tables.arrays
