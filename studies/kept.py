"""What a program of this folder found, in a JSON file of its own, with the versions of the library that found it."""

import argparse
import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import rmab
from rmab.common.files import write_atomically
from rmab.errors import FileError
from rmab.study.origin import revision, short

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Kept:
    """A file of results: what was found, by name, round by round; and by which versions of the library."""

    path: Path
    found: dict[str, list[Any]]
    versions: list[str]

    @classmethod
    def of(cls, path: Path) -> "Kept":
        """Read a file; nothing was found where there is none. FileError if another form of the program wrote it."""
        if not path.exists():
            return cls(path, {}, [])
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            source, found, versions = read["source"], dict(read["found"]), list(read["versions"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{path} is no file of results ({type(error).__name__}): remove it") from error
        if source != source_of(path):
            raise FileError(f"{path} was made by another {path.stem}.py than there is now: remove it")
        return cls(path, found, versions)

    def whole(self, names: list[str]) -> bool:
        """Return whether all of these were found, in equally many rounds."""
        rounds = {len(self.found.get(name, [])) for name in names}
        return len(rounds) == 1 and 0 not in rounds

    def write(self) -> None:
        """Write the file, with this version among its versions."""
        made = sorted({*self.versions, version(rmab.__version__, revision())})
        self.versions[:] = made
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = {"source": source_of(self.path), "versions": made, "found": self.found}
        write_atomically(self.path, json.dumps(kept, indent=1).encode())


def source_of(path: Path) -> str:
    """Return the SHA-256 of the program that makes a file of this name."""
    return sha256((HERE / f"{path.stem}.py").read_bytes()).hexdigest()


def asked(what: str, rounds: int) -> tuple[Path, int]:
    """Return the folder and the number of rounds, at least 2, that a program is asked for on its command line."""
    parser = argparse.ArgumentParser(description=what, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds, help="at least 2")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results", help="where its file is")
    args = parser.parse_args()
    return args.out, max(2, args.rounds)


def version(number: object, of: object) -> str:
    """Return a version of the library in words."""
    return f"rmab {number}, revision {short(str(of or 'unknown'))}"
