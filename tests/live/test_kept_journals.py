"""Journals that earlier versions wrote lead to the same statistics and lists."""

from pathlib import Path

import pytest

import rmab
from journals import facts, restore
from rmab.live.events import KINDS

# Decisions that are made otherwise today. 0.3: places by floor and at random were drawn with other numbers. 0.4: one drawn
# model made the whole list, and nothing was forgotten.
OTHERWISE = dict.fromkeys(("journal-0.3", "journal-0.4"), ("2026-W51", "2026-W52", "2026-W53", "2027-W01"))
KEPT = sorted(Path(__file__).parent.glob("journal-*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_journal(path: Path, tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p, expected = restore(path, store)
        assert p.verify(expected["head"]) == len(p.events)
        assert facts(p) == expected
        assert p.replay().differences == OTHERWISE.get(path.stem, ())
        assert {one.kind for one in p.events} <= set(KINDS)


def test_one_has_every_kind_of_event(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p, _ = restore(KEPT[-1], store)
        assert {one.kind for one in p.events} == set(KINDS)
