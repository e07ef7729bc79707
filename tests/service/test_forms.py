"""Pages without a browser: forms that are forged, texts that are markup, files, roles, and new programmes from a log."""

import re
import shutil
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode

import pytest

import rmab
from rmab.common.tables import table_bytes
from rmab.service import Settings
from rmab.service.demo import Demo
from rmab.service.pages.frame import ASSETS, catalogues, choose_language
from services import Answer, Caller, Service, fill, service


class Page:
    """A browser of a few lines: cookies and forms."""

    def __init__(self, caller: Caller, token: str = "") -> None:
        self.caller, self.cookie = Caller(caller.url), ""
        if token:
            self.post("/sign-in", token=token, next="/")

    def _keep(self, found: Answer) -> Answer:
        for one in SimpleCookie(found.headers.get("set-cookie", "")).values():
            self.cookie = f"{one.key}={one.value}"
        return found

    def get(self, path: str) -> Answer:
        return self._keep(self.caller("GET", path, cookie=self.cookie))

    def csrf(self, path: str) -> str:
        return re.findall(r'name="csrf" value="([^"]+)"', self.get(path).content.decode())[0]

    def post(self, path: str, **fields: str) -> Answer:
        body = urlencode(fields).encode()
        kind = "application/x-www-form-urlencoded"
        return self._keep(self.caller("POST", path, body, cookie=self.cookie, content_type=kind))

    def upload(self, path: str, name: str, content: bytes, **fields: str) -> Answer:
        parts = [f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = b"".join([*parts, head, content, b"\r\n--x--\r\n"])
        return self._keep(
            self.caller("POST", path, body, cookie=self.cookie, content_type="multipart/form-data; boundary=x")
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path, Settings(token_seconds=0.0)) as found:
        fill(found.store).ask("2026-W46")
        yield found


def test_a_form_that_does_not_come_from_the_page_is_refused(running: Service) -> None:
    token = running.caller("operator").token
    page = Page(running.caller(), token)
    fields = {"period": "2026-W46", "add": "m05", "reason": "x", "key": "k"}
    good = page.csrf("/p/mothers")
    other = Page(running.caller(), running.caller("operator", "bea").token)
    for forged in ("", "x", other.csrf("/p/mothers")):
        assert page.post("/p/mothers/override", csrf=forged, **fields).status == 403
    assert page.post("/p/mothers/override", **fields).status == 403
    stolen = page.caller("POST", "programmes/mothers/budgets", {"budget": 1}, cookie=page.cookie)
    assert (stolen.status, stolen.json["code"]) == (403, "bad-form"), "the API, too"
    assert len(running.store.programme("mothers").events) == 3
    tag = re.findall(r'name="tag" value="([^"]+)"', page.get("/p/mothers").content.decode())[0].replace("&#34;", '"')
    for _ in range(2):
        assert page.post("/p/mothers/override", csrf=good, tag=tag, **fields).status in (303, 409)
    assert len(running.store.programme("mothers").events) == 4


def test_sessions_and_where_they_lead(running: Service) -> None:
    caller = running.caller("viewer")
    page = Page(caller)
    assert page.get("/p/mothers").headers["location"] == "/sign-in?next=%2Fp%2Fmothers"
    assert b"The token is wrong" in page.post("/sign-in", token="rmab_x", next="/").content
    for evil in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert page.post("/sign-in", token=caller.token, next=evil).headers["location"] == "/"
    found = page.post("/sign-in", token=caller.token, next="/p/mothers")
    assert found.headers["location"] == "/p/mothers"
    assert all(word in found.headers["set-cookie"].lower() for word in ("httponly", "samesite=lax"))
    assert page.get("/p/mothers").status == 200
    behind = page.caller("POST", "/sign-in", urlencode({"token": caller.token}).encode(), x_forwarded_proto="https",
                         content_type="application/x-www-form-urlencoded")  # fmt: skip
    assert "Secure" in behind.headers["set-cookie"]
    page.post("/sign-out", csrf=page.csrf("/p/mothers"))
    assert page.get("/p/mothers").status == 303


def test_what_people_write_is_shown_as_text(running: Service) -> None:
    p, nasty = running.store.programme("mothers"), "<script>alert(1)</script>"
    p.join([nasty, "'\"><img src=x onerror=alert(1)>"], group=nasty, state="lapsed", period="2026-W47", key="n")
    p.override("2026-W47", add=[nasty], reason=nasty)
    p.ask("2026-W47")
    page = Page(running.caller())
    for path in (
        "",
        "/people",
        "/journal",
        "/evidence",
        "/budget",
        f"/person?{urlencode({'arm': nasty})}",
        f"?search={nasty}",
    ):
        found = page.get(f"/p/mothers{path}".replace("<", "%3C").replace(">", "%3E")).content.decode()
        assert "<script>alert" not in found, path
        assert "<img src=x" not in found, path
        assert "&lt;script&gt;" in found or path in ("/budget", "/evidence"), path
    assert b"<script>alert" not in page.get("/p/mothers?period=%3Cscript%3Ealert(1)").content


def test_roles_on_the_page(running: Service) -> None:
    viewer = Page(running.caller(), running.caller("viewer").token)
    text = viewer.get("/p/mothers").content.decode()
    assert "Cross out" not in text
    assert "Make the list" not in text
    token = viewer.csrf("/p/mothers")
    for path in ("ask", "override", "reports", "missing", "undo", "budget", "people", "leave"):
        found = viewer.post(
            f"/p/mothers/{path}", csrf=token, period="2026-W47", reason="x", add="m01", event="2", places="1"
        )
        assert found.status == 403, path
    operator = Page(running.caller(), running.caller("operator", programmes=["mothers"]).token)
    assert operator.post("/p/mothers/budget", csrf=operator.csrf("/p/mothers"), places="1").status == 403
    assert operator.get("/new").status == 403
    assert operator.post("/new", csrf=operator.csrf("/p/mothers"), step="create", name="x").status == 403


def test_files_join_leave_and_what_will_not_come(running: Service) -> None:
    page = Page(running.caller())
    csrf = page.csrf("/p/mothers")
    joined = page.upload("/p/mothers/people", "new.csv", b"arm,group,state\nn1,north,lapsed\n", csrf=csrf, period="2026-W47")
    assert joined.status == 303
    bad = page.upload("/p/mothers/people", "new.txt", b"x", csrf=csrf)
    assert (bad.status, b"must end in .csv or .xlsx" in bad.content) == (422, True)
    left = page.post("/p/mothers/leave", csrf=csrf, key="l", arm="m02", period="2026-W47", reason="moved")
    assert left.headers["location"].startswith("/p/mothers/people?done=left")
    assert page.post("/p/mothers/leave", csrf=csrf, key="m", arm="zz", period="2026-W47").status == 404
    assert page.post("/p/mothers/missing", csrf=csrf, key="n", period="2026-W46").status == 303
    assert page.post("/p/mothers/budget", csrf=csrf, key="b", places="2", period="2026-W49").status == 303
    assert b"this period only" in page.get("/p/mothers/budget").content
    assert page.get("/p/mothers/file?period=2026-W46&kind=xlsx").content[:2] == b"PK"
    told = page.upload("/p/mothers/reports", "r.csv", b"arm,state\nm01,engaged\n", csrf=csrf, period="2026-W46", do="send")
    assert told.status == 303
    wrong = page.upload("/p/mothers/reports", "r.csv", b"arm,state\nm01,lapsed\n", csrf=csrf, period="2026-W46", do="send")
    assert b"was reported with state" in wrong.content


def test_a_programme_from_a_log_and_from_nothing(running: Service) -> None:
    page = Page(running.caller())
    csrf = page.csrf("/new")
    log = table_bytes(rmab.data.example_log(arms=60, weeks=12), ".csv")
    found = page.upload("/new", "log.csv", log, csrf=csrf, step="log").content.decode()
    draft = re.findall(r'name="draft" value="([^"]+)"', found)[0]
    columns = {"arm": "id", "period": "week", "state": "state", "action": "called", "group": "age"}
    checked = page.post("/new", csrf=csrf, step="check", draft=draft, **columns).content.decode()
    assert "60 people" in checked or "people, 12 periods" in checked
    assert "Checks of the log" in checked
    wrong = page.post("/new", csrf=csrf, step="check", draft=draft, **{**columns, "state": "nothing"})
    assert wrong.status == 422
    made = page.post(
        "/new",
        csrf=csrf,
        step="create",
        draft=draft,
        name="from a log",
        budget="5",
        good="engaged",
        random_share="20",
        **columns,
    )
    assert made.headers["location"] == "/p/from%20a%20log"
    p = running.store.programme("from a log")
    assert p.statistics.counts.sum() > 100
    assert (p.config.budget, p.config.random_share, {one.actor for one in p.events}) == (5, 0.2, {"local"})
    plain = {"name": "plain", "states": "low, high", "good": "high", "budget": "3", "floor": "", "control": "10"}
    assert page.post("/new", csrf=csrf, step="create", **plain).status == 303
    assert b"There is a programme plain already." in page.post("/new", csrf=csrf, step="create", **plain).content
    assert (
        b"write a number" in page.post("/new", csrf=csrf, step="create", **{**plain, "name": "y", "budget": "many"}).content
    )
    assert page.get("/p/plain").status == 200
    other = Page(running.caller(), running.caller("admin", "eve").token)
    gone = other.post("/new", csrf=other.csrf("/new"), step="check", draft=draft, **columns)
    assert b"upload it again" in gone.content, "drafts belong to who uploaded them"


def test_every_text_is_in_the_catalogue_and_every_entry_is_used() -> None:
    known = catalogues()["en"]
    sources = [*(ASSETS / "templates").glob("*.html"), *(ASSETS.parent / "pages").glob("*.py")]
    content = "\n".join(one.read_text(encoding="utf-8") for one in sources)
    used = set(re.findall(r"(?:\bt|say)\(\s*f?[\"']([a-z_]+\.[a-z_]*[a-z])[\"']", content))
    used |= {
        key for pair in re.findall(r'"([a-z_]+\.[a-z_]+)" if [^,)]+? else "([a-z_]+\.[a-z_]+)"', content) for key in pair
    }
    assert used <= set(known), sorted(used - set(known))
    prefixes = set(re.findall(r't\("([a-z_]+\.[a-z_]*)" ~', content)) | set(
        re.findall(r'say\(f"([a-z_]+\.[a-z_]*)\{', content)
    )
    unused = {key for key in known if key not in used and not any(key.startswith(one) for one in prefixes)}
    assert not unused, sorted(unused)
    for path in (ASSETS / "templates").glob("*.html"):
        bare = re.sub(r"\{[{%#].*?[}%#]\}", " ", path.read_text(encoding="utf-8"), flags=re.S)
        plain = re.sub(r"<[^>]+>", " ", bare)
        words = set(re.findall(r"[A-Za-z]{3,}", plain)) - {"rmab", "doctype", "html"}
        assert not words, (path.name, words)


def test_no_template_has_script_or_style_in_it() -> None:
    for path in (ASSETS / "templates").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\son[a-z]+=|\sstyle=|<style|<script(?! src=)|https?://|\|\s*safe", text), path.name


def test_a_simulated_programme_plays_on(tmp_path: Path) -> None:
    from rmab.service import serving

    with rmab.live.open(f"{tmp_path}/p.db") as store:
        demo = Demo(store, arms=40, budget=6)
        demo.play(4)
        with serving(store, demo=demo) as url:
            page = Page(Caller(url))
            before = demo.p.status().last
            assert b"This is a simulated programme." in page.get("/p/mothers").content
            assert page.post("/demo/next", csrf=page.csrf("/p/mothers")).status == 303
            assert demo.p.status().last > before
            assert not demo.p.replay().differences
    with service(tmp_path / "..", None) as plain:
        assert plain.caller()("POST", "/demo/next").status in (404, 405)


def test_a_list_is_changed_before_it_is_made(running: Service) -> None:
    page = Page(running.caller(), running.caller("operator").token)
    text = page.get("/p/mothers").content.decode()
    assert "Change the list for 2026-W47 before it is made" in text
    csrf = page.csrf("/p/mothers")
    fields = {"csrf": csrf, "period": "2026-W47", "tag": '"undecided"', "next": "yes", "reason": "asked", "key": "1"}
    refused = page.post("/p/mothers/override", add="m99", **fields)
    assert (refused.status, b"unknown arm" in refused.content, b'value="m99"' in refused.content) == (422, True, True)
    assert page.post("/p/mothers/override", add="m03", remove="m04", **fields).status == 303
    assert page.post("/p/mothers/override", add="m03", remove="m04", **fields).status == 303  # sent twice, done once
    text = page.get("/p/mothers").content.decode()
    assert "On it for certain: m03." in text
    assert "Not on it: m04." in text
    p = running.store.programme("mothers")
    assert [one.kind for one in p.events][-2:] == ["decide", "override"]
    ids = p.ask("2026-W47").ids
    assert "m03" in ids
    assert "m04" not in ids
    late = page.post("/p/mothers/override", add="m05", **{**fields, "key": "2"})
    assert late.status == 409, "the list was made meanwhile"


def test_the_first_list_of_a_programme_from_a_log(running: Service) -> None:
    p = running.store.create("from a log", states=["low", "high"], budget=1, reward={"high": 1})
    p.join(["a", "b"], state="low", period="2026-W40")
    p.tell("2026-W40", [{"arm": "a", "state": "low", "executed": 0}])
    page = Page(running.caller(), running.caller("operator").token)
    assert 'name="period" value="2026-W41"' in page.get("/p/from%20a%20log").content.decode()


def test_a_second_language_is_a_file(running: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has is shown to whoever prefers it; the rest stays in English."""
    folder = tmp_path / "assets"
    shutil.copytree(ASSETS, folder)
    (folder / "texts.de.toml").write_text('[list]\ntitle = "Liste für {period}"\n', encoding="utf-8")
    monkeypatch.setattr("rmab.service.pages.frame.ASSETS", folder)
    catalogues.cache_clear()
    try:
        page = Page(running.caller(), running.caller("viewer").token)
        for header, language, title in (
            ("de-AT,en;q=0.5", "de", "Liste für 2026-W46"),
            ("fr, de;q=0.3, en;q=0.4", "en", "List for 2026-W46"),
            ("de;q=0, *", "en", "List for 2026-W46"),
            ("de;q=x", "en", "List for 2026-W46"),
            ("", "en", "List for 2026-W46"),
        ):
            assert choose_language(header) == language
            found = page.caller("GET", "/p/mothers", cookie=page.cookie, accept_language=header).content.decode()
            assert f'<html lang="{language}">' in found
            assert f"<h1>{title}</h1>" in found
            assert "Final" in found
    finally:
        catalogues.cache_clear()
