"""Whether actions were drawn at random, as the log or its owner says: the claim is compared with the actions.

Recorded chances p of an action A are right if A - p has the mean 0, whatever else is known before the draw. So in all
records, in every state, group and band of chances, the number of actions is compared with the sum of their chances. A
sum of independent draws varies at most as a binomial number of the same mean does (Hoeffding 1956). Draws of one arm
may hang together (an arm that was drawn once for all periods): then numbers are divided by the design effect, the
variance between arms over that of independent draws, where it is above 1 (Korn & Graubard 1998).

Where draws were declared, within groups, states and periods, arms that were drawn more often than others like them
must not do otherwise without an action, nor be drawn more often again in the second half of the log. Arms without any
action are left out of the latter question, as they may be the control group of a trial; that they were like the
others at first is a third one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.special import betainc
from scipy.stats import norm

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.estimation.effect_checks import Check
from rmab.estimation.fit import Fit
from rmab.estimation.scores import LIKE, Records
from rmab.estimation.selection import LEAST_ARMS, find_link, find_trial
from rmab.estimation.significance import FEW, FINE, PROBLEM, SURE
from rmab.logs.findings import quote
from rmab.logs.log import Log

DRAWN = 0.8  # of the records, that have a chance between 0 and 1: then the log says how it was drawn
OFF = 0.05  # relative difference between actions and their chances that matters
SLIPS = 0.02  # of the actions: contradictions of a chance of 0 or 1, below which they may be slips
QUESTIONS = 3  # about a declaration


def find_design(fit: Fit) -> str:
    """Return how it is known that actions were drawn at random: declared or recorded; empty where it is not.

    Recorded chances that differ within group, state and period may depend on what the model does not know: then they show
    what a fair comparison is (`Records.chance`), but the model's own is not one. Arms that look assigned may be volunteers.
    A claim that the records contradict is none.
    """
    if find_contradiction(fit):
        return ""
    if fit.randomised:
        return "declared"
    return "recorded" if fit.require_log().chance is not None and not explain_chances(fit) else ""


def explain_chances(fit: Fit) -> str:
    """Return why recorded chances do not make actions random in the model; empty if they do, or there are none."""
    log = fit.require_log()
    if log.chance is None:
        return ""
    known = log.action >= 0
    total, missing = int(known.sum()), int((known & np.isnan(log.chance)).sum())
    certain = int((known & ((log.chance == 0) | (log.chance == 1))).sum())
    records = Records.of(fit)
    plain = replace(records, chance=None).strata(records.period)
    whole = total - missing - certain >= DRAWN * total
    if whole and _alike(plain, records.strata(records.period)).mean() >= DRAWN:
        return ""
    given = records.chance >= 0 if records.chance is not None else np.zeros(plain.size, dtype=bool)
    if whole and (not given.any() or _alike(plain[given], records.strata(records.period)[given]).mean() < DRAWN):
        return f"chances differ within group, state and {fit.words.period}, and may depend on what the model does not know"
    number, what = (
        (missing, "no chance") if whole or missing > certain else (certain, "a chance of 0 or 1: nothing was drawn")
    )
    return f"{number:,} of {total:,} records ({max(number / max(total, 1), 0.001):.1%}) have {what}"


def _alike(stratum: IntArray, finer: IntArray) -> BoolArray:
    """(M,) whether all records of a stratum are in one of the finer ones."""
    classes = np.unique(np.column_stack([stratum, finer]), axis=0)[:, 0]
    return np.asarray(np.bincount(classes)[stratum] == 1)


def check_draws(fit: Fit) -> list[Check]:
    """Return the check of what is said about the draw of actions; none if nothing is said."""
    log, word = fit.require_log(), fit.words.action
    if not fit.randomised and (log.chance is None or np.isnan(log.chance).all()):
        return []
    name = f"how {word}s were drawn"
    if wrong := find_contradiction(fit):
        advice = f"record who was selected, and the chances with which {word}s were really drawn, or fit without the chances"
        if not _find_wrong_chances(fit):
            only = f"only if nothing but the draw decided who got {fit.words.an_action}"
            advice = f"declare a draw (randomised, --randomised) {only}"
        return [Check(name, np.nan, PROBLEM, wrong, advice)]
    if log.chance is None or np.isnan(log.chance).all():
        return [Check(name, np.nan, FINE, "no sign that the records contradict the declared draw")]
    drawn = (log.action >= 0) & (log.chance > 0) & (log.chance < 1)
    came, said = int(log.action[drawn].sum()), float(log.chance[drawn].sum())
    text = f"{came:,} {word}s in {int(drawn.sum()):,} records with a chance between 0 and 1, and the chances say {said:,.0f}"
    return [Check(name, came / max(said, 1.0) - 1.0, FINE, f"no sign that recorded chances are wrong: {text}")]


def find_contradiction(fit: Fit) -> str:
    """Return how the records contradict the recorded chances, or the declared draw; empty if they do not."""
    return _find_wrong_chances(fit) or (_find_choice(fit) if fit.randomised else "")


def _find_wrong_chances(fit: Fit) -> str:
    log, word = fit.require_log(), fit.words.action
    if log.chance is None:
        return ""
    against = (log.action >= 0) & (np.where(log.action == 1, log.chance, 1.0 - log.chance) == 0)
    if against.sum() > max(SLIPS * (log.action == 1).sum(), 1):
        others = int((against & (log.action == 0)).sum())
        text = (
            f"{int(against.sum()) - others:,} {word}s have a recorded chance of 0, and {others:,} records without one have "
        )
        return f"{text}a chance of 1"
    drawn = (log.action >= 0) & (log.chance > 0) & (log.chance < 1)
    found = find_wrong_part(_parts(fit, log, log.chance), log.action[drawn], log.chance[drawn], log.arm_of[drawn], drawn)
    if found is None:
        return ""
    name, came, said, size = found
    text = f"recorded chances do not agree with what was done: {came:,} of {size:,} records{name} have {fit.words.an_action}"
    return f"{text}, and their chances say {said:,.0f}"


def find_wrong_part(
    parts: dict[str, BoolArray], action: IntArray, chance: FloatArray, arm: IntArray, drawn: BoolArray | None = None
) -> tuple[str, int, float, int] | None:
    """Return the part of the records whose actions (M,) contradict their chances (M,) most; None if none does.

    parts: (R,) masks by name, of all records; drawn (R,): which of these the M are. Returns its name, the actions, the sum
    of chances, and its size.
    """
    several = {name: one if drawn is None else one[drawn] for name, one in parts.items()}
    found = [
        (compare_chances(action[one], chance[one], arm[one]), name) for name, one in several.items() if one.sum() >= FEW
    ]
    wrong = [
        (p, name, came, said, size)
        for (p, came, said, size), name in found
        if p * len(found) < SURE and abs(came - said) > OFF * min(said, size - said)
    ]
    return min(wrong)[1:] if wrong else None


def _parts(fit: Fit, log: Log, chance: FloatArray) -> dict[str, BoolArray]:
    """Return the parts of a log in which chances are tested, by name: all, states, groups, and bands of chances."""
    parts = {"": np.ones(chance.size, dtype=bool)}
    parts |= {f" in {quote(name)}": log.state == s for s, name in enumerate(log.state_names)}
    if len(fit.groups) > 1:
        group = fit.group_of[log.arm_of]
        parts |= {f" in the group {quote(name)}": group == g for g, name in enumerate(fit.groups)}
    ends = pairwise(LIKE)
    return parts | {f" with chances of {a:.0%} to {b:.0%}": (chance > a) & (chance <= b) for a, b in ends}


def compare_chances(action: IntArray, chance: FloatArray, arm: IntArray) -> tuple[float, int, float, int]:
    """Return the p of so many actions (M,) with these chances (M,), their number, the sum of chances, and M."""
    came, said, size = int(action.sum()), float(chance.sum()), action.size
    rest = action - chance
    several = np.unique(arm, return_inverse=True)[1].reshape(-1)
    arms = int(several.max()) + 1
    own = np.bincount(several, weights=rest - rest.mean())
    if arms < LEAST_ARMS:
        return 1.0, came, said, size
    effect = max(1.0, float((own**2).sum()) * arms / (arms - 1) / float((chance * (1 - chance)).sum()))
    number, mean, k = size / effect, said / size, came / effect
    tail = betainc(k, number - k + 1, mean) if came > said else betainc(number - k, k + 1, 1 - mean)
    inside = came > 0 if came > said else came < size
    return float(min(2 * tail, 1.0)) if inside else 1.0, came, said, size


def _find_choice(fit: Fit) -> str:
    """Return how the records contradict that nothing but group, state and period decided; empty if they do not."""
    records, word = Records.of(fit), fit.words.action
    said = f"the draw of {word}s is declared, but"
    link, trial = find_link(records), find_trial(records)
    if link.is_known and link.p < SURE / QUESTIONS:
        side = "worse" if link.value < 0 else "better"
        more = f"arms that had more {word}s do {side} without {fit.words.an_action}, too (p = {link.p:.2g})"
        return f"{said} {more}: a reason that is not in the log decided"
    if trial is not None and trial.p < SURE / QUESTIONS:
        return f"{said} the {trial.never:,} arms that never had one were unlike the others at first (p = {trial.p:.2g})"
    p = compare_halves(records)
    if p < SURE / QUESTIONS:
        more = f"arms that had more {word}s than others in their group and state in the first half of the log also had more"
        return f"{said} {more} in the second (p = {p:.2g}): who the arm is decided, too"
    return ""


def compare_halves(records: Records) -> float:
    """Return the p, of one side, of arms that are chosen often in both halves of a log; of arms with an action alone."""
    acted = np.bincount(records.arm, weights=records.action, minlength=records.arms) > 0
    inside = acted[records.arm]
    if acted.sum() < LEAST_ARMS:
        return 1.0
    rest, arm, late = records.rest(records.action, inside), records.arm[inside], records.half[inside]
    product = np.multiply(*(np.bincount(arm, weights=rest * (late == k), minlength=records.arms) for k in (0, 1)))
    size = float(np.sqrt((product**2).sum()))
    return float(norm.sf(product.sum() / size)) if size > 0 else 1.0
