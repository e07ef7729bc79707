"""A Dask cluster: its workers execute runs, and send the shards back to be written here.

Workers need the library, and the task files of a study at the same paths as here; custom modules are sent to them. A
shared disk is not needed. If a worker dies, Dask repeats its run. A job is sent as text and returned as the bytes of a
file that is checked; the only other thing that Dask pickles is the name of the function to call.
"""

import asyncio
import re
import time
from collections.abc import Generator, Iterable
from concurrent.futures import CancelledError
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rmab
from rmab.common import require
from rmab.errors import FileError, ModelError, StudyError
from rmab.study.build import modules_of
from rmab.study.engines import Outcome
from rmab.study.shards import provenance_of, read_shard, shard_path, write_shard
from rmab.study.single_run import attempt_text
from rmab.study.spec import Job

if TYPE_CHECKING:
    from distributed import Client, Future, Security

PATIENCE = 30.0  # seconds to find the scheduler, and to see a first worker
AHEAD = 2  # jobs per thread of the cluster that are submitted ahead
ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})/?|inproc://\S+")
REFRESH = 5.0  # seconds between checks of the cluster's size


class DaskEngine:
    """Executes runs on the workers of a Dask cluster.

    Parameters
    ----------
    scheduler : str
        Address of a running scheduler, for example `tls://10.0.0.1:8786`.
    security : distributed.Security, optional
        Certificates for TLS; by default those of Dask's settings (docs/security.md).

    Raises
    ------
    ModelError
        If the address is not valid.
    """

    name = "dask"

    def __init__(self, scheduler: str, security: "Security | None" = None) -> None:
        found = ADDRESS.fullmatch(scheduler) if isinstance(scheduler, str) else None
        if found is None or not 0 < int(found["port"] or 1) < 2**16:
            raise ModelError(f"the engine needs the address of a Dask scheduler, such as tcp://host:8786, got {scheduler!r}")
        self.scheduler, self.security = scheduler, security
        self.sent = set[str]()

    def run(self, jobs: Iterable[Job], folder: Path) -> Generator[Outcome, None, None]:
        """Execute all jobs; see Engine."""
        require("dask", "the engine")
        from distributed import as_completed  # noqa: PLC0415  (an extra, and slow to import)

        waiting = iter(jobs)
        self.sent = set[str]()  # custom modules that the workers have
        with self._client() as client:
            room, checked_at = self._room(client), time.monotonic()
            under_way = {self._submit(client, job): job for job in islice(waiting, room)}
            finished = as_completed(list(under_way), loop=client.loop)
            for future in finished:
                job = under_way.pop(future)
                yield self._outcome(job, future, folder)
                future.release()  # frees memory on the cluster
                if time.monotonic() > checked_at + REFRESH:  # clusters grow and shrink
                    room, checked_at = self._room(client), time.monotonic()
                for following in islice(waiting, max(0, room - len(under_way))):
                    new = self._submit(client, following)
                    under_way[new] = following
                    finished.add(new)

    def _client(self) -> "Client":
        from distributed import Client  # noqa: PLC0415

        self._check_certificates()
        try:
            client = Client(self.scheduler, timeout=PATIENCE, set_as_default=False, security=self.security)
        except (OSError, ValueError, TimeoutError) as error:
            raise StudyError(f"no Dask scheduler answers at {self.scheduler} ({str(error).splitlines()[0]})") from error
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except BaseException as error:
            client.close()
            if not isinstance(error, TimeoutError):
                raise
            raise StudyError(
                f"the Dask scheduler at {self.scheduler} has no workers; start some with `dask worker`"
            ) from error
        return client

    def _check_certificates(self) -> None:
        """Raise StudyError if the address requires TLS and the certificates are missing or unreadable."""
        if not self.scheduler.startswith(("tls://", "wss://")):
            return
        from distributed import Security  # noqa: PLC0415

        try:
            found = (self.security or Security()).get_connection_args("client")["ssl_context"]
        except (OSError, ValueError) as error:
            raise StudyError(f"the certificates for {self.scheduler} cannot be read ({error})") from error
        if found is None:
            raise StudyError(f"{self.scheduler} needs certificates, but Dask's settings have none; see docs/security.md")

    def _room(self, client: "Client") -> int:
        """Return the maximum number of submitted jobs."""
        try:
            threads: int = sum(client.nthreads().values())
        except OSError as error:
            raise StudyError(f"the Dask scheduler at {self.scheduler} is lost ({type(error).__name__})") from error
        return AHEAD * max(1, threads)

    def _outcome(self, job: Job, future: "Future", folder: Path) -> Outcome:
        from distributed import KilledWorker  # noqa: PLC0415

        try:
            content, failure, trace = future.result()
        except KilledWorker as error:
            return Outcome(job, f"its workers died ({error})".replace("\n", " "))
        except (CancelledError, OSError, asyncio.CancelledError) as error:
            raise StudyError(f"the Dask scheduler at {self.scheduler} is lost ({type(error).__name__})") from error
        if content is None:
            return Outcome(job, failure, trace)
        self._check(job, content, folder)
        write_shard(folder, job.id, content)
        return Outcome(job)

    def _check(self, job: Job, content: bytes, folder: Path) -> None:
        """Raise StudyError if a worker has another version of the library."""
        path = shard_path(folder, job.id)
        try:
            table: Any = read_shard(path, job.id, content)
            version = provenance_of(table.schema)["version"]
        except FileError as error:
            raise StudyError(f"a worker of {self.scheduler} sent an invalid shard of run {job.id} ({error})") from error
        if version != rmab.__version__:
            both = f"rmab {version}, this machine has {rmab.__version__}"
            raise StudyError(f"a worker of {self.scheduler} has {both}; install the same version")

    def _submit(self, client: "Client", job: Job) -> "Future":
        """Submit a job, after sending the custom modules that it needs."""
        from rmab.study.engines.uploads import send  # noqa: PLC0415

        for module in {*modules_of(job.task), *modules_of(job.learner)}:
            top = str(module).partition(".")[0]
            if top not in self.sent:
                try:
                    send(client, top)
                except Exception as error:  # the code is the user's, and is imported there
                    reason = " ".join(f"{type(error).__name__}: {error}".split())
                    raise StudyError(f"module {top} cannot be used on the workers of {self.scheduler} ({reason})") from error
                self.sent.add(top)
        return client.submit(attempt_text, job.to_text(), DaskEngine.name, pure=False)
