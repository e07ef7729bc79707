"""Report for the manager of a programme: benefit of the plan, who gets an action, and limits of the data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from rmab.common import require
from rmab.decisions.decision import Decision
from rmab.decisions.fairness import write_warnings
from rmab.decisions.standing import OPENING
from rmab.estimation.effects import Effect, estimate_effects, hold_together
from rmab.estimation.fit import Fit
from rmab.estimation.promise import Estimate, Evaluation
from rmab.estimation.reach import Reach, estimate_reach
from rmab.estimation.significance import FINE
from rmab.report.output import render_page, write_files

LISTED, GROUPS = 25, 40  # maximum numbers of shown rows of the list and of groups
SAME = 0.005  # relative difference of an index below which two places are worth the same
SELDOM = 0.95  # share of a group without an action above which the group counts as never reached
AGAINST = {
    "nothing": "no action",
    "rotation": "rotation",
    "random": "a random policy",
    "as logged": "continuing as in the log",
}


def write_programme_report(fit: Fit, calls: Decision, found: Evaluation, path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write the page to a path, and its figures as PNG into a folder beside it; return all paths."""
    require("report", "a report")
    from rmab.report.programme_figures import draw_programme  # noqa: PLC0415

    page = Path(path)
    effects, reached = estimate_effects(fit), estimate_reach(fit, int(calls.budget), found.horizon, calls.active)
    html, figures = render_programme(fit, calls, found, effects, reached), draw_programme(found, reached, effects)
    return page, *write_files(page, html, page.with_name(f"{page.stem}-figures"), figures)


def render_programme(fit: Fit, calls: Decision, found: Evaluation, effects: list[Effect], reached: list[Reach]) -> str:
    """Return the page as HTML."""
    log, words = fit.require_log(), fit.words
    return render_page(
        "programme.html.jinja",
        (),
        ("report.css", "programme.css"),
        word=words.action,
        places=_many(found.budget, words.action),
        ahead=_many(found.horizon, words.period),
        a_word=words.an_action,
        unit=found.unit,
        per=words.period,
        label=calls.period,
        found=found,
        size=f"{fit.present.size:,}",
        span=f"{log.periods.label(0)} to {log.periods.label(log.periods.count - 1)}",
        records=f"{log.arm_of.size:,}",
        headline=headline(fit, calls, found),
        warnings=_warnings(calls, found),
        benefits=_benefits(found) if found.states_benefits else _ranges(found),
        ways=_ways(found),
        passed_over=_explain_omissions(fit, calls, effects, reached),
        in_spite=_in_spite(fit, calls, effects, reached),
        reached=_reach_rows(reached, calls),
        never=_never(reached),
        effects=_effects(effects),
        unseen=_unseen(effects),
        group_count=len(reached),
        known_count=len(effects) - len(_unseen(effects)),
        effect_what=effects[0].what,
        in_points=effects[0].in_points,
        doubts=[one for one in found.checks if one.verdict != FINE],
        checks=found.checks,
        notes=[str(one) for one in fit.notes],
        one_step=found.one_step,
        changes=[] if calls.changes is None else calls.changes.sentences(),
        rows=calls.rows(first=LISTED),
        total=int(calls.active.sum()),
    )


def _warnings(calls: Decision, found: Evaluation) -> list[str]:
    """Return the notes of the list, without prices if no benefit is stated; its standing is at the top of the page."""
    prices = write_warnings(calls.words, calls.fairness)
    plain = dict(zip(prices, write_warnings(calls.words, calls.fairness, priced=False), strict=True))
    notes = [one for one in calls.notes if not one.startswith(OPENING)]
    if found.states_benefits:
        return notes
    return [plain.get(one, one) for one in notes if not one.startswith("cap of ")]


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def headline(fit: Fit, calls: Decision, found: Evaluation) -> list[str]:
    """Return the headline sentences on the plan and the list, the most important first."""
    word, per = fit.words.action, fit.words.period
    last = f"The list for {calls.period} has {_many(int(calls.active.sum()), 'name')}."
    if not found.states_benefits:
        return [*found.sentences(), last]
    over, alone, *_ = found.sentences()
    plan = f"With {_many(found.budget, word)} per {per}, over the next {_many(found.horizon, per)}"
    if found.standing == "conditional":
        return [f"{plan}. {over}", alone, last, *found.caveats]
    first = f"{plan}, the plan brings {over}" if found.promises("rotation") else f"{plan}: {over[0].lower()}{over[1:]}"
    gain = found.benefits["nothing"]
    each = f"One {word} brings {gain.value / (found.budget * found.horizon):.2g} {found.unit} on average. "
    return [first, alone, f"{each if found.promises('nothing') else ''}{last}", *found.caveats]


def _scale(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis that contains these values and 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    room = 0.04 * max(high - low, 1e-12)
    return low - (room if low < 0 else 0.0), high + room


def _track(one: Estimate | Effect, ends: tuple[float, float]) -> dict[str, float]:
    """Return positions in per cent: the interval, the value, and zero."""

    def place(value: float) -> float:
        return round(100 * (float(value) - ends[0]) / (ends[1] - ends[0]), 2)

    return {
        "left": place(one.low),
        "width": round(place(one.high) - place(one.low), 2),
        "dot": place(one.value),
        "zero": place(0.0),
    }


def _benefits(found: Evaluation) -> list[dict[str, Any]]:
    stated = {name: one for name, one in found.benefits.items() if not found.leaves_open(name)}
    several = list(stated.values())
    ends = _scale(min(one.low for one in several), max(one.high for one in several))
    return [
        {"name": f"than {AGAINST[name]}", "text": found.describe(one, signed=True), "track": _track(one, ends)}
        for name, one in stated.items()
    ]


def _ranges(found: Evaluation) -> list[dict[str, Any]]:
    """Return the ranges under unrecorded selection, for reports without a stated benefit."""
    several = [(name, one) for name in ("rotation", "nothing") for one in found.ranges[name]]
    ends = _scale(min(one.low for _, one in several), max(one.high for _, one in several))
    return [
        {
            "name": f"than {AGAINST[name]}, k = {one.strength:g}",
            "text": f"{one.low:+,.0f} to {one.high:+,.0f}",
            "track": _track(Estimate((one.low + one.high) / 2, one.low, one.high), ends) | {"dot": None},
        }
        for name, one in several
    ]


def _explain_omissions(fit: Fit, calls: Decision, effects: list[Effect], reached: list[Reach]) -> list[str]:
    """Explain why groups with a large estimated effect get no place, one sentence each."""
    known = [one for one in effects if np.isfinite(one.value)]
    chosen = np.array(calls.rule) == "index"
    if not known or not chosen.any():
        return []
    now = {one.group: one.now for one in reached}
    high = np.quantile([one.value for one in known], 2 / 3)
    index, group = np.asarray(calls.index), fit.group_of[fit.present]
    price, found = float(index[chosen].min()), []
    for one in known:
        if one.value < max(high, 1e-9) or now.get(one.group, 1) or one.group not in fit.groups:
            continue
        g = fit.groups.index(one.group)
        best = int(np.flatnonzero(group == g)[index[group == g].argmax()])
        worth = fit.pay.table[g, :, 0] if not one.in_points else np.arange(len(fit.state_names)) == fit.pay.goal
        rise = float(fit.situation.belief[fit.present[best]] @ (fit.kernels[g, :, 1] - fit.kernels[g, :, 0]) @ worth)
        found.append(f"{one.group} gets no place: {_why_not(fit, one, rise, float(index[best]), price)}")
    return found[:5]


def _in_spite(fit: Fit, calls: Decision, effects: list[Effect], reached: list[Reach]) -> list[str]:
    """Explain why groups in which the plan expects no gain on average get places, one sentence each."""
    now, chosen, group = {one.group: one.now for one in reached}, np.array(calls.rule) == "index", fit.group_of[fit.present]
    rows, found = fit.arm_kernels(np.asarray(fit.kernels))[fit.present], []
    differ = f"effects differ by state{'' if fit.arm_rows is None else ' and participant'}"
    for one in effects:
        if one.group not in fit.groups or not (one.model <= 0 < now.get(one.group, 0)):
            continue
        g = fit.groups.index(one.group)
        mine = np.flatnonzero(chosen & (group == g))
        if not mine.size:
            continue
        worth = fit.pay.table[g, :, 0] if not one.in_points else np.eye(len(fit.state_names))[fit.pay.goal]
        gain = (rows[mine, :, 1] - rows[mine, :, 0]) @ worth
        rise = float((fit.situation.belief[fit.present[mine]] * gain).sum(axis=1).mean())
        scale, form = (100, "+.1f") if one.in_points else (1, "+.3g")
        places, mean = _many(now[one.group], "place"), f"{scale * one.model:{form}} on average"
        listed = f"for those whom the plan chose it is {scale * rise:{form}}"
        later = f", and the plan also counts what comes after the next {fit.words.period}" if rise <= 0 else ""
        found.append(f"{one.group} gets {places}, though the plan's effect there is {mean}: {differ}; {listed}{later}")
    return found[:5]


def _why_not(fit: Fit, one: Effect, rise: float, worth: float, price: float) -> str:
    """Return why a group gets no place; `rise` and `worth` are of its best arm, `price` is the worth of the last place."""
    scale, form = (100, "+.1f") if one.in_points else (1, "+.3g")
    if one.model < one.value / 2:
        why = f"its records show {scale * one.value:{form}}, but with only {one.seen:,} {fit.words.action}s"
        return f"{why}, so the plan uses {scale * one.model:{form}}"
    unit = fit.pay.unit
    compared = f"worth {worth:.3g} {unit}, and the last place on the list {price:.3g}"
    if abs(price - worth) < SAME * abs(price):
        return f"{fit.words.an_action} there is {compared}; equal places go to whoever has waited longest"
    if worth > price:
        return f"{fit.words.an_action} there is {compared}, but a rule keeps it off the list"
    if rise < one.model / 2:
        why = f"its participants are now in states in which {fit.words.an_action} changes less ({scale * rise:{form}})"
        return f"{why}; it is {compared}"
    return f"{fit.words.an_action} there is {compared}, because its effect does not last as long as elsewhere"


def _ways(found: Evaluation) -> list[dict[str, str]]:
    """Return the total of the plan and of each baseline, also per participant."""
    several = {"the plan": found.plan, **{AGAINST[name]: one for name, one in found.baselines.items()}}
    used = [float(found.budget), *found.used.values()]
    return [
        {"name": name, "text": found.describe(one), "each": f"{one.value / found.arms:.3g}", "used": f"{count:,.0f}"}
        for (name, one), count in zip(several.items(), used, strict=True)
    ]


def _effects(effects: list[Effect]) -> list[dict[str, Any]]:
    known = hold_together([one for one in effects if np.isfinite(one.value)])
    if not known:
        return []
    ends = _scale(min(one.low for one in known), max(one.high for one in known))
    factor, form = (100, "+.1f") if known[0].in_points else (1, "+.3g")
    return [
        {
            "name": one.group,
            "text": f"{factor * one.value:{form}} ({factor * one.low:{form}} to {factor * one.high:{form}})",
            "seen": f"{one.seen:,}",
            "model": f"{factor * one.model:{form}}",
            "track": _track(one, ends),
        }
        for one in sorted(known, key=lambda one: -one.value)[:GROUPS]
    ]


def _unseen(effects: list[Effect]) -> list[str]:
    """Return the groups without records of both an action and no action."""
    return [one.group for one in effects if not np.isfinite(one.value)]


def _reach_rows(reached: list[Reach], calls: Decision) -> list[dict[str, Any]]:
    arms, now = sum(one.arms for one in reached), max(int(calls.active.sum()), 1)
    most = max(max(one.arms / arms, one.now / now) for one in reached)
    return [
        {
            "name": one.group,
            "arms": f"{one.arms:,}",
            "now": f"{one.now:,}",
            "each": f"{one.each:.1f}",
            "never": f"{one.never:.0%}",
            "part": round(100 * one.arms / arms / most, 1),
            "share": round(100 * one.now / now / most, 1),
        }
        for one in sorted(reached, key=lambda one: -one.each)[:GROUPS]
    ]


def _never(reached: list[Reach]) -> dict[str, Any]:
    count, arms = sum(one.never * one.arms for one in reached), sum(one.arms for one in reached)
    return {
        "count": f"{count:,.0f}",
        "part": f"{round(count) / max(arms, 1):.0%}",
        "groups": [f"{one.group} ({one.arms:,})" for one in reached if one.never > SELDOM],
    }
