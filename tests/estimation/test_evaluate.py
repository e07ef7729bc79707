"""What a plan brings: values are those of other code, intervals hold the error of estimation, and refusals are clear."""

from dataclasses import replace

import numpy as np
import pytest

import rmab
from logs import HEADER, mothers, read, table
from rmab.data import Evaluation, Fit, evaluate
from rmab.estimation.one_step import Halves, check_one_step, rule_of, split_halves
from rmab.estimation.resampling import Resampler
from rmab.estimation.shrinkage import shrink
from rmab.estimation.values import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return mothers(300, 30)


@pytest.fixture(scope="module")
def found(fitted: Fit) -> Evaluation:
    return evaluate(fitted, 25, horizon=12, replicates=40)


class Habit:
    """A policy that acts with a probability of its own in every group and state."""

    def __init__(self, rate: np.ndarray, group: np.ndarray) -> None:
        self.rate, self.group = rate, group

    def act(self, h: int, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.random(states.size) < self.rate[self.group, states]


def test_values_of_rivals_are_exact(fitted: Fit) -> None:
    """Against the simulator: rotation, chance and habits, played many times."""
    world = World.of(fitted, 25, 12)
    problem, exact = world.problem(fitted.kernels), world.baselines(fitted.kernels)
    free = rmab.Problem(problem.arms, problem.start, 300, 12)
    rng = np.random.default_rng(0)
    turns = np.repeat(world.turn.T[:, :, np.newaxis], 3, axis=2)
    simulated = {
        "nothing": rmab.simulate_many(
            problem, rmab.IndexPolicy(-np.ones((300, 3)), 25, rule="at-most"), world.pays, rng, 800
        ),
        "rotation": rmab.simulate_many(problem, rmab.IndexPolicy(turns, 25, rule="at-most"), world.pays, rng, 800),
        "random": rmab.simulate_many(problem, rmab.planners.random_policy(problem), world.pays, rng, 800),
        "as logged": rmab.simulate_many(free, Habit(world.rate, world.group), world.pays, rng, 400),
    }
    for name, batch in simulated.items():
        assert abs(batch.mean - exact[name]) < 4.5 * batch.stderr, name


def test_rotation_takes_everybody_in_turn_who_has_waited_longest_first(fitted: Fit) -> None:
    turn = World.of(fitted, 25, 12).turn
    assert (turn.sum(axis=1) == 25).all()
    assert (turn.sum(axis=0) == 1).all()
    waited = fitted.situation.acted_before
    assert waited[turn[0] == 1].min() >= waited[turn[1] == 1].max()


def test_an_evaluation_has_everything(found: Evaluation) -> None:
    assert list(found.benefits) == ["nothing", "rotation", "random", "as logged"]
    for name, one in found.benefits.items():
        assert one.low < one.value < one.high
        assert one.value == pytest.approx(found.plan.value - found.baselines[name].value)
    assert found.benefits["nothing"].low > 0
    assert found.knowledge >= 0
    assert found.noise > 0


def test_an_evaluation_depends_on_its_seed_alone() -> None:
    fitted = mothers(120, 20)
    first, again, other = (evaluate(fitted, 10, horizon=3, replicates=40, seed=seed).fields() for seed in (0, 0, 1))
    assert again == first
    assert other != first


def test_more_records_make_narrower_intervals(found: Evaluation) -> None:
    large = mothers(1200, 60)
    few = replace(large, present=large.present[:300])  # the same size of a programme, known from far more records
    wide, narrow = (
        one.benefits["nothing"].high - one.benefits["nothing"].low
        for one in (found, evaluate(few, 25, horizon=12, replicates=40))
    )
    assert narrow < 0.7 * wide


def test_progress_is_told(fitted: Fit) -> None:
    told: list[tuple[int, int]] = []
    evaluate(fitted, 5, horizon=3, replicates=40, progress=lambda done, whole: told.append((done, whole)))
    assert told == [(k, 40) for k in range(1, 41)]


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"budget": 301}, {"horizon": 0}, {"replicates": 5}, {"seed": -1}, {"budget": 2.5}]
)
def test_wrong_arguments_are_refused(fitted: Fit, wrong: dict[str, object]) -> None:
    with pytest.raises(rmab.errors.ModelError):
        evaluate(fitted, **{"budget": 5, **wrong})  # type: ignore[arg-type]


def test_draws_scatter_around_the_fit_and_are_distributions(fitted: Fit) -> None:
    resampler, rng = Resampler(fitted), np.random.default_rng(0)
    assert np.allclose(resampler.counts(np.ones(300)), fitted.counts)
    draws = np.stack([resampler.draw(rng) for _ in range(200)])
    assert np.allclose(draws.sum(axis=4), 1)
    visits = fitted.counts.sum(axis=3)
    large = visits > 200
    spread = draws.std(axis=0)[large]
    expected = np.sqrt(fitted.kernels * (1 - fitted.kernels) / np.maximum(visits, 1)[..., np.newaxis])[large]
    assert 0.4 < np.median(spread / np.maximum(expected, 1e-9)) < 1.5
    assert np.abs(draws.mean(axis=0) - fitted.kernels)[large].max() < 0.05


def test_sentences_are_in_the_units_of_the_programme(found: Evaluation) -> None:
    told = found.sentences()
    assert (
        any("more weeks engaged" in one and "than by rotation" in one for one in told)
        or "No significant difference" in told[0]
    )
    assert "than without any call." in told[1]


# --- one step ahead


def test_the_check_one_step_ahead_agrees_with_the_model_where_the_log_allows_it() -> None:
    fitted = mothers(1500, 40, seed=3)
    free = check_one_step(fitted, 80, 26)
    assert free.refused == ""
    assert free.agrees
    assert free.low < free.value < free.high
    assert free.gap_low < free.value - free.model < free.gap_high
    assert free.overlap == 1.0
    assert free.effective > 1000
    assert "which agrees" in free.words


def test_its_weights_are_one_over_what_the_log_did_and_its_plans_are_those_of_the_other_half() -> None:
    """Record by record, and half by half: a plan is never checked in the records that it was made from."""
    fitted = mothers(300, 30, groups=("age",))
    half, moves = split_halves(fitted.group_of, 0), fitted.log.transitions
    free = check_one_step(fitted, 25, 26)
    total = weight_sum = said = 0.0
    for h in (0, 1):
        counts, theirs = np.zeros(fitted.counts.shape), half[moves.arm] != h
        np.add.at(
            counts, tuple(one[theirs] for one in (fitted.group_of[moves.arm], moves.state, moves.action, moves.after)), 1
        )
        other = shrink(counts, fitted.levels)
        rule = rule_of(replace(fitted, rows=other), 25, 26)
        mine = half[moves.arm] == h
        group = fitted.group_of[moves.arm]
        for n, s, a, y in np.column_stack([moves.arm, moves.state, moves.action, moves.after])[mine]:
            g = fitted.group_of[n]
            chance = moves.action[mine & (group == g) & (moves.state == s)].mean()
            weight = rule[g, s] / chance if a else (1 - rule[g, s]) / (1 - chance)
            total, weight_sum = total + weight * (y == 2), weight_sum + weight
            said += (1 - rule[g, s]) * other.kernels[g, s, 0, 2] + rule[g, s] * other.kernels[g, s, 1, 2]
    assert free.value == pytest.approx(total / weight_sum)
    assert free.model == pytest.approx(said / moves.arm.size)


def test_halves_are_halves_of_every_group() -> None:
    group_of = np.repeat([0, 1, 2, 3], [1, 7, 40, 3])
    half = split_halves(group_of, 3)
    for g, size in enumerate((1, 7, 40, 3)):
        assert size // 2 <= half[group_of == g].sum() <= -(-size // 2)
    assert (half == split_halves(group_of, 3)).all()
    assert (half != split_halves(group_of, 4)).any()


def spotty(rate: float) -> Fit:
    """A log in which calls help alike everywhere, and the south was called with this probability."""
    rng, rows = np.random.default_rng(0), []
    for n in range(200):
        state, region = int(rng.integers(2)), "north" if n % 4 == 0 else "south"
        for week in range(30):
            called = int(rng.random() < (0.3 if region == "north" else rate))
            rows.append((f"n{n}", week, f"s{state}", called, region))
            state = int(rng.random() < 0.15 + 0.3 * state + 0.4 * called)
    return rmab.data.fit(read(table(*rows, names=f"{HEADER},region"), groups=["region"]), reward={"s1": 1})


def test_it_is_refused_where_the_log_never_did_what_the_plan_would() -> None:
    free = check_one_step(spotty(0.0), 60, 10)
    assert "where the log hardly ever made one" in free.refused
    assert np.isnan(free.value)
    assert free.overlap < 0.8
    assert free.words.startswith("No check one step ahead: ")
    assert "No check one step ahead" in evaluate(spotty(0.0), 60, horizon=10, replicates=40).sentences()[-1]
    assert check_one_step(spotty(0.3), 60, 10).refused == ""


def test_what_a_model_promises_is_held_against_the_records() -> None:
    halves = Halves(spotty(0.3), 60, 10, 0)
    value, model = halves.values()
    assert abs(value - model) < 0.03
    promised = [np.array(one.kernels) for one in halves.fits]
    for kernels in promised:
        kernels[:, :, 1] = [0.05, 0.95]
    assert halves.model(promised) > value + 0.05


def test_as_logged_says_what_it_assumes_and_what_was() -> None:
    """Most arms joined for the last weeks: rates by state would make more calls now than there ever were."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(60):
        state = int(rng.integers(2))
        for week in range(0 if n < 20 else 14, 16):
            called = int(rng.random() < 0.3)
            rows.append((f"n{n}", week, "xy"[state], str(called) if week < 15 else ""))
            state = int(rng.random() < (0.7 if called else 0.3))
    fitted = rmab.data.fit(read(table(*rows)), reward={"y": 1})
    found = rmab.data.evaluate(fitted, 6, replicates=40, horizon=4)
    done = np.array([sum(row[3] == "1" for row in rows if row[1] == week) for week in range(15)])
    assert found.logged == (pytest.approx(done.mean()), done.max())
    told = found.describe_log()
    assert told.startswith("its rates by group and state for the 60 arms of today: ")
    assert told.endswith(f"the log has {done.mean():,.0f} on average, {done.max()} at most")
