"""What every learner is: `begin` makes a state from a view, `plan` reads a policy off it, `learn` returns the next state.

A learner never owns the loop, and keeps nothing to itself: all that it has learned is in the state, which is plain arrays.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from rmab.common.arrays import FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_integer
from rmab.common.files import read_fields, write_fields
from rmab.errors import FileError, ModelError
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.policy import Policy

__all__ = ["Arrays", "Learner", "Plan", "Privileged", "State", "stream"]


Arrays = Mapping[str, NDArray[Any]]  # what a learner keeps, by name


@dataclass(frozen=True, eq=False)
class State(ReadOnly):
    """All that a learner knows after `episode` episodes: its view, its seed, and named arrays of its own."""

    learner: str
    view: View
    seed: int
    episode: int
    arrays: Arrays

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "arrays": {name: frozen(array) for name, array in state["arrays"].items()}})

    def after(self, **arrays: NDArray[Any]) -> "State":
        """Return the state of the next episode, with these arrays in place of the old ones."""
        kept = {name: frozen(np.asarray(array)) for name, array in {**self.arrays, **arrays}.items()}
        return State(self.learner, self.view, self.seed, self.episode + 1, kept)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one `.npz` file, atomically."""
        _check_suffix(path)
        view = {f"view_{field.name}": getattr(self.view, field.name) for field in fields(View)}
        view["view_state_names"] = None if self.view.state_names is None else np.array(self.view.state_names)
        own = {"learner": self.learner, "seed": self.seed, "episode": self.episode}
        write_fields(path, "rmab learner state", {**own, **view, **{f"array_{k}": v for k, v in self.arrays.items()}})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "State":
        """Read a state that `save` wrote."""
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
        return cls(
            given["learner"], view, as_integer(given["seed"], "seed"), as_integer(given["episode"], "episode"), arrays
        )


def _check_suffix(path: str | os.PathLike[str]) -> None:
    if not str(path).endswith(".npz"):
        raise FileError(f"{path}: the name of a state must end in .npz")


@dataclass(frozen=True, eq=False)
class Plan(ReadOnly):
    """What a learner will do in the coming episode.

    policy      who is activated when.
    occupancy   (C, H, S, 2) of each block, where the learner plans with occupancies; block_of (N,) the block of each arm.
    iterations  of the solver that made it.
    """

    policy: Policy
    occupancy: FloatArray | None = None
    block_of: IntArray | None = None
    iterations: int = 0


class Learner(ABC):
    """An algorithm with its options. It reaches the problem through a View and Feedback only.

    paper       where it comes from; empty where it is ours.
    feedback    the feedback mode that it is made for: `bandit`, or `full`, without which it is not defined.
    privileged  what it is given that no real programme has, in words; empty for an honest learner.
    settings    its options; None where it has none.
    """

    name: ClassVar[str]
    paper: ClassVar[str] = ""
    feedback: ClassVar[Literal["bandit", "full"]] = "bandit"
    privileged: ClassVar[str] = ""
    settings: BaseModel | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options, by name."""
        return {} if self.settings is None else self.settings.model_dump()

    @property
    def signature(self) -> str:
        """Name and options in one line: states of one learner are not taken for those of another."""
        return f"{self.name} {json.dumps(self.options, sort_keys=True)}"

    def begin(self, view: View, seed: int = 0) -> State:
        """Return the state before the first episode."""
        if not isinstance(view, View):
            raise ModelError(f"a learner begins with a View, got {type(view).__name__}")
        if self.feedback == "full" and view.feedback != "full":
            raise ModelError(f"{self.name} needs full feedback, this task gives {view.feedback}: say feedback='full'")
        number = as_integer(seed, "seed")
        if number < 0:
            raise ModelError(f"seed must be 0 or more, got {number}")
        arrays = {name: frozen(np.asarray(array)) for name, array in self._begin(view, number).items()}
        return State(self.signature, view, number, 0, arrays)

    def plan(self, state: State) -> Plan:
        """Return the plan of the coming episode."""
        self._check(state)
        return self._plan(state)

    def learn(self, state: State, feedback: Feedback) -> State:
        """Return the state after this feedback; wrong feedback raises FeedbackError, and nothing has changed."""
        self._check(state)
        feedback.check(state.view, state.episode)
        return state.after(**self._learn(state, feedback))

    def estimate(self, state: State) -> FloatArray | None:  # noqa: ARG002
        """(N, S, 2) what the learner took the last episode's rewards for, in their own units; None where it makes none."""
        return None

    def _check(self, state: State) -> None:
        if state.learner != self.signature:
            raise ModelError(f"this state belongs to {state.learner}, not to {self.signature}")

    @abstractmethod
    def _begin(self, view: View, seed: int) -> Arrays: ...

    @abstractmethod
    def _plan(self, state: State) -> Plan: ...

    @abstractmethod
    def _learn(self, state: State, feedback: Feedback) -> Arrays: ...


def stream(seed: int, key: int, episode: int = 0) -> np.random.Generator:
    """Return a learner's own luck in an episode. Keys are 101 and up: the seed's 0 and 1 make the task, 100 is the run's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, episode)))


class Privileged(Learner):
    """A learner that is told, before it begins, what no real programme knows. `run` does so; nothing else can."""

    @abstractmethod
    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Learner:
        """Return the learner that knows what it may of this problem and of the summed rewards (N,S,2) of all episodes.

        seed: of the run, for what it is told by chance.
        """
