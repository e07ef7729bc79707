"""Checks of what the log has of the past of an arm: is the effect the same by the state before, and by level?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rmab.estimation.effect_checks import BIAS, FEW_ACTIONS, Check, as_points
from rmab.estimation.fit import Fit
from rmab.estimation.scores import Records, compare
from rmab.estimation.significance import FINE, PROBLEM, SURE, UNKNOWN


def check_history(fit: Fit) -> list[Check]:
    """Return the checks of the effect by the state before."""
    records = Records.of(fit)
    return [_by_state_before(fit, records)]


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
