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
from rmab.decisions.filling import Choice, Randomness, fill_places
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


def test_random_places_are_drawn_among_the_others_with_the_stated_probability(fitted: Fit) -> None:
    times, seeds = np.zeros(400), 300
    for seed in range(seeds):
        rules = Rules(40, np.zeros(400, bool), np.zeros(400, bool), random=10)
        choice = fill_places(Candidates.of(np.linspace(1, 2, 400)), rules, Randomness(seed))
        assert [(choice.rule == one).sum() for one in ("", NAME, FLOOR, INDEX, LOT)] == [360, 0, 0, 30, 10]
        assert np.allclose(choice.probability, np.where(choice.rule == INDEX, 1, 10 / 370))
        times += choice.rule == LOT
    expected = seeds * 10 / 370
    assert abs(times[:370].mean() - expected) < 1e-9
    assert times[:370].max() < expected + 6 * np.sqrt(expected)


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


def test_where_one_group_takes_nearly_all_the_price_of_fairness_is_told(fitted: Fit) -> None:
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
        assert any(one.group in note and "price of that fairness" in note for note in found.notes)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"must": ["M001"], "must_not": ["M001"]}, "must and must_not both name M001"),
        ({"must": ["nobody"]}, "must: there is no arm 'nobody'"),
        ({"must": "M001"}, "must must be a list of ids"),
        ({"must": [f"M{k:03d}" for k in range(1, 52)]}, "must names 51 arms: more than the budget of 40"),
        ({"must": ["M001"] * 3, "random_share": 1.0}, "must names 1 arms and 40 places are drawn at random: more than"),
        ({"floor": 9}, "floor: 400 arms cannot each have a turn every 9 periods with 40 places"),
        ({"floor": 10, "random_share": 0.1}, "floor: 400 arms cannot each have a turn every 10 periods with 36 places"),
        ({"floor": 12, "caps": {"district=centre": 3}}, "arms of district=centre need"),
        ({"floor": 0}, "floor must be a number of periods"),
        ({"caps": {"east": 3}}, "caps: there is no group 'east'; the groups are age=20-29"),
        ({"caps": {"centre": 3, "district=centre": 4}}, "a group is named twice"),
        ({"caps": {"centre": -1}}, "must get 0 or more"),
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
        (Everybody(), {}, "rule 'all at once': it gives 400 places, and 40 are left"),
        (lambda draft: [0, 0], {}, "must return different numbers of arms"),
        (lambda draft: [0.5], {}, "must return different numbers of arms"),
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

    with pytest.raises(rmab.errors.ModelError, match="two are called the same, or as one that is built in"):
        decide(fitted, 40, rules=[index])


def test_random_places_respect_custom_rules() -> None:
    nobody = np.zeros(20, bool)
    rules = Rules(6, nobody, nobody, random=3, custom=(longest_waiting,))
    choice: Choice = fill_places(Candidates.of(np.arange(20.0), waited=np.arange(20)[::-1]), rules, Randomness())
    assert [(choice.rule == one).sum() for one in ("longest_waiting", INDEX, LOT)] == [2, 1, 3]
    assert choice.probability[choice.rule == LOT] == pytest.approx(3 / 17)
