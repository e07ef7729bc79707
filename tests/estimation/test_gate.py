"""The gate before any promise: the records must show an effect, whenever one looks."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom

import rmab
from effect_logs import play
from logs import HEADER, read, table
from rmab.estimation.gate import check_effect, e_value, weigh_evidence
from rmab.estimation.scores import Records


@pytest.mark.parametrize(("arms", "blocks"), [(150, 1), (30, 2)])
def test_the_average_effect_is_least_squares_within_strata_with_the_errors_of_arms(arms: int, blocks: int) -> None:
    records = Records.of(play(0.2, arms=arms))
    assert len(records.blocks) == blocks
    found = records.average()
    dummies = [np.eye(one.max() + 1)[one] for one in records.blocks]
    design = np.column_stack([records.action, *dummies])
    solved = np.linalg.lstsq(design, records.outcome, rcond=None)[0]
    assert found.value == pytest.approx(solved[0], rel=1e-4)
    rest = records.outcome - design @ solved
    bread = np.linalg.pinv(design.T @ design)
    meat = np.zeros((design.shape[1], design.shape[1]))
    for n in range(records.arms):
        score = design[records.arm == n].T @ rest[records.arm == n]
        meat += np.outer(score, score)
    assert found.error == pytest.approx(np.sqrt((bread @ meat @ bread)[0, 0]), rel=1e-4)


def test_recent_actions_are_those_of_the_four_periods_before() -> None:
    fitted = play(0.2, arms=20)
    records, log = Records.of(fitted), fitted.log
    acted = {(n, w) for n, w, a in zip(log.arm_of, log.period, log.action, strict=True) if a == 1}
    for arm, week, recent in zip(records.arm, records.period, records.recent, strict=True):
        assert recent == sum((arm, week - k) in acted for k in (1, 2, 3, 4))


@pytest.mark.slow
def test_the_gate_opens_for_an_effect_and_seldom_for_none() -> None:
    assert check_effect(play(0.2)).p < 0.01
    assert not any(check_effect(play(0.0, arms=60, weeks=15, seed=seed)).is_open for seed in range(10))


def test_the_gate_opens_for_an_effect_that_helps_in_one_group_and_harms_in_another() -> None:
    rng, rows = np.random.default_rng(0), []
    for n in range(150):
        state = 0
        for week in range(25):
            act = int(rng.random() < 0.2)
            rows.append((f"n{n}", week, f"s{state}", act, "ab"[n % 2]))
            state = int(rng.random() < 0.5 + (0.2 if n % 2 else -0.2) * act)
    fitted = rmab.data.fit(read(table(*rows, names=f"{HEADER},group"), groups=["group"]), reward={"s1": 1})
    found = check_effect(fitted)
    assert abs(found.value) < 0.1
    assert found.is_open


def watch(seed: int, *, arms: int, groups: int, weeks: int, rate: float, level: float, effect: float = 0.0) -> list[Records]:
    """What is known after each week of a programme whose calls go to those who did badly after calls."""
    rng = np.random.default_rng(seed)
    group, state, urge, rows = np.arange(arms) % groups, np.zeros(arms, dtype=int), np.zeros(arms), []
    for week in range(weeks):
        act = (rng.random(arms) < 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - urge))).astype(int)
        after = (rng.random(arms) < 1 / (1 + np.exp(-level - state - effect * act))).astype(int)
        rows.append((np.arange(arms), group, state, np.full(arms, week), act, after))
        urge, state = 0.8 * urge + (0.5 - after) * act, after
    found = []
    for end in range(3, weeks + 1):
        several = [np.concatenate(one) for one in zip(*rows[:end], strict=True)]
        order = np.lexsort((several[3], several[0]))
        arm, where, was, when, acts, came = (one[order] for one in several)
        none, worth = np.zeros(arm.size, dtype=int), np.zeros((groups, 2))
        found.append(Records(arm, where, was, when, acts, came.astype(float), none, none, worth, arms))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arms", "groups", "rate", "level"),
    [(80, 4, 0.1, -0.5), (60, 2, 0.1, -4.5), (60, 2, 0.8, -3.5), (60, 20, 0.15, 0.0)],
    ids=["usual", "rare outcomes", "most are called", "tiny groups"],
)
def test_the_gate_holds_at_all_looks_together(arms: int, groups: int, rate: float, level: float) -> None:
    """Eighteen looks at 40 programmes without an effect: some look opens it in at most 5% of them."""
    programmes = (watch(k, arms=arms, groups=groups, weeks=20, rate=rate, level=level) for k in range(40))
    opened = [any(weigh_evidence(one, one.average(), groups) > np.log(20) for one in looks) for looks in programmes]
    assert sum(opened) <= 4  # of 40 at 5%: more with probability 0.05


def test_evidence_by_hand() -> None:
    """Six weeks of five records, two acted on, who do well: D = 1.2, by the formula; the mixture by quadrature."""
    arm, zero, week = np.repeat(np.arange(5), 6), np.zeros(30, dtype=int), np.tile(np.arange(6), 5)
    action = (arm < 2).astype(int)
    records = Records(arm, zero, zero, week, action, action.astype(float), zero, zero, np.zeros((1, 1)), 5)
    records.__dict__["blocks"] = (week,)  # five records are enough here
    found = records.average()
    deviation = np.sqrt(1.2 / 4)
    rates = np.linspace(0, 3, 300_001)[1:]
    density = 2 * np.exp(-((rates / 0.3) ** 2) / 2) / (0.3 * np.sqrt(2 * np.pi))
    rate = rates / deviation
    up, down = (np.log(0.4 * np.exp(side * rate * 0.6) + 0.6 * np.exp(-side * rate * 0.4)) for side in (1, -1))
    price = 2 * 3 / 4 * (0.6 * up + 0.4 * down)
    expected = float((density * np.exp(6 * (rate * 1.2 - price))).sum() * (rates[1] - rates[0]))
    assert found.value == 1.0
    assert np.exp(weigh_evidence(records, replace(found, parts=np.zeros(5)), 1)) == pytest.approx(expected, rel=0.02)


def test_the_price_of_a_stratum_is_nearly_that_of_draws_without_replacement() -> None:
    for size, good, acted in itertools.product((6, 10, 30), (1, 3, 5), (1, 2, 4)):
        drawn = hypergeom(size, good, acted)
        at, level = np.arange(acted + 1), good / size
        for slope in (0.1, 0.5, 1.0):
            exact = np.log((drawn.pmf(at) * np.exp(slope * (at - acted * level))).sum())
            up, down = (np.log(level * np.exp(x * (1 - level)) + (1 - level) * np.exp(-x * level)) for x in (slope, -slope))
            price = acted * (size - acted) / (size - 1) * ((1 - acted / size) * up + acted / size * down)
            assert price == pytest.approx(exact, rel=0.1)


def test_harm_is_no_evidence_of_help() -> None:
    found = check_effect(play(-0.25))
    assert found.high < 0
    assert found.p > 0.5
    assert not found.is_open


def test_e_values() -> None:
    assert e_value(3.9) == pytest.approx(7.26, abs=0.01)  # VanderWeele & Ding 2017
    assert e_value(1 / 3.9) == pytest.approx(e_value(3.9))
    assert e_value(1.0) == 1.0
