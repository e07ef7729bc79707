"""Colored-UCRL2 (Ortner, Ryabko, Auer and Munos, 2012/2014): UCRL2 on the joint process of all arms, exponential.

The joint state is that of all arms, an action a set of at most B arms; arms with the same colour, that is group, state and
action, share their counts. Optimistic planning chooses kernels and rewards within their sets; it plans again when the
count of a colour has doubled.

Knowledge: nothing of the kernels; L1 balls of radius sqrt(56 S ln(2 C t / epsilon) / m), rewards within sqrt(7 ln(2 C t /
epsilon) / 2m), C colours, t steps so far, m visits. Feedback: bandit. The hard budget needs no adaptation: it is in the
actions. All states are seen, so that the paper's (last state, time since) are not needed; planning is backward over the H
steps of an episode, and plans change between episodes only. In a product of balls the arms take their best rows in turn,
given those of the others, twice: exact for one arm; for two arms of three states and H = 3 it missed the optimum in 8 % of
random cases, by 0.65 % at most. Rejects tasks whose joint plan would take too long.
Tuned: radius and width 0.1 of these (docs/tuning.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, log_over
from rmab.errors import ModelError
from rmab.learning.base import EpisodePlan
from rmab.learning.components import has_doubled
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.options import PRESET, Preset, configured, option
from rmab.learning.pools import Pools, empirical
from rmab.learning.state import Arrays, ArraySpec, ArraySpecs, State, whole
from rmab.model import View
from rmab.play import checked_states
from rmab.solvers.compiled.balls import joint_plan

LARGEST = 10**9  # operations of a plan: joint states, sets, joint states that may follow, arms and steps; some seconds
PASSES = 2


@dataclass(frozen=True, eq=False)
class JointPolicy:
    """At step h in joint state x, activate sets[choice[h, x]]; choice (H, S^N), sets (K, N), the first arm's state first."""

    choice: IntArray
    sets: BoolArray
    states: int

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:  # noqa: ARG002
        """Look the joint state up."""
        arms = self.sets.shape[1]
        now = checked_states(h, states, arms, len(self.choice), self.states)
        place = np.ravel_multi_index(tuple(now.tolist()), (self.states,) * arms)
        return np.array(self.sets[self.choice[h, place]])


@configured
class ColoredUcrl2(IndexLearner):
    """Optimistic planning of all arms jointly."""

    name = "colored-ucrl2"
    TUNED = {"optimism": 0.1}
    preset: Preset = option(default="theory", help=PRESET)
    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help="probability that the truth lies outside its set")
    optimism: float | None = option(default=None, ge=0, le=100, help="radius and width, in units of the theory's")

    def state_spec(self, view: View) -> ArraySpecs:
        """Declare the joint plan of all arms, and the visits when it was computed."""
        joint, sets = view.states**view.arms, sum(comb(view.arms, k) for k in range(int(view.budgets.max()) + 1))
        shape = Pools.of(view).support.shape[:3]
        plan = {
            "choice": ArraySpec((view.horizon, joint), "i", 0, sets - 1),
            "value": ArraySpec((joint,)),
            "epoch": whole(*shape),
        }
        return {**super().state_spec(view), **plan}

    @property
    def anywhere(self) -> bool:
        """No: plans are kept until a count has doubled."""
        return False

    def refuses(self, view: View) -> str:
        """Reject phases, and budgets that change from step to step."""
        timed = view.phases > 1 or not isinstance(view.budget, int)
        return "plans with one phase and one budget for all steps" if timed else ""

    def initial(self, view: View, seed: int) -> Arrays:
        """Begin, unless the task is too large for a joint plan."""
        joint, sets = view.states**view.arms, sum(comb(view.arms, k) for k in range(int(view.budgets.max()) + 1))
        work = joint * sets * joint * view.arms * view.horizon
        if work > LARGEST:
            size = f"{view.states}^{view.arms} = {joint} joint states and {sets} sets of arms are too many"
            steps = f"for {view.horizon} steps, with {work:.0e} operations, the limit is {LARGEST:.0e}; use fewer arms"
            raise ModelError(f"{self.name} plans for all arms jointly: {size} {steps}")
        return super().initial(view, seed)

    def prepare(self, known: Knowledge) -> Arrays:
        """Recompute the plan if the count of a colour has doubled."""
        pools, visits, episode = known.pools, known.visits, known.episode
        if episode and not has_doubled(known.arrays["epoch"], visits):
            return {}
        view, sure = pools.view, (self.epsilon, self.parameter("optimism"))
        radius, width = color_widths(view, visits, known.shown, episode, *sure)
        estimate = known.with_zeros(np.minimum(known.means + width, 1.0))
        values = np.empty((view.horizon + 1, view.states**view.arms))
        choice = np.zeros((view.horizon, view.states**view.arms), dtype=np.int64)
        mean, support = empirical(known.counts, pools.support), pools.support
        arms = (mean[pools.group_of], radius[pools.group_of], support[pools.group_of], estimate[pools.payoff_of])
        joint_plan(*arms, joint_sets(view, known.seed), PASSES, values, choice)
        return {"epoch": visits, "choice": choice, "value": values[0], "estimate": estimate}

    def decide(self, state: State) -> EpisodePlan:
        """Look the joint state up."""
        sets = joint_sets(state.view, state.seed)
        return EpisodePlan(JointPolicy(state.arrays["choice"], sets, state.view.states))


def color_widths(
    view: View, visits: IntArray, shown: IntArray, episode: int, epsilon: float, optimism: float
) -> tuple[FloatArray, FloatArray]:
    """Return the L1 radius (G,S,2) of the visits, and the width (R,S,2) of mean rewards, before this
    episode (from 0); everything is possible for unvisited pairs.
    """
    steps = max(episode * view.horizon, 1)
    log = log_over(2 * visits.size * steps, epsilon)
    radius = np.minimum(optimism * np.sqrt(56 * view.states * log / np.maximum(visits, 1)), 2.0)
    width = np.minimum(optimism * np.sqrt(7 * log / (2 * np.maximum(shown, 1))), 1.0)
    return np.where(visits > 0, radius, 2.0), np.where(shown > 0, width, 1.0)


def joint_sets(view: View, seed: int) -> BoolArray:
    """(K, N) all sets of at most B arms, large ones first, as ties go to the first; in an order of the seed's otherwise."""
    every = [chosen for size in range(int(view.budgets.max()), -1, -1) for chosen in combinations(range(view.arms), size)]
    sets = np.zeros((len(every), view.arms), dtype=bool)
    for k, chosen in enumerate(every):
        sets[k, list(chosen)] = True
    order = np.random.default_rng(seed).random(len(every))
    return sets[np.lexsort((order, -sets.sum(axis=1)))]
