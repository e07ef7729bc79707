"""Part 6: logs of programmes. Legal ones are counted by other code; changed ones are read, or refused in one line."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import rmab
from fuzz.cases import Case
from fuzz.files import refused
from fuzz.mutations import changed_bytes
from fuzz.proofs import require

COLUMNS = {"arm": "id", "period": "when", "state": "state", "action": "done"}
WORDS = {
    "plain": ["ann", "bea", "cleo", "dan", "eve", "fay"],
    "numbers": ["007", "8", "0090", "12", "-3", "1e5"],
    "odd": ["Zoë", "O'Neil, K", 'say "hi"', "=1+1", "a b", "日本"],
}
YES, NO = ("yes", "1", "TRUE", "y"), ("no", "0", "FALSE", "n", "")
CELLS = (
    "",
    " ",
    "yes",
    "maybe",
    "NaN",
    "-1",
    "1e999",
    '"',
    "2024-13",
    "2024-W60",
    "0001-01-01",
    "9999-12-31",
    "9" * 40,
    "\x00",
    "=2",
)
STATES = ["ill", "moderate", "engaged", "lost"]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")
Row = tuple[str, int, str, bool]


def periods(case: Case, count: int) -> list[str]:
    """Return so many periods in a row, in one of the spellings."""
    kind, first = case.pick(["whole", "day", "week", "month"]), case.whole(0, 300)
    if kind == "whole":
        return [str(first + k) for k in range(count)]
    if kind == "month":
        return [f"{2020 + (first + k) // 12}-{(first + k) % 12 + 1:02d}" for k in range(count)]
    days = [date(2019, 1, 7) + timedelta(days=(1 if kind == "day" else 7) * (first + k)) for k in range(count)]
    return [one.isoformat() if kind == "day" else "{}-W{:02d}".format(*one.isocalendar()[:2]) for one in days]


def drawn(case: Case) -> tuple[list[Row], list[str]]:
    """Draw records (arm, period, state, action), in any order, with gaps; and the words of the periods."""
    names = case.pick(list(WORDS.values()))[: case.whole(1, 6)]
    states = STATES[: case.whole(1, 4)]
    when = periods(case, case.whole(2, 9))
    rows = [(n, k, case.pick(states), case.chance(0.4)) for n in names for k in range(len(when)) if not case.chance(0.15)]
    first = {k for name, k, _, _ in rows if name == names[0]}
    rows += [(names[0], k, states[0], False) for k in range(len(when)) if k not in first]  # one who shows the step
    case.rng.shuffle(rows)  # type: ignore[arg-type]
    return rows, when


def text_of(case: Case, rows: list[Row], when: list[str]) -> str:
    """Return the records as CSV, with a sign between cells, an end of lines, and words for yes and no."""
    yes, no = case.pick(YES), case.pick(NO[:-1])
    stream = io.StringIO()
    write = csv.writer(stream, delimiter=case.pick([",", ";", "\t"]), lineterminator=case.pick(["\n", "\r\n"]))
    write.writerow(COLUMNS.values())
    for name, k, state, action in rows:
        write.writerow([name, when[k], state, yes if action else no])
    return stream.getvalue()


def check_log(rows: list[Row], log: Any) -> None:
    """Require a log to hold the records and the transitions that plain Python counts."""
    require(sorted(log.arms) == sorted({name for name, *_ in rows}), f"log: arms {log.arms}")
    require(log.arm_of.size == len(rows), f"log: {log.arm_of.size} of {len(rows)} records")
    at = {(name, k): (state, action) for name, k, state, action in rows}
    expected = Counter((at[n, k], at[n, k + 1][0], n) for n, k in at if (n, k + 1) in at)
    moves, names = log.transitions, log.state_names
    found = Counter(
        ((names[s], bool(a)), names[y], log.arms[n])
        for n, s, a, y in zip(moves.arm, moves.state, moves.action, moves.after, strict=True)
    )
    require(found == Counter({((s, a), y, n): count for ((s, a), y, n), count in expected.items()}), "log: transitions")


def check_fit(case: Case, path: Path, log: Any) -> None:
    """Require a model of a log to have distributions, counts that add up, and lists within their budget."""
    worst = {name: float(k) for k, name in enumerate(log.state_names)}
    model = refused(case, path, lambda: rmab.data.fit(log, reward=worst))
    if model is None:
        return
    require(np.allclose(model.kernels.sum(axis=-1), 1.0) and model.kernels.min() >= 0, "fit: kernels")
    require(int(model.counts.sum()) == log.transitions.arm.size, "fit: counts")
    again = rmab.data.Fit.from_bytes(model.to_bytes(case.pick([".npz", ".json"])))
    require(np.array_equal(again.kernels, model.kernels), "fit: another one after it was saved")
    budget = case.whole(0, len(log.arms))
    found = refused(case, path, lambda: rmab.data.decide(again, budget, horizon=case.whole(1, 5), seed=case.whole(0, 99)))
    if found is not None:
        require(int(found.active.sum()) <= budget, "list: beyond its budget")
        case.count("lists")
    case.count("fits")


def spoiled(case: Case, text: str) -> str:
    """Return the text with some cells changed, lines lost or twice, or quotation marks put in."""
    lines = text.split("\n")
    for _ in range(case.whole(1, 4)):
        at = case.whole(0, len(lines) - 1)
        kind = case.whole(0, 5)
        if kind == 0:
            lines.insert(at, case.pick(lines))
        elif kind == 1 and len(lines) > 1:
            del lines[at]
        elif kind == 2:
            place = case.whole(0, len(lines[at]))
            lines[at] = lines[at][:place] + case.pick(['"', ",", ";", "\r", "\t", "'", "\ufeff"]) + lines[at][place:]
        elif kind == 3:
            lines[at:at] = [""] * case.pick([1, 50, 2000])
        else:
            sign = next((one for one in ",;\t" if one in lines[0]), ",")
            cells = lines[at].split(sign)
            cells[case.whole(0, len(cells) - 1)] = str(case.pick(CELLS))
            lines[at] = sign.join(cells)
    return "\n".join(lines)


def play(case: Case) -> None:
    """Write a log, sometimes changed, and read it; a whole one is counted again."""
    rows, when = drawn(case)
    text, whole = text_of(case, rows, when), case.chance(0.4)
    encoding = "utf-8" if whole else case.pick(ENCODINGS)
    content = (text if whole else spoiled(case, text)).encode(encoding, errors="replace")
    if not whole and case.chance(0.3):
        content = changed_bytes(case, content)
    packed = case.chance(0.2)
    if packed:
        content = gzip.compress(content)
        content = content if whole or case.chance(0.5) else changed_bytes(case, content)
    path = case.folder / ("log.csv.gz" if packed else "log.csv")
    path.write_bytes(content)
    given = {"encoding": case.pick([None, encoding, "ascii"])} if not whole else {}
    log = refused(case, path, lambda: rmab.data.read_log(path, **COLUMNS, **given))
    require(not whole or log is not None, "a log that is whole is refused")
    if log is None:
        return
    if whole:
        check_log(rows, log)
        case.count("counted")
    check_fit(case, path, log)
    case.count("read")
