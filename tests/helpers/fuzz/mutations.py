"""Changes to files: bytes that flip, vanish or come twice, and fields that become something else."""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.cases import Case

ODD_NUMBERS = (0, -1, 1, 2.5, 1e308, -1e308, 5e-324, 2**31, 2**53, 2**63, 2**70, 10**400, True)
ODD: tuple[Any, ...] = (
    *ODD_NUMBERS, None, "", "x", "1", "\n", "\x00", "é\ud800", [], [[]], [1, [2]], {}, {"a": 1}, float("nan"), float("inf"),
    "cpap", "a.json", "bandit", [0.5, 0.5], [None], ["a", 1], "z" * 5000,
)  # fmt: skip
ODD_WORDS = (
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "1_0",
    "99999999999",
    "0x1",
    '"',
    "[",
    "]",
    "=",
    "#",
    "\n",
    "{}",
    "true",
    "''",
)


def changed_bytes(case: Case, content: bytes) -> bytes:
    """Return the content with some bytes flipped, lost, moved or added."""
    data, kind = bytearray(content), case.whole(0, 6)
    at, length = case.whole(0, max(len(data) - 1, 0)), min(case.whole(1, 64), len(data))
    if kind == 0:
        for _ in range(case.whole(1, 8)):
            data[case.whole(0, len(data) - 1)] ^= 1 << case.whole(0, 7)
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length] * case.whole(1, 3)
    elif kind == 4:
        data[at:at] = case.rng.bytes(length)
    elif kind == 5:
        data[at : at + length] = bytes(length)
    else:
        data[at : at + length] = case.pick([b"\xff", b"\x00", b"\x7f"]) * length
    return bytes(data)


def changed_words(case: Case, content: bytes) -> bytes:
    """Return a text with a word or number replaced, or with lines lost or twice."""
    text = content.decode()
    found = list(re.finditer(r"-?\d[\d.e+-]*|\w+|[^\w\s]", text))
    for _ in range(case.whole(1, 3)):
        one = case.pick(found)
        if one.end() <= len(text):
            text = text[: one.start()] + str(case.pick(ODD_WORDS)) + text[one.end() :]
    lines = text.split("\n")
    if case.chance(0.2):
        lines.insert(case.whole(0, len(lines)), case.pick(lines))
    if case.chance(0.2):
        del lines[case.whole(0, len(lines) - 1)]
    return "\n".join(lines).encode(errors="surrogatepass")


def changed_json(case: Case, content: bytes) -> bytes:
    """Return JSON with a field or an entry deep inside replaced by something odd."""
    whole = json.loads(content)
    for _ in range(case.whole(1, 2)):
        _change_inside(case, whole)
    return json.dumps(whole).encode(errors="surrogatepass")


def _change_inside(case: Case, whole: Any) -> None:
    inner, place = whole, None
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            return
        place = case.pick(keys)
        if not isinstance(inner[place], dict | list) or case.chance(0.3):
            break
        inner = inner[place]
    kind = case.whole(0, 3)
    if kind == 0:
        del inner[place]
    elif kind == 1 and isinstance(inner, dict):
        inner[f"{place}_"] = inner.pop(place)
    elif kind == 2 and isinstance(inner, list):
        inner.append(copy.deepcopy(inner[place]))
    else:
        inner[place] = copy.deepcopy(case.pick(ODD))


def changed_npz(case: Case, content: bytes) -> bytes:
    """Return an archive with an array replaced, lost, renamed, twice, or whose header lies."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name, kind = case.pick(list(arrays)), case.whole(0, 5)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[f"{name}_"] = arrays.pop(name)
    elif kind == 2:
        return _with_header(case, content, name)
    else:
        arrays[name] = odd_array(case, arrays[name])
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def odd_array(case: Case, array: Any) -> Any:
    """Return an array that is like this one, but not quite."""
    given = np.array(array)
    changes: list[Callable[[], Any]] = [
        lambda: given[..., np.newaxis],
        lambda: given.reshape(-1)[: case.whole(0, given.size)],
        lambda: np.full(given.shape, {"a": 1}, dtype=object),
        lambda: np.zeros((0, *given.shape)),
        lambda: np.array(case.pick(["2020", "x", "1"])),
        lambda: np.array(case.pick([0, -1, 2**60, 1.5, np.nan, True])),
        lambda: given.astype(case.pick(["U8", "S3", "bool"])) if given.dtype.kind != "U" else np.zeros(3),
    ]
    if given.dtype.kind in "biuf":
        changes.append(lambda: _cast(given, case.pick(["f2", "f4", "f8", "i1", "u8", "c16", "g", ">f8", "?"])))
        changes += 3 * [lambda: _with_one(case, given)]
    return case.pick(changes)()


def _cast(given: Any, kind: str) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):  # NaN has no whole number
        return given.astype(kind)


def _with_one(case: Case, given: Any) -> Any:
    """Return the numbers with one that is odd."""
    value = case.pick([np.nan, np.inf, -1, -0.0, 1e300, 0.5, 2**62, 3])
    flat = given.reshape(-1).astype(int if isinstance(value, int) and given.dtype.kind == "i" else float)
    flat[case.whole(0, max(flat.size - 1, 0)) :][:1] = value
    return flat.reshape(given.shape)


def _with_header(case: Case, content: bytes, name: str) -> bytes:
    """Return the archive with one array that claims to be of another size than it is."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == f"{name}.npy":
                size = case.pick([1, 10**6, 10**11, 10**13, 2**62, -1])
                header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (size,)}
                plain = io.BytesIO()
                np.lib.format.write_array_header_1_0(plain, header)
                data = plain.getvalue() + data[-8:]
            new.writestr(entry, data)
    return stream.getvalue()
