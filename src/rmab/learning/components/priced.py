"""The priced step: plans softened by the entropy of their decisions, found in the H prices of the budget alone.

    max over flows of the kernels   <z, r> - (1 / beta) sum of z(h,s) KL(z(.|h,s) || uniform),   within the budget on average

r is the forecast. As long as forecasts come true, the plan is executed unchanged; otherwise the play with a guarantee
takes over: dual averaging on the mean of all past rewards, at an inverse temperature that grows with the root of the number
of episodes, with its shares drawn unchanged.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rmab.common import FloatArray, check_memory
from rmab.errors import ModelError, SolverError
from rmab.learning.components.base import MadeSets, RewardEstimate, Step, StepResult
from rmab.learning.components.execution import gain_of_drawing
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, Memory
from rmab.model import by_phase, cells
from rmab.solvers.fluid.path import SoftPath
from rmab.solvers.priced.blocks import Priced as Solved, Warm, soften_blocks
from rmab.solvers.priced.program import uniform_rates
from rmab.solvers.transitions import TransitionSets

PART = 0.1  # share of the plan's gain that entropy may cost
FIRST, GREATEST, GROWTH = 10.0, 1e4, 4.0  # beta at first and at most, and its factor from episode to episode
TOLERANCE = 1e-4  # certified gap of a plan
TRIALS = 3  # softer plans to try if one cannot be certified
RECENT = 0.9  # discount factor of predicted and realised gains
FORGIVEN = 0.99  # discount factor of the number of times that trust was lost
MARGIN = 0.05  # share of the realised gain by which drawn shares must have earned more in replays
TRIAL = 2  # episodes before forecasts are judged
SLACK = 1e-3  # relative margin below the share of an arm that gains nothing
ROUNDING = 1e-12  # smaller gains, relative to the reward, count as zero
NOTHING = 1e-100  # smaller rewards count as 0
HUGE = 1e15  # larger sums are invalid
SMALL = 100_000  # size of a plan that is stored; larger ones are recomputed from their prices

TRUST = "forecasts are trusted while at least this share of the predicted gain is realised; 0: always"
EXECUTED = "whether forecasts are judged by observed rewards only, and more strictly each time they have failed (see trust)"
FORECAST, PAST = "forecast", "past"  # the two plans: for the forecast, and for the mean of past rewards


class Found(NamedTuple):
    """A plan, its visits in excess of the uniform policy's (R, S, 2), and the beta that fits it."""

    plan: Solved
    lead: FloatArray
    fitting: float


@configured
class Priced(Step):
    """Plan with the forecast by the priced step, as greedily as its gain allows, as long as forecasts come true.

    Beta is chosen automatically: the entropy of the plan's decisions costs a tenth (over `scale`) of what the plan gains
    over the uniform policy. Both scale with the rewards and with the effect of decisions, so that no task needs its
    own rate, and T need not be known.

    Trust: the plan gains over the uniform policy through its excess visits. Their predicted and their realised value
    are added up (recent episodes count most), of the pairs whose reward was observed (`executed`): a reward that was
    planned and not obtained proves nothing. If less than the fraction `trust` was realised, the next episode is played
    by dual averaging, and its shares are drawn. Every further time that trust is lost halves the distance of the wanted
    fraction to 1, so that an adversary that answers to the plan gains little by earning trust again.

    Kernels are the estimated ones. With confidence sets, they are chosen by the optimistic fluid plan, step by step.
    """

    stored = False
    scale: float = option(
        default=1.0, ge=1e-12, le=1e6, help="factor on the automatic inverse temperature; above 1: greedier"
    )
    trust: float = option(default=0.3, ge=0, le=1, help=TRUST)
    executed: bool = option(default=True, help=EXECUTED)
    replay: bool = option(
        default=True, help="whether to draw arms by the plan's shares if that earns more in simulations of the last plan"
    )
    rest: bool = option(default=True, help="whether arms stay passive where activation is expected to do harm")

    @property
    def draws(self) -> bool:  # type: ignore[override]  # an attribute of other parts
        """Whether there are replays, which simulate every arm, or rest: who rests in the first episode is drawn."""
        return self.replay or self.rest

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the prices of both plans, and the predicted gains."""
        horizon, pairs = pools.view.horizon, pools.zero.shape
        several: dict[str, ArraySpec] = {}
        least = -HUGE if pools.view.exact else 0  # an exact budget may do harm
        for name in (FORECAST, PAST):
            several[f"{name}.reward"] = ArraySpec(pairs, "f", -1e9, 1e9, optional=name == PAST)
            several[f"{name}.beta"] = ArraySpec((), "f", 0, GREATEST, optional=name == PAST)
            several[f"{name}.fitting"] = ArraySpec((), "f", 0, GREATEST, optional=name == PAST)
            several[f"{name}.prices"] = ArraySpec((horizon,), "f", least, HUGE, optional=name == PAST)
            several[f"{name}.curvature"] = ArraySpec((horizon, horizon), optional=True)
        sums = {name: ArraySpec((), "f", -HUGE, HUGE) for name in ("believed", "realised", "drawing")}
        tables = {name: ArraySpec(pairs, "f", -HUGE, HUGE) for name in ("lead", "likely", "mean")}
        share = ArraySpec((pools.weights.size, horizon, pools.view.states), "f", 0, 1, optional=True)
        broken = ArraySpec((), "f", 0, HUGE, optional=True)
        return {**several, **sums, **tables, "trusted": ArraySpec((), "b"), "broken": broken, "share": share}

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Plan as if every reward were the maximum."""
        hope = np.where(pools.zero, pools.floor, 1.0)
        found, memory = self._planned(FORECAST, {}, pools, sets, hope, GREATEST)
        nothing = np.array(0.0)
        kept = {
            "believed": nothing,
            "realised": nothing,
            "drawing": nothing,
            "lead": found.lead,
            "likely": hope,
            "mean": np.zeros(hope.shape),
        }
        return _stepped(found, {**memory, **kept, "trusted": np.array(True)})

    def move(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> StepResult:
        """Judge the last forecast, plan with the new one; and with past rewards if forecasts are not trusted."""
        pools, number = episode.pools, episode.number
        if estimate.gain.ndim == 4:
            raise ModelError("Priced needs rewards by pair, got a direction per step; use step 'lazy' or 'active'")
        past = memory["mean"] + (estimate.gain - memory["mean"]) / (number + 1)
        expected = past if estimate.ahead is None else estimate.ahead
        likely = expected if estimate.likely is None else estimate.likely
        found, kept = self._planned(FORECAST, memory, pools, sets, expected, GREATEST)
        sums = self._judged(memory, episode, estimate)
        sums["drawing"] = np.asarray(RECENT * memory["drawing"] + self._replayed(memory, episode, sets, estimate))
        kept = {**kept, **sums, "lead": found.lead, "likely": likely, "mean": past}
        passes = found.plan.passes
        if not sums["trusted"]:
            most = max(1.0, np.sqrt((number + 1) * np.log(2.0 * pools.view.states**2)))
            found, other = self._planned(PAST, memory, pools, sets, past, most)
            kept.update(other)
            passes += found.plan.passes
        return _stepped(found, kept, passes, drawn=_drawn(kept))

    def _judged(self, memory: Memory, episode: Episode, estimate: RewardEstimate) -> dict[str, FloatArray]:
        """Return predicted and realised gain with those of this episode, whether to trust, and how often trust was lost."""
        believed, realised, broken = memory["believed"], memory["realised"], FORGIVEN * memory.get("broken", np.array(0.0))
        if episode.number > 0:
            unseen = np.isnan(episode.observed.values) & self.executed
            lead = np.where(unseen, 0.0, memory["lead"])
            believed = RECENT * believed + (lead * memory["likely"]).sum()
            realised = RECENT * realised + (lead * estimate.gain).sum()
        again = max(float(broken) - 1.0, 0.0) if self.executed else 0.0
        wanted = 1.0 - (1.0 - self.trust) * 0.5**again
        trusted = episode.number < TRIAL or self.trust == 0 or bool(realised >= wanted * believed)
        lost = bool(memory["trusted"]) and not trusted
        sums = {"believed": believed, "realised": realised, "trusted": trusted, "broken": broken + lost}
        return {name: np.asarray(one) for name, one in sums.items()}

    def _replayed(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> float:
        """Return what the last plan would have gained with drawn shares; 0 without replays."""
        if not self.replay or "share" not in memory or not memory["trusted"] or not sets.single or episode.number == 0:
            return 0.0
        worthless = self._worthless(memory, episode.pools) if self.rest and not episode.pools.view.exact else None
        return gain_of_drawing(episode.pools, memory["share"], worthless, sets.low, estimate.gain, episode.draw_key)

    def again(self, memory: Memory, pools: Pools, sets: TransitionSets) -> StepResult:
        """Plan with the last forecast, or with past rewards, at the last beta."""
        plan = _again(memory, pools, sets)
        return _in_force(memory, pools, sets, plan.share, plan.passes)

    def last(self, memory: Memory, pools: Pools, sets: MadeSets) -> StepResult:
        """Return the last plan, stored or recomputed."""
        share = memory["share"] if "share" in memory else _again(memory, pools, sets()).share
        return _in_force(memory, pools, sets, share)

    def prices(self, memory: Memory) -> FloatArray | None:
        """(H,) the price of an activation at each step of the last plan."""
        prices: FloatArray = memory[f"{FORECAST}.prices"]
        return prices

    def worthless(self, memory: Memory, pools: Pools) -> FloatArray | None:
        """(H,) the share of an arm that gains nothing from activation: uniform odds times exp(-beta price)."""
        if not self.rest or pools.view.exact or _drawn(memory):  # shares to draw stay unchanged
            return None
        return self._worthless(memory, pools)

    def _worthless(self, memory: Memory, pools: Pools) -> FloatArray:
        view, prices = pools.view, memory[f"{FORECAST}.prices"]
        uniform = uniform_rates(pools.budget, float(view.arms))
        odds = uniform / (1.0 - uniform) * np.exp(-float(memory[f"{FORECAST}.beta"]) * prices[-view.horizon :])
        return np.asarray((1.0 - SLACK) * odds / (1.0 + odds))

    def _planned(
        self, name: str, memory: Memory, pools: Pools, sets: TransitionSets, reward: FloatArray, most: float
    ) -> tuple[Found, dict[str, FloatArray]]:
        """Plan for this reward (R, S, 2) from the last plan of the name; return what is stored of it, by name."""
        fitting = float(memory.get(f"{name}.fitting", np.array(FIRST)))
        beta, prices = min(fitting, most), memory.get(f"{name}.prices")
        warm = None if prices is None else Warm(prices, memory.get(f"{name}.curvature"))
        plan = _solved(pools, sets, reward, beta, warm)
        lead, wanted = _gained(pools, plan, reward, PART / self.scale)
        found = Found(plan, lead, float(np.clip(wanted, fitting / GROWTH, min(fitting * GROWTH, GREATEST))))
        kept = {"reward": reward, "beta": np.array(plan.beta), "fitting": np.array(found.fitting), "prices": plan.prices}
        if plan.curvature is not None:
            kept["curvature"] = plan.curvature
        return found, {f"{name}.{key}": value for key, value in kept.items()}


def _stepped(found: Found, memory: Memory, passes: int | None = None, *, drawn: bool = False) -> StepResult:
    plan = found.plan
    kept = {**memory, "share": plan.share} if plan.plans.nodes <= SMALL else memory
    return StepResult(None, plan.passes if passes is None else passes, kept, kept.get("share"), drawn)


def _drawn(memory: Memory) -> bool:
    """Whether shares are drawn: if forecasts are not trusted, or if drawing has recently earned more."""
    return not memory["trusted"] or bool(memory["drawing"] > MARGIN * max(float(memory["realised"]), 0.0))


def _in_force(
    memory: Memory, pools: Pools, sets: TransitionSets | MadeSets, share: FloatArray, passes: int = 0
) -> StepResult:
    """Return the plan of this share; visits are computed on demand."""
    return StepResult(None, passes, {}, share, _drawn(memory), partial(_visited, memory, pools, sets))


def _visited(memory: Memory, pools: Pools, sets: TransitionSets | MadeSets) -> FloatArray:
    """(C * K, S, 2) the visits of the current plan."""
    return _visits(pools, _again(memory, pools, sets if isinstance(sets, TransitionSets) else sets()))


def _again(memory: Memory, pools: Pools, sets: TransitionSets) -> Solved:
    """Return the current plan, recomputed from its prices, for the remaining steps."""
    name = FORECAST if memory["trusted"] else PAST
    for own in ("prices", "reward", "beta"):
        if f"{name}.{own}" not in memory:  # the plan for past rewards is stored only while forecasts are not trusted
            raise ModelError(f"state: step.{name}.{own} is missing")
    warm = Warm(memory[f"{name}.prices"][-pools.view.horizon :])
    return _solved(pools, sets, memory[f"{name}.reward"], float(memory[f"{name}.beta"]), warm)


def _solved(pools: Pools, sets: TransitionSets, reward: FloatArray, beta: float, warm: Warm | None) -> Solved:
    """Return the softened plan of all blocks for reward (R, S, 2), under the kernels of the sets, or optimistic ones.

    If it cannot be certified at this beta, a softer plan is returned, with its beta.
    """
    view, blocks = pools.view, pools.weights.size
    sizes = f"the priced step of {blocks} blocks, {view.states} states and {view.horizon} steps"
    check_memory(sizes, 16.0 * blocks * view.horizon * view.states)
    start, exact = pools.masses, view.exact
    pays, phase_of, budget = pools.pays(reward), view.steps, pools.budget
    pays[np.abs(pays) < NOTHING] = 0.0
    kernels = sets.low
    if not sets.single:
        path = SoftPath(sets, pays, start, budget, phase_of, exact=exact)
        path.solve(TOLERANCE)
        kernels = path.kernels
        pays = pays.reshape(blocks, view.phases, *pays.shape[1:])[:, phase_of].reshape(-1, *pays.shape[1:])
        phase_of = np.arange(view.horizon)
    given: dict[str, Any] = {"phase_of": phase_of, "exact": exact, "tolerance": TOLERANCE}
    for _ in range(TRIALS):
        try:
            return soften_blocks(kernels, pays, start, budget, beta, warm=warm, **given)
        except SolverError:
            beta /= GROWTH
    return soften_blocks(kernels, pays, start, budget, beta, **given)


def _gained(pools: Pools, plan: Solved, reward: FloatArray, part: float) -> tuple[FloatArray, float]:
    """Return the plan's visits in excess of the uniform policy's (R, S, 2), and the beta that fits.

    At that beta entropy costs the fraction `part` of the gain. Gain and entropy are relative to the uniform policy
    within the budget, under the plan's kernels. Infinite if nothing is gained, up to rounding.
    """
    visits = [pools.of_cells(_visits(pools, plan, uniform=uniform)) for uniform in (False, True)]
    lead = visits[0] - visits[1]
    earned, gain = float((visits[0] * reward).sum()), float((lead * reward).sum())
    cost = earned - plan.value
    return lead, plan.beta * cost / (part * gain) if gain > ROUNDING * abs(earned) else np.inf


def _visits(pools: Pools, plan: Solved, *, uniform: bool = False) -> FloatArray:
    """(C * K, S, 2) the visits of a plan by block and phase; optimistic kernels are those of every step."""
    visits, phases, count = plan.visits(uniform=uniform), pools.view.phases, len(pools.weights)
    if len(visits) != count * phases:
        visits = cells(by_phase(visits.reshape(count, -1, *visits.shape[1:]), pools.view.steps, phases), phases)
    return pools.visits(visits)
