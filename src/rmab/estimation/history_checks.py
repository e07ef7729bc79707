"""Checks of what the log has of the past of an arm: is the effect the same by the state before, and by level?

The level of an arm is how well it does in its other records without an action, within group and state: an arm of n such
records counts n / (n + 8) of their mean. It has noise, so outcomes rise by less than one with it, but by as little with an
action as without one: every record is compared with the others of its arm, never with itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rmab.common import FloatArray
from rmab.estimation.effect_checks import BIAS, FEW_ACTIONS, PART, TREND, Check, as_points
from rmab.estimation.fit import Fit
from rmab.estimation.scores import Records, compare
from rmab.estimation.significance import FINE, PROBLEM, SURE, UNKNOWN

PRIOR = 8.0  # records without a level


def check_history(fit: Fit) -> list[Check]:
    """Return the checks of the effect by the state before, and by the level of an arm."""
    records = Records.of(fit)
    return [_by_state_before(fit, records), _by_level(fit, records)]


def _by_state_before(fit: Fit, records: Records) -> Check:
    """Ask whether the effect is the same within the state before: else actions went to those who rise, or fall, anyway."""
    name, word, unit = "effect by the state before", fit.words.action, fit.words.period
    whole, within = records.average(), replace(records, past=True).average()
    gap, p = compare(within, whole)
    if not np.isfinite(gap) or whole.actions < FEW_ACTIONS:
        text = f"too few {word}s can be compared with records without one of the same state before"
        return Check(name, np.nan, UNKNOWN, text, "repeat the check when there are more")
    text = f"{as_points(within.value, fit)} among arms with the same state in the {unit} before, "
    text += f"{as_points(whole.value, fit)} otherwise (p = {p:.2g})"
    if p >= SURE or abs(gap) <= BIAS * max(abs(whole.value), abs(within.value)):
        return Check(name, gap, FINE, f"no sign that {word}s went to those who rise or fall anyway: {text}")
    advice = f"put the state of the {unit} before into the state ('lapsed this {unit}'), or draw {word}s at random"
    where = f"{word}s depended on the state before, and so does what comes next without one"
    return Check(name, gap, PROBLEM, f"{where}: {text}", advice)


def _by_level(fit: Fit, records: Records) -> Check:
    """Ask whether arms that do worse gain more than the model has it: it takes levels and effects to be independent.

    It is asked one-sided: a plan that acts on arms of poor outcomes is then too optimistic.
    """
    name, word, whole = "effect by level of the arm", fit.words.action, records.average()
    level, every = find_level(records), np.ones(records.arm.size, dtype=bool)
    act, own = (records.rest(one, every) for one in (records.action, level))
    beyond = records.outcome - records.action * expect_effect(fit, records)
    left = records.rest(beyond, every)
    usual = float(own @ left) / max(float(own @ own), 1e-12)
    rise, p = replace(records, outcome=beyond - usual * level).change(level)
    if whole.actions < FEW_ACTIONS or not np.isfinite(rise) or not np.isfinite(whole.value):
        return Check(name, np.nan, UNKNOWN, f"too few {word}s to arms that do better, or worse", "collect more records")
    p = p / 2 if rise < 0 else 1 - p / 2
    change = 2 * rise * float(np.sqrt((act**2 @ own**2) / max(float((act**2).sum()), 1e-12)))
    side = "less" if change < 0 else "more"
    text = (
        f"compared with the model, arms that do well without {fit.words.an_action} gain {as_points(abs(change), fit)} {side}"
    )
    text += f" from one than arms that do badly (p = {p:.2g})"
    if p >= TREND or abs(change) <= PART * abs(whole.value):
        return Check(name, change, FINE, f"no significant and relevant difference: {text}")
    advice = f"add a column of groups that tells arms that do badly from others, or draw {word}s at random for some time"
    return Check(name, change, PROBLEM, f"arms that do badly gain more: {text}", advice)


def find_level(records: Records) -> FloatArray:
    """(M,) how well the arm of every record does in its other records without an action."""
    alone = records.action == 0
    rest = np.zeros(records.arm.size)
    rest[alone] = records.rest(records.outcome, alone)
    total = np.bincount(records.arm, weights=rest, minlength=records.arms)
    number = np.bincount(records.arm[alone], minlength=records.arms)
    return np.asarray((total[records.arm] - rest) / (number[records.arm] - alone + PRIOR))


def expect_effect(fit: Fit, records: Records) -> FloatArray:
    """(M,) the effect that the model expects by the group and the level of an arm, without its own effect."""
    groups, rows = np.asarray(fit.kernels), fit.arm_rows
    kernels = groups[fit.group_of] if rows is None else replace(rows, effects=None).kernels(groups)
    values = np.einsum("nsay,ny->nsa", kernels, records.worth[fit.group_of])
    return np.asarray((values[:, :, 1] - values[:, :, 0])[records.arm, records.state])
