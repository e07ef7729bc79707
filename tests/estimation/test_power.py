"""How many weeks a measurement takes: against measurements of programmes that are played."""

from typing import Any

import numpy as np
import pytest

import rmab
from randomised import World, make_log
from rmab.errors import ModelError
from rmab.estimation.power import Side, estimate_power


def weeks_until_shown(
    world: World, effect: float, others: float, rate: float, recorded: float, rng: np.random.Generator
) -> float:
    """Play a programme with lists, and return the first week in which the measurement shows a benefit."""
    tables = [np.full((world.arms, world.weeks + 1), one) for one in (-1.0, -1.0, -1.0, np.nan)]
    states, called, listed, chance = tables
    good = rng.random(world.arms) < rate
    for t in range(world.weeks + 1):
        states[:, t] = np.where(rng.random(world.arms) < recorded, good, -1)
        if t < world.weeks:
            chance[:, t], on = world.draw(rng.random(world.arms), rng)
            listed[:, t] = called[:, t] = on
            gain = np.where(chance[:, t] >= 0.5, effect, others)
            good = rng.random(world.arms) < rate + gain * on
    found = rmab.data.measure(make_log(states, called, listed, chance), reward={"good": 1})
    shown = np.flatnonzero(found.enough & (found.all.low > 0))
    return float(shown[0] + 1) if shown.size else np.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "effect", "others", "rate", "recorded"),
    [
        (World(arms=100, places=20, swapped=4, weeks=26), 0.3, 0.0, 0.4, 1.0),
        (World(arms=100, places=30, swapped=3, weeks=40), 0.25, 0.1, 0.4, 0.8),
        (World(arms=60, places=20, swapped=8, weeks=40), 0.15, 0.15, 0.4, 1.0),
        (World(arms=200, places=40, swapped=8, weeks=40), 0.1, 0.0, 0.03, 1.0),
        (World(arms=80, places=10, swapped=3, weeks=40), 0.35, 0.0, 0.2, 1.0),
        (World(arms=40, places=4, swapped=2, weeks=50), 0.5, 0.0, 0.3, 1.0),
        (World(arms=100, places=50, swapped=25, weeks=20), 0.12, 0.12, 0.05, 1.0),
        (World(arms=12, places=4, swapped=1, weeks=60), 0.5, 0.0, 0.3, 1.0),
    ],
)
def test_the_number_of_weeks_is_that_of_measurements(
    world: World, effect: float, others: float, rate: float, recorded: float
) -> None:
    rng = np.random.default_rng(0)
    weeks = [weeks_until_shown(world, effect, others, rate, recorded, rng) for _ in range(150)]
    (design,) = estimate_power(
        effect,
        budget=world.places,
        arms=world.arms,
        shares=[world.swapped / world.places],
        others=others,
        rate=rate,
        recorded=recorded,
    )
    assert design.periods is not None
    assert design.left_out == world.swapped
    assert 0.8 <= design.periods / np.quantile(weeks, 0.8, method="inverted_cdf") <= 1.2


def test_a_design_by_hand() -> None:
    """Of 10 places 5 change hands with 5 of 30 others: the variances of one period."""
    chosen, others = Side(10, 0.5, 0.2, 0.25, 0.21), Side(30, 1 / 6, 0.0, 0.25, 0.25)
    assert chosen.mean == pytest.approx(1.0)
    assert chosen.noise == pytest.approx(10 * (0.5 * 0.21 + 0.5 * 0.25))
    assert chosen.stated == pytest.approx(10 * (0.23 + 0.01))
    assert [others.noise, others.stated] == pytest.approx([30 * 0.2 * 0.25] * 2)


def test_usual_shares_that_leave_nobody_out_are_left_out() -> None:
    assert [one.share for one in estimate_power(0.3, budget=3, arms=100)] == [0.2, 0.3]


def test_more_randomness_or_a_larger_effect_takes_fewer_weeks() -> None:
    designs = estimate_power(0.1, budget=50, arms=1000)
    periods = [one.periods or 1000 for one in designs]
    assert periods == sorted(periods, reverse=True)
    assert [one.cost for one in designs] == sorted(one.cost for one in designs)
    assert (estimate_power(0.2, budget=50, arms=1000)[0].periods or 1000) < periods[0]
    assert estimate_power(0.001, budget=50, arms=1000)[0].periods is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"effect": 0.0}, "effect must be more than 0"),
        ({"effect": float("nan")}, "effect must be more than 0"),
        ({"budget": 100}, "budget must be in 1..99"),
        ({"effect": 1e300}, "effect must be more than 0, and it and others below 1e"),
        ({"budget": 2, "shares": [0.05]}, "a share of 0.05 of 2 places leaves nobody out"),
        ({"budget": 1}, "a share of 0.3 of 1 places leaves nobody out"),
        ({"power": 1.0}, "power and alpha must be above 0 and below 1"),
        ({"rate": 0.95}, "a rate of 0.95 and an effect of 0.1 add up to 1.05; a rate must be"),
        ({"recorded": 0.0}, "power and alpha must be above 0 and below 1, and recorded above 0"),
        ({"alpha": 0.0}, "power and alpha must be above 0 and below 1"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        estimate_power(**{"effect": 0.1, "budget": 20, "arms": 100} | change)
