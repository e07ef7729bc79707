import gc
import json
import os
import pty
import re
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given

from rmab.common.files import check_writable, write_atomically
from rmab.errors import FileError, ModelError, RmabError
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.tasks import Task
from strategies import problems

KERNEL = [[[0.1, 0.9], [1.0, 0.0]], [[1 / 3, 2 / 3], [0.5, 0.5]]]
FIELDS = {"kind": "rmab problem", "kernels": [KERNEL, KERNEL], "start": [0, 1], "budget": 1, "horizon": 3}
SUFFIXES = [".npz", ".json"]


@pytest.fixture
def problem():
    return Problem(Arms([KERNEL, KERNEL], state_names=["low", "high"], groups=[0, 0]), [0, 1], 1, 3)


def write(path, fields):
    if path.suffix == ".json":
        path.write_text(json.dumps(fields))
    else:
        np.savez(path, **fields)
    return path


def refusal(path, kind):
    """Return why `path` is refused, with an error of this kind, in one line after the path."""
    with pytest.raises(kind) as caught:
        Problem.load(path)
    place, why = str(caught.value)[: len(str(path)) + 2], str(caught.value)[len(str(path)) + 2 :]
    assert (place, "\n" in why) == (f"{path}: ", False)
    del caught
    gc.collect()  # a file left open complains here
    return why


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(problem=problems())
def test_round_trip_is_exact(suffix, problem):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"problem{suffix}"
        problem.save(path)
        again = Problem.load(str(path))
        assert list(Path(folder).iterdir()) == [path]
    assert again == problem
    assert again.arms.kernels.tobytes() == problem.arms.kernels.tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_identical_arms_come_back_equal(tmp_path, suffix):
    problem = Problem(Arms.identical(KERNEL, 50), 0, 20, 4)
    problem.save(tmp_path / f"p{suffix}")
    assert Problem.load(tmp_path / f"p{suffix}") == problem


def test_json_written_by_hand(tmp_path):
    path = write(tmp_path / "hand.json", {**FIELDS, "start": 1, "groups": ["a", "a"], "state_names": ["x", "y"]})
    problem = Problem.load(path)
    assert problem.start.tolist() == [1, 1]
    assert problem.arms == Arms([KERNEL, KERNEL], groups=[0, 0], state_names=["x", "y"])


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestLoad:
    def test_missing_file(self, tmp_path, suffix):
        assert re.search(r"cannot be read \(No such file or directory\)$", refusal(tmp_path / f"none{suffix}", FileError))

    def test_folder(self, tmp_path, suffix):
        (tmp_path / f"folder{suffix}").mkdir()
        assert re.search(r"cannot be read \(Is a directory\)$", refusal(tmp_path / f"folder{suffix}", FileError))

    @pytest.mark.parametrize("kind", ["rmab tasks", 3, ""])
    def test_wrong_kind(self, tmp_path, suffix, kind):
        path = write(tmp_path / f"p{suffix}", {**FIELDS, "kind": kind})
        assert refusal(path, FileError) == f"the file has kind {kind!r}; the kind of a problem is 'rmab problem'"

    @pytest.mark.parametrize(
        ("kind", "line"),
        [
            ("rmab task", "the file contains a task, not a problem; read it with rmab.Task.load"),
            ("rmab learner state", "the file contains a learner's state, not a problem; read it with rmab.State.load"),
        ],
    )
    def test_another_kind_of_ours_says_how_to_read_it(self, tmp_path, suffix, kind, line):
        assert refusal(write(tmp_path / f"p{suffix}", {**FIELDS, "kind": kind}), FileError) == line

    def test_a_problem_read_as_a_task_says_how_to_read_it(self, tmp_path, suffix):
        path = write(tmp_path / f"p{suffix}", FIELDS)
        with pytest.raises(FileError) as caught:
            Task.load(path)
        line = "the file contains a problem, not a task; read it with rmab.Problem.load or `rmab plan"
        assert str(caught.value).startswith(f"{path}: {line}")

    def test_no_kind(self, tmp_path, suffix):
        path = write(tmp_path / f"p{suffix}", {key: value for key, value in FIELDS.items() if key != "kind"})
        assert refusal(path, FileError) == "the file has no field 'kind'; the kind of a problem is 'rmab problem'"

    @pytest.mark.parametrize("names", [["kernels"], ["start"], ["budget"], ["horizon"], ["budget", "start"]])
    def test_missing_field(self, tmp_path, suffix, names):
        path = write(tmp_path / f"p{suffix}", {key: value for key, value in FIELDS.items() if key not in names})
        assert re.search(f"missing {', '.join(names)}$", refusal(path, FileError))

    def test_unknown_field(self, tmp_path, suffix):
        path = write(tmp_path / f"p{suffix}", {**FIELDS, "bugdet": 2})
        assert re.search(r"unknown bugdet \(known: budget, cost, discount, exact, groups, horizon", refusal(path, FileError))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"kernels": [KERNEL, [[[0.1, 0.9], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.75]]]]},
                "arm 1, state 1, action 1 has row sum 1.25",
            ),
            ({"start": [0, 2]}, r"start\[1\] must be in 0\.\.1"),
            ({"budget": 3}, r"budget must be in 0\.\.2"),
            ({"budget": "two"}, "budget must be a whole number"),
            ({"horizon": 0}, "horizon must be at least 1"),
            ({"groups": [0]}, "groups must have one label per arm"),
        ],
    )
    def test_invalid_model(self, tmp_path, suffix, change, message):
        assert re.search(message, refusal(write(tmp_path / f"p{suffix}", {**FIELDS, **change}), ModelError))

    @pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"kernels = 3"])
    def test_rubbish(self, tmp_path, suffix, content):
        path = tmp_path / f"p{suffix}"
        path.write_bytes(content)
        assert re.search("not JSON" if suffix == ".json" else "not a readable .npz archive", refusal(path, FileError))


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "message"), [(".json", "not JSON"), (".npz", "not a readable .npz archive")])
def test_cut_off(tmp_path, problem, suffix, message):
    path = tmp_path / f"p{suffix}"
    problem.save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, max(97, len(whole) // 20)):
        path.write_bytes(whole[:length])
        assert message in refusal(path, FileError)


def test_json_that_is_no_object(tmp_path):
    assert re.search(
        "expected an object with named fields, found list$", refusal(write(tmp_path / "p.json", [1, 2]), FileError)
    )


def test_npz_with_pickled_objects_is_refused(tmp_path):
    path = write(tmp_path / "p.npz", {**FIELDS, "groups": np.array([{}, {}], dtype=object)})
    assert re.search("not a readable .npz archive", refusal(path, FileError))


@pytest.mark.slow
def test_npz_with_any_byte_wrong(tmp_path, problem):
    problem.save(tmp_path / "p.npz")
    whole = (tmp_path / "p.npz").read_bytes()
    for at in range(len(whole)):
        (tmp_path / "p.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(RmabError):
            again = Problem.load(tmp_path / "p.npz")  # a byte that does not matter, or hides an optional field
            assert (again.arms.kernels == problem.arms.kernels).all()


def test_npy_under_the_name_npz(tmp_path):
    with (tmp_path / "p.npz").open("wb") as stream:
        np.save(stream, KERNEL)
    assert re.search("not a readable .npz archive", refusal(tmp_path / "p.npz", FileError))


@pytest.mark.parametrize(
    "change", [{"groups": 5}, {"state_names": 5}, {"support": [[1], [1, 2]]}, {"horizon": 10**400}, {"start": 10**400}]
)
def test_json_with_malformed_fields(tmp_path, change):
    assert re.search(next(iter(change)), refusal(write(tmp_path / "p.json", {**FIELDS, **change}), ModelError))


@pytest.mark.parametrize("name", ["p", "p.txt", "p.npy", "npz", "p.json.gz"])
def test_wrong_suffix(tmp_path, problem, name):
    assert re.search(r"the name must end in \.npz or \.json$", refusal(tmp_path / name, FileError))
    with pytest.raises(FileError, match=r"the name must end in \.npz or \.json$"):
        problem.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


class TestSave:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace"), (Path, "chmod")])
    def test_a_failure_leaves_the_old_file_and_nothing_else(self, tmp_path, problem, monkeypatch, suffix, owner, name):
        def full(*_):
            raise OSError(28, "No space left on device")

        path = tmp_path / f"p{suffix}"
        problem.save(path)
        before = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(FileError, match=r"p\.\w+: cannot be written \(No space left on device\)$"):
                Problem(problem.arms, 0, 0, 99).save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_an_interrupt_leaves_nothing_behind(self, tmp_path, problem, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            problem.save(tmp_path / "p.npz")
        assert list(tmp_path.iterdir()) == []

    def test_missing_folder(self, tmp_path, problem):
        with pytest.raises(FileError, match=r"p\.npz: cannot be written \(No such file or directory\)$"):
            problem.save(tmp_path / "none" / "p.npz")

    def test_folder_in_the_way(self, tmp_path, problem):
        (tmp_path / "p.npz").mkdir()
        with pytest.raises(FileError, match=r"p\.npz: cannot be written \(Is a directory\)$"):
            problem.save(tmp_path / "p.npz")
        assert [path.name for path in tmp_path.iterdir()] == ["p.npz"]

    def test_replaces_a_file_with_the_usual_permissions(self, tmp_path):
        (tmp_path / "plain").write_bytes(b"old")
        mode = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
        write_atomically(tmp_path / "new", b"new")
        write_atomically(tmp_path / "plain", b"new")
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new", b"new"]
        assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [mode, mode]

    def test_a_file_keeps_its_mode_and_the_umask_is_not_touched(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("other threads make files, too"))
        for mode in (0o600, 0o640, 0o664, 0o755):
            path = tmp_path / f"{mode}"
            path.write_bytes(b"old")
            path.chmod(mode)
            write_atomically(path, b"new")
            assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)

    def test_links_are_followed(self, tmp_path):
        real, link, broken = tmp_path / "real" / "x", tmp_path / "link", tmp_path / "broken"
        real.parent.mkdir()
        real.write_bytes(b"old")
        link.symlink_to(real)
        broken.symlink_to(real.with_name("y"))
        write_atomically(link, b"new")
        write_atomically(broken, b"there now")
        assert link.is_symlink()
        assert broken.is_symlink()
        assert (real.read_bytes(), real.with_name("y").read_bytes()) == (b"new", b"there now")
        assert sorted(one.name for one in real.parent.iterdir()) == ["x", "y"]

    def test_a_link_that_leads_to_itself(self, tmp_path):
        (tmp_path / "round").symlink_to(tmp_path / "round")
        for attempt in (check_writable, lambda path: write_atomically(path, b"")):
            with pytest.raises(FileError, match=r"round: cannot be written \(Too many levels of symbolic links\)$"):
                attempt(tmp_path / "round")

    def test_what_is_no_file_is_not_replaced(self, tmp_path):
        reader, writer = pty.openpty()
        try:
            (tmp_path / "device").symlink_to(os.ttyname(writer))
            check_writable(tmp_path / "device")
            write_atomically(tmp_path / "device", b"shown")
            assert os.read(reader, 5) == b"shown"
            assert stat.S_ISCHR((tmp_path / "device").stat().st_mode)
        finally:
            os.close(reader)
            os.close(writer)

    def test_a_check_leaves_nothing_behind(self, tmp_path):
        check_writable(tmp_path / "x")
        check_writable(tmp_path / ("x" * 255))
        assert list(tmp_path.iterdir()) == []
        write_atomically(tmp_path / ("x" * 255), b"long")
        with pytest.raises(FileError, match="Is a directory"):
            check_writable(tmp_path)
        with pytest.raises(FileError, match="No such file or directory"):
            check_writable(tmp_path / "none" / "x")
