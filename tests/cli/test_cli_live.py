"""`rmab live`: files that are refused with their lines, files that come twice, spreadsheets, and what status says."""

import contextlib
import csv
import json
import sqlite3
from pathlib import Path

import pytest

import rmab
from commands import call, refused


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "p.db")
    words = ("--states", "low,high", "--budget", "4", "--reward", "high=1", "--random-share", "0.5")
    assert call("live", "--actor", "ann", "create", path, "p", *words).exit_code == 0
    arms = tmp_path / "arms.csv"
    arms.write_text("arm,group,state\n" + "".join(f"m{k:02d},{'ab'[k % 2]},low\n" for k in range(16)))
    assert call("live", "join", path, arms).stdout == "16 arms joined (event 2).\n"
    assert call("live", "join", path, arms).stdout == "16 arms joined (event 2).\n"
    return path


def fill(path: Path, state: str = "high") -> None:
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for row in rows:
        row["executed"], row["state"] = "yes" if row["action"] == "yes" else "", state
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_list_comes_back_as_a_report(store: str, tmp_path: Path) -> None:
    out = tmp_path / "list.csv"
    shown = call("live", "ask", store, "2026-W47", "--csv", out, "--all")
    assert shown.exit_code == 0, shown.output
    assert "2026-W47: 4 of 16" in shown.stdout
    assert "fallback (rotation)" in shown.stdout
    assert "no row reports anything" in refused("live", "tell", store, "2026-W47", out)
    fill(out)
    assert call("live", "tell", store, "2026-W47", out, "--dry-run").stdout == "16 reports of 2026-W47 are fine.\n"
    for _ in range(2):
        assert call("live", "tell", store, "2026-W47", out).stdout == "16 reports of 2026-W47 are stored (event 4).\n"
    assert "column 'period' has '2026-W47', not '2026-W48'" in refused("live", "tell", store, "2026-W48", out)
    with rmab.live.open(store) as found:
        p = found.programme("p")
        assert p.statistics.counts.sum() == 16
        assert p.events[0].actor == "ann"
    answer = json.loads(call("live", "status", store, "--json").stdout)
    assert (answer["due"], answer["missing"]) == ("2026-W48", {})


def test_a_file_that_no_longer_counts_is_taken_again(store: str, tmp_path: Path) -> None:
    def state_of(week: str) -> int:
        with rmab.live.open(store) as found, found.programme("p").ledger() as ledger:
            return int(ledger.cell(ledger.declared.rhythm.number(week)).states(16)[0])

    low, high = tmp_path / "low.csv", tmp_path / "high.csv"
    low.write_text("arm,state\nm00,low\n")
    high.write_text("arm,state\nm00,high\n")
    for week in ("2026-W47", "2026-W48"):  # two weeks may have equal reports
        call("live", "ask", store, week)
        assert call("live", "tell", store, week, low).exit_code == 0
        assert state_of(week) == 0
    assert call("live", "undo", store, "4", "--reason", "too early").exit_code == 0
    assert state_of("2026-W47") == -1
    for _ in range(2):
        assert "stored (event 8)" in call("live", "tell", store, "2026-W47", low).stdout
    assert state_of("2026-W47") == 0
    for file, event in ((high, 9), (high, 9), (low, 10), (high, 11), (high, 11)):
        assert f"(event {event})" in call("live", "correct", store, "2026-W47", file, "--reason", "misread").stdout
    assert state_of("2026-W47") == 1


def test_a_file_is_refused_with_all_its_lines(store: str, tmp_path: Path) -> None:
    call("live", "ask", store, "2026-W47")
    bad = tmp_path / "bad.csv"
    bad.write_text("arm,state,executed\nm00,high,yes\n\nm01,middle,no\nm02,,perhaps\nm03,,\n")
    outcome = call("live", "tell", store, "2026-W47", bad)
    assert outcome.exit_code == 2
    assert "line 4: 'middle' is not a state; available: low, high" in outcome.stderr
    assert "line 5: 'perhaps' is neither yes nor no" in outcome.stderr
    bad.write_text("arm,state\nm00,high\nzz,low\nm00,low\n")
    outcome = call("live", "tell", store, "2026-W47", bad)
    assert "line 3: unknown arm 'zz'" in outcome.stderr
    assert "lines 2, 4: 'm00' is given more than once" in outcome.stderr
    good = tmp_path / "good.csv"
    good.write_text("arm;state\nm00;high\nm01;low\n")
    assert call("live", "tell", store, "2026-W47", good).exit_code == 0
    bad.write_text("arm,state\nm01,low\nm00,low\n")
    message = refused("live", "tell", store, "2026-W47", bad)
    assert "line 3: 'm00' was reported with state 'high', now 'low'; use correct" in message
    assert call("live", "correct", store, "2026-W47", bad, "--reason", "misread").exit_code == 0
    bad.write_text("arm,state,period\nm02,low,2026-W48\n")
    assert "column 'period' has '2026-W48', not '2026-W47'" in refused("live", "tell", store, "2026-W47", bad)
    with rmab.live.open(store) as found:
        assert [one.kind for one in found.programme("p").events] == ["create", "join", "decide", "tell", "correct"]
    assert call("live", "undo", store, "5", "--reason", "right after all").exit_code == 0


def test_workbooks(store: str, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    out = tmp_path / "list.xlsx"
    assert call("live", "ask", store, "2026-W47", "--csv", out).exit_code == 0
    book = load_workbook(out)
    sheet = book.worksheets[0]
    for row in range(2, 6):
        sheet.cell(row, 2, "yes")
        sheet.cell(row, 3, "high" if row != 3 else "hgih")
    book.save(out)
    assert "line 3: 'hgih' is not a state" in refused("live", "tell", store, "2026-W47", out)
    sheet.cell(3, 3, "high")
    book.save(out)
    assert call("live", "tell", store, "2026-W47", out).stdout == "4 reports of 2026-W47 are stored (event 4).\n"
    (tmp_path / "x.xlsx").write_bytes(b"no workbook")
    assert "not readable as .xlsx" in refused("live", "tell", store, "2026-W47", tmp_path / "x.xlsx")


def test_what_looks_wrong(store: str, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("arm\nM-01\n")
    call("live", "join", store, more)
    for week in ("2026-W47", "2026-W49", "2026-W50"):
        call("live", "ask", store, week)
    out = call("live", "status", store).stdout
    assert "17 arms; 2026-W51 is due, with a budget of 4." in out
    assert "red: 17 of 17 reports of 2026-W47 are outstanding" in out
    assert "yellow: no list was asked for in 2026-W48" in out
    assert "yellow: ids look like duplicates: m01 and M-01" in out
    assert "was decided by the fallback (rotation)" in out
    assert call("live", "missing", store, "2026-W47").exit_code == 0
    assert "of 2026-W47 are outstanding" not in call("live", "status", store).stdout


def test_everything_else(store: str, tmp_path: Path) -> None:
    assert call("live", "budget", store, "3").exit_code == 0
    assert call("live", "budget", store, "--in", "2026-W48=2").exit_code == 0
    assert "give either BUDGET" in call("live", "budget", store).stderr
    assert call("live", "override", store, "2026-W47", "--add", "m03,m04", "--reason", "r").exit_code == 0
    shown = json.loads(call("live", "ask", store, "2026-W47", "--json").stdout)
    assert {"m03", "m04"} <= {one["id"] for one in shown["rows"]}
    assert call("live", "leave", store, "2026-W48", "--ids", "m05", "--reason", "gone").exit_code == 0
    assert "nothing can be shown yet" in call("live", "benefit", store).stdout
    assert call("live", "export", store, tmp_path / "all.csv").stdout.startswith("16 rows")
    table = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert sum(one["decided"] == "true" for one in table) == 3
    assert {one["state"] for one in table} == {"low"}
    verified = call("live", "verify", store, "--replay").stdout
    assert "7 events, all unchanged" in verified
    assert "different: none" in verified
    head = verified.split("Head: ")[1].split()[0]
    assert call("live", "verify", store, "--head", head).exit_code == 0
    assert call("live", "backup", store, tmp_path / "copy.db").exit_code == 0
    assert call("live", "events", tmp_path / "copy.db").stdout.count("\n") > 7
    assert "no such file; create a programme with" in refused("live", "status", tmp_path / "none.db")
    assert call("live", "create", store, "q", "--states", "a,b", "--budget", "1", "--reward", "b=1").exit_code == 0
    assert "choose a programme with --name: p, q" in refused("live", "status", store)
    assert call("live", "backup", store, tmp_path / "both.db").exit_code == 0  # of all programmes
    assert call("live", "status", store, "--name", "q").exit_code == 0


def test_a_log_becomes_a_programme_with_the_same_statistics(tmp_path: Path) -> None:
    table = rmab.data.example_log("mothers", arms=60, weeks=12)
    log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        for _ in range(2):  # what was stopped can be called again
            p = rmab.live.create_from_log(store, "p", log, budget=6, reward={"engaged": 1})
        with p.ledger() as ledger:
            order = [ledger.groups.index(one) for one in log.roster.labels]
        expected = rmab.data.Statistics.from_log(log, order, len(ledger.groups))
        assert p.statistics == expected
        assert p.ask(log.periods.label(log.periods.count)).notes == ()
        p.verify()


def test_ids_that_look_like_formulas_are_text_in_lists_and_come_back(tmp_path: Path) -> None:
    path, out = str(tmp_path / "p.db"), tmp_path / "list.csv"
    with rmab.live.open(path) as store:
        p = store.create("p", states=["low", "high"], every="number", budget=3, reward={"high": 1})
        p.join(["=1+1", "-a", "@b", "'s", "plain"], state="low")
    assert call("live", "ask", path, "1", "--csv", out, "--all").exit_code == 0
    assert sorted(row["arm"] for row in csv.DictReader(out.read_text().splitlines())) == [
        "'-a",
        "'=1+1",
        "'@b",
        "'s",
        "plain",
    ]
    fill(out)
    assert call("live", "tell", path, "1", out).stdout == "5 reports of 1 are stored (event 4).\n"
    book = tmp_path / "list.xlsx"
    assert call("live", "ask", path, "1", "--csv", book, "--all").exit_code == 0
    cells = [row[0] for row in pytest.importorskip("openpyxl").load_workbook(book).active.iter_rows(min_row=2)]
    assert {(one.value, one.data_type) for one in cells} == {(one, "s") for one in ("=1+1", "-a", "@b", "'s", "plain")}


@pytest.mark.parametrize("command", ["status", "events", "benefit", "export", "verify"])
@pytest.mark.parametrize("store", ["form.csv", "missing.db", "folder", "no/such.db", "x" * 300, "http://example.org/x"])
def test_what_is_no_store_is_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, store: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("form.csv").write_text("arm\na\n", encoding="utf-8")
    Path("folder").mkdir()
    more = ["table.csv"] if command == "export" else []
    done = call("live", command, store, *more)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "form.csv"]


@pytest.mark.parametrize("wrong", [["--every", "fortnight"], ["--reward", "gone=1"], ["--zone", "Nowhere/Town"]])
def test_a_programme_that_is_refused_leaves_no_store(tmp_path: Path, wrong: list[str]) -> None:
    store = tmp_path / "p.db"
    done = call("live", "create", str(store), "p", "--states", "a,b", "--budget", "1", *wrong)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("head", ["9" * 40, "\u00b2", "", "x:y"])
def test_a_head_that_is_none_is_not_found(store: str, head: str) -> None:
    done = call("live", "verify", store, "--head", head)
    assert (done.exit_code, "does not contain" in done.stderr) == (1, True)


def test_an_export_is_safe_to_open(tmp_path: Path) -> None:
    store, form, table = (str(tmp_path / name) for name in ("p.db", "form.csv", "table.csv"))
    Path(form).write_text("arm,group,state\n=1+1,-g,a\nb,g,a\n", encoding="utf-8")
    for words in (
        ["create", store, "p", "--states", "a,b", "--budget", "1", "--reward", "b=1"],
        ["join", store, form],
        ["ask", store, "2026-W01"],
        ["export", store, table],
    ):
        assert call("live", *words).exit_code == 0
    assert '"\'=1+1"' in Path(table).read_text(encoding="utf-8")
    assert call("live", "export", store, table, "--raw").exit_code == 0
    assert '"=1+1"' in Path(table).read_text(encoding="utf-8")


def test_a_changed_event_is_named_also_where_it_no_longer_fits(store: str) -> None:
    with contextlib.closing(sqlite3.connect(store)) as raw, raw:
        raw.execute("UPDATE rmab_event SET body = replace(body, 'm03', 'm02') WHERE sequence = 2")
    for command in ("verify", "status"):
        assert "event 2 was changed after it was written" in call("live", command, store).stderr


def test_arms_that_are_wrong_are_named_with_all_their_lines(store: str, tmp_path: Path) -> None:
    arms = tmp_path / "more.csv"
    arms.write_text("arm,group,state\nn1,a,low\n,a,low\nn2,a,middle\nn3,a,middle\nn4,a,none\n")
    shown = call("live", "join", store, arms)
    assert shown.exit_code == 2
    assert "line 3: an id is missing" in shown.stderr
    assert "lines 4, 5: 'middle' is not a state; available: low, high" in shown.stderr
    assert "line 6: 'none' is not a state" in shown.stderr
    arms.write_text("arm,group,state\nn1,a,Low\n")
    assert call("live", "join", store, arms).exit_code == 0


def test_files_are_refused_with_all_lines_at_once(store: str, tmp_path: Path) -> None:
    call("live", "ask", store, "2026-W47")
    bad = tmp_path / "bad.csv"
    bad.write_text("period,arm,state\n2026-W47,m01,lo\n2026-W47,who,low\n2026-W46,m02,low\n")
    answer = call("live", "tell", store, "2026-W47", bad).stderr
    for line in ("line 2: 'lo' is not a state", "line 3: unknown arm 'who'", "line 4: column 'period' has '2026-W46'"):
        assert line in answer
    bad.write_text("period,arm,state\n2026-W46,m02,low\n")
    assert "line 2: column 'period' has '2026-W46'" in refused("live", "tell", store, "2026-W47", bad)
    bad.write_text("arm,group,state\nnew,a,lo\nm01,a,low\n,a,low\n")
    answer = call("live", "join", store, bad, "--period", "2026-W48").stderr
    for line in ("line 2: 'lo' is not a state", "line 3: 'm01' already takes part", "line 4: an id is missing"):
        assert line in answer
    assert len(json.loads(call("live", "events", store, "--json").stdout)) == 3


def test_journal_and_checks_as_json(store: str) -> None:
    call("live", "ask", store, "2026-W47")
    events = json.loads(call("live", "events", store, "--json").stdout)
    assert [one["kind"] for one in events] == ["create", "join", "decide"]
    assert events[0]["body"]["budget"] == 4
    answer = json.loads(call("live", "verify", store, "--replay", "--json").stdout)
    assert (answer["events"], answer["decisions"], answer["differences"]) == (3, 1, [])
    assert answer["head"] == f"3:{events[-1]['hash']}"
    assert json.loads(call("live", "verify", store, "--json").stdout).keys() == {"events", "head"}


def test_status_after_init_says_what_is_due(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    assert call("example-log", log, "--arms", "20", "--weeks", "6").exit_code == 0
    words = ("--arm", "id", "--period", "week", "--state", "state", "--action", "called", "--budget", "3")
    made = call("live", "init", tmp_path / "p.db", log, *words, "--reward", "engaged=1")
    due = made.stdout.split()[-1].strip(".")
    assert f"20 arms; {due} is due, with a budget of 3." in call("live", "status", tmp_path / "p.db").stdout


def test_reports_of_a_far_period_need_a_switch_and_the_answer_says_what_does_not_count(store: str, tmp_path: Path) -> None:
    assert call("live", "ask", store, "2026-W47").exit_code == 0
    file = tmp_path / "late.csv"
    file.write_text("arm,executed,state\nm00,yes,high\nm01,,high\nm02,,\n")
    what = "2027-W30 is 36 periods after 2026-W47, the last known one; use skip=True (--skip) if that is right"
    assert what in refused("live", "tell", store, "2027-W30", file)
    told = call("live", "tell", store, "2027-W30", file, "--skip").stdout.splitlines()
    assert told[0] == "2 reports of 2027-W30 are stored (event 4)."
    assert told[1] == "2 of them do not count as transitions yet: 2 without a known state at the start of the period."
    told = call("live", "tell", store, "2027-W31", file).stdout.splitlines()
    assert told[1] == "1 of them does not count as a transition yet: 1 without executed."


def test_a_long_list_says_how_many_places_are_not_printed(tmp_path: Path) -> None:
    path, arms, out = tmp_path / "long.db", tmp_path / "arms.csv", tmp_path / "list.csv"
    assert call("live", "create", path, "p", "--states", "low,high", "--budget", "25", "--reward", "high=1").exit_code == 0
    arms.write_text("arm\n" + "".join(f"m{k}\n" for k in range(30)))
    assert call("live", "join", path, arms).exit_code == 0
    assert "5 more are on the list: --csv FILE writes them all." in call("live", "ask", path, "2026-W47").stdout
    assert f"5 more are on the list: all are in {out}." in call("live", "ask", path, "2026-W47", "--csv", out).stdout
