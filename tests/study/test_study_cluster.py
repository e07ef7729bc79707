"""A Dask cluster and strangers: jobs are plain data, and TLS keeps out whoever has no certificate."""

import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from distributed import Security

import rmab
from clusters import ENVIRONMENT, until
from rmab.study import DaskEngine, Job, Results, run_study
from rmab.study.engines import dask
from rmab.study.single_run import attempt_text
from studies import Inline, data, small_study

ROOT = Path(__file__).parents[2]


def test_a_job_is_plain_text_and_comes_back_the_same() -> None:
    learners = [{"name": "ucmd-armab", "label": "é $", "options": {"epsilon": 0.1, "rule": "fill"}, "feedback": "full"}]
    for job in small_study(2, learners=learners).jobs():
        text = job.to_text()
        assert type(text) is str
        assert Job.from_text(text) == job


def test_only_text_is_submitted() -> None:
    sent: list[tuple[object, ...]] = []

    class Recorder:
        def submit(self, *words: object, **_: object) -> None:
            sent.append(words)

    job = small_study(1).jobs()[0]
    DaskEngine("tcp://somewhere:1")._submit(Recorder(), job)  # type: ignore[arg-type]
    assert sent == [(attempt_text, job.to_text(), "dask")]


def test_the_pages_warn_of_an_open_scheduler() -> None:
    for page in ("docs/cluster.md", "docs/security.md", "docs/cli.md"):
        text = " ".join((ROOT / page).read_text().split())
        assert re.search(r"listens .*without (any )?authentication", text), page
        assert "127.0.0.1" in text or page == "docs/cli.md"
        assert "security.md" in text or page == "docs/security.md"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_with_tls_as_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=rmab -keyout node.key -out node.pem"
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "ca.pem").write_bytes((tmp_path / "node.pem").read_bytes())
    page = (ROOT / "docs" / "security.md").read_text()
    options = "--tls-ca-file ca.pem --tls-cert node.pem --tls-key node.key"
    assert page.count(options) == 2
    private = [*options.split(), "--host", "127.0.0.1", "--no-dashboard"]
    with ExitStack() as stack:

        def started(kind: str, *words: str) -> Path:
            log = tmp_path / f"{kind}.log"
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, *private]
            lines = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(command, stdout=lines, stderr=subprocess.STDOUT, env=ENVIRONMENT, cwd=tmp_path)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return log

        log, address = started("scheduler", "--protocol", "tls", "--port", "0"), re.compile(r"tls://127\.0\.0\.1:\d+")
        until(lambda: address.search(log.read_text()), "the scheduler tells its address")
        place = str(address.findall(log.read_text())[0])
        started("worker", place, "--nthreads", "1", "--no-nanny", "--death-timeout", "60")
        study = small_study(1)
        files = {"tls_ca_file": "ca.pem", "tls_client_cert": "node.pem", "tls_client_key": "node.key"}
        ours = Security(require_encryption=True, **{key: str(tmp_path / name) for key, name in files.items()})
        assert run_study(study, tmp_path / "out", engine=DaskEngine(place, ours)).complete
        run_study(study, tmp_path / "here", engine=Inline())
        assert data(tmp_path / "out") == data(tmp_path / "here")
        monkeypatch.setattr(dask, "PATIENCE", 3.0)
        with pytest.raises(rmab.errors.StudyError, match="no Dask scheduler answers"):
            run_study(study, tmp_path / "stranger", engine=DaskEngine(place.replace("tls", "tcp")))
        with pytest.raises(rmab.errors.StudyError, match=r"needs certificates, .*; see docs/security.md"):
            run_study(study, tmp_path / "stranger", engine=DaskEngine(place))
        lost = Security(tls_ca_file=str(tmp_path / "none.pem"), tls_client_cert=str(tmp_path / "none.pem"))
        with pytest.raises(rmab.errors.StudyError, match=r"certificates .* cannot be read"):
            run_study(study, tmp_path / "stranger", engine=DaskEngine(place, lost))
        settings = dict(re.findall(r"(DASK_DISTRIBUTED__\w+)=(\S+)", page))
        assert len(settings) == 4
        told = {**ENVIRONMENT, **settings}
        words = ["study", "run", "x.toml", "--out", "told", "--engine", "dask", "--scheduler", place, "--json"]
        tiny = "options = { arms = 2, budget = 1, horizon = 3, episodes = 2 }\n[[learners]]\nname = 'random'\n"
        (tmp_path / "x.toml").write_text(f"name = 'x'\nrounds = 1\n[[tasks]]\nname = 'cpap'\n{tiny}")
        command = [sys.executable, "-c", "from rmab.cli import main; main()", *words]
        subprocess.run(command, cwd=tmp_path, env=told, check=True, capture_output=True, timeout=120)
        assert Results.open(tmp_path / "stranger").status().finished == 0
