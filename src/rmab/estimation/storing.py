"""A model as fields, flat arrays and text by name; what is neither is one text of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from rmab.common.parsing import parsed_json
from rmab.common.storage import Fields
from rmab.errors import ModelError
from rmab.estimation.fit import Fit
from rmab.estimation.rewards import Pay
from rmab.estimation.shrinkage import Shrinkage, Tree
from rmab.estimation.situation import TIMES, Situation
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import Note
from rmab.logs.log import Log
from rmab.logs.periods import Periods
from rmab.logs.roster import Roster
from rmab.logs.words import Words

RECORDS = {"arm_of": np.int32, "period": np.int32, "state": np.int16, "action": np.int8, "reward": np.float64}
ROWS = ("kernels", "pooled", "strength", "unseen")
TABLES = ("counts", "numbers", "moments")


def pack_fit(fitted: Fit) -> Fields:
    """Return a model as fields; of one with a log the records, else its statistics."""
    log, now, pay, roster = fitted.log, fitted.situation, fitted.pay, fitted.roster
    fields: Fields = {"arms": roster.ids, "state_names": fitted.state_names, "groups": fitted.groups}
    fields |= {"factor_of": roster.factor_of, "group_of": fitted.group_of, "tree": fitted.tree.nodes, "pay": pay.table}
    fields |= {"present": fitted.present, **{name: getattr(fitted.rows, name) for name in ROWS}}
    fields |= {f"now_{name}": getattr(now, name) for name in ("belief", *TIMES)}
    words: dict[str, Any] = {
        "factors": roster.factors,
        "words": asdict(fitted.words),
        "notes": [asdict(one) for one in fitted.notes],
    }
    words["pay"] = {
        "unit": pay.unit,
        "goal": pay.goal,
        "kind": pay.kind,
        "counts_periods": pay.counts_periods,
        "notes": pay.notes,
    }
    words["now"] = {"period": now.period, "label": now.label}
    if log is None:
        fields |= {name: getattr(fitted.statistics, name) for name in TABLES}
    else:
        earned = {name: getattr(log, name) for name in RECORDS}
        fields |= {name: value.astype(RECORDS[name]) for name, value in earned.items() if value is not None}
        words["log"] = {"periods": asdict(log.periods), "ordered": log.ordered, "word": log.word}
        words["log"]["notes"] = [asdict(one) for one in log.notes]
    return fields | {"words": json.dumps(words)}


def unpack_fit(fields: Fields) -> Fit:
    """Return the model of such fields, checked as on construction; ModelError where they form none."""
    try:
        return _build(fields, parsed_json(fields["words"]))
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ModelError(f"not a whole model ({type(error).__name__}: {error!s:.200})") from error


def _build(fields: Fields, words: dict[str, Any]) -> Fit:
    arms, names, groups = (tuple(str(one) for one in fields[name]) for name in ("arms", "state_names", "groups"))
    factors = {str(name): tuple(str(one) for one in values) for name, values in words["factors"].items()}
    roster, log = Roster(arms, factors, fields["factor_of"]), None
    if "log" in words:
        records = {name: np.asarray(fields[name]) if name in fields else None for name in RECORDS}
        more = words["log"] | {"periods": Periods(**words["log"]["periods"]), "notes": _notes(words["log"]["notes"])}
        log = Log(arms=arms, state_names=names, factors=factors, factor_of=roster.factor_of, **records, **more)
    return Fit(
        roster=roster,
        state_names=names,
        words=Words(**words["words"]),
        groups=groups,
        group_of=fields["group_of"],
        tree=Tree(np.reshape(fields["tree"], (-1, len(groups)))),
        statistics=Statistics(*(fields[name] for name in TABLES))
        if log is None
        else Statistics.from_log(log, fields["group_of"], len(groups)),
        rows=Shrinkage(*(fields[name] for name in ROWS)),
        pay=Pay(fields["pay"], **words["pay"] | {"notes": tuple(words["pay"]["notes"])}),
        situation=Situation(**words["now"], **{name: fields[f"now_{name}"] for name in ("belief", *TIMES)}),
        present=fields["present"],
        notes=_notes(words["notes"]),
        log=log,
    )


def _notes(found: list[dict[str, Any]]) -> tuple[Note, ...]:
    return tuple(Note(one["what"], tuple(one["at"]), one["unit"]) for one in found)
