"""What the fuzzer has done so far: one small file, written in one move, so that the next call goes on from there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rmab.common.files import write_atomically


@dataclass
class Progress:
    """How far a part is: the next seed, the first one, the time it took, and how often it did what."""

    next: int = 0
    first: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """All parts, and all findings, each with what replays it; first: the seed with which a new part begins."""

    path: Path
    parts: dict[str, Progress] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    cpu: float = 0.0  # seconds of all processes
    first: int = 0

    @classmethod
    def opened(cls, folder: Path, first: int = 0) -> Record:
        """Return the record of a folder, or an empty one, whose parts begin with this seed."""
        path = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            return cls(path, first=first)
        whole = json.loads(path.read_text(encoding="utf-8"))
        parts = {name: Progress(**one) for name, one in whole["parts"].items()}
        return cls(path, parts, whole["findings"], whole.get("cpu", 0.0), first)

    def of(self, part: str) -> Progress:
        """Return the progress of a part."""
        return self.parts.setdefault(part, Progress(self.first, self.first))

    def add(self, part: str, seed: int, seconds: float, counts: dict[str, int]) -> None:
        """Note that a case was played."""
        progress = self.of(part)
        progress.next, progress.seconds = max(progress.next, seed + 1), progress.seconds + seconds
        for name, number in counts.items():
            progress.counts[name] = progress.counts.get(name, 0) + number

    def save(self) -> None:
        """Write the record in one move."""
        parts = {name: asdict(one) for name, one in self.parts.items()}
        text = json.dumps({"parts": parts, "findings": self.findings, "cpu": self.cpu}, indent=1)
        write_atomically(self.path, text.encode() + b"\n")
