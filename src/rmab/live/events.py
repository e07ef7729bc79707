"""The events of a journal: everything that can happen in a programme, with checked fields and a chain of hashes.

A body is stored as canonical JSON (sorted names, no spaces, the shortest digits that give the same number), so that equal
content has equal bytes on every database. Columns of many arms are lists, and numbers of a decision are packed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from rmab.common import FloatArray
from rmab.common.options import problems_of
from rmab.errors import ModelError, StoreError
from rmab.live.periods import Rhythm

Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
Words = Annotated[str, Field(max_length=2000)]
Fallback = Literal["rotation", "random", "last", "nothing"]
START = "0" * 64  # the previous hash of the first event
COMPRESSED = "z:"  # prefix of compressed numbers
SAMPLE = 8000  # sample of bytes that decides whether to compress
UNKNOWN = -1  # a state, or an execution, that a row does not report


class Body(BaseModel):
    """Content of an event. Subclasses set `KIND`, the name of the event in the journal."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    KIND: ClassVar[str]

    def to_json(self) -> str:
        """Return the canonical text; fields that are None are left out."""
        return json.dumps(
            self.model_dump(exclude_none=True, exclude=self._omitted_fields()),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )

    def _omitted_fields(self) -> set[str]:
        """Return the fields that are not written: new ones that are empty, so that old journals keep their hashes."""
        return set()

    @classmethod
    def checked(cls, **fields: Any) -> Self:
        """Return the event of these fields, or raise ModelError with all errors."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            found = problems_of(error, cls)
            wrong = "; ".join(f"{name}: {message}" if name else message for name, message in found[:20])
            raise ModelError(wrong, field=found[0][0]) from error


class Create(Body):
    """The declaration of a programme; `rmab.live.Store.create` describes the fields."""

    KIND = "create"
    states: list[Id] = Field(min_length=2, max_length=1000)
    rhythm: Rhythm
    budget: Count
    lookahead: int = Field(default=12, ge=1, le=1000)
    reward: dict[str, FiniteFloat] | None = None
    floor: int | None = Field(default=None, ge=1)
    control: Share = 0.0
    random_share: Share = 0.0
    fallback: Fallback = "rotation"
    seed: Count = 0
    action: str = "action"
    engine: Annotated[str, Field(max_length=2000)] = "mean"
    horizon: int | None = Field(default=None, ge=1, le=10_000)
    episodes: int = Field(default=100, ge=1, le=10**9)

    def _omitted_fields(self) -> set[str]:
        return {"episodes"} if self.horizon is None else set()

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.horizon is not None and self.reward is None:
            raise ValueError("reward is missing; a programme in episodes needs rewards of states")
        if len(set(self.states)) < len(self.states):
            raise ValueError("states: a name is given twice; keep one")
        if self.reward is not None:
            unknown = sorted(set(self.reward) - set(self.states))
            if unknown:
                raise ValueError(f"reward: unknown state {unknown[0]!r}; available: {', '.join(self.states)}")
            if len({self.reward.get(one, 0.0) for one in self.states}) == 1:
                raise ValueError("reward: all states have the same reward, so lists cannot help; give different rewards")
        return self


class Join(Body):
    """Arms that join in a period (by default from the first one on), each with a group and, if it is known, a state."""

    KIND = "join"
    period: int | None = None
    arms: list[Id] = Field(min_length=1)
    group: list[str]
    state: list[int]


class Leave(Body):
    """Arms that leave: the period is the first without them."""

    KIND = "leave"
    period: int
    arms: list[Id] = Field(min_length=1)
    reason: Words = ""


class Budget(Body):
    """Number of places: from now on, or in single periods (pairs of number and budget)."""

    KIND = "budget"
    usual: Count | None = None
    periods: list[tuple[int, Count]] = []


class WarmStart(Body):
    """Transitions from another source (G, S, 2, S), which count as at most `trust` visits per group, state and action."""

    KIND = "warm-start"
    groups: list[str]
    counts: list[list[list[list[FiniteFloat]]]]
    trust: Annotated[FiniteFloat, Field(gt=0)]


class Decide(Body):
    """The list of a period, and everything needed to reproduce and analyse it.

    through: the event up to which the journal was read. status: 'plan' or 'fallback', and why. listed and rule: who has a
    place and by which rule. left_out: arms that were drawn to be left out. present: how many arms
    there were; index, probability, draw, state: packed numbers of each, in order of joining. table: the index by group and
    state. promise: the expected reward that the places by index add, and its standard error.
    issued: the event that issued this list ahead, if it was used. lesson: of a programme in episodes, what the
    learner sees of the previous episode, in the first period of the next.
    """

    KIND = "decide"
    period: int
    through: int
    status: Literal["plan", "fallback"]
    why: Words = ""
    warnings: list[str] = []
    budget: Count
    listed: list[Id]
    rule: list[str]
    left_out: list[Id] = []
    present: Count
    index: str
    probability: str
    draw: str
    state: str
    table: dict[str, list[FiniteFloat]] = {}
    promise: tuple[FiniteFloat, FiniteFloat] | None = None
    fingerprint: str = ""
    issued: int | None = None
    lesson: str | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if len(self.listed) != len(self.rule):
            raise ValueError("every arm on the list needs a rule")
        if len(self.listed) > self.budget:
            raise ValueError(f"{len(self.listed)} arms are listed, the budget is {self.budget}")
        return self


class Ahead(Decide):
    """A list that is issued before its period is decided, for people who may be offline then."""

    KIND = "ahead"


class Override(Body):
    """Arms that people add to the list of a period, or remove from it."""

    KIND = "override"
    period: int
    add: list[Id] = []
    remove: list[Id] = []
    reason: Words


class Tell(Body):
    """Reports of a period, in columns: what was executed, the state at its end, the reward. -1 and null: not reported."""

    KIND = "tell"
    period: int
    arms: list[Id] = Field(min_length=1)
    state: list[int] | None = None
    executed: list[int] | None = None
    reward: list[FiniteFloat | None] | None = None
    reason: Words = ""


class Correct(Tell):
    """Reports that replace earlier ones."""

    KIND = "correct"


class Missing(Body):
    """Arms whose report of a period will never arrive."""

    KIND = "missing"
    period: int
    arms: list[Id] = Field(min_length=1)


class Undo(Body):
    """An earlier event that no longer counts."""

    KIND = "undo"
    event: int
    reason: Words


KINDS: dict[str, type[Body]] = {
    one.KIND: one for one in (Create, Join, Leave, Budget, WarmStart, Decide, Ahead, Override, Tell, Correct, Missing, Undo)
}


@dataclass(frozen=True)
class Event:
    """One line of a journal. `hash` seals the line and, through `previous`, all lines before it."""

    programme: str
    sequence: int
    kind: str
    key: str
    actor: str
    server_at: str
    client_at: str
    body: str
    previous: str
    hash: str = ""

    def expected_hash(self) -> str:
        """Return the expected hash of the line."""
        lines = [self.programme, str(self.sequence), self.kind, self.key, self.actor, self.server_at, self.client_at]
        text = json.dumps([*lines, self.body, self.previous], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def parse(self) -> Body:
        """Return the content of the event; StoreError if its kind is unknown or it is damaged."""
        if self.kind not in KINDS:
            raise StoreError(
                f"event {self.sequence} is of kind {self.kind!r}, which this version does not know; update rmab"
            )
        try:
            fields: Mapping[str, Any] = json.loads(self.body)
            return KINDS[self.kind].model_validate(fields, strict=False)
        except ValueError as error:
            raise StoreError(f"event {self.sequence} ({self.kind}) is damaged: {error!s:.200}", code="damaged") from error


def body_hash(body: str) -> str:
    """Return the hash of a body, to compare events with the same key."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def pack_numbers(values: FloatArray) -> str:
    """Return numbers (N,) as text that keeps every bit: base64 of little-endian doubles, compressed if that is shorter.

    Examples
    --------
    >>> unpack_numbers(pack_numbers(np.array([0.1, 2.0])))
    array([0.1, 2. ])
    >>> len(pack_numbers(np.zeros(1000))) < 100
    True
    """
    content = np.ascontiguousarray(values, dtype="<f8").tobytes()
    start = content[:SAMPLE]
    if len(zlib.compress(start, 1)) < 0.8 * len(start):
        return COMPRESSED + base64.b64encode(zlib.compress(content, 1)).decode("ascii")
    return base64.b64encode(content).decode("ascii")


def unpack_numbers(text: str) -> FloatArray:
    """Return the numbers (N,) of `pack_numbers`."""
    content = base64.b64decode(text.removeprefix(COMPRESSED), validate=True)
    if text.startswith(COMPRESSED):
        content = zlib.decompress(content)
    return np.frombuffer(content, dtype="<f8").astype(np.float64)
