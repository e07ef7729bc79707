"""Whom to act on next: a list with ranks, reasons and rules, and who would be next."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_integer, as_share, expect
from rmab.common.words import many
from rmab.decisions.fairness import Fairness, fairness_of, warnings_of
from rmab.decisions.reasons import Reasons
from rmab.decisions.remarks import notes_of
from rmab.decisions.selection import NOT, Cap, Choice, Wish, chosen, shuffled
from rmab.errors import ModelError
from rmab.estimation.fit import DEFAULT_HORIZON, Fit
from rmab.logs.findings import list_some, quote
from rmab.logs.tables import write_table
from rmab.solvers.fluid.fluid import Fluid, solve_fluid

BY = ("", "name", "floor", "index", "lot")


@dataclass(frozen=True)
class Row:
    """One line of a list."""

    id: str
    state: str
    action: str
    rank: int
    index: float
    by: str
    chance: float
    reason: str


@dataclass(frozen=True, eq=False)
class Decision(ReadOnly):
    """Whom to act on, as `rmab.data.decide` returns it; arms are in the order of `fit.ids`.

    Attributes
    ----------
    fit : Fit
        The model behind it.
    budget : int
        How many places there were.
    label : str
        The period that it is for.
    index : (N,) float array
        What acting on each arm now is worth, in the unit of the rewards.
    rank : (N,) int array
        0 for the arm of the highest index.
    choice : Choice
        Why each arm is on the list, with what chance, and the prices of caps.
    fairness : tuple of Fairness
        Groups that take nearly all, and what a fairer list would cost.
    plan : Fluid
        The plan: prices of the budget now and later, and what no policy can beat.
    notes : tuple of str
        What a reader should know.
    """

    fit: Fit
    budget: int
    label: str
    index: FloatArray
    rank: IntArray
    choice: Choice
    fairness: tuple[Fairness, ...]
    plan: Fluid
    notes: tuple[str, ...]

    @property
    def active(self) -> BoolArray:
        """(N,) who is on the list."""
        return np.asarray(self.choice.why != NOT)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids on the list, the best first."""
        names = self.fit.ids
        return tuple(names[n] for n in self._line(self.active))

    def _line(self, chosen: BoolArray) -> IntArray:
        places = np.flatnonzero(chosen)
        return np.asarray(places[np.argsort(self.rank[places], kind="stable")])

    def rows(self, upcoming: int = 0, *, first: int | None = None) -> list[Row]:
        """Return the list, the best first (of it no more than `first`), and below it so many who would be next."""
        barred = np.isneginf(self.index)
        after = self._line(~self.active & ~barred & (self.index > 0))[: as_integer(upcoming, "upcoming")]
        return self._rows(np.concatenate([self._line(self.active)[:first], after]))

    def _rows(self, places: IntArray) -> list[Row]:
        reasons, names, now = Reasons(self.fit, self.choice.why, self.rank), self.fit.ids, self.fit.situation
        states = (*self.fit.log.state_names, "(never seen)")
        found = []
        for n in places:
            why = int(self.choice.why[n])
            told = reasons.of(int(n)) if why != NOT else f"next in line: {reasons.of(int(n))}"
            state, yes = states[now.state[self.fit.present[n]]], "yes" if why != NOT else "no"
            numbers = (int(self.rank[n]) + 1, float(self.index[n]), BY[why], float(self.choice.chance[n]))
            found.append(Row(names[n], state, yes, *numbers, told))
        return found

    def to_table(self, upcoming: int = 10) -> pa.Table:
        """Return `rows(upcoming)` as an Arrow table; `.to_pandas()` makes a DataFrame of it."""
        rows = self.rows(upcoming)
        return pa.table({name: [getattr(one, name) for one in rows] for name in SCHEMA.names}, schema=SCHEMA)

    def save(self, path: str | os.PathLike[str], upcoming: int = 10) -> None:
        """Write the list, and who would be next, to a .csv or .parquet file; FileError if it cannot be written."""
        write_table(self.to_table(upcoming), path)

    def __repr__(self) -> str:
        return f"Decision({int(self.active.sum())} of {many(self.active.size, 'arm')}, for {self.label})"


SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "state", "action")),
        ("rank", pa.int64()),
        ("index", pa.float64()),
        ("by", pa.string()),
        ("chance", pa.float64()),
        ("reason", pa.string()),
    ]
)


def decide(
    fit: Fit,
    budget: int | None = None,
    *,
    horizon: int = DEFAULT_HORIZON,
    floor: int | None = None,
    must: Iterable[str] = (),
    must_not: Iterable[str] = (),
    caps: Mapping[str, int] | None = None,
    random_share: float = 0.0,
    seed: int = 0,
) -> Decision:
    """Say whom to act on now: those for whom it is worth most, by a plan over the periods ahead, and why.

    Parameters
    ----------
    fit : Fit
        The model, from `rmab.data.fit`.
    budget : int, optional
        How many can be acted on; by default as many as in a period of the log, on average.
    horizon : int
        For how many periods to plan ahead.
    floor : int, optional
        Everybody has a turn at least every so many periods. Whoever is due goes first; refused where the budget is too
        small for it.
    must, must_not : ids
        Who is on the list, or not on it, whatever the plan says.
    caps : dict of str to int, optional
        The most that a group gets: ``{"district=north": 20}``.
    random_share : float
        Part of the places that is drawn at random from the others, so that what the list brings can be measured without a
        model. `chance` has the probability that each arm had.
    seed : int
        Of ties and lots: a hash of seed, period and id. Of equals, who has waited longest goes first.

    Returns
    -------
    Decision
        Ranks, reasons, prices and warnings. Places stay empty where acting is expected to help nobody any more.

    Raises
    ------
    ModelError
        Where wishes cannot be met together, or name who or what is not there.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> fitted = rmab.data.fit(log, reward={"engaged": 1})
    >>> calls = rmab.data.decide(fitted, budget=10)
    >>> calls
    Decision(10 of 200 arms, for 2024-W20)
    >>> calls.rows()[0].reason
    'wavering since this week; a call raises the chance of being engaged next week from 21% to 48%; 1st of 200'
    """
    expect(fit, Fit, "fit", "; fit a log with rmab.data.fit")
    places = fit.usual_budget if budget is None else as_integer(budget, "budget")
    count = fit.present.size
    if not 0 <= places <= count:
        raise ModelError(f"budget must be in 0..{count} (the number of arms), got {places}")
    luck_of = as_integer(seed, "seed")
    every = 0 if floor is None else as_integer(floor, "floor")
    if floor is not None and every < 1:
        raise ModelError(f"floor must be a number of periods, 1 or more, got {every}")
    names = {name: k for k, name in enumerate(fit.ids)}
    forced, barred = _named(fit, names, must, "must"), _named(fit, names, must_not, "must_not")
    if (forced & barred).any():
        both = [fit.ids[k] for k in np.flatnonzero(forced & barred)]
        raise ModelError(f"must and must_not both name {list_some(both)}")
    lots = int(as_share(random_share, "random_share") * places + 0.5)
    wish = Wish(places, forced, barred, every, lots, _caps(fit, caps or {}))
    plan = solve_fluid(fit.problem(places, horizon), fit.reward)
    index = index_now(fit, plan)
    luck = shuffled(fit.ids, luck_of, fit.situation.label)
    waited = fit.situation.acted_before[fit.present]
    order = ranked(index, waited, luck)
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    choice = chosen(index, order, waited, luck, wish)
    unfair = fairness_of(fit, index, order, choice, wish)
    notes = tuple(notes_of(fit, index, choice, wish, asked=random_share > 0)) + warnings_of(fit, unfair)
    return Decision(fit, places, fit.situation.label, frozen(index), frozen(rank), choice, unfair, plan, notes)


def index_now(fit: Fit, plan: Fluid) -> FloatArray:
    """(N,) what acting now is worth: Q(s, 1) - Q(s, 0) at the plan's prices, on average over where an arm may be."""
    advantage = plan.advantage[:, 0]  # (C, S)
    index = np.einsum("ns,ns->n", fit.situation.belief[fit.present], advantage[plan.blocks.block_of])
    scale = max(float(np.abs(index).max(initial=0.0)), 1e-300)
    return np.asarray(np.round(index / scale, 9) * scale)


def ranked(index: FloatArray, waited: IntArray, luck: FloatArray) -> IntArray:
    """Return the arms, the highest index first; of equals, who has waited longest, and then by lot."""
    scale = max(float(np.abs(index).max(initial=0.0)), 1e-300)
    return np.asarray(np.lexsort((luck, -waited, -np.round(index / scale, 9))))


def _named(fit: Fit, places: dict[str, int], ids: Iterable[str], what: str) -> BoolArray:
    """(N,) the arms that are named; ModelError where one is unknown, or has left."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ModelError(f"{what} must be a list of ids, got {ids!r:.40}")
    given = [str(one) for one in ids]
    unknown = [one for one in dict.fromkeys(given) if one not in places]
    if unknown:
        gone = set(fit.log.arms) & set(unknown)
        why = "; some of them are taken to have left (gone_after)" if gone else ""
        raise ModelError(f"{what}: there is no arm {list_some([quote(one) for one in unknown])}{why}")
    found = np.zeros(fit.present.size, dtype=bool)
    found[[places[one] for one in given]] = True
    return found


def _caps(fit: Fit, caps: Mapping[str, int]) -> tuple[Cap, ...]:
    """Return the caps with their members; ModelError where there is no such group."""
    if not isinstance(caps, Mapping):
        raise ModelError(f"caps must name groups and how many they get at most, {{'district=north': 20}}, got {caps!r:.40}")
    levels = [(f, name, value) for f, (name, values) in enumerate(fit.log.factors.items()) for value in values]
    found = []
    for label, most in caps.items():
        fits = [(f, name, value) for f, name, value in levels if label in (value, f"{name}={value}")]
        if len(fits) != 1:
            there = list_some([f"{name}={value}" for _, name, value in levels], 20) or "none; name columns with groups=[...]"
            what = "there is no group" if not fits else "more than one group is called"
            raise ModelError(f"caps: {what} {quote(label)}; the groups are {there}")
        limit = as_integer(most, f"caps: {label}")
        if limit < 0:
            raise ModelError(f"caps: {label} must get 0 or more, got {limit}")
        f, name, value = fits[0]
        members = fit.log.factor_of[fit.present, f] == fit.log.factors[name].index(value)
        found.append(Cap(f"{name}={value}", members, limit))
    if len({one.label for one in found}) < len(found):
        raise ModelError("caps: a group is named twice")
    return tuple(found)
