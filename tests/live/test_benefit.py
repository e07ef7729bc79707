"""The benefit that is shown without a model: its numbers, and its coverage at every week at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common import FloatArray
from rmab.errors import ModelError
from rmab.estimation.sequences import compare_means, confidence_sequence, margin, mixture_scale, periods_needed

PROGRAMMES, ARMS, PLACES, OUT, WEEKS = 200, 240, 30, 6, 104


def test_the_margin_is_narrowest_where_it_is_tuned() -> None:
    best = mixture_scale(100.0)
    assert margin(100.0, best) < min(margin(100.0, 0.9 * best), margin(100.0, 1.1 * best))
    total, low, high = confidence_sequence([1, 2], [1, 1], scale=best)
    np.testing.assert_allclose(total, [1, 3])
    np.testing.assert_allclose(high - low, 2 * margin([1.0, 2.0], best))
    with pytest.raises(ModelError, match="variances 0 or more"):
        confidence_sequence([1, 2], [1, -1], scale=best)


def test_normal_increments_stay_inside_as_often_as_they_should() -> None:
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(4000, 300)), axis=1)
    missed = (np.abs(walk) > margin(np.arange(1, 301.0), mixture_scale(100.0), 0.1)).any(axis=1).mean()
    assert 0.04 < missed < 0.1  # below alpha at every horizon, and not by much
    fixed = (np.abs(walk) > 1.645 * np.sqrt(np.arange(1, 301.0))).any(axis=1).mean()
    assert fixed > 0.5  # a 90% interval of one look, looked at again and again


def simulated(effect: float, seed: int, places: int = PLACES, out: int = OUT) -> tuple[FloatArray, FloatArray]:
    """(K, T) the truth, and whether the interval covers it, in K programmes of T weeks.

    Arms have a hidden frailty. Nurses chose by it before the programme began, so that states and frailty hang together; the
    index goes by state and last contact, and reach depends on frailty, too. 15% of the outcomes are not reported.
    """
    rng = np.random.default_rng(seed)
    shape = (PROGRAMMES, ARMS)
    frail = rng.random(shape)
    state = (rng.random(shape) < 0.8 - 0.6 * frail).astype(int)  # favourites were looked after
    waited = rng.random(shape)
    row = np.arange(PROGRAMMES)[:, np.newaxis]
    truth, estimates, variances = (np.zeros((PROGRAMMES, WEEKS)) for _ in range(3))
    for t in range(WEEKS):
        order = np.argsort(state - 0.3 * waited, axis=1)[:, :places]  # low states first
        shuffled = rng.permuted(order, axis=1)
        off, on = shuffled[:, :out], shuffled[:, out:]
        base = np.where(state == 1, 0.85 - 0.3 * frail, 0.35 - 0.3 * frail)
        gain = effect * (1 - frail) * (0.4 + 0.6 * frail)  # what being listed changes, reach included
        listed = np.zeros(shape, dtype=bool)
        listed[row, on] = True
        truth[:, t] = (places - out) * gain[row, order].mean(axis=1)
        state = (rng.random(shape) < base + gain * listed).astype(int)
        known = rng.random(shape) < 0.85
        for k in range(PROGRAMMES):
            one, other = (state[k, arms[k]][known[k, arms[k]]].astype(float) for arms in (on, off))
            if one.size and other.size:
                difference, variance = compare_means(one, other, 1.0)
            else:
                difference, variance, truth[k, t] = 0.0, 0.0, 0.0
            estimates[k, t], variances[k, t] = (places - out) * difference, (places - out) ** 2 * variance
        waited = np.where(listed, 0.0, waited + 0.05)
    tuned = 26 * 0.25 * (places - out) ** 2 * (1 / (places - out) + 1 / out)
    inside = []
    for k in range(PROGRAMMES):
        _, low, high = confidence_sequence(estimates[k], variances[k], scale=mixture_scale(tuned))
        total = np.cumsum(truth[k])
        inside.append((low <= total) & (total <= high))
    return np.cumsum(truth, axis=1), np.array(inside)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.6])
def test_the_interval_covers_at_every_week_at_once(effect: float) -> None:
    truth, inside = simulated(effect, 1)
    assert 0.93 <= inside.all(axis=1).mean() <= 0.99
    assert (truth[:, -1] > 50).all() or effect == 0


def test_the_sum_of_a_programme_by_hand(tmp_path: Path) -> None:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as store:
        p: Any = store.create("p", states=["low", "high"], budget=6, reward={"high": 1}, random_share=0.34, every="number")
        ids = [f"arm {k}" for k in range(30)]
        p.join(ids, state="low")
        assert "nothing can be shown yet" in str(p.benefit())
        total, spread = 0.0, 0.0
        rng = np.random.default_rng(0)
        for t in range(4):
            found = p.ask(t)
            with p.ledger() as ledger:
                out = {ledger.ids[n] for n in ledger.decisions[t].left_out}
            by_index = {one for one, rule in zip(found.arms, found.rule, strict=True) if rule == "index"}
            assert (len(out), len(by_index)) == (2, 4)
            high = {one for one in ids if rng.random() < (0.9 if one in found.ids else 0.2)}
            p.tell(t, [{"arm": one, "state": "high" if one in high else "low", "executed": one in found.ids} for one in ids])
            a, b = len(high & by_index) / 4, len(high & out) / 2
            if t == 0:  # the fallback, which is a policy of its own
                first = 4 * (a - b)
                continue
            total += 4 * (a - b)
            spread += 16 * (4 * a * (1 - a) / 3 / 4 + 2 * b * (1 - b) / 1 / 2)
        found = p.benefit()
        assert found.shown[-1] == pytest.approx(total)
        width = margin(spread, mixture_scale(26 * 0.25 * 16 * (1 / 4 + 1 / 2)))
        assert found.high[-1] - found.shown[-1] == pytest.approx(float(width))
        assert found.promised[-1] > 0
        assert str(found).startswith("promised ")
        assert str(found).endswith("in 3 periods, and 1 period by the fallback aside")
        other = p.benefit(fallback=True)
        assert (other.periods, other.others, other.shown[-1]) == (("0",), 3, pytest.approx(first))
        assert str(other).endswith("in 1 period; no model had promised anything")
        gone = [one for one, rule in zip(p.decision(3).arms, p.decision(3).rule, strict=True) if rule == "index"][:2]
        p.override(3, remove=gone, reason="away")
        assert p.benefit().shown[-1] == pytest.approx(total)  # as drawn, whatever people made of it


def test_a_design_reaches_its_power() -> None:
    """The number of periods is the one at which simulated programmes show the effect in 80% of the cases."""
    weeks = periods_needed(0.2, 36, 4, deviation=0.5)
    assert weeks is not None
    rng, places, out = np.random.default_rng(0), 36, 4
    on, off = (rng.binomial(size, rate, (2000, weeks)) / size for size, rate in ((places, 0.6), (out, 0.4)))
    each = places**2 * 0.25 * (1 / places + 1 / out)
    low = (places * (on - off)).sum(axis=1) - margin(weeks * each, mixture_scale(26 * each))
    assert 0.76 < (low > 0).mean() < 0.86
    assert periods_needed(1e-6, 36, 4) is None
    with pytest.raises(ModelError, match="of 1 places leaves nobody out"):
        rmab.live.plan_evidence(0.1, budget=1)
