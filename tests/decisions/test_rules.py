"""Lists: budget, floors, caps, names and lots are respected whatever they are."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rmab.decisions.selection import INDEX, LOT, MUST, NOT, Cap, Wish, chosen, shuffled
from rmab.decisions.weekly import ranked
from scipy.optimize import linprog

import rmab
from logs import mothers
from rmab.data import Decision, Fit, decide


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
    assert decide(fitted, 40, must_not=fitted.ids).notes == ("0 of 40 places are used: caps and must_not leave no more",)


def test_lots_are_drawn_among_the_others_with_the_chance_that_is_told(fitted: Fit) -> None:
    times, seeds = np.zeros(400), 300
    for seed in range(seeds):
        luck = shuffled(fitted.ids, seed, "x")
        index = np.linspace(1, 2, 400)
        wish = Wish(40, np.zeros(400, bool), np.zeros(400, bool), 0, 10, ())
        choice = chosen(index, ranked(index, np.zeros(400, int), luck), np.zeros(400, int), luck, wish)
        assert np.bincount(choice.why, minlength=5).tolist() == [360, 0, 0, 30, 10]
        assert np.allclose(choice.chance, np.where(choice.why == INDEX, 1, 10 / 370))
        times += choice.why == LOT
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
    assert tight.choice.prices[f"district={most}"] == pytest.approx(gain, abs=1e-9)
    assert any("one more place there would bring" in one for one in tight.notes)


def test_overlapping_caps_are_met_at_the_best_by_a_linear_programme() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        count = 60
        index = np.round(rng.random(count), 2)
        a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
        caps = (Cap("a=0", a == 0, 4), Cap("a=1", a == 1, 5), Cap("b=0", b == 0, 6))
        nobody, zeros = np.zeros(count, bool), np.zeros(count)
        order = ranked(index, zeros.astype(int), zeros)
        choice = chosen(index, order, zeros.astype(int), zeros, Wish(12, nobody, nobody, 0, 0, caps))
        rows = np.array([*(cap.members for cap in caps), np.ones(count)], dtype=float)
        best = linprog(-index, A_ub=rows, b_ub=[4, 5, 6, 12], bounds=(0, 1))
        active = choice.why == INDEX
        assert index[active].sum() == pytest.approx(-best.fun)  # two laminar families: the relaxation is whole
        assert all(active[cap.members].sum() <= cap.most for cap in caps)
        prices = np.array(list(choice.prices.values()))
        left = index - prices @ rows[:3]  # strong duality, at one of the prices that a place may have
        duals = [np.dot([4, 5, 6], prices) + 12 * one + np.maximum(left - one, 0).sum() for one in [0.0, *left[left > 0]]]
        assert min(duals) == pytest.approx(-best.fun, abs=1e-6)


def test_where_one_group_takes_nearly_all_the_price_of_fairness_is_told(fitted: Fit) -> None:
    assert not decide(fitted, 40).fairness
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
        assert fair.choice.prices[one.group] == pytest.approx(one.price)
        assert one.total - one.cost == pytest.approx(fair.index[fair.active].sum())
        more = decide(fitted, 8, caps={**caps, one.group: caps[one.group] + 1})
        assert more.index[more.active].sum() - fair.index[fair.active].sum() == pytest.approx(one.price, abs=1e-9)
        assert any(one.group in note and "price of that fairness" in note for note in found.notes)


@pytest.mark.parametrize(
    ("wishes", "words"),
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
def test_what_cannot_be_is_refused_in_one_line(fitted: Fit, wishes: dict[str, object], words: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)) as told:
        decide(fitted, **{"budget": 40, **wishes})  # type: ignore[arg-type]
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
    waited, luck = rng.integers(1, 15, count), rng.random(count)
    budget = data.draw(st.integers(0, count))
    a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
    groups = [("a=0", a == 0), ("a=1", a == 1), ("b=0", b == 0)]
    caps = tuple(
        Cap(label, members, data.draw(st.integers(0, count))) for label, members in groups if data.draw(st.booleans())
    )
    must = rng.random(count) < data.draw(st.sampled_from([0.0, 0.1, 0.3]))
    barred = (rng.random(count) < data.draw(st.sampled_from([0.0, 0.2]))) & ~must
    lots, every = data.draw(st.integers(0, budget)), data.draw(st.sampled_from([0, 0, 1, 3, 8, 40]))
    wish = Wish(budget, must, barred, every, lots, caps)
    small = int(must.sum()) + lots > budget
    full = any((must & cap.members).sum() > cap.most for cap in caps)
    slow = every and (~barred).sum() > every * (budget - lots)
    slow_cap = every and any((cap.members & ~barred).sum() > every * cap.most for cap in caps)
    if small or full or slow or slow_cap:
        with pytest.raises(rmab.errors.ModelError):
            chosen(index, ranked(index, waited, luck), waited, luck, wish)
        return
    choice = chosen(index, ranked(index, waited, luck), waited, luck, wish)
    active = choice.why != NOT
    assert active.sum() <= budget
    assert (choice.why[must] == MUST).all()
    assert not active[barred].any()
    assert all(active[cap.members].sum() <= cap.most for cap in caps)
    assert (choice.why == LOT).sum() <= lots
    assert (index[choice.why == INDEX] > 0).all()
    if every:
        due = (waited >= every) & ~barred
        assert choice.overdue == (due & ~active).sum()
        if choice.overdue and not caps:
            assert active.sum() - (choice.why == LOT).sum() == budget - lots  # whoever could be served, was
            assert ((choice.why == INDEX).sum() == 0) or not choice.overdue
    if not caps and not every and not lots:
        free = budget - int(must.sum())
        best = np.sort(index[~must & ~barred & (index > 0)])[::-1][:free]
        assert index[choice.why == INDEX].sum() == pytest.approx(best.sum())


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_a_floor_that_is_accepted_is_kept_for_ever(count: int, every: int, seed: int) -> None:
    """Period after period by the same rule, once everybody has had a first turn nobody waits longer than the floor."""
    rng = np.random.default_rng(seed)
    budget = -(-count // every)
    waited = rng.integers(1, 3 * every + 1, count)
    nobody, index = np.zeros(count, bool), rng.normal(size=count)
    for period in range(6 * every):
        luck = rng.random(count)
        choice = chosen(index, ranked(index, waited, luck), waited, luck, Wish(budget, nobody, nobody, every, 0, ()))
        active = choice.why != NOT
        if period >= every:
            assert choice.overdue == 0
            assert waited.max() <= every
        waited = np.where(active, 1, waited + 1)
