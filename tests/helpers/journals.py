"""Journals of released versions, kept as files: every later version must read them to the same end.

    python tests/helpers/journals.py tests/live/journal-0.4.json

writes the journal of a small programme, with one event of every kind, and what it led to.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import rmab
from rmab.live.events import Event, body_hash
from rmab.live.schema import EVENT, PROGRAMME

IDS = [f"arm {k:02d}" for k in range(30)]


def play(store: Any) -> Any:
    """Play a programme in which everything happens."""
    options: dict[str, Any] = {"random_share": 0.3, "control": 0.1, "floor": 12, "seed": 5, "lookahead": 6, "action": "call"}
    p = store.create("kept", states=["low", "middle", "high"], budget=6, reward={"high": 1, "middle": 0.3}, **options)
    p.join(IDS, group=["a", "b", "c"] * 10, state=["low", "middle", "high"] * 10)
    p.warm_start(rmab.data.Statistics.from_counts(np.arange(36).reshape(2, 3, 2, 3) % 7), groups=["a", "z"], trust=5)
    rng = np.random.default_rng(0)
    for k, week in enumerate(("2026-W51", "2026-W52", "2026-W53", "2027-W01")):
        p.override(week, add=[IDS[k]], remove=[IDS[k + 5]], reason="known")
        found = p.ask(week)
        p.override(week, remove=found.ids[:1], reason="away")
        states = [["low", "middle", "high"][s] for s in rng.integers(3, size=30)]
        executed = [bool(rng.random() < 0.7) if one in found.ids else None for one in IDS]
        p.tell(week, {"arm": IDS[:25], "state": states[:25], "executed": executed[:25]})
        p.missing(week, IDS[25:27])
        p.set_budget({"2027-W03": 3} if k else 5)
    wrong = p.correct("2026-W52", [{"arm": IDS[3], "state": "high"}], reason="misread")
    p.correct("2026-W52", [{"arm": IDS[4], "state": "low", "executed": "yes"}], reason="misread")
    p.undo(wrong, reason="no")
    p.leave(IDS[28:], period="2027-W02", reason="moved")
    issued = p.ask_ahead(2)
    p.ask("2027-W02", issued=issued[0].event)
    return p


def facts(p: Any) -> dict[str, Any]:
    """Return what a journal leads to."""
    with p.ledger() as ledger:
        weeks = [ledger.label(period) for period in sorted(ledger.decisions)]
    lists = {week: p.decision(week).ids for week in weeks}
    return {
        "counts": p.statistics.counts.tolist(),
        "lists": {week: list(ids) for week, ids in lists.items()},
        "head": p.head,
    }


def restore(path: Path, store: Any) -> tuple[Any, dict[str, Any]]:
    """Put a kept journal into an empty store; return its programme, and what it led to when it was written."""
    kept = json.loads(path.read_text())
    events = [Event(**one) for one in kept["events"]]
    with store.engine.begin() as connection:
        connection.execute(sa.insert(PROGRAMME).values(name="kept", head=len(events), hash=events[-1].hash))
        for one in kept["events"]:
            connection.execute(sa.insert(EVENT).values(**one, body_hash=body_hash(one["body"])))
    return store.programme("kept"), kept["facts"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/x.db") as found:
        journal = play(found)
        whole = {"events": [vars(one) for one in journal.events], "facts": facts(journal)}
    Path(sys.argv[1]).write_text(json.dumps(whole, indent=1) + "\n")
