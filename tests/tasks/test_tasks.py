"""Tasks: the numbers of the two case studies, and tasks of one's own."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import rmab
from rmab.errors import FileError, ModelError, RmabError
from rmab.model.registry import ADVERSARIES
from rmab.tasks.cpap import ADHERENT, NON_ADHERENT
from rmab.tasks.deadline import STATES, earliest_deadline_first, least_laxity_first
from strategies import random_problem

SHAPES = {"cpap": (20, 3, 10, 50, 50), "cpap-adherence": (20, 3, 10, 50, 50), "deadline": (100, 120, 30, 100, 100)}
SHAPES["split"] = (24, 3, 10, 2, 50)
SHAPES |= {"greener": (2, 1, 1, 5, 400), "turns": (2, 1, 1, 5, 400), "good-bad": (8, 2, 3, 20, 30)}
SHAPES["two-way"] = (1, 2, 1, 2, 200)
SHAPES |= dict.fromkeys(("gast-1", "gast-2", "gast-3"), (100, 3, 40, 200, 50))
SHAPES |= {"conveyor": (100, 8, 50, 200, 50), "non-indexable": (100, 3, 50, 200, 50)}
SHAPES |= {"non-sa": (100, 10, 60, 200, 50), "circulant": (100, 4, 20, 200, 50)}
SHAPES |= {"restart": (100, 5, 20, 200, 50), "machine": (50, 6, 10, 100, 50), "queue": (50, 11, 15, 100, 50)}
SHAPES |= {"random-dense": (20, 5, 5, 50, 50), "random-sparse": (20, 8, 5, 50, 50), "random-types": (60, 5, 15, 50, 50)}
SHAPES["swim"] = (10, 4, 3, 30, 60)
SHAPES |= dict.fromkeys(("harm", "drift"), (20, 3, 10, 50, 50)) | {"clock": (20, 3, 5, 48, 50)}
SHAPES |= {"conveyor-bait": (100, 8, 50, 200, 50), "dirichlet-355": (100, 10, 64, 200, 50)}
SHAPES |= {
    "dirichlet-582": (100, 10, 87, 200, 50),
    "cpap-dopl": (20, 3, 8, 100, 1600),
    "armman-dopl": (20, 3, 10, 5, 20_000),
}
SHAPES["deadline-day"] = (100, 120, (20 * 32 + 4 * 24) / 24, 288, 20)  # the budget of the mean step


@pytest.mark.parametrize("name", rmab.list_tasks())
def test_every_listed_task_exists_with_its_sizes_and_range(name: str) -> None:
    task = rmab.make_task(name)
    problem = task.problem
    sizes = (problem.arms.count, problem.arms.states, problem.budgets.mean(), problem.horizon, task.episodes)
    assert task.name == name
    assert sizes == SHAPES[name.partition("@")[0]]
    np.testing.assert_allclose(problem.arms.kernels[problem.arms.representatives].sum(axis=-1), 1, atol=1e-12)
    begins = {"good-bad": 0.5, "harm": 1, "drift": 1, "clock": 1}.get(name.partition("@")[0], 0)
    assert (problem.start == begins).all()
    rng = np.random.default_rng(0)
    for t in (0, task.episodes // 2, task.episodes - 1):
        reward = task.reward(t, rng.integers(0, 50, task.base_reward.shape))
        assert reward.min() >= task.adversary.low
        assert reward.max() <= task.adversary.high
        assert reward.shape == (sizes[0], *(() if problem.phases == 1 else (problem.phases,)), sizes[1], 2)


def test_families_meet_every_adversary_unless_they_bring_their_own_rewards() -> None:
    assert len(rmab.list_tasks()) == 14 * 26 + 5
    assert all(summary for summary in rmab.list_tasks().values())


def test_the_guide_lists_every_family_and_no_other() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = guide.partition("| family |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(SHAPES) == sorted({name.partition("@")[0] for name in rmab.list_tasks()})


def test_the_guide_lists_every_adversary_and_no_other() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = guide.partition("| adversary |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(ADVERSARIES)


def test_the_same_seed_gives_the_same_task_and_another_seed_another() -> None:
    one, same, other = (
        rmab.make_task("cpap@iid", seed=3),
        rmab.make_task("cpap@iid", seed=3),
        rmab.make_task("cpap@iid", seed=4),
    )
    assert one.problem == same.problem
    np.testing.assert_array_equal(one.reward(7), same.reward(7))
    assert one.problem != other.problem
    assert (one.reward(7) != other.reward(7)).any()
    # The adversary has a stream of its own: it does not change the patients.
    assert one.problem == rmab.make_task("cpap", seed=3).problem


class TestCpap:
    def test_fluid_value(self) -> None:
        # Ten calls a step, all arms low at first: 10 + 49 * 30.
        task = rmab.make_task("cpap")
        assert rmab.solvers.solve_fluid(task.problem, task.base_reward).value == pytest.approx(1480, rel=1e-9)

    def test_clusters_and_their_noise(self) -> None:
        kernels = rmab.make_task("cpap", seed=1, arms=2000).problem.arms.kernels
        np.testing.assert_allclose(kernels[:1000, :, 0].mean(axis=0), ADHERENT, atol=0.01)
        np.testing.assert_allclose(kernels[1000:, :, 0].mean(axis=0), NON_ADHERENT, atol=0.01)
        np.testing.assert_array_equal(kernels[:1000, :, 0] > 0, np.broadcast_to(ADHERENT > 0, (1000, 3, 3)))

    def test_noise_and_effect_of_a_call_have_their_sizes(self) -> None:
        kernels = rmab.make_task("cpap", arms=2000).problem.arms.kernels[1000:]  # non-adherent: rarely capped
        passive = kernels[:, :, 0]
        noise = np.log(passive[..., 0] / passive[..., 2]).std(axis=0) / np.sqrt(2)
        np.testing.assert_allclose(noise, 0.1, rtol=0.09)  # 4 standard errors of a deviation of 1000 draws
        rise = kernels[:, 0, :, 1:].sum(axis=2)
        effect = rise[:, 1] / rise[:, 0] - 1
        assert 0.05 <= effect.min() < 0.055
        assert 0.495 < effect.max() <= 0.5
        assert abs(effect.mean() - 0.275) < 4 * 0.13 / np.sqrt(1000)
        for s in (1, 2):  # the same effect in the middle; at the top, on staying there
            top = kernels[:, s, :, 2]
            np.testing.assert_allclose(top[:, 1], np.minimum(1, top[:, 0] * (1 + effect)), rtol=1e-9)

    def test_adherence_counts_for_everyone_and_calls_add_little(self) -> None:
        task = rmab.make_task("cpap-adherence")
        bound = rmab.solvers.solve_fluid(task.problem, task.base_reward, tolerance=1e-7).bound
        assert bound == pytest.approx(2610.754, abs=1e-3)
        batch = rmab.simulate_many(
            task.problem, rmab.planners.random_policy(task.problem), task.base_reward, np.random.default_rng(0), 200
        )
        assert batch.mean / bound == pytest.approx(0.96, abs=0.01)

    def test_a_call_multiplies_the_chance_to_rise(self) -> None:
        kernels = rmab.make_task("cpap", seed=2).problem.arms.kernels[
            10:
        ]  # non-adherent: nothing is capped in the low state
        rise = kernels[:, 0, :, 1:].sum(axis=2)
        gain = rise[:, 1] / rise[:, 0] - 1
        assert ((gain >= 0.05) & (gain <= 0.5)).all()
        middle = kernels[:, 1, 1, 2] / kernels[:, 1, 0, 2] - 1
        capped = kernels[:, 1, 1, 2] == 1.0
        np.testing.assert_allclose(middle[~capped], gain[~capped], rtol=1e-9)
        # Within the rest, proportions are kept.
        np.testing.assert_allclose(
            kernels[:, 2, 1, 0] * kernels[:, 2, 0, 1], kernels[:, 2, 1, 1] * kernels[:, 2, 0, 0], atol=1e-12
        )

    def test_only_called_patients_pay_unless_adherence_counts(self) -> None:
        np.testing.assert_array_equal(rmab.make_task("cpap").base_reward[0], [[0, 1], [0, 2], [0, 3]])
        np.testing.assert_array_equal(rmab.make_task("cpap-adherence").base_reward[0], [[1, 1], [2, 2], [3, 3]])
        assert rmab.make_task("cpap").view().passive_zero
        assert not rmab.make_task("cpap-adherence").view().passive_zero

    def test_the_ramp_is_the_paper_s(self) -> None:
        task = rmab.make_task("cpap")
        factors = [task.reward(t)[0, 0, 1] for t in range(50)]
        np.testing.assert_allclose(factors, [0.5 + t / 49 for t in range(50)])
        assert (task.adversary.low, task.adversary.high) == (0.0, 4.5)

    def test_odd_number_of_patients_is_refused(self) -> None:
        with pytest.raises(ModelError, match=r"^task cpap: arms: Input should be a multiple of 2 \(got 3\)$"):
            rmab.make_task("cpap", arms=3)


class TestDeadline:
    def test_states(self) -> None:
        assert len(STATES) == 120
        arms = rmab.make_task("deadline").problem.arms
        reached, new = {0}, {0}
        while new:
            new = {int(y) for s in new for y in np.flatnonzero(arms.kernels[0, s].max(axis=0))} - reached
            reached |= new
        assert len(reached) == 120  # all of them, from an empty spot

    def test_rewards_by_hand(self) -> None:
        reward = dict(zip(STATES, rmab.make_task("deadline").base_reward[0].tolist(), strict=True))
        assert reward[0, 0] == reward[5, 0] == reward[1, 0] == [0, 0]
        assert reward[5, 3] == [0, 0.5]
        np.testing.assert_allclose(reward[1, 9], [-16.2, 0.5 - 12.8])
        np.testing.assert_allclose(reward[1, 1], [-0.2, 0.5])

    def test_transitions_by_hand(self) -> None:
        kernel, number = rmab.make_task("deadline").problem.arms.kernels[0], {state: s for s, state in enumerate(STATES)}
        assert kernel[number[5, 3], 1, number[4, 2]] == 1
        assert kernel[number[5, 3], 0, number[4, 3]] == 1
        assert kernel[number[12, 9], 0, number[11, 9]] == 1
        assert kernel[number[5, 0], 1, number[4, 0]] == 1
        for leaving in (number[0, 0], number[1, 4]):
            assert kernel[leaving, 0, 0] == pytest.approx(0.3)
            assert kernel[leaving, 1, number[12, 9]] == pytest.approx(0.7 / 108)

    @pytest.mark.slow
    def test_fluid_value_and_reference_policies(self) -> None:
        task = rmab.make_task("deadline")
        problem, reward = task.problem, task.base_reward
        # The reference policies are those of a vertex: the plan inside the optimal set has another occupancy index.
        plan = rmab.solvers.solve_fluid(problem, reward, method="highs")
        assert plan.value == pytest.approx(-1330.506, abs=1e-3)
        # Means of two independent sets of 30 runs each, standard error about 28.
        expected = {
            rmab.planners.lagrangian_index(problem, reward, fluid=plan): [-1383],
            least_laxity_first(problem): [-1364, -1417],
            rmab.planners.occupancy_index(problem, reward, fluid=plan): [-1429, -1498],
            earliest_deadline_first(problem): [-2459],
            rmab.planners.myopic_index(problem, reward, lookahead=False): [-2658],
            rmab.planners.random_policy(problem): [-3804, -3867],
        }
        for policy, means in expected.items():
            batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(0), 200)
            spread = np.hypot(batch.stderr, 28 / np.sqrt(len(means)))
            assert abs(batch.mean - np.mean(means)) < 4 * spread
            assert batch.mean <= plan.bound + 4 * batch.stderr

    def test_groups_and_support_are_options(self) -> None:
        assert rmab.make_task("deadline").view().pooled_rewards
        literal = rmab.make_task("deadline", arms=4, budget=1, grouped=False, known_support=True)
        assert literal.problem.arms.groups is None
        assert not literal.view().pooled_rewards
        np.testing.assert_array_equal(literal.view().support, literal.problem.arms.kernels > 0)

    def test_pay_and_penalty_have_separate_factors(self) -> None:
        task = rmab.make_task("deadline@iid")
        pay = [task.reward(t)[0, STATES.index((5, 3)), 1] / 0.5 for t in range(100)]
        penalty = [task.reward(t)[0, STATES.index((1, 2)), 0] / -0.8 for t in range(100)]
        assert abs(np.corrcoef(pay, penalty)[0, 1]) < 0.35
        assert (task.reward(3) == task.reward(3)[0]).all()  # one tariff for all spots


class TestOwnTasks:
    @pytest.mark.parametrize("suffix", [".npz", ".json"])
    def test_saved_and_read_back(self, tmp_path: Path, suffix: str) -> None:
        task = rmab.make_task("cpap@noisy", seed=5, arms=4, budget=2, horizon=6, episodes=3)
        task.save(tmp_path / f"mine{suffix}")
        again = rmab.make_task(tmp_path / f"mine{suffix}")
        assert again.problem == task.problem
        assert again.name == "cpap@noisy"
        for t in range(3):
            np.testing.assert_array_equal(again.reward(t), task.reward(t))
        for field in dataclasses.fields(again.view()):
            np.testing.assert_equal(getattr(again.view(), field.name), getattr(task.view(), field.name))

    def test_from_arrays(self) -> None:
        problem, _ = random_problem(0, count=2, states=2, horizon=3, budget=1)
        rewards = np.random.default_rng(0).random((4, 2, 2, 2))
        task = rmab.Task.from_rewards(problem, rewards, low=0, high=1)
        assert task.episodes == 4
        assert (task.view().low, task.view().high) == (0, 1)
        np.testing.assert_array_equal(task.reward(2), rewards[2])
        np.testing.assert_allclose(task.base_reward, rewards.mean(axis=0))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"rewards": np.zeros((2, 2, 2))}, r"rewards must have shape \(T, N, S, 2\)"),
            ({"rewards": np.full((1, 2, 2, 2), 5.0)}, "episode 0, arm 0, state 0, action 0 is 5.0, outside"),
            ({"rewards": np.full((1, 2, 2, 2), np.nan)}, "episode 0, arm 0, state 0, action 0 is nan"),
            (
                {"rewards": np.ones((1, 2, 2, 2)), "passive_zero": True},
                "declared zero, but episode 0, arm 0, state 0 is not 0",
            ),
            ({"rewards": np.zeros((1, 3, 2, 2))}, "the rewards have shape"),
            ({"feedback": "some"}, "feedback must be one of bandit, active, full"),
            ({"low": 1, "high": 1}, "outside|low < high"),
        ],
    )
    def test_wrong_tasks_are_refused(self, change: dict[str, object], message: str) -> None:
        problem, _ = random_problem(0, count=2, states=2, horizon=3, budget=1)
        options = {"rewards": np.zeros((1, 2, 2, 2)), "low": 0, "high": 1, **change}
        with pytest.raises(ModelError, match=message):
            rmab.Task.from_rewards(problem, options.pop("rewards"), **options)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"kind": "other"}, FileError, "the file has kind 'other'; the kind of a task is 'rmab task'"),
            ({"budget": 7}, ModelError, r"budget must be in 0\.\.2"),
            ({"low": "abc"}, ModelError, "range: not an array of numbers"),
            ({"passive_zero": "false"}, ModelError, "passive_zero must be true or false, got 'false'"),
            ({"passive_zero": 1}, ModelError, "passive_zero must be true or false, got 1"),
            ({"name": 5}, ModelError, "name must be text, got 5"),
            ({"feedback": 5}, ModelError, "feedback must be one of bandit, active, full, got 5"),
        ],
    )
    def test_a_wrong_file_is_named(self, tmp_path: Path, change: dict[str, object], error: type, message: str) -> None:
        path = tmp_path / "bad.json"
        rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1).save(path)
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
        with pytest.raises(error, match=f"^{re.escape(str(path))}: {message}"):
            rmab.make_task(path)

    def test_a_file_with_two_feedbacks_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.npz"
        rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1).save(path)
        with np.load(path) as fields:
            np.savez(path, **{**fields, "feedback": np.array(["bandit", "full"])})
        with pytest.raises(RmabError, match=f"^{re.escape(str(path))}: "):
            rmab.make_task(path)

    @pytest.mark.parametrize("options", [{"seed": 0}, {"arms": 4}])
    def test_a_file_takes_no_options(self, tmp_path: Path, options: dict[str, object]) -> None:
        path = tmp_path / "mine.json"
        rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1).save(path)
        with pytest.raises(ModelError, match=f"^{re.escape(str(path))}: a task file takes no seed and no options"):
            rmab.make_task(path, **options)  # type: ignore[arg-type]

    def test_a_file_says_its_feedback_unless_asked_for_other(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.json"
        rmab.make_task("cpap", arms=2, budget=1, horizon=2, episodes=1, feedback="active").save(path)
        assert rmab.make_task(path).feedback == "active"
        assert rmab.make_task(path, feedback="full").feedback == "full"

    def test_adaptive_rewards_cannot_be_saved(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="adaptive"):
            rmab.make_task("cpap@adaptive").save(tmp_path / "x.npz")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing", {}, "unknown task 'nothing'. `rmab tasks` lists them"),
        ("cpap@nobody", {}, "unknown adversary 'nobody'. `rmab tasks` lists them"),
        ("cpap", {"seeds": 3}, "seeds: no such option. Available: arms, budget, horizon, episodes, copies"),
        ("cpap", {"seed": 0.5}, "seed must be a whole number"),
        ("cpap", {"seed": -1}, "seed must be 0 or more, got -1"),
        ("cpap", {"seed": True}, "seed must be a whole number, got True"),
        ("cpap", {"episodes": 0}, "episodes: Input should be greater than or equal to 1"),
        ("cpap", {"arms": "x"}, "arms: Input should be a number .got 'x'"),
        ("cpap", {"arms": True}, "arms: Input should be a number .got True"),
        ("cpap", {"feedback": "some"}, "feedback must be one of bandit, active, full, got 'some'"),
        ("deadline", {"grouped": 1}, "grouped: Input should be a valid boolean .got 1"),
        ("deadline", {"known_support": 0.0}, r"known_support: Input should be a valid boolean .got 0\.0"),
    ],
)
def test_wrong_names_and_options_are_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        rmab.make_task(name, **options)  # type: ignore[arg-type]


def test_options_reach_the_task() -> None:
    task = rmab.make_task("cpap", arms=4.0, budget=np.int64(1), feedback="full")  # type: ignore[arg-type]
    assert task.problem == rmab.make_task("cpap", arms=4, budget=1).problem
    assert task.view().feedback == "full"
    assert rmab.make_task("cpap").view().feedback == "bandit"
    assert rmab.make_task("cpap").problem == rmab.make_task("cpap", seed=0).problem


def test_a_view_holds_no_kernel_and_nothing_that_leads_to_one() -> None:
    kernels = [[[[1.0, 0.0]] * 2] * 2] * 2
    arms = rmab.Arms(kernels, groups=[0, 0], support=np.ones((2, 2, 2, 2)), sizes=[2, 2])
    task = rmab.Task.from_rewards(rmab.Problem(arms, 0, 1, 3), np.zeros((1, 2, 2, 2)), low=0, high=1)
    view = task.view()
    own = [task.problem.start, arms.kernels, arms.groups, arms.support, arms.sizes]
    copied = {}
    for field in dataclasses.fields(view):
        value = getattr(view, field.name)
        if isinstance(value, np.ndarray):
            copied[field.name] = value
            assert value.dtype != np.float64, field.name
            assert value.base is None, field.name
            assert not any(np.shares_memory(value, array) for array in own), field.name
    assert set(copied) == {"start", "groups", "support", "sizes"}


class TestCopies:
    def test_are_alike_under_as_many_times_the_budget(self) -> None:
        one, three = (
            rmab.make_task("cpap@switching", seed=2, arms=4, budget=1),
            rmab.make_task("cpap@switching", seed=2, arms=4, budget=1, copies=3),
        )
        assert (three.problem.arms.count, three.problem.budget, three.episodes) == (12, 3, 50)
        np.testing.assert_array_equal(three.problem.arms.kernels, np.repeat(one.problem.arms.kernels, 3, axis=0))
        for t in (0, 20):
            np.testing.assert_array_equal(three.reward(t), np.repeat(one.reward(t), 3, axis=0))
        assert three.view().pooled_rewards
        bounds = [rmab.solvers.solve_fluid(task.problem, task.base_reward).bound for task in (one, three)]
        assert bounds[1] == pytest.approx(3 * bounds[0], rel=1e-6)

    def test_of_a_task_file(self, tmp_path: Path) -> None:
        task = rmab.make_task("cpap@iid", arms=4, budget=2, horizon=3, episodes=4)
        task.save(tmp_path / "own.npz")
        twice = rmab.make_task(tmp_path / "own.npz", copies=2)
        np.testing.assert_array_equal(twice.reward(3), np.repeat(task.reward(3), 2, axis=0))
        assert twice.problem.budget == 4

    def test_an_adaptive_adversary_answers_to_all_of_them(self) -> None:
        one = rmab.make_task("cpap@adaptive", arms=4, budget=2, copies=1)
        two = rmab.make_task("cpap@adaptive", arms=4, budget=2, copies=2)
        visits = np.zeros((8, 3, 2))
        visits[0, 0, 1] = visits[1, 0, 0] = 5  # one copy always called, the other never
        reward = two.reward(1, visits)
        np.testing.assert_array_equal(reward[0], reward[1])
        np.testing.assert_array_equal(reward[0, :, 1], one.base_reward[0, :, 1] * 1.0)

    @pytest.mark.parametrize("copies", [0, -1, 1.5, "two"])
    def test_wrong_numbers(self, copies: object) -> None:
        with pytest.raises(ModelError, match=r"(times|copies) must be"):
            rmab.make_task("cpap", copies=copies)  # type: ignore[arg-type]


def test_split_is_worth_sixteen() -> None:
    task = rmab.make_task("split")
    assert rmab.solvers.solve_fluid(task.problem, task.base_reward).bound == pytest.approx(16, rel=1e-9)
