"""Checks of a log before its model is used: each has a number and a verdict.

*Problem* means that the number of an evaluation may be far off, beyond its interval: it is then not
stated as a result. *Watch* means less. *Unknown* means that there were not enough records to test.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import norm

from rmab.common import FloatArray, IntArray, as_seed, expect
from rmab.errors import many
from rmab.estimation.draws import check_draws
from rmab.estimation.effect_checks import Check, check_effects
from rmab.estimation.effects import estimate_effects
from rmab.estimation.fit import Fit
from rmab.estimation.history_checks import check_history
from rmab.estimation.resampling import FEW_ARMS, Resampler
from rmab.estimation.shrinkage import shrink
from rmab.estimation.significance import FEW, FINE, PROBLEM, SURE, UNKNOWN, WATCH, calibration_error, homogeneity
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import list_some
from rmab.logs.log import Log, Transitions

HELD_OUT = 0.2  # of the periods, for calibration
REDRAWN = 60  # models as likely as the one that forecasts
OFF, FAR_OFF = 0.03, 0.05  # calibration errors that matter
LOST, OFTEN_LOST = 0.02, 0.1  # differences in the share of missing records that matter
GAPS, FAR_MISSING = 50, 0.7  # gaps needed to see who is missing; a probability of missing beyond which weights do not help
SHIFT, SHIFTED = 0.2, 0.01  # of the effect, and of the worth of states: changes by missing records that matter
LATER = "repeat the check when there are more records"
ACTIONS_OFF = 0.05  # error of forecasts after an action, beyond which effects are not to be believed


def run_checks(fit: Fit, *, replicates: int = 200, seed: int = 0) -> list[Check]:
    """Run all checks of a fit.

    Parameters
    ----------
    fit : Fit
        The model and its log.
    replicates : int
        Number of draws for the intervals of the effects.
    seed : int
        Random seed of these draws.

    Returns
    -------
    list of Check
        What is known, missing records, memory, change over time, predictions, predictions after an action, how actions were
        drawn (if the log or its owner says so), who was acted on, the effect in the same period, over time, after recent
        actions, in later periods, by the state before and by the level of the arm, and the effect itself.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=300, weeks=30)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> [one.verdict for one in rmab.data.run_checks(rmab.data.fit(log), replicates=50)][:4]
    ['watch', 'fine', 'fine', 'fine']
    """
    expect(fit, Fit, "fit")
    log, key = fit.require_log(), as_seed(seed)
    found = [_visits(fit, log), _missing(fit, log), _order(fit, log), _change(fit, log), *_predictions(fit, log, key)]
    effects = estimate_effects(fit, replicates=replicates, seed=seed)
    *others, effect = check_effects(fit, effects)
    return [*found, *check_draws(fit), *others, *check_history(fit), effect]


def _visits(fit: Fit, log: Log) -> Check:
    visits = fit.counts.sum(axis=3)
    name = "what is known"
    words = (f"without {log.words.an_action}", f"with {log.words.an_action}")
    never = [f"'{log.state_names[s]}' {words[a]}" for s, a in np.argwhere(fit.rows.unseen)]
    if never:
        text = f"no records of {list_some(never)} in any group"
        advice = "use a random share in future lists to find out; until then no effect is assumed"
        return Check(name, float(visits.min()), WATCH, text, advice)
    arms = int(np.unique(log.transitions.arm).size)
    if arms < FEW_ARMS:
        text = f"only {many(arms, 'arm')} with records: the variation between arms is unknown, and not in the intervals"
        return Check(name, float(arms), PROBLEM, text, "collect records of more arms before any number is reported")
    little = [
        f"{fit.groups[g]} in '{log.state_names[s]}' {words[a]} ({visits[g, s, a]})" for g, s, a in np.argwhere(visits < FEW)
    ]
    least = f"the least seen has {visits.min():,} records"
    if little:
        text = f"{len(little)} of {visits.size} combinations of group, state and action have fewer than {FEW} records, and "
        text += f"borrow from other groups: {list_some(little, 4)}"
        return Check(name, float(visits.min()), WATCH, text, "use fewer, larger groups, if you do not need the present ones")
    return Check(name, float(visits.min()), FINE, f"every group, state and action was seen; {least}")


def _row(fit: Fit, moves: Transitions) -> IntArray:
    return np.asarray((fit.group_of[moves.arm] * len(fit.state_names) + moves.state) * 2 + moves.action)


def _order(fit: Fit, log: Log) -> Check:
    moves = log.transitions.where(log.transitions.before >= 0)
    test = homogeneity(_row(fit, moves), moves.before, moves.after)
    name, unit = "memory", fit.words.period
    if test.freedom == 0:
        return Check(name, np.nan, UNKNOWN, f"too few stretches of three {unit}s without a gap", LATER)
    if test.verdict == FINE:
        return Check(
            name,
            test.effect,
            FINE,
            f"where arms go depends on their state now, not significantly on the one before ({test.numbers})",
        )
    text = f"where arms go also depends on the state of the {unit} before ({test.numbers}): arms of a group differ, or the "
    return Check(
        name, test.effect, test.verdict, text + "past matters", "use finer groups, clusters, or states with more in them"
    )


def _change(fit: Fit, log: Log) -> Check:
    moves, half = log.transitions, log.periods.count // 2
    test = homogeneity(_row(fit, moves), (moves.period >= half).astype(np.int64), moves.after)
    name = "change over time"
    if test.freedom == 0:
        return Check(name, np.nan, UNKNOWN, "too few records in one of the halves", LATER)
    text = f"in the first and the second half of the log ({test.numbers})"
    if test.verdict == FINE:
        return Check(name, test.effect, FINE, f"arms behave alike {text}")
    advice = "remove old records from the log and fit again"
    return Check(name, test.effect, test.verdict, f"arms behave differently {text}", advice)


def _missing(fit: Fit, log: Log) -> Check:
    """Check whether the next record is missing more often after some states or actions: records may then be biased.

    Those who have left are not missing. That records are missing by the state and action before leaves rows as they are;
    that they are missing by the state in which arms are is seen after gaps, and corrected. The rest is a problem.
    """
    name, unit = "missing records", log.words.period
    known = (log.state >= 0) & (log.action >= 0)
    follows = np.zeros(log.arm_of.size, dtype=bool)
    follows[:-1] = (np.diff(log.arm_of) == 0) & (np.diff(log.period) == 1) & (log.state[1:] >= 0)
    left = np.concatenate([np.diff(log.arm_of) != 0, [True]]) & np.isin(log.arm_of, fit.present, invert=True)
    rows = np.flatnonzero(known & (log.period < log.periods.count - 1) & ~left)
    if rows.size == 0:
        return Check(name, np.nan, UNKNOWN, f"no record has a state and an action before the last {unit}", LATER)
    lost, state, action = ~follows[rows], log.state[rows], log.action[rows]
    share = float(lost.mean())
    rates = {"the state": [float(lost[state == s].mean()) for s in np.unique(state)]}
    rates[f"whether there was {log.words.an_action}"] = [float(lost[action == a].mean()) for a in np.unique(action)]
    zero = np.zeros(rows.size, dtype=np.int64)
    tests = [homogeneity(zero, state, lost.astype(np.int64)), homogeneity(state, action, lost.astype(np.int64))]
    gaps = {
        why: max(several) - min(several) for (why, several), test in zip(rates.items(), tests, strict=True) if test.p < SURE
    }
    text = f"{share:.1%} of the records are not followed by one of the next {unit}"
    worst = max(gaps, key=lambda why: gaps[why], default="")
    if gaps and gaps[worst] > LOST:
        text += f": {min(rates[worst]):.0%} to {max(rates[worst]):.0%}, depending on {worst}"
        returns = int(((np.diff(log.arm_of) == 0) & (np.diff(log.period) == 2)).sum())
        advice = "find out why records are missing, and fill them in; compare those who are missing with the others"
        if returns < GAPS and gaps[worst] > OFTEN_LOST:
            return Check(name, share, PROBLEM, f"{text}; those who are seen again may differ from the others", advice)
        if fit.missing is None:
            return Check(name, share, WATCH, f"{text}; those who return after {returns:,} gaps are like the others", advice)
    if fit.missing is not None:
        return _missing_by_state(fit, log, share, text)
    often = share > 0.3
    return Check(
        name,
        share,
        WATCH if often else FINE,
        f"{text}, about equally often after every state and action",
        "fill records in" if often else "",
    )


def _missing_by_state(fit: Fit, log: Log, share: float, text: str) -> Check:
    """Say where records are missing, and whether that alone makes an action look better, or worse, than it is."""
    assert fit.missing is not None
    worst, counts = int(np.argmax(fit.missing.max(axis=0))), fit.counts.sum(axis=0).astype(np.float64)
    name, without, after = log.state_names[worst], f"without {log.words.an_action}", f"after {log.words.an_action}"
    (none, most), (least, fewest) = fit.missing[:, worst], fit.missing.min(axis=1)
    text += f"; judging by those who return, at least {none:.0%} are missing in '{name}' and {least:.0%} elsewhere {without}"
    text += f", {most:.0%} and {fewest:.0%} {after}: estimates are corrected for it"
    worth = np.average(fit.pay.table[:, :, 0], axis=0, weights=fit.counts.sum(axis=(1, 2, 3)))
    seen, real = (_mean_effect(one, worth) for one in (counts, counts * fit.state_weights))
    if abs(seen - real) > max(SHIFT * abs(real), SHIFTED * float(np.ptp(worth))):
        text += f", but those who are seen {after} differ from those who are seen {without}"
        advice = f"record the state after every {log.words.action}, whether it was good or not"
        return Check("missing records", share, PROBLEM, text, advice)
    severe, advice = fit.missing.max() > FAR_MISSING, f"find out why records are missing in '{name}', and fill them in"
    return Check("missing records", share, PROBLEM if severe else WATCH, text, advice)


def _mean_effect(counts: FloatArray, worth: FloatArray) -> float:
    """Return by how much an action raises the worth (S,) of the next state, by counts (S, 2, S), on average over actions."""
    visits = counts.sum(axis=2)
    means = np.divide(counts @ worth, visits, out=np.zeros_like(visits), where=visits > 0)
    both = visits[:, 1] * (visits.min(axis=1) > 0)
    return float((both * (means[:, 1] - means[:, 0])).sum() / max(float(both.sum()), 1e-9))


def _predictions(fit: Fit, log: Log, seed: int) -> list[Check]:
    """Fit the first periods, predict the last: what was said to happen in p of the cases should happen in p of them.

    Records after an action are few, and are asked on their own: by the mean of what came, less what was said.
    """
    names = ["predictions", f"predictions after {log.words.an_action}"]
    cut = int(np.floor((1 - HELD_OUT) * log.periods.count))
    moves = log.transitions
    early, late = moves.period + 1 < cut, moves.period >= cut
    if early.sum() < FEW or late.sum() < FEW:
        return [Check(name, np.nan, UNKNOWN, "the log is too short to hold periods out", LATER) for name in names]
    statistics = Statistics.from_log(log.until(cut), fit.group_of, len(fit.groups))
    before = replace(
        fit, log=log.until(cut), statistics=statistics, rows=shrink(statistics.counts * fit.state_weights, fit.levels)
    )
    held, rng, resampler = moves.where(late), np.random.default_rng((seed, 7)), Resampler(before)
    place = (fit.group_of[held.arm], held.state, held.action, fit.pay.goal)
    said, came = np.asarray(before.kernels[place]), (held.after == fit.pay.goal).astype(np.float64)
    others = np.stack([resampler.draw(rng)[place] for _ in range(REDRAWN)])
    last = many(log.periods.count - cut, log.words.period)
    found = []
    for name, rows in zip(names, (np.ones(said.size, dtype=bool), held.action == 1), strict=True):
        if rows.sum() < FEW:
            found.append(Check(name, np.nan, UNKNOWN, f"too few in the last {last}", LATER))
            continue
        if name == names[0]:
            error, noise, p = calibration_error(said, came, others)
            beyond, far = float(np.sqrt(max(error**2 - noise**2, 0.0))), FAR_OFF
        else:
            beyond, p = _mean_error(said[rows], came[rows], others[:, rows], held.arm[rows])
            far = ACTIONS_OFF
        verdict = FINE if beyond < OFF or p >= SURE else WATCH if beyond < far else PROBLEM
        off = "were right, within chance variation" if p >= SURE else f"were off by {100 * beyond:.1f} points, beyond chance"
        words = f"a model of the earlier records predicted the last {last}: its probabilities {off}"
        words += f" (p = {p:.2g}, {rows.sum():,} records)"
        found.append(
            Check(
                name,
                beyond,
                verdict,
                words,
                "" if verdict == FINE else "remove old records from the log, or use finer groups, and fit again",
            )
        )
    return found


def _mean_error(said: FloatArray, came: FloatArray, others: FloatArray, arm: IntArray) -> tuple[float, float]:
    """Return how far outcomes (M,) are from forecasts on average, and p, with errors of arms and of other fits (R, M)."""
    gap = float((came - said).mean())
    parts = np.bincount(arm, weights=came - said - gap) / came.size
    error = float(np.sqrt((parts**2).sum() + others.mean(axis=1).var(ddof=1)))
    return abs(gap), float(2 * norm.sf(abs(gap) / error)) if error > 0 else 1.0
