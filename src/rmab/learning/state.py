"""The state of a learner: plain arrays, so that checkpoints, other processes and databases are one mechanism."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import ReadOnly, frozen
from rmab.common.checks import as_integer, expect
from rmab.common.files import read_fields, write_fields
from rmab.errors import FileError, ModelError
from rmab.model.view import View

Arrays = Mapping[str, NDArray[Any]]  # what a learner keeps, by name
Memory = Mapping[str, NDArray[Any]]  # what a part keeps, by name
Changes = Mapping[str, NDArray[Any] | None]  # arrays that change, by name; None: no longer kept


@dataclass(frozen=True, eq=False, repr=False)
class State(ReadOnly):
    """All that a learner knows after some episodes. `Learner.begin` and `Learner.learn` make it.

    Parameters
    ----------
    learner : str
        Name and options of the learner that it belongs to.
    view : View
        What the learner may know of the task.
    seed : int
        Of the learner's own draws.
    episode : int
        How many episodes were learned from; the next one has this number.
    arrays : mapping of str to array
        What the learner keeps. Parts put their name first: `sets.counts`, `rewards.means`.

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
    _parted: Mapping[str, Memory] | None = field(default=None, init=False, compare=False)  # arrays by part, once asked for
    _trusted: bool = field(default=False, init=False, compare=False)  # whether its learner made it here, or has checked it

    def __post_init__(self) -> None:
        """Check what every state has; its arrays are checked by the learner that owns them, before it reads them."""
        if not isinstance(self.learner, str) or not isinstance(self.view, View):
            raise ModelError("a state has the signature of its learner, and a View: Learner.begin makes one")
        for name in ("seed", "episode"):
            if as_integer(getattr(self, name), name) < 0:
                raise ModelError(f"{name} must be 0 or more, got {getattr(self, name)}")
        expect(self.arrays, Mapping, "arrays", "; what is kept is given by name")
        for name, array in self.arrays.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
                raise ModelError(f"state: {name} must be an array of numbers, got {type(array).__name__}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {name: frozen(array) for name, array in state["arrays"].items()}
        super().__setstate__({**state, "arrays": kept, "_trusted": False, "_parted": None})

    def __repr__(self) -> str:
        return f"State({self.learner.partition(' ')[0]}, episode {self.episode}, {len(self.arrays)} arrays)"

    def after(self, **arrays: NDArray[Any] | None) -> State:
        """Return the state of the next episode, with these arrays in place of the old ones; None removes one."""
        new = {name: array for name, array in {**self.arrays, **arrays}.items() if array is not None}
        kept = {name: frozen(np.asarray(array)) for name, array in new.items()}
        return State(self.learner, self.view, self.seed, self.episode + 1, kept)

    def seen_in(self, view: View) -> State:
        """Return the same state under another view: what is known, in another situation."""
        made = State(self.learner, view, self.seed, self.episode, self.arrays)
        object.__setattr__(made, "_trusted", self._trusted)
        return made

    def of(self, part: str) -> Memory:
        """Return the arrays of one part, by the names that it gave them."""
        if self._parted is None:
            parted: dict[str, dict[str, NDArray[Any]]] = {}
            for name, array in self.arrays.items():
                owner, dot, own = name.partition(".")
                if dot:
                    parted.setdefault(owner, {})[own] = array
            object.__setattr__(self, "_parted", parted)
        return dict((self._parted or {}).get(part, {}))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one `.npz` file, atomically."""
        _check_suffix(path)
        view = {f"view_{one.name}": getattr(self.view, one.name) for one in fields(View)}
        view["view_state_names"] = None if self.view.state_names is None else np.array(self.view.state_names)
        own = {"learner": self.learner, "seed": self.seed, "episode": self.episode}
        write_fields(path, "rmab learner state", {**own, **view, **{f"array_{k}": v for k, v in self.arrays.items()}})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read a state that `save` wrote; FileError where the file is not one."""
        _check_suffix(path)
        optional = {
            f"view_{name}" for name in ("groups", "support", "sizes", "state_names", "phase_of", "phases", "discount")
        }
        required = {f"view_{one.name}" for one in fields(View)} - optional | {"learner", "seed", "episode"}
        given = read_fields(path, "rmab learner state", required, optional, prefix="array_")
        seen: dict[str, Any] = {one.name: given.get(f"view_{one.name}") for one in fields(View)}
        seen["phases"] = 0 if seen["phases"] is None else seen["phases"]  # files of before there were phases
        seen["discount"] = 1.0 if seen["discount"] is None else seen["discount"]
        arrays = {key[6:]: frozen(np.asarray(value)) for key, value in given.items() if key.startswith("array_")}
        try:
            numbers = (as_integer(given["seed"], "seed"), as_integer(given["episode"], "episode"))
            return cls(given["learner"], View(**seen), *numbers, arrays)
        except ModelError as error:
            raise FileError(f"{path}: {error}") from error


def _check_suffix(path: str | os.PathLike[str]) -> None:
    if not str(path).endswith(".npz"):
        raise FileError(f"{path}: the name of a state must end in .npz")
