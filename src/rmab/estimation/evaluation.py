"""The benefit of a plan over its alternatives, with the uncertainty of the estimate.

The plan uses the fitted kernels. Its true value depends on the true ones, which are known only
within the error of estimation. So arms are weighted at random, the model is fitted again, and the prior of small groups is
drawn (`resampling.py`): each replicate is a model that the log allows. The plan and its alternatives play in each.
How far the differences lie from their mean, the middle 95% of them, is the interval around the estimate.

A plan looks better than it is in the model that it was optimised for. This bias is estimated and subtracted (`optimism.py`).

In each replicate the best plan is computed as well. Its lead over ours is the value of better knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

from rmab.common import FloatArray, as_integer, as_seed, check_memory, cores, expect
from rmab.errors import ModelError
from rmab.estimation.checks import run_checks
from rmab.estimation.draws import explain_chances, find_design
from rmab.estimation.effect_checks import Check
from rmab.estimation.fit import DEFAULT_HORIZON, Fit
from rmab.estimation.gate import check_effect
from rmab.estimation.one_step import check_one_step
from rmab.estimation.optimism import estimate_optimism
from rmab.estimation.promise import Estimate, Evaluation
from rmab.estimation.repeats import find_repeats
from rmab.estimation.resampling import Resampler, as_replicates, interval
from rmab.estimation.sensitivity import STRENGTHS, Range, bound_rows, rank_states
from rmab.estimation.unseen import find_unseen
from rmab.estimation.values import World
from rmab.play import IndexPolicy

BASELINES = ("nothing", "rotation", "random", "as logged")
WHOLE, WORK = 3_000_000, 500_000  # arm-periods simulated for the estimate, and in a replicate
ARM_DRAWS = 16  # of arms that differ, for the estimate
REPLAN = True  # in every replicate, for the value of better knowledge; intervals do not depend on it
Progress = Callable[[int, int], None]


def evaluate(
    fit: Fit,
    budget: int | None = None,
    *,
    horizon: int = DEFAULT_HORIZON,
    replicates: int = 200,
    seed: int = 0,
    checks: Sequence[Check] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Estimate the benefit of the plan over nothing, rotation, a random draw, and the decisions of the log.

    Parameters
    ----------
    fit : Fit
        The model.
    budget : int, optional
        Actions per period; by default the mean of the log.
    horizon : int
        Number of periods to evaluate.
    replicates : int
        Number of draws for the intervals, at least 40.
    seed : int
        Random seed; the result does not depend on the number of cores.
    checks : sequence of Check, optional
        Results of `rmab.data.run_checks`; computed by default. A benefit is not stated if one is a 'problem'.
    progress : function, optional
        Called with (done, all).

    Returns
    -------
    Evaluation
        Values and benefits with 95% intervals, a check one step ahead, and what they show.

    Raises
    ------
    ModelError
        If an argument is wrong, or no state of the log has records with and without an action.

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
    steps, number, key = as_integer(horizon, "horizon"), as_replicates(replicates), as_seed(seed)
    if not 1 <= places <= fit.present.size or steps < 1:
        raise ModelError(f"budget must be in 1..{fit.present.size} and horizon at least 1, got {places} and {steps}")
    check_memory(f"a horizon of {steps:,} periods", 32.0 * steps * fit.present.size)
    if fit.rows.unseen.any(axis=1).all():
        raise ModelError(
            f"the effect of {fit.words.an_action} is unknown: the log has no state that was seen both with and without "
            "one; use a random share in future lists (random_share) to find out"
        )
    world = World.of(fit, places, steps)
    kernels = world.kernels(fit, np.asarray(fit.kernels))
    policy = world.policy(kernels)
    value, noise, actions, base = _values(fit, world, policy, key)
    excess = estimate_optimism(fit, world, actions, key)
    value, base = value - float(excess[0]), base - excess[1:]
    draws, better = _replicates(fit, world, policy, number, key, progress)
    benefits = {name: _around(value - base[k], draws[:, 0] - draws[:, k + 1]) for k, name in enumerate(BASELINES)}
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
        benefits=benefits,
        used=used,
        knowledge=max(float(better.mean()), 0.0),
        noise=noise,
        one_step=check_one_step(fit, places, steps, seed=key),
        replicates=number,
        checks=tuple(run_checks(fit, seed=key) if checks is None else checks),
        gate=check_effect(fit),
        ranges=_ranges(world, policy, kernels, benefits, excess, key),
        logged=_logged(fit),
        design=find_design(fit),
        undrawn=explain_chances(fit),
        repeats=find_repeats(fit, world, policy, kernels, key),
        unseen=find_unseen(fit, world, kernels),
    )


def _values(fit: Fit, world: World, policy: IndexPolicy, key: int) -> tuple[float, float, float, FloatArray]:
    """Return what the plan earns, how much single runs differ, its actions, and what its rivals earn (4,), by the model.

    Where arms differ, it is the average over what they may be: means of arms differ less than arms do, and in a world in
    which arms are more similar, arms that are helped seem to stay well for longer.
    """
    rngs = [None] if fit.arm_rows is None else [np.random.default_rng((key, 3, k)) for k in range(ARM_DRAWS)]
    found = []
    for rng in rngs:
        kernels = world.kernels(fit, np.asarray(fit.kernels), rng)
        runs = world.play(policy, kernels, (key, 0), WHOLE // len(rngs))
        noise = float(runs.rewards.std(ddof=1))
        found.append([runs.mean, noise, float(runs.activations.mean()), *world.baselines(kernels).values()])
    value, noise, actions, *base = np.mean(found, axis=0)
    return float(value), float(noise), float(actions), np.array(base)


def _ranges(
    world: World, policy: IndexPolicy, kernels: FloatArray, benefits: dict[str, Estimate], excess: FloatArray, key: int
) -> dict[str, tuple[Range, ...]]:
    """Return the range of the benefit over rotation and nothing, less its bias, under selection of every strength.

    Strengths are upper limits: the range of one holds those of smaller ones, and the interval, which is that of strength 1.
    """
    mass = np.bincount(world.group, minlength=len(kernels)) / world.group.size  # of groups, or of arms
    rank = rank_states(np.tensordot(mass, kernels[:, :, 0], 1), mass @ world.reward[..., 0], world.horizon)
    found: dict[str, list[Range]] = {"rotation": [], "nothing": []}
    for strength in STRENGTHS:
        ends = []
        for upper in (False, True):
            rows = bound_rows(kernels, rank, strength, upper=upper)
            rivals, earned = world.baselines(rows), world.play(policy, rows, (key, 0), WORK).mean
            ends.append({name: earned - rivals[name] for name in found})
        for name, several in found.items():
            over = float(excess[0] - excess[1 + BASELINES.index(name)])
            one, values = benefits[name], [end[name] - over for end in ends]
            inner = several[-1] if several else Range(1.0, one.low, one.high)
            low, high = min(values) + one.low - one.value, max(values) + one.high - one.value
            several.append(Range(strength, min(low, inner.low), max(high, inner.high)))
    return {name: tuple(several) for name, several in found.items()}


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
    fit: Fit, world: World, policy: IndexPolicy, number: int, key: int, progress: Progress | None
) -> tuple[FloatArray, FloatArray]:
    """(R, 5) what the plan and its rivals bring in each world, and (R,) what a plan that knew it would bring more."""
    resampler = Resampler(fit)

    def one(r: int) -> tuple[int, list[float], float]:
        rng = np.random.default_rng((key, 1, r))
        group_of = resampler.draw_groups(rng)
        drawn = world.kernels(fit, resampler.draw(rng, group_of), rng, group_of)
        here = world.paying(fit, resampler.draw_pay(rng)) if resampler.learned else world
        earned = here.play(policy, drawn, (key, 2, r), WORK).mean
        knowing = here.play(here.policy(drawn), drawn, (key, 2, r), WORK).mean if REPLAN else earned
        return r, [earned, *here.baselines(drawn).values()], knowing - earned

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
