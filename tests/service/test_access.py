"""Who may do what: tokens, roles, programmes, sessions, and what an attacker tries."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

import rmab
from rmab.errors import ModelError
from rmab.live.schema import TOKEN
from rmab.service import Settings, create_token, list_tokens, revoke_token
from rmab.service.reading import XLSX
from rmab.service.running import check_address
from rmab.service.sessions import Sessions
from services import IDS, Caller, fill, rows, service

P = "programmes/mothers"
QUICK = Settings(token_seconds=0.0)


def test_the_store_has_hashes_only(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/p.db") as store:
        secret, account = create_token(store.engine, "ann", "operator", programmes=["mothers"], days=30)
        with store.engine.begin() as connection:
            kept = repr(connection.execute(sa.select(TOKEN)).all())
        assert secret.rpartition("_")[2] not in kept
        assert account.id in kept
        assert [(one.owner, one.grants, one.used_at) for one in list_tokens(store.engine)] == [
            ("ann", {"mothers": "operator"}, "")
        ]
        for options, message in (
            ({"role": "owner"}, "role must be one of viewer, operator, admin"),
            ({"role": "viewer", "days": 0}, "days must be more than 0"),
        ):
            with pytest.raises(ModelError, match=message):
                create_token(store.engine, "ann", **options)
        with pytest.raises(ModelError, match="unknown token 'x'"):
            revoke_token(store.engine, "x")


def test_roles_and_programmes(tmp_path: Path) -> None:
    with service(tmp_path, QUICK) as running:
        fill(running.store)
        fill(running.store, "fathers")
        viewer, operator, admin = (
            running.caller(one, one, programmes=["mothers"]) for one in ("viewer", "operator", "admin")
        )
        tell = {"period": "2026-W47", "rows": rows()[:1]}
        for caller, expected in (
            (running.caller(), (401, 401, 401, 401)),
            (viewer, (200, 403, 403, 404)),
            (operator, (200, 200, 403, 404)),
            (admin, (200, 200, 200, 404)),
        ):
            found = (
                caller("GET", P).status,
                caller("POST", f"{P}/observations", tell).status,
                caller("POST", f"{P}/budgets", {"budget": 3}).status,
                caller("POST", "programmes/fathers/observations", tell).status,
            )
            assert found == expected
            assert caller("POST", "programmes", {"name": "x", "states": ["a", "b"], "budget": 1}).status in (401, 403)
        assert viewer("GET", "programmes").json["programmes"] == ["mothers"]
        assert viewer("POST", f"{P}/decide", {"states": {"m00": "lapsed"}}).status == 403
        assert {one.actor for one in running.store.programme("mothers").events[2:]} == {"operator", "admin"}
        everywhere = running.caller("admin", "boss")
        assert everywhere("POST", "programmes", {"name": "x", "states": ["a", "b"], "budget": 1}).status == 201
        assert next(one for one in list_tokens(running.store.engine) if one.owner == "boss").used_at


def test_tokens_that_are_wrong_old_or_revoked(tmp_path: Path) -> None:
    with service(tmp_path, QUICK) as running:
        fill(running.store)
        caller = running.caller("viewer")
        assert caller("GET", P).status == 200
        number, secret = caller.token.split("_", 2)[1:]
        other = running.caller("viewer").token.split("_", 2)
        for token in (
            "",
            "x",
            f"rmab_{number}_{secret[:-1]}x",
            f"rmab_{other[1]}_{secret}",
            f"rmab_{number}_{'é' * 43}".encode().decode("latin-1"),
        ):
            found = Caller(running.url, token)("GET", P)
            assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer"), token
        assert Caller(running.url)("GET", P, authorization="Basic YTpi").status == 401
        revoke_token(running.store.engine, number)
        assert caller("GET", P).json["detail"] == "the token was revoked"
        late = running.caller("viewer")
        yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds")
        with running.store.engine.begin() as connection:
            connection.execute(sa.update(TOKEN).values(expires_at=yesterday))
        assert late("GET", P).json["detail"] == "the token has expired"
        assert Caller(running.url)("GET", P).status == 401, "a store that ever had a token is not open again"


def test_wrong_tokens_are_slowed_down_and_nobody_else_is(tmp_path: Path) -> None:
    with service(tmp_path, Settings(failures=5, failure_seconds=60)) as running:
        fill(running.store)
        good, bad = running.caller("viewer"), Caller(running.url, "rmab_0_x")
        assert good("GET", P).status == 200
        found = [bad("GET", P) for _ in range(7)]
        assert [one.status for one in found] == [401] * 5 + [429] * 2
        assert 0 < int(found[-1].headers["retry-after"]) <= 60
        assert good("GET", P).status == 200


def test_other_addresses_need_tokens(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/p.db") as store:
        for host in ("0.0.0.0", "::", "192.168.1.4", "example.org"):
            with pytest.raises(ModelError, match="rmab live token create STORE OWNER --role operator"):
                check_address(store, host)
        for host in ("127.0.0.1", "::1", "localhost"):
            check_address(store, host)
        secret, account = create_token(store.engine, "ann", "admin")
        check_address(store, "0.0.0.0")
        revoke_token(store.engine, account.id)
        with pytest.raises(ModelError, match="no valid token"):
            check_address(store, "0.0.0.0")
        assert secret


def test_pages_of_other_sites_cannot_use_an_open_service(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        fill(running.store)
        call, body = running.caller(), {"budget": 1}
        port = urlsplit(running.url).port
        assert call("POST", f"{P}/budgets", body, origin="https://evil.example").json["code"] == "foreign-origin"
        assert call("POST", f"{P}/budgets", body, origin="null").status == 403
        assert call("POST", f"{P}/budgets", body, sec_fetch_site="cross-site").status == 403
        assert call("GET", P, host=f"evil.example:{port}").json["code"] == "bad-host"
        assert call("POST", f"{P}/budgets", b'{"budget": 1}', content_type="text/plain").status == 422
        assert call("POST", f"{P}/budgets", body, origin=running.url).status == 200
        assert call("GET", P, host=f"localhost:{port}").status == 200
        answer = call("GET", P)
        assert "access-control-allow-origin" not in answer.headers
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert len(running.store.programme("mothers").events) == 3


def test_sessions_are_signed_and_end() -> None:
    sessions = Sessions(b"key", hours=1)
    cookie = sessions.begin("abc")
    found = sessions.read(cookie)
    assert found is not None
    assert sessions.is_csrf(found, sessions.csrf(found))
    assert not sessions.is_csrf(found, "")
    assert not sessions.is_csrf(found, "é")
    for other in ("", ".", "a.b", cookie[:-1], "A" + cookie, cookie.replace(".", ".."), "é" + cookie):
        assert sessions.read(other) is None
    assert Sessions(b"other", hours=1).read(cookie) is None
    assert sessions.read(Sessions(b"key", hours=-1).begin("abc")) is None


def test_bodies_that_are_too_large_or_too_slow(tmp_path: Path) -> None:
    with service(tmp_path, Settings(max_bytes=2000, max_rows=5, body_seconds=0.5)) as running:
        fill(running.store)
        call = running.caller()
        where = f"{P}/observations?period=2026-W47"
        assert call("POST", where, b"x" * 3000, content_type="text/csv").json["code"] == "too-large"
        many = ("arm,state\n" + "\n".join(f"{one},engaged" for one in IDS)).encode()
        assert call("POST", where, many, content_type="text/csv").json["code"] == "too-many-rows"
        body = {"period": "2026-W47", "rows": rows()}
        assert (call("POST", f"{P}/observations", body).status, len(IDS)) == (413, 12)
        parts = urlsplit(running.url)
        head = f"POST /api/v1/{where} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: text/csv\r\n"
        with socket.create_connection((str(parts.hostname), parts.port), timeout=10) as chunked:  # no length is declared
            chunked.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            chunked.sendall(b"bb8\r\n" + b"x" * 3000 + b"\r\n")
            assert b"413" in chunked.recv(100)
        with socket.create_connection((str(parts.hostname), parts.port), timeout=10) as slow:
            slow.sendall(f"{head}Content-Length: 100\r\n\r\na".encode())
            assert b"408" in slow.recv(100)
        assert call("GET", "/healthz").status == 200
        assert len(running.store.programme("mothers").events) == 2


def test_paths_that_lead_elsewhere(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        fill(running.store)
        call = running.caller()
        for path in (
            "../../etc/passwd",
            "%2e%2e/%2e%2e/etc/passwd",
            "mothers/../mothers",
            "mothers%00",
            "a" * 5000,
            "mothers/decisions/..%2f..%2f",
        ):
            found = call("GET", f"programmes/{path}")
            assert found.status in (400, 404, 422), path
            assert b"root:" not in found.content
        assert call("GET", f"{P}/arms/..%2f..%2fetc").status == 404


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("observations", b"[" * 100_000 + b"]" * 100_000, "application/json"),
        ("overrides", b'{"period":' + b"[" * 50_000 + b"]" * 50_000 + b"}", "application/json"),
        ("overrides", b'{"period":"2026-W47","add":["m\\u0000"],"reason":"x"}', "application/json"),
        ("overrides", b'{"period":"2026-W47","add":["m01"],"reason":"\\ud800"}', "application/json"),
        ("undo", b'{"event":1e400,"reason":"x"}', "application/json"),
        ("undo", b'{"event":99999999999999999999,"reason":"x"}', "application/json"),
        ("warm-starts", b'{"counts":[[[[NaN]]]]}', "application/json"),
        ("observations?period=2026-W47", b"\xff\xfe\x00", "text/csv"),
        ("observations?period=2026-W47", b"", "text/csv"),
        ("observations?period=2026-W47", b"PK\x03\x04junk", XLSX),
    ],
)
def test_hostile_bodies_are_refused(hostile: Caller, path: str, body: bytes, kind: str) -> None:
    assert hostile("POST", f"{P}/{path}", body, content_type=kind).status in (400, 422)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with service(tmp_path_factory.mktemp("hostile")) as running:
        fill(running.store)
        yield running.caller()


def test_engines_are_names_and_import_nothing(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        call = running.caller()
        for engine in ("os:system", {"name": "os:system"}, "a.b:c", "../x"):
            body = {"name": "x", "states": ["a", "b"], "budget": 1, "engine": engine}
            assert call("POST", "programmes", body).status == 422
        fill(running.store)
        assert call("GET", f"{P}/shadow?engine=os:system").status == 422
        assert call("GET", f"{P}/shadow?engine=mean").status == 200


def test_what_people_write_stays_text(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        p = fill(running.store)
        nasty = '=HYPERLINK("http://evil")'
        p.join([nasty], group="<b>", state="lapsed", key="x")
        p.override("2026-W47", add=[nasty], reason="<script>alert(1)</script>")
        call = running.caller()
        listed = call("PUT", f"{P}/decisions/2026-W47?format=csv").content.decode()
        assert "\"'=HYPERLINK" in listed
        assert nasty in call("GET", f"{P}/decisions/2026-W47").json["ids"]
        told = b'arm,state\n"\'=HYPERLINK(""http://evil"")",engaged\n'
        assert call("POST", f"{P}/observations?period=2026-W47", told, content_type="text/csv").status == 200
