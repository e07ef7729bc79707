"""The settings of the service: limits and times."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """Limits of the service.

    Attributes
    ----------
    loopback : bool
        Whether only this machine can reach it. Then a store without tokens needs none.
    max_bytes, max_rows : int
        The largest body of a request, and the most rows in it; larger requests get 413.
    body_seconds : float
        Time limit for a body to arrive; slower requests get 408.
    session_hours : float
        Duration of a browser session.
    failures, failure_seconds : int
        Number of wrong tokens that an address may send in this many seconds; after that, 429.
    token_seconds : float
        Lifetime of a cached token: a revocation takes effect within this time.
    lifetime : float
        Seconds after which a command of `decide` expires.
    secret : bytes
        Key that signs sessions. Random by default, so that sessions end with the process.
    """

    loopback: bool = True
    max_bytes: int = 20_000_000
    max_rows: int = 200_000
    body_seconds: float = 60.0
    session_hours: float = 12.0
    failures: int = 10
    failure_seconds: float = 300.0
    token_seconds: float = 2.0
    lifetime: float = 30.0
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
