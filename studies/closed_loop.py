"""Does a programme that learns from its own lists stay honest? Weekly lists in made-up worlds of which the truth is known:

    python studies/closed_loop.py --out out/closed-loop --repetitions 200
    python studies/closed_loop.py --out out/closed-loop --kinds null,null-small --first 200

A repetition draws a world and a few weeks in which calls were made by habit. Then, week by week, the log so far is fitted, a
list is made with a random share, its calls are played in the true world, and the records are appended. At every look the
effect of a call is tested; where the test finds one, the plan is evaluated as a user would. One line of JSON for
each repetition is stored in the folder, so the same command resumes. At the end the table of docs/closed_loop.md is printed.

An arm of group g moves by a multinomial logit: P(y | s) is proportional to exp(L[s, y] + y (b_g + a e_g)).
"""

import argparse
import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from rmab.estimation.gate import check_effect
from rmab.logs.log import Log
from rmab.logs.periods import Periods

STATES = ("lapsed", "wavering", "engaged")
REPLICATES = 60
FEW = 3  # calls with which a group counts as starved


@dataclass(frozen=True)
class Kind:
    """A kind of programme; spreads are standard deviations on the scale of logits."""

    arms: int = 200
    groups: int = 6
    budget: int = 10
    share: float = 0.2  # of the places that change hands at random
    before: int = 8  # weeks of calls by habit, before the first list
    weeks: int = 26  # lists
    spread: float = 0.5  # of baselines between groups
    effect: float = 0.0
    effect_spread: float = 0.0  # between groups
    missing: float = 0.05  # records


KINDS: dict[str, Kind] = {
    "null": Kind(),
    "null-small": Kind(arms=60, groups=3, budget=4, share=0.25),
    "null-large": Kind(arms=600, groups=20, budget=30),
    "null-no-share": Kind(share=0.0),
    "effect": Kind(effect=0.7),
    "effects-differ": Kind(effect=0.4, effect_spread=0.6),
    "effects-differ-no-share": Kind(effect=0.4, effect_spread=0.6, share=0.0),
    "effect-small": Kind(arms=60, groups=3, budget=4, share=0.25, effect=0.7),
    "effects-differ-new": Kind(before=2, effect=0.4, effect_spread=0.6),
    "effects-differ-new-no-share": Kind(before=2, effect=0.4, effect_spread=0.6, share=0.0),
    "effect-large": Kind(arms=600, groups=20, budget=30, effect=0.5, effect_spread=0.4),
}


class World:
    """Groups with a baseline and an effect each, and kernels (G, S, 2, S)."""

    def __init__(self, kind: Kind, rng: np.random.Generator) -> None:
        self.kind, self.group = kind, rng.permutation(np.arange(kind.arms) % kind.groups)
        base = rng.normal(0, kind.spread, kind.groups)
        effect = kind.effect + rng.normal(0, kind.effect_spread, kind.groups)
        score, far = np.arange(3), abs(np.subtract.outer(np.arange(3), np.arange(3)))
        shift = np.stack([base, base + effect], axis=1)  # (G, 2)
        rows = np.exp((-1.3 * far - 0.25 * score)[np.newaxis, :, np.newaxis] + shift[:, np.newaxis, :, np.newaxis] * score)
        self.kernels = rows / rows.sum(axis=-1, keepdims=True)

    def step(self, states: np.ndarray, calls: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the next states (N,)."""
        rows = self.kernels[self.group, states, calls.astype(np.int64)]
        return np.asarray((rng.random(states.size)[:, np.newaxis] >= rows.cumsum(axis=1)[:, :-1]).sum(axis=1))

    def gains(self, states: np.ndarray) -> np.ndarray:
        """(N,) what a call adds to the chance of the best state."""
        return np.asarray(self.kernels[self.group, states, 1, -1] - self.kernels[self.group, states, 0, -1])


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
            brought = chance * (chance < 1) * seen * world.gains(states)  # on average over draws, to whom can be measured
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
        "bias": bias(fitted, world),
        "chosen_bias": bias(fitted, world, by_calls=True)[0],
        "p": [one[0] for one in looks],
        "promised": [one[1] for one in looks],
        **measured(log, truth, kind),
    }


def _listed(found: Any, arms: int) -> np.ndarray:
    on = np.zeros(arms, dtype=bool)
    on[[int(one[1:]) for one in found.ids]] = True
    return on


def look(fitted: Any, kind: Kind, seed: int) -> tuple[float, bool]:
    """Return the p of no effect, and whether an evaluation promises a benefit: it is asked only where it may."""
    gate = check_effect(fitted)
    if not gate.is_open or kind.effect or kind.effect_spread:
        return gate.p, False
    found = rmab.data.evaluate(fitted, kind.budget, replicates=REPLICATES, seed=seed)
    return gate.p, any(found.promises(rival) for rival in ("nothing", "rotation"))


def bias(fitted: Any, world: World, *, by_calls: bool = False) -> list[float]:
    """Return by how much the model's effect is too large, in points: (G,) over the states in which each group was.

    by_calls: one number, over all groups and states in which calls were made.
    """
    order = [fitted.groups.index(f"s{g:02d}") for g in range(world.kind.groups)]
    visits = fitted.counts.sum(axis=3)[order].astype(np.float64)  # (G, S, 2)
    found, real = (one[:, :, 1, -1] - one[:, :, 0, -1] for one in (np.asarray(fitted.kernels)[order], world.kernels))
    if by_calls:
        return [float(100 * (visits[:, :, 1] * (found - real)).sum() / visits[:, :, 1].sum())]
    weight = visits.sum(axis=2) / visits.sum(axis=(1, 2))[:, np.newaxis]
    return [float(one) for one in 100 * (weight * (found - real)).sum(axis=1)]


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
    """Return the table in Markdown: one row for each kind."""
    heads = ["kind", "n", "bias where calls are made, points", "in all groups and states"]
    heads += ["fewest calls of a group by lists", "three or fewer", "fewest in the whole log", "three or fewer"]
    heads += ["test finds an effect, last look", "at any look", "promises at any look"]
    heads += ["measure: some look misses", "shows an effect", "error a place, points"]
    rows = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, kind in KINDS.items():
        found = [one for one in lines if one["kind"] == name]
        if not found:
            continue
        null = not (kind.effect or kind.effect_spread)
        open_ = [[p < 0.05 for p in one["p"]] for one in found]
        drawn = [one for one in found if one["missed"] is not None]
        cells = [name, str(len(found)), _mean([one["chosen_bias"] for one in found])]
        cells.append(_mean([np.mean(one["bias"]) for one in found]))
        every = [np.add(one["calls"], one["habit"]).min() for one in found]
        cells += [f"{min(min(one['calls']) for one in found):.0f}", _share([min(one["calls"]) <= FEW for one in found])]
        cells += [f"{min(every):.0f}", _share([one <= FEW for one in every])]
        cells += [_share([one[-1] for one in open_]), _share([any(one) for one in open_])]
        cells.append(_share([any(one["promised"]) for one in found]) if null else "")
        cells += [_share([one[key] for one in drawn]) if drawn else "" for key in ("missed", "shown")]
        cells.append(_mean([100 * one["error"] for one in drawn]) if drawn else "")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _mean(values: list[Any]) -> str:
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):+.2f} ± {half:.2f}"


def _share(hits: list[bool]) -> str:
    """Return '8 of 200 (2 to 8%)', by the interval of Wilson (1927)."""
    n, k, z = len(hits), sum(hits), 1.96
    centre, half = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return f"{k} of {n} ({100 * max(centre - half, 0):.0f} to {100 * min(centre + half, 1):.0f}%)"


def main() -> None:
    """Resume the study, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition")
    parser.add_argument("--kinds", default=",".join(KINDS), help="names, with commas")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "repetitions.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    done = {(one["kind"], one["repetition"]) for one in lines}
    for number in range(options.first, options.first + options.repetitions):
        for name in options.kinds.split(","):
            if (name, number) not in done:
                lines.append(repetition(name, number))
                with results.open("a") as stream:
                    stream.write(json.dumps(lines[-1]) + "\n")
    print(summary(lines))  # noqa: T201


if __name__ == "__main__":
    main()
