"""What a plan would bring, over what else could be done, with the uncertainty of the estimate.

The plan is made for the kernels that were fitted. What it really brings depends on the true ones, which are known only
within the error of estimation. So arms are weighted at random, the model is fitted again, and the prior of small groups is
drawn (`resampling.py`): each replicate is a world that the log allows. The plan is played in each, and so are its rivals.
How far the differences lie from their mean, the middle 95% of them, is the interval around the estimate.

The estimate may err in two ways that nearly cancel: a plan looks better in the model that it was made for than it is, and
groups that are shrunk look more alike than they are. Corrections that were tried did not help (studies/log_optimism.py).

In each world another plan is made as well. What it earns more than ours is what better knowledge would be worth.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import FloatArray, IntArray, as_integer, as_seed, cores, expect
from rmab.errors import ModelError
from rmab.estimation.fit import DEFAULT_HORIZON, Fit
from rmab.estimation.modelfree import ModelFree, model_free
from rmab.estimation.resampling import LEAST_DRAWS, Resampler, interval
from rmab.estimation.values import World
from rmab.play import IndexPolicy

BASELINES = ("nothing", "rotation", "random", "as logged")
WORK = 500_000  # arm-periods simulated in a replicate
REPLAN = True  # in every replicate: what better knowledge would be worth; intervals do not depend on it
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
    knowledge : float
        What a plan that knew the truth would bring more, on average over what the truth may be.
    noise : float
        The standard deviation of what single runs of the plan bring: chance that no estimate can remove.
    model_free : ModelFree
        A check without a model, or why there can be none.
    replicates : int
        How many worlds were drawn.
    logged : float and int
        Actions in a period of the log: on average, and at most.
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
    knowledge: float
    noise: float
    model_free: ModelFree
    replicates: int
    logged: tuple[float, int] = (0.0, 0)

    def describe(self, one: Estimate, *, signed: bool = False) -> str:
        """Return '1,573 (1,310 to 1,840)'."""
        return "{} ({} to {})".format(*self._three(one, "+" if signed else ""))

    @staticmethod
    def _three(one: Estimate, sign: str = "") -> list[str]:
        """Return the value and the ends with as many digits as the width of the interval deserves."""
        width = max(one.high - one.low, abs(one.value) / 1000)
        digits = int(np.clip(np.ceil(1 - np.log10(width)), 0, 9)) if width > 0 else 1
        small = 0 < width < 1e-6
        return [f"{x:{sign}.3g}" if small else f"{x:{sign},.{digits}f}" for x in (one.value, one.low, one.high)]

    def describe_log(self) -> str:
        """Return how many actions 'as logged' assumes, and how many there were."""
        here, mean, most = self.used["as logged"], *self.logged
        now = f"{here:,.0f} {self.word}s a {self.period_word}; the log has {mean:,.0f} on average, {most:,} at most"
        return f"its rates by group and state for the {self.arms:,} arms of now: {now}"

    def sentences(self) -> list[str]:
        """Return what it shows, in plain sentences."""
        logged = f"going on as in the log ({self.describe_log()})"
        words = {
            "nothing": f"than without any {self.word}",
            "rotation": "than by rotation",
            "random": "than by drawing names at random",
            "as logged": f"than by {logged}",
        }
        versus = {
            "nothing": f"to making no {self.word}",
            "rotation": "to rotation",
            "random": "to drawing names at random",
            "as logged": f"to {logged}",
        }
        found = []
        for name in ("rotation", "nothing", "random", "as logged"):
            one = self.benefits[name]
            value, low, high = (x.lstrip("-") for x in self._three(one))
            if one.low > 0:
                found.append(f"{value} more {self.unit} ({low} to {high}) {words[name]}.")
            elif one.high < 0:
                found.append(f"{value} fewer {self.unit} ({high} to {low} fewer) {words[name]}.")
            else:
                found.append(f"No sure difference in {self.unit} {versus[name]}: {self.describe(one, signed=True)}.")
        more = f"{self.knowledge:,.0f}" if self.knowledge >= 10 else f"{self.knowledge:.2g}"
        found.append(f"Knowing the groups for sure would bring {more} more {self.unit} on top, on average.")
        return [*found, self.model_free.words]

    def fields(self) -> dict[str, Any]:
        """Return everything as plain numbers and text by name."""
        own = {"budget": self.budget, "horizon": self.horizon, "unit": self.unit, "replicates": self.replicates}
        values = {"plan": vars(self.plan), "baselines": {k: vars(v) for k, v in self.baselines.items()}}
        more = {"benefits": {k: vars(v) for k, v in self.benefits.items()}, "actions_per_period": self.used}
        more["actions_in_the_log"] = {"mean": self.logged[0], "most": self.logged[1]}
        return {
            **own,
            **values,
            **more,
            "knowledge": self.knowledge,
            "noise": self.noise,
            "model_free": vars(self.model_free),
        }

    def __repr__(self) -> str:
        over = self.describe(self.benefits["rotation"], signed=True)
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
        Worlds that are drawn for the intervals, at least 40.
    seed : int
        The same seed gives the same numbers, however many cores there are.
    progress : function, optional
        Is called with (done, all).

    Returns
    -------
    Evaluation
        Values and benefits with 95% intervals, and a check without the model.

    Raises
    ------
    ModelError
        Where an argument is wrong, or the log never shows an action beside its absence.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> found = rmab.data.evaluate(rmab.data.fit(log, reward={"engaged": 1}), budget=10, replicates=40)
    >>> found.benefits["nothing"].value > 0
    True
    """
    expect(fit, Fit, "fit", "; fit a log with rmab.data.fit")
    places = fit.usual_budget if budget is None else as_integer(budget, "budget")
    steps, number, key = as_integer(horizon, "horizon"), as_integer(replicates, "replicates"), as_seed(seed)
    if not 1 <= places <= fit.present.size or steps < 1:
        raise ModelError(f"budget must be in 1..{fit.present.size} and horizon at least 1, got {places} and {steps}")
    if number < LEAST_DRAWS:
        raise ModelError(f"replicates must be at least {LEAST_DRAWS}, got {number}")
    if fit.rows.unseen.any(axis=1).all():
        raise ModelError(
            f"what {fit.words.an_action} brings cannot be told: the log has no state that was seen both with and without "
            "one; a random share in the lists to come (random_share) would show it"
        )
    world, groups = World.of(fit, places, steps), np.unique(fit.group_of[fit.present])
    kernels = np.asarray(fit.kernels[groups])
    policy = world.policy(kernels)
    value, noise = world.earned(policy, kernels, (key, 0))
    base = np.array(list(world.baselines(kernels).values()))
    draws, better = _replicates(fit, world, groups, policy, number, key, progress)
    used = {"nothing": 0.0, "rotation": float(places), "random": float(places), "as logged": _rate(world)}
    return Evaluation(
        budget=places,
        horizon=steps,
        unit=fit.pay.unit,
        word=fit.words.action,
        period_word=fit.words.period,
        arms=fit.present.size,
        plan=_around(value, draws[:, 0]),
        baselines={name: _around(base[k], draws[:, k + 1]) for k, name in enumerate(BASELINES)},
        benefits={name: _around(value - base[k], draws[:, 0] - draws[:, k + 1]) for k, name in enumerate(BASELINES)},
        used=used,
        knowledge=max(float(better.mean()), 0.0),
        noise=noise,
        model_free=model_free(fit, places, steps, seed=key),
        replicates=number,
        logged=_logged(fit),
    )


def _rate(world: World) -> float:
    """Return how many actions a period the log's habits make, where the arms are now."""
    return float(np.einsum("ns,ns->", world.belief, world.rate[world.group]))


def _logged(fit: Fit) -> tuple[float, int]:
    """Return how many actions a period of the log has on average, and at most."""
    log = fit.require_log()
    done = np.bincount(log.period[log.action == 1], minlength=log.periods.count)
    known = np.bincount(log.period[log.action >= 0], minlength=log.periods.count) > 0
    return float(done[known].mean()), int(done.max())


def _around(value: float, drawn: FloatArray) -> Estimate:
    """Return a value with the middle of how far draws (R,) lie from their mean."""
    low, high = (float(one) for one in interval(drawn - drawn.mean()))
    return Estimate(float(value), float(value + min(low, 0.0)), float(value + max(high, 0.0)))


def _replicates(
    fit: Fit, world: World, groups: IntArray, policy: IndexPolicy, number: int, key: int, progress: Progress | None
) -> tuple[FloatArray, FloatArray]:
    """(R, 5) what the plan and its rivals bring in each world, and (R,) what a plan that knew it would bring more."""
    resampler = Resampler(fit)

    def one(r: int) -> tuple[int, list[float], float]:
        drawn = resampler.draw(np.random.default_rng((key, 1, r)))[groups]
        earned = world.earned(policy, drawn, (key, 2, r), WORK)[0]
        knowing = world.earned(world.policy(drawn), drawn, (key, 2, r), WORK)[0] if REPLAN else earned
        return r, [earned, *world.baselines(drawn).values()], knowing - earned

    draws, better = np.empty((number, 1 + len(BASELINES))), np.empty(number)
    with ThreadPoolExecutor(cores()) as pool:
        waiting = [pool.submit(one, r) for r in range(number)]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                r, values, more = future.result()
                draws[r], better[r] = values, more
                if progress is not None:
                    progress(done, number)
        except BaseException:  # an interrupt, too, must not wait for all the rest
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return draws, better
