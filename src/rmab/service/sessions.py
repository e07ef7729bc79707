"""Sessions of browsers: a signed cookie that names a token's id and when it ends, and a value against forged requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass

COOKIE = "rmab_session"


@dataclass(frozen=True)
class Session:
    """Who is signed in: the id of a token, when the session ends (seconds since 1970), and a random value."""

    account: str
    ends: float
    nonce: str


class Sessions:
    """Signs and verifies sessions.

    Parameters
    ----------
    secret : bytes
        The key of the signature.
    hours : float
        Duration of a session.

    Examples
    --------
    >>> sessions = Sessions(b"key", hours=1)
    >>> cookie = sessions.begin("4f2a")
    >>> sessions.read(cookie).account, sessions.read(cookie + "x")
    ('4f2a', None)
    """

    def __init__(self, secret: bytes, hours: float) -> None:
        self._secret, self.seconds = secret, 3600.0 * hours

    def begin(self, account: str) -> str:
        """Return the cookie of a new session."""
        content = json.dumps([account, time.time() + self.seconds, secrets.token_urlsafe(16)])
        text = base64.urlsafe_b64encode(content.encode()).decode()
        return f"{text}.{self._sign('session', text)}"

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it was not signed here, or has ended."""
        text, _, signature = cookie.rpartition(".")
        if not text.isascii() or not hmac.compare_digest(signature.encode(), self._sign("session", text).encode()):
            return None
        found = Session(*json.loads(base64.urlsafe_b64decode(text)))
        return found if found.ends > time.time() else None

    def csrf(self, session: Session) -> str:
        """Return the value that a form of the session must send back, so that no other site can send it."""
        return self._sign("form", f"{session.account} {session.nonce}")

    def is_csrf(self, session: Session, given: str) -> bool:
        """Return whether a form of the session sent the right value."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.csrf(session).encode())

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
