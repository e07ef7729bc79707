"""The API: what each route answers, keys, tags, pages, formats, and errors with code and place."""

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from rmab.live import Programme
from services import IDS, Answer, Caller, Service, fill, rows, service

P = "programmes/mothers"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path) as found:
        yield found


@pytest.fixture
def call(running: Service) -> Caller:
    fill(running.store)
    return running.caller()


def test_a_week_over_http(running: Service) -> None:
    call = running.caller()
    body = {"name": "mothers", "states": ["lapsed", "engaged"], "budget": 3, "reward": {"engaged": 1}, "random_share": 0.3}
    made = call("POST", "programmes", body)
    assert (made.status, made.json["role"], made.json["config"]["budget"]) == (201, "admin", 3)
    assert made.headers["location"].endswith("/api/v1/programmes/mothers")
    assert call("POST", f"{P}/arms", {"arms": IDS, "group": ["north", "coast"] * 6, "state": "lapsed"}).json == {
        "event": 2,
        "rows": 12,
    }
    asked = call("PUT", f"{P}/decisions/2026-W47")
    assert (asked.status, len(asked.json["ids"]), asked.json["arms"]) == (201, 3, 12)
    again = call("PUT", f"{P}/decisions/2026-W47")
    assert (again.status, again.json) == (200, asked.json)
    told = call("POST", f"{P}/observations", {"period": "2026-W47", "rows": rows()})
    assert told.json == {"event": 4, "rows": 12, "not_counted": 0, "lacking": {}}
    assert call("POST", f"{P}/budgets", {"budget": {"2026-W48": 1}}).json["event"] == 5
    assert call("POST", f"{P}/departures", {"arms": ["m03"], "period": "2026-W48", "reason": "moved"}).json["event"] == 6
    gone = call("POST", f"{P}/overrides", {"period": "2026-W48", "add": ["m05"], "reason": "asked"})
    assert gone.json["event"] == 7
    assert call("PUT", f"{P}/decisions/2026-W48").json["ids"] == ["m05"]
    assert call("POST", f"{P}/undo", {"event": 4, "reason": "told twice"}).status == 200
    status = call("GET", f"{P}/status").json
    assert (status["arms"], status["last"], status["due"]) == (11, "2026-W48", "2026-W49")
    assert call("GET", f"{P}/decisions").json == {"periods": ["2026-W48", "2026-W47"]}
    assert call("GET", f"{P}/verify").json["events"] == 9
    assert not call("GET", f"{P}/replay").json["differences"]
    assert "nothing can be shown yet" in call("GET", f"{P}/benefit").json["sentence"]
    assert call("GET", f"{P}/export").json["rows"][0]["arm"] == "m00"
    assert running.store.programme("mothers").events[1].actor == "local"


def test_the_same_key_is_one_event_and_another_body_is_refused(call: Caller) -> None:
    body = {"period": "2026-W47", "rows": rows()[:3]}
    first = call("POST", f"{P}/observations", body, idempotency_key="k")
    assert call("POST", f"{P}/observations", body, idempotency_key="k").json == first.json
    other = call("POST", f"{P}/observations", {**body, "rows": rows()[:4]}, idempotency_key="k")
    assert (other.status, other.json["code"], other.json["location"]) == (409, "key-reused", {"event": 3})
    assert call("POST", f"{P}/observations", body, idempotency_key="decide/2026-W48").json["code"] == "bad-key"


def test_tags_refuse_what_was_seen_before_a_change(call: Caller) -> None:
    tag = call("PUT", f"{P}/decisions/2026-W47").headers["etag"]
    assert call("GET", f"{P}/decisions/2026-W47", if_none_match=tag).status == 304
    call("POST", f"{P}/observations", {"period": "2026-W47", "rows": rows()[:1]})
    on = call("GET", f"{P}/decisions/2026-W47").json["ids"]
    change = {"period": "2026-W47", "remove": on[:1], "reason": "ill"}
    assert call("POST", f"{P}/overrides", change, if_match=tag).status == 200, "a report is no change of the list"
    late = call("POST", f"{P}/overrides", {**change, "remove": on[1:2]}, if_match=tag)
    assert (late.status, late.json["code"]) == (412, "changed")
    assert late.headers["etag"] == call("GET", f"{P}/decisions/2026-W47").headers["etag"]
    whole = call("GET", P).headers["etag"]
    first = call("POST", f"{P}/budgets", {"budget": 2}, if_match=whole, idempotency_key="b")
    again = call("POST", f"{P}/budgets", {"budget": 2}, if_match=whole, idempotency_key="b")
    assert (again.status, again.json) == (200, first.json), "the answer was lost, and the request is sent again"
    whole = call("GET", P).headers["etag"]
    assert call("POST", f"{P}/budgets", {"budget": 2}, if_match=whole).status == 200
    assert call("POST", f"{P}/budgets", {"budget": 3}, if_match=whole).status == 412
    assert call("GET", f"{P}/status", if_none_match=whole).status == 200


def test_files_in_and_out(call: Caller) -> None:
    form = call("PUT", f"{P}/decisions/2026-W47?format=csv&everybody=true")
    assert form.headers["content-disposition"] == 'attachment; filename="mothers-2026-W47.csv"'
    lines = form.content.decode().splitlines()
    assert lines[0].startswith('"arm","executed","state"')
    filled = "\n".join(["arm,executed,state", "m00,yes,engaged", "m01,no,lapsed"]).encode()
    where = f"{P}/observations?period=2026-W47"
    checked = call("POST", f"{where}&dry_run=true", filled, content_type="text/csv").json
    assert checked == {"event": 0, "rows": 2, "not_counted": None, "lacking": {}}
    told = call("POST", where, filled, content_type="text/csv; charset=utf-8")
    assert call("POST", where, filled, content_type="text/csv").json == told.json
    assert told.json == {"event": 4, "rows": 2, "not_counted": 0, "lacking": {}}
    book = openpyxl.load_workbook(io.BytesIO(call("GET", f"{P}/decisions/2026-W47?format=xlsx").content))
    sheet = book.active
    assert sheet is not None
    assert (sheet["A1"].value, sheet.max_row) == ("arm", 4)
    sheet["B2"], sheet["C2"] = "yes", "engaged"
    stream = io.BytesIO()
    book.save(stream)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    again = call("POST", f"{where}&reason=misread", stream.getvalue(), content_type=kind)
    assert (again.json["event"], again.json["rows"]) == (5, 1)
    bad = b"arm,state\nm00,engaged\nm99,engaged\nm02,asleep\n"
    wrong = call("POST", where, bad, content_type="text/csv")
    assert (wrong.status, wrong.json["location"]) == (422, {"path": "body.csv", "line": 3})
    assert [one["at"] for one in wrong.json["problems"]] == [[3], [4]]
    wrong = call("POST", where, bad.replace(b"asleep", b"lapsed"), content_type="text/csv")
    assert wrong.json["problems"] == [{"what": "unknown arm 'm99'", "at": [3], "unit": "line", "code": "unknown-arm"}]
    joined = call("POST", f"{P}/arms?period=2026-W48", b"arm,group\nn1,north\n", content_type="text/csv")
    assert joined.json["rows"] == 1


def test_errors_name_code_and_place(call: Caller) -> None:
    for method, path, body, status, code in [
        ("GET", "programmes/fathers", None, 404, "unknown-programme"),
        ("GET", f"{P}/decisions/2026-W47", None, 404, "not-decided"),
        ("GET", f"{P}/status?as_of=99", None, 404, "unknown-event"),
        ("PUT", f"{P}/decisions/47", None, 422, "bad-period"),
        ("POST", f"{P}/observations", {"period": "2026-W47", "rows": [{"arm": "m99", "state": "engaged"}]}, 422, "bad-log"),
        ("POST", f"{P}/overrides", {"period": "2026-W47", "add": IDS, "reason": "all"}, 409, "budget"),
        ("POST", f"{P}/overrides", {"period": "2026-W47", "add": IDS[:1], "reason": ""}, 422, "bad-request"),
        ("POST", f"{P}/undo", {"event": 1, "reason": "no"}, 409, "undo"),
        ("POST", f"{P}/budgets", {"budget": -1}, 422, "bad-request"),
        ("POST", f"{P}/observations", {"period": "2026-W47", "rows": [], "colour": 1}, 422, "bad-model"),
        ("POST", "programmes", {"name": "a/b", "states": ["a", "b"], "budget": 1}, 422, "bad-model"),
        ("POST", "programmes", {"name": "mothers", "states": ["a", "b"], "budget": 1}, 409, "key-reused"),
        ("GET", "nothing", None, 404, "not-found"),
        ("DELETE", P, None, 405, "method-not-allowed"),
    ]:
        found = call(method, path, body)
        assert (found.status, found.json["code"]) == (status, code), (path, found.content)
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json["detail"]
    assert call("POST", f"{P}/observations", b"x", content_type="text/plain").status == 415


def test_lists_come_in_parts(call: Caller) -> None:
    names, after = [], 0
    while after is not None:
        part = call("GET", f"{P}/arms?after={after}&limit=5").json
        names += [one["arm"] for one in part["arms"]]
        after = part["next"]
    assert names == IDS
    first = call("GET", f"{P}/events?limit=1").json
    assert (first["events"][0]["kind"], first["next"]) == ("create", 1)
    rest = call("GET", f"{P}/events?after=1&limit=1").json
    assert (rest["events"][0]["kind"], rest["next"]) == ("join", None)
    assert call("GET", f"{P}/events?limit=9999").status == 422
    assert call("GET", "programmes?limit=1").json == {"programmes": ["mothers"], "next": None}


def test_a_machine_gets_commands_that_expire(call: Caller) -> None:
    states = dict.fromkeys(IDS, "lapsed")
    found = call("POST", f"{P}/decide", {"states": states}).json
    assert (len(found["active"]), found["safe"], found["plan_age"]) == (3, True, None)
    other = call("POST", f"{P}/decide", {"states": states}).json
    assert not set(found["active"]) & set(other["active"]), "the fallback takes turns"
    assert other["expires"] > found["expires"]
    wrong = call("POST", f"{P}/decide", {"states": {**states, "m00": "asleep"}})
    assert (wrong.status, wrong.json["location"]) == (422, {"arm": "m00"})
    assert "missing: m11" in call("POST", f"{P}/decide", {"states": dict.fromkeys(IDS[:-1], "lapsed")}).json["detail"]


def test_probes_and_numbers(call: Caller) -> None:
    assert call("GET", "/healthz").content == b"ok\n"
    assert call("GET", "/readyz").content == b"ready\n"
    call("GET", P)
    text = call("GET", "/metrics").content.decode()
    assert 'rmab_requests_total{method="GET",route="show_programme",status="200"} 1' in text
    assert "mothers" not in text


def test_a_machine_follows_who_joins_and_leaves(call: Caller) -> None:
    """As many as before, but others: the arms are compared, not their number."""
    states = dict.fromkeys(IDS, "lapsed")
    call("PUT", f"{P}/decisions/2026-W46")
    assert call("POST", f"{P}/decide", {"states": states}).status == 200
    call("POST", f"{P}/departures", {"arms": ["m00"], "period": "2026-W47"})
    call("POST", f"{P}/arms", {"arms": ["new"], "group": "north", "state": "lapsed", "period": "2026-W47"})
    others = {**dict.fromkeys(IDS[1:], "lapsed"), "new": "engaged"}
    found = call("POST", f"{P}/decide", {"states": others})
    assert found.status == 200, found.content
    assert set(found.json["active"]) <= others.keys()
    assert "missing: new" in call("POST", f"{P}/decide", {"states": states}).json["detail"]


def test_a_name_that_is_no_part_of_an_address_is_refused(call: Caller) -> None:
    for name in ("a/b", "..", "/"):
        body = {"name": name, "states": ["low", "high"], "budget": 1, "reward": {"high": 1}}
        found = call("POST", "programmes", body)
        assert (found.status, found.json["location"]) == (422, {"field": "name"})
        assert "without '/'" in found.json["detail"]


def test_costly_requests_are_worked_on_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that finds another one at work is refused, and may come again."""
    monkeypatch.setattr("rmab.service.shared.PATIENCE", 0.05)
    with service(tmp_path) as running:
        p, call = fill(running.store), running.caller("viewer")
        p.ask("2026-W46")
        begun, go_on = threading.Event(), threading.Event()
        usual = Programme.replay

        def slow(self: Programme, **options: Any) -> Any:
            begun.set()
            go_on.wait(30)
            return usual(self, **options)

        monkeypatch.setattr(Programme, "replay", slow)
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(call("GET", f"{P}/replay")))
        thread.start()
        assert begun.wait(30)
        for path in ("verify", "shadow?engine=mean", "report", "replay"):
            refused = call("GET", f"{P}/{path}")
            assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "busy", "5")
        assert call("GET", f"{P}/status").status == 200
        go_on.set()
        thread.join()
        assert answers[0].json["differences"] == []
        assert call("GET", f"{P}/verify").status == 200


def test_a_machine_keeps_to_a_budget_that_was_just_lowered(call: Caller) -> None:
    states = dict.fromkeys(IDS, "lapsed")
    assert call("POST", f"{P}/decide", {"states": states}).json["budget"] == 3
    call("POST", f"{P}/budgets", {"budget": 2})
    found = call("POST", f"{P}/decide", {"states": states}).json
    assert (len(found["active"]), found["budget"]) == (2, 2)
    assert found["warning"]
    call("POST", f"{P}/budgets", {"budget": {"2062-W01": 0}})
    none = call("POST", f"{P}/decide", {"states": states, "period": "2062-W01"}).json
    assert (none["active"], none["period"]) == ([], "2062-W01")
    assert call("POST", f"{P}/decide", {"states": states, "period": "soon"}).json["code"] == "bad-period"


def test_the_answer_says_which_reports_are_not_counted(running: Service) -> None:
    call = running.caller()
    p = fill(running.store, budget=1)
    body = {
        "period": "2026-W46",
        "rows": [{"arm": "m00", "state": "lapsed"}, {"arm": "m01", "state": "lapsed", "executed": 0}],
    }
    found = call("POST", f"{P}/observations", body).json
    assert (found["rows"], found["not_counted"], found["lacking"]) == (2, 1, {"executed": 1})
    body["period"], body["rows"] = (
        "2026-W47",
        [{"arm": one, "state": "lapsed", "executed": 0} for one in ("m00", "m01", "m02")],
    )
    found = call("POST", f"{P}/observations", body).json
    assert (found["not_counted"], found["lacking"]) == (1, {"start": 1})
    assert p.statistics.counts.sum() == 3  # 1 + 2
    file = b"arm,executed,state\nm00,no,\nm01,no,engaged\nm02,,\n"
    found = call("POST", f"{P}/observations?period=2026-W48", file, content_type="text/csv").json
    assert (found["rows"], found["not_counted"], found["lacking"]) == (2, 1, {"state": 1})
    checked = call("POST", f"{P}/observations?period=2026-W48&dry_run=true", file, content_type="text/csv").json
    assert checked["not_counted"] is None


def test_a_far_period_is_taken_if_the_caller_says_so(call: Caller) -> None:
    call("PUT", f"{P}/decisions/2026-W47")
    body = {"period": "2027-W47", "rows": [{"arm": "m00", "state": "lapsed"}]}
    assert call("POST", f"{P}/observations", body).json["code"] == "far"
    assert call("POST", f"{P}/observations", {**body, "skip": True}).status == 200
    assert call("POST", f"{P}/missing", {"period": "2028-W47"}).json["code"] == "far"
    assert call("POST", f"{P}/missing", {"period": "2028-W47", "skip": True}).status == 200
    file = b"arm,state\nm00,lapsed\n"
    where = f"{P}/observations?period=2029-W47"
    assert call("POST", where, file, content_type="text/csv").json["code"] == "far"
    assert call("POST", f"{where}&skip=true", file, content_type="text/csv").status == 200
