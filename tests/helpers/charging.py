"""Charging spots in plain Python, written down once more: rows as dictionaries from state to probability."""

from collections.abc import Sequence
from fractions import Fraction

State = tuple[int, int]


def step(state: State, action: int, arrival: float, jobs: Sequence[Sequence[float]]) -> dict[State, float]:
    """Return where a spot goes: `jobs[d - 1][l - 1]` is the chance that a vehicle stays d slots and needs l units."""
    slots, left = state
    if slots >= 2:
        return {(slots - 1, left - 1 if action and left else left): 1.0}
    row = {(0, 0): 1.0 - arrival}
    for d, needs in enumerate(jobs, start=1):
        for load, share in enumerate(needs, start=1):
            if share:
                row[d, load] = arrival * share
    return row


def pays(state: State, action: int, pay: float, penalty: float, price: float = 0.0) -> float:
    """Return what a step earns."""
    slots, left = state
    if left == 0:
        return 0.0
    unmet = left - action if slots == 1 else 0
    return action * (pay - price) - penalty * unmet * unmet


def uniform(slots: int, load: int) -> list[list[float]]:
    """Return the job mix in which all stays and loads are as likely."""
    return [[float(Fraction(1, slots * load))] * load for _ in range(slots)]


def outer(dwell: Sequence[float], load: Sequence[float]) -> list[list[float]]:
    """Return the job mix of independent stays and loads."""
    return [[one * other for other in load] for one in dwell]


def named(name: str) -> State:
    """Return the state that a name means."""
    if name == "empty":
        return 0, 0
    slots, _, left = name.partition(",")
    return int(slots), int(left)
