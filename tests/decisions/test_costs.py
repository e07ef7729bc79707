"""Lists with costs: never above the budget, the best that fit, with chances that are the true ones."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import rmab
from rmab.common import FloatArray
from rmab.data import decide
from rmab.decisions.candidates import Candidates
from rmab.decisions.caps import Cap
from rmab.decisions.decision import Decision
from rmab.decisions.filling import Stage, draw_list, fill_places, list_ways
from rmab.decisions.kinds import Kinds
from rmab.decisions.lottery import draw_outcome
from rmab.decisions.randomness import Randomness
from rmab.decisions.rules import INDEX, LOT, NAME, Rules
from rmab.errors import LogError, ModelError

COSTS = [0.2, 0.5, 0.7]


def draw_setting(seed: int, count: int, kind: str) -> tuple[Candidates, Rules]:
    """A programme with costs and many ties: with caps, with caps that cross, or with places that change hands."""
    rng = np.random.default_rng(seed)
    index, waited, cost = (rng.choice(one, count) for one in ([-1.0, 1.0, 2.0], [1, 1, 1, 2], COSTS))
    a, b = rng.integers(0, 3, count), rng.integers(0, 2, count)
    groups = {"caps": [a == 0, a == 1], "crossing": [a == 0, a == 1, b == 0]}.get(kind, [])
    caps = tuple(Cap(str(k), one, int(rng.integers(1, 4))) for k, one in enumerate(groups))
    must = np.arange(count) == rng.integers(count)
    barred = (rng.random(count) < 0.1) & ~must
    if any((must & cap.members).sum() > cap.most for cap in caps):
        caps = ()
    share = float(rng.uniform(0.2, 0.6)) if kind == "random" else 0.0
    candidates = replace(Candidates.of(index, waited=waited, cost=cost), seen=rng.choice([0, 1, 5, 40], count))
    return candidates, Rules(round(float(rng.uniform(0.8, 3.0)), 1), must, barred, caps=caps, share=share)


def fill_by_hand(candidates: Candidates, rules: Rules, order: list[int]) -> set[int]:
    """Go through the arms one by one: each that is worth it, fits, and has room under its caps gets a place."""
    cost = [Fraction(round(10 * one), 10) for one in candidates.cost]  # type: ignore[union-attr]
    listed = {int(n) for n in np.flatnonzero(rules.must)}
    left = Fraction(round(10 * rules.budget), 10) - sum(cost[n] for n in listed)
    for n in order:
        full = any(cap.members[n] and sum(cap.members[k] for k in listed) >= cap.most for cap in rules.caps)
        if n not in listed and not rules.must_not[n] and candidates.index[n] > 0 and cost[n] <= left and not full:
            listed.add(n)
            left -= cost[n]
    return listed


@pytest.mark.parametrize("kind", ["plain", "caps", "crossing", "random"])
def test_lists_are_what_one_gets_arm_by_arm_and_never_cost_more_than_the_budget(kind: str) -> None:
    for seed in range(40):
        candidates, rules = draw_setting(seed, 14, kind)
        assert candidates.cost is not None
        found = fill_places(candidates, rules, Randomness(seed))
        assert candidates.cost[found.listed].sum() <= rules.budget * (1 + 1e-9)
        assert found.listed[rules.must].all()
        assert not found.listed[rules.must_not].any()
        assert all(found.listed[cap.members].sum() <= cap.most for cap in rules.caps)
        assert found.probability @ candidates.cost <= rules.budget * (1 + 1e-9)
        chosen = found.left_out | (found.rule == INDEX) | (found.rule == NAME)
        if kind == "random":  # places change hands at the same cost
            out, into = (np.sort(candidates.cost[one]) for one in (found.left_out, found.rule == LOT))
            np.testing.assert_array_equal(out, into)
        # Among arms that are equal in everything, those that were drawn go first; the rest of the order is given.
        key = (~chosen, -candidates.cost, -candidates.waited, -candidates.level)
        assert set(np.flatnonzero(chosen)) == fill_by_hand(candidates, rules, [int(n) for n in np.lexsort(key)])


def test_chances_of_ties_under_caps_and_costs_by_enumeration() -> None:
    """Four alike in two groups; one cap of 1, a budget for two of them, then one cheaper arm if its cap has room."""
    index, cost = [2.0, 2.0, 2.0, 2.0, 1.0], [0.5, 0.5, 0.5, 0.5, 0.2]
    candidates = Candidates.of(index, cost=cost)
    first = Cap("first", np.array([True, True, False, False, True]), 1)
    rules = Rules(1.2, np.zeros(5, dtype=bool), np.zeros(5, dtype=bool), caps=(first,))
    found = fill_places(candidates, rules, Randomness())
    # Even chances among the four are 2/4, but at most 1 in all in the first group: 1/2 each there, 1/2 each elsewhere.
    np.testing.assert_allclose(found.probability, [0.5, 0.5, 0.5, 0.5, 0.0])
    wider = replace(rules, caps=(Cap("first", first.members, 2),))
    chance = fill_places(candidates, wider, Randomness()).probability
    np.testing.assert_allclose(chance[:4], 0.5)
    assert chance[4] == pytest.approx(1.0)  # two alike cost 1.0, whoever they are, one or two of the first group at most 1
    listed = {frozenset(fill_by_hand(candidates, rules, list(order))) for order in permutations(range(5))}
    drawn = {frozenset(np.flatnonzero(fill_places(candidates, rules, Randomness(k)).listed)) for k in range(60)}
    assert drawn <= listed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "caps", "random"])
def test_twenty_thousand_redraws_agree_with_the_stated_chances(kind: str) -> None:
    worst, between, number, redraws = [], 0, 50 if kind == "random" else 20, 400
    for seed in range(number):
        candidates, rules = draw_setting(seed, 14, kind)
        chance = fill_places(candidates, rules, Randomness()).probability
        times = rules.must * float(redraws)
        stage = Stage.of(Kinds.of(candidates, rules.caps), rules, rules.must)
        ways = list_ways(stage, stage.by_floor())
        assert sum(one.probability for one in ways) == 1
        for draw in range(redraws):
            source = Randomness(draw, "again")
            way = ways[draw_outcome([(one.probability, one.cells) for one in ways], source.number("ways"))]
            for arms in draw_list(stage, way, candidates.roster.ids, source)[0].values():
                times[arms] += 1
        assert (times[chance == 1] == redraws).all()
        assert (times[chance == 0] == 0).all()
        between += int(((chance > 0) & (chance < 1)).sum())
        worst.append(float(np.minimum(binom.cdf(times, redraws, chance), binom.sf(times - 1, redraws, chance)).min()))
    assert between > number / 2
    assert min(worst) > 0.001 / (2 * 14 * number)


def test_equal_costs_are_a_list_without_costs() -> None:
    index = {"ann": 0.4, "bea": 0.1, "cleo": 0.3, "dora": 0.2}
    one, other = decide(index, budget=2), decide(index, budget=50, cost=22)
    assert one.to_fields().keys() == other.to_fields().keys()
    assert one.reasons == other.reasons
    np.testing.assert_array_equal(one.probability, other.probability)
    assert (other.budget, other.cost) == (2, None)


def test_a_list_with_costs_by_hand(tmp_path: Path) -> None:
    """50 + 22 + 22 fit 100; the second 50 does not, and the next ones are tried."""
    index, cost = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.5}, {"a": 50, "b": 50.0, "c": 22, "d": 22, "e": 22, "z": 1}
    found = decide(index, budget=99, cost=cost)
    assert found.ids == ("a", "c", "d")
    assert (found.spent, found.budget) == (94.0, 99.0)
    reasons = dict(zip(found.arms, found.reasons, strict=True))
    assert reasons["b"] == "does not fit: it costs 50, and 5 is left; 2nd of 5"
    assert found.notes == ("3 actions cost 94 of 99; no more fits; the index is per unit of cost",)
    assert [row.cost for row in found.rows()] == [50.0, 22.0, 22.0]
    assert found.to_table(None)["cost"].to_pylist() == [50.0, 22.0, 22.0, 50.0, 22.0]
    assert found.rows(2)[-1].reason == "next in line: 5th of 5"
    for suffix in (".npz", ".json"):
        found.save(tmp_path / f"list{suffix}")
        again = Decision.load(tmp_path / f"list{suffix}")
        assert (again.ids, again.budget, again.spent) == (found.ids, 99.0, 94.0)
    found.save(tmp_path / "list.csv", None)
    later = decide({**index, "b": 0.95}, budget=99, cost=cost, since=tmp_path / "list.csv")
    changes = dict(zip(later.arms, later.changes.words, strict=True))  # type: ignore[union-attr]
    assert changes["a"] == "dropped: does not fit: it costs 50, and 5 is left"
    (tmp_path / "costs.csv").write_text(
        "id;cost\n" + "".join(f"{one};{each:g}\n".replace(".", ",") for one, each in cost.items())
    )
    assert decide(index, budget=99, cost=tmp_path / "costs.csv").ids == found.ids
    with pytest.raises(ModelError, match="budget must be at least 94, what the list costs, got 90"):
        replace(found, budget=90.0)


def test_a_policy_with_costs_decides_as_it_would_be_played() -> None:
    rng = np.random.default_rng(3)
    arms, reward = rmab.Arms(rng.dirichlet(np.ones(3), size=(8, 3, 2))), rng.random((8, 3, 2))
    for cost in (rng.uniform(1, 4, 8), rng.uniform(1, 4, (8, 3)), rng.uniform(1, 4, (8, 2, 3))):
        problem = rmab.Problem(arms, 0, 6.5, 4, [0, 1, 0, 1], cost=cost)
        policy = rmab.planners.lagrangian_index(problem, reward)
        states = rng.integers(0, 3, 8)
        listed = decide(policy, states=states, step=1)
        np.testing.assert_array_equal(listed.active, policy.act(1, states, rng))
        assert listed.spent <= 6.5


@pytest.fixture(scope="module")
def fitted() -> rmab.data.Fit:
    log = rmab.data.example_log("mothers", arms=60, weeks=20)
    return rmab.data.fit(
        rmab.data.read_log(log, arm="id", period="week", state="state", action="called"), reward={"engaged": 1}
    )


def test_a_model_is_planned_with_its_costs(fitted: rmab.data.Fit) -> None:
    cost: Mapping[str, float] = {one: (22.0, 50.0)[k % 2] for k, one in enumerate(fitted.ids)}
    found = decide(fitted, budget=200, cost=cost, seed=1)
    assert found.spent <= 200
    weights: FloatArray = np.array([cost[one] for one in fitted.ids])
    plan = rmab.solvers.solve_fluid(fitted.problem(200, 26, cost=weights), fitted.reward)
    index = np.einsum("ns,ns->n", fitted.belief, plan.advantage[plan.blocks.block_of][:, 0])
    np.testing.assert_allclose(found.index, index, rtol=1e-6, atol=1e-8)
    drawn = decide(fitted, budget=400, cost=cost, random_share=0.4)
    assert drawn.spent == decide(fitted, budget=400, cost=cost).spent
    assert "left out at random" in " ".join(drawn.notes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cost": {"a": 1, "b": 2}}, "cost is missing for 'c'"),
        ({"cost": [1, 2]}, "cost must be a number, or one for each of the 3 arms"),
        ({"cost": [1, 0, 2]}, "cost: 'b' must be a finite number above 0, got 0"),
        ({"cost": [1, 2, 3], "floor": 5}, "floor needs equal costs"),
        ({"cost": [1, 2, 3], "rules": [lambda draft: []]}, "rules needs equal costs"),
        ({"cost": [1, 2, 3], "random_share": 0.5, "caps": {"g=x": 1}}, "random_share and caps cannot be combined"),
        ({"cost": [1, 2, 3], "must": ["b", "c"]}, "must names arms that cost 5, more than the budget of 2"),
        ({"cost": [1, 2, 3], "budget": -1}, "budget must be a finite number, 0 or more"),
        ({"cost": [1, 2, 3], "budget": None}, "budget is missing"),
    ],
)
def test_what_does_not_go_with_costs_is_refused_in_one_line(given: dict[str, object], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        decide({"a": 1.0, "b": 2.0, "c": 3.0}, **{"budget": 2, "groups": {"g": ["x", "x", "y"]}, **given})  # type: ignore[arg-type]


def test_a_file_of_costs_is_checked_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("id,cost\na,1\nb,\na,2\n")
    with pytest.raises(LogError) as caught:
        decide({"a": 1.0, "b": 2.0}, budget=2, cost=tmp_path / "costs.csv")
    assert "line 3: a line needs an id and a cost" in str(caught.value)
    assert "line 4: duplicate id" in str(caught.value)
    policy = rmab.IndexPolicy([[1.0], [2.0]], 1)
    with pytest.raises(ModelError, match="cost cannot be combined with a policy"):
        decide(policy, states=[0, 0], cost=2)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["id,cost", 'a,"1,200"', "b,950"], "line 2: '1,200' in column 'cost' may be 1200 or 1.200; remove the"),
        (["id;cost", "a;1.200", "b;950"], "line 2: '1.200' in column 'cost' may be 1200 or 1.200"),
        (
            ["id;cost", "a;1.200", "b;22,50"],
            "line 2: '1.200' in column 'cost' is not a number; the decimal sign is a comma here; if the point",
        ),
        (["id,cost", 'a,"1,200.50"', "b,950"], "line 2: '1,200.50' in column 'cost' is not a number"),
    ],
)
def test_costs_with_thousands_are_refused_and_not_a_thousand_times_too_small(
    tmp_path: Path, lines: list[str], words: str
) -> None:
    (tmp_path / "costs.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(LogError) as caught:
        decide({"a": 1.0, "b": 2.0}, budget=2000, cost=tmp_path / "costs.csv")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        ["id;cost", "a;1,5", "b;22,50"],
        ["id;cost", "a;1,500", "b;22,5"],  # one number shows what the comma is
        ["id,cost", "a,1.500", "b,22.500"],  # a point in a file with commas
        ["id,cost", 'a,"1,50"', 'b,"22,500"'],
    ],
)
def test_decimal_signs_of_costs_are_found(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "costs.csv").write_text("\n".join(lines) + "\n")
    found = decide({"a": 1.0, "b": 2.0}, budget=25, cost=tmp_path / "costs.csv")
    assert found.cost is not None
    assert found.cost.tolist() == [1.5, 22.5]


def test_costs_of_any_size_and_of_nobody() -> None:
    index = {"a": 1.0, "b": 0.5, "c": 0.2}
    assert decide(index, budget=1e300, cost={"a": 1e-300, "b": 1, "c": 2}).ids == ("a", "b", "c")  # int(inf) was raised
    with pytest.raises(ModelError, match=r"cost: 1e\+308 times 3 arms is too large"):
        decide(index, budget=1e308, cost={"a": 1e308, "b": 1e308, "c": 1}, must=["a", "b"])
    with pytest.raises(ModelError, match="cost has an id twice"):
        decide({"1": 1.0, "2": 0.5}, budget=2, cost={1: 5, "1": 1, "2": 2})
    assert decide({}, budget=5, cost={}).ids == ()


def test_costs_that_no_plan_can_hold_are_refused_before_planning(fitted: rmab.data.Fit) -> None:
    cost = np.full(len(fitted.ids), 20.0)
    cost[3] = 1e-6
    with pytest.raises(
        ModelError, match=f"cost: '{fitted.ids[3]}' costs 1e-06, less than a millionth of 20; use at least 2e-05"
    ):
        decide(fitted, budget=200, cost=cost)
    cost[3] = 2e-5
    assert fitted.ids[3] in decide(fitted, budget=200, cost=cost, must=[fitted.ids[3]]).ids
    cost[4] = 1e12  # never fits, and is no reason to refuse
    assert decide(fitted, budget=200, cost=cost).spent <= 200


def test_a_random_share_of_single_places_says_what_it_takes() -> None:
    found = decide(dict.fromkeys("abcdef", 1.0), budget=4, cost=[1, 1, 2, 2, 3, 3], random_share=0.5)
    assert "nobody is drawn: it takes two places and another arm of the same cost" in " ".join(found.notes)


def test_notes_say_why_money_is_left(fitted: rmab.data.Fit) -> None:
    index, cost = {"a": 1.0, "b": 0.5, "c": 0.2}, [1, 2, 3]
    assert "; no more fits;" in decide(index, budget=4, cost=cost).notes[0]
    assert "; an action is not expected to help anybody else;" in decide(index, budget=9, cost=cost).notes[0]
    assert "; caps and must_not leave no more;" in decide(index, budget=9, cost=cost, must_not=["c"]).notes[0]
    capped = {"groups": {"g": ["x", "x", "y"]}, "caps": {"g=x": 1}}
    assert "; caps and must_not leave no more;" in decide(index, budget=9, cost=cost, **capped).notes[0]  # type: ignore[arg-type]
    prices = np.where(np.arange(len(fitted.ids)) % 2, 20.0, 50.0)
    small = decide(fitted, budget=5, cost=prices)  # everybody costs more: a plan gives nobody an index
    assert "0 calls cost 0 of 5; no more fits" in " ".join(small.notes)
    assert all("does not fit: it costs" in one for one in small.reasons)


def test_fairer_lists_leave_the_drawn_places_out() -> None:
    """The price of fairness compares lists that may spend the same: 20 less what the drawn places cost."""
    index = {f"a{k}": 1.0 if k < 20 else 0.4 for k in range(40)}
    groups = {"side": ["north"] * 20 + ["south"] * 20}
    plain, mixed = (
        decide(index, budget=20, cost=[1.0, 2.0] * 20, groups=groups, random_share=share, seed=3) for share in (0.0, 0.2)
    )
    for found in (plain, mixed):
        (unfair,) = found.fairness
        assert found.cost is not None
        by_index = np.array([one == INDEX for one in found.rule])
        spent = float(found.cost[by_index].sum())
        assert unfair.total == pytest.approx(spent)  # of the north, all of index 1
        assert unfair.cost == pytest.approx(0.6 * (spent - fair_spent(found, spent)))


def fair_spent(found: Decision, budget: float) -> float:
    """What the fairer list spends in the north, by hand: half of the places at most, the expensive ones first."""
    most, left, spent = int(np.ceil(found.active.sum() / 2)), budget, 0.0
    for cost in [2.0] * 10 + [1.0] * 10:
        if most and cost <= left:
            most, left, spent = most - 1, left - cost, spent + cost
    return spent


def test_ids_that_a_spreadsheet_changed_are_hinted_at(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("id,cost\n42,3\n0107,2\n")
    index = {"0042": 1.0, "0107": 0.5}
    with pytest.raises(ModelError, match=r"cost is missing for '0042'; did you mean '42'\?"):
        decide(index, budget=5, cost=tmp_path / "costs.csv")
    with pytest.raises(ModelError, match=r"must: unknown arm '42'; did you mean '0042'\?"):
        decide(index, budget=1, must=["42"])
