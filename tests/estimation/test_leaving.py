"""Arms that leave, records that are missing, clusters that are drawn again: worlds whose truth is known."""

import numpy as np
import pytest

import rmab
from logs import HEADER, mothers, read, table
from rmab.estimation.clusters import count_by_arm, redraw_clusters
from rmab.estimation.gaps import find_missing, weigh_states
from rmab.estimation.leaving import add_leaving, find_leaving, find_silence
from rmab.estimation.optimism import estimate_optimism
from rmab.estimation.resampling import Resampler
from rmab.estimation.values import World


def world(
    *, arms: int = 400, weeks: int = 40, leave: tuple[float, float] = (0.0, 0.0), lost: tuple[float, float] = (0.0, 0.0),
    answered: tuple[float, float] | None = None,
) -> rmab.data.Log:  # fmt: skip
    """Two states; arms leave by action, and records are missing by the state of the arm, otherwise after an action."""
    rng, rows = np.random.default_rng(0), []
    for n in range(arms):
        state = act = 0
        for week in range(weeks):
            missed = lost if answered is None or not act else answered
            act = int(rng.random() < 0.3)
            if week == 0 or rng.random() >= missed[state]:
                rows.append((f"n{n}", week, f"s{state}", act))
            if rng.random() < leave[act]:
                break
            state = int(rng.random() < 0.2 + 0.5 * state + 0.1 * act)
    return read(table(*rows))


def test_leaving_is_found_by_action() -> None:
    log = world(leave=(0.04, 0.01))
    fitted = rmab.data.fit(log, reward={"s1": 1})
    found = fitted.leaving
    assert found is not None
    assert found.silence == 2
    assert np.allclose(found.rates[:, 0], 0.04, atol=0.008)
    assert np.allclose(found.rates[:, 1], 0.01, atol=0.008)
    drawn = np.stack([found.draw(np.random.default_rng(k)) for k in range(200)])
    assert np.allclose(drawn.mean(axis=0), found.rates, atol=0.002)
    assert np.array_equal(rmab.data.Fit.from_bytes(fitted.to_bytes()).leaving.rates, found.rates)


def test_actions_do_not_hold_arms_where_nothing_shows_it() -> None:
    found = find_leaving(world(leave=(0.03, 0.03)), 2)
    assert found is not None
    assert np.allclose(found.rates, 0.03, atol=0.006)
    assert find_leaving(world(arms=50), 2) is None


def test_long_gaps_are_not_taken_for_leaving() -> None:
    log = world(lost=(0.5, 0.5))
    assert find_silence(log, None) >= 5
    assert rmab.data.fit(log, reward={"s1": 1}).present.size > 0.97 * len(log.arms)
    assert find_silence(log, 3) == 3


def test_periods_that_are_not_entered_yet_make_nobody_leave() -> None:
    rows = [(f"n{n}", week, "xy"[(n + week) % 2], week % 2) for n in range(20) for week in range(12)]
    fitted = rmab.data.fit(read(table(*rows, ("n0", 15, "x", 0))), reward={"y": 1})
    assert fitted.present.size == 20
    assert fitted.leaving is None


def test_kernels_with_leaving_are_those_of_who_stays() -> None:
    kernels = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3, 2))
    rates = np.full((3, 2), 0.1)
    found = add_leaving(kernels, rates)
    assert np.allclose(found.sum(axis=-1), 1)
    assert np.allclose(found[:, :3, :, :3], 0.9 * kernels)
    assert (found[:, 3, :, 3] == 1).all()


@pytest.mark.slow
def test_promises_count_only_those_who_stay() -> None:
    fitted = rmab.data.fit(world(leave=(0.05, 0.05)), reward={"s1": 1})
    stays = rmab.data.fit(world(leave=(0.05, 0.05)), reward={"s1": 1}, gone_after=40)
    values = [
        World.of(one, 20, 20).baselines(World.of(one, 20, 20).kernels(one, np.asarray(one.kernels)))
        for one in (fitted, stays)
    ]
    each = [value["nothing"] / one.present.size for value, one in zip(values, (fitted, stays), strict=True)]
    belief, kernel = fitted.belief.mean(axis=0), fitted.with_leaving(np.asarray(fitted.kernels))[0, :, 0]
    earned = 0.0
    for _ in range(20):
        earned, belief = earned + belief[1], belief @ kernel
    assert each[0] == pytest.approx(earned)
    assert each[0] < 0.75 * each[1]
    found = rmab.data.evaluate(fitted, 20, horizon=10, replicates=40)
    assert found.plan.value < fitted.present.size * 10
    assert len(rmab.data.decide(fitted, 20).ids) == 20


def test_records_that_are_missing_by_state_are_found_and_weighted() -> None:
    log = world(lost=(0.5, 0.05))
    missing = find_missing(log)
    assert missing is not None
    assert np.allclose(missing, [0.5, 0.05], atol=0.1)
    fitted = rmab.data.fit(log, reward={"s1": 1})
    plain = fitted.counts[0, :, 0] / fitted.counts[0, :, 0].sum(axis=1, keepdims=True)
    truth = np.array([0.2, 0.7])
    assert abs(plain[:, 1] - truth).max() > 0.08
    assert np.allclose(fitted.kernels[0, :, 0, 1], truth, atol=0.04)
    silent = fitted.situation.seen_before == 2
    assert fitted.situation.belief[silent, 0].mean() > 0.65  # of those without a record most were where few are seen
    weighted = weigh_states(missing, fitted.counts) * fitted.counts
    assert weighted.sum(axis=(0, 1, 3)) == pytest.approx(fitted.counts.sum(axis=(0, 1, 3)))


def test_states_that_are_recorded_after_an_action_only_if_good_are_found_weighted_and_a_problem() -> None:
    fitted = rmab.data.fit(world(lost=(0.1, 0.1), answered=(0.6, 0.1)), reward={"s1": 1})
    assert fitted.missing is not None
    assert np.allclose(fitted.missing, [[0.1, 0.1], [0.6, 0.1]], atol=0.12)
    plain = fitted.counts[0, :, 1] / fitted.counts[0, :, 1].sum(axis=1, keepdims=True)
    truth = np.array([0.3, 0.8])
    assert (plain[:, 1] - truth).min() > 0.08
    assert np.allclose(fitted.kernels[0, :, 1, 1], truth, atol=0.05)
    found = {one.name: one for one in rmab.data.run_checks(fitted, replicates=40)}["missing records"]
    assert found.verdict == "problem"
    assert "record the state after every" in found.advice
    known, silent = fitted.situation.acted_before == 2, fitted.situation.seen_before == 2
    low = fitted.situation.belief[known & silent, 0].mean()  # not seen after an action: probably not good
    assert low > fitted.situation.belief[~known & silent, 0].mean()
    assert np.array_equal(rmab.data.Fit.from_bytes(fitted.to_bytes()).missing, fitted.missing)


def test_records_that_are_missing_by_chance_leave_everything_as_it_is() -> None:
    assert find_missing(world(lost=(0.3, 0.3))) is None
    assert find_missing(world(arms=40)) is None


def test_clusters_are_drawn_again_in_every_replicate() -> None:
    fitted = mothers(200, 25, groups=(), clusters=3)
    assert fitted.clustered
    resampler = Resampler(fitted)
    drawn = [resampler.draw_groups(np.random.default_rng(k)) for k in (0, 1)]
    assert drawn[0] is not None
    assert drawn[1] is not None
    same = (drawn[0] == fitted.group_of).mean()
    assert 0.5 < same < 1.0
    assert (drawn[0] != drawn[1]).any()
    counts = count_by_arm(fitted.require_log())
    assert np.array_equal(redraw_clusters(counts, fitted.group_of, np.random.default_rng(0)), drawn[0])
    assert Resampler(mothers(100, 10)).draw_groups(np.random.default_rng(0)) is None


@pytest.mark.slow
def test_optimism_is_what_a_plan_claims_too_much() -> None:
    """Many groups with few records: their plans look better than they are; with one group there is little to choose."""
    rng, rows = np.random.default_rng(0), []
    for n in range(120):
        state = 0
        for week in range(12):
            act = int(rng.random() < 0.2)
            rows.append((f"n{n}", week, f"s{state}", act, f"g{n % 30:02d}"))
            state = int(rng.random() < 0.2 + 0.015 * (n % 30) + 0.2 * state + 0.1 * act)
    columns = {"arm": "id", "period": "week", "state": "state", "action": "called"}
    logs = [rmab.data.read_log(table(*rows, names=f"{HEADER},g"), **columns, groups=one) for one in (["g"], [])]
    fits = [rmab.data.fit(one, reward={"s1": 1}) for one in logs]
    found = [[estimate_optimism(one, World.of(one, 10, 12), actions, 0) for one in fits] for actions in (120, 60, 0)]
    excess, half, none = ([one[0] - one[1] for one in several] for several in found)
    assert excess[0] > 0
    assert excess[0] > excess[1]
    assert half == pytest.approx([one / 2 for one in excess])
    assert none == [0, 0]  # a plan that acts on nobody claims nothing
