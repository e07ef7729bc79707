"""Live programmes: decide, observe, correct, and lose nothing (extra `rmab[live]`).

    store = rmab.live.open("sqlite:///programme.db")
    p = store.create("mothers", states=["lapsed", "engaged"], budget=200, reward={"engaged": 1}, random_share=0.1)
    p.join(ids, group=groups, state=states)
    calls = p.ask("2026-W47")
    p.tell("2026-W47", rows)

docs/live.md is the guide.
"""

from rmab.common import require

require("live", "rmab.live")

from rmab.live.ahead import Issue
from rmab.live.benefit import Benefit, plan_evidence
from rmab.live.controller import Command, Controller
from rmab.live.importing import create_from_log
from rmab.live.periods import Rhythm
from rmab.live.programme import Programme
from rmab.live.reader import Replay
from rmab.live.remote import RemoteProgramme, RemoteStore, connect
from rmab.live.shadows import Shadow
from rmab.live.status import Status
from rmab.live.store import Store, open_store as open

__all__ = [
    "Benefit",
    "Command",
    "Controller",
    "Issue",
    "Programme",
    "RemoteProgramme",
    "RemoteStore",
    "Replay",
    "Rhythm",
    "Shadow",
    "Status",
    "Store",
    "connect",
    "create_from_log",
    "open",
    "plan_evidence",
]
