"""Checks find what is wrong with a log where it is wrong, and are silent where it is not."""

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import rmab
from logs import HEADER, mothers, read, table
from rmab.data import Check, Fit, estimate_effects, run_checks
from rmab.estimation.resampling import interval
from rmab.estimation.significance import calibration_error, homogeneity

NAMES = [
    "what is known",
    "missing records",
    "memory",
    "change over time",
    "predictions",
    "predictions after a call",
    "who was acted on",
    "effect in the same week",
    "effect over time",
    "effect after recent calls",
    "effect in later weeks",
    "effect by the state before",
    "effect by level of the arm",
    "effect of a call",
]


def found(fitted: Fit) -> dict[str, Check]:
    return {one.name: one for one in run_checks(fitted, replicates=40)}


def played(kernel, called, arms: int = 200, weeks: int = 40, seed: int = 0, lost: float = 0.0):
    """A log of two states: kernel(week, n, before, state, action) and called(week, n, state, before) are probabilities."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(arms):
        before, state = 0, int(rng.integers(2))
        for week in range(weeks):
            act = int(rng.random() < called(week, n, state, before))
            if rng.random() >= lost * state:
                rows.append((f"n{n}", week, f"s{state}", act))
            before, state = state, int(rng.random() < kernel(week, n, before, state, act))
    return rmab.data.fit(read(table(*rows)), reward={"s1": 1})


def plain(week: int, n: int, before: int, state: int, act: int) -> float:
    return 0.3 + 0.3 * state + 0.2 * act


def often(week: int, n: int, state: int, before: int) -> float:
    return 0.3 - 0.2 * state


def test_all_is_fine_where_it_is() -> None:
    checks = found(played(plain, often))
    assert list(checks) == NAMES
    assert {one.verdict for one in checks.values()} == {"fine"}
    assert all(np.isfinite(one.value) for one in checks.values())


@pytest.mark.slow
def test_false_alarms_are_rare() -> None:
    alarms = [name for seed in range(12, 24) for name, one in found(mothers(200, 25, seed=seed, groups=("age",))).items()
              if one.verdict != "fine" and name not in ("what is known", "effect of a call")]  # fmt: skip
    assert len(alarms) <= 2  # of 168 questions at about 0.005; seeds 12 to 47 have 3 of 432


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        ("memory", lambda: played(lambda w, n, b, s, a: 0.2 + 0.3 * s + 0.2 * a + 0.25 * b, often)),
        ("change over time", lambda: played(lambda w, n, b, s, a: plain(w, n, b, s, a) - 0.25 * (w >= 20), often)),
        ("who was acted on", lambda: played(plain, lambda w, n, s, b: 0.6 if n % 2 else 0.1)),
        ("missing records", lambda: played(plain, often, lost=0.3)),
        ("predictions", lambda: played(lambda w, n, b, s, a: plain(w, n, b, s, a) - 0.28 * (w >= 32), often)),
        ("effect of a call", lambda: played(lambda w, n, b, s, a: 0.3 + 0.3 * s, often)),
    ],
)
def test_what_is_wrong_is_found(name: str, fitted) -> None:
    check = found(fitted())[name]
    assert check.verdict in ("watch", "problem"), check


def test_nothing_known_is_said_to_be_a_problem() -> None:
    checks = found(played(plain, lambda w, n, s, b: 0.3 * (1 - s)))
    assert checks["what is known"].verdict == "watch"
    assert checks["what is known"].words == "no records of 's1' with a call in any group"
    always = found(played(plain, lambda w, n, s, b: float(s)))
    assert always["who was acted on"].verdict == "problem"
    assert "its effect cannot be seen" in always["who was acted on"].words


def test_short_logs_get_verdicts_not_errors() -> None:
    fitted = rmab.data.fit(read(table(("a", 1, "x", 1), ("a", 2, "y", 0))), reward={"y": 1})
    checks = found(fitted)
    assert list(checks) == NAMES
    assert all(
        one.verdict != "fine" for name, one in checks.items() if name in ("memory", "change over time", "predictions")
    )


def test_the_test_of_homogeneity_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    part, outcome = rng.integers(0, 4, 2000), rng.integers(0, 3, 2000)
    groups = np.zeros((4, 3))
    np.add.at(groups, (part, outcome), 1)
    expected = chi2_contingency(groups, lambda_="log-likelihood")
    ours = homogeneity(np.zeros(2000, dtype=int), part, outcome)
    assert (ours.statistic, ours.freedom, ours.p) == pytest.approx((expected.statistic, expected.dof, expected.pvalue))
    two = homogeneity(np.repeat([0, 1], 2000), np.tile(part, 2), np.tile(outcome, 2))
    assert (two.statistic, two.freedom) == pytest.approx((2 * expected.statistic, 2 * expected.dof))


def test_few_records_are_judged_by_permutation_and_false_alarms_stay_rare() -> None:
    """Sparse tables: by chi-square G would raise the alarm far too often."""
    rng, ours, plain = np.random.default_rng(0), [], []
    for _ in range(200):
        part, outcome = rng.integers(0, 5, 400), rng.integers(0, 2, 400)
        test = homogeneity(rng.integers(0, 6, 400), part, outcome)
        ours.append(test.p)
        plain.append(chi2.sf(test.statistic, test.freedom))
    few = np.array(plain) < 0.1  # those are found by lot
    assert 0.02 < np.mean(np.array(ours) < 0.05) < 0.08
    assert np.array_equal(np.array(ours)[~few], np.array(plain)[~few])
    assert np.mean(np.array(ours)[few] - np.array(plain)[few]) > 0.002
    one = homogeneity(np.zeros(400, dtype=int), np.repeat([0, 1], 200), np.repeat([0, 1], [300, 100]))
    assert one.p == pytest.approx(1 / 300)
    assert one.verdict == "problem"


def test_forecasts_of_few_records_are_off_by_their_own_error() -> None:
    rng, p = np.random.default_rng(0), []
    for _ in range(200):
        share = rng.beta(8, 12)  # estimated by 20 records, of which 8 came
        others = rng.beta(8, 12, (30, 1)) * np.ones(400)
        p.append(calibration_error(np.full(400, 0.4), (rng.random(400) < share).astype(float), others)[2])
    assert np.mean(np.array(p) < 0.01) < 0.06
    assert np.mean(np.array(p) < 0.5) == pytest.approx(0.5, abs=0.15)


def test_calibration_is_off_by_what_forecasts_are_off() -> None:
    rng = np.random.default_rng(0)
    said = rng.random(200_000) * 0.8
    came = (rng.random(200_000) < said + 0.1).astype(float)
    error, noise, p = calibration_error(said, came)
    assert p < 1e-6
    right = calibration_error(said, (rng.random(200_000) < said).astype(float))
    assert right[0] < 2 * right[1]
    assert right[2] > 0.001
    assert np.sqrt(error**2 - noise**2) == pytest.approx(0.1, abs=0.005)


def test_effects_are_differences_of_frequencies_and_lie_in_their_intervals() -> None:
    fitted = played(plain, often)
    one = estimate_effects(fitted, replicates=200)[0]
    visits = fitted.counts[0].sum(axis=(1, 2))
    for kernels, value, near in ((fitted.kernels[0], one.model, 1e-9), (fitted.counts[0], one.value, 0.01)):
        rows = kernels / kernels.sum(axis=2, keepdims=True)
        rise = (rows[:, 1] - rows[:, 0])[:, 1]
        assert value == pytest.approx(float(visits @ rise / visits.sum()), abs=near)
    assert one.low < 0.2 < one.high
    assert one.high - one.low < 0.1
    assert estimate_effects(fitted, replicates=50, seed=3) == estimate_effects(fitted, replicates=50, seed=3)
    with pytest.raises(rmab.errors.ModelError, match=r"replicates must be in 40\.\.20,000"):
        estimate_effects(fitted, replicates=3)
    with pytest.raises(rmab.errors.ModelError, match=r"replicates must be in 40\.\.20,000, got 1,000,000"):
        rmab.data.run_checks(fitted, replicates=1_000_000)


def test_an_estimate_lies_well_within_its_interval_in_small_groups_too() -> None:
    """Both stand on the group's own records, so that neither end of a bar is near its dot."""
    places = [
        (one.value - one.low) / (one.high - one.low)
        for seed in range(6)
        for one in estimate_effects(mothers(200, 25, seed=seed), replicates=200)
        if np.isfinite(one.value)
    ]
    assert len(places) > 60
    assert 0.2 < min(places) < max(places) < 0.8
    assert np.mean(places) == pytest.approx(0.5, abs=0.03)


def test_a_group_in_which_no_action_was_seen_has_no_effect_of_its_own() -> None:
    rows = [(f"n{n}", week, f"s{(n + week) % 3 % 2}", int(n < 10 and week % 3 == 0), "a" if n < 10 else "b")
            for n in range(20) for week in range(12)]  # fmt: skip
    fitted = rmab.data.fit(read(table(*rows, names=f"{HEADER},group"), groups=["group"]), reward={"s1": 1})
    a, b = estimate_effects(fitted, replicates=40)
    assert np.isfinite([a.value, a.low, a.high, a.model, b.model]).all()
    assert np.isnan([b.value, b.low, b.high]).all()
    assert (a.seen, b.seen) == (fitted.counts[0, :, 1].sum(), 0)


def test_intervals_of_few_draws_hold_what_they_say() -> None:
    """Of 39 draws the ends are the smallest and the largest: 1 / 40 of the distribution is beyond each."""
    draws = np.random.default_rng(0).random((39, 5000))
    low, high = interval(draws)
    assert np.allclose([low, high], [draws.min(axis=0), draws.max(axis=0)])
    assert (high - low).mean() == pytest.approx(0.95, abs=0.002)


def test_arms_that_hang_together_make_intervals_wider() -> None:
    """Half of the arms never respond: records of one arm are alike, and plain counts would not know."""
    apart = played(lambda w, n, b, s, a: 0.3 + (0.5 * a if n % 2 else 0.0), often, arms=60)
    alike = played(lambda w, n, b, s, a: 0.3 + 0.25 * a, often, arms=60)
    widths = [one.high - one.low for fitted in (apart, alike) for one in estimate_effects(fitted, replicates=200)]
    assert widths[0] > 1.2 * widths[1]


def test_few_arms_are_told_and_their_intervals_are_those_of_their_records() -> None:
    fitted = played(plain, often, arms=1, weeks=300)
    one = estimate_effects(fitted, replicates=400)[0]
    visits = fitted.counts[0].sum(axis=2)
    share = fitted.counts[0, :, :, 1] / visits
    error = np.sqrt(((visits.sum(axis=1) / visits.sum())[:, np.newaxis] ** 2 * share * (1 - share) / visits).sum())
    assert one.high - one.low == pytest.approx(2 * 1.96 * error, rel=0.2)
    check = found(fitted)["what is known"]
    assert check.verdict == "problem"
    assert check.words.startswith("only 1 arm with records")
    assert "too few to split into halves" in rmab.data.evaluate(fitted, 1, replicates=40).one_step.refused
