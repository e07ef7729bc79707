"""The tasks `deadline` and `deadline-day`: lots of charging spots, from the paper's numbers or your own.

All numbers of the case study (`rmab.tasks.deadline`) are options, and may depend on the time. The steps are cut into
`phases` equal parts; a step belongs to the part in which it begins. A slot of a vehicle's stay is one step, and charging
for a slot gives one unit. With a tariff a unit pays `pay` less the price of its energy, which is a third part of the
reward: adversaries have a factor for it, too. Classes of spots may have vehicles and pay of their own.

`deadline-day` is a day at a fast charger: 100 spots, 288 steps of five minutes, and 24 phases, the hours. A unit is what
five minutes give (at 50 kW, 4 kWh). Vehicles stay for 15 to 60 minutes, and need anything up to what their stay can give,
at most 45 minutes of charging: so a vehicle that leaves short was left waiting. They come in the morning and in the
evening; energy is cheap at night and dear in the evening, when the site may draw less.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import numpy as np

from rmab.common.arrays import FloatArray, IntArray
from rmab.common.memory import check_memory
from rmab.errors import ModelError
from rmab.model.adversaries import make_adversary
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.rewards import RewardModel
from rmab.tasks.deadline import ARRIVAL, PAY, PENALTY
from rmab.tasks.definition import Task
from rmab.tasks.options import WHOLE, Kind, file_or, flag, number, numbers, optional, tables
from rmab.tasks.spots import Spots, by_phase, kernel, names_of, range_of, reward_parts, spots_of, states_of
from rmab.tasks.tariff import DAY, read_tariff

TIMED = "a number, or one per phase"
OF_CLASS: dict[str, Kind] = {
    "arrival": numbers(TIMED, "probability that a vehicle comes to a free spot"),
    "dwell": numbers(
        "probabilities (D,), or (K, D) by phase", "of stays of 1..D slots; by default 1 to 12, all as likely", 2
    ),
    "load": numbers("probabilities (L,), or (K, L) by phase", "of needs of 1..L units; by default 1 to 9, all as likely", 2),
    "jobs": numbers(
        "probabilities (D, L), or (K, D, L) by phase", "of stay and need together, instead of dwell and load", 3
    ),
    "pay": numbers(TIMED, "what a unit pays"),
    "penalty": numbers(TIMED, "what a departure costs, times the square of the units left"),
}
BUDGET = numbers("a whole number, or one per phase or step", "most spots that are charged at a step")
TARIFF = file_or(numbers(TIMED, "what the energy of a unit costs; a file is CSV with the columns time,price"))
CLASSES = tables("spots of several kinds; what an entry lacks is as for all", arms=WHOLE, **OF_CLASS)


def deadline(
    seeds: np.random.SeedSequence,
    against: str,
    *,
    arms: int = 100,
    budget: Annotated[Any, BUDGET] = 30,
    horizon: int = 100,
    episodes: int = 100,
    grouped: Annotated[bool, flag("declare the spots of a class exchangeable")] = True,
    known_support: Annotated[bool, flag("declare the impossible transitions")] = False,
    phases: Annotated[int, Kind(WHOLE.values, WHOLE.read, "number K of equal parts of an episode")] = 1,
    arrival: Annotated[Any, OF_CLASS["arrival"]] = ARRIVAL,
    dwell: Annotated[Any, optional(OF_CLASS["dwell"])] = None,
    load: Annotated[Any, optional(OF_CLASS["load"])] = None,
    jobs: Annotated[Any, optional(OF_CLASS["jobs"])] = None,
    pay: Annotated[Any, OF_CLASS["pay"]] = PAY,
    penalty: Annotated[Any, OF_CLASS["penalty"]] = PENALTY,
    tariff: Annotated[Any, optional(TARIFF)] = None,
    minutes: Annotated[float | None, optional(number("length of a step; by default the episode is a day"))] = None,
    classes: Annotated[Any, optional(CLASSES)] = None,
) -> Task:
    """Electric-vehicle charging: 100 identical spots, 30 chargers."""
    _, adversary_seed = seeds.spawn(2)
    if not 1 <= phases <= horizon:
        raise ModelError(f"phases must be in 1..{horizon} (the number of steps), got {phases}")
    check_memory(f"a task of {horizon} steps", 8.0 * horizon)
    phase_of = np.arange(horizon) * phases // horizon
    price = _price(tariff, phases, horizon, minutes)
    common = {"arrival": arrival, "dwell": dwell, "load": load, "jobs": jobs, "pay": pay, "penalty": penalty}
    lot = _lot(
        arms, phases, {key: None if one is None else np.asarray(one, float) for key, one in common.items()}, price, classes
    )
    slots, most = (max(one.most[axis] for one in lot) for axis in (0, 1))
    check_memory(f"a task of {arms} arms", 128.0 * phases * slots * (most + 1) * arms)  # rewards: parts, products, sums
    parts = [reward_parts(one, slots, most) for one in lot]
    spots = _arms(lot, slots, most, grouped, known_support)
    kind = np.repeat(np.arange(len(lot)), [one.count for one in lot])
    stakes = RewardModel(np.stack(parts, axis=1)[:, kind], *range_of(parts), units=kind)
    opponent = make_adversary(against, stakes, episodes, np.random.default_rng(adversary_seed))
    limits = _limits(np.asarray(budget, float), arms, phase_of)
    problem = Problem(spots, 0, limits, horizon, phase_of if phases > 1 else None)
    return Task(f"deadline@{against}", problem, opponent)


def _lot(
    arms: int, phases: int, common: dict[str, Any], price: FloatArray | None, classes: list[dict[str, Any]] | None
) -> list[Spots]:
    """Return the spots of every class."""
    if classes is None:
        return [spots_of(arms, phases, common, price)]
    lot = []
    for c, own in enumerate(classes):
        where = f"classes[{c}]."
        if "arms" not in own:
            raise ModelError(f"{where}arms is missing: how many spots are of this class")
        mixes = {"dwell", "load", "jobs"}
        inherited = {key: None if key in mixes and mixes & own.keys() else one for key, one in common.items()}
        lot.append(spots_of(own["arms"], phases, {**inherited, **own}, price, where))
    if (total := sum(one.count for one in lot)) != arms:
        raise ModelError(f"classes: their arms add up to {total}, but there are arms={arms}")
    return lot


def _arms(lot: list[Spots], slots: int, most: int, grouped: bool, known_support: bool) -> Arms:
    names = names_of(states_of(slots, most))
    tables = [kernel(one, slots, most) for one in lot]
    supports = [table > 0 if known_support else None for table in tables]
    if len(lot) == 1:
        spots = Arms.identical(tables[0], lot[0].count, state_names=names, support=supports[0])
        return spots if grouped else Arms(spots.kernels, state_names=names, support=spots.support)
    kind = np.repeat(np.arange(len(lot)), [one.count for one in lot])
    support = np.stack(supports)[kind] if known_support else None  # type: ignore[arg-type]
    return Arms(np.stack(tables)[kind], state_names=names, support=support, groups=kind if grouped else None)


def _price(tariff: Any, phases: int, horizon: int, minutes: float | None) -> FloatArray | None:
    """(K,) what the energy of a unit costs in every phase; None where it does not count."""
    if minutes is not None and not isinstance(tariff, str):
        raise ModelError("minutes: the length of a step counts only where the tariff is a file")
    if minutes is not None and minutes <= 0:
        raise ModelError(f"minutes must be above 0, got {minutes:g}")
    if isinstance(tariff, str):
        return read_tariff(tariff).by_phase(phases, DAY if minutes is None else minutes * horizon)
    return None if tariff is None else by_phase(np.asarray(tariff, float), phases, "tariff")


def _limits(budget: FloatArray, arms: int, phase_of: IntArray) -> Any:
    """Return the budget, or that of every step (H,) from one per step or phase."""
    steps, phases = phase_of.size, int(phase_of[-1]) + 1
    if budget.ndim == 0:
        return float(budget)
    if budget.size not in (phases, steps):
        raise ModelError(
            f"budget must be a number, or one per phase ({phases}) or step ({steps}), got {budget.size} numbers"
        )
    if budget.size == steps:
        return budget
    for k in np.flatnonzero(~((budget >= 0) & (budget <= arms) & (budget == np.floor(budget))))[:1]:
        raise ModelError(f"budget: phase {k} must be a whole number in 0..{arms} (the number of arms), got {budget[k]:g}")
    return budget[phase_of]


STAYS = (0, 0, 0.06, 0.1, 0.14, 0.18, 0.15, 0.12, 0.09, 0.07, 0.05, 0.04)  # of 1..12 slots
COMING = (
    *(0.02, 0.01, 0.01, 0.01, 0.02, 0.04, 0.1, 0.22, 0.28, 0.18, 0.12, 0.1),
    *(0.12, 0.11, 0.1, 0.11, 0.14, 0.2, 0.24, 0.19, 0.13, 0.09, 0.05, 0.03),
)  # by hour
NIGHT, MIDDAY, PEAK = 0.1, 0.2, 0.3
RATES = (*(NIGHT,) * 6, *(MIDDAY,) * 11, *(PEAK,) * 4, MIDDAY, *(NIGHT,) * 2)
SITE = (*(32,) * 17, *(24,) * 4, *(32,) * 3)  # chargers that the site can feed
NEEDS = tuple(tuple(share / min(d, 9) if need <= d else 0.0 for need in range(1, 10)) for d, share in enumerate(STAYS, 1))

deadline_day = partial(deadline, horizon=288, episodes=20, phases=24, budget=SITE, arrival=COMING, jobs=NEEDS, tariff=RATES)
deadline_day.__doc__ = "A day at a fast charger: two peaks of arrivals, a tariff of three rates, less power in the evening."
