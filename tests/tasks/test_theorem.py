"""Where the regret theorem of Xiong & Li (2024, Section 5.1) fails, at small size, against closed forms."""

from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.learning import Active, DependentRounding, Hoeffding, ImplicitExploration, Probes, TopB, Ucmd
from rmab.learning.base import Learner
from rmab.planners.joint import joint_visits
from rmab.play.policy import Rounding
from rmab.runs.comparators import theory_curve
from rmab.tasks.counterexamples import WORST

pytestmark = pytest.mark.slow


def lost(task: str, learner: Learner | str, episodes: int, feedback: Any = None, **options: Any) -> float:
    """Return the regret per step to the best fixed policy, over the second half of the run."""
    game = rmab.make_task(task, episodes=episodes, **options)
    regret = rmab.run(game, learner, feedback=feedback).regret("O2")
    return float(regret[-1] - regret[episodes // 2 - 1]) / (episodes // 2) / game.problem.horizon


@pytest.mark.parametrize("pays", [0.3, WORST])  # with more, r + delta is 1 for thousands of episodes
def test_the_estimator_keeps_its_loss(pays: float) -> None:
    """Arms are played in inverse proportion to what they gain on each other when they are left alone.

    To the letter: (2 - r) for the arm that pays r, and 2 for the other. With declared zeros: 1 - r and 1.
    """
    literal, declared = pays * (2 - pays) / (4 - pays), pays * (1 - pays) / (2 - pays)
    short = {"episodes": 200, "horizon": 3, "pays": pays}
    assert lost("greener", "ucmd-armab", **short) == pytest.approx(literal, abs=0.02)
    assert lost("greener", rmab.make_learner("ucmd-armab", zeros="declared"), **short) == pytest.approx(declared, abs=0.02)


def test_the_printed_bound_is_crossed() -> None:
    """What is lost per step stays .243, its bound falls with the root of T: they meet near T = 1,640, and part for ever."""
    per_step = WORST * (2 - WORST) / (4 - WORST)
    measured = [lost("greener", "ucmd-armab", episodes) for episodes in (50, 200)]
    np.testing.assert_allclose(measured, per_step, atol=0.015)
    many = np.arange(1, 5001)
    curve = theory_curve(rmab.make_task("greener", episodes=5000).view())
    terms = 2 * 5 * np.sqrt(np.log(2)), 5 * np.sqrt(2 * 2 * np.log(4 * 2 * 2 * 400 / 0.05)), np.sqrt(2 * 2 * 5)
    assert curve[399] == pytest.approx(sum(terms) * np.sqrt(400))  # N = 2, S = 1, A = 2, B = 1, H = 5
    printed = curve / many / 5
    assert (np.diff(printed) < 0).all()
    assert 1500 < many[printed < per_step][0] < 1800


PAPER: dict[str, Any] = {"confidence": "true", "estimator": "paper", "step": "active", "probes": Probes(every=0)}


@pytest.mark.parametrize("rounding", ["top", "dependent"])
def test_neither_rounding_nor_true_kernels_mend_the_estimator(rounding: str) -> None:
    execute = TopB() if rounding == "top" else DependentRounding()
    learner = Ucmd(**PAPER, rounding=execute)
    assert lost("greener", learner, 300) > 0.1


def test_a_sound_estimator_mends_it() -> None:
    """Losses over the visits that were to be expected (implicit exploration), with draws."""
    parts: dict[str, Any] = {
        "confidence": Hoeffding(),
        "step": Active(),
        "rounding": DependentRounding(),
        "probes": Probes(every=0),
    }
    first, last = (lost("greener", Ucmd(estimator=ImplicitExploration(), **parts), episodes) for episodes in (100, 400))
    assert last < first
    assert last < 0.06
    assert lost("greener", "ucmd", 100) < 0.03  # it looks at the other arm now and then


def test_the_highest_indices_are_late() -> None:
    """Even with all rewards revealed, all of the half that any fixed policy earns is lost; draws keep it.

    The first episode pays one half, so that the plan leans to the arm that paid last after every episode, and never ties.
    """
    top, drawn = (rmab.make_learner("ucmd-armab", rounding=rounding) for rounding in ("top", "dependent"))
    assert lost("turns", top, 400, "full", first=0.5) == pytest.approx(0.5, abs=1e-9)
    assert lost("turns", drawn, 400, "full", first=0.5) == pytest.approx(0.0, abs=0.03)


def test_to_the_letter_turns_are_won_or_lost_by_the_first_lots() -> None:
    """With zeros estimated, the arm that was left alone gains on the other whatever is paid: the learner takes turns by
    itself, in step with the arms or out of step. With declared zeros it is late in nearly all rounds.
    """
    letter, declared = (
        [0.5 - rmab.run(rmab.make_task("turns", episodes=60), learner, seed).reward[-30:].mean() / 5 for seed in range(6)]
        for learner in ("ucmd-armab", rmab.make_learner("ucmd-armab", zeros="declared"))
    )
    assert min(letter) < -0.1
    assert max(letter) > 0.4
    assert min(declared) > 0.1
    assert np.mean(declared) > 0.35


@pytest.mark.parametrize("name", ["uc-o-reps", "ucpd", "pdgd-ops"])
def test_rivals_with_a_guarantee_draw(name: str) -> None:
    assert abs(lost("turns", name, 200)) < 0.1
    assert lost("turns", rmab.make_learner(name, rounding="top"), 200) > 0.2


def executed(problem: rmab.Problem, reward: FloatArray, rounding: Rounding) -> rmab.Batch:
    """Return what the best plan earns whose shares are executed one way or the other, over 20,000 episodes."""
    plan = rmab.solvers.solve_fluid(problem, reward).occupancy
    mass = plan.sum(axis=3)
    share = np.divide(plan[..., 1], mass, out=np.zeros(mass.shape), where=mass > 1e-12)
    policy = rmab.IndexPolicy(share.clip(0, 1), problem.budget, rounding=rounding)
    return rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 20_000)


def test_dependent_rounding_cannot_do_what_a_plan_says_that_keeps_the_budget_on_average() -> None:
    """Two arms that are good (they pay 1) a quarter of the time, and fair (1/2) otherwise; one may be active.

    The plan activates the good always and the fair a third of the time. Where one of two is good, 1 + 1/3 is scaled down to
    1: a quarter of the time the fair one is active, and 1/2 is lost, at 2 * 1/4 * 3/4 of all steps. The highest indices lose
    nothing to the best policy here.
    """
    problem = rmab.Problem(rmab.Arms.identical(np.tile(np.eye(2)[:, np.newaxis], (1, 2, 1)), 2), [[0.25, 0.75]] * 2, 1, 1)
    reward = np.tile([[0.0, 1.0], [0.0, 0.5]], (2, 1, 1))
    best = float((joint_visits(problem, reward) * reward).sum())
    assert best == pytest.approx(7 / 16 + 9 / 32)
    top, drawn = executed(problem, reward, "top"), executed(problem, reward, "dependent")
    assert abs(best - top.mean) < 4 * top.stderr
    assert abs(best - 3 / 64 - drawn.mean) < 4 * drawn.stderr


def test_no_execution_keeps_what_the_best_plan_promises() -> None:
    """The instance of the decomposition: the plan is exact, and both ways to execute it lose to the best policy for ever."""
    game = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=10, episodes=200)
    reward = np.mean([game.reward(t) for t in range(200)], axis=0)
    best = float((joint_visits(game.problem, reward) * reward).sum())
    lost = {rounding: best - executed(game.problem, reward, rounding).mean for rounding in ("top", "dependent")}
    assert best == pytest.approx(34.47, abs=0.01)
    assert lost["top"] == pytest.approx(0.49, abs=0.07)  # a standard error is 0.017
    assert lost["dependent"] == pytest.approx(1.35, abs=0.07)


def test_counterexamples_bring_their_own_rewards() -> None:
    with pytest.raises(rmab.errors.ModelError, match="task turns has fixed rewards; leave out @noisy"):
        rmab.make_task("turns@noisy")
    assert rmab.make_task("greener", pays=0.25, episodes=2).reward(1)[:, 0, 1].tolist() == [0.25, 0.0]
    assert [rmab.make_task("turns", episodes=3).reward(t)[:, 0, 1].tolist() for t in range(3)] == [[1, 0], [0, 1], [1, 0]]


# ---------------------------------------------------------------- what a part costs: true kernels, true rewards


def test_true_kernels_are_told_by_the_run_only() -> None:
    game = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=4, episodes=3)
    learner = rmab.make_learner("ucmd", confidence="true", estimator="paper", step="active", probes={"every": 0})
    assert learner.privileged == "knows the kernels"
    with pytest.raises(rmab.errors.ModelError, match="TrueKernels must be informed of the problem first"):
        learner.begin(game.view())
    run = rmab.run(game, learner, feedback="full")
    assert run.privileged == "knows the kernels and sees all rewards of an episode"
    assert run.state.learner == learner.signature  # what it was told is no option
    told = learner.inform(game.problem, game.base_reward)
    mass = told.plan(told.begin(game.view())).occupancy
    kernels = game.problem.arms.kernels
    np.testing.assert_allclose(np.einsum("nhsa,nsay->nhy", mass[:, :-1], kernels), mass[:, 1:].sum(axis=3), atol=1e-7)


def test_full_information_means_the_true_rewards() -> None:
    game = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=4, episodes=3)
    run = rmab.run(game, "ucmd-armab", feedback="full")
    np.testing.assert_allclose(run.estimates, run.rewards, atol=1e-12)


def test_the_paper_s_learner_is_its_four_parts() -> None:
    game = rmab.make_task("cpap@switching", arms=4, budget=2, horizon=4, episodes=5)
    by_parts = rmab.make_learner("ucmd", confidence="hoeffding", estimator="paper", step="active", probes={"every": 0})
    np.testing.assert_array_equal(rmab.run(game, by_parts).reward, rmab.run(game, "ucmd-armab").reward)
