"""The priced step: plans softened by the entropy of their decisions, found in the H prices of the budget alone.

    max over flows of the kernels   <z, r> - (1 / beta) sum of z(h,s) KL(z(.|h,s) || blind),   within the budget on average

r is the forecast. As long as forecasts come true, the plan is followed as it is; where they do not, the guaranteed play
takes over: dual averaging on the mean of all past rewards, at an inverse temperature that grows with the root of the number
of episodes, its shares drawn as they are.
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
from rmab.solvers.priced.program import blind_rates
from rmab.solvers.transitions import TransitionSets

PART = 0.1  # of what a plan gains may be lost to entropy
FIRST, GREATEST, GROWTH = 10.0, 1e4, 4.0  # beta at first and at most, and its factor from episode to episode
TOLERANCE = 1e-4  # certified gap of a plan
TRIALS = 3  # softer plans that are tried where one cannot be certified
RECENT = 0.9  # what is left of what was believed, and came true, after an episode
MARGIN = 0.05  # part of the gain that came true by which drawn shares must have earned more in replays
TRIAL = 2  # episodes before forecasts are judged
SLACK = 1e-3  # part of a share by which it must be below that of whoever gains nothing
ROUNDING = 1e-12  # gains below this part of what is earned are none
NOTHING = 1e-100  # rewards below are 0
HUGE = 1e15  # sums beyond are no numbers of a learner
SMALL = 100_000  # shares of a plan that is kept as it is; larger ones are recomputed from their prices

TRUST = "forecasts are trusted while at least this share of the predicted gain is realised; 0: always"
FORECAST, PAST = "forecast", "past"  # the two plans: with what is expected, and with the mean of what was


class Found(NamedTuple):
    """A plan, what it visits more often than blind decisions would (R, S, 2), and the beta that fits it."""

    plan: Solved
    lead: FloatArray
    fitting: float


@configured
class Priced(Step):
    """Plan with the forecast by the priced step, as greedily as its gain allows, as long as forecasts come true.

    Beta is chosen automatically: the entropy of the plan's decisions costs a tenth (over `scale`) of what the plan gains
    over blind decisions. Both scale with the rewards and with what decisions can change, so that no task needs a rate of
    its own, and T need not be known.

    Trust: the plan leads blind decisions by what it visits more often. What that was believed to be worth, and what it came
    to be worth, are added up (recent episodes count most). Where less than the part `trust` of it came true, the next
    episode is played by dual averaging, and its shares are drawn.

    Kernels are the estimated ones. With confidence sets, they are chosen by the optimistic fluid plan, step by step.
    """

    stored = False
    scale: float = option(
        default=1.0, ge=1e-12, le=1e6, help="factor on the automatic inverse temperature; above 1: greedier"
    )
    trust: float = option(default=0.3, ge=0, le=1, help=TRUST)
    replay: bool = option(default=True, help="whether to randomise by the plan's shares if that earns more in replays")
    rest: bool = option(default=True, help="whether arms stay passive where activation is worth less than nothing")

    @property
    def draws(self) -> bool:  # type: ignore[override]  # an attribute of other parts
        """Whether there are replays, which simulate every arm, or rest: who rests in the first episode is drawn."""
        return self.replay or self.rest

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare both plans in prices, and what was believed."""
        horizon, pairs = pools.view.horizon, pools.zero.shape
        several: dict[str, ArraySpec] = {}
        least = -HUGE if pools.view.exact else 0  # what must be spent may do harm
        for name in (FORECAST, PAST):
            several[f"{name}.reward"] = ArraySpec(pairs, "f", -1e9, 1e9, optional=name == PAST)
            several[f"{name}.beta"] = ArraySpec((), "f", 0, GREATEST, optional=name == PAST)
            several[f"{name}.fitting"] = ArraySpec((), "f", 0, GREATEST, optional=name == PAST)
            several[f"{name}.prices"] = ArraySpec((horizon,), "f", least, HUGE, optional=name == PAST)
            several[f"{name}.curvature"] = ArraySpec((horizon, horizon), optional=True)
        sums = {name: ArraySpec((), "f", -HUGE, HUGE) for name in ("believed", "realised", "drawing")}
        tables = {name: ArraySpec(pairs, "f", -HUGE, HUGE) for name in ("lead", "likely", "mean")}
        share = ArraySpec((pools.weights.size, horizon, pools.view.states), "f", 0, 1, optional=True)
        return {**several, **sums, **tables, "trusted": ArraySpec((), "b"), "share": share}

    def begin(self, pools: Pools, sets: TransitionSets) -> StepResult:
        """Plan as if everything paid the most."""
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
        """Judge the last forecast, plan with the new one; and with the past, where the forecast is not trusted."""
        pools, number = episode.pools, episode.number
        if estimate.gain.ndim == 4:
            raise ModelError("Priced plans with what pairs pay, not with directions that are known step by step")
        past = memory["mean"] + (estimate.gain - memory["mean"]) / (number + 1)
        expected = past if estimate.ahead is None else estimate.ahead
        likely = expected if estimate.likely is None else estimate.likely
        believed, realised = memory["believed"], memory["realised"]
        if number > 0:
            believed = RECENT * believed + (memory["lead"] * memory["likely"]).sum()
            realised = RECENT * realised + (memory["lead"] * estimate.gain).sum()
        trusted = number < TRIAL or bool(realised >= self.trust * believed) or self.trust == 0
        found, kept = self._planned(FORECAST, memory, pools, sets, expected, GREATEST)
        sums = {"believed": np.asarray(believed), "realised": np.asarray(realised), "trusted": np.array(trusted)}
        sums["drawing"] = np.asarray(RECENT * memory["drawing"] + self._replayed(memory, episode, sets, estimate))
        kept = {**kept, **sums, "lead": found.lead, "likely": likely, "mean": past}
        passes = found.plan.passes
        if not trusted:
            most = max(1.0, np.sqrt((number + 1) * np.log(2.0 * pools.view.states**2)))
            found, other = self._planned(PAST, memory, pools, sets, past, most)
            kept.update(other)
            passes += found.plan.passes
        return _stepped(found, kept, passes, drawn=_drawn(kept))

    def _replayed(self, memory: Memory, episode: Episode, sets: TransitionSets, estimate: RewardEstimate) -> float:
        """Return what the last plan would have gained if its shares had been drawn; 0 where that is not asked."""
        if not self.replay or "share" not in memory or not memory["trusted"] or not sets.single or episode.number == 0:
            return 0.0
        worthless = self._worthless(memory, episode.pools) if self.rest and not episode.pools.view.exact else None
        return gain_of_drawing(episode.pools, memory["share"], worthless, sets.low, estimate.gain, episode.draw_key)

    def again(self, memory: Memory, pools: Pools, sets: TransitionSets) -> StepResult:
        """Plan with the last forecast, or the past, at the beta that it had."""
        plan = _again(memory, pools, sets)
        return _in_force(memory, pools, sets, plan.share, plan.passes)

    def last(self, memory: Memory, pools: Pools, sets: MadeSets) -> StepResult:
        """Return the last plan: as it was kept, or made again."""
        share = memory["share"] if "share" in memory else _again(memory, pools, sets()).share
        return _in_force(memory, pools, sets, share)

    def prices(self, memory: Memory) -> FloatArray | None:
        """(H,) what an activation is worth at each step of the last plan."""
        prices: FloatArray = memory[f"{FORECAST}.prices"]
        return prices

    def worthless(self, memory: Memory, pools: Pools) -> FloatArray | None:
        """(H,) the share of whoever gains nothing by activation, before its price: blind odds times exp(-beta price)."""
        if not self.rest or pools.view.exact or _drawn(memory):  # shares that are drawn are drawn as they are
            return None
        return self._worthless(memory, pools)

    def _worthless(self, memory: Memory, pools: Pools) -> FloatArray:
        view, prices = pools.view, memory[f"{FORECAST}.prices"]
        blind = blind_rates(pools.budget, float(view.arms))
        odds = blind / (1.0 - blind) * np.exp(-float(memory[f"{FORECAST}.beta"]) * prices[-view.horizon :])
        return np.asarray((1.0 - SLACK) * odds / (1.0 + odds))

    def _planned(
        self, name: str, memory: Memory, pools: Pools, sets: TransitionSets, reward: FloatArray, most: float
    ) -> tuple[Found, dict[str, FloatArray]]:
        """Plan for this reward (R, S, 2) from the last plan of the name; return what is kept of it, by name."""
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
    """Whether shares are drawn: where forecasts are not trusted, or where that has earned more of late."""
    return not memory["trusted"] or bool(memory["drawing"] > MARGIN * max(float(memory["realised"]), 0.0))


def _in_force(
    memory: Memory, pools: Pools, sets: TransitionSets | MadeSets, share: FloatArray, passes: int = 0
) -> StepResult:
    """Return the plan of this share; visits are asked for rarely, and nothing is kept for them until then."""
    return StepResult(None, passes, {}, share, _drawn(memory), partial(_visited, memory, pools, sets))


def _visited(memory: Memory, pools: Pools, sets: TransitionSets | MadeSets) -> FloatArray:
    """(C * K, S, 2) the visits of the plan in force."""
    return _visits(pools, _again(memory, pools, sets if isinstance(sets, TransitionSets) else sets()))


def _again(memory: Memory, pools: Pools, sets: TransitionSets) -> Solved:
    """Return the plan in force, made from its prices; for the steps that are left, where they are fewer."""
    name = FORECAST if memory["trusted"] else PAST
    for own in ("prices", "reward", "beta"):
        if f"{name}.{own}" not in memory:  # the past is kept only as long as forecasts are not trusted
            raise ModelError(f"state: step.{name}.{own} is missing")
    warm = Warm(memory[f"{name}.prices"][-pools.view.horizon :])
    return _solved(pools, sets, memory[f"{name}.reward"], float(memory[f"{name}.beta"]), warm)


def _solved(pools: Pools, sets: TransitionSets, reward: FloatArray, beta: float, warm: Warm | None) -> Solved:
    """Return the softened plan of all blocks for reward (R, S, 2), under the kernels of the sets, or optimistic ones.

    Where it cannot be certified at this beta, a softer one can: the plan says at which.
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
    """Return what the plan visits more often than blind decisions do (R, S, 2), and the beta that fits.

    That is the one at which entropy costs `part` of what is gained. Gain and entropy are those over choosing at random
    within the budget, under the plan's own kernels. Infinite where nothing is gained, but for rounding.
    """
    visits = [pools.of_cells(_visits(pools, plan, blind=blind)) for blind in (False, True)]
    lead = visits[0] - visits[1]
    earned, gain = float((visits[0] * reward).sum()), float((lead * reward).sum())
    cost = earned - plan.value
    return lead, plan.beta * cost / (part * gain) if gain > ROUNDING * abs(earned) else np.inf


def _visits(pools: Pools, plan: Solved, *, blind: bool = False) -> FloatArray:
    """(C * K, S, 2) the visits of a plan by block and phase; optimistic kernels are those of every step."""
    visits, phases, count = plan.visits(blind=blind), pools.view.phases, len(pools.weights)
    if len(visits) != count * phases:
        visits = cells(by_phase(visits.reshape(count, -1, *visits.shape[1:]), pools.view.steps, phases), phases)
    return pools.visits(visits)
