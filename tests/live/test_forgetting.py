"""What is still valid of earlier reports: nothing is forgotten without reason, and a change is found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.live.forgetting import CAUTION, HAZARD, LEFT, STRENGTH, forget, still_valid
from rmab.live.observing import Observer
from rmab.live.planning import learn


def periods(rng: Any, kernels: Any, visits: int, count: int) -> list[Any]:
    """Return counts (G, S, S) of several periods, from kernels (G, S, S)."""
    return [
        np.array([[rng.multinomial(rng.poisson(visits), row) for row in group] for group in kernels]) for _ in range(count)
    ]


def rows(rng: Any, groups: int = 4) -> Any:
    return rng.dirichlet([2.0, 2.0, 2.0], size=(groups, 3))


def test_nothing_is_forgotten_where_nothing_changes() -> None:
    nothing = np.zeros((4, 3, 3))
    kept = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        kept.append(still_valid(periods(rng, rows(rng), 5, 40), nothing)[0])
    assert np.mean(kept) > 0.97
    assert np.quantile(kept, 0.05) > 0.9


def test_a_change_is_found_in_a_few_periods() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        one = rows(rng)
        other = one.copy()
        one[0], other[0] = [0.7, 0.2, 0.1], [0.2, 0.3, 0.5]  # in one group of four
        seen = periods(rng, one, 20, 30) + periods(rng, other, 20, 4)
        weights = still_valid(seen, np.zeros((4, 3, 3)))
        assert weights[:28].max() < 0.05
        assert weights[-4:].min() > 0.8
        assert (np.diff(weights) >= 0).all()
        assert weights[-1] == pytest.approx(1.0)


def test_weather_is_no_change() -> None:
    """Periods differ in what all have in common, every time: that is no reason to forget."""
    kept = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        one = rows(rng)
        seen = []
        for _ in range(40):
            shocked = one * np.exp(0.7 * rng.normal() * np.array([-0.5, 0.0, 0.5]))
            seen += periods(rng, shocked / shocked.sum(axis=2, keepdims=True), 100, 1)
        kept.append(still_valid(seen, np.zeros((4, 3, 3)))[0])
    assert np.mean(kept) > 0.9


def test_the_weights_are_those_of_bayes_by_hand() -> None:
    """One row of two states, two periods: two hypotheses, whose likelihoods are products of fractions."""
    first, second = (np.array([[one, [0, 0]]]) for one in ([3, 0], [0, 3]))
    weights = still_valid([first, second], np.zeros((1, 2, 2)))
    pooled = np.array([3.5, 3.5]) / 7.0  # both periods, and half a visit of each
    a, b = STRENGTH * pooled

    def rise(x: float, n: int) -> float:
        return float(np.prod(x + np.arange(n)))

    whole = rise(a, 3) * rise(b, 3) / rise(a + b, 6)
    apart = rise(a, 3) / rise(a + b, 3) * rise(b, 3) / rise(a + b, 3)
    dispersion = 1.0 + (6.0 * 5 / 6 - 1.0) / (1.0 + CAUTION)  # chi-square 6 of six visits, with one degree of freedom
    odds = HAZARD * (apart / whole) ** (1.0 / dispersion)
    none = 1.0 / (1.0 + odds + HAZARD)  # the first period may begin a regime, too: nothing was before it
    np.testing.assert_allclose(weights, [none, none * (1.0 + HAZARD), 1.0])


def test_little_is_left_of_what_is_not_valid_any_more() -> None:
    rng = np.random.default_rng(0)
    one = np.zeros((2, 2, 2, 2), dtype=int)
    one[:, :, 0], one[:, :, 1] = [30, 10], [10, 30]
    other = one.copy()
    other[:, :, 1] = [30, 10]
    found = forget([one] * 8 + [other[:1]] * 8, np.zeros((2, 2, 2, 2)))  # the second group joined no report any more
    visits = found.sum(axis=3)
    np.testing.assert_allclose(visits[0, :, 0], 640, rtol=1e-3)
    np.testing.assert_allclose(visits[:, :, 1], [[320 + LEFT] * 2, [LEFT] * 2], rtol=1e-3)
    assert not np.isnan(forget([], rng.random((2, 2, 2, 2)))).any()


def test_a_programme_forgets_whatever_the_order_of_its_reports(tmp_path: Path) -> None:
    ids = [f"m{k:02d}" for k in range(40)]
    with rmab.live.open(f"{tmp_path}/x.db") as store:
        found = []
        for name, every, order in (("a", "week", 1), ("b", "week", -1), ("c", "5 minutes", 1)):
            p: Any = store.create(name, states=["low", "high"], budget=10, reward={"high": 1}, every=every)
            p.join(ids, state="low")
            rhythm, rng = p.config.rhythm, np.random.default_rng(0)
            labels = [
                rhythm.label(rhythm.number("2026-W01" if every == "week" else "2026-01-01T00:00+00:00") + k)
                for k in range(16)
            ]
            told = []
            for t, label in enumerate(labels):
                on = set(ids[t % 4 :: 4])
                p.override(label, add=sorted(on), reason="by turns")
                p.ask(label)
                up = rng.random(40) < np.where([one in on for one in ids], 0.9 if t < 10 else 0.1, 0.3)
                told.append(
                    {"arm": ids, "state": ["high" if one else "low" for one in up], "executed": [one in on for one in ids]}
                )
            for label, rows_ in list(zip(labels, told, strict=True))[::order]:
                p.tell(label, rows_)
            with p.ledger() as ledger:
                found.append(learn(ledger, Observer()))
    np.testing.assert_array_equal(found[0].rows.kernels, found[1].rows.kernels)
    assert found[0].rows.kernels[0, 0, 1, 1] < 0.25  # as it is since the change
    assert 0.4 < found[2].rows.kernels[0, 0, 1, 1] < 0.8  # what returns every day is no change
