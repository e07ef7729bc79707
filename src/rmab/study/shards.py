"""Shards: one Parquet file per run, written atomically and checked when it is read.

Parquet's page checksums guard the data. The provenance in the schema's metadata, which has a checksum, has the format
version, the id of the run and the number of rows. The id is a digest of task, learner, round and seed: a shard with the id
of a job is the run of that job, in any study.
"""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from rmab.common import parse_json, write_atomically
from rmab.errors import FileError

KEY = b"rmab"
FORMAT = 3  # add 1 when a column is added, removed, renamed or changes its meaning; version 1 had no version
RENAMED = {"random": "chance"}  # names of columns up to version 2
_TEXT, _WHOLE = ("id", "task", "learner", "feedback", "privileged"), ("round", "seed", "episode")
_COUNTS = ("activations", "visited", "iterations", "arms", "budget", "horizon", "adaptive")
_NAMES = (
    *_TEXT, *_WHOLE, "reward", "bound", "random", "activations", "visited", "iterations", "seconds",
    "regret_O1", "regret_O2", "regret_O3", "term0", "term1", "term2", "term3", "arms", "budget", "horizon", "adaptive",
    "theory",
)  # fmt: skip
SCHEMA = pa.schema(
    [(name, pa.string() if name in _TEXT else pa.int64() if name in _WHOLE + _COUNTS else pa.float64()) for name in _NAMES]
)


class NewerFormatError(FileError):
    """A file that a newer version of the library wrote; it is neither read nor overwritten."""


def checked_format(path: Path, version: object) -> int:
    """Return the format version of a file; raise NewerFormatError if it is newer than this library."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"its format version is {version!r:.40}")
    if version > FORMAT:
        both = f"(format {version}, this one reads up to {FORMAT})"
        raise NewerFormatError(f"{path}: written by a newer rmab {both}; update rmab, or use another folder")
    return version


def shard_path(folder: Path, run_id: str) -> Path:
    """Return the path of the shard of a run in a study's folder."""
    return folder / "runs" / f"{run_id}.parquet"


def with_provenance(table: pa.Table, provenance: dict[str, Any]) -> pa.Table:
    """Return the table with its provenance in the metadata."""
    provenance = {"format": FORMAT, **provenance}
    whole = {**provenance, "checksum": _checksum(provenance)}
    return table.replace_schema_metadata({KEY: json.dumps(whole, sort_keys=True)})


def provenance_of(schema: pa.Schema) -> dict[str, Any]:
    """Return the provenance in a schema's metadata; raise ValueError if it is missing or was changed."""
    found = parse_json((schema.metadata or {}).get(KEY, b"null").decode())
    if not isinstance(found, dict) or found.pop("checksum", None) != _checksum(found):
        raise ValueError("its provenance is missing or was changed")
    return found


def _checksum(provenance: dict[str, Any]) -> int:
    return crc32(json.dumps(provenance, sort_keys=True).encode())


def encode_table(table: pa.Table) -> bytes:
    """Return the table as the content of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_statistics=False, write_page_checksum=True)
    return bytes(sink.getvalue())


def write_shard(folder: Path, run_id: str, content: bytes) -> None:
    """Write a shard atomically."""
    write_atomically(shard_path(folder, run_id), content)


def read_shard(path: Path, run_id: str, content: bytes | None = None) -> pa.Table | None:
    """Return the table of a shard, or None if there is no file; raise FileError if it is damaged.

    A shard of an older format has nulls in columns that were added later, and loses columns that were removed. A newer
    format raises NewerFormatError. content: read these bytes instead of the file.
    """
    try:
        source = pa.BufferReader(path.read_bytes() if content is None else content)
        file = pq.ParquetFile(source, page_checksum_verification=True)
        known = provenance_of(file.schema_arrow)
        version = checked_format(path, known.get("format", 1))
        if known.get("id") != run_id:
            raise FileError(f"{path}: contains run {known.get('id')}, expected {run_id}")
        if version == FORMAT and file.schema_arrow.names != SCHEMA.names:
            raise FileError(f"{path}: wrong columns for a run")
        table = file.read(use_threads=False)  # reads all data, to verify every checksum
        if table.num_rows != known.get("episodes"):
            raise FileError(f"{path}: wrong number of rows for this run")
        columns = [_column(table, field) for field in SCHEMA]
    except FileNotFoundError:
        return None
    except FileError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise FileError(f"{path}: damaged ({error})".replace("\n", " ")) from error
    # The file has the provenance twice; the table gets the copy that was checked.
    return with_provenance(pa.table(columns, schema=SCHEMA), {**known, "format": version})


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    """Return a column of the table, under its old name if necessary, or nulls if an older format had no such column."""
    name = field.name if field.name in table.column_names else RENAMED.get(field.name, field.name)
    if name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    if table.schema.field(name).type != field.type:
        raise ValueError(f"column {name} is not {field.type}")
    return table.column(name)


def sweep(folder: Path) -> None:
    """Remove temporary files of killed writers."""
    for stray in (*(folder / "runs").glob(".rmab.*"), *(folder / "failures").glob(".rmab.*")):
        stray.unlink(missing_ok=True)
