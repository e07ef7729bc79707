"""Tokens: who may use the service, and in which role. A token is shown once, when it is created; only its hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from rmab.errors import ModelError
from rmab.live.journal import reading, writing
from rmab.live.schema import GRANT, TOKEN

ROLES = ("viewer", "operator", "admin")  # each includes the ones before
EVERYTHING = ""  # the name that means all programmes
SHAPE = re.compile(r"rmab_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
SELDOM = timedelta(minutes=1)  # between two records of last use


@dataclass(frozen=True)
class Account:
    """A token in the store.

    Attributes
    ----------
    id : str
        Public part of the token; `rmab live token revoke` takes it.
    owner : str
        Who uses it: recorded as the actor of every event.
    grants : dict of str to str
        The role by programme; the empty name means all programmes.
    created_at, expires_at, revoked_at, used_at : str
        Times in UTC; empty for never.
    """

    id: str
    owner: str
    grants: Mapping[str, str]
    created_at: str = ""
    expires_at: str = ""
    revoked_at: str = ""
    used_at: str = ""

    def role(self, programme: str) -> str | None:
        """Return the role in a programme, the higher of the programme's and the one for all; None for no access."""
        found = [self.grants[one] for one in (programme, EVERYTHING) if one in self.grants]
        return max(found, key=ROLES.index, default=None)

    def may(self, role: str, programme: str) -> bool:
        """Return whether it has at least a role in a programme."""
        mine = self.role(programme)
        return mine is not None and ROLES.index(mine) >= ROLES.index(role)

    @property
    def is_valid(self) -> bool:
        """Whether it is neither revoked nor expired."""
        return not self.revoked_at and (not self.expires_at or datetime.fromisoformat(self.expires_at) > datetime.now(UTC))


LOCAL = Account("local", "local", {EVERYTHING: "admin"})  # for this machine, as long as the store has no token


def create_token(
    engine: sa.Engine, owner: str, role: str, *, programmes: Sequence[str] = (), days: float | None = 365.0
) -> tuple[str, Account]:
    """Create a token, and return it with its account; it cannot be shown again.

    Parameters
    ----------
    engine : Engine
        Database of the store.
    owner : str
        Who uses it; recorded with every change.
    role : {'viewer', 'operator', 'admin'}
        The role.
    programmes : sequence of str
        Programmes of the role; by default all.
    days : float, optional
        Days until it expires; None for never.
    """
    if role not in ROLES:
        raise ModelError(f"role must be one of {', '.join(ROLES)}, got {role!r:.40}", field="role")
    if not owner or len(owner) > 200 or not owner.isprintable():
        raise ModelError(f"the owner must be 1 to 200 printable characters, got {owner!r:.60}", field="owner")
    if days is not None and not 0 < days <= 36500:
        raise ModelError(f"days must be more than 0 and at most 36,500, got {days:g}", field="days")
    now = datetime.now(UTC)
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    expires = "" if days is None else (now + timedelta(days=days)).isoformat(timespec="seconds")
    account = Account(number, owner, dict.fromkeys(programmes or [EVERYTHING], role), _timestamp(now), expires)
    with writing(engine) as connection:
        row = {name: getattr(account, name) for name in TOKEN.c.keys() if name != "digest"}  # noqa: SIM118  (of SQLAlchemy)
        connection.execute(sa.insert(TOKEN).values(**row, digest=_digest(secret)))
        rows = [{"token": number, "programme": one, "role": role} for one in account.grants]
        connection.execute(sa.insert(GRANT), rows)
    return f"rmab_{number}_{secret}", account


def list_tokens(engine: sa.Engine) -> list[Account]:
    """Return all accounts, the oldest first."""
    with reading(engine) as connection:
        grants: dict[str, dict[str, str]] = {}
        for row in connection.execute(sa.select(GRANT).order_by(GRANT.c.programme)):
            grants.setdefault(row.token, {})[row.programme] = row.role
        rows = connection.execute(sa.select(TOKEN).order_by(TOKEN.c.created_at, TOKEN.c.id)).all()
    return [_account(row, grants.get(row.id, {})) for row in rows]


def revoke_token(engine: sa.Engine, number: str) -> Account:
    """Revoke a token, by its id; ModelError if it is unknown."""
    with writing(engine) as connection:
        mine = TOKEN.c.id == number
        if connection.scalar(sa.select(TOKEN.c.id).where(mine)) is None:
            raise ModelError(f"unknown token {number!r:.40}; `rmab live token list` shows them", code="unknown-token")
        connection.execute(sa.update(TOKEN).where(mine, TOKEN.c.revoked_at == "").values(revoked_at=_timestamp()))
    return next(one for one in list_tokens(engine) if one.id == number)


def find_account(engine: sa.Engine, token: str) -> Account | None:
    """Return the account of a token, valid or not; None if the token is wrong."""
    found = SHAPE.fullmatch(token)
    if found is None:
        return None
    return _look_up(engine, found[1], _digest(found[2]))


def account_of(engine: sa.Engine, number: str) -> Account | None:
    """Return the account of the id of a token, for a session that was begun with it."""
    return _look_up(engine, number, None)


def has_tokens(engine: sa.Engine) -> bool:
    """Return whether a token was ever created: from then on the service needs one."""
    with reading(engine) as connection:
        return connection.scalar(sa.select(TOKEN.c.id).limit(1)) is not None


def record_use(engine: sa.Engine, account: Account) -> None:
    """Record that a token was used, at most once a minute."""
    now = datetime.now(UTC)
    if account.used_at and now - datetime.fromisoformat(account.used_at) < SELDOM:
        return
    with writing(engine) as connection:
        connection.execute(sa.update(TOKEN).where(TOKEN.c.id == account.id).values(used_at=_timestamp(now)))


def _look_up(engine: sa.Engine, number: str, digest: str | None) -> Account | None:
    with reading(engine) as connection:
        row = connection.execute(sa.select(TOKEN).where(TOKEN.c.id == number)).one_or_none()
        if row is None or (digest is not None and not hmac.compare_digest(row.digest, digest)):
            return None
        grants = connection.execute(sa.select(GRANT.c.programme, GRANT.c.role).where(GRANT.c.token == number))
        return _account(row, {one.programme: one.role for one in grants})


def _account(row: sa.Row[tuple[object, ...]], grants: Mapping[str, str]) -> Account:
    times = {name: getattr(row, name) for name in ("created_at", "expires_at", "revoked_at", "used_at")}
    return Account(row.id, row.owner, grants, **times)


def _digest(secret: str) -> str:
    """Return the hash of a secret of 256 random bits: it cannot be guessed, so a slow hash is not needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _timestamp(now: datetime | None = None) -> str:
    return (now or datetime.now(UTC)).isoformat(timespec="seconds")
