"""Shards: one Parquet file per run, written in one move, and believed only after it was checked.

Parquet's own page checksums guard the data; the provenance in the schema's metadata, which has a checksum of ours, says
which job of which study the file belongs to, and how many rows it has.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rmab.common.files import write_atomically
from rmab.common.parsing import parsed_json
from rmab.errors import FileError

KEY = b"rmab"
_TEXT, _WHOLE = ("id", "task", "learner", "feedback", "privileged"), ("round", "seed", "episode")
_COUNTS = ("activations", "visited", "iterations", "arms", "budget", "horizon", "adaptive")
_NAMES = (
    *_TEXT, *_WHOLE, "reward", "bound", "chance", "activations", "visited", "iterations", "seconds",
    "regret_O1", "regret_O2", "regret_O3", "term0", "term1", "term2", "term3", "arms", "budget", "horizon", "adaptive",
    "theory",
)  # fmt: skip
SCHEMA = pa.schema(
    [(name, pa.string() if name in _TEXT else pa.int64() if name in _WHOLE + _COUNTS else pa.float64()) for name in _NAMES]
)


class OtherStudyError(FileError):
    """A shard that is whole, but of a study that does not count."""


def shard_path(folder: Path, run_id: str) -> Path:
    """Return where the shard of a run lies in a study's folder."""
    return folder / "runs" / f"{run_id}.parquet"


def with_provenance(table: pa.Table, provenance: dict[str, Any]) -> pa.Table:
    """Return the table with its provenance in the metadata."""
    whole = {**provenance, "checksum": _checksum(provenance)}
    return table.replace_schema_metadata({KEY: json.dumps(whole, sort_keys=True)})


def provenance_of(schema: pa.Schema) -> dict[str, Any]:
    """Return the provenance in a schema's metadata; ValueError where there is none, or it was changed."""
    found = parsed_json((schema.metadata or {}).get(KEY, b"null").decode())
    if not isinstance(found, dict) or found.pop("checksum", None) != _checksum(found):
        raise ValueError("no provenance, or not as it was written")
    return found


def _checksum(provenance: dict[str, Any]) -> int:
    return crc32(json.dumps(provenance, sort_keys=True).encode())


def encoded(table: pa.Table) -> bytes:
    """Return the table as the content of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_statistics=False, write_page_checksum=True)
    return bytes(sink.getvalue())


def write_shard(folder: Path, run_id: str, content: bytes) -> None:
    """Put a shard in its place, in one move."""
    write_atomically(shard_path(folder, run_id), content)


def read_shard(path: Path, run_id: str, studies: Collection[str], content: bytes | None = None) -> pa.Table | None:
    """Return the table of a shard, or None where there is no file; FileError where it is not what it should be.

    studies: the hashes of the studies whose runs count; a whole shard of another one raises OtherStudyError.
    content: look at these bytes in place of the file's.
    """
    try:
        source = pa.BufferReader(path.read_bytes() if content is None else content)
        file = pq.ParquetFile(source, page_checksum_verification=True)
        known = provenance_of(file.schema_arrow)
        if known.get("id") != run_id:
            raise FileError(f"{path}: is run {known.get('id')} of study {known.get('study')}, not run {run_id}")
        if file.schema_arrow.remove_metadata() != SCHEMA or file.metadata.num_rows != known.get("episodes"):
            raise FileError(f"{path}: its columns or rows are not those of a run")
        table = file.read(use_threads=False)  # all of it: a shard is believed as a whole, or not at all
    except FileNotFoundError:
        return None
    except FileError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FileError(f"{path}: damaged ({error})".replace("\n", " ")) from error
    if table.num_rows != known["episodes"]:
        raise FileError(f"{path}: damaged (rows are missing)")
    if known.get("study") not in studies:
        raise OtherStudyError(f"{path}: a finished run of study {known.get('study')}, not of {' or '.join(studies)}")
    return with_provenance(table, known)  # the file has it twice, and only one of them was checked


def sweep(folder: Path) -> None:
    """Remove what writers that were killed left behind: files that never got their name."""
    for stray in (*(folder / "runs").glob(".*.parquet.*"), *(folder / "failures").glob(".*.json.*")):
        stray.unlink(missing_ok=True)
