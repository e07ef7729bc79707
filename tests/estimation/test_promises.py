"""Promises: a benefit is stated where the records show one, and nowhere else; console, JSON and page say the same."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import rmab
from commands import call
from effect_logs import play
from logs import HEADER, read, table
from rmab.data import Check, Evaluation, Fit, decide, estimate_effects, evaluate, run_checks
from rmab.estimation.draws import find_design
from rmab.estimation.effects import hold_together
from rmab.estimation.evaluation import _ranges
from rmab.estimation.gate import check_effect
from rmab.estimation.promise import Estimate
from rmab.estimation.reach import estimate_reach
from rmab.estimation.scores import Records
from rmab.estimation.selection import find_link, find_trial
from rmab.estimation.sensitivity import bound_rows, rank_states
from rmab.estimation.values import World
from rmab.report.programme import render_programme


@cache
def evaluated(effect: float, **options: float) -> Evaluation:
    return evaluate(play(effect, **options), 15, horizon=8, replicates=40)  # type: ignore[arg-type]


def verdict(fitted: Fit, name: str) -> Check:
    return {one.name: one for one in run_checks(fitted, replicates=40)}[name]


def lasting(*, stays: float, seed: int = 0) -> Fit:
    """A call lifts the next state, and part of that lift stays for the weeks after."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(200):
        state, lift = 0, 0.0
        for week in range(25):
            called = int(rng.random() < 0.1)
            rows.append((f"n{n}", week, f"s{state}", called, "ab"[n % 2]))
            lift = stays * lift + 0.3 * called
            state = int(rng.random() < 0.25 + 0.2 * state + min(lift, 0.5))
    return grouped(rows)


def test_effects_that_last_for_weeks_are_found() -> None:
    found = verdict(lasting(stays=0.6), "effect in later weeks")
    assert found.verdict == "problem"
    assert found.advice
    assert verdict(lasting(stays=0.0), "effect in later weeks").verdict == "fine"


def answering(*, called: tuple[float, float], others: float, seed: int = 0) -> Fit:
    """States after a call are recorded by how good they are, (bad, good); after none, with one chance."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(300):
        state, seen = 0, True
        for week in range(25):
            act = int(rng.random() < 0.12)
            if seen:
                rows.append((f"n{n}", week, f"s{state}", act, "ab"[n % 2]))
            state = int(rng.random() < 0.25 + 0.35 * state + 0.2 * act)
            seen = bool(rng.random() < (called[state] if act else others))
    return grouped(rows)


def test_states_that_are_recorded_after_a_call_only_when_they_are_good_are_a_problem() -> None:
    found = verdict(answering(called=(0.5, 0.98), others=0.9), "missing records")
    assert found.verdict == "problem"
    assert "after a call" in found.words
    assert verdict(answering(called=(0.6, 0.6), others=0.95), "missing records").verdict == "watch"  # not by the state


def test_effects_that_tire_for_good_are_found() -> None:
    """Every call but the first of an arm does nothing, however long ago the first one was."""
    rng, rows = np.random.default_rng(0), []
    for n in range(300):
        state, worn = 0, False
        for week in range(30):
            called = int(rng.random() < 0.08)
            rows.append((f"n{n}", week, f"s{state}", called, "ab"[n % 2]))
            state = int(rng.random() < 0.25 + 0.2 * state + 0.35 * called * (not worn))
            worn = worn or bool(called)
    found = verdict(grouped(rows), "effect after recent calls")
    assert found.verdict == "problem"
    assert "earlier call" in found.words


# --- ranges


def test_bounds_hold_what_a_hidden_cause_of_that_strength_does() -> None:
    """A hidden cause doubles the chance of being chosen and of the outcome: the true chance lies within the bounds."""
    share, risk, chosen = 0.4, np.array([0.2, 0.4]), np.array([0.1, 0.2])
    part = np.array([1 - share, share])
    seen = (part * chosen * risk).sum() / (part * chosen).sum()
    truth = float(part @ risk)
    kernels = np.broadcast_to([1 - seen, seen], (1, 2, 2, 2))
    low, high = (bound_rows(kernels, np.array([0, 1]), 2.0, upper=upper)[0, 0, 1, 1] for upper in (False, True))
    assert low < truth < seen < high
    assert np.allclose(bound_rows(kernels, np.array([0, 1]), 1.0, upper=False), kernels)
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 4, 2))
    for strength in (1.25, 2.0, 10.0):
        for upper in (False, True):
            moved = bound_rows(rows, np.array([2, 0, 1, 3]), strength, upper=upper)
            assert np.allclose(moved.sum(axis=3), 1)
            assert moved.min() >= 0
            assert np.array_equal(moved[:, :, 0], rows[:, :, 0])
            better = moved[..., 1, 3] - rows[..., 1, 3]
            assert (better >= 0).all() if upper else (better <= 0).all()


def test_states_are_ranked_by_what_they_lead_to() -> None:
    kernel = np.array([[1.0, 0.0, 0.0], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]])
    assert rank_states(kernel, np.array([0.1, 0.0, 1.0]), 10).tolist() == [0, 1, 2]


# --- checks of the effect


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("who was acted on", {"trait": 0.12}),
        ("effect over time", {"fade": True, "rate": 0.3}),
        ("effect after recent calls", {"wear": True, "rate": 0.3}),
        ("effect after recent calls", {"tire": 0.4, "rate": 0.2}),
    ],
)
def test_what_makes_an_effect_useless_is_a_problem(name: str, options: dict[str, float]) -> None:
    found = verdict(play(0.25, **options), name)  # type: ignore[arg-type]
    assert found.verdict == "problem", found
    assert found.advice


def test_records_that_are_missing_by_action_are_watched_as_rows_stay_right() -> None:
    fitted = play(0.25, lost=0.4)
    found = verdict(fitted, "missing records")
    assert found.verdict == "watch"
    assert "depending on whether there was a call" in found.words
    assert fitted.missing is None
    low, high = Records.of(fitted).average().ends
    assert low < 0.25 < high


def test_arms_that_were_assigned_are_recognised_and_compared() -> None:
    fitted = play(0.25, assigned=True)
    found = verdict(fitted, "who was acted on")
    assert found.verdict == "watch"
    assert "75 of 150 arms never had a call" in found.words
    trial = find_trial(Records.of(fitted))
    assert trial is not None
    assert trial.low > 0
    assert find_trial(Records.of(play(0.25))) is None


def test_too_few_calls_to_tell_who_was_chosen_are_not_fine() -> None:
    found = verdict(play(0.2, rate=0.005), "who was acted on")
    assert found.verdict == "unknown"
    assert not find_link(Records.of(play(0.2, rate=0.005))).is_known


# --- what is said


@pytest.mark.slow
def test_a_benefit_is_conditional_unless_actions_were_drawn_at_random() -> None:
    found = evaluated(0.25)
    assert found.standing == "conditional"
    assert found.shows("nothing")
    assert not found.promises("nothing")
    for one in found.sentences()[:4]:
        assert one.startswith("If no unrecorded reason decided who got a call: ")
    for one in found.sentences()[:2]:
        assert "k = 1.5" in one
    assert "more weeks s1" in found.sentences()[1]
    fields = found.fields()
    assert fields["benefits"] is None
    assert fields["condition"] == "If no unrecorded reason decided who got a call."
    assert fields["conditional_benefits"]["nothing"]["low"] > 0
    for one in found.ranges["nothing"]:
        assert one.low < found.benefits["nothing"].low < found.benefits["nothing"].high < one.high


def test_designs_are_declared_or_recorded() -> None:
    fitted = play(0.25)
    assert find_design(fitted) == ""
    assert find_design(replace(fitted, randomised=True)) == "declared"
    drawn = replace(fitted.require_log(), chance=np.full(fitted.require_log().arm_of.size, 0.15))
    assert find_design(replace(fitted, log=drawn)) == "recorded"
    sure = replace(drawn, chance=np.where(np.arange(drawn.arm_of.size) % 2, 0.15, 1.0))
    assert find_design(replace(fitted, log=sure)) == ""  # half of the choices were no draws
    assert find_design(play(0.25, assigned=True)) == ""  # they may be volunteers


def replay(act, *, effect: float = 0.0, push: float = 0.0, arms: int = 120, weeks: int = 12) -> tuple:
    """Return rows of a log whose chances of a call are act(arm, week, score), and whose unrecorded scores push outcomes."""
    rng, rows, chances = np.random.default_rng(1), [], []
    for n in range(arms):
        state = 0
        for week in range(weeks):
            score = rng.random() < 0.5
            chance = act(n, week, score)
            called = int(rng.random() < chance)
            rows.append((f"n{n}", week, f"s{state}", called, f"g{n % 4}"))
            chances.append(chance)
            state = int(rng.random() < 0.3 + 0.2 * state + push * score + effect * called)
    return rows, np.array(chances)


def grouped(rows: list, **options: object) -> Fit:
    return rmab.data.fit(read(table(*rows, names=f"{HEADER},group"), groups=["group"]), reward={"s1": 1}, **options)


def test_recorded_chances_that_something_unrecorded_moved_promise_nothing() -> None:
    """Chances are 0.3 where an unrecorded score is high, and else 0.04; the score lifts outcomes, a call does not."""
    rows, chances = replay(lambda _n, _week, score: 0.3 if score else 0.04, push=0.3, arms=200, weeks=20)
    fitted = grouped(rows)
    assert check_effect(fitted).is_open  # without the chances it looks like an effect
    drawn = replace(fitted, log=replace(fitted.require_log(), chance=chances))
    assert find_design(drawn) == ""
    assert not check_effect(drawn).is_open
    found = verdict(drawn, "effect in the same week")
    assert found.verdict == "problem"
    assert "a similar time since joining and a similar chance" in found.words


def test_calls_that_go_to_those_who_joined_of_late_are_compared_among_them() -> None:
    """Arms do well for six weeks after they join, and are called more often then; a call changes nothing."""
    rng, rows = np.random.default_rng(0), []
    for n in range(300):
        state, joined = 1, int(rng.integers(0, 18))
        for week in range(joined, 25):
            new = week - joined < 6
            called = int(rng.random() < (0.3 if new else 0.04))
            rows.append((f"n{n}", week, f"s{state}", called, f"g{n % 3}"))
            state = int(rng.random() < 0.25 + 0.2 * state + 0.35 * new)
    fitted = grouped(rows)
    assert check_effect(fitted).p > 0.2
    found = verdict(fitted, "effect in the same week")
    assert found.verdict == "problem"
    assert "within the same week and a similar time since joining" in found.words


def test_a_reward_that_the_log_chose_counts_as_several_questions() -> None:
    rows = replay(lambda *_: 0.15, effect=0.12, arms=200)[0]
    log = read(table(*[(*one[:2], {"s0": "low", "s1": "fine"}[one[2]], *one[3:]) for one in rows], names=f"{HEADER},group"))
    chosen, declared = (check_effect(rmab.data.fit(log, reward=reward)) for reward in (None, {"fine": 1}))
    assert not log.ordered
    assert 0.0 < declared.p < 0.05
    assert chosen.p == pytest.approx(2 * declared.p)


@pytest.mark.parametrize(
    "act",
    [
        lambda _n, week, _score: float(week % 4 == 3),
        lambda n, _week, _score: float(n % 4 == 0),
        lambda n, week, _score: float(n == 3 and week == 3),
    ],
    ids=["whole weeks", "whole groups", "one call"],
)
def test_where_nothing_can_be_compared_nothing_is_said(act) -> None:
    fitted = grouped(replay(act, effect=0.4)[0])
    gate = check_effect(fitted)
    assert np.isnan(gate.value)
    assert not gate.is_open
    for name in ("effect of a call", "effect in the same week", "effect over time"):
        found = verdict(fitted, name)
        assert found.verdict == "unknown"
        assert np.isnan(found.value)
    found = evaluate(fitted, 5, horizon=4, replicates=40)
    assert found.standing == "not shown"
    assert "known" in found.sentences()[0]
    assert not any("at most" in one or "p =" in one for one in found.sentences())
    assert found.fields()["ranges"] is None
    calls = decide(fitted, 5)
    page = render_programme(fitted, calls, found, estimate_effects(fitted), estimate_reach(fitted, 5, 4, calls.active))
    assert "is unknown" in page
    assert 'id="benefits"' not in page


def test_an_effect_shows_where_every_arm_is_a_group_of_its_own() -> None:
    rows = [(*one[:4], one[0]) for one in replay(lambda *_: 0.15, effect=0.5)[0]]
    gate = check_effect(grouped(rows))
    assert gate.is_open
    assert gate.low < 0.5 < gate.high


def test_a_bound_below_nothing_is_no_bound() -> None:
    found = evaluated(0.0)
    worse = replace(found, benefits={**found.benefits, "nothing": Estimate(-20.0, -35.0, -5.0)})
    assert "at most" not in worse.sentences()[1]
    assert "no weeks s1 over no calls" in worse.sentences()[1]


def test_arms_that_began_alike_do_not_look_assigned() -> None:
    """Half of the arms volunteer; all are in the same state at first, so nothing can be told from that."""
    rows = replay(lambda n, *_: 0.3 * (n % 8 < 4))[0]
    assert find_trial(Records.of(grouped(rows))) is None


@pytest.mark.slow
def test_a_benefit_is_promised_where_actions_were_drawn_at_random() -> None:
    found = replace(evaluated(0.25), design="declared")
    assert found.standing == "promised"
    assert found.promises("nothing")
    assert "more weeks s1" in found.sentences()[1]
    assert not any(one.startswith("If nothing unrecorded") for one in found.sentences())
    assert "drawn at random is declared" in found.sentences()[-2]
    assert found.fields()["benefits"]["nothing"]["low"] > 0


def test_calls_that_fall_into_good_weeks_are_found() -> None:
    """Calls and levels share a cycle of four weeks, and a call changes nothing."""
    rng, rows = np.random.default_rng(0), []
    for n in range(200):
        state = 0
        for week in range(28):
            good = week % 4 == 0
            act = int(rng.random() < (0.4 if good else 0.05))
            rows.append((f"n{n}", week, f"s{state}", act))
            state = int(rng.random() < 0.3 + 0.2 * state + 0.2 * good)
    fitted = rmab.data.fit(read(table(*rows)), reward={"s1": 1})
    found = verdict(fitted, "effect in the same week")
    assert found.verdict == "problem"
    assert found.advice
    assert not check_effect(fitted).is_open
    assert Records.of(fitted).coarse.value > 0.08


@pytest.mark.slow
def test_no_benefit_is_stated_where_there_is_none() -> None:
    found = evaluated(0.0)
    assert found.standing == "not shown"
    assert not found.promises("nothing")
    assert found.sentences()[0].startswith("The records do not show that a call helps")
    assert found.fields()["benefits"] is None
    assert not any("more weeks" in one for one in found.sentences())


@pytest.mark.slow
def test_a_problem_comes_first_and_the_number_is_no_result(tmp_path) -> None:
    fitted = play(0.25, trait=0.12)
    found = evaluate(fitted, 15, horizon=8, replicates=40)
    first = found.sentences()[0]
    assert first.startswith("Problem: who was acted on: ")
    assert not any(found.promises(name) for name in found.benefits)
    naive = found.describe(found.benefits["nothing"])
    calls = decide(fitted, 15)
    page = render_programme(fitted, calls, found, estimate_effects(fitted), estimate_reach(fitted, 15, 8, calls.active))
    assert page.index("Problem: who was acted on") < page.index("The list for")
    fitted.save(tmp_path / "m.npz")
    words = ("evaluate", str(tmp_path / "m.npz"), "--budget", "15", "--horizon", "8", "--replicates", "40")
    shown = call(*words).stdout
    for text in (page, shown):
        assert naive not in text
        assert found.describe(found.benefits["nothing"], signed=True) not in text
        assert "k = 1.5" in text or "1.5" in text
    fields = json.loads(call(*words, "--json").stdout)
    assert fields["standing"] == "problem"
    assert fields["benefits"] is None
    assert fields["sentences"] == found.sentences()


# --- decided and reached


def calls_that_reach(reach: float) -> Fit:
    """A log in which those with a good sign are reached more often, and only calls that reach somebody change anything."""
    rng, rows = np.random.default_rng(1), []
    for n in range(250):
        state = 0
        for week in range(25):
            sign, act = rng.random() < 0.5, rng.random() < 0.25
            met = act and rng.random() < (min(2 * reach, 1.0) if sign else 0.0)
            rows.append((f"n{n}", week, f"s{state}", int(act), ("yes" if met else "no") if act else ""))
            state = int(rng.random() < 0.2 + 0.2 * state + 0.2 * sign + 0.3 * met)
    log = rmab.data.read_log(
        table(*rows, names=f"{HEADER},met"), arm="id", period="week", state="state", action="called", reached="met"
    )
    return rmab.data.fit(log, reward={"s1": 1})


def test_effects_are_per_decision_and_per_contact_where_the_log_says_who_was_reached() -> None:
    fitted = calls_that_reach(0.4)
    found = estimate_effects(fitted, replicates=40)[0]
    assert found.reach == pytest.approx(0.4, abs=0.03)
    assert found.low <= 0.12 <= found.high
    value, low, high = found.per_contact
    assert low <= 0.3 <= high
    assert value == pytest.approx(found.value / found.reach)
    log = fitted.require_log()
    met = log.reached[(log.action == 1) & (log.reached >= 0)]
    assert found.reach_error == pytest.approx(met.std() / np.sqrt(met.size), rel=0.2)  # arms differ little here
    assert low < found.low / found.reach
    assert high > found.high / found.reach
    assert "reach somebody" in verdict(fitted, "effect of a call").words
    log = fitted.require_log()
    naive = replace(log, action=np.where(log.reached == 1, 1, np.minimum(log.action, 0)), reached=None)
    wrong = estimate_effects(rmab.data.fit(naive, reward={"s1": 1}), replicates=40)[0]
    assert wrong.value > 0.37  # recorded as if reached calls were the calls: too high
    assert wrong.reach is None


def test_every_verdict_that_is_not_fine_says_what_to_do() -> None:
    for fitted in (play(0.2, arms=12, weeks=6), play(0.0), play(0.25, trait=0.12), play(0.25, lost=0.4)):
        for one in run_checks(fitted, replicates=40):
            assert one.advice or one.verdict == "fine", one


def test_a_range_holds_the_interval_and_the_ranges_of_smaller_strengths() -> None:
    """Whatever the simulated ends are: k is an upper limit, and k = 1 is the interval."""
    fitted = play(0.25, arms=60, weeks=15)
    world = World.of(fitted, 10, 6)
    kernels = world.kernels(fitted, np.asarray(fitted.kernels))
    benefits = {
        name: Estimate(value, value - 3.0, value + 3.0) for name, value in (("rotation", 900.0), ("nothing", -900.0))
    }
    found = _ranges(world, world.policy(kernels), kernels, benefits, np.zeros(5), 0)
    for name, several in found.items():
        low, high = benefits[name].low, benefits[name].high
        for one in several:
            assert one.low <= low
            assert high <= one.high
            low, high = one.low, one.high


def test_intervals_of_groups_are_those_that_are_counted() -> None:
    fitted = play(0.1)
    several = hold_together(estimate_effects(fitted, replicates=40))
    unsure = sum(one.low <= 0 <= one.high for one in several)
    words = verdict(fitted, "effect of a call").words
    assert (f"in {unsure} of 3 groups it may be nothing" in words) == (unsure > 0)
    best = max(several, key=lambda one: one.value)
    assert f"{100 * best.low:.1f} to {100 * best.high:.1f}" in words
