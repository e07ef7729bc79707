"""The chance of a place is the true one: over ties, floors, caps, names and draws, against redraws and by enumeration."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

import rmab
from rmab.data import decide
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.filling import Choice, Stage, draw_list, fill_places, list_ways
from rmab.decisions.kinds import Kinds
from rmab.decisions.lottery import draw_outcome, list_outcomes
from rmab.decisions.randomness import Randomness
from rmab.decisions.rules import FLOOR, LOT, Rules


def setting(rng: np.random.Generator, count: int, crossing: bool) -> tuple[Candidates, Rules]:
    """A programme with many ties, and rules that may not go together."""
    index = rng.choice([-1.0, 0.0, 1.0, 2.0], count)
    waited = rng.choice([1, 2, 5], count)
    a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
    groups = [a == 0, a == 1, b == 0] if crossing else [a == 0, a == 1]
    caps = tuple(Cap(str(k), one, int(rng.integers(1, 4))) for k, one in enumerate(groups) if rng.random() < 0.7)
    must = rng.random(count) < 0.1
    barred = (rng.random(count) < 0.15) & ~must
    budget = int(rng.integers(2, count))
    every = int(rng.choice([0, 5, 8]))
    candidates = replace(Candidates.of(index, waited=waited), seen=rng.choice([0, 1, 5, 40], count))
    return candidates, Rules(budget, must, barred, every, int(rng.integers(0, 4)), caps)


def settings(seed: int, count: int, crossing: bool) -> tuple[Candidates, Rules, Choice]:
    rng = np.random.default_rng(seed)
    while True:
        candidates, rules = setting(rng, count, crossing)
        try:
            return candidates, rules, fill_places(candidates, rules, Randomness())
        except rmab.errors.ModelError:  # rules that cannot be met together
            continue


@pytest.mark.slow
@pytest.mark.parametrize("crossing", [False, True])
def test_twenty_thousand_redraws_agree_with_the_stated_chances(crossing: bool) -> None:
    worst, number, redraws = [], 50 if not crossing else 20, 400 if not crossing else 200
    between = 0
    for seed in range(number):
        candidates, rules, first = settings(seed, 12, crossing)
        times = rules.must * float(redraws)
        stage = Stage.of(Kinds.of(candidates, rules.caps), rules, rules.must)
        ways = list_ways(stage, stage.by_floor())
        for draw in range(redraws):
            source = Randomness(draw, "again")
            way = ways[draw_outcome([(one.probability, one.cells) for one in ways], source.number("ways"))]
            for arms in draw_list(stage, way, candidates.roster.ids, source)[0].values():
                times[arms] += 1
        chance = first.probability
        assert (times[chance == 1] == redraws).all()
        assert (times[chance == 0] == 0).all()
        between += int(((chance > 0) & (chance < 1)).sum())
        tail = np.minimum(binom.cdf(times, redraws, chance), binom.sf(times - 1, redraws, chance))
        worst.append(float(tail.min()))
    assert between > 3 * number  # the settings do ask something
    assert min(worst) > 0.001 / (2 * 12 * number)  # one in a thousand, shared by all arms


def test_lists_themselves_are_drawn_with_the_stated_chances() -> None:
    tails, several = list[float](), 0
    for seed in range(300, 400):
        candidates, rules, first = settings(seed, 8, crossing=False)
        stage = Stage.of(Kinds.of(candidates, rules.caps), rules, rules.must)
        if several == 4 or len(list_ways(stage, stage.by_floor())) == 1:  # which way places go must be drawn, too
            continue
        times = sum(fill_places(candidates, rules, Randomness(draw, "again")).listed.astype(int) for draw in range(200))
        tails += np.minimum(binom.cdf(times, 200, first.probability), binom.sf(times - 1, 200, first.probability)).tolist()
        several += 1
    assert several == 4
    assert min(tails) > 0.001 / (2 * len(tails))


@pytest.mark.parametrize("crossing", [False, True])
def test_chances_sum_to_the_places_and_alike_arms_have_the_same(crossing: bool) -> None:
    for seed in range(60):
        candidates, rules, choice = settings(seed, 14, crossing)
        lists = [fill_places(candidates, rules, Randomness(k)).listed for k in range(3)]
        stage = Stage.of(Kinds.of(candidates, rules.caps), rules, rules.must)
        ways = list_ways(stage, stage.by_floor())
        sizes = [rules.must.sum() + sum(one.sum() for one in (way.floor, way.index, -way.out, way.cells)) for way in ways]
        expected = sum(float(way.probability) * size for way, size in zip(ways, sizes, strict=True))
        assert choice.probability.sum() == pytest.approx(expected, abs=1e-9)
        assert {int(one.sum()) for one in lists} <= set(sizes)
        member = np.column_stack([*(cap.members for cap in rules.caps), rules.must, rules.must_not])
        keys = np.column_stack([candidates.index, candidates.waited, candidates.seen, member])
        _, kind = np.unique(keys, axis=0, return_inverse=True)
        for k in np.unique(kind):
            assert np.ptp(choice.probability[kind.reshape(-1) == k]) == 0


def test_those_who_lose_a_tie_are_drawn_like_the_others() -> None:
    """Eight equals, four places by index, one of which changes hands: one number for both would draw losers hardly ever."""
    found = decide([1.0] * 8, 4, random_share=0.25)
    assert found.probability.tolist() == [0.5] * 8
    last = np.zeros(8)
    for seed in range(600):
        drawn = decide([1.0] * 8 + [-1.0] * 8, 4, random_share=0.25, seed=seed)
        last += [one == "lot" for one in drawn.rule[:8]]
        assert drawn.probability[0] == pytest.approx((3 + 4 / 12) / 8)
    assert abs(last.sum() - 600 * 4 / 12) < 5 * np.sqrt(600 * 4 / 12 * 8 / 12)


def test_random_places_go_rather_to_arms_of_which_little_is_known() -> None:
    """One place for 2 arms never seen with an action, 4 seen once or twice, and 4 seen often: weights 1, 1/4 and 1/1024."""
    index, seen = [1.0] * 4 + [-1.0] * 10, [0] * 4 + [0] * 2 + [1, 2, 1, 2] + [31, 60, 50, 40]
    found = decide(replace(Candidates.of(index), seen=np.array(seen)), 4, random_share=0.25)
    total = 2 + 4 / 4 + 4 / 1024
    expected = [0.75] * 4 + [1 / total] * 2 + [0.25 / total] * 4 + [1 / 1024 / total] * 4
    assert found.probability == pytest.approx(expected)
    drawn = np.array(
        [decide(replace(Candidates.of(index), seen=np.array(seen)), 4, random_share=0.25, seed=k).active for k in range(400)]
    )
    assert np.abs(drawn.mean(axis=0) - expected).max() < 4.5 * 0.5 / 20


def test_weights_are_dropped_where_few_arms_would_have_to_take_all_places() -> None:
    none = np.zeros((0, 2), dtype=bool)
    weights = [Fraction(1), Fraction(1, 32)]
    shares = [sum(float(p) * k for p, k in list_outcomes([2, 8], none, [], n, weights)) for n in (1, 5)]
    assert shares[0] == pytest.approx([0.8, 0.2])  # at most 2/5 each, and not 2 / 2.25
    assert shares[1] == pytest.approx([1.0, 4.0])  # 2 times 2/5 and 8 times 2/5 are fewer than 5


def test_the_floor_and_the_draw_do_not_share_their_numbers() -> None:
    """Who loses the tie of a floor is drawn at random as often as anybody else."""
    nobody = np.zeros(12, bool)
    rules = Rules(4, nobody, nobody, 8, 2)
    arms = Candidates.of([-1.0] * 12, waited=[8] * 6 + [1] * 6)
    times = np.zeros(12)
    for seed in range(600):
        choice = fill_places(arms, rules, Randomness(seed))
        times += choice.rule == LOT
        assert choice.probability[:6] == pytest.approx((2 + 4 * 2 / 10) / 6)
        assert choice.probability[6:] == pytest.approx(0.2)
    assert np.abs(times[:6].sum() / 600 - 0.8) < 5 * 0.6 / np.sqrt(600)


def test_drawn_places_under_a_cap_have_a_chance_that_is_stated() -> None:
    groups = {"district": ["north"] * 6 + ["coast"] * 4}
    found = decide([-1.0] * 10, 5, groups=groups, caps={"north": 1}, random_share=1.0)
    assert found.probability[:6] == pytest.approx(1 / 6)
    assert found.probability[6:].tolist() == [1.0] * 4
    assert sorted(row.chance for row in found.rows()) == pytest.approx([1 / 6, 1, 1, 1, 1])


@pytest.mark.parametrize("crossing", [False, True])
def test_whoever_is_due_is_served_whenever_it_can_be(crossing: bool) -> None:
    """By enumeration: no choice of places under the caps holds more arms that are due."""
    checked = 0
    for seed in range(120):
        candidates, rules, choice = settings(1000 + seed, 10, crossing)
        due = np.flatnonzero((candidates.waited >= rules.floor) & ~rules.must & ~rules.must_not)
        if not rules.floor or not due.size or due.size > 8:
            continue
        places = rules.budget - rules.random - int(rules.must.sum())
        best = 0
        for size in range(1, min(due.size, max(places, 0)) + 1):
            for some in combinations(due, size):
                listed = rules.must.copy()
                listed[list(some)] = True
                if all(listed[cap.members].sum() <= cap.most for cap in rules.caps):
                    best = size
                    break
        assert (choice.rule[due] == FLOOR).sum() == best
        checked += 1
    assert checked > 20


def test_a_cap_that_looks_ahead_leaves_no_due_arm_out_while_places_are_empty() -> None:
    """The north needs two of its turns now to be in time; the coast is due now, and there is a place for it."""
    nobody = np.zeros(5, bool)
    north = np.array([True, True, True, True, False])
    candidates = Candidates.of([-1.0] * 5, waited=[3, 3, 3, 3, 4])
    rules = Rules(3, nobody, nobody, 4, 0, (Cap("north", north, 2),))
    choice = fill_places(candidates, rules, Randomness())
    assert choice.rule[4] == FLOOR
    assert choice.overdue == 0


def test_outcomes_of_a_lottery_give_equals_equal_chances_as_far_as_caps_allow() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        cells, caps = int(rng.integers(1, 6)), int(rng.integers(0, 4))
        sizes, room = rng.integers(0, 5, cells), rng.integers(0, 5, caps)
        member = rng.random((caps, cells)) < 0.5
        places = int(rng.integers(0, 9))
        outcomes = list_outcomes(sizes, member, room, places)
        assert sum(p for p, _ in outcomes) == 1
        assert all(p > 0 for p, _ in outcomes)
        for _, counts in outcomes:
            assert (counts <= sizes).all()
            assert (member @ counts <= room).all()
            assert counts.sum() <= places
            able = (sizes > counts) & ~(member[member @ counts >= room].any(axis=0))
            assert counts.sum() == places or not able.any()  # no place is empty that somebody could have
        expected = sum((float(p) * counts for p, counts in outcomes), np.zeros(cells))
        able = (sizes > 0) & ~(member[room == 0].any(axis=0)) & (places > 0)
        assert (expected[able] > 0).all()
        if member.sum(axis=0).max(initial=0) <= 1 and member.sum(axis=1).max(initial=0) <= 1:
            chance = expected / np.maximum(sizes, 1)
            full = member @ expected > room - 1e-9
            binding = member[full].any(axis=0)
            free = (sizes > 0) & ~binding
            assert np.ptp(chance[free]) < 1e-12 if free.any() else True
            if free.any() and (binding & (sizes > 0)).any():
                assert chance[binding & (sizes > 0)].max() <= chance[free].min() + 1e-12


def test_two_who_are_due_go_before_one_who_takes_the_place_of_both() -> None:
    groups = {"side": ["north", "north", "south"], "age": ["old", "young", "old"]}
    given = {"groups": groups, "caps": {"north": 1, "old": 1}, "waited": [9, 8, 8], "floor": 8}
    assert decide([1.0, 1.0, 1.0], 3, ids=["both", "north", "old"], **given).rule == ("", "floor", "floor")  # type: ignore[arg-type]
