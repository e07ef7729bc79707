"""The folder of a study: what is finished stays, what is damaged is found, and nothing is believed unseen."""

import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rmab
from rmab.report import write_report
from rmab.report.numbers import number
from rmab.study import Failure, LocalEngine, Results, Status, Study, run_study
from rmab.study.failures import read_failures, remove_failure, store_failure
from rmab.study.origin import revision_of, short
from rmab.study.shards import (
    FORMAT,
    SCHEMA,
    encode_table,
    provenance_of,
    read_shard,
    shard_path,
    sweep,
    with_provenance,
    write_shard,
)
from studies import HERE, Inline, data, small_study

SOURCE = str(Path(rmab.__file__).parents[1])


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    assert run_study(small_study(), tmp_path / "study", engine=Inline()).complete
    return tmp_path / "study"


class TestResume:
    def test_plays_only_what_is_missing(self, tmp_path: Path, finished: Path) -> None:
        study, stopped = small_study(), Inline(most=2)
        with pytest.raises(KeyboardInterrupt):
            run_study(study, tmp_path / "other", engine=stopped)
        assert Results.open(tmp_path / "other").status() == Status(6, 2, 4, 0)
        again, seen = Inline(), list[tuple[int, int]]()
        status = run_study(study, tmp_path / "other", engine=again, on_progress=lambda *done: seen.append(done))
        assert status == Status(6, 6, 0, 0)
        assert [*stopped.played, *again.played] == [job.id for job in study.jobs()]
        assert seen == [(done, 6) for done in range(2, 7)]
        assert data(tmp_path / "other") == data(finished)

    def test_more_rounds_extend_the_folder_and_fewer_leave_it(self, finished: Path) -> None:
        engine = Inline()
        assert run_study(small_study(5), finished, engine=engine) == Status(10, 10, 0, 0)
        assert len(engine.played) == 4
        assert run_study(small_study(2), finished, engine=Inline(0)) == Status(4, 4, 0, 0)
        assert Results.open(finished).status() == Status(10, 10, 0, 0)

    def test_another_study_is_refused(self, finished: Path) -> None:
        other = small_study(names=("random", "oracle"), name="other")
        before = sorted(path.read_bytes() for path in finished.rglob("*.*"))
        message = r"study: belongs to study 'small' \(\w+\), not to 'other' \(\w+\): use another folder \(copy runs/"
        with pytest.raises(rmab.errors.FileError, match=message):
            run_study(other, finished, engine=Inline())
        assert sorted(path.read_bytes() for path in finished.rglob("*.*")) == before

    def test_runs_that_were_copied_from_another_study_count(self, finished: Path, tmp_path: Path) -> None:
        other, engine = small_study(names=("random", "oracle"), name="other"), Inline()
        shutil.copytree(finished / "runs", tmp_path / "other" / "runs")
        assert run_study(other, tmp_path / "other", engine=engine).complete
        assert len(engine.played) == 3  # the runs of `random` are those of the first study
        assert all("oracle" in one for one in engine.played)
        assert Results.open(tmp_path / "other").status() == Status(6, 6, 0, 0)
        assert all((tmp_path / "other" / "runs" / path.name).exists() for path in (finished / "runs").iterdir())

    def test_a_folder_made_under_another_hash_keeps_its_runs(self, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As after a version that gives a study one more field."""
        before = {path: path.read_bytes() for path in (finished / "runs").iterdir()}
        monkeypatch.setattr(Study, "hash", "0123456789abcdef")
        assert Results.open(finished).status() == Status(6, 6, 0, 0)
        assert run_study(small_study(4), finished, engine=Inline(2)) == Status(8, 8, 0, 0)
        assert Results.open(finished).status() == Status(8, 8, 0, 0)
        assert all(path.read_bytes() == content for path, content in before.items())

    def test_only_one_process_at_a_time(self, finished: Path) -> None:
        def second(*_: object) -> None:
            with pytest.raises(rmab.errors.StudyError, match="study: another process is running this study"):
                run_study(small_study(), finished, engine=Inline())
            said.append(True)

        said: list[bool] = []
        run_study(small_study(), finished, engine=Inline(), on_progress=second)
        assert said

    def test_what_killed_writers_left_is_removed(self, finished: Path) -> None:
        (finished / "runs" / ".rmab.0123456789abcdef").write_bytes(b"PAR1")
        run_study(small_study(), finished, engine=Inline(0))
        assert len(list((finished / "runs").iterdir())) == 6


class TestDamage:
    def damage(self, path: Path, how: str) -> None:
        content = path.read_bytes()
        other = next(one for one in path.parent.iterdir() if one != path)
        middle = content.index(b"cpap@noisy")  # in the data: the name of the task
        changed = {
            "empty": b"",
            "truncated": content[: len(content) // 2],
            "headless": content[4:],
            "flipped": content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :],
            "another run": other.read_bytes(),
            "no provenance": None,
            "fewer rows": None,
        }[how]
        if changed is not None:
            path.write_bytes(changed)
            return
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata() if how == "no provenance" else table.slice(1), path)

    @pytest.mark.parametrize(
        "how", ["empty", "truncated", "headless", "flipped", "another run", "no provenance", "fewer rows"]
    )
    def test_is_found_and_the_run_is_played_again(self, finished: Path, how: str) -> None:
        whole, job = data(finished), small_study().jobs()[2]
        self.damage(shard_path(finished, job.id), how)
        results = Results.open(finished)
        assert results.status() == Status(6, 5, 0, 1)
        assert job.id not in results.table(["id"])["id"].to_pylist()
        assert len(results.provenance()) == 5
        engine = Inline()
        assert run_study(small_study(), finished, engine=engine).complete
        assert engine.played == [job.id]
        assert data(finished) == whole

    @pytest.mark.slow
    def test_no_changed_byte_changes_the_data_unseen(self, finished: Path, tmp_path: Path) -> None:
        job = small_study().jobs()[1]
        content, path = shard_path(finished, job.id).read_bytes(), tmp_path / "changed.parquet"
        truth, messages = encode_table(read_shard(path, job.id, content)), list[str]()
        for place in range(0, len(content), 5):
            changed = bytearray(content)
            changed[place] ^= 1 << place % 8
            try:
                table = read_shard(path, job.id, bytes(changed))
            except rmab.errors.FileError as error:
                messages.append(str(error))
            else:
                assert encode_table(table) == truth
        assert len(messages) > len(content) / 10
        assert all(one.startswith(str(path)) and "\n" not in one for one in messages)

    def test_study_json(self, finished: Path) -> None:
        (finished / "study.json").write_text('{"study": {}}')
        with pytest.raises(rmab.errors.FileError, match=r"study.json: does not describe a study \("):
            Results.open(finished)
        (finished / "study.json").unlink()
        with pytest.raises(rmab.errors.FileError, match=r"study.json: cannot be read \(No such file or directory\)"):
            Results.open(finished)


OLD = Path(__file__).parent / "format-1"  # written before the columns `random` and `adaptive`, and before versions
ADDED = ["random", "adaptive"]


class TestFormats:
    @pytest.fixture
    def old(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(OLD, tmp_path / "old"))

    def test_an_older_run_counts_and_new_columns_are_null(self, old: Path) -> None:
        results = Results.open(old)
        assert results.status() == Status(2, 2, 0, 0)
        table = results.table()
        assert table.schema == SCHEMA
        assert {name: table[name].null_count for name in SCHEMA.names if table[name].null_count} == dict.fromkeys(ADDED, 6)
        assert [one["format"] for one in results.provenance()] == [1, 1]
        assert np.isnan(results.to_xarray()["random"]).all()
        for job in results.study.jobs():
            mine = table.filter(np.asarray(table["id"]) == job.id).drop_columns(ADDED)
            assert repr(mine.to_pydict()) == repr(pq.read_table(shard_path(old, job.id)).to_pydict())  # NaN is NaN

    def test_an_older_folder_is_extended_and_its_runs_stay(self, old: Path) -> None:
        before = {path: path.read_bytes() for path in (old / "runs").iterdir()}
        study, engine = Results.open(old).study.with_rounds(2), Inline()
        assert run_study(study, old, engine=engine) == Status(4, 4, 0, 0)
        assert len(engine.played) == 2
        assert all(path.read_bytes() == content for path, content in before.items())
        assert Results.open(old).table(ADDED)["random"].null_count == 6
        assert json.loads((old / "study.json").read_text())["format"] == FORMAT

    def test_older_runs_are_reported(self, old: Path, tmp_path: Path) -> None:
        page = write_report(Results.open(old), tmp_path / "report").html.read_text()
        rewards = Results.open(old).table(["reward"])["reward"].to_numpy().reshape(2, 3).sum(axis=1)
        assert all(f"<td>{number(total)}</td>" in page for total in rewards)

    def test_an_older_run_that_is_damaged_is_recomputed(self, old: Path) -> None:
        path = min((old / "runs").iterdir())
        path.write_bytes(path.read_bytes()[:-20])
        assert Results.open(old).status() == Status(2, 1, 0, 1)
        assert run_study(Results.open(old).study, old, engine=Inline()).complete

    def test_a_newer_run_is_refused_and_not_overwritten(self, finished: Path) -> None:
        path = shard_path(finished, small_study().jobs()[3].id)
        table = pq.read_table(path)
        newer = {**provenance_of(table.schema), "format": FORMAT + 1}
        table = table.append_column("unheard_of", pa.nulls(table.num_rows, pa.float64()))
        write_shard(finished, newer["id"], encode_table(with_provenance(table, newer)))
        before = path.read_bytes()
        said = rf"^{re.escape(str(path))}: written by a newer rmab \(format {FORMAT + 1}, .*\); update rmab"
        results = Results.open(finished)
        for use in (results.status, results.table, results.provenance):
            with pytest.raises(rmab.errors.FileError, match=said):
                use()
        with pytest.raises(rmab.errors.FileError, match=said):
            run_study(small_study(4), finished, engine=Inline())
        assert path.read_bytes() == before
        assert Results.open(finished).study.rounds == 3

    def test_a_newer_folder_is_refused_and_not_overwritten(self, finished: Path) -> None:
        path = finished / "study.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": FORMAT + 1}))
        before = path.read_bytes()
        with pytest.raises(rmab.errors.FileError, match=r"study.json: written by a newer rmab"):
            run_study(small_study(4), finished, engine=Inline())
        assert path.read_bytes() == before

    @pytest.mark.parametrize("version", [0, -1, True, "2", 1.5, None])
    def test_a_version_that_is_none(self, finished: Path, version: object) -> None:
        path = finished / "study.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "format": version}))
        with pytest.raises(rmab.errors.FileError, match=r"study.json: does not describe a study \(its format version is"):
            Results.open(finished)

    def test_a_column_that_was_renamed_is_read_under_its_old_name(self, finished: Path) -> None:
        run_id = small_study().jobs()[0].id
        table = pq.read_table(shard_path(finished, run_id))
        older = table.rename_columns(["chance" if name == "random" else name for name in table.column_names])
        known = {key: value for key, value in provenance_of(table.schema).items() if key != "checksum"}
        write_shard(finished, run_id, encode_table(with_provenance(older, {**known, "format": 2})))
        assert Results.open(finished).status() == Status(6, 6, 0, 0)
        assert read_shard(shard_path(finished, run_id), run_id)["random"].equals(table["random"])

    def test_a_run_of_this_format_without_a_column_is_damaged(self, finished: Path) -> None:
        path = shard_path(finished, small_study().jobs()[0].id)
        table = pq.read_table(path)
        write_shard(finished, small_study().jobs()[0].id, encode_table(table.drop_columns(["random"])))
        assert Results.open(finished).status() == Status(6, 5, 0, 1)


class TestReading:
    def test_the_table_has_what_the_runs_have(self, finished: Path) -> None:
        table = Results.open(finished).table()
        assert table.schema == SCHEMA
        assert table.num_rows == 6 * 3
        for job in small_study().jobs():
            mine = table.filter(np.asarray(table["id"]) == job.id)
            task = rmab.make_task(job.task.name, seed=job.seed, **job.task.options)
            run = rmab.run(task, job.learner.name, job.seed)
            for name, column in run.to_table().items():
                if name != "seconds":
                    np.testing.assert_array_equal(mine[name].to_numpy(), column, err_msg=name)
            first = {name: mine[name][0].as_py() for name in table.column_names}
            assert (first["task"], first["learner"], first["round"]) == ("cpap@noisy", job.learner.label, job.round)
            assert (first["arms"], first["budget"], first["horizon"], first["seed"]) == (4, 2, 5, job.seed)
            np.testing.assert_array_equal(mine["theory"].to_numpy(), rmab.runs.theory_curve(task.view()))

    def test_some_columns_only(self, finished: Path) -> None:
        table = Results.open(finished).table(["reward", "round"])
        assert table.column_names == ["reward", "round"]
        with pytest.raises(rmab.errors.ModelError, match="unknown column regret; available: id, task"):
            Results.open(finished).table(["regret"])

    def test_nothing_yet(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            run_study(small_study(), tmp_path, engine=Inline(0))
        results = Results.open(tmp_path)
        assert results.table().num_rows == 0
        assert results.status() == Status(6, 0, 6, 0)
        assert results.to_xarray().sizes["episode"] == 0

    def test_pandas_and_xarray_agree_with_the_table(self, finished: Path) -> None:
        results = Results.open(finished)
        frame, cube = results.to_pandas(), results.to_xarray()
        assert list(frame.columns) == SCHEMA.names
        assert dict(cube.sizes) == {"task": 1, "learner": 2, "round": 3, "episode": 3}
        for _, row in frame.iterrows():
            place = {name: row[name] for name in ("task", "learner", "round", "episode")}
            assert cube["reward"].sel(place).item() == row["reward"]

    @pytest.mark.parametrize("module", ["pandas", "xarray"])
    def test_an_extra_that_is_missing_is_named(self, finished: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(rmab.errors.MissingExtra, match=rf"needs {module}: pip install 'rmab\[{module}\]'"):
            getattr(Results.open(finished), f"to_{module}")()

    def test_provenance(self, finished: Path) -> None:
        study, known = small_study(), Results.open(finished).provenance()
        assert [one["id"] for one in known] == [job.id for job in study.jobs()]
        for one, job in zip(known, study.jobs(), strict=True):
            assert (one["version"], one["study"], one["seed"]) == (rmab.__version__, study.hash, job.seed)
            assert (one["engine"], one["episodes"]) == ("inline", 3)
            assert one["revision"] is None or len(one["revision"].removesuffix("+")) == 40
            assert one["seconds"] > 0
            assert one["started"].endswith("+00:00")
        described = json.loads((finished / "study.json").read_text())
        assert (described["hash"], described["version"]) == (study.hash, rmab.__version__)


def test_a_revision_is_the_last_one_that_changed_the_code(tmp_path: Path) -> None:
    def git(*command: str) -> str:
        named = ["-c", "user.name=somebody", "-c", "user.email=nobody@example.org"]
        return subprocess.run(["git", *named, *command], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    def changed(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    code = tmp_path / "code"
    changed("code/one.py", "1")
    assert revision_of(code) is None
    git("init", "-q")
    assert revision_of(code) is None
    git("add", ".")
    git("commit", "-q", "-m", "code")
    first = git("rev-parse", "HEAD").strip()
    assert revision_of(code) == first
    changed("page.md", "2")
    assert revision_of(code) == first
    git("add", ".")
    git("commit", "-q", "-m", "a page")
    assert git("rev-parse", "HEAD").strip() != first
    assert revision_of(code) == first
    changed("code/one.py", "3")
    assert revision_of(code) == f"{first}+"
    assert short(f"{first}+") == f"{first[:10]}+"
    assert revision_of(tmp_path / "nowhere") is None


class TestDisk:
    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(
            rmab.errors.FileError, match=r"file/study: cannot be used as the folder of a study \(Not a directory\)"
        ):
            run_study(small_study(), tmp_path / "file" / "study", engine=Inline())

    @pytest.mark.slow
    def test_a_folder_that_cannot_be_written(self, finished: Path) -> None:
        for shard in (finished / "runs").iterdir():
            shard.unlink()
        (finished / "runs").rmdir()
        (finished / "runs").symlink_to("/proc/self/fd")  # a folder in which not even root can make files
        before = (finished / "study.json").read_bytes()
        with pytest.raises(rmab.errors.FileError, match=r"\.parquet: cannot be written \("):
            run_study(small_study(), finished, engine=LocalEngine(1))
        assert (finished / "study.json").read_bytes() == before

    @pytest.mark.slow
    def test_a_full_disk_gives_one_line_and_keeps_what_is_there(self, finished: Path, tmp_path: Path) -> None:
        """Files of more than 4 kB fail, as the last ones on a full disk do: study.json fits, shards do not."""
        content = data(finished)
        kept = shard_path(finished, small_study().jobs()[0].id)
        for shard in (finished / "runs").iterdir():
            if shard != kept:
                shard.unlink()
        code = f"""
import sys
sys.path += [{HERE!r}, {SOURCE!r}]
if __name__ == "__main__":
    import rmab, rmab.study, studies
    try:
        rmab.study.run_study(studies.small_study(), sys.argv[1], engine=rmab.study.LocalEngine(2))
    except rmab.errors.FileError as error:
        sys.exit(str(error))
"""
        script = tmp_path / "run.py"
        script.write_text(code)
        answer = subprocess.run(
            [sys.executable, script, finished],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )
        assert answer.returncode == 1
        (line,) = answer.stderr.splitlines()
        assert line.endswith(".parquet: cannot be written (File too large)")
        assert list((finished / "runs").iterdir()) == [kept]
        assert run_study(small_study(), finished, engine=Inline()).complete
        assert data(finished) == content


def test_a_damaged_run_that_fails_again_says_why(finished: Path) -> None:
    job = small_study().jobs()[0]
    shard_path(finished, job.id).write_bytes(b"half of a file")
    store_failure(finished, Failure(job.id, "no plan"))
    status = Results.open(finished).status()
    assert (status.damaged, status.failures) == (1, (Failure(job.id, "no plan"),))


def test_what_is_kept_of_failures(tmp_path: Path) -> None:
    first, again = Failure("a", "no plan", "Traceback\n"), Failure("a", "no plan at all", "Traceback\n")
    assert read_failures(tmp_path, ["a"]) == ()
    store_failure(tmp_path, first)
    store_failure(tmp_path, again)  # the last try counts
    store_failure(tmp_path, Failure("b", "another"))
    assert read_failures(tmp_path, ["a", "c"]) == (again,)
    assert read_failures(tmp_path, ["a"])[0].trace == "Traceback\n"
    remove_failure(tmp_path, "a")
    remove_failure(tmp_path, "a")
    assert [one.id for one in read_failures(tmp_path, ["a", "b"])] == ["b"]
    (tmp_path / "failures" / ".rmab.0123456789abcdef").touch()  # of a writer that was killed
    sweep(tmp_path)
    assert [one.name for one in (tmp_path / "failures").iterdir()] == ["b.json"]
    (tmp_path / "failures" / "b.json").write_text("{")
    assert "b.json: cannot be read" in read_failures(tmp_path, ["b"])[0].message
