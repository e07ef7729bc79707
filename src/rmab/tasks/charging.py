"""The tasks `deadline` and `deadline-day`: parking lots with charging spots, with the paper's or other numbers.

All numbers of the case study (`rmab.tasks.deadline`) are options, and may depend on the time. The steps are divided into
`phases` equal parts; a step belongs to the part in which it starts. A slot of a vehicle's stay is one step, and charging
for a slot gives one unit. With a tariff a unit pays `pay` minus the price of its energy, which is a third part of the
reward, with its own factor for adversaries. Classes of spots may differ in vehicles and pay.

`deadline-day` is a day at a fast charger: 100 spots, 288 steps of five minutes, and 24 phases, the hours. A unit is the
charge of five minutes (4 kWh at 50 kW). Vehicles stay for 15 to 60 minutes, and need at most what their stay allows, and at
most 45 minutes of charging: a vehicle that leaves short has waited. Most arrive in the morning and in the evening; energy is
cheap at night and expensive in the evening, when the power limit is lower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Required

import numpy as np
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from rmab.common import ArmCount, FloatArray, Horizon, IntArray, Numbers, check_memory
from rmab.errors import ModelError
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.deadline import ARRIVAL, PAY, PENALTY
from rmab.tasks.definition import Posed
from rmab.tasks.spots import Spots, by_phase, kernel, names_of, range_of, reward_parts, spots_of, states_of
from rmab.tasks.tariff import DAY, read_tariff

TIMED = "a number, or one per phase"
STAYS_HELP = "probabilities of stays of 1..D steps; by default uniform on 1 to 12"
NEEDS_HELP = "probabilities of needs of 1..L units of energy; by default uniform on 1 to 9"
JOBS_HELP = "joint probabilities of stay and need, instead of dwell and load"
Limit = Annotated[
    Any, Numbers("a whole number, or one per phase or step", "maximum number of spots that are charged at a step")
]
Arrival = Annotated[Any, Numbers(TIMED, "probability that a vehicle arrives at a free spot")]
Dwell = Annotated[Any, Numbers("probabilities (D,), or (K, D) by phase", STAYS_HELP, 2)]
Load = Annotated[Any, Numbers("probabilities (L,), or (K, L) by phase", NEEDS_HELP, 2)]
Jobs = Annotated[Any, Numbers("probabilities (D, L), or (K, D, L) by phase", JOBS_HELP, 3)]
Pay = Annotated[Any, Numbers(TIMED, "pay per unit of energy")]
Penalty = Annotated[Any, Numbers(TIMED, "penalty of a departure, times the square of the units left")]
TariffOption = Annotated[
    Any, Numbers(TIMED, "price of the energy of a unit; a file is CSV with the columns time,price", file=True)
]


class SpotsOptions(TypedDict, total=False):
    """Options of one class of spots; missing ones are those of the task."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    arms: Required[ArmCount]
    arrival: Arrival
    dwell: Dwell
    load: Load
    jobs: Jobs
    pay: Pay
    penalty: Penalty


CLASSES = Field(
    min_length=1,
    description="spots of several kinds; missing options are those of the task",
    json_schema_extra={"values": "list of tables with arms and some of arrival, dwell, load, jobs, pay, penalty"},
)


def deadline(
    *,
    arms: ArmCount = 100,
    budget: Limit = 30,
    horizon: Horizon = 100,
    grouped: Annotated[bool, Field(description="declare the spots of a class exchangeable")] = True,
    known_support: Annotated[bool, Field(description="declare the impossible transitions")] = False,
    phases: Annotated[int, Field(ge=1, description="number K of equal parts of an episode")] = 1,
    arrival: Arrival = ARRIVAL,
    dwell: Dwell | None = None,
    load: Load | None = None,
    jobs: Jobs | None = None,
    pay: Pay = PAY,
    penalty: Penalty = PENALTY,
    tariff: TariffOption | None = None,
    minutes: Annotated[float | None, Field(gt=0, description="length of a step; by default the episode is a day")] = None,
    classes: Annotated[list[SpotsOptions] | None, CLASSES] = None,
) -> Posed:
    """Build electric-vehicle charging: 100 identical spots and 30 chargers by default."""
    if phases > horizon:
        raise ModelError(f"phases must be at most {horizon} (the number of steps), got {phases}")
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
    limits = _limits(np.asarray(budget, float), arms, phase_of)
    return Problem(spots, 0, limits, horizon, phase_of if phases > 1 else None), stakes


def _lot(
    arms: int, phases: int, common: dict[str, Any], price: FloatArray | None, classes: Sequence[Mapping[str, Any]] | None
) -> list[Spots]:
    """Return the spots of each class."""
    if classes is None:
        return [spots_of(arms, phases, common, price)]
    lot = []
    for c, entry in enumerate(classes):
        where = f"classes[{c}]."
        mixes = {"dwell", "load", "jobs"}
        inherited = {key: None if key in mixes and mixes & entry.keys() else one for key, one in common.items()}
        lot.append(spots_of(entry["arms"], phases, {**inherited, **entry}, price, where))
    if (total := sum(one.count for one in lot)) != arms:
        raise ModelError(f"classes: their arms add up to {total}, expected arms={arms}")
    return lot


def _arms(lot: list[Spots], slots: int, most: int, grouped: bool, known_support: bool) -> Arms:
    names = names_of(states_of(slots, most))
    tables = [kernel(one, slots, most) for one in lot]
    supports = [table > 0 if known_support else None for table in tables]
    if len(lot) == 1:
        spots = Arms.identical(tables[0], lot[0].count, state_names=names, support=supports[0])
        return spots if grouped else Arms(spots.kernels, state_names=names, support=spots.support)
    kind = np.repeat(np.arange(len(lot)), [one.count for one in lot])
    support = np.stack(supports) if known_support else None  # type: ignore[arg-type]
    spots = Arms(np.stack(tables), state_names=names, support=support, groups=kind)
    return spots if grouped else Arms(spots.kernels, state_names=names, support=spots.support)


def _price(tariff: Any, phases: int, horizon: int, minutes: float | None) -> FloatArray | None:
    """(K,) price of the energy of a unit in each phase; None without a tariff."""
    if minutes is not None and not isinstance(tariff, str):
        raise ModelError("minutes is only used if the tariff is a file; leave it out")
    if isinstance(tariff, str):
        return read_tariff(tariff).by_phase(phases, DAY if minutes is None else minutes * horizon)
    return None if tariff is None else by_phase(np.asarray(tariff, float), phases, "tariff")


def _limits(budget: FloatArray, arms: int, phase_of: IntArray) -> Any:
    """Return the budget, or that of each step (H,) from one per step or phase."""
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
SITE = (*(32,) * 17, *(24,) * 4, *(32,) * 3)  # number of chargers that the site can supply
NEEDS = tuple(tuple(share / min(d, 9) if need <= d else 0.0 for need in range(1, 10)) for d, share in enumerate(STAYS, 1))

deadline_day = partial(deadline, horizon=288, phases=24, budget=SITE, arrival=COMING, jobs=NEEDS, tariff=RATES)
