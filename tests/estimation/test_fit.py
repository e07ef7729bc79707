"""Fits: counts, shrinkage, clusters, rewards, where everybody is, and files."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

import rmab
from logs import HEADER, mothers, read, table
from rmab.data import Fit
from rmab.estimation.shrinkage import Levels, draw_rows, shrink
from rmab.estimation.strength import draw_strengths, strengths


def truth_of(fitted: Fit, **options: object) -> np.ndarray:
    """The true kernels of the arms of an example, in the order of the log."""
    truth = rmab.data.example_truth("mothers", **options)  # type: ignore[arg-type]
    return truth.kernels[[int(one[1:]) - 1 for one in fitted.log.arms]]


def test_counts_equal_a_groupby_of_pandas() -> None:
    frame = rmab.data.example_log("mothers", arms=150, weeks=25, seed=3).to_pandas()
    fitted = rmab.data.fit(read(frame, groups=["age", "district"]))
    weeks = {label: k for k, label in enumerate(sorted(frame.week.unique()))}
    frame["at"] = frame.week.map(weeks)
    later = frame.assign(at=frame["at"] - 1)[["id", "at", "state"]]
    both = frame.merge(later, on=["id", "at"], suffixes=("", "_after"))
    both = both[both.called != ""]
    expected = both.groupby(["age", "district", "state", "called", "state_after"]).size()
    assert expected.sum() == fitted.counts.sum()
    names = fitted.state_names
    for g, s, a, y in np.ndindex(fitted.counts.shape):
        age, district = fitted.groups[g].split(", ")
        key = (age, district, names[s], "yes" if a else "no", names[y])
        assert fitted.counts[g, s, a, y] == expected.get(key, 0), key


def test_kernels_are_recovered_at_the_expected_rate() -> None:
    """Four times as many arms halve the error, up to luck; and the error is what multinomial counts have."""
    errors, expected = [], []
    for arms in (500, 2000, 8000):
        fitted = mothers(arms, 40, seed=5)
        gap = (fitted.kernels[fitted.group_of] - truth_of(fitted, arms=arms, seed=5))[:, :, 0]
        weight = fitted.counts.sum(axis=3)[fitted.group_of][:, :, 0, np.newaxis]
        errors.append(float(np.sqrt((weight * gap**2).sum() / weight.sum() / 3)))
        real = truth_of(fitted, arms=arms, seed=5)[:, :, 0]
        visits = np.maximum(weight, 1)
        expected.append(float(np.sqrt((weight * real * (1 - real) / visits).sum() / weight.sum() / 3)))
    assert errors[0] > 1.4 * errors[1] > 1.4**2 * errors[2]
    for error, most in zip(errors, expected, strict=True):
        assert 0.4 * most < error < 1.3 * most  # shrinkage makes it smaller than that of plain counts


def likelihood(m: float, counts: np.ndarray, centre: np.ndarray) -> float:
    """The marginal likelihood of one row, written down term by term."""
    total = 0.0
    for own in counts:
        total += gammaln(m) - gammaln(m + own.sum())
        total += sum(gammaln(m * q + c) - gammaln(m * q) for q, c in zip(centre, own, strict=True))
    return total


def test_strengths_are_where_the_marginal_likelihood_is_largest() -> None:
    rng = np.random.default_rng(0)
    centre = np.array([0.2, 0.3, 0.5])
    for strength in (3.0, 30.0, 300.0):
        rows = rng.dirichlet(strength * centre, size=40)
        counts = np.stack(
            [rng.multinomial(int(n), row) for n, row in zip(rng.integers(5, 400, 40), rows, strict=True)]
        ).astype(float)
        shaped = counts[:, np.newaxis, np.newaxis].repeat(2, axis=2).repeat(3, axis=1)
        found = strengths(shaped, np.broadcast_to(centre, shaped.shape))
        assert np.ptp(found) == 0
        best = minimize_scalar(lambda x: -likelihood(np.exp(x), counts, centre), bounds=(-2, 12), method="bounded")  # noqa: B023
        assert abs(np.log(found[0, 0]) - best.x) < 0.01
        assert likelihood(found[0, 0], counts, centre) > -best.fun - 1e-3
        assert strength / 2.5 < found[0, 0] < 2.5 * strength


def test_strengths_are_found_where_a_prior_is_all_but_impossible() -> None:
    counts = np.array([[[[5.0, 0.0], [3.0, 1.0]]] * 2] * 3)
    for tiny in (1e-320, 1e-200, 0.0):
        centre = np.broadcast_to([1.0 - tiny, tiny], counts.shape).copy()
        centre[..., 1, :] = 0.5
        assert np.isfinite(strengths(counts, centre)).all()
        assert np.isfinite(draw_strengths(counts, centre, np.random.default_rng(0))).all()


def test_groups_that_do_not_differ_are_pooled_and_others_are_not() -> None:
    rng = np.random.default_rng(1)
    levels = Levels.of(np.arange(30)[:, np.newaxis])[0]
    row = np.array([0.7, 0.3])
    same = rng.multinomial(200, row, size=(30, 2, 2)).astype(float)
    assert np.abs(shrink(same, levels).kernels - shrink(same, levels).pooled).max() < 0.03
    apart = np.stack([rng.multinomial(2000, [p, 1 - p], size=(2, 2)) for p in np.linspace(0.05, 0.95, 30)]).astype(float)
    own = apart / apart.sum(axis=3, keepdims=True)
    assert np.abs(shrink(apart, levels).kernels - own)[:, :, 0].max() < 0.01


def test_shrinkage_beats_both_extremes_on_held_out_weeks_of_groups_of_mixed_sizes() -> None:
    rng = np.random.default_rng(2)
    wins = np.zeros(2)
    for _ in range(20):
        sizes = np.array([5, 8, 12, 20, 30, 60, 200, 1000, 4000])
        kernels = rng.dirichlet(12 * np.array([0.5, 0.3, 0.2]), size=(sizes.size, 3, 2))
        draw = [[[rng.multinomial(n, kernels[g, s, a]) for a in (0, 1)] for s in range(3)] for g, n in enumerate(sizes)]
        counts = np.array(draw, dtype=float)
        levels = Levels.of(np.arange(sizes.size)[:, np.newaxis])[0]
        found = shrink(counts, levels)
        own = (counts + 1 / 3) / (counts.sum(axis=3, keepdims=True) + 1)  # no pooling, but no zeros either
        scores = [
            float((kernels * np.log(one)).sum(axis=3).mean()) for one in (found.kernels, own, found.pooled[np.newaxis])
        ]
        wins += [scores[0] > scores[1], scores[0] > scores[2]]
    assert wins.tolist() == [20, 20]


def test_a_group_without_transitions_takes_what_its_columns_say() -> None:
    rows = []
    rng = np.random.default_rng(0)
    for n in range(120):
        age, district = ("old", "young")[n % 2], ("a", "b", "c")[n % 3]
        stay = 0.9 if age == "old" else 0.2
        state = 0
        for week in range(20):
            rows.append((f"n{n}", week, f"s{state}", 0, age, district))
            state = state if rng.random() < stay else 1 - state
    rows += [("new", 19, "s0", 0, "young", "d")]  # a group without any transition
    fitted = rmab.data.fit(read(table(*rows, names=HEADER + ",age,district"), groups=["age", "district"]), reward={"s1": 1})
    group = fitted.groups.index("young, d")
    young = [k for k, name in enumerate(fitted.groups) if name.startswith("young") and k != group]
    assert abs(fitted.kernels[group, 0, 0, 0] - 0.2) < 0.05
    assert abs(fitted.kernels[group, 0, 0, 0] - fitted.kernels[young, 0, 0, 0].mean()) < 0.03
    assert fitted.rows.strength.shape == (4, 2, 2)  # everybody, both columns, and the groups


def test_one_group_is_its_counts_with_one_visit_of_evenness_and_no_effect_for_calls() -> None:
    fitted = mothers(100, 20, groups=())
    assert fitted.groups == ("everybody",)
    counts, rows = fitted.counts[0], fitted.kernels[0]
    visits = counts.sum(axis=2, keepdims=True)
    assert np.allclose(rows[:, 0], (counts[:, 0] + 1 / 3) / (visits[:, 0] + 1))
    tilt = rows[:, 1] / rows[:, 0]
    tilt = tilt / tilt[:, :1]
    if (
        fitted.rows.strength[0, 0, 1] > 1e4
    ):  # all states have the effect in common: it explains what calls led to, but for 2 visits
        assert np.allclose(tilt, tilt[0], rtol=0.02)
        expected = (visits[:, 1] * rows[:, 1]).sum(axis=0)
        assert np.allclose(expected, counts[:, 1].sum(axis=0), atol=2)


def tilted(base: np.ndarray, effect: float) -> np.ndarray:
    """Rows (G, 3, 3) of groups with these baselines, and an effect, both in logits."""
    rows = np.exp(-1.3 * abs(np.subtract.outer(np.arange(3), np.arange(3))) + np.arange(3) * (base[:, None, None] + effect))
    return rows / rows.sum(axis=2, keepdims=True)


def draw_counts(base: np.ndarray, effect: float, visits: tuple[int, int], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    both = [rng.multinomial(n, tilted(base, e)) for n, e in zip(visits, (0.0, effect), strict=True)]
    return np.stack(both, axis=2).astype(float)


def test_groups_that_differ_in_level_alone_show_no_effects() -> None:
    """Ten groups from bad to good, a call changes nothing, and each was called five times in a state, or never."""
    base = np.linspace(-1.5, 1.5, 10)
    counts = draw_counts(base, 0.0, (120, 5))
    counts[3, :, 1] = 0.0
    levels = Levels.of(np.arange(10)[:, np.newaxis])[0]
    for one in (counts, counts[:, :, ::-1]):  # actions may be the common thing, and their absence rare
        kernels = shrink(one, levels).kernels
        assert np.abs(kernels[:, :, 1] - kernels[:, :, 0]).max() < 0.1
    rng = np.random.default_rng(0)
    drawn = np.stack([draw_rows(counts, shrink(counts, levels), levels, rng, counts) for _ in range(60)])
    rise = (drawn[:, :, :, 1] - drawn[:, :, :, 0])[..., 2].mean(axis=(1, 2))
    assert np.quantile(rise, 0.025) < 0 < np.quantile(rise, 0.975)


def test_a_common_effect_is_found_in_groups_of_all_levels_and_given_to_those_never_called() -> None:
    base = np.linspace(-1.5, 1.5, 10)
    counts = draw_counts(base, 0.7, (2000, 300))
    counts[3, :, 1] = 0.0
    kernels = shrink(counts, Levels.of(np.arange(10)[:, np.newaxis])[0]).kernels
    assert np.abs(kernels[:, :, 0] - tilted(base, 0.0)).max() < 0.04
    assert np.abs(kernels[:, :, 1] - tilted(base, 0.7)).max() < 0.1


def test_groups_that_do_badly_are_expected_to_do_so_in_states_in_which_they_are_hardly_ever_seen() -> None:
    """Few records of the best state are of groups that do badly: their rows are not those of groups that do well."""
    rng, base = np.random.default_rng(0), np.linspace(-1.5, 1.5, 24)
    rows = tilted(base, 0.0)
    visits = np.stack([np.full(24, 100), np.full(24, 60), np.where(base < 0, 2, 150)], axis=1)
    counts = np.zeros((24, 3, 2, 3))
    counts[:, :, 0] = rng.multinomial(visits, rows)
    levels = Levels.of(np.arange(24)[:, np.newaxis])[0]
    found = shrink(counts, levels)
    bad = base < -0.7
    assert abs((found.kernels[:, 2, 0] - rows[:, 2])[bad, 2].mean()) < 0.04
    drawn = np.stack([draw_rows(counts, found, levels, rng, seen)[bad, 2, 0, 2].mean() for seen in (counts, None) * 20])
    assert abs(drawn - rows[bad, 2, 2].mean()).max() < 0.15


def test_states_in_which_most_are_called_have_the_effect_in_common() -> None:
    """The worst state is called at 90%, others at 5%: what is estimated there is the effect of no call, the inverse."""
    rng, levels = np.random.default_rng(0), Levels.of(np.zeros((1, 0), dtype=np.int64))[0]
    rows = np.stack([tilted(np.zeros(1), effect)[0] for effect in (0.0, 0.7)], axis=1)
    visits = np.array([[30, 270], [285, 15], [285, 15]])
    found = [shrink(rng.multinomial(visits, rows)[np.newaxis].astype(float), levels).kernels[0] for _ in range(100)]
    effect = np.mean([one[:, 1, 2] - one[:, 0, 2] for one in found], axis=0)
    assert (effect > 0.75 * (rows[:, 1, 2] - rows[:, 0, 2])).all()


def test_crossed_columns_add_up_and_their_order_does_not_matter() -> None:
    """A cell that was never seen has the levels of its row and its column; columns may come in any order."""
    rng = np.random.default_rng(1)
    frame = rmab.data.example_log("mothers", arms=200, weeks=25, seed=3)
    one, other = (mothers(200, 25, 3, groups=groups) for groups in (("age", "district"), ("district", "age")))
    assert one.groups[0].split(", ")[::-1] == other.groups[0].split(", ")
    assert np.array_equal(one.kernels, other.kernels)
    assert rmab.data.decide(one, 20).ids == rmab.data.decide(other, 20).ids
    assert frame.num_rows
    rows, columns = np.repeat(np.arange(5), 6), np.tile(np.arange(6), 5)
    base = np.linspace(-1, 1, 5)[rows] + rng.permutation(np.linspace(-1, 1, 6))[columns]
    counts = draw_counts(base, 0.0, (1000, 20))
    counts[7] = 0.0
    levels = Levels.of(np.column_stack([rows, columns]))[0]
    assert levels.nodes.shape == (3, 30)
    assert np.abs(shrink(counts, levels).kernels[7, :, 0] - tilted(base, 0.0)[7]).max() < 0.08


def test_what_was_never_seen_is_said_and_no_effect_is_invented() -> None:
    rows = [(f"n{k}", week, "xy"[(k + week) % 2], 0) for k in range(10) for week in range(10)]
    fitted = rmab.data.fit(read(table(*rows)), reward={"x": 1})
    assert np.array_equal(fitted.kernels[:, :, 0], fitted.kernels[:, :, 1])
    told = [str(one) for one in fitted.notes]
    assert "the log has no call in 'x': its effect there is assumed to be zero" in told
    calls = rmab.data.decide(fitted, 3)
    assert not calls.active.any()
    assert calls.notes[1:] == (
        "0 of 3 places are used: a call is not known to help anybody else",
        "the log has no call in 'x', 'y': its effect there is assumed to be zero",
        "standing: not shown; the log does not show that a call helps (too few records can be compared); the reasons and "
        "the index are the model's estimates",
    )
    with pytest.raises(rmab.errors.ModelError, match="the effect of a call is unknown"):
        rmab.data.evaluate(fitted, 3)
    with pytest.raises(rmab.errors.ModelError, match="name the good state"):
        rmab.data.fit(read(table(*rows)))
    stuck = rmab.data.fit(read(table(("a", 1, "x", 1), ("a", 2, "y", 0)), states=["x", "y", "z"]))
    assert np.array_equal(stuck.kernels[0, 2], np.eye(3)[[2, 2]])
    assert any("no arm was ever seen leaving 'z'" in str(one) for one in stuck.notes)


def test_rows_are_distributions_whatever_was_seen() -> None:
    rng = np.random.default_rng(0)
    levels = Levels.of(np.array([[0, 0], [0, 1], [1, 0], [2, 1]]))[0]
    for _ in range(50):
        counts = (rng.integers(0, 3, (4, 3, 2, 3)) * (rng.random((4, 3, 2, 1)) < 0.4)).astype(float)
        found = shrink(counts, levels)
        drawn = draw_rows(counts * rng.exponential(), found, levels, rng, counts)
        for rows in (found.kernels, found.pooled, drawn):
            assert np.allclose(rows.sum(axis=-1), 1)
        assert np.array_equal(found.unseen, counts.sum(axis=(0, 3)) == 0)


# --- rewards


def test_declared_assumed_and_learned_rewards() -> None:
    fitted = mothers(300, 30, reward={"engaged": 1})
    assert fitted.pay.unit == "weeks engaged"
    log = read(rmab.data.example_log("mothers", arms=300, weeks=30))
    guessed = rmab.data.fit(log)
    assert guessed.log.state_names[guessed.pay.goal] == "engaged"
    assert any("no reward was given: a week in 'engaged' has reward 1" in str(one) for one in guessed.notes)
    points = rmab.data.fit(log, reward={"engaged": 3, "wavering": 1})
    assert points.pay.unit == "points"
    assert points.pay.table[0, :, 0].tolist() == [3.0, 0.0, 1.0]
    for wrong in ({"engagd": 1}, {}, {"engaged": "x"}, {"engaged": 0}, {"engaged": float("nan")}, "engaged"):
        with pytest.raises(rmab.errors.ModelError, match="reward"):
            rmab.data.fit(log, reward=wrong)


def test_learned_rewards_are_means_shrunk_by_groups() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in range(60):
        group = "ab"[n % 2] if n < 58 else "c"
        for week in range(30):
            state, called = int(rng.integers(2)), int(rng.integers(2))
            pay = 2.0 * state - 0.5 * called + (1.0 if group == "a" else 0.0) + rng.normal(0, 0.1)
            rows.append((f"n{n}", week, f"s{state}", called, group, pay))
    log = read(table(*rows, names=HEADER + ",group,pay"), groups=["group"], reward="pay")
    found = rmab.data.fit(log).pay
    assert found.kind == "learned"
    assert np.allclose(found.table[0], [[1.0, 0.5], [3.0, 2.5]], atol=0.05)
    assert np.allclose(found.table[1], [[0.0, -0.5], [2.0, 1.5]], atol=0.05)


# --- where everybody is


def test_the_start_is_the_last_state_where_the_last_week_has_no_actions_yet() -> None:
    rows = [("a", 1, "x", 0), ("a", 2, "y", 1), ("a", 3, "y", None), ("b", 1, "y", 0), ("b", 2, "x", 0), ("b", 3, "x", None)]
    fitted = rmab.data.fit(read(table(*rows)), reward={"y": 1})
    now = fitted.situation
    assert (now.label, now.period) == ("3", 2)
    assert fitted.start.tolist() == [1, 0]
    assert now.streak.tolist() == [2, 2]
    assert now.acted_before.tolist() == [1, 3]
    assert now.never.tolist() == [0, 1]


def test_where_actions_are_recorded_the_next_period_is_planned_from_a_belief() -> None:
    rows = [("a", 1, "x", 0), ("a", 2, "y", 1), ("a", 3, "y", 1), ("b", 1, "y", 0), ("b", 2, "x", 0), ("b", 3, "x", 0)]
    fitted = rmab.data.fit(read(table(*rows)), reward={"y": 1})
    assert fitted.situation.label == "4"
    assert np.allclose(fitted.start, [fitted.kernels[0, 1, 1], fitted.kernels[0, 0, 0]])


def test_a_missing_state_is_a_belief_carried_by_the_kernels() -> None:
    fitted = mothers(400, 30, seed=2)
    now, log = fitted.situation, fitted.log
    seen = now.seen_before == 0
    assert (now.belief[seen].max(axis=1) == 1).all()
    assert np.array_equal(now.belief[seen].argmax(axis=1), now.state[seen])
    n = int(np.flatnonzero(now.seen_before == 2)[0])
    row = np.flatnonzero((log.arm_of == n) & (log.state >= 0))[-1]
    known = (log.state >= 0) & (log.action >= 0)
    rate = np.array([log.action[known & (log.state == s)].mean() for s in range(3)])[:, np.newaxis]
    kernel = fitted.kernels[fitted.group_of[n]]
    drift = (1 - rate) * kernel[:, 0] + rate * kernel[:, 1]
    assert np.allclose(now.belief[n], kernel[log.state[row], log.action[row]] @ drift)


def test_arms_that_have_left_are_left_out() -> None:
    rows = [(f"n{k}", week, "xy"[week % 2], week % 3 == 0) for k in range(5) for week in range(30) if k or week < 10]
    log = read(table(*rows))
    assert any(
        "1 arm whose last record is more than 2 weeks before the next list is taken to have left" in str(one)
        for one in rmab.data.fit(log, reward={"y": 1}).notes
    )
    for limit in (None, 5):
        fitted = rmab.data.fit(log, reward={"y": 1}, gone_after=limit)
        assert fitted.ids == ("n1", "n2", "n3", "n4")
        problem = fitted.problem(2, 4)
        assert problem.arms.count == 4
        assert problem.arms.state_names == ("x", "y", "(left)")
        assert fitted.reward.shape == (4, 3, 2)
    assert rmab.data.fit(log, reward={"y": 1}, gone_after=40).present.size == 5
    with pytest.raises(rmab.errors.ModelError, match="gone_after must be at least 1"):
        rmab.data.fit(log, reward={"y": 1}, gone_after=0)


def test_a_log_without_change_is_refused() -> None:
    with pytest.raises(rmab.errors.ModelError, match="the log shows no change"):
        rmab.data.fit(read(table(("a", 1, "x", 0), ("b", 1, "y", 1))))
    with pytest.raises(rmab.errors.ModelError, match="only one state, 'x'"):
        rmab.data.fit(read(table(("a", 1, "x", 0), ("a", 2, "x", 1))))
    with pytest.raises(rmab.errors.ModelError, match="log must be a Log"):
        rmab.data.fit("log.csv")  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_model_is_kept_in_a_file(tmp_path, suffix: str) -> None:
    for fitted in (mothers(60, 12), mothers(60, 12, groups=(), clusters=2, gone_after=4)):
        path = tmp_path / f"model{suffix}"
        fitted.save(path)
        again = Fit.load(path)
        assert again.groups == fitted.groups
        assert again.ids == fitted.ids
        assert [str(one) for one in again.notes] == [str(one) for one in fitted.notes]
        for name in ("kernels", "counts", "group_of", "start", "reward"):
            assert np.array_equal(getattr(again, name), getattr(fitted, name)), name
        assert rmab.data.decide(again, 5).rows(3) == rmab.data.decide(fitted, 5).rows(3)
        for name in ("state", "streak", "acted_before"):
            assert np.array_equal(getattr(again.situation, name), getattr(fitted.situation, name)), name


def test_files_that_are_no_models_are_refused(tmp_path) -> None:
    rmab.make_task("cpap").problem.save(tmp_path / "problem.npz")
    with pytest.raises(rmab.errors.FileError, match="contains a problem, not a model fitted to a log"):
        Fit.load(tmp_path / "problem.npz")
    mothers(40, 8).save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"format": 3', '"format": 99'))
    with pytest.raises(rmab.errors.FileError, match="written by a newer rmab"):
        Fit.load(tmp_path / "model.json")


def test_arms_of_groups_are_those_of_arms() -> None:
    rng = np.random.default_rng(0)
    kernels, groups = rng.dirichlet(np.ones(3), size=(4, 3, 2)), np.array([0, 1, 1, 3, 2, 0])
    made = rmab.Arms.of_groups(kernels, groups, state_names=["a", "b", "c"])
    assert np.array_equal(made.kernels, kernels[groups])
    assert np.array_equal(made.group_of, groups)
    assert made.state_names == ("a", "b", "c")
    for wrong in ([0, 1, 2], [0, 1, 2, 4], [[0, 1, 2, 3]], [0.5, 1.2, 2, 3.9]):
        with pytest.raises(rmab.errors.ModelError, match="groups must be numbers"):
            rmab.Arms.of_groups(kernels, wrong)
