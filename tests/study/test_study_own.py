"""Studies with code of one's own: built once per process, sent to Dask workers, and known by its source."""

import os
import sys
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import clusters
import rmab
from clusters import SOURCE, Cluster
from rmab.report import write_report
from rmab.study import DaskEngine, LocalEngine, Results, Study, changes_since, run_study
from rmab.study.engines.uploads import _place
from studies import HERE, Inline, small_study

MODULE = """
import numpy, rmab
from rmab.learning import RandomLearner

BUILT = []

class Mine(RandomLearner):
    name = "mine"
    def __init__(self):
        BUILT.append("learner")

def clinic(seed, patients=2):
    BUILT.append(f"task {seed}")
    rng = numpy.random.default_rng(seed)
    problem = rmab.Problem(rmab.Arms(rng.dirichlet(numpy.ones(2), size=(patients, 2, 2))), 0, 1, 3)
    return rmab.Task.from_rewards(problem, rng.uniform(size=(3, patients, 2, 2)), low=0, high=1)
"""
OWN = {"tasks": [{"name": "own_study:clinic", "label": "clinic"}]}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "own_study.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "own_study", raising=False)
    return folder / "own_study.py"


def test_everything_is_built_once_per_process(module: Path, tmp_path: Path) -> None:
    import own_study

    file = tmp_path / "mine.toml"
    entries = '[[tasks]]\nname = "own_study:clinic"\n[[learners]]\nname = "own_study:Mine"\n[[learners]]\nname = "random"\n'
    file.write_text(f'name = "mine"\nrounds = 2\n{entries}')
    study = Study.load(file)
    assert sorted(own_study.BUILT) == ["learner", "task 0"]
    run_study(study, tmp_path / "out", engine=Inline())
    seeds = sorted({job.seed for job in study.jobs()})
    assert sorted(own_study.BUILT) == sorted(["learner", "task 0", *(f"task {seed}" for seed in seeds)])


@pytest.mark.slow
def test_the_source_of_task_and_learner_is_recorded(module: Path, tmp_path: Path) -> None:
    study = small_study(1, ("own_study:Mine", "random"), **OWN)
    run_study(study, tmp_path / "out", engine=LocalEngine(1))
    digest = sha256(module.read_bytes()).hexdigest()
    known = Results.open(tmp_path / "out").provenance()
    assert [(one["source"], one["task_source"]) for one in known] == [(digest, digest), (None, digest)]


def test_a_changed_task_outdates_all_its_runs_and_they_can_be_played_anew(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [*OWN["tasks"], {"name": "cpap@noisy", "options": {"arms": 2, "budget": 1, "horizon": 3, "episodes": 2}}]
    study, folder = small_study(2, ("random",), tasks=tasks), tmp_path / "out"
    assert changes_since(study, folder).ids == frozenset()
    run_study(study, folder, engine=Inline())
    assert changes_since(study, folder).ids == frozenset()
    module.write_text(MODULE + "# changed\n")
    changes = changes_since(study, folder)
    own = [job.id for job in study.jobs() if job.task.label == "clinic"]
    assert changes.outdated == {"task clinic": tuple(own)}
    stay, again = Inline(), Inline()
    assert run_study(study, folder, engine=stay).complete
    assert run_study(study, folder, engine=again, again=changes.ids).complete
    assert (stay.played, again.played) == ([], own)
    assert changes_since(study, folder).ids == set(own)  # this process still has the old source, and says so
    monkeypatch.delitem(sys.modules, "own_study")
    assert run_study(study, folder, engine=Inline(), again=changes.ids).complete
    assert changes_since(study, folder).ids == frozenset()


@pytest.mark.slow
def test_a_report_reads_every_shard_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_study(small_study(2), tmp_path, engine=Inline())
    read, opened = pq.ParquetFile, list[object]()
    monkeypatch.setattr(pq, "ParquetFile", lambda *args, **kwargs: (opened.append(args), read(*args, **kwargs))[1])
    write_report(Results.open(tmp_path), tmp_path / "report")
    assert len(opened) == 4


@pytest.mark.slow
class TestSentToWorkers:
    """The workers' path has the library only."""

    @pytest.fixture(scope="class")
    @classmethod
    def running(cls, tmp_path_factory: pytest.TempPathFactory) -> object:
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            patch.setattr(clusters, "ENVIRONMENT", {**os.environ, "PYTHONPATH": SOURCE})
            yield Cluster(tmp_path_factory.mktemp("cluster"), stack, 1)

    def test_modules_and_packages(self, running: Cluster, module: Path, tmp_path: Path) -> None:
        package = module.parent / "own_package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "parts.py").write_text("from own_package.kind import Kind as Mine\n")
        (package / "kind.py").write_text(
            "from rmab.learning import RandomLearner\nclass Kind(RandomLearner):\n    name = 'kind'\n"
        )
        study = small_study(2, ("own_study:Mine", "own_package.parts:Mine"), **OWN)
        status = run_study(study, tmp_path / "out", engine=DaskEngine(running.address))
        assert not status.failures
        assert status.complete
        results = Results.open(tmp_path / "out")
        digests = {sha256(one.read_bytes()).hexdigest() for one in (module, package / "parts.py")}
        assert {one["source"] for one in results.provenance()} == digests
        run_study(study, tmp_path / "here", engine=Inline())
        same = ["id", "episode", "reward"]
        assert results.table(same).equals(Results.open(tmp_path / "here").table(same))

        module.write_text(MODULE.replace("uniform(size", "uniform(0.5, size") + "# changed\n")
        (package / "kind.py").write_text(
            (package / "kind.py").read_text() + "    def update(self, state, feedback):\n        1 / 0\n"
        )
        (package / "parts.py").write_text((package / "parts.py").read_text() + "# changed\n")
        changes = changes_since(study, tmp_path / "out")
        assert len(changes.ids) == 4
        status = run_study(study, tmp_path / "out", engine=DaskEngine(running.address), again=changes.ids)
        assert {one.message for one in status.failures} == {"ZeroDivisionError: division by zero"}  # the new package
        assert changes_since(study, tmp_path / "out").ids == {one.id for one in status.failures}

    def test_what_a_worker_cannot_import_is_said(self, running: Cluster, module: Path, tmp_path: Path) -> None:
        (module.parent / "left_behind.py").write_text("")
        module.write_text(f"import left_behind\n{MODULE}")
        study = small_study(1, ("own_study:Mine",))
        said = r"module own_study cannot be used on the workers of tcp://.* \(ModuleNotFoundError: .*'left_behind'\)"
        with pytest.raises(rmab.errors.StudyError, match=said):
            run_study(study, tmp_path / "out", engine=DaskEngine(running.address))

    def test_installed_ones_are_left_to_the_workers(self, module: Path) -> None:
        assert _place("rmab") is None
        assert _place("numpy") is None
        assert _place("json") is None
        assert _place("sys") is None
        assert _place("no_such_module") is None
        assert _place("own_study") == module.resolve()
        assert Path(HERE) in (_place("studies") or Path()).parents


def test_the_library_s_own_path_is_that_of_this_checkout() -> None:
    assert str(Path(rmab.__file__).parents[1]) == SOURCE
