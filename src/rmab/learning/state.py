"""The state of a learner: plain arrays, so that checkpoints, other processes and databases are one mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rmab.common import Format, ReadOnly, Stored, as_integer, expect, frozen
from rmab.errors import ModelError
from rmab.model import View

MOST = float(2**53)  # larger whole numbers are not exact
ABOUT = 1e-6  # tolerance of masses outside [0, 1]
WORDS = {"f": "real numbers", "i": "whole numbers", "b": "True or False"}


class ArraySpec(NamedTuple):
    """One array of a learner or component.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    kind : {'f', 'i', 'b'}
        Real numbers, whole numbers, or True and False.
    low, high : float
        The range of its values, which are finite.
    optional : bool
        Whether it may be missing.
    other : tuple of int, optional
        Another shape that it may have.
    """

    shape: tuple[int, ...]
    kind: str = "f"
    low: float = -1e300
    high: float = 1e300
    optional: bool = False
    other: tuple[int, ...] | None = None


ArraySpecs = Mapping[str, ArraySpec]


def whole(*shape: int) -> ArraySpec:
    """Declare whole numbers, 0 or more."""
    return ArraySpec(shape, "i", 0, MOST)


def masses(*shape: int, optional: bool = False) -> ArraySpec:
    """Declare masses or shares, from 0 to 1."""
    return ArraySpec(shape, "f", -ABOUT, 1 + ABOUT, optional)


def check_arrays(arrays: Mapping[str, NDArray[Any]], declared: ArraySpecs) -> None:
    """Raise ModelError, naming array and place, unless all arrays match their declaration."""
    for name, wanted in declared.items():
        if name not in arrays:
            if not wanted.optional:
                raise ModelError(f"state: {name} is missing")
            continue
        given = np.asarray(arrays[name])
        if given.shape not in (wanted.shape, wanted.other):
            either = wanted.shape if wanted.other is None else f"{wanted.shape} or {wanted.other}"
            raise ModelError(f"state: {name} must have shape {either}, got {given.shape}")
        if given.dtype.kind != wanted.kind or not given.dtype.isnative:
            raise ModelError(f"state: {name} must contain {WORDS[wanted.kind]}, got {given.dtype}")
        values = given.astype(np.float64) if wanted.kind == "f" else given  # smaller types do not contain the limits
        fine = np.ones(given.shape, bool) if wanted.kind == "b" else (values >= wanted.low) & (values <= wanted.high)
        for place in np.argwhere(~fine)[:1]:
            where = f"[{', '.join(map(str, place))}]" if place.size else ""
            value = given[tuple(place)]
            raise ModelError(f"state: {name}{where} is {value}, outside [{wanted.low:g}, {wanted.high:g}]")


Arrays = Mapping[str, NDArray[Any]]  # arrays of a learner, by name
Memory = Mapping[str, NDArray[Any]]  # arrays of a component, by name
Changes = Mapping[str, NDArray[Any] | None]  # arrays that change, by name; None: removed


@dataclass(frozen=True, eq=False, repr=False)
class State(ReadOnly, Stored):
    """Everything that a learner knows after some episodes. `Learner.begin` and `Learner.learn` return it.

    Parameters
    ----------
    learner : str
        Name and options of the learner that it belongs to.
    view : View
        What the learner may know of the task.
    seed : int
        Seed of the learner's random draws.
    episode : int
        Number of episodes learned from; also the number of the next one.
    arrays : mapping of str to array
        Arrays of the learner. Components put their name first: `sets.counts`, `rewards.means`.

    Examples
    --------
    >>> import rmab
    >>> state = rmab.make_learner("random").begin(rmab.make_task("cpap").view())
    >>> state
    State(random, episode 0, 0 arrays)
    """

    learner: str
    view: View
    seed: int
    episode: int
    arrays: Arrays
    _parted: Mapping[str, Memory] | None = field(default=None, init=False, compare=False)  # arrays by component, cached
    _trusted: bool = field(default=False, init=False, compare=False)  # built or checked by its learner in this process

    FORMAT = Format(
        "rmab learner state",
        View.FORMAT.version,
        {"learner", "seed", "episode", *(f"view_{name}" for name in View.FORMAT.required)},
        {f"view_{name}" for name in View.FORMAT.optional},
        prefix="array_",
        upgrades=View.FORMAT.upgrades,
        suffixes=(".npz",),  # JSON does not store the type of an array's numbers
    )

    def __post_init__(self) -> None:
        """Check the fields of every state; its arrays are checked by the learner that owns them."""
        if not isinstance(self.learner, str) or not isinstance(self.view, View):
            raise ModelError("a state needs the signature of its learner and a View; use Learner.begin")
        for name in ("seed", "episode"):
            if as_integer(getattr(self, name), name) < 0:
                raise ModelError(f"{name} must be 0 or more, got {getattr(self, name)}")
        expect(self.arrays, Mapping, "arrays", "; give arrays by name")
        for name, array in self.arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                raise ModelError(f"state: {name} must be an array of numbers, got {type(array).__name__}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = {name: frozen(array) for name, array in state["arrays"].items()}
        super().__setstate__({**state, "arrays": arrays, "_trusted": False, "_parted": None})

    def __repr__(self) -> str:
        return f"State({self.learner.partition(' ')[0]}, episode {self.episode}, {len(self.arrays)} arrays)"

    def after(self, **arrays: NDArray[Any] | None) -> State:
        """Return the state of the next episode, with these arrays in place of the old ones; None removes one."""
        new = {name: array for name, array in {**self.arrays, **arrays}.items() if array is not None}
        read_only = {name: frozen(np.asarray(array)) for name, array in new.items()}
        return State(self.learner, self.view, self.seed, self.episode + 1, read_only)

    def seen_in(self, view: View) -> State:
        """Return the same state in the situation of another view."""
        state = State(self.learner, view, self.seed, self.episode, self.arrays)
        object.__setattr__(state, "_trusted", self._trusted)
        return state

    def of(self, part: str) -> Memory:
        """Return the arrays of one component, by name."""
        if self._parted is None:
            by_part: dict[str, dict[str, NDArray[Any]]] = {}
            for name, array in self.arrays.items():
                owner, dot, own = name.partition(".")
                if dot:
                    by_part.setdefault(owner, {})[own] = array
            object.__setattr__(self, "_parted", by_part)
        return dict((self._parted or {}).get(part, {}))

    def to_fields(self) -> dict[str, Any]:
        """Return the view, with `view_` before its names, the arrays, with `array_` before theirs, and all else."""
        view = {f"view_{name}": value for name, value in self.view.to_fields().items()}
        arrays = {f"array_{name}": array for name, array in self.arrays.items()}
        return {"learner": self.learner, "seed": self.seed, "episode": self.episode, **view, **arrays}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build a state from what `to_fields` returns; ModelError if it is not valid.

        The learner that the state belongs to checks its arrays, before it plans with them or learns.
        """
        view = {name[5:]: value for name, value in fields.items() if name.startswith("view_")}
        arrays = {name[6:]: frozen(np.asarray(value)) for name, value in fields.items() if name.startswith("array_")}
        seed, episode = (as_integer(fields[name], name) for name in ("seed", "episode"))
        return cls(fields["learner"], View.from_fields(view), seed, episode, arrays)
