"""Whole runs: the same again, what they report, and what they are held against."""

import pickle

import numpy as np
import pytest

import rmab
from rmab.play.feedback import Feedback
from small import EPISODES, Always, known_task, small_task

COLUMNS = ["episode", "reward", "bound", "random", "activations", "visited", "iterations", "seconds"]
REGRETS, TERMS = ["regret_O1", "regret_O2", "regret_O3"], ["term0", "term1", "term2", "term3"]
WITH_OCCUPANCIES = [("ucmd", {}), ("ucmd-armab", {}), ("rmab-ucrl", {}), ("rmab-ucrl", {"version": "window"})]


class TestRepeating:
    @pytest.mark.parametrize("name", list(rmab.list_learners()))
    def test_the_same_seed_gives_the_same_bytes(self, name):
        game = small_task(feedback=rmab.make_learner(name).feedback)
        one, two = (rmab.run(game, name, seed=3) for _ in range(2))
        for field in ("reward", "activations", "visited", "iterations", "rewards", "planned", "believed"):
            assert getattr(one, field).tobytes() == getattr(two, field).tobytes(), field
        assert one.state.arrays.keys() == two.state.arrays.keys()
        for key, array in one.state.arrays.items():
            assert array.tobytes() == two.state.arrays[key].tobytes(), key

    def test_another_seed_gives_another_run(self):
        assert rmab.run(small_task(), "random", seed=1).reward.tolist() != rmab.run(small_task(), "random").reward.tolist()

    def test_a_task_by_name_is_made_from_the_seed(self):
        run = rmab.run("cpap@noisy", "random", seed=4)
        game = rmab.make_task("cpap@noisy", seed=4)
        assert run.task.problem == game.problem
        np.testing.assert_array_equal(run.rewards[7], game.reward(7))
        assert rmab.run(game, "random", seed=4).reward.tobytes() == run.reward.tobytes()

    def test_is_what_the_loop_written_out_gives(self):
        """The loop of the library is `plan`, `simulate`, `reveal`, `learn`, and adds nothing that a learner could feel."""
        game, player = small_task(), rmab.make_learner("ucmd-armab")
        run = rmab.run(game, player, seed=2)
        state = player.begin(game.view(), 2)
        for t in range(EPISODES):
            rng = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(100, t)))
            episode = rmab.simulate(game.problem, player.plan(state).policy, game.reward(t), rng)
            assert episode.reward == run.reward[t]
            assert episode.actions.sum() == run.activations[t]
            state = player.learn(state, Feedback.reveal(game.view(), t, episode, game.reward(t)))
        assert {k: v.tobytes() for k, v in state.arrays.items()} == {k: v.tobytes() for k, v in run.state.arrays.items()}

    def test_survives_pickling(self):
        run = rmab.run(small_task(), "ucmd")
        again = pickle.loads(pickle.dumps(run))
        assert again.regret().tobytes() == run.regret().tobytes()
        assert not again.reward.flags.writeable


class TestReport:
    @pytest.mark.parametrize(("name", "options"), [*WITH_OCCUPANCIES, ("random", {}), ("oracle", {})])
    def test_columns(self, name, options):
        run = rmab.run(small_task(), rmab.make_learner(name, **options), seed=1)
        table = run.to_table()
        assert list(table) == [*COLUMNS, *REGRETS, *TERMS]
        assert {column.shape for column in table.values()} == {(EPISODES,)}
        assert table["episode"].tolist() == list(range(EPISODES))
        assert (table["activations"] <= 2 * 4).all()
        assert (np.diff(table["visited"]) >= 0).all()
        assert table["visited"][0] > 0
        assert (table["seconds"] > 0).all()
        assert run.rewards.shape == (EPISODES, 4, 3, 2)
        finite = all(np.isfinite(table[key]).all() for key in (*COLUMNS, *REGRETS))
        assert finite
        honest = (name, options) in WITH_OCCUPANCIES
        for term in TERMS:
            assert np.isfinite(table[term]).all() == honest
            assert np.isnan(table[term]).all() == (not honest)
        assert bool(run.privileged) == (name == "oracle")

    def test_full_feedback_is_a_privilege(self):
        assert rmab.run(small_task(feedback="full"), "random").privileged == "sees all rewards of an episode"
        assert rmab.run(small_task(feedback="full"), "oracle").privileged.startswith("knows the kernels")
        assert rmab.run(small_task(), "random").summary()["privileged"] == ""

    def test_chosen_comparators(self):
        table = rmab.run(small_task(), "random").to_table(["O3"])
        assert [key for key in table if key.startswith("regret")] == ["regret_O3"]

    @pytest.mark.parametrize(("name", "options"), WITH_OCCUPANCIES)
    @pytest.mark.parametrize("declared", [{}, {"feedback": "full"}], ids=["bandit", "full"])
    def test_terms_add_up_to_the_regret(self, name, options, declared):
        run = rmab.run(small_task(2, **declared), rmab.make_learner(name, **options), seed=1)
        np.testing.assert_allclose(np.cumsum(run.terms().sum(axis=0)), run.regret("O1"), atol=1e-9, rtol=0)
        assert np.abs(run.terms()).max() > 1e-3

    def test_terms_of_pooled_arms(self):
        groups, rng = [0, 0, 1, 1], np.random.default_rng(3)
        problem = rmab.Problem(rmab.Arms(rng.dirichlet(np.ones(2), size=(2, 2, 2))[groups], groups=groups), 0, 1, 3)
        game = rmab.Task.from_rewards(problem, rng.uniform(size=(3, 2, 2, 2))[:, groups], low=0, high=1)
        for name in ("ucmd", "ucmd-armab"):
            run = rmab.run(game, name)
            np.testing.assert_allclose(np.cumsum(run.terms().sum(axis=0)), run.regret("O1"), atol=1e-9, rtol=0)
        assert len(run.state.arrays["mass"]) == 2

    def test_visited_counts_pairs(self):
        run = rmab.run(known_task(), Always(0))
        assert run.visited.tolist() == [2, 2, 2]
        assert run.activations.tolist() == [4, 4, 4]

    def test_progress(self):
        calls = []
        rmab.run(small_task(), "random", progress=lambda done, every: calls.append((done, every)))
        assert calls == [(t + 1, EPISODES) for t in range(EPISODES)]


class TestRegret:
    def test_where_everything_is_known(self):
        best, worst = (rmab.run(known_task(), Always(arm)) for arm in (0, 1))
        for to in ("O1", "O2", "O3"):
            np.testing.assert_allclose(best.comparators.per_episode(to), 4.0, atol=1e-6)
            np.testing.assert_allclose(best.regret(to), 0.0, atol=1e-5)
            np.testing.assert_allclose(worst.regret(to), [4.0, 8.0, 12.0], atol=1e-5)
        assert worst.relative_regret() == pytest.approx(1.0, abs=1e-6)
        assert best.relative_regret() == pytest.approx(0.0, abs=1e-6)

    def test_is_negative_where_a_learner_beats_every_fixed_policy(self):
        """Arms pay in turns: a fixed policy earns half (3 of 4 episodes at best), one that follows earns everything."""
        problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1))), 0, 1, 4)
        rewards = np.zeros((4, 2, 1, 2))
        rewards[[0, 2, 3], 0, 0, 1] = 1.0
        rewards[1, 1, 0, 1] = 1.0
        game = rmab.Task.from_rewards(problem, rewards, low=0, high=1)

        class Follows(Always):
            name = "follows"

            def decide(self, state):
                return Always(int(state.episode == 1)).decide(state)

        run = rmab.run(game, Follows(0))
        assert run.reward.tolist() == [4.0] * 4
        np.testing.assert_allclose(run.regret("O1"), [0, -4, -4, -4], atol=1e-5)
        np.testing.assert_allclose(run.regret("O2"), [0, -4, -4, -4], atol=1e-5)
        np.testing.assert_allclose(run.regret("O3"), 0.0, atol=1e-5)
        assert run.relative_regret() == pytest.approx(-1 / 3, abs=1e-6)

    @pytest.mark.parametrize("seed", range(4))
    def test_order_of_the_comparators(self, seed):
        run = rmab.run(small_task(seed), "random", seed=seed)
        o1, o2, o3 = (run.comparators.per_episode(to) for to in ("O1", "O2", "O3"))
        assert o3.sum() >= o1.sum() - 1e-6 * abs(o1.sum())
        # O2 is a mean of 200 simulated episodes of 16 rewards in [-1, 2].
        assert o2.sum() <= o1.sum() + EPISODES * 4 * 3 * 16**0.5 / 200**0.5
        assert o2.sum() >= run.reward.sum() - EPISODES * 4 * 3 * 16**0.5 / 200**0.5

    def test_o3_knows_proportional_rewards(self):
        """Rewards in the same proportions are solved once; what they earn is scaled with them."""
        game = small_task(1)
        base = np.array(game.reward(0))
        rewards = np.array([0.5, 1.0, -0.25])[:, np.newaxis, np.newaxis, np.newaxis] * base
        o3 = rmab.runs.Comparators(game.problem, rewards).o3()
        for t, reward in enumerate(rewards):
            assert o3[t] == pytest.approx(rmab.solvers.solve_fluid(game.problem, reward).bound, rel=1e-6, abs=1e-6)
        assert o3[0] == pytest.approx(o3[1] / 2, rel=1e-9)

    def test_oracle_is_near_o2_and_beats_chance(self):
        game = known_task(pays=(0.25, 1.0))
        oracle, chance = rmab.run(game, "oracle"), rmab.run(game, "random")
        np.testing.assert_allclose(oracle.regret("O2"), 0.0, atol=1e-6)
        assert oracle.reward.sum() == 12.0
        assert 3.0 <= chance.reward.sum() < 12.0

    def test_oracle_plays_the_index_that_it_is_told(self):
        """On `split` the occupancy index takes all of A at the first step by rank, and 6 of 10 by dependent rounding."""
        game = rmab.make_task("split", episodes=40)
        scale = np.linspace(0.5, 1.5, 40)
        top = rmab.run(game, rmab.make_learner("oracle", index="occupancy"))
        assert (top.reward <= 14 * scale + 1e-9).all()
        dependent = rmab.run(game, rmab.make_learner("oracle", index="occupancy", rule="at-most", rounding="dependent"))
        assert dependent.reward.sum() > 1.05 * top.reward.sum()
        assert (dependent.activations <= top.activations).all()

    def test_comparators_are_shared_by_runs_of_the_same_rewards_only(self):
        game = rmab.make_task("cpap@noisy", seed=5, arms=4, budget=2, horizon=5, episodes=4)
        one, same = rmab.run(game, "random", 1), rmab.run(game, "ucmd", 2)
        assert one.comparators is same.comparators
        fresh = rmab.runs.Comparators(game.problem, one.rewards)
        for which in ("O1", "O2", "O3"):
            np.testing.assert_array_equal(one.comparators.per_episode(which), fresh.per_episode(which))
        others = [
            rmab.make_task("cpap@noisy", seed=6, arms=4, budget=2, horizon=5, episodes=4),
            rmab.make_task("cpap@noisy", seed=5, arms=4, budget=1, horizon=5, episodes=4),
            rmab.make_task("cpap@noisy", seed=5, arms=4, budget=2, horizon=6, episodes=4),
            rmab.make_task("cpap@iid", seed=5, arms=4, budget=2, horizon=5, episodes=4),
        ]
        for other in others:
            assert rmab.run(other, "random", 1).comparators.problem == other.problem

    def test_adaptive_adversary(self):
        game = rmab.make_task("deadline@adaptive", arms=4, budget=2, horizon=3, episodes=3)
        runs = {name: rmab.run(game, name, seed=1) for name in ("oracle", "random", "ucmd")}
        visits = np.zeros(runs["ucmd"].rewards.shape[1:], dtype=int)
        np.testing.assert_array_equal(runs["ucmd"].rewards[0], game.reward(0, visits))
        assert not np.array_equal(runs["ucmd"].rewards[1], runs["ucmd"].rewards[0])
        for run in runs.values():
            assert np.isfinite(run.regret()).all()

    def test_relative_regret_where_nothing_is_paid(self):
        run = rmab.run(known_task(pays=(0.0, 0.0)), "random")
        assert not np.isfinite(run.relative_regret()) or run.relative_regret() == 0.0


class TestErrors:
    @pytest.mark.parametrize("seed", [-1, 1.5, True, "0", None])
    def test_seed(self, seed):
        with pytest.raises(rmab.errors.ModelError, match="seed must be"):
            rmab.run(small_task(), "random", seed=seed)

    def test_unknown_names(self):
        with pytest.raises(rmab.errors.ModelError, match=r"^unknown learner 'ucb'\. `rmab learners` lists them$"):
            rmab.run(small_task(), "ucb")
        with pytest.raises(rmab.errors.ModelError, match=r"^unknown learner 'ucmd-arm', did you mean 'ucmd-armab'\?"):
            rmab.run(small_task(), "ucmd-arm")
        with pytest.raises(rmab.errors.ModelError, match="unknown task 'nothing'"):
            rmab.run("nothing", "random")

    def test_all_wrong_options_at_once(self):
        with pytest.raises(rmab.errors.ModelError) as caught:
            rmab.make_learner("ucmd", epsilon=2, step="fast", heat=3, scale="x", rule="all")
        line = str(caught.value)
        assert line.startswith("learner ucmd: ")
        assert "\n" not in line
        for part in ("epsilon: ", "(got 2)", "step: ", "(got 'fast')", "heat: ", "(got 3)", "scale: ", "rule: "):
            assert part in line
        assert "heat: no such option. Available: confidence, estimator, step, rounding, refresh, probes" in line
        assert line.endswith("`rmab learners ucmd` lists the options")

    @pytest.mark.parametrize(
        ("name", "option"),
        [
            ("ucmd", {"epsilon": 0}),
            ("ucmd-armab", {"epsilon": float("nan")}),
            ("ucmd-armab", {"scale": 0}),
            ("ucmd-armab", {"scale": float("inf")}),
            ("ucmd", {"confidence": "gauss"}),
            ("ucmd", {"estimator": "mean"}),
            ("ucmd-armab", {"step": "lazy"}),
            ("rmab-ucrl", {"version": "new"}),
            ("random", {"seed": 1}),
            ("oracle", {"table": 1}),
        ],
    )
    def test_one_wrong_option(self, name, option):
        ((key, value),) = option.items()
        with pytest.raises(rmab.errors.ModelError, match=rf"^learner {name}: {key}: .*\(got {value!r}\)"):
            rmab.make_learner(name, **option)

    def test_own_learners(self, tmp_path, monkeypatch):
        text = "from rmab.learning import RandomLearner\ndef make(luck=1):\n    return RandomLearner() if luck else luck\n"
        (tmp_path / "lucky.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        assert rmab.make_learner("lucky:make", luck=2).name == "random"
        with pytest.raises(rmab.errors.ModelError, match="learner lucky:make: returned int instead of Learner"):
            rmab.make_learner("lucky:make", luck=0)
        with pytest.raises(rmab.errors.ModelError, match=r"lucky:make: skill: no such option. Available: luck \(got 1\)"):
            rmab.make_learner("lucky:make", skill=1)
        with pytest.raises(rmab.errors.ModelError, match=r"learner lucky:nothing: 'nothing' does not exist in module lucky"):
            rmab.make_learner("lucky:nothing")

    def test_the_oracle_must_be_told(self):
        with pytest.raises(rmab.errors.ModelError, match="oracle must be informed of the problem first"):
            rmab.make_learner("oracle").begin(small_task().view())

    def test_states_are_not_exchanged(self):
        one, two = rmab.make_learner("ucmd"), rmab.make_learner("ucmd", scale=2)
        with pytest.raises(rmab.errors.ModelError, match=r"this state belongs to ucmd .*, not to ucmd "):
            two.plan(one.begin(small_task().view()))

    def test_begin_takes_a_view(self):
        with pytest.raises(
            rmab.errors.ModelError, match=r"a learner begins with a View, for example task.view\(\), got Task"
        ):
            rmab.make_learner("ucmd").begin(small_task())

    def test_a_task_from_a_file(self, tmp_path):
        path = str(tmp_path / "task.npz")
        small_task().save(path)
        assert rmab.run(path, "random").reward.tobytes() == rmab.run(small_task(), "random").reward.tobytes()

    def test_unknown_comparator(self):
        with pytest.raises(rmab.errors.ModelError, match="O4"):
            rmab.run(small_task(), "random").regret("O4")

    @pytest.mark.parametrize("wrong", [(5, "random"), (None, 5)])
    def test_wrong_types(self, wrong):
        game, player = wrong
        with pytest.raises(rmab.errors.ModelError):
            rmab.run(small_task() if game is None else game, player)
