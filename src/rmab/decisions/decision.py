"""A decision: who is activated in a period, with index, rank, rule, probability and reason, and who would be next."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_floats, as_indices, as_integer, as_share, as_table, expect
from rmab.common.parsing import parsed_json
from rmab.common.storage import Fields, Format, Stored
from rmab.common.words import many
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.fairness import Fairness, find_unfairness, write_warnings
from rmab.decisions.notes import write_notes
from rmab.decisions.reasons import write_reasons
from rmab.decisions.rules import Rule, Rules, draw_numbers, fill_places
from rmab.errors import FileError, ModelError
from rmab.logs.findings import list_some, quote
from rmab.logs.tables import SUFFIXES, write_table
from rmab.logs.words import Words


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
class Decision(ReadOnly, Stored):
    """Who is activated in a period, as `rmab.data.decide` returns it; checked on construction.

    Attributes
    ----------
    period : str
        The period that it is for.
    budget : int
        How many places there were.
    arms, states : tuple of str
        (N,) the ids of all arms, and their states in words.
    index : (N,) float array
        What acting on each arm now is worth, in `words.unit`.
    rank : (N,) int array
        0 for the arm of the highest index.
    rule : tuple of str
        (N,) the rule that gave each arm its place: 'name', 'floor', 'index', 'lot', or a custom one; empty for no place.
    probability : (N,) float array
        The probability of being on the list that each arm had; NaN where caps decide it.
    reasons : tuple of str
        (N,) in a sentence.
    prices : dict of str to float
        What one more place under each cap is worth.
    fairness : tuple of Fairness
        Groups that take nearly all, and what a fairer list would cost.
    notes : tuple of str
        What a reader should know.
    words : Words
        What an action, a period and a unit of the index are called.

    Examples
    --------
    >>> import rmab
    >>> found = rmab.data.decide({"ann": 0.4, "bea": 0.1, "cleo": 0.3}, budget=2)
    >>> found
    Decision(2 of 3 arms)
    >>> [(row.id, row.reason) for row in found.rows()]
    [('ann', '1st of 3'), ('cleo', '2nd of 3')]
    """

    FORMAT = Format(
        "rmab decision",
        1,
        {"period", "budget", "arms", "states", "index", "rank", "rule", "probability", "reasons", "words"},
    )

    period: str
    budget: int
    arms: tuple[str, ...]
    states: tuple[str, ...]
    index: FloatArray
    rank: IntArray
    rule: tuple[str, ...]
    probability: FloatArray
    reasons: tuple[str, ...]
    prices: dict[str, float]
    fairness: tuple[Fairness, ...]
    notes: tuple[str, ...]
    words: Words

    def __post_init__(self) -> None:
        count = len(self.arms)
        object.__setattr__(self, "index", as_table(self.index, "index", (count,)))
        object.__setattr__(self, "rank", as_indices(self.rank, "rank", (count,), count))
        chance = as_floats(self.probability, "probability")
        as_table(np.where(np.isnan(chance), 0.0, chance), "probability", (count,), 0.0, 1.0)
        object.__setattr__(self, "probability", frozen(chance))
        for name in ("states", "rule", "reasons"):
            if len(getattr(self, name)) != count:
                raise ModelError(f"{name} must have {count} entries, one for each arm, got {len(getattr(self, name))}")
        if not int(self.active.sum()) <= as_integer(self.budget, "budget") <= count:
            raise ModelError(f"budget must be in {int(self.active.sum())}..{count}, got {self.budget}")

    @property
    def active(self) -> BoolArray:
        """(N,) who is on the list."""
        return np.array([one != "" for one in self.rule], dtype=bool)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids on the list, the best first."""
        return tuple(self.arms[n] for n in self._line(self.active))

    def _line(self, mask: BoolArray) -> IntArray:
        places = np.flatnonzero(mask)
        return np.asarray(places[np.argsort(self.rank[places], kind="stable")])

    def rows(self, upcoming: int = 0, *, first: int | None = None) -> list[Row]:
        """Return the list, the best first (of it no more than `first`), and below it so many who would be next."""
        after = self._line(~self.active & (self.index > 0))[: as_integer(upcoming, "upcoming")]
        return [self._row(int(n)) for n in (*self._line(self.active)[:first], *after)]

    def _row(self, n: int) -> Row:
        rule, reason = self.rule[n], self.reasons[n]
        numbers = (int(self.rank[n]) + 1, float(self.index[n]), rule, float(self.probability[n]))
        return Row(
            self.arms[n], self.states[n], "yes" if rule else "no", *numbers, reason if rule else f"next in line: {reason}"
        )

    def to_table(self, upcoming: int = 10) -> pa.Table:
        """Return `rows(upcoming)` as an Arrow table; `.to_pandas()` makes a DataFrame of it."""
        rows = self.rows(upcoming)
        return pa.table({name: [getattr(one, name) for one in rows] for name in SCHEMA.names}, schema=SCHEMA)

    def save(self, path: str | os.PathLike[str], upcoming: int = 10) -> None:
        """Write the decision to a file, by its suffix; FileError if it cannot be written.

        `.csv` and `.parquet` hold the list for people, and so many who would be next. `.npz` and `.json` hold everything, and
        `load` reads them.
        """
        suffix = Path(path).suffix
        if suffix in SUFFIXES:
            write_table(self.to_table(upcoming), path)
        elif suffix in self.FORMAT.suffixes:
            super().save(path)
        else:
            raise FileError(f"{path}: the name must end in {', '.join(SUFFIXES)}, {' or '.join(self.FORMAT.suffixes)}")

    def to_fields(self) -> Fields:
        """Return the decision as plain arrays and text by name."""
        fields = {name: getattr(self, name) for name in sorted(self.FORMAT.required)}
        more = {"prices": self.prices, "fairness": [asdict(one) for one in self.fairness], "notes": self.notes}
        return fields | {"words": json.dumps(more | {"words": asdict(self.words)})}

    @classmethod
    def from_fields(cls, fields: Fields) -> Decision:
        """Return the decision of such fields; ModelError where they do not form one."""
        try:
            more = parsed_json(fields["words"])
            text = {name: tuple(str(one) for one in fields[name]) for name in ("arms", "states", "rule", "reasons")}
            lists: dict[str, Any] = {
                "fairness": tuple(Fairness(**one) for one in more["fairness"]),
                "notes": tuple(more["notes"]),
            }
            lists |= {"words": Words(**more["words"]), "prices": dict(more["prices"])}
            return cls(**fields | text | lists)
        except ModelError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"not a whole decision ({type(error).__name__}: {error!s:.200})") from error

    def __repr__(self) -> str:
        label = f", for {self.period}" if self.period else ""
        return f"Decision({int(self.active.sum())} of {many(len(self.arms), 'arm')}{label})"


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


def decide_candidates(
    candidates: Candidates,
    budget: int,
    *,
    floor: int | None = None,
    must: Iterable[str] = (),
    must_not: Iterable[str] = (),
    caps: Mapping[str, int] | None = None,
    random_share: float = 0.0,
    rules: Iterable[Rule] = (),
    seed: int = 0,
) -> Decision:
    """Return who gets a place; `rmab.data.decide` explains the arguments. ModelError where they cannot be met together."""
    expect(candidates, Candidates, "candidates")
    roster, places = candidates.roster, as_integer(budget, "budget")
    if not 0 <= places <= len(roster.ids):
        raise ModelError(f"budget must be in 0..{len(roster.ids)} (the number of arms), got {places}")
    every = 0 if floor is None else as_integer(floor, "floor")
    if floor is not None and every < 1:
        raise ModelError(f"floor must be a number of periods, 1 or more, got {every}")
    forced, excluded = _find_arms(candidates, must, "must"), _find_arms(candidates, must_not, "must_not")
    if (forced & excluded).any():
        raise ModelError(
            f"must and must_not both name {list_some([roster.ids[k] for k in np.flatnonzero(forced & excluded)])}"
        )
    share = as_share(random_share, "random_share")
    limits = _find_caps(candidates, {} if caps is None else caps)
    kept = Rules(places, forced, excluded, every, int(share * places + 0.5), limits, tuple(rules))
    draws = draw_numbers(roster.ids, as_integer(seed, "seed"), candidates.period)
    choice = fill_places(candidates, kept, draws)
    order = candidates.rank(draws)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    unfair = find_unfairness(candidates, choice, kept, draws)
    notes = (*write_notes(candidates, choice, kept, random_share=share), *write_warnings(candidates.words, unfair))
    return Decision(
        period=candidates.period,
        budget=places,
        arms=roster.ids,
        states=candidates.states,
        index=candidates.index,
        rank=rank,
        rule=tuple(choice.rule.tolist()),
        probability=choice.probability,
        reasons=write_reasons(candidates, choice, rank),
        prices=choice.prices,
        fairness=unfair,
        notes=notes,
        words=candidates.words,
    )


def _find_arms(candidates: Candidates, ids: Iterable[str], what: str) -> BoolArray:
    """(N,) the arms that are named; ModelError where one is unknown, or has left."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ModelError(f"{what} must be a list of ids, got {ids!r:.40}")
    given = [str(one) for one in ids]
    places = {name: k for k, name in enumerate(candidates.roster.ids)} if given else {}
    unknown = [one for one in dict.fromkeys(given) if one not in places]
    if unknown:
        why = "; some of them are taken to have left (gone_after)" if set(candidates.gone) & set(unknown) else ""
        raise ModelError(f"{what}: there is no arm {list_some([quote(one) for one in unknown])}{why}")
    found = np.zeros(len(candidates.roster.ids), dtype=bool)
    found[[places[one] for one in given]] = True
    return found


def _find_caps(candidates: Candidates, caps: Mapping[str, int]) -> tuple[Cap, ...]:
    """Return the caps with their members; ModelError where there is no such group."""
    if not isinstance(caps, Mapping):
        raise ModelError(f"caps must name groups and how many they get at most, {{'district=north': 20}}, got {caps!r:.40}")
    found = []
    for name, most in caps.items():
        label, members = candidates.roster.members(name, "caps")
        limit = as_integer(most, f"caps: {name}")
        if limit < 0:
            raise ModelError(f"caps: {name} must get 0 or more, got {limit}")
        found.append(Cap(label, members, limit))
    if len({one.label for one in found}) < len(found):
        raise ModelError("caps: a group is named twice")
    return tuple(found)
