"""Time in the model, as the fuzzer and a hostile reader met it: each test failed once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError, ModelError, PolicyError
from rmab.learning import Kl, Ucmd
from rmab.learning.components import PaperEstimator
from rmab.learning.index_learner import IndexLearner, Knowledge
from rmab.learning.pools import Pools
from rmab.model.registry import ADVERSARIES
from rmab.testing import check_adversary
from timed import rewards_of, timed_problem


def plain_task(episodes: int = 8) -> rmab.Task:
    return rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=5, episodes=episodes, seed=1)


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_timed_tasks_have_comparators_and_terms(seed: int) -> None:
    problem, _ = timed_problem(seed, 3, 3, 2, 5)
    run = rmab.run(rewards_of(problem, seed), "ucmd", seed=seed)
    o1, o2, o3 = (run.comparators.per_episode(which) for which in ("O1", "O2", "O3"))  # type: ignore[arg-type]
    assert o1.shape == o2.shape == o3.shape == (4,)
    gains = run.rewards[:, :, problem.phase_of]
    np.testing.assert_allclose(o1, np.einsum("nhsa,tnhsa->t", run.comparators.plan.occupancy, gains), atol=1e-9)
    assert o3.sum() >= o1.sum() - 1e-6
    np.testing.assert_allclose(run.terms().sum(axis=0), o1 - run.reward, atol=1e-9)
    assert np.isfinite(list(run.summary()["relative_regret"].values())).all()


def test_comparators_say_which_rewards_they_need() -> None:
    problem, reward = timed_problem(0, 3, 2, 2, 4)
    with pytest.raises(
        ModelError, match=r"shape \(T, N, K, S, 2\), where \(N, K, S, 2\) = \(3, 2, 2, 2\), got \(1, 3, 2, 2\)"
    ):
        rmab.runs.Comparators(problem, np.zeros((1, 3, 2, 2)))
    assert rmab.runs.Comparators(problem, reward[np.newaxis]).per_episode("O3").shape == (1,)


def test_budgets_of_no_step_are_refused() -> None:
    with pytest.raises(PolicyError, match="budget must be a number, or one per step, got an empty list"):
        rmab.IndexPolicy(np.ones((3, 2)), [])
    with pytest.raises(FeedbackError, match="budget must be a number, or one per step, got an empty list"):
        rmab.Feedback(0, np.zeros((1, 3)), np.zeros((0, 3)), np.full((3, 2, 2), np.nan), budget=[])


def test_more_phases_than_there_is_room_for_are_refused() -> None:
    wide = rmab.Arms(np.full((2, 300, 2, 300), 1 / 300))
    with pytest.raises(ModelError, match=r"2 arms of 300 states in 1000000 phases would need 2\.89 TB"):
        rmab.Problem(wide, 0, 1, 2, [0, 999_999])
    view = rewards_of(timed_problem(0)[0], 0).view()
    with pytest.raises(ModelError, match="phases must be at most 1000000, got 1000000000"):
        replace(view, phases=10**9)
    with pytest.raises(ModelError, match="in 1000000 phases would need"):
        replace(view, phases=10**6, states=3000, start=np.zeros(3, dtype=int), support=None)


def test_an_axis_of_one_phase_is_taken_everywhere() -> None:
    rng = np.random.default_rng(0)
    kernels, reward = rng.dirichlet(np.ones(2), size=(3, 1, 2, 2)), rng.random((3, 1, 2, 2))
    problem = rmab.Problem(rmab.Arms(kernels), 0, 1, 3, [0, 0, 0])
    assert rmab.solvers.solve_fluid(problem, reward).bound == rmab.solvers.solve_fluid(problem, reward[:, 0]).bound
    boxes = (kernels, kernels[:, 0])
    values = [
        rmab.solvers.solve_optimistic_fluid(low, low, pays, [0, 0, 0], 1, 3).value
        for low in boxes
        for pays in (reward, reward[:, 0])
    ]
    assert len(set(values)) == 1
    task = rmab.Task.from_rewards(problem, reward[np.newaxis], low=0, high=1)
    seen = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, rng)
    told = [rmab.Feedback.reveal(task.view(), 0, seen, one).rewards for one in (reward, reward[:, 0])]
    np.testing.assert_array_equal(*told)


def test_rewards_that_are_no_table_are_not_revealed() -> None:
    problem, reward = timed_problem(0)
    view = rewards_of(problem, 0).view()
    seen = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(0))
    wrong: tuple[Any, ...] = ([[1], [2, 3]], np.full(reward.shape, "x"), np.ma.masked_array(reward, True), None)
    for one in wrong:
        with pytest.raises(FeedbackError, match=r"^reward(: | must )"):
            rmab.Feedback.reveal(view, 0, seen, one)


def test_visits_by_phase_are_those_of_the_problem() -> None:
    problem, _ = timed_problem(0)
    model = rmab.RewardModel(np.ones((1, 3, 2, 2)), 0, 2)  # the same in both phases
    task = rmab.Task("flat", problem, rmab.make_adversary("adaptive", model, 3, np.random.default_rng(0)))
    visits = np.random.default_rng(1).integers(0, 5, size=(3, 2, 2, 2))
    paid = task.reward(1, visits)
    np.testing.assert_array_equal(paid[:, 0], task.adversary.reward(1, visits.sum(axis=1)))
    np.testing.assert_array_equal(paid[:, 0], paid[:, 1])
    for wrong in (np.zeros((3, 7, 2, 2)), [[1], [2, 3]], np.ma.masked_array(visits, True)):
        with pytest.raises(ModelError, match=r"^visits"):
            task.reward(1, wrong)


def test_a_state_whose_number_of_phases_is_a_list_is_refused(tmp_path: Path) -> None:
    task = plain_task()
    rmab.make_learner("thompson").begin(task.view()).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        kept = {name: archive[name] for name in archive.files}
    np.savez(tmp_path / "list.npz", **{**kept, "view_phases": np.array([1, 1])})
    with pytest.raises(ModelError, match="phases must be a whole number"):
        rmab.State.load(tmp_path / "list.npz")
    del kept["view_phases"]  # as files were before there were phases
    np.savez(tmp_path / "old.npz", **kept)
    assert rmab.State.load(tmp_path / "old.npz").view.phases == 1


def test_a_start_that_leaves_some_doubt_stays_one() -> None:
    arms = rmab.Arms(np.full((2, 2, 2, 2), 0.5))
    assert rmab.Problem(arms, [[1.0, 0.0], [0.0, 1.0]], 1, 2).start.tolist() == [0, 1]
    rare = rmab.Problem(arms, [[1.0, 1e-20], [0.0, 1.0]], 1, 2)
    assert rare.start.tolist() == [[1.0, 1e-20], [0.0, 1.0]]


def test_the_paper_s_estimate_of_a_short_episode_counts_its_own_steps() -> None:
    """min(r H / c + delta, 1), H the steps that were played: an arm that stays is seen to pay what it pays."""
    stay = np.broadcast_to(np.eye(2)[:, np.newaxis], (1, 2, 2, 2)) * 1.0
    task = rmab.Task.from_rewards(rmab.Problem(rmab.Arms(stay), 0, 0, 10), np.full((2, 1, 2, 2), 0.25), low=0, high=1)
    learner = Ucmd(estimator=PaperEstimator())
    assert learner.anywhere
    state = learner.begin(task.view())
    state = rmab.State(state.learner, state.view, 0, 0, {**state.arrays, "sets.counts": np.full((1, 2, 2, 2), 10**9)})
    told = rmab.Feedback.of_steps(task.view(), 0, np.zeros((5, 1)), np.zeros((4, 1)), np.full((4, 1), 0.25))
    assert learner.estimate(learner.learn(state, told))[0, 0, 0] == pytest.approx(0.25, abs=1e-3)  # type: ignore[index]


class Watching(Kl):
    """Sets that note for which horizon they are made."""

    seen: list[int] = []

    def around(self, pools: Pools, counts: Any, episode: int) -> Any:
        """Note it."""
        self.seen.append(pools.view.horizon)
        return super().around(pools, counts, episode)


def test_sets_do_not_shrink_where_a_plan_is_for_fewer_steps() -> None:
    learner = Ucmd(confidence=Watching())
    state = learner.begin(plain_task().view())
    Watching.seen.clear()
    assert learner.plan(state, start=[0, 1, 2, 0], horizon=1).policy.table.shape[1] == 1  # type: ignore[attr-defined]
    assert Watching.seen == [5]


class Noting(IndexLearner):
    """An index learner that keeps what it is told of horizons."""

    name = "noting"

    def prepare(self, known: Knowledge) -> Any:
        """Rank all alike."""
        sizes = np.array([known.task.horizon, known.pools.view.horizon])
        return {"table": np.ones((4, 3)) * sizes[0] + sizes[1] / 10, "estimate": known.means}


def test_index_learners_know_the_task_and_the_situation() -> None:
    learner = Noting()
    state = learner.begin(plain_task().view())
    policies = [learner.plan(state, horizon=steps).policy for steps in (None, 2)]
    assert [float(policy.table[0, 0]) for policy in policies] == [5.5, 5.2]  # type: ignore[attr-defined]


def test_exploration_does_not_end_sooner_where_episodes_are_short() -> None:
    learner, view = rmab.make_learner("restless-ucb"), plain_task().view()
    state = learner.begin(view)
    some = np.full(state.arrays["counts"].shape, 2)  # 6 visits of every pair: 12 are enough for H = 5, 4 for H = 1
    state = rmab.State(state.learner, view, 0, 1, {**state.arrays, "counts": some})
    assert learner.plan(state, horizon=1).policy.table.shape == (4, 3)  # type: ignore[attr-defined]
    done = rmab.State(state.learner, view, 0, 1, {**state.arrays, "counts": 2 * some})
    assert learner.plan(done, horizon=1).policy.table.shape == (4, 1, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ADVERSARIES)
def test_adversaries_with_phases_keep_the_contract(name: str) -> None:
    parts = np.random.default_rng(0).random((2, 4, 3, 2, 2)) * [0, 1]
    model = rmab.RewardModel(parts, 0, 4, units=[0, 0, 1, 1])
    check_adversary(rmab.make_adversary(name, model, 5, np.random.default_rng(1)))


def test_a_broken_adversary_with_phases_is_told_where() -> None:
    task = rewards_of(timed_problem(0)[0], 0)
    with pytest.raises(AssertionError, match=r"rewards: .*arm \d, phase \d, state \d, action \d is .*, outside \[0, 0\.5\]"):
        check_adversary(replace(task.adversary, low=0, high=0.5))


def test_the_command_line_plans_with_phases(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from rmab.cli import main

    problem, reward = timed_problem(3, 3, 2, 3, 5, budget=[1, 2, 0, 1, 3])
    problem.save(tmp_path / "p.json")
    for name, table in (("timed", reward), ("plain", reward[:, 0]), ("wrong", reward[:, :, 0])):
        np.save(tmp_path / f"{name}.npy", table)

    def planned(name: str) -> Any:
        words = ["plan", str(tmp_path / "p.json"), "--reward", str(tmp_path / f"{name}.npy"), "--json"]
        return CliRunner().invoke(main, words, prog_name="rmab")

    for name, table in (("timed", reward), ("plain", reward[:, 0])):
        done = planned(name)
        assert done.exit_code == 0, done.output
        assert f"{rmab.solvers.solve_fluid(problem, table).bound:.6g}"[:6] in done.output
    assert "(N, K, S, 2) = (3, 2, 3, 2), (N, S, 2) = (3, 3, 2) or (S, 2), got (3, 2, 2)" in planned("wrong").output


def test_the_least_gamma_that_may_be_asked_for_divides_nothing_by_zero() -> None:
    task, learner = plain_task(3), rmab.make_learner("dilated-po", preset="tuned", gamma=1e-12, bonus=1e6)
    with np.errstate(invalid="raise", divide="raise"):
        state = rmab.run(task, learner).state
    assert np.isfinite(state.arrays["losses"]).all()
