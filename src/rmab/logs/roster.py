"""Who takes part in a programme: the ids of the arms, and the columns that group them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, IntArray, ReadOnly, as_indices, is_several
from rmab.errors import ModelError
from rmab.logs.findings import list_some, quote


@dataclass(frozen=True, eq=False)
class Roster(ReadOnly):
    """N arms and their groups, checked on construction.

    Attributes
    ----------
    ids : tuple of str
        (N,), all different.
    factors : dict of str to tuple of str
        The F columns that define groups, each with its values.
    factor_of : (N, F) int array
        The value of every arm in every column.

    Examples
    --------
    >>> Roster.of(["a", "b"], {"district": ["north", "coast"]}).labels
    ('north', 'coast')
    """

    ids: tuple[str, ...]
    factors: dict[str, tuple[str, ...]]
    factor_of: IntArray

    def __post_init__(self) -> None:
        sizes = np.array([len(values) for values in self.factors.values()], dtype=np.int64)
        columns = as_indices(self.factor_of, "factor_of", (len(self.ids), sizes.size), int(sizes.max(initial=1)))
        for n, f in np.argwhere(columns >= sizes)[:1]:
            raise ModelError(f"factor_of[{n}, {f}] must be in 0..{sizes[f] - 1}, got {columns[n, f]}")
        if len(set(self.ids)) < len(self.ids):
            raise ModelError(f"ids: {quote(Counter(self.ids).most_common(1)[0][0])} is given twice")
        object.__setattr__(self, "factor_of", columns)

    @classmethod
    def of(cls, ids: Sequence[object], groups: Mapping[str, Sequence[object]] | None = None) -> Roster:
        """Return the roster of ids (N,), with columns of groups, each (N,)."""
        if not is_several(ids):
            raise ModelError(f"ids must be one for each arm, got {ids!r:.40}", field="ids")
        if not isinstance(groups, Mapping | None):
            raise ModelError(f"groups must name columns, {{'district': ['north', ...]}}, got {groups!r:.40}", field="groups")
        names = tuple(str(one) for one in ids)
        factors, places = {}, np.empty((len(names), len(groups or {})), dtype=np.int64)
        for f, (name, values) in enumerate((groups or {}).items()):
            several = is_several(values) or isinstance(values, str)
            words = [str(one) for one in values] if several else []
            if len(words) != len(names):
                got = len(words) if several else repr(values)[:40]
                raise ModelError(f"groups: {quote(name)} must have {len(names)} values, one for each arm, got {got}")
            factors[str(name)] = tuple(sorted(set(words)))
            place = {one: k for k, one in enumerate(factors[str(name)])}
            places[:, f] = [place[one] for one in words]
        return cls(names, factors, places)

    def take(self, arms: IntArray) -> Roster:
        """Return the roster of some of the arms, by number; all values of columns stay."""
        return Roster(tuple(self.ids[n] for n in arms), self.factors, self.factor_of[arms])

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The value of every arm (N,) in every column of groups."""
        return {
            name: tuple(values[k] for k in self.factor_of[:, f]) for f, (name, values) in enumerate(self.factors.items())
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """(N,) the groups of every arm in words: '20-29, north'; empty where there are none."""
        columns = [np.array(values)[self.factor_of[:, f]] for f, values in enumerate(self.factors.values())]
        return tuple(", ".join(row) for row in zip(*columns, strict=True)) if columns else ("",) * len(self.ids)

    def members(self, label: str, what: str) -> tuple[str, BoolArray]:
        """Return the full label and the members (N,) of a group that is called 'north' or 'district=north'."""
        levels = [
            (f, k, f"{name}={value}")
            for f, (name, values) in enumerate(self.factors.items())
            for k, value in enumerate(values)
        ]
        fits = [(f, k, full) for f, k, full in levels if label in (full, full.partition("=")[2])]
        if len(fits) != 1:
            there = list_some([full for _, _, full in levels], 20) or "none; name columns with groups=[...]"
            problem = "more than one group is called" if fits else "unknown group"
            raise ModelError(f"{what}: {problem} {quote(label)}; available: {there}")
        f, k, full = fits[0]
        return full, np.asarray(self.factor_of[:, f] == k)
