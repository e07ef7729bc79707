"""Tables as files: CSV or Parquet, written atomically."""

from __future__ import annotations

import io
import os
from typing import Any

from rmab.common.files import check_suffix, write_atomically

TABLE_SUFFIXES = (".csv", ".parquet")


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write an Arrow table to a .csv or .parquet file; FileError if it cannot be written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from rmab.common.tables import write_table
    >>> write_table(pa.table({"week": [1, 2]}), "weeks.txt")
    Traceback (most recent call last):
        ...
    rmab.errors.FileError: weeks.txt: the name must end in .csv or .parquet
    """
    suffix = check_suffix(path, TABLE_SUFFIXES)
    from pyarrow import csv, parquet  # noqa: PLC0415  (of an extra: whoever has a table has it)

    stream = io.BytesIO()
    (csv.write_csv if suffix == ".csv" else parquet.write_table)(table, stream)
    write_atomically(path, stream.getvalue())
