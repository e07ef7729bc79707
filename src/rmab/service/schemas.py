"""Schemas of request and response bodies of the API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Period = Annotated[str, Field(min_length=1, max_length=60, examples=["2026-W47"])]
ArmId = Annotated[str, Field(min_length=1, max_length=200, examples=["m017"])]
Reason = Annotated[str, Field(min_length=1, max_length=2000, examples=["asked for a call"])]
EngineName = Annotated[  # only a name: nothing that would import code
    str, Field(pattern=r"^[a-z][a-z0-9-]{0,59}$", description="Method for the index.", examples=["sampled", "mean"])
]
Text = str | int | float | bool | None
FAR = "Allow a period that is far from all known ones: by more than 4 periods and more than a day."
Skip = Field(False, description=FAR)


class Body(BaseModel):
    """The body of a request: unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class NewProgramme(Body):
    """A new programme; the fields are those of `Store.create`."""

    name: str = Field(min_length=1, max_length=200, examples=["mothers"])
    states: list[str] = Field(min_length=2, max_length=1000, examples=[["lapsed", "engaged"]])
    budget: int = Field(ge=0, le=2**53, examples=[200])
    every: str = Field("week", max_length=60)
    start: str | int | None = None
    zone: str = Field("", max_length=60)
    lookahead: int = Field(12, ge=1, le=1000)
    reward: dict[str, FiniteFloat] | None = Field(None, examples=[{"engaged": 1}])
    floor: int | None = Field(None, ge=1)
    control: float = Field(0.0, ge=0, le=1)
    random_share: float = Field(0.0, ge=0, le=1)
    fallback: Literal["rotation", "random", "last", "nothing"] = "rotation"
    seed: int = Field(0, ge=0, le=2**53)
    action: str = Field("action", min_length=1, max_length=60, examples=["call"])
    engine: EngineName | None = None
    horizon: int | None = Field(None, ge=1, le=100_000)
    episodes: int = Field(100, ge=1, le=10**9)


class Report(Body):
    """Reports of a period. With a reason they replace earlier reports; empty values are not reported."""

    period: Period
    rows: list[dict[str, Text]] | dict[str, list[Text]] = Field(
        examples=[[{"arm": "m017", "executed": "yes", "state": "engaged"}]]
    )
    reason: str | None = Field(
        None, max_length=2000, description="Why a correction is needed; without it, earlier reports are not replaced."
    )
    client_at: str = Field("", max_length=40, description="The time of the client's clock; only recorded.")
    dry_run: bool = Field(False, description="Only check, without writing.")
    skip: bool = Skip


class Arms(Body):
    """Arms that join from a period on."""

    arms: list[ArmId] = Field(min_length=1)
    group: str | list[str] | None = Field(None, examples=["north"])
    state: str | list[str | None] | None = Field(None, examples=["lapsed"])
    period: Period | None = None


class Departure(Body):
    """Arms that leave: the period is the first without them."""

    arms: list[ArmId] = Field(min_length=1)
    period: Period
    reason: str = Field("", max_length=2000)


class Override(Body):
    """Arms to add to the list of a period, or to remove from it."""

    period: Period
    add: list[ArmId] = []
    remove: list[ArmId] = []
    reason: Reason


class NewBudget(Body):
    """The budget: from now on (a number), or in single periods."""

    budget: Annotated[int, Field(ge=0, le=2**53)] | dict[str, Annotated[int, Field(ge=0, le=2**53)]] = Field(
        examples=[150, {"2026-W52": 120}]
    )


class Ahead(Body):
    """Number of lists to issue ahead."""

    periods: int = Field(ge=1, le=1000, examples=[4])


class Missing(Body):
    """Reports that will never arrive; by default all outstanding ones."""

    period: Period
    arms: list[ArmId] | None = None
    skip: bool = Skip


class UndoEvent(Body):
    """An event to undo."""

    event: int = Field(ge=1, le=2**53, examples=[12])
    reason: Reason


class WarmStart(Body):
    """Transitions from another source, (G, S, 2, S), that count as at most `trust` visits per group, state and action."""

    groups: list[str] = []
    counts: list[list[list[list[FiniteFloat]]]]
    trust: FiniteFloat = Field(20.0, gt=0)


class States(Body):
    """The state of every arm now."""

    states: dict[ArmId, str] = Field(min_length=1, examples=[{"spot-1": "waiting", "spot-2": "idle"}])
    period: Period | None = Field(None, description="The period whose budget holds; by default the current one.")


class Written(BaseModel):
    """The number of the event that was written, 0 for none, and the number of rows."""

    event: int
    rows: int = 0


class Reported(Written):
    """The event of reports, and how many of their arms are not counted as transitions yet."""

    not_counted: int | None = Field(description="Number of reported arms that are not counted yet; null for a dry run.")
    lacking: dict[str, int] = Field(
        description="The same by what is unknown: start (the state at the start of the period), executed, or state.",
        examples=[{"executed": 2}],
    )


class Row(BaseModel):
    """An arm in a decision."""

    arm: str
    group: str
    state: str
    action: bool
    rank: int
    index: float
    probability: float
    by: str
    reason: str


class DecisionOut(BaseModel):
    """Who is on the list of a period, and why."""

    period: str
    budget: int
    arms: int
    ids: list[str]
    notes: list[str]
    words: dict[str, str]
    rows: list[Row]


class CommandOut(BaseModel):
    """What a machine should do now, and until when."""

    active: list[str]
    plan_age: float | None = Field(description="Age of the plan in seconds; null if there is none.")
    safe: bool = Field(description="Whether the declared fallback decided, because there is no usable plan.")
    expires: float = Field(description="Seconds since 1970; afterwards fall back to a safe default.")
    period: str = Field(description="The period whose budget holds.")
    budget: int
    warning: str = Field(description="Why the fallback decided, or what failed in the background; empty if nothing did.")


class EventOut(BaseModel):
    """One line of the journal."""

    programme: str
    sequence: int
    kind: str
    key: str
    actor: str
    server_at: str
    client_at: str
    body: str
    previous: str
    hash: str


class EventsOut(BaseModel):
    """A part of the journal; `next` is the `after` of the following part, null at the end."""

    events: list[EventOut]
    next: int | None


class ProgrammeOut(BaseModel):
    """A programme: its settings, and the last event."""

    name: str
    role: str
    head: str
    config: dict[str, Any]


class ProgrammesOut(BaseModel):
    """Programmes that the caller may see; `next` is the `after` of the following part, null at the end."""

    programmes: list[str]
    next: str | None


class FindingOut(BaseModel):
    """A warning."""

    severity: Literal["red", "yellow"]
    what: str


class StatusOut(BaseModel):
    """The status of a programme."""

    arms: int
    last: str
    due: str
    budget: int
    events: int
    missing: dict[str, int]
    findings: list[FindingOut]
    fallback: str


class ArmOut(BaseModel):
    """A current or former arm."""

    arm: str
    group: str
    takes_part: bool
    state: str | None
    waited: int | None = Field(description="Periods since its last turn.")


class ArmsOut(BaseModel):
    """Arms in the order in which they joined; `next` is the `after` of the following part, null at the end."""

    arms: list[ArmOut]
    next: int | None


class ProblemOut(BaseModel):
    """An error (RFC 9457): `code` is stable, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    location: dict[str, Any]
    problems: list[dict[str, Any]] | None = Field(None, description="All errors of rows or lines, with their numbers.")
    fields: list[dict[str, Any]] | None = Field(None, description="All errors of fields of the body.")
