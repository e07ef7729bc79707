"""Snapshots: the reports of a ledger as bytes, so that a restart does not read every report again.

A snapshot contains the reports; all other events are folded again. It is used only if its bytes have the hash
that was stored with it, and its event is still in the journal.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from rmab.live.cells import FIELDS, TYPES, Cells
from rmab.live.journal import Journal
from rmab.live.ledger import Ledger
from rmab.live.schema import EVENT, SNAPSHOT

REPORTS = ("tell", "correct", "missing")  # the kinds of events in a snapshot
LAYERS = ("told", "corrected")


def pack_cells(ledger: Ledger) -> bytes:
    """Return the reports of a ledger as bytes."""
    periods = sorted(ledger.cells)
    count = len(ledger.ids)
    arrays: dict[str, NDArray[Any]] = {"periods": np.array(periods, dtype=np.int64)}
    missing = [(p, n) for p in periods for n in sorted(ledger.cells[p].missing)]
    arrays["missing"] = np.array(missing, dtype=np.int64).reshape(-1, 2)
    for layer in LAYERS:
        for name in FIELDS:
            there = [p for p in periods if (layer, name) in ledger.cells[p].layers]
            if there:
                arrays[f"{layer}.{name}.periods"] = np.array(there, dtype=np.int64)
                arrays[f"{layer}.{name}"] = np.stack([ledger.cells[p].read(name, count, layer) for p in there])
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def unpack_cells(content: bytes) -> dict[int, Cells]:
    """Return the reports of `pack_cells`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        cells = {int(p): Cells(version=1) for p in arrays["periods"]}
        for p, n in arrays["missing"]:
            cells[int(p)].missing.add(int(n))
        for layer in LAYERS:
            for name in FIELDS:
                if f"{layer}.{name}" in arrays:
                    table = arrays[f"{layer}.{name}"].astype(TYPES[name])
                    for p, row in zip(arrays[f"{layer}.{name}.periods"], table, strict=True):
                        cells[int(p)].layers[layer, name] = row.copy()
    return cells


def write_snapshot(connection: sa.Connection, name: str, ledger: Ledger) -> None:
    """Store a snapshot of a ledger, and remove older ones."""
    content = pack_cells(ledger)
    connection.execute(sa.delete(SNAPSHOT).where(SNAPSHOT.c.programme == name))
    row = {"programme": name, "sequence": ledger.sequence, "hash": ledger.hash}
    connection.execute(sa.insert(SNAPSHOT).values(**row, sha256=hashlib.sha256(content).hexdigest(), content=content))


def load_ledger(connection: sa.Connection, journal: Journal, through: int | None = None) -> Ledger:
    """Return the ledger of a journal, up to an event: from a snapshot and what came after it, or from all events."""
    undone = journal.undone(connection, through=through)
    found = _usable(connection, journal, through)
    if found is None:
        return Ledger.replay(journal.read(connection, through=through), undone)
    sequence, digest, cells = found
    ledger = Ledger.replay(journal.read(connection, through=sequence, without=REPORTS), undone)
    ledger.cells = cells  # after all other events, none of which may see reports that came later
    ledger.sequence, ledger.hash, ledger.kinds = sequence, digest, journal.kinds(connection, sequence)
    for event in journal.read(connection, after=sequence, through=through):
        ledger.step(event, skip=event.sequence in undone)
    return ledger


def _usable(connection: sa.Connection, journal: Journal, through: int | None) -> tuple[int, str, dict[int, Cells]] | None:
    """Return number and hash of the event of a snapshot, and its reports; None if there is no usable one."""
    row = connection.execute(
        sa.select(SNAPSHOT).where(SNAPSHOT.c.programme == journal.name).order_by(SNAPSHOT.c.sequence.desc()).limit(1)
    ).one_or_none()
    if row is None or (through is not None and row.sequence > through):
        return None
    later = journal.undone(connection, after=row.sequence, through=through)
    if any(one <= row.sequence for one in later):  # a report in the snapshot was undone since
        return None
    same = sa.select(EVENT.c.hash).where(EVENT.c.programme == journal.name, EVENT.c.sequence == row.sequence)
    content = bytes(row.content)
    if connection.scalar(same) != row.hash or hashlib.sha256(content).hexdigest() != row.sha256:
        return None
    return int(row.sequence), str(row.hash), unpack_cells(content)
