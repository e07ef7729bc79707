"""The reports of one period: for every arm what was executed, the state at the end of the period, and the reward.

Reports and corrections are two layers. A report never replaces another one, so the order in which reports come in does not
matter; a correction overrides the report, and the last correction counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.live.events import UNKNOWN, Tell

FIELDS = ("state", "executed", "reward")
TYPES: dict[str, np.dtype[Any]] = {
    "state": np.dtype(np.int16),
    "executed": np.dtype(np.int8),
    "reward": np.dtype(np.float64),
}
NOTHING = {"state": UNKNOWN, "executed": UNKNOWN, "reward": np.nan}


@dataclass
class Cells:
    """The reports of a period, by layer ('told', 'corrected') and field; arrays grow with the number of arms.

    version: number of changes, for caches.
    """

    layers: dict[tuple[str, str], NDArray[np.generic]] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    version: int = 0

    def write(self, layer: str, arms: IntArray, columns: dict[str, NDArray[np.generic]], count: int) -> None:
        """Write the known values of columns (M,) of arms (M,) into a layer; count: how many arms there are."""
        for name, values in columns.items():
            known = is_known(name, values)
            if known.any():
                self._layer(layer, name, count)[arms[known]] = values[known]
        self.version += 1

    def read(self, name: str, count: int, layer: str = "") -> NDArray[np.generic]:
        """(N,) the values of a field: of a layer, or the correction if there is one and otherwise the report."""
        if layer:
            return self._layer(layer, name, count, create=False)
        told, corrected = (self._layer(one, name, count, create=False) for one in ("told", "corrected"))
        return np.where(is_known(name, corrected), corrected, told) if ("corrected", name) in self.layers else told

    def _layer(self, layer: str, name: str, count: int, *, create: bool = True) -> NDArray[np.generic]:
        found = self.layers.get((layer, name))
        if found is not None and found.size >= count:
            return found[:count]
        size = 0 if found is None else found.size
        room = max(count, 2 * size) if create else count
        grown: NDArray[Any] = np.full(room, NOTHING[name], dtype=TYPES[name])
        if found is not None:
            grown[:size] = found
        if create:
            self.layers[layer, name] = grown
        return grown[:count]

    def states(self, count: int) -> IntArray:
        """(N,) the states at the end of the period, -1 if unknown."""
        return self.read("state", count).astype(np.int64)

    def executed(self, count: int) -> IntArray:
        """(N,) 1 executed, 0 not, -1 unknown."""
        return self.read("executed", count).astype(np.int64)

    def rewards(self, count: int) -> FloatArray:
        """(N,) the rewards, NaN if unknown."""
        return self.read("reward", count).astype(np.float64)


def is_known(name: str, values: NDArray[np.generic]) -> BoolArray:
    """(M,) which rows of a column have a value."""
    return ~np.isnan(values.astype(np.float64)) if name == "reward" else np.asarray(values != UNKNOWN)


def columns_of(body: Tell) -> dict[str, NDArray[np.generic]]:
    """Return the columns (M,) of a report that have values."""
    found: dict[str, NDArray[np.generic]] = {}
    for name in FIELDS:
        given = getattr(body, name)
        if given is None:
            continue
        if name == "reward":
            found[name] = np.array([np.nan if one is None else one for one in given], dtype=np.float64)
        else:
            found[name] = np.array(given, dtype=np.int64)
    return found
