"""Statistics do not depend on the order or the partition of records, to the last bit; logs and runs give the same."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rmab
from logs import HEADER, mothers, read, table
from rmab.data import Statistics
from rmab.estimation.exact import join_digits, split_digits

TWO = read(table(("a", 1, "x", 0), ("a", 2, "y", 1)))

SIZES = (3, 4)  # groups, states


def records(rng: np.random.Generator, count: int) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
    """Moves (group, state, action, next state), and the period and reward of each: of very different sizes."""
    moves = tuple(rng.integers(0, end, count) for end in (*SIZES, 2, SIZES[1]))
    return moves, rng.integers(0, 5, count), rng.normal(size=count) * 10.0 ** rng.integers(-9, 12, count)


def of_rows(rows: np.ndarray, moves: tuple[np.ndarray, ...], period: np.ndarray, value: np.ndarray) -> Statistics:
    own = tuple(one[rows] for one in moves)
    return Statistics.from_records(SIZES, own, (period[rows], *own[:3]), value[rows])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 6))
def test_any_order_and_any_partition_give_equal_statistics(seed: int, count: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    seen = records(rng, count)
    whole = of_rows(np.arange(count), *seen)
    shuffled = rng.permutation(count)
    assert of_rows(shuffled, *seen) == whole
    pieces = [of_rows(one, *seen) for one in np.array_split(shuffled, parts)]
    assert Statistics.merge(pieces) == whole == sum(pieces)
    assert Statistics.zero(*SIZES) + whole == whole
    left = whole
    for one in pieces:
        left = left - one
    assert left == Statistics.zero(*SIZES)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(0, 40))
def test_adding_and_taking_away_is_the_identity(seed: int, first: int, second: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (of_rows(np.arange(count), *records(rng, count)) for count in (first, second))
    assert one + other - other == one
    assert one + other == other + one
    assert (one == other) == (not (first or second))


def test_statistics_that_differ_in_a_reward_only_are_not_equal() -> None:
    nothing = tuple(np.zeros(0, dtype=int) for _ in range(4))
    one, other, later = (
        Statistics.from_records((1, 2), nothing, ([period], [0], [1], [0]), [value])
        for period, value in ((0, 1.0), (0, np.nextafter(1.0, 2)), (1, 1.0))
    )
    assert one != other
    assert one != later
    assert one != "statistics"
    assert later.reward_sums.shape == (2, 1, 2, 2)
    assert (one + later).reward_sums[:, 0, 1, 0].tolist() == [1.0, 1.0]


@settings(max_examples=200)
@given(st.lists(st.floats(-(2.0**44), 2.0**44), max_size=20))
def test_sums_are_exact(values: list[float]) -> None:
    digits = split_digits(np.array(values)).sum(axis=0)
    exact = sum((Fraction(one) for one in values), Fraction(0))
    found = sum((Fraction(int(one)) * Fraction(2) ** (32 * (2 - k)) for k, one in enumerate(digits)), Fraction(0))
    assert abs(found - exact) <= len(values) * Fraction(1, 2**65)
    assert float(join_digits(digits)) == pytest.approx(float(exact), rel=1e-14, abs=1e-18)


def test_a_log_is_counted_record_by_record() -> None:
    rows = [("a", 1, "x", 1, 0.5, "u"), ("a", 2, "y", 0, 0.25, "u"), ("a", 4, "x", 0, 7.0, "u"), ("b", 1, "y", 1, None, "v")]
    rows += [("b", 2, "x", None, 3.0, "v"), ("b", 3, "x", 1, 2.0, "v")]
    log = read(table(*rows, names=HEADER + ",pay,group"), reward="pay", groups=["group"])
    found = Statistics.from_log(log, log.factor_of[:, 0])
    assert found.counts.sum() == 2  # gaps are never bridged, and an action that is not known is not counted
    assert (found.counts[0, 0, 1, 1], found.counts[1, 1, 1, 0]) == (1, 1)
    assert found.numbers.sum() == 4  # a missing reward is missing, and not 0
    assert found.reward_sums[0, 0, 0, 1] == 0.5
    number, total, squares = found.pooled_rewards
    assert (number[0, 0, 0], total[0, 0, 0], squares[0, 0, 0]) == (1, 7.0, 49.0)
    assert repr(found) == "Statistics(2 groups, 2 states, 2 transitions, 4 rewards)"
    assert Statistics.from_log(log).counts.shape == (1, 2, 2, 2)


def run_of_arms(feedback: str) -> tuple[rmab.Feedback, rmab.Trajectory, np.ndarray]:
    task = rmab.make_task("cpap", arms=6, budget=2)
    view = task.view(feedback=feedback) if feedback != "bandit" else task.view()
    rng = np.random.default_rng(0)
    reward = rng.random((6, task.problem.arms.kernels.shape[1], 2))
    episode = rmab.simulate(task.problem, rmab.planners.random_policy(task.problem), reward, rng)
    return rmab.Feedback.reveal(view, 0, episode, reward), episode, reward


def test_a_log_and_the_equivalent_feedback_give_the_same() -> None:
    feedback, episode, reward = run_of_arms("bandit")
    steps, arms = feedback.actions.shape
    rows = []
    for n in range(arms):
        for h in range(steps + 1):
            state = int(feedback.states[h, n])
            action = int(feedback.actions[h, n]) if h < steps else None
            rows.append((f"n{n}", h, f"s{state}", action, reward[n, state, action] if h < steps else None))
    names = [f"s{k}" for k in range(reward.shape[1])]
    log = read(table(*rows, names=HEADER + ",pay"), reward="pay", states=names)
    group_of = np.arange(arms) % 2
    found = Statistics.from_feedback(feedback, group_of)
    assert found == Statistics.from_log(log, group_of)
    assert found.numbers.sum() == steps * arms
    counts = Statistics.from_feedback(episode, group_of, states=len(names))
    assert np.array_equal(counts.counts, found.counts)
    assert counts.numbers.size == 0
    later = Statistics.from_feedback(feedback, group_of, period=3)
    assert np.array_equal(later.reward_sums[3:], found.reward_sums)
    assert not later.reward_sums[:3].any()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Statistics(np.zeros((1, 2, 2, 3))), "counts must have shape (G, S, 2, S)"),
        (lambda: Statistics(np.zeros((0, 2, 2, 2))), "with G, S >= 1"),
        (lambda: Statistics(np.full((1, 2, 2, 2), -1)), "counts[0, 0, 0, 0] must be in 0.."),
        (lambda: Statistics(np.full((1, 2, 2, 2), 0.5)), "must be a whole number"),
        (lambda: Statistics("x"), "counts: not an array of numbers"),
        (lambda: Statistics([[1, 2], [3]]), "counts: not an array of numbers"),
        (lambda: Statistics.zero(-3, 2), "groups and states must be at least 1, got -3 and 2"),
        (lambda: Statistics.zero("a", 2), "groups must be a whole number"),
        (lambda: Statistics.zero(10**6, 10**6), "would need"),
        (lambda: Statistics.merge(3), "merge needs a list of Statistics"),
        (lambda: Statistics.merge([3]), "merge needs a list of Statistics"),
        (lambda: Statistics.from_records((1,), ((), (), (), ())), "shape must be (groups, states), and moves four arrays"),
        (lambda: Statistics.from_records((1, 2), ((), ())), "moves four arrays"),
        (lambda: Statistics.from_records((1, 2), ([0], ["x"], [0], [0])), "moves: not an array of numbers"),
        (lambda: Statistics.from_records((1, 2), ([0], [0], [0], [0]), (), [1.0]), "paid must be four arrays"),
        (lambda: Statistics.from_records((1, 2), ([0], [0], [0], [0]), ([-1], [0], [0], [0]), [1.0]), "paid[0] must be in"),
        (lambda: Statistics.from_records((1, 2), ([0], [0], [0], [0]), ([1e12], [0], [0], [0]), [1.0]), "would need"),
        (lambda: Statistics.from_log(TWO, [-5]), "group_of[0] must be in 0..0"),
        (lambda: Statistics.from_log(TWO, groups=-3), "groups must be at least 1"),
        (lambda: Statistics(np.zeros((1, 2, 2, 2)), np.ones((1, 1, 2, 2))), "moments must be whole numbers of shape"),
        (lambda: Statistics(np.zeros((1, 2, 2, 2)), np.zeros((1, 2))), "numbers must have shape (1, 1, 2, 2)"),
        (
            lambda: Statistics(np.zeros((1, 2, 2, 2)), np.eye(2)[np.newaxis, np.newaxis], np.ones((1, 1, 2, 2, 2, 5), int)),
            "moments must be 0 where numbers is 0",
        ),
        (lambda: Statistics.zero(1, 2) + Statistics.zero(2, 2), "1 groups and 2 states cannot be combined with those of 2"),
        (lambda: Statistics.zero(1, 2) - Statistics.from_counts(np.ones((1, 2, 2, 2))), "records that were not added"),
        (lambda: Statistics.merge([]), "merge: the list is empty"),
        (lambda: Statistics.from_log("log.csv"), "log must be a Log"),
        (lambda: Statistics.from_log(mothers(20, 8).log, np.full(20, 2**62)), "must be in"),
        (lambda: Statistics.from_log(mothers(20, 8).log, np.arange(20), 5), "group_of[5] must be in 0..4"),
        (lambda: Statistics.from_counts([[0.5, 0.5], [1.0]]), "counts: not an array of numbers"),
        (lambda: rmab.data.fit_statistics(Statistics.zero(1, 2), group_of=[0], states=[0], state_names=5), "list of names"),
        (lambda: rmab.data.run_checks(mothers(20, 8), seed=-1), "seed must be 0 or more, got -1"),
        (lambda: rmab.data.run_checks(mothers(20, 8), seed=1e308), "seed must be a whole number"),
        (lambda: rmab.data.estimate_effects([0.5]), "fit must be a Fit, got list"),  # type: ignore[arg-type]
        (lambda: rmab.data.example_truth(np.ones(3)), "unknown example"),  # type: ignore[arg-type]
        (lambda: Statistics.from_log(mothers(20, 8).log, [0, 1]), "group_of must have shape (20,)"),
        (lambda: Statistics.from_feedback("x"), "feedback must be a Trajectory"),
        (lambda: Statistics.from_feedback(run_of_arms("bandit")[1], states=1), "states["),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused_in_one_line(make, words: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=re.escape(words)) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_model_of_statistics_is_that_of_the_log() -> None:
    fitted = mothers(120, 25, groups=("age",))
    columns = {"age": [fitted.groups[g] for g in fitted.group_of]}
    again = rmab.data.fit_statistics(
        fitted.statistics,
        group_of=fitted.group_of,
        states=fitted.situation.belief,
        ids=fitted.ids,
        groups=columns,
        state_names=fitted.state_names,
        reward={"engaged": 1},
        waited=fitted.situation.acted_before,
        words=fitted.words,
        period=fitted.situation.label,
    )
    assert np.array_equal(again.kernels, fitted.kernels)
    assert again.words == fitted.words
    ours, theirs = (rmab.data.decide(one, 12, caps={"20-29": 4}) for one in (again, fitted))
    assert ours.ids == theirs.ids
    assert np.array_equal(ours.index, theirs.index)
    for needs_records in (rmab.data.run_checks, rmab.data.estimate_effects, rmab.data.evaluate, rmab.data.decide):
        with pytest.raises(rmab.errors.ModelError, match="this needs single records, but the model was fitted"):
            needs_records(again)
    loaded = rmab.data.Fit.from_bytes(again.to_bytes(".json"))
    assert loaded.statistics == again.statistics
    assert loaded.log is None


def test_rewards_of_statistics_are_learned_as_those_of_a_log() -> None:
    rng, rows = np.random.default_rng(0), []
    for n in range(40):
        state = 0
        for week in range(20):
            called = int(rng.random() < 0.4)
            rows.append((f"n{n}", week, f"s{state}", called, 2.0 * state + 0.1 * called + rng.normal()))
            state = int(rng.random() < (0.7 if called else 0.2))
    fitted = rmab.data.fit(read(table(*rows, names=HEADER + ",pay"), reward="pay"))
    again = rmab.data.fit_statistics(fitted.statistics, group_of=np.zeros(40), states=np.zeros(40))
    assert np.array_equal(again.pay.table, fitted.pay.table)
    paid = np.array([row[4] for row in rows if row[2:4] == ("s1", 1)])
    assert fitted.pay.table[0, 1, 1] == pytest.approx(paid.mean(), abs=0.1)  # what a call adds is shrunk


def test_rewards_that_were_never_added_cannot_be_taken_away() -> None:
    """As far as sums can show it: a sum of squares is not negative, and one reward is its own sum."""
    where = ([0, 0], [0, 0], [0, 0], [0, 0])
    some = Statistics.from_records((1, 2), where, where, [1.0, 2.0])
    for other in (5.0, 1.5, -1.0):
        one = Statistics.from_records((1, 2), ([0], [0], [0], [0]), ([0], [0], [0], [0]), [other])
        with pytest.raises(rmab.errors.ModelError, match="cannot subtract records that were not added: moments"):
            some - one
    assert (some - Statistics.from_records((1, 2), ([0], [0], [0], [0]), ([0], [0], [0], [0]), [2.0])).numbers.sum() == 1
    with pytest.raises(rmab.errors.ModelError, match=r"moments\[0, 0, 0, 0\] are not those of 2 rewards"):
        Statistics(some.counts, some.numbers, some.moments * 2**40)
