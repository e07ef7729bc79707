"""The exchange format of the service and its client: results as plain JSON values, exact to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from rmab.decisions.decision import Decision
from rmab.errors import FileError, LogError, MissingExtra, ModelError, RmabError, SolverError, StoreError
from rmab.estimation.statistics import Statistics
from rmab.live.benefit import Benefit
from rmab.live.shadows import Shadow
from rmab.live.status import Finding, Status
from rmab.logs.findings import Note
from rmab.logs.words import Words

ERRORS: dict[str, type[RmabError]] = {
    one.__name__: one for one in (RmabError, ModelError, StoreError, FileError, SolverError, MissingExtra)
}
REFUSED = (400, 404, 409, 412, 413, 415, 422)  # errors of the call, not of the service


def decision_to_json(decision: Decision, group_of: Mapping[str, str], *, everybody: bool = False) -> dict[str, Any]:
    """Return a decision: rows of the list, the best first; everybody: of all arms, in the order in which they joined."""
    places = range(len(decision.arms)) if everybody else np.argsort(decision.rank, kind="stable").tolist()
    rows = [
        {
            "arm": decision.arms[n],
            "group": group_of.get(decision.arms[n], ""),
            "state": decision.states[n],
            "action": bool(decision.rule[n]),
            "rank": int(decision.rank[n]) + 1,
            "index": float(decision.index[n]),
            "probability": float(decision.probability[n]),
            "by": decision.rule[n],
            "reason": decision.reasons[n],
        }
        for n in places
        if everybody or decision.rule[n]
    ]
    return {
        "period": decision.period,
        "budget": decision.budget,
        "arms": len(decision.arms),
        "ids": list(decision.ids),
        "notes": list(decision.notes),
        "words": asdict(decision.words),
        "rows": rows,
    }


def decision_from_json(content: Mapping[str, Any]) -> Decision:
    """Return the decision of rows of everybody."""
    rows = content["rows"]
    return Decision(
        period=content["period"],
        budget=content["budget"],
        arms=tuple(one["arm"] for one in rows),
        states=tuple(one["state"] for one in rows),
        index=np.array([one["index"] for one in rows], dtype=np.float64),
        rank=np.array([one["rank"] - 1 for one in rows], dtype=np.int64),
        rule=tuple(one["by"] for one in rows),
        probability=np.array([one["probability"] for one in rows], dtype=np.float64),
        reasons=tuple(one["reason"] for one in rows),
        prices={},
        fairness=(),
        notes=tuple(content["notes"]),
        words=Words(**content["words"]),
    )


def statistics_to_json(found: Statistics) -> dict[str, Any]:
    """Return statistics: whole numbers, so that nothing is rounded."""
    return {name: getattr(found, name).tolist() for name in ("counts", "numbers", "moments")}


def statistics_from_json(content: Mapping[str, Any]) -> Statistics:
    """Return the statistics of such numbers."""
    if not content["numbers"]:
        return Statistics.from_counts(content["counts"])
    return Statistics(content["counts"], content["numbers"], content["moments"])


def benefit_to_json(found: Benefit) -> dict[str, Any]:
    """Return a benefit, with its sentence."""
    plain = {one.name: getattr(found, one.name) for one in fields(found)}
    return {
        **{name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in plain.items()},
        "periods": list(found.periods),
        "sentence": str(found),
    }


def benefit_from_json(content: Mapping[str, Any]) -> Benefit:
    """Return the benefit of such numbers."""
    whole = {"listed", "left_out"}
    arrays: dict[str, Any] = {
        one.name: np.array(content[one.name], dtype=np.int64 if one.name in whole else np.float64)
        for one in fields(Benefit)
        if one.name not in ("periods", "unit", "others")
    }
    return Benefit(periods=tuple(content["periods"]), unit=content["unit"], others=content["others"], **arrays)


def status_to_json(found: Status) -> dict[str, Any]:
    """Return the status as JSON."""
    return asdict(found)


def status_from_json(content: Mapping[str, Any]) -> Status:
    """Return the status from JSON."""
    return Status(**{**content, "findings": tuple(Finding(**one) for one in content["findings"])})


def shadow_to_json(found: Shadow) -> dict[str, Any]:
    """Return a shadow as JSON."""
    numbers = {name: [finite(one) for one in getattr(found, name)] for name in ("agreement", "promised", "own_promise")}
    return {"periods": found.periods, "listed": found.listed, "fallbacks": found.fallbacks, **numbers}


def shadow_from_json(content: Mapping[str, Any]) -> Shadow:
    """Return a shadow from JSON."""
    fields_: dict[str, Any] = {name: tuple(content[name]) for name in ("periods", "fallbacks")}
    for name in ("agreement", "promised", "own_promise"):
        fields_[name] = np.array(content[name], dtype=np.float64)
    return Shadow(**fields_, listed=tuple(tuple(one) for one in content["listed"]))


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def error_from_json(content: Mapping[str, Any]) -> RmabError:
    """Return the error that the service describes: with the same class, code and location."""
    if content.get("title") == "LogError" and "problems" in content:
        notes = [Note(one["what"], tuple(one["at"]), one["unit"], one["code"]) for one in content["problems"]]
        return LogError(str(content.get("name", "rows")), notes)
    kind = ERRORS.get(str(content.get("title")), ModelError if int(content["status"]) in REFUSED else StoreError)
    location = {str(name): value for name, value in dict(content.get("location") or {}).items() if name != "code"}
    return kind(str(content.get("detail", "")), code=str(content.get("code", "")), **location)
