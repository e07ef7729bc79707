"""A fitted model as one file: its arrays by name, with the records that it was fitted to."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from rmab.common.arrays import frozen
from rmab.common.files import check_suffix, read_file, write_atomically
from rmab.common.storage import Format, decode, encode
from rmab.errors import FileError, ModelError
from rmab.estimation.counting import counted
from rmab.estimation.fit import Fit, fields_of
from rmab.estimation.rewards import Pay
from rmab.estimation.shrinkage import Shrunk, Tree
from rmab.estimation.standing import Standing
from rmab.logs.faults import Fault
from rmab.logs.log import Log
from rmab.logs.periods import Periods

VERSION = 1
SMALL = {"arm_of": np.int32, "period": np.int32, "state": np.int16, "action": np.int8, "cell_of": np.int32}
WORDS = ("arms", "state_names", "cells")
ROWS = ("kernels", "pooled", "strength", "unseen")
STANDING = ("belief", "state", "seen_before", "streak", "acted_before", "never", "unseen_for")
REQUIRED = {
    "version", "words", "arm_of", "period", "state", "action", "factor_of", "cell_of", "depth", "present", "pay",
    *WORDS, *ROWS, *(f"now_{name}" for name in STANDING),
}  # fmt: skip
FORMAT = Format("rmab fit", 1, REQUIRED, {"reward"}, prefix="")


def save_fit(fitted: Fit, path: str | os.PathLike[str]) -> None:
    """Write a model to one file; FileError if it cannot be written."""
    log = fitted.log
    fields: dict[str, Any] = {"version": VERSION}
    fields |= {"arms": np.array(log.arms), "state_names": np.array(log.state_names), "cells": np.array(fitted.cells)}
    fields |= {name: getattr(log, name) for name in ("arm_of", "period", "state", "action", "factor_of", "reward")}
    fields |= {name: getattr(fitted.rows, name) for name in ROWS}
    fields |= {f"now_{name}": getattr(fitted.standing, name) for name in STANDING}
    fields |= {"cell_of": fitted.cell_of, "present": fitted.present, "pay": fitted.pay.table}
    fields |= {f"node_{k}": node for k, node in enumerate(fitted.tree.nodes)}
    fields |= {f"parent_{k}": parent for k, parent in enumerate(fitted.tree.parents)}
    fields |= {"depth": len(fitted.tree.nodes), "words": json.dumps(_words(fitted))}
    for name, kind in SMALL.items():
        fields[name] = fields[name].astype(kind)
    write_atomically(path, encode(FORMAT, fields, check_suffix(path)))


def _words(fitted: Fit) -> dict[str, Any]:
    """Return what is no array, as JSON can keep it."""
    log, pay, now = fitted.log, fitted.pay, fitted.standing
    return {
        "periods": fields_of(log.periods),
        "factors": log.factors,
        "ordered": log.ordered,
        "word": log.word,
        "log_notes": [fields_of(one) for one in log.notes],
        "notes": [fields_of(one) for one in fitted.notes],
        "pay": {"unit": pay.unit, "goal": pay.goal, "kind": pay.kind, "notes": pay.notes},
        "now": {"period": now.period, "label": now.label},
    }


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Read a model that `save_fit` wrote; FileError if the file is none."""
    fields = decode(FORMAT, read_file(path), str(path), check_suffix(path))
    try:
        if fields["version"] != VERSION:
            raise ModelError(f"it was written by another version ({fields['version']}); fit the log again")
        return _rebuilt(fields)
    except (ModelError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise FileError(f"{path}: not a whole model ({error!s:.200})") from error


def _rebuilt(fields: dict[str, Any]) -> Fit:
    words = json.loads(fields["words"])
    text = {name: tuple(str(one) for one in np.asarray(fields[name])) for name in WORDS}
    whole = {name: frozen(np.asarray(fields[name], dtype=np.int64)) for name in (*SMALL, "factor_of", "present")}
    factors = {name: tuple(values) for name, values in words["factors"].items()}
    whole["factor_of"] = frozen(whole["factor_of"].reshape(len(text["arms"]), len(factors)))
    earned = fields.get("reward")
    log = Log(
        arms=text["arms"],
        state_names=text["state_names"],
        periods=Periods(**words["periods"]),
        **{name: whole[name] for name in ("arm_of", "period", "state", "action", "factor_of")},
        reward=None if earned is None else frozen(np.asarray(earned, dtype=np.float64)),
        factors=factors,
        ordered=words["ordered"],
        word=words["word"],
        notes=_faults(words["log_notes"]),
    )
    depth = range(int(fields["depth"]))
    nodes, parents = (tuple(frozen(np.asarray(fields[f"{one}_{k}"])) for k in depth) for one in ("node", "parent"))
    strength = np.asarray(fields["strength"], dtype=np.float64).reshape(len(nodes), len(text["state_names"]), 2)
    known = {name: frozen(np.asarray(fields[name])) for name in ("kernels", "pooled", "unseen")}
    places: dict[str, Any] = {name: frozen(np.asarray(fields[f"now_{name}"])) for name in STANDING}
    pay = words["pay"] | {"notes": tuple(words["pay"]["notes"])}
    return Fit(
        log=log,
        cells=text["cells"],
        cell_of=whole["cell_of"],
        tree=Tree(nodes, parents),
        counts=frozen(counted(log, whole["cell_of"], len(text["cells"]))),
        rows=Shrunk(**known, strength=frozen(strength)),
        pay=Pay(frozen(np.asarray(fields["pay"], dtype=np.float64)), **pay),
        standing=Standing(**words["now"], **places),
        present=whole["present"],
        notes=_faults(words["notes"]),
    )


def _faults(found: list[dict[str, Any]]) -> tuple[Fault, ...]:
    return tuple(Fault(one["what"], tuple(one["at"]), one["unit"]) for one in found)
