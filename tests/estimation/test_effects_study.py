"""The study of promises, in small: null programmes promise nothing, and selection is found."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest

from programs import load_study


@pytest.fixture(scope="module")
def study() -> Iterator[ModuleType]:
    from rmab.estimation import evaluation, one_step, optimism, repeats

    before = evaluation.REPLAN, evaluation.WORK, one_step.REPLICATES, optimism.LOGS, repeats.MOST
    yield load_study("effects")
    evaluation.REPLAN, evaluation.WORK, one_step.REPLICATES, optimism.LOGS, repeats.MOST = before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "standing"),
    [("null-12-groups", "silent"), ("null-crossed", "silent"), ("null-trait-selects", "problem"), ("12-groups", "promise")],
)
def test_kinds_in_small(study: ModuleType, name: str, standing: str) -> None:
    kind = replace(study.KINDS[name], arms=200, weeks=25, budget=10)
    found = study.repetition(name, 2, replicates=40, kind=kind)
    promised = any(found[rival]["states"] for rival in study.AGAINST)
    assert promised == (standing == "promise")
    assert ("problem" in found["verdicts"].values()) == (standing == "problem")
    if standing != "problem":
        for rival in study.AGAINST:
            assert found[rival]["low"] <= found[rival]["truth"] <= found[rival]["high"]


def test_every_kind_says_what_it_is(study: ModuleType) -> None:
    assert len(study.KINDS) >= 20
    for name, kind in study.KINDS.items():
        assert kind.null == name.startswith("null-")
        assert not (kind.null and (kind.effect or kind.effect_spread or kind.arm_effect)), name
