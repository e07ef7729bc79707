"""Tables as files: CSV or Parquet, written whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from rmab.common.files import write_atomically
from rmab.errors import FileError

SUFFIXES = (".csv", ".parquet")


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write an Arrow table to a .csv or .parquet file; FileError if it cannot be written."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: the name must end in {' or '.join(SUFFIXES)}")
    stream = io.BytesIO()
    if suffix == ".csv":
        pacsv.write_csv(table, stream)
    else:
        pq.write_table(table, stream)
    write_atomically(path, stream.getvalue())
