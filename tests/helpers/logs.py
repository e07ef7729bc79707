"""Small logs for tests: rows as tuples, CSV text, and reading with the usual columns."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import rmab
from rmab.data import Fit, Log

COLUMNS = {"arm": "id", "period": "week", "state": "state", "action": "called"}
HEADER = "id,week,state,called"


def read(table: Any, **options: Any) -> Log:
    return rmab.data.read_log(table, **{**COLUMNS, **options})


def table(*rows: tuple[object, ...], names: str = HEADER) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({name: list(column) for name, column in zip(names.split(","), columns, strict=True)})


def csv(folder: Path, *lines: str, header: str = HEADER, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def problems(function: Any, *arguments: Any, **options: Any) -> list[str]:
    """Return what is wrong, line by line."""
    try:
        function(*arguments, **options)
    except rmab.errors.LogError as error:
        return [str(one) for one in error.problems]
    raise AssertionError("nothing was wrong")


def mothers(
    arms: int = 300, weeks: int = 30, seed: int = 0, *, groups: tuple[str, ...] = ("age", "district"), **more: Any
) -> Fit:
    made = rmab.data.example_log("mothers", arms=arms, weeks=weeks, seed=seed, spread=more.pop("spread", 0.0))
    log = read(made, groups=groups, states=["lapsed", "wavering", "engaged"])
    return rmab.data.fit(log, **{"reward": {"engaged": 1}, "gone_after": weeks, **more})  # nobody counts as gone
