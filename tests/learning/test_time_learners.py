"""Learners on timed tasks, from any start, under any budget: contracts, counts by hand, and programmes that go on."""

from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import FeedbackError, ModelError
from rmab.learning.pools import Pools
from rmab.testing import check_learner
from timed import rewards_of, timed_problem

TIMELESS = {"rmab-ucrl": {"version": "finite"}, "colored-ucrl2": None, "uc-whittle": None, "q-whittle": None}
PLAYS = [name for name in rmab.list_learners() if TIMELESS.get(name, {}) is not None]
ANYWHERE = ["ucmd", "rmab-ucrl", "r2mab-ucb", "thompson", "uc-whittle", "q-whittle", "restless-ucb", "random"]


def made(name: str) -> rmab.Learner:
    return rmab.make_learner(name, **(TIMELESS.get(name) or {}))


def timed_task(seed: int = 0, **changes: Any) -> rmab.Task:
    problem, _ = timed_problem(seed, 5, 3, 3, 6, groups=None, **{"budget": [2, 1, 2, 3, 0, 2], **changes})
    return rewards_of(problem, seed)


@pytest.mark.parametrize("name", PLAYS)
def test_every_learner_that_plans_steps_keeps_the_contract_on_a_timed_task(name: str) -> None:
    check_learner(made(name), timed_task(), episodes=3)


@pytest.mark.parametrize("name", [name for name in PLAYS if name != "random"])
def test_timed_groups_that_are_paid_alike_share_what_is_learned(name: str) -> None:
    rng = np.random.default_rng(2)
    kernels = rng.dirichlet(np.ones(2), size=(2, 2, 2, 2))[[0, 1, 0, 1]]
    problem = rmab.Problem(rmab.Arms(kernels, groups=[0, 1, 0, 1]), 0, 2, 4, [0, 1, 1, 0])
    rewards = rng.uniform(size=(3, 2, 2, 2, 2))[:, [0, 1, 0, 1]]
    task = rmab.Task.from_rewards(problem, rewards, low=0, high=1)
    assert task.view().pooled_rewards
    run = rmab.run(task, made(name), seed=1)
    assert np.isfinite(run.reward).all()
    if run.estimates is not None:
        np.testing.assert_array_equal(run.estimates[:, 0], run.estimates[:, 2])


@pytest.mark.parametrize("name", ["colored-ucrl2", "uc-whittle", "q-whittle", "rmab-ucrl"])
def test_what_plans_for_ever_refuses_phases(name: str) -> None:
    with pytest.raises(ModelError, match=f"^{name} .*(phases|one phase)"):
        rmab.make_learner(name).begin(timed_task().view())


@pytest.mark.parametrize("name", ["rmab-ucrl", "colored-ucrl2"])
def test_one_budget_for_all_steps_is_needed_by_some(name: str) -> None:
    problem = rmab.Problem(rmab.Arms(np.full((3, 2, 2, 2), 0.5)), 0, [1, 2, 1], 3)
    with pytest.raises(ModelError, match=f"^{name} .*one budget"):
        rmab.make_learner(name).begin(rmab.Task.from_rewards(problem, np.zeros((2, 3, 2, 2)), low=0, high=1).view())


def test_counts_and_values_go_to_their_phase() -> None:
    problem = rmab.Problem(rmab.Arms(np.full((2, 2, 2, 2, 2), 0.5), groups=[0, 0]), [0, 1], 1, 3, [1, 0, 1])
    task = rmab.Task.from_rewards(problem, np.zeros((1, 2, 2, 2, 2)), low=0, high=10)
    view = task.view()
    rewards = np.full((2, 2, 2, 2), np.nan)
    rewards[0, 1, 0, 1] = rewards[1, 1, 0, 1] = 5.0  # phase 1, state 0, active; the arms are paid alike
    rewards[0, 1, 0, 0] = rewards[1, 1, 0, 0] = 2.0
    rewards[1, 1, 1, 0] = rewards[0, 1, 1, 0] = 1.0
    rewards[0, 0, 1, 0] = rewards[1, 0, 1, 0] = 4.0
    rewards[0, 0, 0, 1] = rewards[1, 0, 0, 1] = 3.0
    states, actions = [[0, 1], [1, 0], [0, 1], [0, 0]], [[1, 0], [0, 1], [0, 0]]
    shown = [(0, 1, 0, 1), (1, 1, 1, 0), (0, 0, 1, 0), (1, 0, 0, 1), (0, 1, 0, 0)]
    given = np.full(rewards.shape, np.nan)
    for at in shown:
        given[at] = rewards[at]
    feedback = rmab.Feedback(0, states, actions, given)
    feedback.check(view, 0)
    pools = Pools.of(view)
    seen = pools.observe(feedback)
    assert seen.counts.shape == (2, 2, 2, 2)  # one group, two phases
    assert seen.counts.sum() == 6
    assert seen.counts[1, 0, 1, 1] == 1  # step 0, phase 1: arm 0 goes from 0 to 1, active
    assert seen.counts[1, 1, 0, 0] == 2  # and arm 1 from 1 to 0, passive; once more at step 2
    assert seen.counts[0, 1, 0, 0] == 1  # step 1, phase 0: arm 0
    assert seen.counts[0, 0, 1, 1] == 1
    assert seen.counts[1, 0, 0, 0] == 1  # step 2, phase 1: arm 0
    assert seen.values[1, 0, 1] == 0.5
    assert seen.values[0, 1, 0] == 0.4
    assert np.isnan(seen.values[0, 0, 0])
    lost, more = given.copy(), given.copy()
    lost[1, 0, 0, 1], more[1, 0, 0, 0] = np.nan, 1.0
    less, most = rmab.Feedback(0, states, actions, lost), rmab.Feedback(0, states, actions, more)
    with pytest.raises(FeedbackError, match="arm 1, phase 0, state 0, action 1 was visited, but its reward is missing"):
        less.check(view, 0)
    with pytest.raises(FeedbackError, match="arm 1, phase 0, state 0, action 0 is not revealed"):
        most.check(view, 0)


def test_one_phase_that_is_declared_changes_no_byte() -> None:
    plain = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=6, episodes=3, seed=3)
    own = plain.problem
    spelled = rmab.Problem(own.arms, own.start_masses, [2] * 6, 6, [0] * 6)
    rewards = np.stack([plain.reward(t) for t in range(3)])
    for name in ("ucmd", "thompson"):
        runs = [
            rmab.run(rmab.Task.from_rewards(problem, rewards, low=0, high=10), name, seed=5) for problem in (own, spelled)
        ]
        assert runs[0].reward.tobytes() == runs[1].reward.tobytes()
        assert all(
            runs[0].state.arrays[key].tobytes() == runs[1].state.arrays[key].tobytes() for key in runs[0].state.arrays
        )


def played(learner: rmab.Learner, task: rmab.Task, episodes: int = 2) -> rmab.State:
    """Return the state after some episodes from the view's start."""
    state = learner.begin(task.view(), 7)
    for t in range(episodes):
        reward = task.reward(t)
        trajectory = rmab.simulate(task.problem, learner.plan(state).policy, reward, np.random.default_rng(t))
        state = learner.learn(state, rmab.Feedback.reveal(task.view(), t, trajectory, reward))
    return state


def plain_task(episodes: int = 12) -> rmab.Task:
    return rmab.make_task("cpap@noisy", arms=6, budget=2, horizon=5, episodes=episodes, seed=1)


@pytest.mark.parametrize("name", ANYWHERE)
def test_the_views_own_situation_spelled_out_is_the_same_plan(name: str) -> None:
    learner, task = rmab.make_learner(name), plain_task()
    state, view = played(learner, task), task.view()
    one = learner.plan(state)
    other = learner.plan(state, start=view.start, budget=view.budget, horizon=view.horizon)
    wanted, found = one.policy.table, other.policy.table
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_plan_is_for_the_situation_at_hand(name: str) -> None:
    learner, task = made(name), plain_task()
    for state in (learner.begin(task.view(), 3), played(learner, task)):
        kept = {key: array.copy() for key, array in state.arrays.items()}
        plan = learner.plan(state, start=[0, 1, 2, 2, 1, 0], budget=[1, 3, 0], horizon=3)
        problem = rmab.Problem(task.problem.arms, [0, 1, 2, 2, 1, 0], [1, 3, 0], 3)
        trajectory = rmab.simulate(problem, plan.policy, task.reward(0), np.random.default_rng(0))
        assert trajectory.actions.sum(axis=1).tolist() <= [1, 3, 0]
        if plan.occupancy is not None:
            mass = plan.occupancy[plan.block_of]
            np.testing.assert_allclose(mass[np.arange(6), 0, [0, 1, 2, 2, 1, 0]].sum(axis=1), 1.0, atol=1e-6)
            assert mass.shape[1] == 3
        assert all(np.array_equal(kept[key], state.arrays[key]) for key in kept)


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_programme_goes_on_where_it_stopped(name: str) -> None:
    """One call per period: plan from where the arms are, play, learn."""
    learner, task = rmab.make_learner(name), plain_task()
    view, where = task.view(), task.problem.start
    state = learner.begin(view, 0)
    for t in range(6):
        steps = 5 - t % 2
        plan = learner.plan(state, start=where, horizon=steps)
        problem = rmab.Problem(task.problem.arms, where, 2, steps)
        trajectory = rmab.simulate(problem, plan.policy, task.reward(t), np.random.default_rng(t))
        state = learner.learn(state, rmab.Feedback.reveal(view, t, trajectory, task.reward(t)))
        where = trajectory.states[-1]
    assert state.episode == 6
    if "counts" in state.arrays and name != "restless-ucb":
        assert state.arrays["counts"].sum() == 6 * (5 + 4 + 5 + 4 + 5 + 4)


def test_a_distribution_of_starts_is_planned_for() -> None:
    rng = np.random.default_rng(0)
    start = rng.dirichlet(np.ones(3), size=6)
    own = plain_task().problem
    problem = rmab.Problem(own.arms, start, 2, 5)
    task = rmab.Task.from_rewards(problem, np.stack([plain_task().reward(t) for t in range(4)]), low=0, high=10)
    learner = rmab.make_learner("ucmd", step="lazy")
    plan = learner.plan(learner.begin(task.view()))
    np.testing.assert_allclose(plan.occupancy[plan.block_of][:, 0].sum(axis=2), start, atol=1e-7)
    run = rmab.run(task, "ucmd", seed=2)
    assert np.isfinite(run.regret("O2")).all()


def test_episodes_differ_where_the_start_is_drawn() -> None:
    problem, reward = timed_problem(1, 4, 2, 3, 2)
    firsts = np.array(
        [
            rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(k)).states[0]
            for k in range(3000)
        ]
    )
    for n in range(4):
        share = np.bincount(firsts[:, n], minlength=3) / 3000
        np.testing.assert_allclose(share, problem.start_masses[n], atol=4 * np.sqrt(0.25 / 3000))


class TestRefused:
    @pytest.mark.parametrize(
        "name", ["uob-reps", "shifted-uc-o-reps", "dilated-po", "ucmd-armab", "oracle", "colored-ucrl2"]
    )
    def test_learners_of_one_situation_say_so(self, name: str) -> None:
        task = rmab.make_task("cpap", arms=2, budget=1, horizon=3, episodes=3)
        learner = rmab.make_learner(name)
        if learner.privileged:
            learner = learner.inform(task.problem, task.base_reward)
        state = learner.begin(task.view())
        with pytest.raises(ModelError, match=f"{name} only plans for the start, budget and horizon of its view"):
            learner.plan(state, start=1)
        problem = rmab.Problem(task.problem.arms, 1, 1, 3)
        trajectory = rmab.simulate(problem, rmab.planners.random_policy(problem), task.reward(0), np.random.default_rng(0))
        feedback = rmab.Feedback.reveal(task.view(), 0, trajectory, task.reward(0))
        with pytest.raises(FeedbackError, match=f"arm 0 starts in state 1, not 0: {name} only learns from episodes"):
            learner.learn(state, feedback)

    @pytest.mark.parametrize(
        ("situation", "message"),
        [
            ({"start": 3}, r"start\[0\] must be in 0\.\.2"),
            ({"start": [0] * 5}, r"start must be one state or have shape \(6,\), got \(5,\)"),
            ({"start": np.full((6, 3), 0.5)}, "probabilities of arm 0 sum to 1.5"),
            ({"budget": 9}, r"budget must be in 0\.\.6"),
            ({"budget": [1, 2]}, r"budget must be a number or have shape \(H,\) = \(5,\)"),
            ({"horizon": 6}, r"horizon must be in 1\.\.5 \(the horizon of the view\), got 6"),
            ({"horizon": 2.5}, "horizon must be a whole number"),
        ],
    )
    def test_wrong_situations(self, situation: dict[str, Any], message: str) -> None:
        learner = rmab.make_learner("ucmd")
        with pytest.raises(ModelError, match=message):
            learner.plan(learner.begin(plain_task().view()), **situation)

    def test_feedback_of_wrong_episodes(self) -> None:
        task = plain_task()
        view, nothing = task.view(), np.full((6, 3, 2), np.nan)
        states = np.zeros((6, 6), dtype=int)
        for changes, message in (
            ({"states": np.zeros((7, 6)), "actions": np.zeros((6, 6))}, "or fewer steps, got"),
            ({"states": np.zeros((3, 6)), "actions": np.zeros((3, 6))}, r"states must have shape \(H\+1, N\) = \(4, 6\)"),
            ({"states": states, "actions": np.ones((5, 6))}, "step 0: 6 arms are active, the budget is 2"),
            ({"states": states, "actions": np.ones((5, 6)), "budget": [6, 6, 1, 6, 6]}, "step 2: 6 .* the budget is 1"),
        ):
            with pytest.raises(FeedbackError, match=message):
                rmab.Feedback(0, rewards=nothing, **changes).check(view, 0)  # type: ignore[arg-type]
        with pytest.raises(FeedbackError, match=r"budget must be in 0\.\.6"):
            rmab.Feedback(0, states, np.zeros((5, 6)), nothing, budget=7).check(view, 0)

    def test_a_start_without_probability_is_another_situation(self) -> None:
        start = np.zeros((6, 3))
        start[:, :2] = 0.5
        own = plain_task().problem
        task = rmab.Task.from_rewards(rmab.Problem(own.arms, start, 2, 5), np.ones((2, 6, 3, 2)), low=0, high=1)
        learner = rmab.make_learner("ucmd-armab")
        problem = rmab.Problem(own.arms, 2, 2, 5)
        trajectory = rmab.simulate(problem, rmab.planners.random_policy(problem), task.reward(0), np.random.default_rng(0))
        with pytest.raises(FeedbackError, match="arm 0 starts in state 2, which has probability 0"):
            learner.learn(learner.begin(task.view()), rmab.Feedback.reveal(task.view(), 0, trajectory, task.reward(0)))


def test_states_of_timed_tasks_are_kept_exactly(tmp_path) -> None:
    learner, task = rmab.make_learner("thompson"), timed_task()
    state = played(learner, task)
    state.save(tmp_path / "s.npz")
    again = rmab.State.load(tmp_path / "s.npz")
    assert again.view.phases == 3
    np.testing.assert_array_equal(again.view.budgets, task.problem.budgets)
    np.testing.assert_array_equal(learner.plan(again).policy.table, learner.plan(state).policy.table)


@pytest.mark.parametrize("name", [name for name in PLAYS if name != "thompson"])  # which draws cell by cell
def test_phases_have_names_that_do_not_matter(name: str) -> None:
    problem, _ = timed_problem(3, 4, 3, 2, 6)
    rng = np.random.default_rng(3)
    rewards, label = rng.uniform(-1, 2, size=(5, 4, 3, 2, 2)), np.array([2, 0, 1])  # phase k is called label[k]
    old = np.argsort(label)
    other = rmab.Problem(rmab.Arms(problem.arms.kernels[:, old]), problem.start, problem.budget, 6, label[problem.phase_of])
    tasks = (
        rmab.Task.from_rewards(problem, rewards, low=-1, high=2),
        rmab.Task.from_rewards(other, rewards[:, :, old], low=-1, high=2),
    )
    runs = [rmab.run(task, made(name), seed=3) for task in tasks]
    np.testing.assert_allclose(runs[0].reward, runs[1].reward, atol=1e-9)
    np.testing.assert_array_equal(runs[0].activations, runs[1].activations)


@pytest.mark.parametrize("name", PLAYS)
def test_phases_may_differ_in_what_is_declared_impossible(name: str) -> None:
    """Every step of one phase leads to one state, every step of the other to the other: no phase can be pooled with it."""
    kernel = np.zeros((2, 2, 2, 2))
    kernel[0, ..., 1] = kernel[1, ..., 0] = 1.0
    arms = rmab.Arms(np.stack([kernel] * 3), support=np.stack([kernel] * 3) > 0)
    problem = rmab.Problem(arms, 0, 1, 4, phase_of=[0, 1, 0, 1])
    check_learner(made(name), rewards_of(problem, 0), episodes=4)
