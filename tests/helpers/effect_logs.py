"""Logs with a known effect, for tests of what is promised from them."""

import numpy as np

import rmab
from logs import HEADER, read, table
from rmab.data import Fit


def play(
    effect: float, *, arms: int = 150, weeks: int = 25, seed: int = 0, rate: float = 0.15, trait: float = 0.0,
    assigned: bool = False, fade: bool = False, wear: bool = False, lost: float = 0.0,
    tire: float = 1.0,
) -> Fit:  # fmt: skip
    """A log of two states in three groups that differ in level, with an effect on the chance of the better one."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(arms):
        own, state, last, left = trait * rng.normal(), int(rng.integers(2)), -99, 1.0
        chosen = rate * (2 * (n % 2 == 0) if assigned else 1) * np.exp(-8 * own)
        for week in range(weeks):
            act = int(rng.random() < min(chosen, 0.9))
            if rng.random() >= lost or not rows or rows[-1][3]:
                rows.append((f"n{n}", week, f"s{state}", act, "abc"[n % 3]))
            works = (
                effect * (0.0 if fade and week >= weeks // 2 else 1.0) * (0.0 if wear and week - last <= 4 else 1.0) * left
            )
            state = int(rng.random() < np.clip(0.2 + 0.15 * (n % 3) + 0.3 * state + works * act + own, 0.02, 0.98))
            last, left = (week, left * tire) if act else (last, left)
    return rmab.data.fit(read(table(*rows, names=f"{HEADER},group"), groups=["group"]), reward={"s1": 1})
