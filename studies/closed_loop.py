"""Does a programme that learns from its own lists stay honest? Weekly lists in made-up worlds of which the truth is known:

    python studies/closed_loop.py --out out/closed-loop --repetitions 200
    python studies/closed_loop.py --out out/closed-loop --kinds null,null-small --first 200

A repetition draws a world and a few weeks in which calls were made by habit. Then, week by week, the log so far is fitted,
a list is made with a random share, its calls are played in the true world, and the records are appended. At every look the
effect of a call is tested; where the test finds one that is not there, the plan is evaluated as a user would. One line of
JSON for each repetition is stored in the folder, so the same command resumes. At the end the tables of docs/closed_loop.md
are printed.

An arm n of group g moves by a multinomial logit: P(y | s) is proportional to exp(L[s, y] + y (b_g + b_n + a e_g)).
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from simulated import hurry, mean, parse, repeat, share, tabulate

import rmab
from rmab.estimation.gate import check_effect
from rmab.estimation.scores import Records
from rmab.logs.log import Log
from rmab.logs.periods import Periods

hurry()
STATES = ("lapsed", "wavering", "engaged")
REPLICATES = 60
FEW = 3  # calls with which a group counts as starved


@dataclass(frozen=True)
class Kind:
    """A kind of programme; spreads are standard deviations on the scale of logits."""

    arms: int = 120
    groups: int = 4
    budget: int = 8
    share: float = 0.25  # of the places that change hands at random
    before: int = 8  # weeks of calls by habit, before the first list
    weeks: int = 26  # lists
    level: float = 0.0
    spread: float = 0.5  # of baselines between groups
    arm_spread: float = 0.0  # of baselines between arms of a group
    effect: float = 0.0
    effect_spread: float = 0.0  # between groups
    missing: float = 0.05  # records

    @property
    def null(self) -> bool:
        """Whether a call changes nothing."""
        return not (self.effect or self.effect_spread)


KINDS: dict[str, Kind] = {
    "null": Kind(),
    "null-small": Kind(arms=60, groups=3, budget=4),
    "null-many-groups": Kind(groups=15),
    "null-no-share": Kind(share=0.0),
    "null-new": Kind(before=2),
    "null-rare": Kind(level=-1.5),
    "null-arms-differ": Kind(arm_spread=0.6),
    "effect": Kind(effect=0.7),
    "effect-small": Kind(arms=60, groups=3, budget=4, effect=0.7),
    "effects-differ": Kind(effect=0.4, effect_spread=0.6),
    "effects-differ-no-share": Kind(effect=0.4, effect_spread=0.6, share=0.0),
    "effects-differ-new": Kind(before=2, effect=0.4, effect_spread=0.6),
    "effects-differ-many-groups": Kind(groups=15, effect=0.4, effect_spread=0.6),
    "effect-arms-differ": Kind(arm_spread=0.6, effect=0.7),
}


class World:
    """Groups with a baseline and an effect each, arms with a baseline of their own, and kernels (N, S, 2, S) of arms."""

    def __init__(self, kind: Kind, rng: np.random.Generator) -> None:
        self.kind, self.group = kind, rng.permutation(np.arange(kind.arms) % kind.groups)
        base = (kind.level + rng.normal(0, kind.spread, kind.groups))[self.group] + rng.normal(0, kind.arm_spread, kind.arms)
        effect = (kind.effect + rng.normal(0, kind.effect_spread, kind.groups))[self.group]
        score, far = np.arange(3), abs(np.subtract.outer(np.arange(3), np.arange(3)))
        shift = np.stack([base, base + effect], axis=1)  # (N, 2)
        rows = np.exp((-1.3 * far - 0.25 * score)[np.newaxis, :, np.newaxis] + shift[:, np.newaxis, :, np.newaxis] * score)
        self.kernels = rows / rows.sum(axis=-1, keepdims=True)
        self.gain = self.kernels[:, :, 1, -1] - self.kernels[:, :, 0, -1]  # (N, S) what a call adds to the best state

    def step(self, states: np.ndarray, calls: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the next states (N,)."""
        rows = self.kernels[np.arange(states.size), states, calls.astype(np.int64)]
        return np.asarray((rng.random(states.size)[:, np.newaxis] >= rows.cumsum(axis=1)[:, :-1]).sum(axis=1))


def make_log(kind: Kind, group: np.ndarray, tables: dict[str, np.ndarray], weeks: int) -> Log:
    """Return the log of tables (N, weeks) up to a week; -1 is not known, and arms without any record are nobody's."""
    arm, period = (one.reshape(-1) for one in np.indices((kind.arms, weeks)))
    seen = tables["state"][:, :weeks].reshape(-1) >= 0
    rows = {name: one[:, :weeks].reshape(-1)[seen] for name, one in tables.items()}
    return Log(
        arms=tuple(f"a{n:04d}" for n in range(kind.arms)),
        state_names=STATES,
        periods=Periods("number", 1, 1, weeks, "week"),
        arm_of=arm[seen],
        period=period[seen],
        state=rows["state"].astype(np.int64),
        action=rows["action"].astype(np.int64),
        reward=None,
        factors={"site": tuple(f"s{g:02d}" for g in range(kind.groups))},
        factor_of=group[:, np.newaxis],
        ordered=True,
        word="call",
        notes=(),
        chance=rows["chance"],
        listed=rows["listed"].astype(np.int64),
    )


def repetition(name: str, number: int, kind: Kind | None = None) -> dict[str, Any]:
    """Play one programme, and return what was said at every look, and what is true."""
    kind = kind or KINDS[name]
    rng = np.random.default_rng((number, zlib.crc32(name.encode())))
    world, length = World(kind, rng), kind.before + kind.weeks + 1
    states = rng.integers(0, 3, kind.arms)
    for _ in range(10):  # let arms settle
        states = world.step(states, np.zeros(kind.arms, dtype=bool), rng)
    tables = {name: np.full((kind.arms, length), -1.0) for name in ("state", "action", "listed", "chance")}
    tables["chance"][:] = np.nan
    truth, looks, brought = np.zeros(kind.weeks), [], np.zeros(kind.arms)
    calls_of, habit = np.zeros(kind.groups), np.zeros(kind.groups)
    for t in range(length):
        seen = (rng.random(kind.arms) >= kind.missing) | (t == 0)
        tables["state"][:, t] = np.where(seen, states, -1)
        if t > kind.before:  # outcomes of the last list
            truth[t - kind.before - 1] = (brought * seen).sum()
        if t == length - 1:
            break
        if t < kind.before:
            calls = rng.random(kind.arms) < kind.budget / kind.arms
            habit += np.bincount(world.group, weights=calls, minlength=kind.groups)
        else:
            fitted = rmab.data.fit(make_log(kind, world.group, tables, t + 1), reward={"engaged": 1})
            if t > kind.before:
                looks.append(look(fitted, kind, number))
            found = rmab.data.decide(fitted, kind.budget, random_share=kind.share, seed=number)
            calls = _listed(found, kind.arms)
            chance = np.zeros(kind.arms)
            chance[[int(one[1:]) for one in found.arms]] = found.probability
            brought = (
                chance * (chance < 1) * seen * world.gain[np.arange(kind.arms), states]
            )  # on average over draws, to whom can be measured
            tables["chance"][:, t], tables["listed"][:, t] = np.where(seen, chance, np.nan), np.where(seen, calls, -1)
            calls_of += np.bincount(world.group, weights=calls, minlength=kind.groups)
        tables["action"][:, t] = calls
        states = world.step(states, calls, rng)
    log = make_log(kind, world.group, tables, length)
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    looks.append(look(fitted, kind, number))
    return {
        "kind": name,
        "repetition": number,
        "calls": calls_of.tolist(),
        "habit": habit.tolist(),
        **errors(fitted, world),
        **{key: [one[key] for one in looks] for key in looks[0]},
        **measured(log, truth, kind),
    }


def _listed(found: Any, arms: int) -> np.ndarray:
    on = np.zeros(arms, dtype=bool)
    on[[int(one[1:]) for one in found.ids]] = True
    return on


def look(fitted: Any, kind: Kind, seed: int) -> dict[str, Any]:
    """Return p, whether a test for one look finds an effect, and whether one that is not there is stated or promised."""
    gate = check_effect(fitted)
    found = {"p": gate.p, "once": bool(gate.low > 0), "states": False, "promises": False}
    if gate.is_open and kind.null:
        outcome = rmab.data.evaluate(fitted, kind.budget, replicates=REPLICATES, seed=seed)
        for key, ask in (("states", outcome.shows), ("promises", outcome.promises)):
            found[key] = any(ask(rival) for rival in ("nothing", "rotation"))
    return found


def errors(fitted: Any, world: World) -> dict[str, float]:
    """Return by how much effects are too large, in points, against those of the same arms and states.

    average: the average effect that is stated, and whether its interval covers. own: of groups by their records, as the
    table of effects has them, evenly over groups. model: of groups by the model, over the states in which each was. chosen:
    by the model, over the calls that were made.
    """
    records, gate = Records.of(fitted), check_effect(fitted)
    real = world.gain[records.arm, records.state]
    act = records.rest(records.action, np.ones(records.arm.size, dtype=bool))
    average = gate.value - float((act**2 * real).sum() / (act**2).sum())
    visits, truth = (
        np.bincount(records.group * 3 + records.state, weights=one, minlength=3 * len(fitted.groups)).reshape(-1, 3)
        for one in (None, real)
    )
    kernels = np.asarray(fitted.kernels)
    gap = kernels[:, :, 1, -1] - kernels[:, :, 0, -1] - truth / np.maximum(visits, 1)
    effects = rmab.data.estimate_effects(fitted, replicates=40)
    own = np.array([one.value for one in effects]) - truth.sum(axis=1) / visits.sum(axis=1)
    calls = fitted.counts.sum(axis=3)[:, :, 1]
    return {
        "average": 100 * average,
        "covers": bool(abs(average) <= (gate.high - gate.low) / 2),
        "own": float(100 * np.nanmean(own)),
        "model": float(100 * ((visits * gap).sum(axis=1) / visits.sum(axis=1)).mean()),
        "chosen": float(100 * (calls * gap).sum() / calls.sum()),
    }


def measured(log: Log, truth: np.ndarray, kind: Kind) -> dict[str, Any]:
    """Return whether some look of the measurement missed the truth, or saw what is not there, and its error at the end."""
    found = rmab.data.measure(log, reward={"engaged": 1})
    if not found.periods:
        return {"missed": None, "shown": None, "error": None}
    at = [int(one) - kind.before - 1 for one in found.periods]
    total, told = np.cumsum(truth)[at], found.enough
    missed = (found.all.low > total) | (found.all.high < total)
    shown = (found.all.low > 0) | (found.all.high < 0)
    error = (found.all.total[-1] - total[-1]) / found.all.places[-1]
    return {"missed": bool((missed & told).any()), "shown": bool((shown & told).any()), "error": float(error)}


def summary(lines: list[dict[str, Any]]) -> str:
    """Return the tables in Markdown: one row for each kind."""
    by_kind = {name: [one for one in lines if one["kind"] == name] for name in KINDS}
    by_kind = {name: found for name, found in by_kind.items() if found}
    return "\n\n".join([_looks(by_kind), _estimates(by_kind), _measures(by_kind)])


def _looks(by_kind: dict[str, list[dict[str, Any]]]) -> str:
    heads = [
        "kind",
        "n",
        "our test, at any look",
        "at the last look",
        "a test for one look, at any look",
        "at the last look",
    ]
    heads += ["states a benefit at any look", "promises one"]
    rows = []
    for name, found in by_kind.items():
        opened = [[p < 0.05 for p in one["p"]] for one in found]
        cells = [name, str(len(found)), share([any(one) for one in opened]), share([one[-1] for one in opened])]
        cells += [share([any(one["once"]) for one in found]), share([one["once"][-1] for one in found])]
        told = [share([any(one[key]) for one in found]) for key in ("states", "promises")]
        rows.append([*cells, *(told if KINDS[name].null else ["", ""])])
    return tabulate(heads, rows)


def _estimates(by_kind: dict[str, list[dict[str, Any]]]) -> str:
    heads = ["kind", "n", "average effect, points", "its interval covers", "groups by their records", "groups by the model"]
    heads += ["where calls are made", "fewest calls of a group by lists", "in the whole log", f"{FEW} or fewer"]
    rows = []
    for name, found in by_kind.items():
        fewest = [np.add(one["calls"], one["habit"]).min() for one in found]
        cells = [name, str(len(found)), mean([one["average"] for one in found]), share([one["covers"] for one in found])]
        cells += [mean([one[key] for one in found]) for key in ("own", "model", "chosen")]
        cells += [f"{min(min(one['calls']) for one in found):.0f}", f"{min(fewest):.0f}"]
        rows.append([*cells, share([one <= FEW for one in fewest])])
    return tabulate(heads, rows)


def _measures(by_kind: dict[str, list[dict[str, Any]]]) -> str:
    heads = ["kind", "n", "some look misses the truth", "some look shows an effect", "error a place at the end, points"]
    rows = []
    for name, found in by_kind.items():
        drawn = [one for one in found if one["missed"] is not None]
        cells = [name, str(len(drawn)), *(share([one[key] for one in drawn]) for key in ("missed", "shown"))]
        rows.append([*cells, mean([100 * one["error"] for one in drawn])])
    return tabulate(heads, rows)


if __name__ == "__main__":
    repeat(parse(__doc__, KINDS, 200).parse_args(), repetition, summary)
