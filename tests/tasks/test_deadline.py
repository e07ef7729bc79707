"""Options of the charging tasks: the paper's numbers byte for byte, every option by number and phase, what is refused."""

import re
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

import rmab
from charging import named, outer, pays, step, uniform
from rmab.common.options import json_schema
from rmab.errors import ModelError
from rmab.model.registry import ADVERSARIES
from rmab.tasks import TASKS
from rmab.tasks.charging import COMING, NEEDS, RATES, SITE
from rmab.tasks.deadline import kernel, reward_parts

SMALL: dict[str, Any] = {"arms": 3, "budget": 1, "horizon": 6, "episodes": 2}
TINY: dict[str, Any] = {**SMALL, "dwell": [0.25, 0.75], "load": [0.5, 0.3, 0.2]}


def digest(array: np.ndarray) -> str:
    return sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


class TestThePapersNumbers:
    def test_are_the_same_byte_for_byte(self) -> None:
        assert (digest(kernel()), digest(reward_parts())) == ("2da1a189d7ac33b6", "3612abb6a13feb05")
        task = rmab.make_task("deadline")
        assert (digest(task.problem.arms.kernels[0]), digest(task.base_reward)) == ("2da1a189d7ac33b6", "09a1374fbfe2045d")
        assert (task.adversary.low, task.adversary.high) == (-24.3, 0.75)
        rules = (rmab.tasks.deadline.least_laxity_first, rmab.tasks.deadline.earliest_deadline_first)
        assert [digest(rule(task.problem).table) for rule in rules] == ["d0efc3c517d4a2f1", "df9b17e683a7151b"]
        assert digest(rmab.tasks.deadline.deadline_whittle(task.problem, discount=0.9).index) == "6afc1813efa5b147"

    def test_are_the_defaults(self) -> None:
        given = {"arrival": 0.7, "pay": 0.5, "penalty": 0.2, "phases": 1, "budget": 30}
        assert rmab.make_task("deadline", **given).problem == rmab.make_task("deadline").problem

    @pytest.mark.parametrize("family", ["deadline", "deadline-day", "cpap", "split"])
    def test_defaults_given_by_hand_change_nothing(self, family: str) -> None:
        one, other = rmab.make_task(family), rmab.make_task(family, **defaults_of(family))
        assert one.problem == other.problem
        np.testing.assert_array_equal(one.reward(1), other.reward(1))


WRONG = "task deadline: "
FRACTION = "Input should be a valid integer, got a number with a fractional part"


def defaults_of(family: str) -> dict[str, Any]:
    return {name: one.default for name, one in TASKS.schema(family).model_fields.items()}


def check(task: rmab.Task, kind: int, phase: int, tables: dict[str, Any]) -> None:
    """Compare an arm in a phase with the spot in plain Python."""
    arms = task.problem.arms
    assert arms.state_names is not None
    states = [named(name) for name in arms.state_names]
    rows = arms.kernels[kind] if arms.phases == 1 else arms.kernels[kind, phase]
    reward = task.base_reward[kind] if task.problem.phases == 1 else task.base_reward[kind, phase]
    money = (tables["pay"], tables["penalty"], tables.get("price", 0.0))
    for s, state in enumerate(states):
        for a in (0, 1):
            row = {states[y]: p for y, p in enumerate(rows[s, a].tolist()) if p}
            expected = {y: p for y, p in step(state, a, tables["arrival"], tables["jobs"]).items() if p}
            assert row == pytest.approx(expected, abs=1e-15)
            assert reward[s, a] == pytest.approx(pays(state, a, *money), abs=1e-12)


BASE = {"arrival": 0.7, "jobs": uniform(12, 9), "pay": 0.5, "penalty": 0.2}
THREE = [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]
TWICE = [[[0.5, 0.0], [0.25, 0.25]], [[0.0, 0.5], [0.5, 0.0]]]
CASES: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"arrival": 0.25}, [{"arrival": 0.25}]),
    ({"pay": 2, "penalty": 0}, [{"pay": 2, "penalty": 0}]),
    ({"pay": -1.0}, [{"pay": -1.0}]),
    ({"tariff": 0.125}, [{"price": 0.125}]),
    ({"dwell": [0.25, 0.75]}, [{"jobs": outer([0.25, 0.75], [1 / 9] * 9)}]),
    ({"load": [0.25, 0.75]}, [{"jobs": outer([1 / 12] * 12, [0.25, 0.75])}]),
    ({"dwell": [1.0], "load": [1.0]}, [{"jobs": [[1.0]]}]),
    ({"jobs": TWICE[0]}, [{"jobs": TWICE[0]}]),
    ({"phases": 2, "arrival": [0.1, 0.9]}, [{"arrival": 0.1}, {"arrival": 0.9}]),
    ({"phases": 2, "pay": [1, 3], "penalty": [0.5, 0]}, [{"pay": 1, "penalty": 0.5}, {"pay": 3, "penalty": 0}]),
    ({"phases": 2, "tariff": [0.4, -0.1]}, [{"price": 0.4}, {"price": -0.1}]),
    ({"phases": 3, "dwell": THREE, "load": [1.0]}, [{"jobs": outer(one, [1.0])} for one in THREE]),
    ({"phases": 3, "dwell": [1.0], "load": THREE}, [{"jobs": outer([1.0], one)} for one in THREE]),
    ({"phases": 2, "jobs": TWICE}, [{"jobs": TWICE[0]}, {"jobs": TWICE[1]}]),
]


@pytest.mark.parametrize(("options", "phases"), CASES, ids=[", ".join(one) for one, _ in CASES])
def test_every_option_against_plain_python(options: dict[str, Any], phases: list[dict[str, Any]]) -> None:
    task = rmab.make_task("deadline", **SMALL, **options)
    assert task.problem.phases == len(phases)
    for k, own in enumerate(phases):
        check(task, 0, k, {**BASE, **own})
        assert (task.problem.phase_of == k).sum() == 6 // len(phases)


def test_arrays_are_taken_like_lists() -> None:
    lists = rmab.make_task("deadline", **SMALL, phases=2, arrival=[0.1, 0.9], jobs=TWICE)
    arrays = rmab.make_task("deadline", **SMALL, phases=np.int64(2), arrival=np.array([0.1, 0.9]), jobs=np.array(TWICE))
    assert lists.problem == arrays.problem


def test_steps_belong_to_the_phase_in_which_they_begin() -> None:
    task = rmab.make_task("deadline", phases=24, arrival=np.linspace(0, 1, 24))
    assert task.problem.horizon == 100
    begins = np.arange(100) * 14.4  # minutes of a day
    np.testing.assert_array_equal(task.problem.phase_of, begins // 60)


@pytest.mark.parametrize(
    ("budget", "expected"), [(2, 2), ([1, 2, 0], [1, 1, 2, 2, 0, 0]), ([3, 2, 1, 0, 1, 2],) * 2, ([2, 2, 2], 2)]
)
def test_budgets_by_phase_and_by_step(budget: Any, expected: Any) -> None:
    problem = rmab.make_task("deadline", **{**SMALL, "budget": budget, "phases": 3}).problem
    np.testing.assert_array_equal(problem.budget, expected)


class TestClasses:
    def test_have_vehicles_and_pay_of_their_own(self) -> None:
        classes: list[dict[str, Any]] = [
            {"arms": 2},
            {"arms": 3, "jobs": TWICE[0], "pay": 2.0, "arrival": 0.25},
            {"arms": 1, "dwell": [0.0, 0.0, 1.0]},
        ]
        sizes = {**TINY, "arms": 6}
        task = rmab.make_task("deadline@noisy", **sizes, classes=classes)
        common = {**BASE, "jobs": outer(TINY["dwell"], TINY["load"])}
        own = {"jobs": TWICE[0], "pay": 2.0, "arrival": 0.25}
        third = {"jobs": outer([0.0, 0.0, 1.0], [1 / 9] * 9)}
        for n, tables in enumerate([common] * 2 + [{**common, **own}] * 3 + [{**common, **third}]):
            check(task, n, 0, tables)
        np.testing.assert_array_equal(task.problem.arms.groups, [0, 0, 1, 1, 1, 2])
        assert task.view().pooled_rewards
        assert task.problem.arms.states == 3 * 10
        assert rmab.make_task("deadline", **sizes, classes=classes, grouped=False).problem.arms.groups is None
        support = rmab.make_task("deadline", **sizes, classes=classes, known_support=True).problem.arms.support
        np.testing.assert_array_equal(support, task.problem.arms.kernels > 0)

    def test_by_phase(self) -> None:
        classes = [{"arms": 1, "arrival": [0.1, 0.2]}, {"arms": 2, "pay": [1, 2]}]
        task = rmab.make_task("deadline", **TINY, phases=2, classes=classes, tariff=0.1)
        common = {**BASE, "jobs": outer(TINY["dwell"], TINY["load"]), "price": 0.1}
        for k in (0, 1):
            check(task, 0, k, {**common, "arrival": [0.1, 0.2][k]})
            check(task, 1, k, {**common, "pay": [1, 2][k]})
        np.testing.assert_array_equal(task.problem.arms.groups, [0, 1, 1])

    @pytest.mark.parametrize(
        ("classes", "message"),
        [
            ([{"arms": 1}, {"arms": 1}], "classes: their arms add up to 2, expected arms=3"),
            ([{"arms": 3, "speed": 1}], f"{WRONG}classes[0].speed: no such option (got 1)"),
            ([{"arms": 2}, {"pay": 1}], f"{WRONG}classes[1].arms: Field required"),
            ([{"arms": 3, "dwell": [0.5, 0.4]}], "classes[0].dwell: the probabilities sum to 0.9, not 1"),
            ([{"arms": 3.5}], f"{WRONG}classes[0].arms: {FRACTION} (got 3.5)"),
            ([{"arms": 0}, {"arms": 3}], f"{WRONG}classes[0].arms: Input should be greater than or equal to 1 (got 0)"),
            ([], f"{WRONG}classes: List should have at least 1 item after validation, not 0"),
            ({"arms": 3}, f"{WRONG}classes: Input should be a valid list"),
            (["many"], f"{WRONG}classes[0]: Input should be a valid dictionary (got 'many')"),
        ],
    )
    def test_wrong(self, classes: Any, message: str) -> None:
        with pytest.raises(ModelError, match=rf"^{re.escape(message)}"):
            rmab.make_task("deadline", **SMALL, classes=classes)


def test_the_range_follows_from_the_options() -> None:
    def ends(**options: Any) -> tuple[float, float]:
        adversary = rmab.make_task("deadline", **SMALL, **options).adversary
        return adversary.low, adversary.high

    assert ends(pay=2, penalty=0) == (0, 3)
    assert ends(load=[0.5, 0.5]) == (-1.2, 0.75)
    assert ends(load=[0.5, 0.5], phases=2, pay=[1, 4], penalty=[0.1, 0.5]) == (-3, 6)
    assert ends(load=[1.0], penalty=0, tariff=2.0) == (-3, 0.75)
    assert ends(load=[1.0], penalty=0, phases=2, tariff=[0, -1.5]) == (0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arrival": 1.2}, "arrival: phase 0 must be a probability, got 1.2"),
        ({"arrival": [0.1, -0.1], "phases": 2}, "arrival: phase 1 must be a probability, got -0.1"),
        (
            {"arrival": [0.1, 0.2]},
            "arrival must be one number or one per phase: there is 1 phase, got 2 numbers (phases=...)",
        ),
        ({"pay": [1, 2, 3], "phases": 2}, "pay must be one number or one per phase: there are 2 phases, got 3 numbers"),
        ({"penalty": -1}, "penalty: phase 0 must be 0 or more, got -1"),
        ({"pay": 0, "penalty": 0}, "pay and penalty must not all be 0"),
        ({"dwell": [0.5, 0.4]}, "dwell: the probabilities sum to 0.9, not 1"),
        ({"dwell": [1.5, -0.5]}, "dwell: 1 slots has probability 1.5"),
        ({"dwell": [[1.0], [0.5]], "phases": 2}, "dwell: phase 1: the probabilities sum to 0.5, not 1"),
        ({"dwell": [[1.0], [1.0]]}, "dwell must have shape (D,), or (K, D) with K = 1 phases, got (2, 1)"),
        ({"dwell": 1.0}, "dwell must have shape (D,), or (K, D) with K = 1 phases, got ()"),
        ({"load": [[0.5, 0.5], [1.5, -0.5]], "phases": 2}, "load: phase 1, 1 units has probability 1.5"),
        ({"jobs": [[0.5, -0.1], [0.6, 0.0]]}, "jobs: 1 slots, 2 units has probability -0.1"),
        ({"jobs": [[[1.0]], [[0.9]]], "phases": 2}, "jobs: phase 1: the probabilities sum to 0.9, not 1"),
        ({"jobs": [1.0]}, "jobs must have shape (D, L), or (K, D, L) with K = 1 phases, got (1,)"),
        ({"jobs": [[1.0]], "dwell": [1.0]}, "jobs: give either jobs, or dwell and load"),
        ({"jobs": [[0.5], [0.25, 0.25]]}, f"{WRONG}jobs: Input: not an array of numbers"),
        ({"arrival": "often"}, f"{WRONG}arrival: Input should be a number, or one per phase (got 'often')"),
        ({"arrival": None}, f"{WRONG}arrival: Input should be a number, or one per phase (got None)"),
        ({"arrival": True}, f"{WRONG}arrival: Input should be a number, or one per phase (got True)"),
        ({"arrival": []}, f"{WRONG}arrival: Input should be a number, or one per phase, not an array of shape (0,)"),
        ({"arrival": [[0.1]]}, f"{WRONG}arrival: Input should be a number, or one per phase, not an array of shape (1, 1)"),
        ({"pay": [1, float("nan")], "phases": 2}, f"{WRONG}pay: Input should be finite at [1] (got [1, nan])"),
        ({"pay": float("inf")}, f"{WRONG}pay: Input should be finite (got inf)"),
        ({"phases": 0}, f"{WRONG}phases: Input should be greater than or equal to 1 (got 0)"),
        ({"phases": 7}, "phases must be at most 6 (the number of steps), got 7"),
        ({"phases": 1.5}, f"{WRONG}phases: {FRACTION} (got 1.5)"),
        ({"budget": [1, 2]}, "budget must be a number, or one per phase (1) or step (6), got 2 numbers"),
        ({"budget": [1, 4], "phases": 2}, "budget: phase 1 must be a whole number in 0..3 (the number of arms), got 4"),
        ({"budget": [1, 1, 1, 1, 1, 0.5]}, "budget: step 5 must be a whole number in 0..3 (the number of arms), got 0.5"),
        ({"budget": 4}, "budget must be in 0..3 (the number of arms), got 4"),
        ({"budget": 1.5}, "budget must be a whole number, got 1.5"),
        ({"budget": "all"}, f"{WRONG}budget: Input should be a whole number, or one per phase or step (got 'all')"),
        ({"minutes": 5}, "minutes is only used if the tariff is a file; leave it out"),
        ({"minutes": "five"}, f"{WRONG}minutes: Input should be a number (got 'five')"),
        ({"tariff": True}, f"{WRONG}tariff: Input should be the path of a file, or a number, or one per phase (got True)"),
        ({"tariff": ""}, f"{WRONG}tariff: Input should be the path of a file, or a number, or one per phase (got '')"),
        ({"tariff": [0.1, 0.2, 0.3], "phases": 2}, "tariff must be one number or one per phase: there are 2 phases"),
        ({"dwell": [5e-5] * 20_000}, "a spot of 20000 slots and 9 units, in 1 phases, would need 640 GB of memory"),
        ({"arms": 10**12, "budget": 1}, "a task of 1000000000000 arms would need"),
        ({"arms": 0, "budget": 0}, f"{WRONG}arms: Input should be greater than or equal to 1 (got 0)"),
        ({"speed": 1}, f"{WRONG}speed: no such option. Available: arms, budget, horizon"),
    ],
)
def test_wrong_options_are_refused_with_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=rf"^{re.escape(message)}") as caught:
        rmab.make_task("deadline", **{**SMALL, **options})
    assert "\n" not in str(caught.value)


class TestRules:
    def test_least_laxity_and_earliest_deadline_on_other_sizes(self) -> None:
        problem = rmab.make_task("deadline", **TINY).problem
        names = problem.arms.state_names
        assert names is not None
        assert len(names) == 2 * 4
        laxity, first = (
            rule(problem).table[0]
            for rule in (rmab.tasks.deadline.least_laxity_first, rmab.tasks.deadline.earliest_deadline_first)
        )
        spots = dict(zip(map(named, names), zip(laxity.tolist(), first.tolist(), strict=True), strict=True))
        waiting = [one for one in spots if one[1] > 0]
        assert {index for one, index in spots.items() if one[1] == 0} == {(0, 0)}
        for one in waiting:
            assert min(spots[one]) > 0
            for other in waiting:
                assert (spots[one][0] > spots[other][0]) == (one[0] - one[1] < other[0] - other[1])
                assert (spots[one][1] > spots[other][1]) == (one[0] < other[0])

    def test_on_a_day_with_its_budgets(self) -> None:
        task = rmab.make_task("deadline-day")
        for rule in (rmab.tasks.deadline.least_laxity_first, rmab.tasks.deadline.earliest_deadline_first):
            policy = rule(task.problem)
            np.testing.assert_array_equal(policy.limits(288), task.problem.budgets)
            rmab.simulate(task.problem, policy, task.base_reward, np.random.default_rng(0))

    @pytest.mark.parametrize("discount", [0.5, 0.9])
    def test_the_closed_form_on_other_sizes_and_pay(self, discount: float) -> None:
        task = rmab.make_task("deadline", **SMALL, jobs=TWICE[0], arrival=0.3, pay=1.5, penalty=0.4)
        whole = rmab.planners.whittle_index(task.problem, task.base_reward, discount=discount)
        closed = rmab.tasks.deadline.deadline_whittle(task.problem, discount=discount, pay=1.5, penalty=0.4)
        np.testing.assert_allclose(closed.index, whole.index, atol=1e-9)

    @pytest.mark.parametrize(
        "rule",
        [
            rmab.tasks.deadline.least_laxity_first,
            rmab.tasks.deadline.earliest_deadline_first,
            rmab.tasks.deadline.deadline_whittle,
        ],
    )
    def test_other_arms_are_refused(self, rule: Any) -> None:
        told = f"{rule.__name__}: the arms are not charging spots: "
        with pytest.raises(
            ModelError, match=f"^{told}state 0 is named 'low', not 'empty' or 'slots,load', for example '5,3'$"
        ):
            rule(rmab.make_task("cpap").problem)
        with pytest.raises(ModelError, match=f"^{told}their states have no names$"):
            rule(rmab.make_task("split").problem)

    def test_the_closed_form_is_for_one_phase(self) -> None:
        with pytest.raises(ModelError, match=r"^deadline_whittle: .*the problem has 2; use rmab.planners.lagrangian_index$"):
            rmab.tasks.deadline.deadline_whittle(rmab.make_task("deadline", **TINY, phases=2).problem)
        problem = rmab.make_task("deadline", **TINY).problem
        for wrong, message in (({"pay": np.nan}, "pay and penalty must be numbers"), ({"penalty": -1}, "penalty 0 or more")):
            with pytest.raises(ModelError, match=message):
                rmab.tasks.deadline.deadline_whittle(problem, **wrong)


class TestTheDay:
    def test_its_sizes(self) -> None:
        task = rmab.make_task("deadline-day")
        problem = task.problem
        assert (task.name, problem.arms.count, problem.horizon, problem.phases) == ("deadline-day@ramp", 100, 288, 24)
        assert problem.arms.states == 120
        np.testing.assert_array_equal(problem.phase_of, np.repeat(np.arange(24), 12))
        np.testing.assert_array_equal(problem.budgets, np.repeat(SITE, 12))
        assert problem.budgets[17 * 12 : 21 * 12].max() < problem.budgets[: 17 * 12].min()
        assert len(set(RATES)) == 3
        rises = np.diff(np.sign(np.diff(COMING)))
        assert (rises < 0).sum() >= 2  # peaks
        for k in (0, 8, 18):
            check(task, 0, k, {**BASE, "arrival": COMING[k], "jobs": NEEDS, "price": RATES[k]})

    def test_a_vehicle_never_needs_more_than_its_stay_can_give(self) -> None:
        assert np.sum(NEEDS) == pytest.approx(1, abs=1e-12)
        assert all(share == 0 for d, row in enumerate(NEEDS, 1) for need, share in enumerate(row, 1) if need > d)

    @pytest.mark.parametrize("against", ADVERSARIES)
    def test_every_adversary(self, against: str) -> None:
        task = rmab.make_task(f"deadline-day@{against}", **{**SMALL, "horizon": 48, "episodes": 8})
        assert task.name == f"deadline-day@{against}"
        reward = np.stack([task.reward(t, np.zeros(task.base_reward.shape)) for t in range(8)])  # some may pay nothing
        assert reward.shape == (8, 3, 24, 120, 2)
        assert task.adversary.low <= reward.min() < reward.max() <= task.adversary.high

    def test_its_options_can_be_changed(self) -> None:
        task = rmab.make_task("deadline-day", jobs=None, dwell=[0.5, 0.5], load=[1.0], tariff=None, arrival=0.5)
        check(task, 0, 23, {**BASE, "arrival": 0.5, "jobs": [[0.5], [0.5]]})
        assert task.adversary.model.parts.shape[0] == 2
        with pytest.raises(ModelError, match="jobs: give either jobs, or dwell and load \\(with jobs=None if"):
            rmab.make_task("deadline-day", dwell=[1.0])


def test_the_price_of_energy_has_a_factor_of_its_own() -> None:
    task = rmab.make_task("deadline@iid", **{**TINY, "episodes": 60}, tariff=0.3, penalty=0.0)
    factors = np.array([task.adversary.factors[t, :, 0] for t in range(60)])
    assert factors.shape == (60, 3)
    earned = np.array([task.reward(t).max() for t in range(60)])
    np.testing.assert_allclose(earned, np.maximum(0.5 * factors[:, 0] - 0.3 * factors[:, 2], 0))


@pytest.mark.parametrize("family", ["deadline", "deadline-day", "cpap"])
def test_every_option_says_what_it_is_and_may_be(family: str) -> None:
    for name, one in json_schema(TASKS.schema(family))["properties"].items():
        assert one["description"], name
        assert one.keys() & {"values", "type", "anyOf"}, name
