"""The small studies behind single sentences (studies/details.py, studies/inside.py): their tasks, learners and looks."""

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import rmab
from rmab.common.arrays import FloatArray
from rmab.study import run_study
from studies import Inline, small_study

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture
def details(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, imported for this test only."""
    monkeypatch.syspath_prepend(STUDIES)
    import details  # type: ignore[import-not-found]

    yield details
    for name in (one.stem for one in STUDIES.glob("*.py")):
        sys.modules.pop(name, None)


def test_the_tasks_of_details(details: Any) -> None:
    ours, library = details.halfway(episodes=5), rmab.make_task("turns", episodes=5, first=0.5)
    for t in range(5):
        np.testing.assert_array_equal(ours.reward(t), library.reward(t))
    assert [ours.reward(t)[:, 0, 1].tolist() for t in range(3)] == [[0.5, 0], [0, 1], [1, 0]]
    river = details.ferry(3, 50)
    np.testing.assert_allclose(river.problem.arms.kernels.sum(axis=3), 1.0)
    crossing = np.mean([river.reward(t)[0, 2, 1] for t in range(50)])
    assert crossing == pytest.approx(0.9, abs=0.05)
    turned = [details.halves(1, 8, every=2).reward(t)[:, 0, 1] for t in range(8)]
    np.testing.assert_array_equal(turned[0], turned[1])
    np.testing.assert_allclose(turned[0] + turned[2], turned[0][0] + turned[2][0])
    assert {float(one) for one in details.coins(0, 9).reward(4)[:, 0, 1]} <= {0.0, 1.0}
    wide, right = details.modest(2, 4, wider=1000.0), details.modest(2, 4)
    assert (wide.adversary.high, right.adversary.high) == (1000.0, 1.0)
    np.testing.assert_array_equal(wide.reward(1), right.reward(1))


@pytest.mark.parametrize("seed", [0, 1])
def test_declared_zeros_are_the_only_difference(details: Any, seed: int) -> None:
    """Where nothing is declared zero, weighing zeros or not is the same learner."""
    free, zero = rmab.make_task("two-way", episodes=9), rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=6, episodes=9)
    assert (free.view().passive_zero, zero.view().passive_zero) == (False, True)
    for name, other in (("uob-reps", details.UobRepsExact()), ("shifted-uc-o-reps", details.ShiftedAlike())):
        plans = [[rmab.run(game, one, seed).state.arrays["mass"] for one in (name, other)] for game in (free, zero)]
        np.testing.assert_array_equal(*plans[0])
        assert (plans[0][0].min(axis=3) < 0.5 * plans[0][0].max(axis=3)).any()  # something was learned at all
        assert np.abs(plans[1][0] - plans[1][1]).max() > 1e-3


COIN: list[FloatArray] = []


def quarters(game: rmab.Task, learner: Any) -> FloatArray:
    """Return how much the regret grows in each quarter of the episodes."""
    return np.diff(rmab.run(game, learner).regret("O2"), prepend=0.0).reshape(4, -1).sum(axis=1)


@pytest.mark.parametrize(
    ("name", "options", "most"),
    [
        ("uc-o-reps", {}, 0.3),
        ("ucpd", {}, 0.5),
        ("pdgd-ops", {}, 0.4),
        ("shifted-uc-o-reps", {}, 0.7),
        ("uob-reps", {}, 0.7),
        ("dilated-po", {"rate": 0.3, "gamma": 0.1, "bonus": 0.001}, 0.8),
    ],
)
def test_rivals_learn_where_what_is_done_decides_where_it_goes(
    details: Any, name: str, options: dict[str, Any], most: float
) -> None:
    """The slope of the accumulated regret in the last quarter is a fraction of that in the first, and far below a coin's."""
    game, learner = details.ferry(0, 800), rmab.make_learner(name, rule="at-most", **options)
    if not COIN:  # the same for all learners
        COIN.append(quarters(game, details.Coin()))
    parts, coin = quarters(game, learner), COIN[0]
    assert parts[-1] < most * parts[0], parts
    assert parts[-1] < 0.65 * coin[-1]


def test_the_highest_indices_are_late_at_any_length_where_no_plan_ties(details: Any) -> None:
    for episodes in (50, 130, 300):
        game = rmab.make_task("turns", episodes=episodes, first=0.5)
        lost = rmab.run(game, "ucmd-armab", feedback="full").regret("O2")[-1] / episodes / 5
        assert lost == pytest.approx(0.5, abs=2 / episodes)
        drawn = rmab.run(game, rmab.make_learner("ucmd-armab", rounding="dependent"), feedback="full")
        assert drawn.regret("O2")[-1] / episodes / 5 < 0.1


@pytest.fixture
def inside(details: Any) -> dict[str, Any]:
    """Return what studies/inside.py defines."""
    return runpy.run_path(str(STUDIES / "inside.py"))


def test_a_look_is_kept_with_its_version_and_not_taken_again(inside: dict[str, Any], tmp_path: Path) -> None:
    looked = list[int]()
    inside["LOOKS"].clear()
    inside["LOOKS"]["one"] = lambda seed: looked.append(seed) or {"value": 0.25 + seed / 2}
    inside["play"](tmp_path, 2)
    inside["play"](tmp_path, 2)
    kept = inside["Kept"].of(tmp_path / inside["FILE"])
    assert looked == [0, 1]
    assert len(kept.versions) == 1
    assert inside["values"](kept, "one")["value"].tolist() == [0.25, 0.75]
    assert "| value | 50.0 ± " in inside["table"](kept, "one")


def test_a_look_yields_every_episode_and_keeps_the_budget(inside: dict[str, Any]) -> None:
    game, player = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=3), rmab.make_learner("ucmd-armab")
    course = list(inside["played"](game, player, 0))
    assert [one.number for one in course] == [0, 1, 2]
    assert all(one.path.actions.sum(axis=1).max() <= 2 for one in course)
    first = player.plan(player.begin(game.view(), 0)).occupancy
    np.testing.assert_array_equal(course[0].plan.occupancy, first)


def test_what_is_watched_is_of_the_lp_that_is_played(inside: dict[str, Any]) -> None:
    game = rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=4)
    watched, plain = inside["Watched"](rewards="optimistic"), rmab.make_learner("rmab-ucrl", rewards="optimistic")
    for one, other in zip(inside["played"](game, watched, 0), inside["played"](game, plain, 0), strict=True):
        np.testing.assert_array_equal(one.path.actions, other.path.actions)
        price, ones, empty, best = one.state.arrays["watched"]
        mass = other.state.arrays["mass"][:, 0].sum(axis=2)  # a plan for ever is the same at all steps
        assert price >= 0
        assert ones == (other.state.arrays["estimate"] == 1.0).mean()
        assert empty == (mass <= 1e-9).mean()
        assert 0 <= best <= 1


def test_how_far_the_paper_s_estimator_is_off() -> None:
    """The factor H E[1 / c | c > 0] of a pair that is visited c times, binomial: 1.1 at 9 of 10 steps, 25 at 1 of 20."""
    visits = np.arange(1, 51)
    for chance, factor in ((0.9, 1.114), (0.05, 24.9)):
        weights = binom.pmf(visits, 50, chance)
        assert 50 * (weights / visits).sum() / weights.sum() == pytest.approx(factor, rel=0.01)


def test_runs_are_played_again_and_compared(
    details: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    again = runpy.run_path(str(STUDIES / "again.py"))
    run_study(small_study(3), tmp_path / "small", engine=Inline())
    runs = again["finished"](tmp_path / "small")
    assert len(runs) == 6
    assert {job.learner.label for job, _ in again["sample"](runs, 2)} == {"random", "ucmd"}
    assert len({job.id for job, _ in again["sample"](runs, 99)}) == 6
    assert again["compared"](tmp_path / "small", 4) == 0
    assert "small: 4 of 4 runs of revision " in capsys.readouterr().out
    (_, one), (_, other) = runs[0], runs[2]
    assert again["difference"](one, one) == ""
    assert again["difference"](one, other).startswith("id, episode 0: ")
    for name, size, said in (
        ("bound", 1e-15, ""),
        ("bound", 1e-6, "bound, episode 1: "),
        ("reward", 1e-15, "reward, episode 1: "),
    ):
        values = one[name].to_pylist()
        values[1] *= 1 + size
        changed = one.set_column(one.column_names.index(name), one.schema.field(name), [values])
        assert again["difference"](one, changed)[: len(said) or None] == said


def test_results_of_another_program_are_refused(inside: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / inside["FILE"]
    path.write_text('{"uc-whittle": [1.0]}')
    with pytest.raises(rmab.errors.FileError, match=r"is no file of results \(KeyError\): remove it"):
        inside["Kept"].of(path)
    path.write_text('{"source": "other", "versions": [], "found": {}}')
    with pytest.raises(rmab.errors.FileError, match=r"was made by another inside\.py than there is now: remove it"):
        inside["Kept"].of(path)
    path.unlink()
    kept = inside["Kept"].of(path)
    assert not kept.whole(["cpap"])
    kept.found.update(cpap=[1], plans=[])
    assert kept.whole(["cpap"])
    assert not kept.whole(["cpap", "plans"])


def test_nothing_to_play_again_is_an_error(details: Any, tmp_path: Path) -> None:
    again = runpy.run_path(str(STUDIES / "again.py"))
    run_study(small_study(1), tmp_path / "small", engine=Inline())
    for shard in (tmp_path / "small" / "runs").iterdir():
        shard.unlink()
    with pytest.raises(rmab.errors.StudyError, match="no run is finished"):
        again["compared"](tmp_path / "small", 4)
