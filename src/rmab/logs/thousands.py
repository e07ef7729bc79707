"""Separators of thousands in columns of numbers: what may be one is refused, as 1.047 may be 1047."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa

from rmab.logs.columns import encode, number_of
from rmab.logs.findings import Findings, quote

THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # 1,200


def refuse_thousands(column: Any, name: str, decimal: str, delimiter: str, findings: Findings) -> None:
    """Add a finding where the decimal sign of a column of text may separate thousands.

    It may if every number with it has one to three digits before it and three after it. A point in a file whose columns are
    separated by commas is taken for a decimal sign, unless some numbers end in 0 and others have no point: programs write
    decimals of a fixed length, or leave out zeros at the end, but not both.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return
    values, codes = encode(column)
    signed = [k for k, one in enumerate(values) if decimal in one]
    if not signed or not all(THOUSANDS.fullmatch(values[k]) for k in signed):
        return
    whole = any(decimal not in one and number_of(one, decimal) is not None for one in values)
    if decimal == "." and delimiter == "," and not (whole and any(values[k].endswith("0") for k in signed)):
        return
    first = values[signed[0]]
    both = f"may be {first.replace(decimal, '')} or {first.replace(decimal, '.')}"
    cure = f"remove the separators of thousands, or write decimals with another digit ({first}0)"
    findings.add(f"{quote(first)} in column {quote(name)} {both}; {cure}", np.flatnonzero(np.isin(codes, signed)))
