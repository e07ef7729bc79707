"""Files with one field wrong: what a slip, a bad disk or an enemy makes of what was stored."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from rmab.common.storage import Stored, parse
from rmab.errors import RmabError

Fields = Mapping[str, Any]
ODD: tuple[Any, ...] = (
    -1,
    10**12,
    2**62,
    2**63 - 1,
    10**30,
    1.5,
    1e300,
    -0.0,
    np.nan,
    np.inf,
    True,
    "",
    "x",
    "a\nb",
    [],
    ["x"],
)
ENTRIES = (-1, 10**9, 10**12, 2**62, 2**63 - 1, 0.5, 1e300, np.nan, -np.inf)


def changed_fields(fields: Fields) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield fields of which one is removed, renamed, or something else, with words that say which."""
    for name, value in fields.items():
        rest = {key: one for key, one in fields.items() if key != name}
        yield f"{name} removed", rest
        yield f"{name} renamed", {**rest, f"{name}_": value}
        for k, other in enumerate([*ODD, *changed_arrays(np.asarray(value))]):
            yield f"{name}: change {k} to {other!r:.60}", {**rest, name: other}
    for version in (0, 99, "1", 1.5, True, [1]):
        yield f"format {version!r}", {**fields, "format": version}


def changed_arrays(array: Any) -> Iterator[Any]:
    """Yield arrays of other shapes and types, and with one entry that is no index, no probability or no number."""
    yield from (array[..., np.newaxis], array.astype("U3"), np.zeros((0, *array.shape)))
    if array.dtype.kind not in "biuf" or not array.ndim or not array.size:
        return
    yield from (array[:-1], array.repeat(2, axis=0), array[0], array.T, array.reshape(-1), array.astype(bool))
    yield from (array.astype(np.float32), array.astype(np.int8), array.astype(">f8"), array.astype(complex))
    for entry in ENTRIES:
        other = array.astype(np.int64 if isinstance(entry, int) else np.float64)
        other.reshape(-1)[-1:] = entry
        yield other


def as_bytes(fields: Fields, suffix: str) -> bytes | None:
    """Return these fields, right or wrong, as the content of a file; None where it cannot hold them."""
    stream = io.BytesIO()
    try:
        if suffix == ".json":
            plain = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in fields.items()}
            return json.dumps(plain).encode()
        np.savez(stream, **fields)
    except TypeError:  # JSON has no complex numbers
        return None
    return stream.getvalue()


def check_mutants(
    stored: Stored, suffix: str, use: Callable[[Any], object], names: tuple[str, ...] = (), every: int = 1
) -> Counter[str]:
    """Load every mutant of what is stored: it must be refused in one line, or be usable and the same after another save.

    use: what is done with an object that was loaded; it may refuse it, too.
    names: only these fields are changed; by default, all.
    every: only every so many mutants, beginning with the first, are looked at; a prime number meets all kinds of change.
    """
    counts = Counter[str]()
    fields = parse(stored.to_bytes(suffix), "x", suffix)
    chosen = {name: one for name, one in fields.items() if not names or name in names}
    for words, changed in islice(changed_fields(chosen), 0, None, every):
        content = as_bytes({**{name: one for name, one in fields.items() if name not in chosen}, **changed}, suffix)
        if content is None:
            continue
        try:
            loaded = type(stored).from_bytes(content)
            use(loaded)
            again = type(stored).from_bytes(loaded.to_bytes(suffix))
        except RmabError as error:
            counts["refused" if len(str(error).splitlines()) == 1 else f"{words}: {error}"] += 1
        except BaseException as error:
            raise AssertionError(f"{type(stored).__name__}, {words}: {error!r}") from error
        else:
            assert same(loaded.to_fields(), again.to_fields()), words
            counts["loaded"] += 1
    assert counts.keys() <= {"refused", "loaded"}, counts
    return counts


def same(one: Fields, other: Fields) -> bool:
    """Return whether all fields are equal, NaN with NaN."""
    present = {name for name, value in one.items() if value is not None}
    return present == {name for name, value in other.items() if value is not None} and all(
        np.array_equal(one[name], other[name], equal_nan=np.asarray(one[name]).dtype.kind == "f") for name in present
    )
