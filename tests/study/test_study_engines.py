"""Engines: the same results from any of them, whoever is killed on the way."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rmab
from clusters import ENVIRONMENT, Cluster, gone, until
from rmab.study import DaskEngine, Failure, LocalEngine, Results, Status, run_study
from rmab.study.engines import dask
from rmab.study.single_run import attempt
from studies import Inline, data, small_study

pytestmark = pytest.mark.slow

STUDY = small_study(6)

SCRIPT = """
import multiprocessing, sys, time
if __name__ == "__main__":
    import rmab.study, studies
    def say(*done):
        workers = [one.pid for one in multiprocessing.active_children()]
        print(*done, "workers", *workers, flush=True)
        if done[0] >= 2:
            time.sleep(600)  # here it is killed or interrupted, with runs under way and runs to come
    try:
        rmab.study.run_study(studies.small_study(6), sys.argv[1], engine=rmab.study.LocalEngine(2), on_progress=say)
    except KeyboardInterrupt:
        sys.exit("interrupted")
"""


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("undisturbed")
    run_study(STUDY, folder, engine=Inline())
    return data(folder)


def _children() -> list[object]:
    return list(multiprocessing.active_children())


class TestLocal:
    @pytest.mark.parametrize("workers", [1, 2])
    def test_results_do_not_depend_on_the_workers(self, tmp_path: Path, truth: bytes, workers: int) -> None:
        assert run_study(STUDY, tmp_path, engine=LocalEngine(workers)) == Status(12, 12, 0, 0)
        assert data(tmp_path) == truth
        assert {one["engine"] for one in Results.open(tmp_path).provenance()} == {"local"}
        assert not multiprocessing.active_children()

    def test_a_killed_worker_loses_nothing(self, tmp_path: Path, truth: bytes) -> None:
        killed: list[int | None] = []

        def kill_some(finished: int, total: int) -> None:
            if finished in (1, 5):
                victim = multiprocessing.active_children()[0]
                os.kill(victim.pid or 0, signal.SIGKILL)
                killed.append(victim.pid)

        assert run_study(STUDY, tmp_path, engine=LocalEngine(2), on_progress=kill_some).complete
        assert len(set(killed)) == 2
        assert len(list((tmp_path / "runs").iterdir())) == 12  # and no half of a file
        assert data(tmp_path) == truth

    def test_a_run_that_kills_its_workers_is_given_up_and_the_others_go_on(self, tmp_path: Path) -> None:
        lives, few = tmp_path / "lives", {"name": "studies:Deadly", "label": "deadly"}
        learners = [{**few, "options": {"lives": str(lives)}}, {"name": "random"}]
        study, seen = small_study(2, learners=learners), list[Failure]()
        lives.write_text("x\n" * 4)  # three for the first run, one for the second
        status = run_study(study, tmp_path / "out", engine=LocalEngine(1), on_failure=seen.append)
        assert (status.total, status.finished, status.missing) == (4, 3, 1)
        assert status.failures == tuple(seen) == (
            Failure(study.jobs()[0].id, "its worker died 3 times (last cause: signal 9)"),
        )  # fmt: skip
        assert Results.open(tmp_path / "out").status() == status
        assert run_study(study, tmp_path / "out", engine=LocalEngine(1)).complete  # it has no lives left to take
        assert Results.open(tmp_path / "out").status().failures == ()
        assert not list((tmp_path / "out" / "failures").iterdir())

    def test_a_learner_that_raises_is_reported_and_not_played_again(self, tmp_path: Path) -> None:
        study = small_study(2, ("studies:Failing", "random"))
        status = run_study(study, tmp_path, engine=LocalEngine(2))
        assert (status.total, status.finished, status.complete) == (4, 2, False)
        failed = sorted(status.failures, key=lambda one: one.id)
        assert [one.id for one in failed] == sorted(job.id for job in study.jobs() if job.learner.name != "random")
        assert {one.message for one in failed} == {"RuntimeError: no answer at all"}
        assert all("in decide" in one.trace and one.trace.endswith("RuntimeError: no answer\nat all\n") for one in failed)

    def test_no_more_workers_than_jobs(self, tmp_path: Path) -> None:
        crews = list[int]()
        study = small_study(1, ("random",))
        run_study(study, tmp_path, engine=LocalEngine(3), on_progress=lambda *_: crews.append(len(_children())))
        assert max(crews) == 1

    def test_workers_that_do_not_start(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rmab.study.engines.local._serve", sys.exit)
        with pytest.raises(rmab.errors.StudyError, match=r"worker 0 does not start: exit code \d"):
            run_study(STUDY, tmp_path, engine=LocalEngine(1))

    def test_the_environment_is_as_before(self, tmp_path: Path) -> None:
        before, handler = dict(os.environ), signal.getsignal(signal.SIGINT)
        run_study(small_study(1, ("random",)), tmp_path, engine=LocalEngine(1))
        assert dict(os.environ) == before
        assert signal.getsignal(signal.SIGINT) is handler

    @pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
    def test_wrong_numbers_of_workers(self, workers: object) -> None:
        with pytest.raises(rmab.errors.ModelError, match="workers must be"):
            LocalEngine(workers)  # type: ignore[arg-type]


class TestTheWholeProcess:
    def begun(self, folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
        """Start the study in a process of its own, and wait until something is finished."""
        script = folder / "run.py"
        script.write_text(SCRIPT)
        process = subprocess.Popen(
            [sys.executable, script, folder / "out"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line.split()[0]) >= 2:
                return process, [int(one) for one in line.partition("workers")[2].split()]
        pytest.fail("the study did not begin")

    def resumed(self, folder: Path) -> None:
        before = Results.open(folder).status()
        assert 2 <= before.finished < before.total
        engine = Inline()
        assert run_study(STUDY, folder, engine=engine).complete
        assert len(engine.played) == before.missing + before.damaged

    def test_killed_and_resumed(self, tmp_path: Path, truth: bytes) -> None:
        process, workers = self.begun(tmp_path)
        process.kill()
        process.communicate()
        until(lambda: all(map(gone, workers)), "the workers of a study that was killed end by themselves")
        self.resumed(tmp_path / "out")
        assert data(tmp_path / "out") == truth

    def test_interrupted_and_resumed(self, tmp_path: Path, truth: bytes) -> None:
        process, workers = self.begun(tmp_path)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: all processes of the group
        _, errors = process.communicate()
        assert (process.returncode, errors) == (1, "interrupted\n")
        assert len(workers) == 2
        assert all(map(gone, workers))
        assert not list((tmp_path / "out" / "runs").glob(".*"))
        self.resumed(tmp_path / "out")
        assert data(tmp_path / "out") == truth


class TestDask:
    def test_a_killed_worker_loses_nothing(
        self, tmp_path: Path, truth: bytes, start_cluster: Callable[[int], Cluster]
    ) -> None:
        running = start_cluster(2)

        def kill_one(finished: int, total: int) -> None:
            if finished == 2:
                running.workers[0].kill()

        status = run_study(STUDY, tmp_path / "out", engine=DaskEngine(running.address), on_progress=kill_one)
        assert status == Status(12, 12, 0, 0)
        assert running.workers[0].wait() == -signal.SIGKILL
        assert data(tmp_path / "out") == truth
        assert {one["engine"] for one in Results.open(tmp_path / "out").provenance()} == {"dask"}

        failing = small_study(1, ("studies:Failing", "random"))
        status = run_study(failing, tmp_path / "failing", engine=DaskEngine(running.address))
        assert status.failures == (Failure(failing.jobs()[0].id, "RuntimeError: no answer at all"),)
        assert status.finished == 1

        def kill_all(finished: int, total: int) -> None:
            if finished == 2:
                running.scheduler.kill()

        with pytest.raises(rmab.errors.StudyError, match=r"the Dask scheduler at tcp://.* is lost"):
            run_study(STUDY, tmp_path / "lost", engine=DaskEngine(running.address), on_progress=kill_all)
        assert Results.open(tmp_path / "lost").status().finished >= 2
        assert run_study(STUDY, tmp_path / "lost", engine=Inline()).complete
        assert data(tmp_path / "lost") == truth

    def test_no_scheduler(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dask, "PATIENCE", 0.5)
        with pytest.raises(rmab.errors.StudyError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
            run_study(STUDY, tmp_path, engine=DaskEngine("tcp://127.0.0.1:9"))

    def test_another_version_on_a_worker(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        job = STUDY.jobs()[0]
        content, *_ = attempt(job, "dask")
        monkeypatch.setattr(rmab, "__version__", "99.0")
        with pytest.raises(rmab.errors.StudyError, match=r"a worker of tcp://somewhere:1 has rmab .*machine has 99\.0"):
            DaskEngine("tcp://somewhere:1")._check(job, content, tmp_path)

    def test_without_the_extra(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(rmab.errors.MissingExtra, match=r"needs distributed: pip install 'rmab\[dask\]'"):
            run_study(STUDY, tmp_path, engine=DaskEngine("tcp://127.0.0.1:9"))

    def test_no_address(self) -> None:
        for wrong in ("", None, "here", "tcp://here", "udp://here:8786", "tcp://here:99999", "tcp://:8786", "tcp://a b:1"):
            with pytest.raises(rmab.errors.ModelError, match="needs the address of a Dask scheduler"):
                DaskEngine(wrong)  # type: ignore[arg-type]
        for right in ("tcp://10.0.0.1:8786", "head:8786", "tls://[::1]:8786", "inproc://10.0.0.1/7/1"):
            assert DaskEngine(right).scheduler == right


def test_importing_the_library_stays_light() -> None:
    code = "import rmab, sys; print(sorted({'pyarrow', 'distributed', 'pandas', 'xarray'} & sys.modules.keys()))"
    light = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert light.stdout == "[]\n"
    code = "import rmab.study, sys; print(sorted({'distributed', 'pandas', 'xarray'} & sys.modules.keys()))"
    study = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert study.stdout == "[]\n"
