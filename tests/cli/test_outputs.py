"""No command replaces a file that it cannot have written, or random draws that cannot be made again."""

from pathlib import Path

import pytest

import rmab
from commands import call, refused
from rmab.cli.outputs import FORM, LIST, check_all, check_replaceable
from rmab.common import write_table
from rmab.errors import FileError

COLUMNS = ["--arm", "id", "--period", "week", "--state", "state", "--action", "called"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("outputs")
    write_table(rmab.data.example_log("mothers", arms=80, weeks=15), place / "log.csv")
    write_table(rmab.data.example_log("mothers", arms=80, weeks=15), place / "log.xlsx")
    (place / "names.csv").write_text("column,from,to\nstate,x,y\n")
    (place / "costs.csv").write_text("id,cost\nM001,2\n")
    log = rmab.data.read_log(place / "log.csv", arm="id", period="week", state="state", action="called")
    rmab.data.fit(log, reward={"engaged": 1}).save(place / "model.npz")
    return place


@pytest.mark.parametrize("name", ["log.csv", "log.xlsx", "names.csv", "costs.csv"])
def test_a_list_does_not_replace_another_table(folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    assert f"{name}: the file exists and is not a list" in refused("list", folder / "model.npz", "--csv", folder / name)
    assert "--force" not in refused("list", folder / "model.npz", "--csv", folder / name)
    refused("list", folder / "model.npz", "--csv", folder / name, "--force")
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.parquet"])
def test_draws_are_replaced_by_themselves_only(folder: Path, name: str) -> None:
    words = ("list", folder / "model.npz", "--budget", "10", "--csv", folder / name)
    draw = ("--random-share", "0.2", "--all")
    assert call(*words, *draw).exit_code == 0
    before = (folder / name).read_bytes()
    assert call(*words, *draw).exit_code == 0  # the same draws
    for other in (("--random-share", "0.2"), (*draw, "--seed", "7"), ("--all",)):
        outcome = call(*words, *other)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert "random draws" in outcome.stderr
        assert "--force" in outcome.stderr
    assert name.endswith(".xlsx") or (folder / name).read_bytes() == before
    assert call(*words, *draw, "--seed", "7", "--force").exit_code == 0


def test_a_list_without_draws_may_be_replaced(folder: Path) -> None:
    words = ("list", folder / "model.npz", "--csv", folder / "b.csv")
    assert call(*words, "--budget", "0").exit_code == 0
    assert call(*words, "--budget", "10").exit_code == 0


@pytest.mark.parametrize("content", [b"", b"id;period;action;rank;index;by;chance;reason\r\n"])
def test_an_empty_list_may_be_replaced(folder: Path, content: bytes) -> None:
    (folder / "empty.csv").write_bytes(content)
    assert call("list", folder / "model.npz", "--csv", folder / "empty.csv").exit_code == 0


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["fit", "log.csv", *COLUMNS], "--out mine.npz"),
        (["fit", "log.csv", *COLUMNS], "--out mine.json"),
        (["fit", "log.csv", *COLUMNS], "--report mine.html"),
        (["evaluate", "model.npz"], "--report mine.html"),
        (["plan", "cpap"], "--save mine.json"),
        (["plan", "cpap"], "--save model.npz"),
        (["run", "cpap", "random"], "--save log.csv"),
        (["live", "ask", "store.db", "1"], "--csv log.csv"),
    ],
)
def test_every_command_keeps_files_of_another_kind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], option: str
) -> None:
    monkeypatch.chdir(folder)
    for name in ("mine.npz", "mine.json", "mine.html"):
        Path(name).write_text('{"a": 1}')
    name, file = option.split()
    before = Path(file).read_bytes()
    assert f"{file}: the file exists and is not" in refused(*words, name, file)
    assert Path(file).read_bytes() == before


def test_commands_replace_what_they_wrote(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    small = ("-t", "arms=4", "-t", "budget=2", "-t", "horizon=5", "--episodes", "2")
    for _ in range(2):
        assert call("fit", "log.csv", *COLUMNS, "--out", "m.json").exit_code == 0
        assert call("run", "cpap", "random", *small, "--save", "r.csv").exit_code == 0
        assert call("plan", "cpap", *small, "--candidates", "rolling", "--save", "p.npz").exit_code == 0


def test_a_form_is_kept_once_it_is_filled_in(tmp_path: Path) -> None:
    header, path = "arm,executed,state,period,was,action,rank,index,probability,by,reason", tmp_path / "form.csv"
    path.write_text(f"{header}\na,,,1,ok,yes,1,0.5,1,index,why\n")
    check_all([path, tmp_path / "new.csv"], FORM)
    path.write_text(f"{header}\na,yes,,1,ok,yes,1,0.5,1,index,why\n")
    with pytest.raises(FileError, match=r"form\.csv: the file exists and is filled in"):
        check_all([path], FORM)
    with pytest.raises(FileError, match="is not a list of `rmab list`"):
        check_replaceable(path, LIST)
