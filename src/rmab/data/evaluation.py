"""What a plan would bring, over what else could be done, with the uncertainty of the estimate.

The plan is made for the kernels that were fitted. What it really brings depends on the true ones, which are known only
within the error of estimation. So arms are weighted at random, the model is fitted again, its prior drawn
(`resampling.py`): each replicate is a world that the log allows. In each the plan is played, and so are its rivals; the
middle 95% of the differences are the interval.

A plan looks best in the very model that it was made for. How much of its benefit is that optimism is found by doing in
each replicate what was done here: fit arms drawn with replacement, plan for that, and compare what the plan is said to
bring there with what it brings in the model of the whole log (Efron 1983 for prediction rules). Estimate and interval are
lowered by the mean of it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.checks import as_integer, expect
from rmab.common.cores import cores
from rmab.data.fit import DEFAULT_HORIZON, Fit
from rmab.data.modelfree import ModelFree, model_free
from rmab.data.resampling import Resampler
from rmab.data.values import World
from rmab.errors import ModelError
from rmab.play.policy import IndexPolicy

BASELINES = ("nothing", "rotation", "random", "as logged")
LEVEL = 0.95
WORK = 1_000_000  # arm-periods simulated in a replicate
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Estimate:
    """A value and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a plan would bring, as `rmab.data.evaluate` returns it.

    Attributes
    ----------
    budget, horizon : int
        Actions a period, and periods.
    unit : str
        What is counted: 'weeks engaged'.
    plan : Estimate
        What the plan brings over the horizon.
    baselines : dict of str to Estimate
        What 'nothing', 'rotation', 'random' and 'as logged' bring.
    benefits : dict of str to Estimate
        What the plan brings more than each.
    used : dict of str to float
        Actions a period of each.
    optimism : float
        What was taken off the plan's value, because it was made for the model in which it was played.
    luck : float
        The standard deviation of what single runs of the plan bring: chance that no estimate can remove.
    model_free : ModelFree
        A check without a model, or why there can be none.
    replicates : int
        How many worlds were drawn.
    """

    budget: int
    horizon: int
    unit: str
    word: str
    period_word: str
    arms: int
    plan: Estimate
    baselines: dict[str, Estimate]
    benefits: dict[str, Estimate]
    used: dict[str, float]
    optimism: float
    luck: float
    model_free: ModelFree
    replicates: int

    def said(self, one: Estimate, *, signed: bool = False) -> str:
        """Return '1,573 (1,310 to 1,840)'."""
        width = one.high - one.low
        digits = 0 if width >= 5 else 1 if width >= 0.5 else 2
        form = f"{'+' if signed else ''},.{digits}f"
        return f"{one.value:{form}} ({one.low:{form}} to {one.high:{form}})"

    def sentences(self) -> list[str]:
        """Return what it shows, in plain sentences."""
        words = {
            "nothing": f"than without any {self.word}",
            "rotation": "than by rotation",
            "random": "than by drawing names at random",
            "as logged": f"than by going on as in the log ({self.used['as logged']:,.0f} {self.word}s a {self.period_word})",
        }
        told = []
        for name in ("rotation", "nothing", "random", "as logged"):
            one = self.benefits[name]
            value, low, high = (
                f"{abs(x):,.0f}" if abs(one.value) >= 10 else f"{abs(x):,.1f}" for x in (one.value, one.low, one.high)
            )
            if one.low > 0:
                told.append(f"{value} more {self.unit} ({low} to {high}) {words[name]}.")
            elif one.high < 0:
                told.append(f"{value} fewer {self.unit} ({high} to {low} fewer) {words[name]}.")
            else:
                told.append(f"No sure difference in {self.unit} ({self.said(one, signed=True)}) {words[name]}.")
        return [*told, self.model_free.words]

    def fields(self) -> dict[str, Any]:
        """Return everything as plain numbers and text by name."""
        own = {"budget": self.budget, "horizon": self.horizon, "unit": self.unit, "replicates": self.replicates}
        values = {"plan": vars(self.plan), "baselines": {k: vars(v) for k, v in self.baselines.items()}}
        more = {"benefits": {k: vars(v) for k, v in self.benefits.items()}, "actions_per_period": self.used}
        return {**own, **values, **more, "optimism": self.optimism, "luck": self.luck, "model_free": vars(self.model_free)}

    def __repr__(self) -> str:
        over = self.said(self.benefits["rotation"], signed=True)
        return f"Evaluation({over} {self.unit} over rotation, {self.replicates} replicates)"


def evaluate(
    fit: Fit,
    budget: int | None = None,
    *,
    horizon: int = DEFAULT_HORIZON,
    replicates: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Say what the plan would bring, over nothing, rotation, chance, and what was done in the log.

    Parameters
    ----------
    fit : Fit
        The model.
    budget : int, optional
        Actions a period; by default as many as in the log, on average.
    horizon : int
        Periods to look ahead.
    replicates : int
        Worlds that are drawn for the intervals, at least 20.
    seed : int
        The same seed gives the same numbers, however many cores there are.
    progress : function, optional
        Is called with (done, all).

    Returns
    -------
    Evaluation
        Values and benefits with 95% intervals, and a check without the model.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> found = rmab.data.evaluate(rmab.data.fit(log, reward={"engaged": 1}), budget=10, replicates=20)
    >>> found.benefits["nothing"].value > 0
    True
    """
    expect(fit, Fit, "fit", "; fit a log with rmab.data.fit")
    places = fit.usual_budget if budget is None else as_integer(budget, "budget")
    steps, number, key = as_integer(horizon, "horizon"), as_integer(replicates, "replicates"), as_integer(seed, "seed")
    if not 1 <= places <= fit.present.size or steps < 1:
        raise ModelError(f"budget must be in 1..{fit.present.size} and horizon at least 1, got {places} and {steps}")
    if number < 20 or key < 0:
        raise ModelError(f"replicates must be at least 20 and seed at least 0, got {number} and {key}")
    world, cells = World.of(fit, places, steps), np.unique(fit.cell_of[fit.present])
    kernels = np.asarray(fit.kernels[cells])
    policy = world.policy(kernels)
    value, luck = world.earned(policy, kernels, (key, 0))
    base = np.array(list(world.baselines(kernels).values()))
    draws, optimism = _replicates(fit, world, cells, policy, number, key, progress)
    middle = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    off = float(optimism.mean())

    def estimate(point: float, drawn: FloatArray, less: float = 0.0) -> Estimate:
        low, high = np.quantile(drawn, middle) - less
        return Estimate(float(point - less), float(min(low, point - less)), float(max(high, point - less)))

    used = {"nothing": 0.0, "rotation": float(places), "random": float(places), "as logged": _rate(world)}
    return Evaluation(
        budget=places,
        horizon=steps,
        unit=fit.pay.unit,
        word=fit.log.word,
        period_word=fit.log.periods.unit,
        arms=fit.present.size,
        plan=estimate(value, draws[:, 0], off),
        baselines={name: estimate(base[k], draws[:, k + 1]) for k, name in enumerate(BASELINES)},
        benefits={name: estimate(value - base[k], draws[:, 0] - draws[:, k + 1], off) for k, name in enumerate(BASELINES)},
        used=used,
        optimism=off,
        luck=luck,
        model_free=model_free(fit, places, steps, seed=key),
        replicates=number,
    )


def _rate(world: World) -> float:
    """Return how many actions a period the log's habits make, where the arms are now."""
    return float(np.einsum("ns,ns->", world.belief, world.rate[world.group]))


def _replicates(
    fit: Fit, world: World, cells: Any, policy: IndexPolicy, number: int, key: int, progress: Progress | None
) -> tuple[FloatArray, FloatArray]:
    """(R, 5) what the plan and its rivals bring in each world, and (R,) how much plans of resampled logs overpromise."""
    resampler, kernels = Resampler(fit), np.asarray(fit.kernels[cells])
    base = world.baselines(kernels)["rotation"]

    def one(r: int) -> tuple[int, list[float], float]:
        rng = np.random.default_rng((key, 1, r))
        drawn = resampler.drawn(rng)[cells]
        earned = world.earned(policy, drawn, (key, 2, r), WORK)[0]
        values = [earned, *world.baselines(drawn).values()]
        again = np.asarray(resampler.refitted(rng).kernels[cells])
        other = world.policy(again)
        promised = world.earned(other, again, (key, 3, r), WORK // 2)[0] - world.baselines(again)["rotation"]
        kept = world.earned(other, kernels, (key, 3, r), WORK // 2)[0] - base
        return r, values, promised - kept

    draws, optimism = np.empty((number, 1 + len(BASELINES))), np.empty(number)
    with ThreadPoolExecutor(cores()) as pool:
        waiting = [pool.submit(one, r) for r in range(number)]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                r, values, excess = future.result()
                draws[r], optimism[r] = values, excess
                if progress is not None:
                    progress(done, number)
        except BaseException:  # an interrupt, too, must not wait for all the rest
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return draws, optimism
