"""The service under load, on loopback: 50 clients that ask, tell and look at the page, then a machine, then kill -9.

    python benchmarks/service.py [--clients 50] [--seconds 60] [--arms 1000] [--pause 0.5] [--observations 0]

The service is a process of its own; clients are threads of another one, each of which waits `--pause` seconds between two
requests, as people and machines do. Milliseconds are those of the clock, so they depend on what else the machine does.
`--observations 10000000` also times the start of a service on a store with so many reports.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np

import rmab

STATES = ["low", "middle", "high"]
API = "/api/v1/programmes/p"


class Service:
    """`rmab live serve` as a process."""

    def __init__(self, store: str) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        words = [sys.executable, "-m", "rmab", "live", "serve", store, "--port", str(self.port)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = Client(self.port)
        while True:
            assert self.process.poll() is None, "it does not start"
            try:
                if client.send("GET", API)[0] == 200:
                    break
            except (OSError, HTTPException):
                time.sleep(0.02)

    def memory(self) -> float:
        """Return the resident memory in megabytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return float("nan")


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Send a request, and return status and content."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), sent)
            found = self.connection.getresponse()
            return found.status, found.read()
        except (OSError, HTTPException):
            self.connection.close()
            raise


class Load:
    """Clients that ask, tell and look, until they are stopped."""

    def __init__(self, port: int, ids: list[str], clients: int, pause: float, name: str) -> None:
        self.name = name
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self.kept: list[str] = []  # keys of what was acknowledged
        self._stop, self._lock = threading.Event(), threading.Lock()
        parts = [(port, ids[k::clients], k, pause) for k in range(clients)]
        self._threads = [threading.Thread(target=self._work, args=one) for one in parts]
        for one in self._threads:
            one.start()

    def _work(self, port: int, ids: list[str], number: int, pause: float) -> None:
        client, draw, count = Client(port), random.Random(number), 0
        while not self._stop.wait(draw.uniform(0, 2 * pause)):
            what, key = draw.choices(["tell", "ask", "page"], [3, 1, 1])[0], f"{self.name} {number} {count}"
            count += 1
            start = time.perf_counter()
            try:
                if what == "tell":
                    body = {"period": "2", "rows": [{"arm": ids[count % len(ids)], "executed": "yes"}]}
                    status, content = client.send("POST", f"{API}/observations", body, Idempotency_Key=key)
                elif what == "ask":
                    status, content = client.send("PUT", f"{API}/decisions/2")
                else:
                    status, content = client.send("GET", "/p/p")
            except (OSError, HTTPException) as error:
                if not self._stop.is_set():
                    with self._lock:
                        self.errors.append(f"{what}: {error!r}")
                continue
            with self._lock:
                self.times[what].append(time.perf_counter() - start)
                if status >= 400:
                    self.errors.append(f"{what}: {status} {content[:100]!r}")
                elif what == "tell":
                    self.kept.append(key)

    def end(self) -> None:
        """Stop all clients."""
        self._stop.set()
        for one in self._threads:
            one.join()


def fill(path: str, arms: int) -> list[str]:
    """Make a programme with one decided and reported period, and a second that is decided."""
    rng = np.random.default_rng(0)
    ids = [f"arm-{k:06d}" for k in range(arms)]
    with rmab.live.open(path) as store:
        p = store.create("p", states=STATES, budget=max(arms // 25, 1), reward={"high": 1}, every="number", random_share=0.1)
        p.join(
            ids, group=[f"g{g}" for g in rng.integers(20, size=arms)], state=[STATES[s] for s in rng.integers(3, size=arms)]
        )
        p.ask(1)
        p.tell(1, {"arm": ids, "state": [STATES[s] for s in rng.integers(3, size=arms)], "executed": [0, 1] * (arms // 2)})
        p.ask(2)
    return ids


def show(name: str, times: list[float]) -> None:
    """Print the percentiles of times."""
    if times:
        p50, p99 = (1000 * float(np.percentile(times, one)) for one in (50, 99))
        print(f"{name:12} {len(times):7,} requests   p50 {p50:8.1f} ms   p99 {p99:8.1f} ms")


def load(folder: str, clients: int, seconds: float, arms: int, pause: float) -> None:
    """Measure the mixed load, the memory, a machine, and what kill -9 leaves."""
    path = f"{folder}/p.db"
    ids = fill(path, arms)
    service = Service(path)
    running = Load(service.port, ids, clients, pause, "usual")
    time.sleep(min(5.0, seconds / 4))
    early = service.memory()
    time.sleep(seconds)
    late = service.memory()
    running.end()
    print(f"{clients} clients, {arms:,} arms, {seconds:g} s, a request every {pause:g} s each")
    for name, times in sorted(running.times.items()):
        show(name, times)
    print(f"errors {len(running.errors)} {running.errors[:3]}; memory {early:.0f} MB after 5 s, {late:.0f} MB at the end")
    machine = Client(service.port)
    states = dict.fromkeys(ids[:100], "low") if arms == 100 else dict.fromkeys(ids, "low")
    times = []
    for _ in range(500):
        start = time.perf_counter()
        status, content = machine.send("POST", f"{API}/decide", {"states": states})
        times.append(time.perf_counter() - start)
        assert status == 200, content
    show("decide", times[10:])
    running = Load(service.port, ids, clients, 0.02, "killed")
    time.sleep(3)
    service.process.send_signal(signal.SIGKILL)
    service.process.wait()
    running.end()
    with rmab.live.open(path) as store:
        p = store.programme("p")
        keys, count = {one.key for one in p.events}, p.verify()
    lost = [one for one in running.kept if one not in keys]
    print(
        f"kill -9 under load: {len(running.kept):,} acknowledged, {len(lost)} lost; the journal of {count:,} events verifies"
    )


def restart(folder: str, observations: int) -> None:
    """Measure the start of a service on a store with many reports, and a snapshot."""
    arms = 100_000
    path = f"{folder}/large.db"
    ids = fill(path, arms)
    rng = np.random.default_rng(1)
    with rmab.live.open(path) as store:
        p = store.programme("p")
        for period in range(2, 2 + observations // arms):
            p.ask(period)  # a report far from every list is refused
            p.tell(period, {"arm": ids, "state": [STATES[s] for s in rng.integers(3, size=arms)]})
        p.snapshot()
    start = time.perf_counter()
    service = Service(path)
    print(f"start with {observations:,} observations: {time.perf_counter() - start:.1f} s, {service.memory():.0f} MB")
    service.process.terminate()
    service.process.wait()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--arms", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--observations", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        load(folder, given.clients, given.seconds, given.arms, given.pause)
        if given.observations:
            restart(folder, given.observations)


if __name__ == "__main__":
    main()
