"""Checks of the effect: who was acted on, whether the effect lasts, whether it wears off, and whether there is any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from rmab.errors import many
from rmab.estimation.effects import Effect, divide_by_reach, hold_together
from rmab.estimation.fit import Fit
from rmab.estimation.scores import RECENT, WIDE, Average, Records, compare
from rmab.estimation.selection import BALANCED, compare_arms, find_link, find_trial
from rmab.estimation.significance import FINE, PROBLEM, SURE, UNKNOWN, WATCH, homogeneity
from rmab.logs.findings import list_some, quote

FEW_ACTIONS = 30  # in a part of the log, below which its effect is not compared
PART = 0.5  # of the average effect: a change beyond it makes the average useless
BIAS = 0.2  # of the average effect, that may be due to who was chosen before that is a problem
TREND = 0.01  # p of a change over time, or of a loss by earlier actions: promised for good if it is missed
_RECENT = "remove old records from the log and fit again: the average over the log does not predict what comes next"
_LATER = "repeat the check when there are more"
_SHARE = "draw some places of future lists at random (random_share, --random-share)"


@dataclass(frozen=True)
class Check:
    """One check of a log.

    Attributes
    ----------
    name : str
        Name of the check.
    value : float
        The number behind the verdict; NaN if it cannot be computed.
    verdict : {'fine', 'watch', 'problem', 'unknown'}
        The verdict; 'unknown': too few records to test.
    words : str
        The result in a sentence.
    advice : str
        What to do; empty if nothing is to be done.
    """

    name: str
    value: float
    verdict: str
    words: str
    advice: str = ""


def check_effects(fit: Fit, effects: list[Effect]) -> list[Check]:
    """Return the checks of the effect: who was acted on, within periods, over time, after others, later, and by group."""
    records = Records.of(fit)
    whole = records.average()
    return [
        _why(fit, records, whole),
        _same_period(fit, records, whole),
        _over_time(fit, records, whole),
        _again(fit, records, whole),
        _later(fit, records, whole),
        _effects(fit, effects, whole),
    ]


def _again(fit: Fit, records: Records, whole: Average) -> Check:
    """Ask whether the effect is another after actions of the last periods, or the more actions there were before.

    A loss is asked one-sided, and more readily believed: an effect that tires is promised again and again if it is missed.
    """
    word, unit = fit.words.action, fit.words.period
    name = f"effect after recent {word}s"
    found = []
    for before, by, when in (
        (records.recent, records.recent > 0, f"{fit.words.an_action} in the last {RECENT} {unit}s"),
        (
            records.earlier,
            np.sqrt(records.earlier),
            f"one earlier {word} than after none (each further one is assumed to add a smaller change)",
        ),
    ):
        part = (before > 0).astype(np.int64)
        gap, p = records.change(by.astype(np.float64), part)
        least = min(int(records.action[part == k].sum()) for k in (0, 1))
        if least >= FEW_ACTIONS and np.isfinite(gap):
            side, tires = "more" if gap >= 0 else "less", gap * whole.value < 0
            p = p if tires else min(2 * p, 1.0)  # two questions; of one side, or of two
            text = f"within group and state, {as_points(abs(gap), fit)} {side} after {when}; p = {p:.2g}"
            found.append((p / (TREND if tires else SURE), gap, text))
    if not found:
        return Check(name, np.nan, UNKNOWN, f"too few {word}s to arms that had one before, or to others", _LATER)
    sure, gap, text = min(found)
    if sure >= 1:
        return Check(name, gap, FINE, f"no significant difference: {text}")
    much = abs(gap) > PART * abs(whole.value)
    advice = f"let some {unit}s pass between {word}s to the same arm, and put earlier {word}s into the state"
    return Check(name, gap, PROBLEM if much else WATCH, f"it differs: {text}", advice)


def _later(fit: Fit, records: Records, whole: Average) -> Check:
    """Ask whether an action still works after the next period: then the state does not hold all that it did.

    What is less than nothing is not its effect: arms that are in a state in spite of an action do worse than others.
    """
    word, unit = fit.words.action, fit.words.period
    name, carried = f"effect in later {unit}s", records.carried
    if carried.actions < FEW_ACTIONS or not np.isfinite(carried.value) or carried.error <= 0:
        text = f"too few arms that had {fit.words.an_action} recently can be compared with others"
        return Check(name, np.nan, UNKNOWN, text, _LATER)
    p = float(norm.sf(carried.value / carried.error))
    text = (
        f"{as_points(carried.value, fit)} for arms that had {fit.words.an_action} in the last {RECENT} {unit}s (p = {p:.2g})"
    )
    if p >= SURE or carried.value <= BIAS * abs(whole.value):
        none = f"no significant and relevant effect of {word}s after the next {unit}, other than through the state"
        return Check(name, carried.value, FINE, f"{none}: {text}")
    goal = fit.state_names[fit.pay.goal]
    advice = f"put recent {word}s into the state (such as '{goal}, with {fit.words.an_action} in the last {RECENT} {unit}s')"
    advice += ": what the plan brings depends on it"
    return Check(name, carried.value, PROBLEM, f"{fit.words.an_action} still works some {unit}s later: {text}", advice)


def _same_period(fit: Fit, records: Records, whole: Average) -> Check:
    """Ask whether the effect is the same within periods: else actions fell into periods in which everybody did well."""
    name, unit, word = f"effect in the same {fit.words.period}", fit.words.period, fit.words.action
    pooled = records.coarse
    gap, p = compare(pooled, whole)
    if not np.isfinite(gap) or whole.actions < FEW_ACTIONS:
        text = f"too few {word}s can be compared with records without one in the same {unit} and group"
        return Check(name, np.nan, UNKNOWN, text, _SHARE)
    same = f"the same {unit}, a similar time since joining and a similar chance" if records.chance is not None else ""
    same = same or f"the same {unit} and a similar time since joining"
    text = f"{as_points(whole.value, fit)} if compared within {same}, {as_points(pooled.value, fit)} overall (p = {p:.2g})"
    if p >= SURE or abs(gap) <= BIAS * max(abs(whole.value), abs(pooled.value)):
        return Check(name, gap, FINE, f"no sign that {word}s went where everybody does better or worse: {text}")
    advice = f"spread {word}s evenly over {unit}s, or draw them at random within each"
    where = f"{word}s went where everybody does better, or worse, with and without one"
    return Check(name, gap, PROBLEM, f"{where}: {text}", advice)


def _over_time(fit: Fit, records: Records, whole: Average) -> Check:
    """Ask whether the effect rises or falls over the log."""
    name, word = "effect over time", fit.words.action
    change, p = records.trend
    if whole.actions < 2 * FEW_ACTIONS or not np.isfinite(change):
        return Check(name, np.nan, UNKNOWN, f"too few {word}s can be compared with records without one", _LATER)
    ends = [as_points(whole.value + side * change / 2, fit) for side in (-1, 1)]
    text = f"about {ends[0]} at the beginning of the log, {ends[1]} at its end (p = {p:.2g})"
    if p >= TREND or abs(change) <= PART * abs(whole.value):
        return Check(name, change, FINE, f"no significant and relevant change: {text}")
    return Check(name, change, PROBLEM, f"it changes: {text}", _RECENT)


def _why(fit: Fit, records: Records, whole: Average) -> Check:
    """Ask whether actions depended on more than group and state: then their effect may be that of something else."""
    log = fit.require_log()
    name, word, names = "who was acted on", log.words.action, log.state_names
    state, action = records.state, records.action
    rates = {s: float(action[state == k].mean()) for k, s in enumerate(names) if (state == k).any()}
    by_state = list_some([f"{100 * one:.0f}% in '{s}'" for s, one in rates.items()])
    share = _SHARE
    if not any(0 < one < 1 for one in rates.values()):
        text = f"{log.words.an_action} was always or never made in every state ({by_state}): its effect cannot be seen"
        return Check(name, np.nan, PROBLEM, text, share)
    link = find_link(records)
    if not link.is_known or (not link.is_real and WIDE * link.error > abs(whole.value)):
        text = f"{word}s: {by_state}; too few can be compared to find out how arms were chosen; that may explain the effect"
        return Check(name, np.nan, UNKNOWN, text, share)
    if link.is_real:
        side = "worse" if link.value < 0 else "better"
        text = f"{word}s: {by_state}; those who were chosen more often do {side} without {log.words.an_action}, too"
        text += f" (by {as_points(abs(link.value), fit)}, p = {link.p:.2g}): a reason that is not in the log decided"
        much = abs(link.value) > BIAS * abs(whole.value)
        return Check(name, link.value, PROBLEM if much else WATCH, text, f"record why arms are chosen; {share}")
    trial = find_trial(records)
    if trial is not None and trial.p >= BALANCED:
        text = f"{trial.never:,} of {trial.arms:,} arms never had {log.words.an_action}, and were like the others at first: "
        text += f"arms seem assigned, or chose themselves. Compared directly, a {log.words.period} of the others brings "
        text += f"{as_points(trial.value, fit)} more ({_number(trial.low, fit)} to {_number(trial.high, fit)})"
        return Check(name, trial.value, WATCH, text, "if arms were drawn at random, declare it (randomised, --randomised)")
    tests = {
        "the half of the log": homogeneity(records.strata(), records.half, action),
        "the state before": homogeneity(records.strata(), log.transitions.before, action),
        "who the arm is": compare_arms(records),
    }
    worst = max(tests, key=lambda one: tests[one].effect if tests[one].p < SURE else 0.0)
    if tests[worst].verdict == FINE:
        known = "in this log, only group and state explain who was chosen; reasons that are not in the log cannot be seen"
        text = f"{word}s: {by_state}; {known}"
        return Check(name, tests[worst].effect, FINE, text)
    text = f"{word}s: {by_state}; within group and state they also depended on {worst} ({tests[worst].numbers})"
    return Check(name, tests[worst].effect, WATCH, text, f"record why arms are chosen; {share}")


def _effects(fit: Fit, found: list[Effect], whole: Average) -> Check:
    name, word = f"effect of {fit.words.an_action}", fit.words.action
    known = hold_together([one for one in found if np.isfinite(one.value)])
    if not known or not np.isfinite(whole.value):
        text = f"hardly any {word} can be compared with a record without one"
        return Check(name, np.nan, UNKNOWN, text, _SHARE)
    low, high = whole.ends
    change = f"rises by {as_points(whole.value, fit)}" if whole.value >= 0 else f"changes by {as_points(whole.value, fit)}"
    text = f"{known[0].what} {change} (95% interval {_number(low, fit)} to {_number(high, fit)})"
    text += " on average" + _reached(fit, whole)
    best, least = max(known, key=lambda one: one.value), min(known, key=lambda one: one.value)
    if len(known) > 1:
        most, fewest = (f"{quote(one.group)} ({_range(one)})" for one in (best, least))
        text += f"; judged by each group's own records, most in {most} and least in {fewest}"
        text += " (intervals that hold for all groups at once)"
    sure, harm = [one for one in known if one.low > 0], [one for one in known if one.high < 0]
    unsure, unseen = len(known) - len(sure) - len(harm), len(found) - len(known)
    if unsure:
        text += f"; in {unsure} of {len(known)} groups it may be nothing" if len(known) > 1 else "; it may be nothing"
    if harm:
        text += f"; it seems to harm in {list_some([one.group for one in harm])}"
    if unseen:
        text += f"; in {many(unseen, 'more group')} no {word} can be compared with a record without one"
    if high < 0:
        advice = f"find out whether {word}s go to those who are about to do worse: then this is not their effect"
        return Check(
            name, whole.value, PROBLEM, f"{text}: {word}s seem to harm, or those who will do worse are chosen", advice
        )
    if low > 0 and not unsure and not harm and not unseen:
        return Check(name, whole.value, FINE, text)
    advice = "do not rely on the number of a single group where it is uncertain; collect more records there"
    return Check(name, whole.value, WATCH, text, advice)


def _reached(fit: Fit, whole: Average) -> str:
    """Return the share of actions that reach somebody, and the effect of these, if the log has it."""
    log, word = fit.require_log(), fit.words.action
    if log.reached is None or not (log.reached == 1).any():
        return ""
    known = (log.action == 1) & (log.reached >= 0)
    part = float((log.reached[known] == 1).mean())
    rest = np.bincount(log.arm_of[known], weights=(log.reached[known] == 1) - part)
    value, *ends = divide_by_reach((whole.value, *whole.ends), part, float(np.sqrt((rest**2).sum())) / int(known.sum()))
    each = f"{as_points(value, fit)} ({_number(ends[0], fit)} to {_number(ends[1], fit)}) for one that does"
    return f" for each {word} that is decided; {part:.0%} reach somebody: {each}, if one that does not changes nothing"


def _number(value: float, fit: Fit) -> str:
    return f"{100 * value:.1f}" if fit.pay.counts_periods else f"{value:.3g}"


def as_points(value: float, fit: Fit) -> str:
    """Return an effect in words: in points where periods are counted."""
    return f"{_number(value, fit)} points" if fit.pay.counts_periods else _number(value, fit)


def _range(one: Effect) -> str:
    scale, form = (100, ".1f") if one.in_points else (1, ".3g")
    return f"{scale * one.value:{form}}; {scale * one.low:{form}} to {scale * one.high:{form}}"
