"""Do promises come true? Made-up programmes of many kinds, of which the truth is known:

    python studies/effects.py --out out/effects --repetitions 40
    python studies/effects.py --out out/effects-small --repetitions 4 --small
    python studies/effects.py --out out/effects --kinds null-50-groups,selection-trait

Every repetition draws a programme and its log, fits it, evaluates the plan with its intervals and checks, and then plays the
same plan, rotation and nothing in the true world. One line of JSON each is stored in the folder, so the same command
resumes. At the end a table is printed, as it stands in docs/effects.md.

An arm moves by a multinomial logit: P(y | s) is proportional to exp(L[s, y] + y (b + a e)), with its baseline b and its
effect e, which groups, arms, weeks, earlier calls and unrecorded signs change, as the kind says.
"""

import math
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from simulated import hurry, parse, repeat, share, tabulate

import rmab
from rmab.estimation.values import World

hurry()
HORIZON, EPISODES, REPLICATES = 26, 40, 60
NAMES = ("s0", "s1", "s2", "s3", "s4")
AGAINST = ("rotation", "nothing")


@dataclass(frozen=True)
class Kind:
    """A kind of programme. Spreads are standard deviations on the scale of logits.

    holds: whether the assumptions of the model hold, so that intervals must cover the truth.
    """

    arms: int = 300
    states: int = 3
    weeks: int = 30
    rate: float = 0.08  # of calls
    budget: int = 15
    levels: tuple[int, ...] = (6,)  # of the columns of groups
    spread: float = 0.0  # of baselines between levels
    effect: float = 0.0
    effect_spread: float = 0.0  # between groups
    arm_spread: float = 0.0  # of baselines between arms of a group
    arm_effect: float = 0.0  # of effects between arms of a group
    push: bool = False  # a call lifts by one state with probability `effect`, which is no logit
    trait: float = 0.0  # how much calls go to arms with low baselines
    sign: float = 0.0  # how much an unrecorded sign of the week moves outcomes
    urge: float = -2.0  # how much more calls go to arms with a good sign
    wear: float = 0.0  # how much of the effect an earlier call takes, for a while
    tire: float = 1.0  # what a call leaves of the effect of all later ones on the same arm
    fade: float = 1.0  # part of the effect that is left at the end of the log
    trend: float = 0.0  # of baselines over the log
    season: float = 0.0  # of baselines, a wave of 13 weeks
    leaving: float = 0.0  # chance a week in the worst state; a third of it in others
    missing: tuple[float, float] = (0.03, 0.03)  # of the next record without and with a call
    unseen: float = 0.0  # records in the worst state that are missing
    answered: tuple[float, ...] = ()  # of the next record after a call, by the state that it would show
    assigned: bool = False  # half of the arms, drawn at random, are never called
    reach: float = 1.0  # of decided calls
    reached_only: bool = False  # the log has the calls that reached somebody
    noise: float = 0.0  # rewards are a column, with this noise
    uneven: float = 0.0  # sizes of levels: the k-th has k to the power of minus this
    huge: bool = False  # the first level has two thirds of the arms
    late: bool = False  # arms join at any time
    lapse: float = 0.0  # the best state is rare
    hold: float = 1.0  # of the chance of leaving after a call
    cycle: float = 0.0  # of baselines in every fourth week, in which most calls are made
    campaign: float = 0.0  # of baselines of a group in some weeks, in which it gets most of its calls
    tell: bool = False  # the log says whom calls reached
    options: dict[str, Any] = field(default_factory=dict)  # of the fit
    lapsed: float = 0.0  # how much more calls go to arms whose state has just become worse
    lasting: float = 0.0  # how long a sign lasts: its correlation from week to week
    worst: bool = False  # calls go to the worst state alone
    level_effect: float = 0.0  # by how much more arms of low baselines gain, as a part of the effect, in logarithms
    null: bool = False
    holds: bool = True


KINDS: dict[str, Kind] = {
    "null-alike": Kind(null=True),
    "null-12-groups": Kind(levels=(12,), spread=0.8, null=True),
    "null-50-groups": Kind(arms=500, budget=25, levels=(50,), spread=0.8, null=True),
    "null-crossed": Kind(levels=(4, 6), spread=0.6, null=True),
    "null-small-groups": Kind(arms=150, budget=8, levels=(30,), spread=0.8, null=True),
    "null-many-calls": Kind(levels=(12,), spread=0.8, rate=0.7, null=True),
    "null-arms-differ": Kind(arm_spread=0.6, spread=0.4, null=True),
    "null-trend": Kind(levels=(12,), spread=0.5, trend=1.0, null=True, holds=False),
    "null-learned-rewards": Kind(noise=2.0, spread=0.4, null=True),
    "null-clusters": Kind(arm_spread=0.5, options={"clusters": "auto"}, null=True, holds=False),
    "null-few-calls": Kind(arms=1000, weeks=8, rate=0.01, budget=30, levels=(12,), spread=0.6, null=True),
    "null-trait-selects": Kind(arm_spread=0.7, trait=1.5, null=True, holds=False),
    "null-sign-selects": Kind(sign=0.8, null=True, holds=False),
    "null-sign-flatters": Kind(sign=0.8, urge=2.0, null=True, holds=False),
    "alike": Kind(effect=0.7),
    "12-groups": Kind(levels=(12,), spread=0.8, effect=0.7),
    "50-groups": Kind(arms=500, budget=25, levels=(50,), spread=0.8, effect=0.7),
    "crossed": Kind(levels=(4, 6), spread=0.6, effect=0.7, effect_spread=0.4),
    "effects-differ": Kind(levels=(8,), spread=0.4, effect=0.4, effect_spread=0.6),
    "harm-in-groups": Kind(levels=(8,), spread=0.4, effect=0.1, effect_spread=0.9),
    "push": Kind(levels=(12,), spread=0.6, effect=0.25, push=True),
    "small-groups": Kind(arms=150, budget=8, levels=(30,), spread=0.8, effect=0.8),
    "few-calls": Kind(arms=1000, weeks=8, rate=0.01, budget=30, levels=(12,), spread=0.6, effect=0.8),
    "five-states": Kind(arms=1200, states=5, weeks=12, budget=60, levels=(8,), spread=0.4, effect=0.5, effect_spread=0.2),
    "arms-differ": Kind(arm_spread=0.6, spread=0.4, effect=0.7),
    "effects-of-arms-differ": Kind(arm_effect=0.6, spread=0.4, effect=0.6),
    "trait-selects": Kind(arm_spread=0.7, trait=1.5, effect=0.5, holds=False),
    "sign-selects": Kind(sign=0.8, effect=0.5, holds=False),
    "wears-off": Kind(effect=1.0, wear=0.9, rate=0.15, holds=False),
    "tires": Kind(effect=1.2, tire=0.5, spread=0.4, holds=False),
    "tires-few-calls": Kind(effect=1.2, tire=0.5, spread=0.4, rate=0.04, weeks=20, holds=False),
    "fades": Kind(effect=1.2, fade=0.1, rate=0.1, holds=False),
    "trend": Kind(levels=(12,), spread=0.5, effect=0.7, trend=1.0, holds=False),
    "null-cycle": Kind(spread=0.4, cycle=0.8, null=True, holds=False),
    "cycle": Kind(spread=0.4, cycle=0.8, effect=0.7, holds=False),
    "null-campaigns": Kind(spread=0.4, campaign=0.8, null=True, holds=False),
    "leaving": Kind(effect=0.7, spread=0.4, leaving=0.04),
    "leaving-by-action": Kind(effect=0.5, spread=0.4, leaving=0.06, hold=0.3, rate=0.12),
    "null-leaving": Kind(spread=0.4, leaving=0.06, null=True),
    "clusters": Kind(arm_spread=0.5, effect=0.7, options={"clusters": "auto"}, holds=False),
    "missing-third": Kind(effect=0.7, spread=0.4, missing=(0.33, 0.33)),
    "randomised": Kind(effect=0.7, spread=0.6, options={"randomised": True}),
    "null-randomised": Kind(spread=0.6, options={"randomised": True}, null=True),
    "null-effects-vary": Kind(spread=0.4, arm_spread=0.3, weeks=12, null=True),
    "missing-by-action": Kind(effect=0.7, spread=0.4, missing=(0.4, 0.02)),
    "lapsed-unseen": Kind(effect=0.7, spread=0.4, unseen=0.5),
    "answered-if-good": Kind(effect=0.7, spread=0.4, answered=(0.45, 0.2, 0.02), holds=False),
    "null-answered-if-good": Kind(spread=0.4, answered=(0.45, 0.2, 0.02), null=True, holds=False),
    "arms-assigned": Kind(effect=0.7, spread=0.4, rate=0.16, assigned=True),
    "null-arms-assigned": Kind(spread=0.4, rate=0.16, assigned=True, null=True),
    "weeks-randomised": Kind(effect=0.7, spread=0.6, rate=0.5),
    "decided-recorded": Kind(effect=0.9, spread=0.4, reach=0.5, sign=0.6, rate=0.1),
    "both-recorded": Kind(effect=0.9, spread=0.4, reach=0.5, sign=0.6, rate=0.1, tell=True),
    "reached-recorded": Kind(effect=0.9, spread=0.4, reach=0.5, sign=0.6, rate=0.1, reached_only=True, holds=False),
    "learned-rewards": Kind(effect=0.7, noise=2.0, spread=0.4),
    "one-huge-group": Kind(levels=(12,), spread=0.8, effect=0.5, huge=True),
    "joining-late": Kind(levels=(12,), spread=0.6, effect=0.7, late=True),
    "seasons": Kind(levels=(6,), spread=0.4, effect=0.7, season=0.6, holds=False),
    "null-recently-lapsed": Kind(
        arms=600, states=2, weeks=40, sign=2.0, urge=0.0, lasting=0.9, lapsed=2.5, null=True, holds=False
    ),
    "recently-lapsed": Kind(
        arms=600, states=2, weeks=40, effect=0.9, sign=2.0, urge=0.0, lasting=0.9, lapsed=2.5, holds=False
    ),
    "worst-state-only": Kind(effect=0.7, spread=0.4, worst=True, rate=0.2, holds=False),
    "arms-gain-by-level": Kind(effect=0.5, spread=0.3, arm_spread=0.7, level_effect=0.7, rate=0.12, holds=False),
    "push-noisy": Kind(arms=200, weeks=20, budget=10, levels=(20,), spread=1.0, uneven=0.5, effect=0.25, push=True),
    "rare-best-state": Kind(levels=(6,), spread=0.4, effect=0.7, lapse=1.2),
}


class Truth:
    """The true world of one programme: where arms go, whatever is done."""

    def __init__(self, kind: Kind, rng: np.random.Generator) -> None:
        self.kind, arms = kind, kind.arms
        self.forget = 0.8 if kind.tire == 1 else 1.0  # of earlier calls, a week later
        chance = [_sizes(k, kind.huge, kind.uneven) for k in kind.levels]
        self.factors = np.stack([rng.choice(k, arms, p=p) for k, p in zip(kind.levels, chance, strict=True)], axis=1)
        several = math.sqrt(len(kind.levels))
        base = [rng.normal(0, kind.spread / several, k)[self.factors[:, f]] for f, k in enumerate(kind.levels)]
        gain = [rng.normal(0, kind.effect_spread / several, k)[self.factors[:, f]] for f, k in enumerate(kind.levels)]
        self.trait = rng.normal(0, 1, arms)
        self.base = np.sum(base, axis=0) + kind.arm_spread * self.trait - kind.lapse
        self.effect = kind.effect * np.exp(-kind.level_effect * self.trait)
        self.effect = self.effect + np.sum(gain, axis=0) + kind.arm_effect * rng.normal(0, 1, arms)
        far = abs(np.subtract.outer(np.arange(kind.states), np.arange(kind.states)))
        self.logits = -1.3 * far - 0.25 * np.arange(kind.states)
        self.assigned = rng.random(arms) < 0.5 if kind.assigned else np.ones(arms, dtype=bool)
        self.campaign = np.random.default_rng(int(rng.integers(2**32))).random((kind.levels[0], 60)) < 0.2

    def step(
        self, states: np.ndarray, calls: np.ndarray, worn: np.ndarray, sign: np.ndarray, week: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the next states of (..., N) arms; calls say who was reached."""
        kind, score = self.kind, np.arange(self.kind.states)
        part = min(week / kind.weeks, 1.0)
        shift = (
            self.lift(week)
            + self.base
            + kind.trend * (part - 0.5)
            + kind.season * math.sin(2 * math.pi * week / 13)
            + kind.sign * sign
        )
        left = (1 - kind.wear * np.minimum(worn, 1.0)) * (1 + (kind.fade - 1) * part) * kind.tire**worn
        alone = _softmax(self.logits[states] + score * shift[..., np.newaxis])
        if kind.push:
            lifted = np.concatenate([0 * alone[..., :1], alone[..., :-1]], axis=-1)
            lifted[..., -1] += alone[..., -1]
            rows = np.where(calls[..., np.newaxis], alone + kind.effect * (lifted - alone), alone)
        else:
            rows = _softmax(self.logits[states] + score * (shift + calls * self.effect * left)[..., np.newaxis])
        return (rng.random(states.shape)[..., np.newaxis] >= rows.cumsum(axis=-1)[..., :-1]).sum(axis=-1)

    def lift(self, week: int) -> np.ndarray:
        """Return by how much a cycle, or a campaign in the group of an arm, lifts its baseline in a week."""
        return self.kind.cycle * (week % 4 == 0) + self.kind.campaign * self.campaign[self.factors[:, 0], week % 60]

    def signs(self, before: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the signs of a week, by those of the week before."""
        last = self.kind.lasting
        return last * before + math.sqrt(1 - last**2) * rng.normal(size=before.shape)

    def leave(self, states: np.ndarray, calls: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return who leaves after this week."""
        return rng.random(states.shape) < self.kind.leaving * np.where(states == 0, 1.0, 1 / 3) * np.where(
            calls, self.kind.hold, 1.0
        )

    def reached(self, calls: np.ndarray, sign: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return which of the decided calls reach somebody: those with a good sign more often."""
        if self.kind.reach == 1:
            return calls
        odds = math.log(self.kind.reach / (1 - self.kind.reach)) + 1.5 * sign
        return calls & (rng.random(calls.shape) < 1 / (1 + np.exp(-odds)))


def _sizes(levels: int, huge: bool, uneven: float) -> np.ndarray:
    share = np.arange(1, levels + 1) ** -uneven
    share[0] = 2 * (levels - 1) if huge else 1
    return share / share.sum()


def _softmax(logits: np.ndarray) -> np.ndarray:
    rows = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return rows / rows.sum(axis=-1, keepdims=True)


def draw_log(truth: Truth, rng: np.random.Generator) -> tuple[pa.Table, *tuple[np.ndarray, ...]]:
    """Return the log, the states of the arms in its last week, how worn they are, who has left, and their signs."""
    kind, count = truth.kind, truth.kind.arms
    states, worn, gone = rng.integers(0, kind.states, count), np.zeros(count), np.zeros(count, dtype=bool)
    joined = rng.integers(0, kind.weeks - 4, count) if kind.late else np.zeros(count, dtype=np.int64)
    sign, lost, rows = rng.normal(size=count), np.zeros(count, dtype=bool), []
    before = states
    for week in range(-10, kind.weeks):  # the first weeks let arms settle, and are not recorded
        if week >= 0:
            sign = truth.signs(sign, rng)
            urge = np.log(kind.rate / (1 - kind.rate)) - kind.trait * truth.trait
            urge = urge + (kind.urge * kind.sign * sign if kind.reach == 1 else 0.0) + 0.3 * (1 - states)
            urge = urge + 2.0 * np.minimum(truth.lift(week), 1.0)
            urge = urge + kind.lapsed * (states < before)
            calls = (rng.random(count) < 1 / (1 + np.exp(-urge))) & truth.assigned & ~gone
            calls &= (states == 0) | (not kind.worst)
            met = truth.reached(calls, sign, rng)
            shown = met if kind.reached_only else calls
            seen = (week >= joined) & ~gone & (~lost | (week == joined))
            seen &= (states > 0) | (rng.random(count) >= kind.unseen) | (week == joined)
            told = np.where(shown, "yes", "no") if week < kind.weeks - 1 else np.full(count, "")
            paid = states / (kind.states - 1) + rng.normal(0, max(kind.noise, 1e-9), count)
            answered = np.where(calls, np.where(met, "yes", "no"), "")
            rows.append((np.flatnonzero(seen), week, states.copy(), told, paid, answered))
            if week == kind.weeks - 1:
                break
            lost = rng.random(count) < np.where(shown, kind.missing[1], kind.missing[0])
            gone |= truth.leave(states, met, rng)
        else:
            met = np.zeros(count, dtype=bool)
        before, states = states, truth.step(states, met, worn, sign, week, rng)
        worn = truth.forget * worn + met
        if kind.answered and week >= 0:
            lost = np.where(shown, rng.random(count) < np.array(kind.answered)[states], lost)
    arm = np.concatenate([one[0] for one in rows])
    table: dict[str, Any] = {
        "id": [f"a{n:05d}" for n in arm],
        "week": np.concatenate([np.full(one[0].size, one[1]) for one in rows]),
    }
    table["state"] = np.array(NAMES)[np.concatenate([one[2][one[0]] for one in rows])]
    table["called"] = np.concatenate([one[3][one[0]] for one in rows])
    if kind.tell:
        table["met"] = np.concatenate([one[5][one[0]] for one in rows])
    if kind.noise:
        table["paid"] = np.concatenate([one[4][one[0]] for one in rows])
    for f in range(len(kind.levels)):
        table[f"g{f}"] = [f"g{f}-{k:02d}" for k in truth.factors[arm, f]]
    return pa.table(table), states, worn, gone, sign


def play(truth: Truth, start: tuple[np.ndarray, ...], act: Any, key: tuple[int, ...]) -> float:
    """Return what is earned by act(h, states) -> calls (E, N), on average over episodes with the same random numbers."""
    kind, rng = truth.kind, np.random.default_rng(key)
    states, worn, gone, sign = (np.broadcast_to(one, (EPISODES, kind.arms)).copy() for one in start)
    total, worth = (
        0.0,
        np.arange(kind.states) / (kind.states - 1) if kind.noise else np.arange(kind.states) == kind.states - 1,
    )
    for h in range(HORIZON):
        total += float((worth[states] * ~gone).sum()) / EPISODES
        sign = truth.signs(sign, rng)
        calls = act(h, states, gone) & ~gone
        met = truth.reached(calls, sign, np.random.default_rng((*key, h)))
        gone |= truth.leave(states, met, rng)
        states = truth.step(states, met, worn, sign, kind.weeks - 1 + h, rng)
        worn = truth.forget * worn + met
    return total


def repetition(name: str, number: int, *, replicates: int = REPLICATES, kind: Kind | None = None) -> dict[str, Any]:
    """Return what the evaluation of one programme says, and what is true."""
    kind = kind or KINDS[name]
    key = (number, zlib.crc32(name.encode()))
    rng = np.random.default_rng(key)
    truth = Truth(kind, rng)
    table, *start = draw_log(truth, rng)
    columns = {"arm": "id", "period": "week", "state": "state", "action": "called", "reward": "paid" if kind.noise else None}
    columns["reached"] = "met" if kind.tell else None
    groups = [f"g{f}" for f in range(len(kind.levels))]
    log = rmab.data.read_log(table, **columns, groups=groups, states=NAMES[: kind.states])
    reward = None if kind.noise else {NAMES[kind.states - 1]: 1}
    fitted = rmab.data.fit(log, reward=reward, **kind.options)
    found = rmab.data.evaluate(fitted, kind.budget, horizon=HORIZON, replicates=replicates, seed=number)
    verdicts = {one.name: one.verdict for one in found.checks}
    stored: dict[str, Any] = {"kind": name, "repetition": number, "verdicts": verdicts, "standing": found.standing}
    real = true_benefits(truth, fitted, start, key)
    for rival in AGAINST:
        one = found.benefits[rival]
        stored[rival] = {
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "truth": real[rival],
            "states": bool(found.shows(rival)),
            "promise": bool(found.promises(rival)),
        }
    stored["gate"] = found.gate.p
    return stored


def true_benefits(truth: Truth, fitted: Any, start: list[np.ndarray], key: tuple[int, ...]) -> dict[str, float]:
    """Return what the fitted plan really brings more than its rivals."""
    kind = truth.kind
    world = World.of(fitted, kind.budget, HORIZON)
    policy = world.policy(world.kernels(fitted, np.asarray(fitted.kernels)))
    number = np.array([int(one[1:]) for one in fitted.ids])
    table = np.full((HORIZON, kind.arms, kind.states), -np.inf)
    table[:, number] = policy.table.transpose(1, 0, 2)[..., : kind.states]
    turn = np.zeros((HORIZON, kind.arms), dtype=bool)
    turn[:, number] = world.turn.astype(bool)
    every = np.arange(kind.arms)

    def planned(h: int, states: np.ndarray, gone: np.ndarray) -> np.ndarray:
        index = np.where(gone, -np.inf, table[h, every, states])
        least = -np.partition(-index, kind.budget - 1, axis=1)[:, kind.budget - 1 : kind.budget]
        return (index >= np.maximum(least, 0.0)) & np.isfinite(index)

    plan = play(truth, tuple(start), _within(planned, kind.budget), (*key, 1))
    nothing = play(truth, tuple(start), lambda _h, states, _gone: np.zeros(states.shape, dtype=bool), (*key, 1))
    rotation = play(truth, tuple(start), lambda h, states, _gone: np.broadcast_to(turn[h], states.shape), (*key, 1))
    return {"rotation": plan - rotation, "nothing": plan - nothing}


def _within(act: Any, budget: int) -> Any:
    """Return act with ties broken, so that no more than the budget are called."""
    rng = np.random.default_rng(0)

    def bounded(h: int, states: np.ndarray, gone: np.ndarray) -> np.ndarray:
        wanted = act(h, states, gone)
        order = np.argsort(-(wanted + rng.random(wanted.shape)), axis=1)[:, :budget]
        kept = np.zeros_like(wanted)
        np.put_along_axis(kept, order, True, axis=1)
        return kept & wanted

    return bounded


def summary(lines: list[dict[str, Any]]) -> str:
    """Return the table in Markdown: one row for each kind."""
    heads = [
        "kind",
        "n",
        "covers over rotation",
        "over nothing",
        "states a benefit",
        "promises",
        "estimate / truth, rotation",
        "nothing",
        "problems",
    ]
    rows = []
    for name in KINDS:
        found = [one for one in lines if one["kind"] == name]
        if not found:
            continue
        cells = [name, str(len(found))]
        for rival in AGAINST:
            cells.append(share([one[rival]["low"] <= one[rival]["truth"] <= one[rival]["high"] for one in found]))
        cells.append(share([any(one[rival]["states"] for rival in AGAINST) for one in found]))
        cells.append(str(sum(any(one[rival]["promise"] for rival in AGAINST) for one in found)))
        for rival in AGAINST:
            cells.append(
                "{:.0f} / {:.0f}".format(*(np.mean([one[rival][key] for one in found]) for key in ("value", "truth")))
            )
        alarms = {key: sum(one["verdicts"].get(key) == "problem" for one in found) for key in found[0]["verdicts"]}
        cells.append(", ".join(f"{key} {count}" for key, count in alarms.items() if count) or "none")
        rows.append(cells)
    return tabulate(heads, rows, last="---")


def main() -> None:
    """Resume the study, and print the table."""
    parser = parse(__doc__, KINDS, 40)
    parser.add_argument("--small", action="store_true", help="half the arms, and few replicates: a trial of the program")
    options = parser.parse_args()

    def play_one(name: str, number: int) -> dict[str, Any]:
        kind = KINDS[name]
        if not options.small:
            return repetition(name, number)
        kind = replace(kind, arms=max(kind.arms // 2, 100), budget=max(kind.budget // 2, 5))
        return repetition(name, number, replicates=40, kind=kind)

    repeat(options, play_one, summary)


if __name__ == "__main__":
    main()
