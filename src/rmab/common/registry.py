"""Registries of everything that can be built by name, with summaries that need no import.

Learners, components, planners, tasks and adversaries have one registry each:

    PLANNERS = Registry(
        "planner",
        [Entry("greedy", "rmab.planners.greedy:greedy", "the largest reward now", "Nobody, 1999")],
        listed_by="rmab planners",
        returns="rmab.play.policy:Policy",
        given=("problem", "reward"),
    )

Names, summaries and papers serve lists, shell completion and error hints. The implementation is a class with options
(`rmab.common.options.configured`) or a function whose keywords are options. It is imported when it, or its options, are
needed. Wherever a name is accepted, `module:attribute` is a custom implementation.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rmab.errors import ModelError, raise_as

if TYPE_CHECKING:
    from pydantic import BaseModel

Problems = list[tuple[str, str]]  # wrong options with messages; an empty name stands for all options


@dataclass(frozen=True)
class Entry:
    """One name of a registry.

    Parameters
    ----------
    name : str
        Name in Python, on the command line and in study files.
    target : str
        Location of the implementation: `module:attribute`.
    summary : str
        One-line description.
    paper : str, optional
        Source.
    """

    name: str
    target: str
    summary: str
    paper: str = ""


AnyEntry = TypeVar("AnyEntry", bound=Entry)


class Registry(Generic[AnyEntry]):
    """Entries of one kind, by name.

    Parameters
    ----------
    kind : str
        Noun for messages: `learner`.
    entries : iterable of Entry
        Entries, in the order of lists.
    listed_by : str
        The command that lists them, for hints.
    returns : str or tuple of str
        `module:Class`: an implementation derives from this class, or is a function that returns an instance of it.
    given : sequence of str, optional
        Arguments of an implementation that the library passes, which are not options.

    Examples
    --------
    >>> from rmab.common.registry import Entry, Registry
    >>> entry = Entry("top", "rmab.learning.components.execution:TopB", "the highest shares", "Xiong & Li, ICML 2024")
    >>> known = Registry("rounding", [entry], listed_by="rmab learners ucmd", returns="rmab.learning:Execution")
    >>> known.load("top").__name__, list(known.schema("top").model_fields)
    ('TopB', ['rule'])
    >>> known.load("tpo")
    Traceback (most recent call last):
    rmab.errors.ModelError: unknown rounding 'tpo', did you mean 'top'? `rmab learners ucmd` lists them
    """

    def __init__(
        self,
        kind: str,
        entries: Iterable[AnyEntry],
        *,
        listed_by: str,
        returns: str | tuple[str, ...],
        given: Iterable[str] = (),
    ) -> None:
        self.kind, self.listed_by, self.given = kind, listed_by, tuple(given)
        self._returns = (returns,) if isinstance(returns, str) else returns
        self._entries = {entry.name: entry for entry in entries}

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> AnyEntry:
        """Return the entry of a name, or raise ModelError with the nearest one and the command that lists them."""
        if name not in self._entries:
            raise ModelError(self.unknown(name), code="unknown-name", **{self.kind: name})
        return self._entries[name]

    def entries(self) -> tuple[AnyEntry, ...]:
        """Return all entries, in order."""
        return tuple(self._entries.values())

    def summaries(self) -> dict[str, str]:
        """Return all names with their summaries."""
        return {name: entry.summary for name, entry in self._entries.items()}

    def unknown(self, name: str) -> str:
        """Return the message for an unknown name, with the nearest known one and the command that lists them."""
        return f"unknown {self.kind} {name!r:.60}{nearest(str(name), self)} `{self.listed_by}` lists them"

    def name_of(self, implementation: object) -> str:
        """Return the name of a loaded implementation; empty if it has none."""
        where = f"{getattr(implementation, '__module__', '')}:{getattr(implementation, '__qualname__', '')}"
        return next((name for name, entry in self._entries.items() if entry.target == where), "")

    def classes(self) -> tuple[type, ...]:
        """Return the classes that implementations derive from, or return instances of."""
        return tuple(map(import_target, self._returns))

    def load(self, name: str) -> Any:
        """Import the implementation of a name, or of a custom `module:attribute`, and return it; it is not called.

        Raises
        ------
        ModelError
            If there is no such name; or a custom one cannot be imported, or is not of this kind.
        """
        if isinstance(name, str) and ":" in name:
            from rmab.common.references import load_custom

            with raise_as(None, code="bad-reference", **{self.kind: name}):
                return load_custom(self.kind, name, self.classes())
        return import_target(self[name].target)

    def call(self, name: str, *values: object, **options: object) -> Any:
        """Load an implementation and call it.

        Raises
        ------
        ModelError
            Also for any exception in a custom implementation, and if it returns another type.
        """
        implementation = self.load(name)
        if ":" not in name:
            return implementation(*values, **options)
        from rmab.common.references import call_custom

        with raise_as(None, code="bad-reference", **{self.kind: name}):
            return call_custom(self.kind, name, implementation, self.classes(), values, options)

    def schema(self, name: str) -> type[BaseModel]:
        """Return the options of a name as a pydantic model: their types, limits, defaults and descriptions."""
        from rmab.common.options import schema

        return schema(self.load(name), self.given)

    def problems(self, name: str, options: Mapping[str, object]) -> Problems:
        """Return the wrong options, each with a message."""
        from rmab.common.options import problems

        return problems(self.schema(name), options)

    def checked_options(self, name: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Validate options and return those that were given.

        Raises
        ------
        ModelError
            In one line, with all problems.
        """
        from rmab.common.options import checked_options

        hint = f"`{self.listed_by} {name}`"
        return checked_options(f"{self.kind} {name}", self.schema(name), options, hint, **{self.kind: name})


def import_target(target: str) -> Any:
    """Import `module:attribute` of this library."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ', did you mean ...?' with the nearest known name, or a full stop."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]!r}?" if close else "."
