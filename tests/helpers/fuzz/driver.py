"""The fuzzer's loop and its command line."""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fuzz.cases import PARTS
from fuzz.record import Record
from fuzz.worker import Worker

FRESH = 500  # cases after which a worker is replaced: what one leaves behind does not pile up
ALIKE, MORE = 3, 50  # findings from one line of code that are kept whole, and seeds of further ones
FIRST = 300.0  # seconds for the first cases of a part in a worker, which may have to compile


class Fuzzer:
    """Plays cases in a worker, replaces it where it ended, and keeps the record."""

    def __init__(self, record: Record, limit: float, say: Callable[[str], None] | None = None) -> None:
        self.record, self.limit, self.say = record, limit, say or _say
        self._worker: Worker | None = None
        self._before: list[tuple[str, int]] = []  # what the worker had played before the last case

    def case(self, part: str, seed: int) -> bool:
        """Play one case and note what came of it; whether it was fine."""
        begin = time.monotonic()
        answer = self._ask(part, seed)
        self.record.add(part, seed, time.monotonic() - begin, answer.get("counts", {}))
        if "finding" in answer:
            self._found(part, seed, answer)
        self.record.save()
        return "finding" not in answer

    def run(self, parts: Sequence[str], seconds: float) -> None:
        """Go on with these parts until the time is over; the part that had least of it comes next."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            part = min(parts, key=lambda name: self.record.of(name).seconds)
            self.case(part, self.record.of(part).next)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _ask(self, part: str, seed: int) -> dict[str, Any]:
        if self._worker is None or len(self._worker.played) >= FRESH:
            self.close()
            self._worker = Worker()
        self._before = list(self._worker.played)
        first = part not in {name for name, _ in self._before}
        answer = self._worker.ask(part, seed, max(self.limit, FIRST) if first and part in PARTS else self.limit)
        if self._worker.process.poll() is not None:
            self.close()
        return answer

    def _found(self, part: str, seed: int, answer: dict[str, Any]) -> None:
        """Note a finding; the first ones of a kind are played again in a fresh worker, alone."""
        place = answer.setdefault("where", answer["finding"])  # a crash or a hang has no line
        alike = [one for one in self.record.findings if one["part"] == part and one["where"] == place]
        if len(alike) >= ALIKE:
            alike[0]["more"] = [*alike[0].get("more", []), seed][-MORE:]
            return
        finding = {"part": part, "seed": seed, "replay": replay(part, seed), **answer}
        fresh = Worker()
        finding["alone"] = "finding" in fresh.ask(part, seed, max(self.limit, FIRST if part in PARTS else 0.0))
        fresh.close()
        if not finding["alone"]:
            finding["after"] = self._before[-MORE:]
        self.record.findings.append(finding)
        self.say(f"FOUND {part} {seed}: {answer['finding']}")
        self.say(f"  replay: {finding['replay']}{'' if finding['alone'] else '   (fine when played alone)'}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def replay(part: str, seed: int) -> str:
    """Return the command line that plays exactly this case."""
    return f"{Path(sys.executable).name} tests/helpers/fuzz --only {part} --seed {seed}"


def summary(record: Record, parts: Sequence[str]) -> str:
    """Return a line per part, and one on the findings."""
    lines = []
    for name in parts:
        progress = record.of(name)
        cases = progress.next - progress.first
        rate = 60 * cases / progress.seconds if progress.seconds else 0.0
        did = ", ".join(f"{what} {number}" for what, number in sorted(progress.counts.items()))
        lines.append(f"{name}: {cases} cases, seeds {progress.first}..{progress.next - 1}, {rate:.0f} a minute: {did}")
    total = sum(one.next - one.first for one in record.parts.values())
    whole = f"{total} cases in {record.cpu / 60:.1f} minutes of CPU time"
    return "\n".join([*lines, f"{whole}, {len(record.findings)} findings in {record.path}"])


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all workers that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where this call found something."""
    parser = argparse.ArgumentParser(prog="fuzz", description=sys.modules["fuzz"].__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="how long to go on")
    parser.add_argument("--only", action="append", metavar="PART", help=f"a part; all by default: {', '.join(PARTS)}")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="where a new record begins: other cases")
    parser.add_argument("--seed", type=int, help="play just this case of the part, and say what comes of it")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where the record is kept")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of CPU time that a case may take")
    given = parser.parse_args(words)
    parts = given.only or PARTS
    folder = given.out if given.seed is None else given.out / "replayed"
    fuzzer = Fuzzer(Record.opened(folder, given.first), given.limit)
    before, used = len(fuzzer.record.findings), cpu_seconds()
    old = signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end, too, is no loss
    try:
        if given.seed is not None:
            fine = [fuzzer.case(part, given.seed) for part in parts]
            for found in fuzzer.record.findings[before:]:
                _say(found["trace"])
            return 0 if all(fine) else 1
        _say(f"fuzzing {', '.join(parts)} for {given.minutes:g} minutes; Ctrl-C stops, the next call goes on")
        fuzzer.run(parts, 60 * given.minutes)
    except KeyboardInterrupt:
        _say("stopped")
    finally:
        fuzzer.close()
        fuzzer.record.cpu += cpu_seconds() - used
        fuzzer.record.save()
        signal.signal(signal.SIGTERM, old)
    _say(summary(fuzzer.record, parts))
    return 1 if len(fuzzer.record.findings) > before else 0
