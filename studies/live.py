"""A simulated programme of two years, whose truth is known: what it brings, what it promises, and what it shows.

    python studies/live.py [--arms 5000] [--weeks 104] [--seed 0] [--engine mean] [--out results] [--picture live.png]

Weekly calls to 5,000 people in eight groups. 25 join and 25 leave every week. Of the reports 15% never come, 10% come a
week late, and 5% are wrong and corrected two weeks later. A call reaches 67% of those on the list. The budget of 200 calls
is halved in week 61. In week 81 the response to calls changes: groups that gained most gain least. Nurses replace five of
the list every week by people whom they like, a trait that nobody records and that makes calls less useful.

Beside it the same people, with the same random numbers, under rotation, under an oracle that knows the kernels, and without
calls.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import rmab
from rmab.common import FloatArray
from rmab.live.periods import Rhythm
from rmab.live.planning import Model, plan_ahead

STATES = ["lapsed", "wavering", "engaged"]
GROUPS = 8
WORTH = np.array([0.0, 0.0, 1.0])
REACH, MISSING, LATE, WRONG, TURNOVER, FAVOURS = 0.67, 0.15, 0.10, 0.05, 25, 5
HALVED, CHANGED, FLOOR = 60, 80, 90
PARTS = ((0, 30), (30, HALVED), (HALVED, CHANGED), (CHANGED, 10**6))  # weeks that are told of one by one


class World:
    """People: group, a hidden trait, state, and the uniform numbers that decide what becomes of them."""

    def __init__(self, arms: int, weeks: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.whole = arms + TURNOVER * weeks
        self.group = rng.integers(GROUPS, size=self.whole)
        self.trait = rng.random(self.whole)
        self.start = rng.choice(3, size=self.whole, p=[0.4, 0.3, 0.3])
        self.draws = rng.random((weeks, self.whole))
        self.reached = rng.random((weeks, self.whole)) < REACH
        self.first = np.concatenate([np.zeros(arms, dtype=int), np.repeat(np.arange(weeks), TURNOVER)])
        self.last = np.full(self.whole, weeks)
        for t in range(1, weeks):
            here = np.flatnonzero((self.first < t) & (self.last == weeks))
            self.last[rng.choice(here, size=TURNOVER, replace=False)] = t
        self.base = rng.dirichlet([6, 3, 1], size=(GROUPS, 1)).repeat(3, axis=1)
        self.base = 0.4 * self.base + 0.6 * np.array([[0.8, 0.17, 0.03], [0.35, 0.5, 0.15], [0.04, 0.16, 0.8]])
        self.gain = np.linspace(0.05, 0.5, GROUPS)

    def kernels(self, t: int) -> FloatArray:
        """(G, S, 2, S) the kernels of groups in a week, on average over the trait."""
        gain = (self.gain if t < CHANGED else self.gain[::-1])[:, np.newaxis, np.newaxis]
        moved = (1 - gain) * self.base + gain * np.array([0.05, 0.25, 0.7])
        return np.stack([self.base, moved], axis=2)

    def rows(self, t: int, state: Any, acted: Any) -> FloatArray:
        """(N, S) where everybody goes; calls are less useful to whom nurses like."""
        own = self.kernels(t)[self.group, state]
        part = acted * (1.3 - 0.6 * self.trait)
        return np.asarray(own[:, 0] + part[:, np.newaxis] * (own[:, 1] - own[:, 0]))

    def step(self, t: int, state: Any, listed: Any) -> tuple[Any, Any]:
        """Return the next states, and who was reached."""
        acted = listed & self.reached[t]
        cumulative = np.cumsum(self.rows(t, state, acted), axis=1)
        return np.minimum((self.draws[t][:, np.newaxis] > cumulative).sum(axis=1), 2), acted

    def here(self, t: int) -> Any:
        """(N,) who takes part in a week."""
        return (self.first <= t) & (t < self.last)


def budget(t: int, arms: int) -> int:
    """Return the calls of a week."""
    return arms // 25 if t < HALVED else arms // 50


def play(world: World, arms: int, weeks: int, rule: str) -> tuple[FloatArray, FloatArray]:
    """Two (T,): people engaged at the end of a week under a rule, 'nothing', 'rotation' or 'oracle', and its swing."""
    state, waited, total, shares = world.start.copy(), np.zeros(world.whole), [], []
    for t in range(weeks):
        here, listed = np.flatnonzero(world.here(t)), np.zeros(world.whole, dtype=bool)
        if rule == "rotation":
            listed[here[np.argsort(-waited[here], kind="stable")[: budget(t, arms)]]] = True
        elif rule == "oracle":
            kernels = world.kernels(t)
            shrunk = type("Rows", (), {"kernels": kernels})()
            model = Model(shrunk, np.ones((GROUPS, 3, 2, 3)), np.full(GROUPS, REACH), kernels @ WORTH)
            ahead = np.array([budget(k, arms) for k in range(t, t + 12)], dtype=float)
            plan = plan_ahead(model, world.group[here], np.eye(3)[state[here]], ahead)
            index = plan.index[world.group[here], state[here]]
            listed[here[np.argsort(-index, kind="stable")[: budget(t, arms)]]] = True
        waited = np.where(listed, 0, waited + 1)
        shares.append(share_of(world, listed))
        state, _ = world.step(t, state, listed)
        total.append(float(WORTH[state[here]].sum()))
    return np.array(total), swing_of(shares)


def share_of(world: World, listed: Any) -> FloatArray:
    """(G,) the share of the places that each group has."""
    counts = np.bincount(world.group[listed], minlength=GROUPS)
    return np.asarray(counts / max(counts.sum(), 1))


def swing_of(shares: list[FloatArray]) -> FloatArray:
    """(T - 1,) the part of the places that go to another group than the week before."""
    return np.asarray(np.abs(np.diff(np.array(shares), axis=0)).sum(axis=1) / 2)


class Live:
    """The programme: what it decides, what is reported to it, and what really happens."""

    def __init__(self, store: Any, world: World, arms: int, weeks: int, seed: int, engine: str = "sampled") -> None:
        self.world, self.arms, self.rng = world, arms, np.random.default_rng((seed, 1))
        self.rhythm, self.monday = Rhythm.of("week"), Rhythm.of("week").number("2025-W01")
        self.p = store.create(
            "mothers", states=STATES, budget=budget(0, arms), reward={"engaged": 1}, random_share=0.1, control=0.02,
            floor=FLOOR, seed=seed, action="call", engine=engine,
        )  # fmt: skip
        self.ids = [f"m{k:05d}" for k in range(world.whole)]
        self.p.set_budget({self.label(t): budget(t, arms) for t in range(HALVED, max(weeks, HALVED) + 12)})
        self.state, self.pending, self.truth, self.total = world.start.copy(), [], [], []
        self.longest, self.since, self.shares = 0, np.full(world.whole, -1), []

    def label(self, t: int) -> str:
        """Return the name of a week."""
        return self.rhythm.label(self.monday + t)

    def week(self, t: int) -> None:
        """Ask, let nurses override, call, and report."""
        world, p, rng = self.world, self.p, self.rng
        new = np.flatnonzero((world.first == t) & (t > 0)) if t else np.flatnonzero(world.first == 0)
        names = [f"group {g}" for g in world.group[new]]
        p.join([self.ids[n] for n in new], group=names, state=[STATES[s] for s in self.state[new]], period=self.label(t))
        gone = np.flatnonzero((world.last == t) & (world.first < t))
        if gone.size:
            p.leave([self.ids[n] for n in gone], period=self.label(t), reason="left")
        for when, rows, kind in [one for one in self.pending if one[0] <= t]:
            week = self.label(when - (1 if kind == "late" else 2))
            p.correct(week, rows, reason="typing error") if kind == "wrong" else p.tell(week, rows)
        self.pending = [one for one in self.pending if one[0] > t]
        found = p.ask(self.label(t))
        place = {one: n for n, one in enumerate(self.ids)}
        self.measure(t, place)
        on = [place[one] for one in found.ids]
        liked = np.flatnonzero(world.here(t) & ~np.isin(np.arange(world.whole), on))
        liked = liked[np.argsort(-world.trait[liked])][rng.choice(100, FAVOURS, replace=False)]
        drop = [one for one, rule in zip(found.arms, found.rule, strict=True) if rule == "index"][:FAVOURS]
        if drop:
            p.override(
                self.label(t), add=[self.ids[n] for n in liked[: len(drop)]], remove=drop, reason="known to the nurse"
            )
        listed = np.zeros(world.whole, dtype=bool)
        listed[[place[one] for one in p.decision(self.label(t)).ids]] = True
        self.since[listed] = t
        here = np.flatnonzero(world.here(t))
        self.longest = max(self.longest, int((t - np.maximum(self.since, world.first - 1))[here].max()))
        self.shares.append(share_of(world, listed))
        self.state, acted = world.step(t, self.state, listed)
        self.total.append(float(WORTH[self.state[here]].sum()))
        self.report(t, here[here != -1], listed, acted)

    def measure(self, t: int, place: dict[str, int]) -> None:
        """Note what the places by index add this week, in truth: on average over all that the index chose."""
        with self.p.ledger() as ledger:
            record = ledger.decisions[self.monday + t]
            chosen = [place[ledger.ids[n]] for n, rule in record.planned.items() if rule == "index"]
            both = np.array([*chosen, *(place[ledger.ids[n]] for n in record.left_out)], dtype=int)
        none = np.zeros(self.world.whole)
        rows = [self.world.rows(t, self.state, none + q) @ WORTH for q in (0.0, REACH)]
        self.truth.append(float(len(chosen) * (rows[1] - rows[0])[both].mean()) if both.size else 0.0)

    def report(self, t: int, here: Any, listed: Any, acted: Any) -> None:
        """Tell most of it now, some of it late, some of it wrongly."""
        fate = self.rng.random(here.size)
        now: list[dict[str, Any]] = []
        late: list[dict[str, Any]] = []
        fixed: list[dict[str, Any]] = []
        for n, chance in zip(here.tolist(), fate.tolist(), strict=True):
            row = {"arm": self.ids[n], "state": STATES[self.state[n]], "executed": bool(acted[n]) if listed[n] else None}
            if chance < MISSING:
                continue
            if chance < MISSING + LATE:
                late.append(row)
            elif chance < MISSING + LATE + WRONG:
                now.append({**row, "state": STATES[(self.state[n] + 1) % 3]})
                fixed.append({"arm": row["arm"], "state": row["state"]})
            else:
                now.append(row)
        self.p.tell(self.label(t), now)
        self.pending += [(t + 1, late, "late"), (t + 2, fixed, "wrong")]


def simulate(arms: int, weeks: int, seed: int, engine: str = "sampled") -> dict[str, Any]:
    """Play two years, and return what happened as plain numbers."""
    world = World(arms, weeks, seed)
    with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/x.db") as store:
        live = Live(store, world, arms, weeks, seed, engine)
        for t in range(weeks):
            live.week(t)
        found, events = live.p.benefit(), live.p.verify()
    others = {rule: play(world, arms, weeks, rule) for rule in ("nothing", "rotation", "oracle")}
    swings = {"programme": swing_of(live.shares), "rotation": others["rotation"][1], "oracle": others["oracle"][1]}
    facts = {
        "arms": arms,
        "weeks": weeks,
        "seed": seed,
        "engine": engine,
        "events": events,
        "longest wait": live.longest,
        "floor": FLOOR,
    }
    curves = ("shown", "low", "high", "promised", "promised_low", "promised_high")
    return {
        **facts,
        "engaged": {"programme": live.total, **{rule: total.tolist() for rule, (total, _) in others.items()}},
        "truth": np.cumsum([live.truth[live.rhythm.number(one) - live.monday] for one in found.periods]).tolist(),
        "periods": list(found.periods),
        **{name: getattr(found, name).tolist() for name in curves},
        "swing": {name: one.tolist() for name, one in swings.items()},
    }


def show(found: dict[str, Any]) -> str:
    """Return what happened in a few lines."""
    total = {name: float(np.sum(one)) for name, one in found["engaged"].items()}
    gain = {name: total[name] - total["nothing"] for name in total}
    lines = [
        f"{found['arms']:,} people, {found['weeks']} weeks, seed {found['seed']}, engine {found['engine']}.",
        f"{found['events']} events verify.",
    ]
    sums = ", ".join(f"{name} {gain[name]:,.0f}" for name in ("programme", "rotation", "oracle"))
    lines.append(f"Weeks engaged beyond those without calls: {sums}.")
    for first, last in [(a, min(b, found["weeks"])) for a, b in PARTS if a < found["weeks"]]:
        own, rotation, oracle = (
            float(np.subtract(found["engaged"][name], found["engaged"]["nothing"])[first:last].sum())
            for name in ("programme", "rotation", "oracle")
        )
        swing = {name: np.mean(one[max(first, 10) - 1 : last - 1]) for name, one in found["swing"].items()}
        moved = ", ".join(f"{name} {value:.0%}" for name, value in swing.items())
        gained = f"{own / oracle:.0%} of the oracle's, rotation {rotation / oracle:.0%}"
        lines.append(f"  weeks {first + 1} to {last}: {gained}; places that change group from week to week: {moved}")
    lines.append(f"Longest wait {found['longest wait']} weeks (floor {found['floor']}).")
    inside = [low <= true <= high for low, true, high in zip(found["low"], found["truth"], found["high"], strict=True)]
    lines.append(f"The interval holds the truth in {sum(inside)} of {len(inside)} weeks.")
    for k in range(12, len(inside), 13):
        form = [f"{found[name][k]:,.0f}" for name in ("promised", "shown", "low", "high", "truth")]
        lines.append(
            f"  {found['periods'][k]}: promised {form[0]}, shown {form[1]} ({form[2]} to {form[3]}), truth {form[4]}"
        )
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> None:
    """Draw the picture of the docs."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, style in (("oracle", ":"), ("programme", "-"), ("rotation", "--")):
        left.plot(np.cumsum(np.subtract(found["engaged"][name], found["engaged"]["nothing"])), style, label=name)
    for week, what in ((HALVED, "budget halved"), (CHANGED, "response changes")):
        if week < found["weeks"]:
            left.axvline(week, color="0.7", lw=1)
            left.text(week + 1, left.get_ylim()[1] * 0.02, what, rotation=90, fontsize=8, color="0.4")
    left.set(xlabel="week", ylabel="weeks engaged beyond those without calls", title="what it brings")
    left.legend(frameon=False)
    right.fill_between(
        range(len(found["low"])), found["low"], found["high"], alpha=0.25, label="shown, 95% at all weeks at once"
    )
    right.plot(found["shown"], label="shown, without a model")
    right.plot(found["promised"], "--", label="promised by the model")
    right.plot(found["truth"], "k:", label="truth")
    right.set(xlabel="week", ylabel="weeks engaged, in the week of the call", title="what the places by index brought")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Play, keep the numbers, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("arms", 5000), ("weeks", 104), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--engine", default="sampled")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    found = simulate(given.arms, given.weeks, given.seed, given.engine)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / f"live-{given.engine}-{given.seed}.json").write_text(json.dumps(found))
    if given.picture:
        draw(found, given.picture)
    print(show(found))  # noqa: T201


if __name__ == "__main__":
    main()
