"""The state of a learner: plain arrays, so that checkpoints, other processes and databases are one mechanism."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rmab.common.arrays import ReadOnly, frozen
from rmab.common.checks import as_integer
from rmab.common.files import read_fields, write_fields
from rmab.errors import FileError
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
    >>> state = rmab.learner("random").begin(rmab.task("cpap").view())
    >>> state
    State(random, episode 0, 0 arrays)
    """

    learner: str
    view: View
    seed: int
    episode: int
    arrays: Arrays

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "arrays": {name: frozen(array) for name, array in state["arrays"].items()}})

    def __repr__(self) -> str:
        return f"State({self.learner.partition(' ')[0]}, episode {self.episode}, {len(self.arrays)} arrays)"

    def after(self, **arrays: NDArray[Any] | None) -> State:
        """Return the state of the next episode, with these arrays in place of the old ones; None removes one."""
        new = {name: array for name, array in {**self.arrays, **arrays}.items() if array is not None}
        kept = {name: frozen(np.asarray(array)) for name, array in new.items()}
        return State(self.learner, self.view, self.seed, self.episode + 1, kept)

    def of(self, part: str) -> Memory:
        """Return the arrays of one part, by the names that it gave them."""
        return {name[len(part) + 1 :]: array for name, array in self.arrays.items() if name.startswith(f"{part}.")}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one `.npz` file, atomically."""
        _check_suffix(path)
        view = {f"view_{field.name}": getattr(self.view, field.name) for field in fields(View)}
        view["view_state_names"] = None if self.view.state_names is None else np.array(self.view.state_names)
        own = {"learner": self.learner, "seed": self.seed, "episode": self.episode}
        write_fields(path, "rmab learner state", {**own, **view, **{f"array_{k}": v for k, v in self.arrays.items()}})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read a state that `save` wrote; FileError where the file is not one."""
        _check_suffix(path)
        optional = {f"view_{name}" for name in ("groups", "support", "sizes", "state_names")}
        required = {f"view_{field.name}" for field in fields(View)} - optional | {"learner", "seed", "episode"}
        given = read_fields(path, "rmab learner state", required, optional, prefix="array_")
        seen: dict[str, Any] = {field.name: given.get(f"view_{field.name}") for field in fields(View)}
        if seen["state_names"] is not None:
            seen["state_names"] = tuple(str(name) for name in seen["state_names"])
        view = View(**seen)
        view.__setstate__(dict(vars(view)))  # read-only again
        arrays = {key[6:]: frozen(np.asarray(value)) for key, value in given.items() if key.startswith("array_")}
        if not isinstance(given["learner"], str):
            raise FileError(f"{path}: learner must be text")
        numbers = (as_integer(given["seed"], "seed"), as_integer(given["episode"], "episode"))
        return cls(given["learner"], view, *numbers, arrays)


def _check_suffix(path: str | os.PathLike[str]) -> None:
    if not str(path).endswith(".npz"):
        raise FileError(f"{path}: the name of a state must end in .npz")
