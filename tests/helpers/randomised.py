"""Programmes with lists that are drawn, and a known truth: arms have a hidden trait, by which nurses chose before."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common import FloatArray
from rmab.logs.log import Log
from rmab.logs.periods import Periods


def make_log(states: FloatArray, called: FloatArray, listed: FloatArray, chance: FloatArray) -> Log:
    """Return the log of tables (N, T): -1 is not known."""
    count, length = states.shape
    arm, period = (one.reshape(-1) for one in np.indices(states.shape))
    state, action, on = (one.reshape(-1).astype(np.int64) for one in (states, called, listed))
    return Log(
        arms=tuple(str(k) for k in range(count)),
        state_names=("bad", "good"),
        periods=Periods("number", 1, 1, length, "week"),
        arm_of=arm,
        period=period,
        state=state,
        action=action,
        reward=None,
        factors={},
        factor_of=np.zeros((count, 0), dtype=np.int64),
        ordered=False,
        word="call",
        notes=(),
        chance=chance.reshape(-1),
        listed=on,
    )


@dataclass(frozen=True)
class World:
    """A programme: arms with a hidden trait, of whom nurses chose before the lists began; two states, 1 is good."""

    effect: float = 0.0
    arms: int = 120
    places: int = 20
    swapped: int = 4
    level: float = 0.35  # of the good state, from the bad one
    before: int = 8  # weeks of calls by nurses, who go by the trait
    weeks: int = 26
    missing: float = 0.1
    late: bool = False  # the effect begins after half of the weeks

    def play(self, rng: np.random.Generator) -> tuple[Log, FloatArray]:
        """Return a log, and (weeks,) what each list brought to those whose outcome is recorded."""
        count, length = self.arms, self.before + self.weeks
        trait, state = rng.random(count), rng.integers(0, 2, count)
        shape = (count, length + 1)
        states, called, listed, chance = (np.full(shape, -1.0) for _ in range(4))
        chance[:], truth, seen = np.nan, np.zeros(self.weeks), np.ones(count, dtype=bool)
        for t in range(length):
            base = np.clip(self.level * (0.4 + 1.2 * trait) + 0.4 * state, 0.0, 1.0)
            gain = np.clip(base + self.effect * (1 - state) * (1.2 - 0.4 * trait), 0.0, 1.0) - base
            if self.late and t < self.before + self.weeks // 2:
                gain = 0.0 * gain
            p = np.clip(0.3 * trait, 0, 1)  # the healthy ones were called
            on = rng.random(count) < p
            if t >= self.before:
                p, on = self.draw(state + 0.01 * trait + 0.3 * rng.random(count), rng)
                chance[:, t], listed[:, t] = p, on
            called[:, t] = on & (rng.random(count) < 0.8)  # some are not reached: arms count as decided
            states[:, t] = np.where(seen, state, -1)
            state = (rng.random(count) < base + 0.8 * gain * on).astype(int)
            seen = rng.random(count) >= self.missing
            if t >= self.before:
                inside = (p > 0) & (p < 1) & seen
                truth[t - self.before] = (p * 0.8 * gain)[inside].sum()
        states[:, -1] = np.where(seen, state, -1)
        return make_log(states, called, listed, chance), np.cumsum(truth)

    def draw(self, need: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, Any]:
        """Return chances, and who is on the list: the neediest, of whom some change places with others at random."""
        line = rng.permuted(np.argsort(need)[: self.places])
        others = rng.permuted(np.argsort(need)[self.places :])
        chance = np.full(self.arms, self.swapped / others.size)
        chance[line] = 1 - self.swapped / self.places
        on = np.zeros(self.arms, dtype=bool)
        on[line[self.swapped :]] = on[others[: self.swapped]] = True
        return chance, on
