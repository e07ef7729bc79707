"""Rivals under conventions that do not handicap them: ties, states without mass, and what their papers promise."""

from typing import Any

import numpy as np
import pytest

import rmab
from rmab.learning.algorithms.extended_lp import break_ties, finite_plan
from rmab.learning.pools import Pools
from rmab.solvers.transitions import TransitionSets

# ---------------------------------------------------------------- rmab-ucrl, r2mab-ucb


def test_like_shares_are_ranked_by_what_activating_is_worth() -> None:
    share = np.array([1.0, 1.0 - 1e-9, 0.0, 0.0, 0.4])
    worth = np.array([0.3, 0.5, -2.0, 0.1, 9.0])
    index = break_ties(share, worth)
    assert np.argsort(-index).tolist() == [1, 0, 4, 3, 2]
    np.testing.assert_allclose(index, share, atol=2e-7)
    assert index.max() <= 1.0
    np.testing.assert_array_equal(break_ties(share, np.zeros(5)), np.round(share, 6) / (1 + 1e-7))


def test_states_without_mass_are_decided_by_the_plan_s_advantage() -> None:
    """Two arms that stay in state 0 for ever; in state 1, where no plan puts mass, activating pays 1 or costs 1."""
    problem = rmab.Problem(rmab.Arms(np.tile(np.eye(2)[:, np.newaxis], (2, 1, 2, 1))), 0, 1, 3)
    task = rmab.Task.from_rewards(problem, np.zeros((4, 2, 2, 2)), low=0, high=1)
    pools = Pools.of(task.view())
    estimate = np.array([[[0.0, 0.9], [0.0, 1.0]], [[0.0, 0.4], [1.0, 0.0]]])
    mass, index = finite_plan(pools, TransitionSets.known(problem.arms.kernels), estimate)
    assert mass[:, :, 1].sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(index[:, :, 1], [[1.0] * 3, [0.0] * 3], atol=1e-6)
    np.testing.assert_allclose(index[:, :, 0], [[1.0] * 3, [0.0] * 3], atol=1e-3)


@pytest.mark.parametrize("version", ["stationary", "finite", "window", "generator"])
@pytest.mark.parametrize("rewards", ["mean", "optimistic"])
def test_every_version_breaks_ties(version: str, rewards: Any) -> None:
    """Four arms that differ in what they pay: nobody is ranked like another, and with means, who pays most is first."""
    problem = rmab.Problem(rmab.Arms(np.tile([[0.5, 0.5], [0.5, 0.5]], (4, 2, 1, 1)).reshape(4, 2, 2, 2)), 0, 2, 6)
    rewards_of = np.zeros((30, 4, 2, 2))
    rewards_of[..., 1] = np.array([0.9, 0.6, 0.5, 0.2])[:, np.newaxis]
    task = rmab.Task.from_rewards(problem, rewards_of, low=0, high=1, passive_zero=True)
    learner = rmab.make_learner("rmab-ucrl", version=version, rewards=rewards)
    run = rmab.run(task, learner)
    table = learner.inform(problem, rewards_of.sum(axis=0)).plan(run.state).policy.table[:, 0, 0]
    assert len(set(table.tolist())) == 4
    if rewards == "mean":
        assert run.relative_to_random() < (0.8 if version == "window" else 0.2)  # what left the window counts as 1 again


def test_the_fair_rival_is_near_the_bound_on_the_paper_s_benchmark() -> None:
    """With sample means it beats the paper's learner on cpap with the ramp; with lots for ties it lost 11.9% of O1."""
    game = rmab.make_task("cpap@ramp", episodes=12)
    rival, width, papers = (
        rmab.run(game, learner).relative_to_random()
        for learner in ("rmab-ucrl", rmab.make_learner("rmab-ucrl", rewards="optimistic"), "ucmd-armab")
    )
    assert rival < 0.1
    assert rival < width < 0.6 < papers


# ---------------------------------------------------------------- what the papers of MDP rivals promise


def single(name: str, **options: Any) -> list[float]:
    """Return the share of the chance gap that is lost on one decision process, in every fifth of the run."""
    learner = rmab.make_learner(name, rule="at-most", **options)
    run = rmab.run(rmab.make_task("two-way", episodes=150, feedback=learner.feedback), learner)
    lost = np.diff(run.regret("O2"), prepend=0.0).reshape(5, -1).sum(axis=1)
    return (lost / (run.comparators.o2() - run.comparators.random()).reshape(5, -1).sum(axis=1)).tolist()


@pytest.mark.parametrize(
    ("name", "options", "most"),
    [
        ("uc-o-reps", {}, 0.2),
        ("ucpd", {}, 0.2),
        ("pdgd-ops", {}, 0.2),
        ("shifted-uc-o-reps", {}, 0.5),
        ("uob-reps", {}, 0.3),
        ("dilated-po", {"rate": 0.3, "gamma": 0.1, "bonus": 0.001}, 0.3),
    ],
)
def test_rivals_learn_on_a_single_decision_process(name: str, options: dict[str, Any], most: float) -> None:
    """The slope of the accumulated regret at the end is a fraction of that at the beginning, and far below chance."""
    parts = single(name, **options)
    assert parts[-1] < most * parts[0], parts
    assert parts[-1] < most


def test_dilated_po_by_its_theory_does_not_move_before_its_bound_says_something() -> None:
    """16.6 H^3 = 133 episodes with H = 2: the rate, 1 / (24 H^3), is what makes the bound so large."""
    assert single("dilated-po")[0] > 1.5
    eta = rmab.make_learner("dilated-po").eta(rmab.make_task("two-way").view())
    assert eta <= 1 / (24 * 2**3)
    assert 2 * np.log(2) / eta >= 16.6 * 2**4
    cpap = rmab.make_task("cpap").view()
    assert 50 * np.log(2) / rmab.make_learner("dilated-po").eta(cpap) > 1e4 * cpap.horizon * cpap.episodes / 10


# ---------------------------------------------------------------- uc-whittle on its authors' domain


def test_good_bad_is_as_its_authors_describe_it() -> None:
    game = rmab.make_task("good-bad", seed=3)
    good = game.problem.arms.kernels[..., 1]
    assert (good[:, :, 1] >= good[:, :, 0]).all()  # being active helps
    assert (good[:, 1] >= good[:, 0]).all()  # so does having been good
    np.testing.assert_array_equal(game.reward(7), np.broadcast_to([[0, 0], [1, 1]], (8, 2, 2)))
    assert game.problem.start.tolist() == [[0.5, 0.5]] * 8


@pytest.mark.slow
def test_uc_whittle_learns_on_its_authors_domain() -> None:
    """8 arms, budget 3, 20 steps, 30 episodes: in the last ten it has most of what chance leaves."""
    lost = gap = 0.0
    for seed in range(4):
        run = rmab.run(rmab.make_task("good-bad", seed=seed), "uc-whittle", seed)
        lost += float((run.comparators.o2() - run.reward)[-10:].sum())
        gap += float((run.comparators.o2() - run.comparators.random())[-10:].sum())
    assert lost / gap < 0.5
