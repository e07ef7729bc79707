"""Lists: budget, floors, caps, names, random places and custom rules are respected whatever they are."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import rmab
from logs import mothers
from rmab.data import Decision, Fit, decide
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.filling import Choice, fill_places
from rmab.decisions.randomness import Randomness
from rmab.decisions.rules import FLOOR, INDEX, LOT, NAME, Draft, Rules


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return mothers(400, 30)


@pytest.fixture(scope="module")
def calls(fitted: Fit) -> Decision:
    return decide(fitted, 40)


def test_names_on_and_off_the_list(fitted: Fit, calls: Decision) -> None:
    worst = fitted.ids[int(np.argmax(calls.rank))]
    found = decide(fitted, 40, must=[worst], must_not=calls.ids[:5])
    assert worst in found.ids
    assert not set(calls.ids[:5]) & set(found.ids)
    row = next(one for one in found.rows() if one.id == worst)
    assert row.by == "name"
    assert row.reason.startswith("on the list by name; ")
    assert decide(fitted, 40, must_not=fitted.ids).notes[1:] == ("0 of 40 places are used: caps and must_not leave no more",)


def test_places_change_hands_at_random_with_the_stated_probability() -> None:
    """Of the 40 that the index chooses 10 are left out, and 10 of the 360 others drawn: both sides can be compared."""
    drawn, left_out, seeds = np.zeros(400), np.zeros(400), 300
    rules = Rules(40, np.zeros(400, bool), np.zeros(400, bool), random=10)
    for seed in range(seeds):
        choice = fill_places(Candidates.of(np.linspace(1, 2, 400)), rules, Randomness(seed))
        assert [(choice.rule == one).sum() for one in ("", NAME, FLOOR, INDEX, LOT)] == [360, 0, 0, 30, 10]
        assert (choice.left_out & choice.listed).sum() == 0
        drawn += choice.rule == LOT
        left_out += choice.left_out
    np.testing.assert_allclose(choice.probability, np.repeat([10 / 360, 0.75], [360, 40]))
    for times, expected in ((drawn[:360], seeds * 10 / 360), (left_out[360:], seeds / 4)):
        assert times.mean() == pytest.approx(expected)
        assert np.abs(times - expected).max() < 6 * np.sqrt(expected)
    assert drawn[360:].sum() == left_out[:360].sum() == 0


def test_at_most_half_of_those_chosen_are_left_out_and_nobody_by_name_or_floor() -> None:
    nobody, must = np.zeros(20, bool), np.arange(20) == 0
    arms = Candidates.of(np.r_[0.0, np.arange(19.0, 0.0, -1.0)], waited=np.r_[np.ones(18, int), 9, 9])
    choice = fill_places(arms, Rules(10, must, nobody, 9, random=5), Randomness(1))
    assert choice.rule[0] == NAME
    assert (choice.rule[18:] == FLOOR).all()
    assert choice.probability[[0, 18, 19]].tolist() == [1.0] * 3
    assert int(choice.left_out.sum()) == 3  # of the seven that are left for the index
    assert choice.probability[1:8] == pytest.approx(1 - 3 / 7)
    assert choice.probability[8:18] == pytest.approx(3 / 10)
    everybody = fill_places(Candidates.of(np.arange(4.0) + 1), Rules(4, nobody[:4], nobody[:4], random=2), Randomness())
    assert everybody.probability.tolist() == [1.0] * 4  # there is nobody to take a place


def test_a_cap_holds_for_who_is_drawn_and_a_place_that_is_left_opens_it() -> None:
    """Two of three in the north are chosen, its cap: a third comes in only where one of them is left out."""
    groups = {"district": ["north"] * 3 + ["coast"] * 6}
    seen = set()
    for seed in range(60):
        found = decide([9, 8, 7, 6, 5, 4, 3, 2, 1], 5, groups=groups, caps={"north": 2}, random_share=0.2, seed=seed)
        north = list(found.rule[:3])
        assert sum(rule != "" for rule in north) <= 2
        assert sum(rule != "" for rule in found.rule) == 5
        assert north[2] == "" or "" in north[:2]
        seen.add(tuple(north))
    assert ("index", "", "lot") in seen
    assert "left out at random: 1 of those chosen; drawn from the others: 1." in " ".join(found.notes)


def test_a_cap_s_price_is_what_one_more_place_brings(fitted: Fit) -> None:
    free = decide(fitted, 40)
    counts = {
        one: int((fitted.log.factor_of[free.active, 1] == k).sum()) for k, one in enumerate(fitted.log.factors["district"])
    }
    most = max(counts, key=lambda one: counts[one])
    totals = {}
    for cap in (counts[most] - 6, counts[most] - 5):
        found = decide(fitted, 40, caps={f"district={most}": cap})
        members = fitted.log.factor_of[found.active, 1] == fitted.log.factors["district"].index(most)
        assert members.sum() == cap
        totals[cap] = found
    tight, loose = totals.values()
    gain = loose.index[loose.active].sum() - tight.index[tight.active].sum()
    assert tight.prices[f"district={most}"] == pytest.approx(gain, abs=1e-9)
    assert any("one more place there would bring" in one for one in tight.notes)


def test_overlapping_caps_are_met_at_the_best_by_a_linear_programme() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        count = 60
        index = np.round(rng.random(count), 2)
        a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
        caps = (Cap("a=0", a == 0, 4), Cap("a=1", a == 1, 5), Cap("b=0", b == 0, 6))
        nobody = np.zeros(count, bool)
        choice = fill_places(Candidates.of(index), Rules(12, nobody, nobody, caps=caps), Randomness())
        rows = np.array([*(cap.members for cap in caps), np.ones(count)], dtype=float)
        best = linprog(-index, A_ub=rows, b_ub=[4, 5, 6, 12], bounds=(0, 1))
        active = choice.rule == INDEX
        assert index[active].sum() == pytest.approx(-best.fun)  # two laminar families: the relaxation is whole
        assert all(active[cap.members].sum() <= cap.most for cap in caps)
        prices = np.array(list(choice.prices.values()))
        left = index - prices @ rows[:3]  # strong duality, at one of the prices that a place may have
        duals = [np.dot([4, 5, 6], prices) + 12 * one + np.maximum(left - one, 0).sum() for one in [0.0, *left[left > 0]]]
        assert min(duals) == pytest.approx(-best.fun, abs=1e-6)


def test_where_one_group_takes_nearly_all_the_cost_of_a_fairer_list_is_stated(fitted: Fit) -> None:
    assert not decide(fitted, 80).fairness
    found = decide(fitted, 8)
    assert len(found.fairness) == 2
    for one in found.fairness:
        assert one.places > one.fair
        assert one.cost > 0
        factor, _ = one.group.split("=")
        f = list(fitted.log.factors).index(factor)
        sizes = np.bincount(fitted.log.factor_of[:, f])
        caps = {f"{factor}={v}": int(np.ceil(8 * sizes[k] / 400)) for k, v in enumerate(fitted.log.factors[factor])}
        fair = decide(fitted, 8, caps=caps)
        assert fair.prices[one.group] == pytest.approx(one.price)
        assert one.total - one.cost == pytest.approx(fair.index[fair.active].sum())
        more = decide(fitted, 8, caps={**caps, one.group: caps[one.group] + 1})
        assert more.index[more.active].sum() - fair.index[fair.active].sum() == pytest.approx(one.price, abs=1e-9)
        assert any(
            one.group in note and f"would get {one.fair}, and the list would bring {one.cost:.3g} fewer" in note
            for note in found.notes
        )


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"must": ["M001"], "must_not": ["M001"]}, "must and must_not both name M001"),
        ({"must": ["nobody"]}, "must: unknown arm 'nobody'"),
        ({"must": "M001"}, "must must be a list of ids"),
        ({"must": [f"M{k:03d}" for k in range(1, 52)]}, "must names 51 arms, more than the budget of 40"),
        ({"must": ["M001"] * 3, "random_share": 1.0}, "must names 1 arms and 40 places are drawn at random, more than"),
        ({"floor": 9}, "floor: 400 arms cannot each have a turn every 9 periods with 40 places"),
        ({"floor": 10, "random_share": 0.1}, "floor: 400 arms cannot each have a turn every 10 periods with 36 places"),
        ({"floor": 12, "caps": {"district=centre": 3}}, "arms of district=centre need"),
        ({"floor": 0}, "floor must be a number of periods"),
        ({"caps": {"east": 3}}, "caps: unknown group 'east'; available: age=20-29"),
        ({"caps": {"centre": 3, "district=centre": 4}}, "a group is given twice; keep one"),
        ({"caps": {"centre": -1}}, "must be 0 or more"),
        ({"caps": {"centre": 1.5}}, "must be a whole number"),
        ({"caps": ["centre"]}, "caps must name groups"),
        ({"random_share": 1.5}, "random_share must be in"),
        ({"budget": 401}, "budget must be in 0..400"),
        ({"budget": -1}, "budget must be in 0..400"),
        ({"horizon": 0}, "horizon must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(fitted: Fit, rules: dict[str, object], words: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)) as told:
        decide(fitted, **{"budget": 40, **rules})  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


def test_named_arms_of_a_capped_group_are_refused_where_too_many(fitted: Fit) -> None:
    members = [one for one, label in zip(fitted.log.arms, fitted.log.roster.labels, strict=True) if label.endswith("centre")]
    with pytest.raises(rmab.errors.ModelError, match="must names 4 arms of district=centre, whose cap is 3"):
        decide(fitted, 40, must=members[:4], caps={"centre": 3})


@settings(max_examples=100)
@given(data=st.data())
def test_budget_floors_caps_and_names_are_always_respected(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 40))
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    index = np.round(rng.normal(0.3, 1, count), data.draw(st.integers(0, 3)))
    waited, source = rng.integers(1, 15, count), Randomness(seed)
    several = Candidates.of(index, waited=waited)
    budget = data.draw(st.integers(0, count))
    a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
    groups = [("a=0", a == 0), ("a=1", a == 1), ("b=0", b == 0)]
    caps = tuple(
        Cap(label, members, data.draw(st.integers(0, count))) for label, members in groups if data.draw(st.booleans())
    )
    must = rng.random(count) < data.draw(st.sampled_from([0.0, 0.1, 0.3]))
    barred = (rng.random(count) < data.draw(st.sampled_from([0.0, 0.2]))) & ~must
    lots, every = data.draw(st.integers(0, budget)), data.draw(st.sampled_from([0, 0, 1, 3, 8, 40]))
    rules = Rules(budget, must, barred, every, lots, caps)
    small = int(must.sum()) + lots > budget
    full = any((must & cap.members).sum() > cap.most for cap in caps)
    slow = every and (~barred).sum() > every * (budget - lots)
    slow_cap = every and any((cap.members & ~barred).sum() > every * cap.most for cap in caps)
    if small or full or slow or slow_cap:
        with pytest.raises(rmab.errors.ModelError):
            fill_places(several, rules, source)
        return
    choice = fill_places(several, rules, source)
    active = choice.listed
    assert active.sum() <= budget
    assert (choice.rule[must] == NAME).all()
    assert not active[barred].any()
    assert all(active[cap.members].sum() <= cap.most for cap in caps)
    assert (choice.rule == LOT).sum() <= lots
    assert (index[choice.rule == INDEX] > 0).all()
    if every:
        due = (waited >= every) & ~barred
        assert choice.overdue == (due & ~active).sum()
        if choice.overdue and not caps:
            assert active.sum() - (choice.rule == LOT).sum() == budget - lots  # whoever could be served, was
            assert ((choice.rule == INDEX).sum() == 0) or not choice.overdue
    if not caps and not every and not lots:
        free = budget - int(must.sum())
        best = np.sort(index[~must & ~barred & (index > 0)])[::-1][:free]
        assert index[choice.rule == INDEX].sum() == pytest.approx(best.sum())


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_a_floor_that_is_accepted_is_kept_for_ever(count: int, every: int, seed: int) -> None:
    """Period after period by the same rule, once everybody has had a first turn nobody waits longer than the floor."""
    rng = np.random.default_rng(seed)
    budget = -(-count // every)
    waited = rng.integers(1, 3 * every + 1, count)
    nobody, index = np.zeros(count, bool), rng.normal(size=count)
    for period in range(6 * every):
        rules = Rules(budget, nobody, nobody, every)
        choice = fill_places(Candidates.of(index, waited=waited), rules, Randomness(period))
        active = choice.listed
        if period >= every:
            assert choice.overdue == 0
            assert waited.max() <= every
        waited = np.where(active, 1, waited + 1)


def longest_waiting(draft: Draft) -> np.ndarray:
    """Two places for whoever has waited longest."""
    return draft.take(np.argsort(-draft.candidates.waited, kind="stable"), 2)


class Everybody:
    name = "all at once"

    def __call__(self, draft: Draft) -> list[int]:
        return np.flatnonzero(draft.eligible).tolist()


def test_a_custom_rule_gives_places_before_the_index_and_is_named(fitted: Fit) -> None:
    waited = fitted.situation.acted_before
    longest = fitted.ids[int(np.argmax(waited))]
    found = decide(fitted, 40, rules=[longest_waiting])
    assert found.rule.count("longest_waiting") == 2
    assert found.active.sum() == 40
    row = next(one for one in found.rows() if one.id == longest)
    assert (row.by, row.reason.partition(";")[0]) == ("longest_waiting", "by the rule 'longest_waiting'")
    assert set(decide(fitted, 40, rules=[lambda draft: []]).ids) == set(decide(fitted, 40).ids)
    held = decide(fitted, 40, rules=[longest_waiting], must_not=[longest])
    assert longest not in held.ids
    assert held.rule.count("longest_waiting") == 2


@pytest.mark.parametrize(
    ("rule", "more", "words"),
    [
        (Everybody(), {}, "rule 'all at once': gives 400 places, but only 40 are left"),
        (lambda draft: [0, 0], {}, "must return distinct numbers of arms"),
        (lambda draft: [0.5], {}, "must return distinct numbers of arms"),
        (lambda draft: [400], {}, "the arm number 400 cannot get a place"),
        (lambda draft: [-1], {}, "the arm number -1 cannot get a place"),
        (lambda draft: [0], {"must_not": ["M001"]}, "the arm 'M001' cannot get a place; choose from draft.eligible"),
        (lambda draft: [0], {"must": ["M001"]}, "the arm 'M001' cannot get a place"),
        (lambda draft: np.flatnonzero(draft.eligible)[:40], {"caps": {"centre": 3}}, "would get more than its cap of 3"),
    ],
)
def test_a_custom_rule_that_breaks_the_others_is_refused(fitted: Fit, rule: object, more: dict, words: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)):
        decide(fitted, 40, rules=[rule], **more)


def test_rules_have_names_of_their_own(fitted: Fit) -> None:
    def index(draft: Draft) -> list[int]:
        return []

    with pytest.raises(rmab.errors.ModelError, match="duplicate name, or the name of a built-in rule"):
        decide(fitted, 40, rules=[index])


def test_random_places_respect_custom_rules() -> None:
    nobody = np.zeros(20, bool)
    rules = Rules(6, nobody, nobody, random=3, custom=(longest_waiting,))
    choice: Choice = fill_places(Candidates.of(np.arange(20.0), waited=np.arange(20)[::-1]), rules, Randomness())
    assert [(choice.rule == one).sum() for one in ("longest_waiting", INDEX, LOT)] == [2, 2, 2]
    assert choice.probability[choice.rule == LOT] == pytest.approx(2 / 14)
    assert choice.probability[choice.rule == INDEX] == pytest.approx(1 / 2)
