"""Schemathesis: what fits the OpenAPI document is answered as it says, what does not is refused, and nothing by a 500."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.specs.openapi import checks as openapi

import rmab
from rmab.service import create_app
from services import fill, rows

CHECKS = [openapi.status_code_conformance, openapi.content_type_conformance, openapi.response_schema_conformance]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("schema")
    with rmab.live.open(f"sqlite:///{path}/p.db") as store:
        p = fill(store)
        p.ask("2026-W46")
        p.tell("2026-W46", rows())
        app = create_app(store)
        yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
        app.state.machines.close()


def test_answers_fit_the_document(document: Any) -> None:
    seen = []
    for found in document.get_all_operations():
        operation = found.ok()
        _try(operation)
        seen.append(operation.label)
    assert len(seen) >= 25, seen


def _try(operation: Any) -> None:
    @settings(
        max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(), is_there=st.booleans())
    def check(case: Any, is_there: bool) -> None:
        if is_there and "name" in case.path_parameters:
            case.path_parameters["name"] = "mothers"
        answer = case.call(headers={"host": "localhost"})
        assert answer.status_code < 500, answer.content
        case.validate_response(answer, checks=CHECKS)

    check()
