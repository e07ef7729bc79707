"""What a careful statistician asks of a log before its model is believed: each answer a number, with a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common import IntArray, as_integer, as_seed, expect, many
from rmab.estimation.effects import Effect, estimate_effects
from rmab.estimation.fit import Fit
from rmab.estimation.resampling import FEW_ARMS, Resampler
from rmab.estimation.shrinkage import shrink
from rmab.estimation.significance import FEW, FINE, PROBLEM, SURE, WATCH, Test, calibration_error, homogeneity, permute
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import list_some
from rmab.logs.log import Log, Transitions

HELD_OUT = 0.2  # of the periods, for calibration
REDRAWN = 60  # models as likely as the one that forecasts
OFF, FAR_OFF = 0.03, 0.08  # calibration errors that matter


@dataclass(frozen=True)
class Check:
    """One question to a log, and the answer.

    Attributes
    ----------
    name : str
        What was asked.
    value : float
        The number behind the verdict; NaN where it cannot be had.
    verdict : {'fine', 'watch', 'problem'}
        What to make of it.
    words : str
        The answer.
    """

    name: str
    value: float
    verdict: str
    words: str


def run_checks(fit: Fit, *, replicates: int = 200, seed: int = 0) -> list[Check]:
    """Ask a fit all questions.

    Parameters
    ----------
    fit : Fit
        The model and its log.
    replicates : int
        Draws behind the intervals of the effects.
    seed : int
        Of these draws.

    Returns
    -------
    list of Check
        Visits, missing records, order of the chain, change over time, why actions were taken, calibration, effects.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=300, weeks=30)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> [one.verdict for one in rmab.data.run_checks(rmab.data.fit(log), replicates=50)][:4]
    ['watch', 'fine', 'fine', 'fine']
    """
    expect(fit, Fit, "fit")
    log = fit.require_log()
    found = [
        _visits(fit, log),
        _missing(log),
        _order(fit, log),
        _change(fit, log),
        _why(fit, log),
        _calibration(fit, log, as_seed(seed)),
    ]
    return [*found, _effects(fit, estimate_effects(fit, replicates=as_integer(replicates, "replicates"), seed=seed))]


def _visits(fit: Fit, log: Log) -> Check:
    visits = fit.counts.sum(axis=3)
    name = "what is known"
    words = (f"without {log.words.an_action}", f"with {log.words.an_action}")
    never = [f"'{log.state_names[s]}' {words[a]}" for s, a in np.argwhere(fit.rows.unseen)]
    if never:
        return Check(name, float(visits.min()), PROBLEM, f"nothing is known of {list_some(never)}: never seen in any group")
    arms = int(np.unique(log.transitions.arm).size)
    if arms < FEW_ARMS:
        text = f"only {many(arms, 'arm')} of which anything is known: how arms differ cannot be told; intervals leave it out"
        return Check(name, float(arms), PROBLEM, text)
    little = [
        f"{fit.groups[g]} in '{log.state_names[s]}' {words[a]} ({visits[g, s, a]})" for g, s, a in np.argwhere(visits < FEW)
    ]
    least = f"the least seen has {visits.min():,} records"
    if little:
        share = len(little) / visits.size
        text = f"{len(little)} of {visits.size} combinations of group, state and action have fewer than {FEW} records, and "
        text += f"lean on larger groups: {list_some(little, 4)}"
        return Check(name, float(visits.min()), PROBLEM if share > 0.5 else WATCH, text)
    return Check(name, float(visits.min()), FINE, f"every group, state and action was seen; {least}")


def _row(fit: Fit, moves: Transitions) -> IntArray:
    return np.asarray((fit.group_of[moves.arm] * len(fit.state_names) + moves.state) * 2 + moves.action)


def _order(fit: Fit, log: Log) -> Check:
    moves = log.transitions.where(log.transitions.before >= 0)
    test = homogeneity(_row(fit, moves), moves.before, moves.after)
    name, unit = "memory", fit.words.period
    if test.freedom == 0:
        return Check(name, np.nan, WATCH, f"cannot be told: too few stretches of three {unit}s without a gap")
    if test.verdict == FINE:
        return Check(
            name, test.effect, FINE, f"where arms go depends on their state now, hardly on the one before ({test.numbers})"
        )
    text = f"where arms go also depends on the state of the {unit} before ({test.numbers}): arms of a group differ, or the "
    return Check(name, test.effect, test.verdict, text + "past matters; finer groups or clusters may help")


def _change(fit: Fit, log: Log) -> Check:
    moves, half = log.transitions, log.periods.count // 2
    test = homogeneity(_row(fit, moves), (moves.period >= half).astype(np.int64), moves.after)
    name = "change over time"
    if test.freedom == 0:
        return Check(name, np.nan, WATCH, "cannot be told: too few records in one of the halves")
    text = f"first half against second half of the log ({test.numbers})"
    if test.verdict == FINE:
        return Check(name, test.effect, FINE, f"arms behave alike in both: {text}")
    return Check(name, test.effect, test.verdict, f"arms behave differently: {text}; consider fitting recent records only")


def _why(fit: Fit, log: Log) -> Check:
    """Ask whether actions depended on more than group and state: then their effect may be that of something else."""
    moves = log.transitions
    name, word = "who was acted on", log.words.action
    row = fit.group_of[moves.arm] * len(log.state_names) + moves.state
    rates = np.array(
        [moves.action[moves.state == s].mean() if (moves.state == s).any() else np.nan for s in range(len(log.state_names))]
    )
    by_state = list_some([f"{100 * one:.0f}% in '{s}'" for s, one in zip(log.state_names, rates, strict=True) if one == one])  # noqa: PLR0124
    sometimes = (rates > 0) & (rates < 1)
    if not sometimes.any():
        return Check(
            name,
            np.nan,
            PROBLEM,
            f"{log.words.an_action} was always or never made in every state ({by_state}): its effect cannot be seen",
        )
    tests = {
        "the half of the log": homogeneity(row, (moves.period >= log.periods.count // 2).astype(np.int64), moves.action),
        "the state before": homogeneity(row, moves.before, moves.action),
        "who the arm is": _by_arm(row, moves),
    }
    worst = max(tests, key=lambda one: tests[one].effect if tests[one].p < SURE else 0.0)
    test = tests[worst]
    if test.verdict == FINE:
        return Check(name, test.effect, FINE, f"{word}s: {by_state}; nothing but group and state shows in who was chosen")
    text = (
        f"{word}s: {by_state}; within group and state they also depended on {worst} ({test.numbers}): what looks like their "
    )
    return Check(name, test.effect, test.verdict, text + "effect may partly be that of who was chosen")


def _by_arm(row: IntArray, moves: Transitions) -> Test:
    """Test whether some arms were chosen more often than others like them: variance of their totals over that of chance."""
    size = int(row.max()) + 1
    number = np.bincount(row, minlength=size)
    rate = np.bincount(row, weights=moves.action, minlength=size) / np.maximum(number, 1)
    chance = np.bincount(moves.arm, weights=(rate * (1 - rate))[row])
    sure = chance > 0.5

    def statistic(action: IntArray) -> float:
        excess = np.bincount(moves.arm, weights=action - rate[row])
        return float((excess[sure] ** 2 / chance[sure]).sum())

    test = Test(statistic(moves.action), int(sure.sum()), max(int((rate * (1 - rate))[row].sum()), 1))
    return permute(test, statistic, row, np.asarray(moves.action))


def _missing(log: Log) -> Check:
    """Ask whether the next record is missing more often after some states or actions: then those seen are not like all."""
    name, unit = "missing records", log.words.period
    known = (log.state >= 0) & (log.action >= 0)
    follows = np.zeros(log.arm_of.size, dtype=bool)
    follows[:-1] = (np.diff(log.arm_of) == 0) & (np.diff(log.period) == 1) & (log.state[1:] >= 0)
    rows = np.flatnonzero(known & (log.period < log.periods.count - 1))
    if rows.size == 0:
        return Check(name, np.nan, WATCH, f"no record has a state and an action before the last {unit}")
    lost = ~follows[rows]
    share = float(lost.mean())
    test = homogeneity(np.zeros(rows.size, dtype=np.int64), 2 * log.state[rows] + log.action[rows], lost.astype(np.int64))
    rates = [float(lost[log.state[rows] == s].mean()) for s in np.unique(log.state[rows])]
    text = f"after {share:.1%} of the records the next {unit} was not seen"
    if test.p < SURE and max(rates) - min(rates) > 0.02:
        text += (
            f": {min(rates):.0%} to {max(rates):.0%}, depending on the state; those who are seen again may not be like all"
        )
        return Check(name, share, PROBLEM if max(rates) - min(rates) > 0.1 else WATCH, text)
    verdict = WATCH if share > 0.3 else FINE
    return Check(name, share, verdict, f"{text}, whatever the state")


def _calibration(fit: Fit, log: Log, seed: int) -> Check:
    """Fit the first periods, predict the last: what was said to happen in p of the cases should happen in p of them."""
    name = "predictions"
    cut = int(np.floor((1 - HELD_OUT) * log.periods.count))
    moves = log.transitions
    early, late = moves.period + 1 < cut, moves.period >= cut
    if early.sum() < FEW or late.sum() < FEW:
        return Check(name, np.nan, WATCH, "cannot be told: the log is too short to hold periods out")
    statistics = Statistics.from_log(log.until(cut), fit.group_of, len(fit.groups))
    before = replace(fit, log=log.until(cut), statistics=statistics, rows=shrink(statistics.counts, fit.levels))
    held, rng, resampler = moves.where(late), np.random.default_rng((seed, 7)), Resampler(before)
    place = (fit.group_of[held.arm], held.state, held.action, fit.pay.goal)
    others = np.stack([resampler.draw(rng)[place] for _ in range(REDRAWN)])
    came = (held.after == fit.pay.goal).astype(np.float64)
    error, noise, p = calibration_error(np.asarray(before.kernels[place]), came, others)
    beyond = float(np.sqrt(max(error**2 - noise**2, 0.0)))
    verdict = FINE if beyond < OFF or p >= SURE else WATCH if beyond < FAR_OFF else PROBLEM
    last = many(log.periods.count - cut, log.words.period)
    off = "chances were right, but for luck" if p >= SURE else f"chances were off by {100 * beyond:.1f} points beyond luck"
    words = f"of the last {last}, from those before: {off} (p = {p:.2g})"
    return Check(name, beyond, verdict, f"{words} ({late.sum():,} records)")


def _effects(fit: Fit, found: list[Effect]) -> Check:
    word = fit.words.action
    known = [one for one in found if np.isfinite(one.value)]
    name = f"effect of {fit.words.an_action}"
    if not known:
        return Check(name, np.nan, PROBLEM, "cannot be told in any group")
    sure, harm = [one for one in known if one.low > 0], [one for one in known if one.high < 0]
    weight = np.array([one.arms for one in known], dtype=np.float64)
    mean = float(weight @ np.array([one.value for one in known]) / weight.sum())
    best, least = max(known, key=lambda one: one.value), min(known, key=lambda one: one.value)
    text = f"{known[0].what} {'rises' if mean >= 0 else 'falls'} by {_points(abs(mean), known[0])} on average"
    if len(known) > 1:
        text += f"; most in {best.group} ({_range(best)}), least in {least.group} ({_range(least)})"
    else:
        text += f" ({_points(best.low, best)} to {_points(best.high, best)})"
    unsure, blind = len(known) - len(sure) - len(harm), len(found) - len(known)
    if unsure:
        text += f"; in {unsure} of {len(known)} groups it may be nothing" if len(known) > 1 else "; it may be nothing"
    if harm:
        text += f"; it seems to harm in {list_some([one.group for one in harm])}"
        text += " (of 40 such groups, one by chance alone)" if len(known) > 1 else ""
    if blind:
        text += f"; in {many(blind, 'more group')} no {word} was seen beside its absence"
    return Check(name, mean, FINE if len(sure) == len(found) else PROBLEM if not sure else WATCH, text)


def _points(value: float, one: Effect) -> str:
    return f"{100 * value:.1f} points" if one.in_points else f"{value:.3g}"


def _range(one: Effect) -> str:
    scale, form = (100, ".1f") if one.in_points else (1, ".3g")
    return f"{scale * one.value:{form}}, {scale * one.low:{form}} to {scale * one.high:{form}}"
