"""What the fuzzer has done so far: one small file, written in one move, so that the next call goes on from there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rmab.common.files import write_atomically


@dataclass
class Progress:
    """How far a part is: the next seed, the time it took, and how often it did what."""

    next: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class Record:
    """All parts, and all findings, each with what replays it."""

    path: Path
    parts: dict[str, Progress] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def opened(cls, folder: Path) -> Record:
        """Return the record of a folder, or an empty one."""
        path = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            return cls(path)
        whole = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, {name: Progress(**one) for name, one in whole["parts"].items()}, whole["findings"])

    def of(self, part: str) -> Progress:
        """Return the progress of a part."""
        return self.parts.setdefault(part, Progress())

    def add(self, part: str, seed: int, seconds: float, counts: dict[str, int]) -> None:
        """Note that a case was played."""
        progress = self.of(part)
        progress.next, progress.seconds = max(progress.next, seed + 1), progress.seconds + seconds
        for name, number in counts.items():
            progress.counts[name] = progress.counts.get(name, 0) + number

    def save(self) -> None:
        """Write the record in one move."""
        parts = {name: asdict(one) for name, one in self.parts.items()}
        text = json.dumps({"parts": parts, "findings": self.findings}, indent=1)
        write_atomically(self.path, text.encode() + b"\n")
