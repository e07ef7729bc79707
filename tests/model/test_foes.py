"""The adversaries that break learners: turns, noise beside drift, late pay, lock-out, and one that sees the plan."""

import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rmab
from rmab.cli import main
from rmab.model.adversaries import alternating, late, lock, mixed, ninth, weather, weekly
from rmab.model.adversary import Adversary
from rmab.model.registry import ADVERSARIES, FORESEES
from rmab.runs.running import REHEARSAL, REHEARSALS, rehearse_visits
from rmab.study import TaskSpec
from rmab.testing import check_adversary
from small import Always
from timed import timed_problem

UNITS = 9
SHAPE = (2, UNITS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class TestScripts:
    def test_two_halves_take_turns(self) -> None:
        drawn = alternating(7, SHAPE, rng())
        assert set(np.unique(drawn)) == {0.1, 1.5}
        assert ((drawn[0] == 1.5).sum(axis=1) == UNITS // 2).all()
        np.testing.assert_allclose(drawn[1:] + drawn[:-1], 1.6)  # whoever paid does not, and the others do
        assert (drawn[0, 0] != drawn[0, 1]).any()  # each part has halves of its own
        assert (alternating(2, SHAPE, rng(1))[0] != drawn[0]).any()

    def test_a_lone_unit_takes_turns_with_nobody(self) -> None:
        np.testing.assert_array_equal(alternating(4, (1, 1), rng())[:, 0, 0], [0.1, 1.5, 0.1, 1.5])

    def test_half_are_coins_and_half_drift(self) -> None:
        drawn = mixed(400, SHAPE, rng())
        coins = np.isin(drawn, [0.0, 1.5]).all(axis=0)
        assert (coins.sum(axis=1) == UNITS // 2).all()
        heads = (drawn == 1.5).mean(axis=0)[coins]
        assert (np.abs(heads - 0.5) < 4 * 0.5 / 20).all()
        drift = drawn[:, ~coins]
        np.testing.assert_allclose(drift[:200], drift[200:], atol=1e-9)  # two periods
        assert np.abs(np.diff(drift, axis=0)).max() <= 0.75 * 4 * np.pi / 400
        assert drift.min() >= 0
        np.testing.assert_allclose(drift.max(axis=0), 1.5, atol=1e-3)

    def test_half_begin_to_pay_after_two_fifths(self) -> None:
        drawn = late(50, SHAPE, rng())
        begins = (drawn[:20] == 0).all(axis=0)
        assert (begins.sum(axis=1) == UNITS - UNITS // 2).all()
        assert (drawn[20:, begins] == 1.5).all()
        others = drawn[:, ~begins]
        assert abs(others.mean() - 0.75) < 4 * 1.5 / np.sqrt(12 * others.size)
        assert (late(1, (1, 1), rng()) == 1.5).all()  # round(0.4) = 0 episodes without pay

    @pytest.mark.parametrize(("script", "period", "days"), [(weekly, 7, 2), (ninth, 9, 3)])
    def test_every_unit_has_its_own_days(self, script: Any, period: int, days: int) -> None:
        drawn = script(4 * period + 1, SHAPE, rng())
        np.testing.assert_array_equal(drawn[period:], drawn[:-period])
        assert ((drawn[:period] == 1.5).sum(axis=0) == days).all()
        assert set(np.unique(drawn)) == {0.1, 1.5}
        assert len(np.unique(drawn[:period].reshape(period, -1), axis=1).T) > UNITS  # they differ from unit to unit

    def test_the_weather_is_common_to_all(self) -> None:
        drawn = weather(300, SHAPE, rng())
        np.testing.assert_allclose(drawn / drawn[:, :1, :1], np.broadcast_to(drawn[0] / drawn[0, 0, 0], drawn.shape))
        quality = drawn[0] / drawn[0].max()
        assert quality.min() >= 0.5
        assert drawn.std(axis=0).min() > 0.15
        assert drawn.max() <= 1.5

    def test_a_sure_small_pay_against_a_risky_large_one(self) -> None:
        drawn = lock(1000, SHAPE, rng())
        sure = (drawn == 0.3).all(axis=0)
        assert (sure.sum(axis=1) == UNITS // 2).all()
        risky = drawn[:, ~sure]
        assert set(np.unique(risky)) == {0.0, 1.5}
        assert (np.abs((risky == 1.5).mean(axis=0) - 0.4) < 4 * np.sqrt(0.24 / 1000)).all()
        assert np.abs(np.corrcoef(risky.T) - np.eye(risky.shape[1])).max() < 4 / np.sqrt(1000)

    @pytest.mark.parametrize("script", [alternating, mixed, late, lock, weekly, ninth, weather])
    @pytest.mark.parametrize("shape", [(1, 1), (3, 2), (1, 5)])
    def test_factors_are_between_0_and_one_and_a_half(self, script: Any, shape: tuple[int, int]) -> None:
        for episodes in (1, 2, 3, 10):
            drawn = script(episodes, shape, rng())
            assert drawn.shape == (episodes, *shape)
            assert drawn.min() >= 0
            assert drawn.max() <= 1.5
            np.testing.assert_array_equal(drawn, script(episodes, shape, rng()))


def aware(parts: Any, units: Any = None, low: float = -9, high: float = 9) -> Adversary:
    return rmab.make_adversary("plan-aware", rmab.RewardModel(parts, low, high, units), 3, rng())


class TestPlanAware:
    def test_pays_nothing_for_the_arms_that_are_planned_most(self) -> None:
        parts = np.zeros((1, 4, 2, 2))
        parts[..., 1] = 2.0
        visits = np.zeros((4, 2, 2), dtype=int)
        visits[:, 0] = [[10, 0], [2, 8], [4, 6], [10, 0]]
        visits[0, 1] = [0, 0]
        # Shares 0, .8, .6 and 0 sum to 1.4: one arm, the second, is where the plan is.
        np.testing.assert_array_equal(aware(parts).reward(0, visits)[:, 0, 1], [3.0, 0.0, 3.0, 3.0])
        visits[3, 0] = [5, 5]  # 1.9: two arms
        np.testing.assert_array_equal(aware(parts).reward(0, visits)[:, 0, 1], [3.0, 0.0, 0.0, 3.0])
        assert not aware(parts).reward(0, visits)[..., 0].any()

    def test_never_spares_all_nor_none(self) -> None:
        parts = np.ones((1, 3, 1, 2)) * [0, 1]
        everybody, nobody = np.full((3, 1, 2), [0, 5]), np.full((3, 1, 2), [5, 0])
        np.testing.assert_array_equal(aware(parts).reward(1, everybody)[:, 0, 1], [0.0, 0.0, 1.5])
        np.testing.assert_array_equal(aware(parts).reward(1, nobody)[:, 0, 1], [0.0, 1.5, 1.5])

    def test_where_both_actions_pay_the_active_one_counts(self) -> None:
        parts = np.ones((1, 2, 1, 2))
        visits = np.array([[[1, 9]], [[9, 1]]])
        np.testing.assert_array_equal(aware(parts).reward(0, visits)[:, 0], [[0.0, 0.0], [1.5, 1.5]])

    def test_costs_are_raised_where_the_plan_meets_them(self) -> None:
        parts = np.zeros((1, 2, 1, 2))
        parts[..., 0] = -2.0  # of being left alone
        visits = np.array([[[1, 9]], [[9, 1]]])
        np.testing.assert_array_equal(aware(parts).reward(0, visits)[:, 0, 0], [0.0, -3.0])

    def test_a_lone_tariff_is_lowered_by_its_share(self) -> None:
        parts = np.ones((1, 2, 1, 2)) * [0, 1]
        visits = np.array([[[0, 10]], [[10, 0]]])
        np.testing.assert_allclose(aware(parts, units=[0, 0]).reward(0, visits)[:, 0, 1], 0.75)

    def test_a_plan_that_is_sure_earns_nothing(self) -> None:
        problem = rmab.Problem(rmab.Arms(np.ones((4, 1, 2, 1))), 0, 1, 6)
        run = rmab.run(rmab.Task("sure", problem, aware(np.ones((1, 4, 1, 2)) * [0, 1])), Always(2))
        assert (run.reward == 0).all()
        np.testing.assert_array_equal(run.rewards[:, :, 0, 1], [[1.5, 1.5, 0.0, 1.5]] * 3)

    def test_it_sees_the_policy_that_is_played_and_nobody_sees_it_look(self) -> None:
        task, learner = (
            rmab.make_task("cpap@plan-aware", arms=4, budget=2, horizon=6, episodes=4),
            rmab.make_learner("thompson"),
        )
        run, view = rmab.run(task, learner, seed=5), task.view()
        state = learner.begin(view, 5)
        for t in range(4):
            plan, own = learner.plan(state), np.random.SeedSequence(5, spawn_key=(REHEARSAL, t))
            reward = task.reward(t, rehearse_visits(task.problem, plan.policy, np.random.default_rng(own)))
            np.testing.assert_array_equal(reward, run.rewards[t])
            luck = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(100, t)))
            episode = rmab.simulate(task.problem, plan.policy, reward, luck)
            assert episode.reward == run.reward[t]
            state = learner.learn(state, rmab.Feedback.reveal(view, t, episode, reward))
        plain = rmab.run(rmab.make_task("cpap", arms=4, budget=2, horizon=6, episodes=4), "random", seed=5)
        aware = rmab.run(task, "random", seed=5)
        np.testing.assert_array_equal(plain.visited, aware.visited)  # the same luck, whoever looks
        assert rmab.run(task, learner, seed=5).reward.tobytes() == run.reward.tobytes()

    def test_any_policy_can_be_rehearse_visits(self) -> None:
        class Stubborn:
            """Keeps to the arm that it began with, which only a memory can."""

            def act(self, h: int, states: Any, rng: Any) -> Any:
                raise AssertionError("asked without begin")

            def begin(self, states: Any, rng: Any) -> Any:
                return Kept(int(rng.integers(states.size)))

        class Kept:
            def __init__(self, arm: int) -> None:
                self.arm = arm

            def act(self, h: int, states: Any, rng: Any) -> Any:
                return np.arange(states.size) == self.arm

        problem, _ = timed_problem(0, 3, 2, 2, 4, budget=1)
        visits = rehearse_visits(problem, Stubborn(), rng())
        assert visits.shape == (3, 2, 2, 2)
        assert visits.sum() == REHEARSALS * 3 * 4
        assert (visits[..., 1].sum(axis=(1, 2)) % 4 == 0).all()  # whole episodes
        assert (visits[..., 1].sum(axis=(1, 2)) > 0).all()

    @pytest.mark.parametrize("units", [None, [0, 0, 1]])
    def test_plays_with_phases_and_copies(self, units: Any) -> None:
        problem, reward = timed_problem(1, 3, 2, 2, 4, budget=1)
        foe = rmab.make_adversary("plan-aware", rmab.RewardModel(np.abs(reward)[np.newaxis], 0, 99, units), 2, rng())
        task = rmab.Task("timed", problem, foe)
        check_adversary(foe)
        for game in (task, task.repeated(2)):
            run = rmab.run(game, "random")
            assert run.rewards.shape == (2, 3 * len(game.problem.start) // 3, 2, 2, 2)
            assert (run.rewards.reshape(2, -1).max(axis=1) > 0).all()

    def test_an_adversary_that_foresees_must_be_adaptive(self) -> None:
        class Odd(type(aware(np.ones((1, 2, 1, 2))))):  # type: ignore[misc]
            adaptive = False

        model = rmab.RewardModel(np.ones((1, 2, 1, 2)), 0, 2)
        with pytest.raises(rmab.errors.ModelError, match="Odd: an adversary that foresees must be adaptive"):
            Odd(3, 0.0, 2.0, False, model).reward(0)


class TestLabels:
    def test_results_say_that_it_is_stronger(self) -> None:
        small = {"arms": 4, "budget": 2, "horizon": 3, "episodes": 2}
        run, plain = (rmab.run(rmab.make_task(name, **small), "random") for name in ("cpap@plan-aware", "cpap"))
        assert run.task.stronger == run.summary()["adversary"] == FORESEES
        assert "stronger than the paper's adversary" in repr(run)
        assert plain.task.stronger == plain.summary()["adversary"] == ""
        assert "adversary" not in repr(plain)
        assert [one.name for one in ADVERSARIES.entries() if one.foresees] == ["plan-aware"]
        specs = [TaskSpec.model_validate({"name": f"cpap@{name}", "label": "any"}) for name in ("plan-aware", "adaptive")]
        assert [spec.stronger for spec in specs] == [FORESEES, ""]

    def test_tables_say_so(self) -> None:
        listed = CliRunner().invoke(main, ["tasks"]).stdout
        assert re.search(r"@plan-aware sees the plan\s+of\s+the\s+next\s+episode", listed)
        small = ["-t", "arms=4", "-t", "budget=2", "-t", "horizon=3", "--episodes", "2"]
        shown = CliRunner().invoke(main, ["run", "cpap@plan-aware", "random", *small]).stdout
        assert "The adversary sees the plan of the next episode" in " ".join(shown.split())
