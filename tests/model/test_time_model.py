"""Phases, budgets by step and start probabilities: what is refused, what is equal, and what files keep."""

import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rmab
from rmab.errors import FileError, ModelError, PolicyError
from rmab.model.registry import ADVERSARIES
from rmab.model.time import by_phase, by_step, cells, place, split_cells, words_of
from timed import rewards_of, timed_problem

KERNEL = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
TWO = np.stack([KERNEL, KERNEL[:, ::-1]])  # (K, S, 2, S)
DAY = {"start": 0, "budget": 1, "horizon": 4, "phase_of": [0, 1, 0, 1]}


def day(**changes: object) -> rmab.Problem:
    return rmab.Problem(rmab.Arms.identical(TWO, 3), **{**DAY, **changes})  # type: ignore[arg-type]


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"phase_of": None},
                "phase_of is missing: the kernels have 2 phases, and there are 4 steps; give the phase of each step",
            ),
            ({"phase_of": [0, 1, 0]}, r"phase_of must have shape \(H,\) = \(4,\), one phase per step, got \(3,\)"),
            ({"phase_of": [0, 1, 2, 0]}, r"phase_of: step 2 must be a whole number in 0\.\.1, got 2"),
            ({"phase_of": [0, -1, 1, 0]}, r"phase_of: step 1 must be .*, got -1"),
            ({"phase_of": [0, 0.5, 1, 0]}, r"phase_of: step 1 must be .*, got 0\.5"),
            ({"phase_of": [0, np.nan, 1, 0]}, "phase_of: step 1 must be"),
            ({"phase_of": "abcd"}, "phase_of: not an array of numbers"),
            ({"budget": [1, 1, 1]}, r"budget must be a number or have shape \(H,\) = \(4,\), one per step, got \(3,\)"),
            ({"budget": [1, 4, 1, 1]}, r"budget: step 1 must be a whole number in 0\.\.3 \(the number of arms\), got 4"),
            ({"budget": [1, 1, 0.5, 1]}, "budget: step 2 must be a whole number"),
            ({"budget": [1, 1, 1, -1]}, "budget: step 3 must be a whole number"),
            ({"budget": [[1, 1, 1, 1]]}, "budget must be a number or have shape"),
            ({"start": np.ones((3, 2))}, "start: the probabilities of arm 0 sum to 2, not 1"),
            ({"start": [[1, 0], [0.5, 0.6], [1, 0]]}, r"start: the probabilities of arm 1 sum to 1\.1, not 1"),
            ({"start": [[1, 0], [1, 0], [1.5, -0.5]]}, r"start: arm 2, state 0 has probability 1\.5"),
            ({"start": [[1, 0], [1, 0], [np.nan, 1]]}, "start: arm 2, state 0 has probability nan"),
            ({"start": np.ones((2, 2)) / 2}, r"start must have shape \(N,\) = \(3,\), or \(N, S\) = \(3, 2\)"),
            ({"start": np.ma.masked_array(np.ones((3, 2)) / 2)}, "start must not be a masked array"),
        ],
    )
    def test_a_problem(self, changes: dict[str, object], message: str) -> None:
        with pytest.raises(ModelError, match=message):
            day(**changes)

    def test_kernels_name_the_phase(self) -> None:
        wrong = np.stack([TWO, TWO])
        wrong[1, 1, 0, 1] = [0.6, 0.5]
        with pytest.raises(ModelError, match=r"kernels: arm 1, phase 1, state 0, action 1 has row sum 1\.1, not 1"):
            rmab.Arms(wrong)
        wrong[1, 1, 0, 1] = [1.5, -0.5]
        with pytest.raises(ModelError, match=r"arm 1, phase 1, state 0, action 1, next state 1 has probability -0\.5"):
            rmab.Arms(wrong)

    def test_groups_and_support_name_the_phase(self) -> None:
        other = TWO.copy()
        other[1, 1, 0] = [0.25, 0.75]
        with pytest.raises(ModelError, match="arms 0 and 1 differ at phase 1, state 1, action 0, next state 0"):
            rmab.Arms([TWO, other], groups=[0, 0])
        support = np.ones((1, *TWO.shape), dtype=bool)
        support[0, 1, 0, 1, 1] = False
        with pytest.raises(
            ModelError, match="support: arm 0, phase 1, state 0, action 1, next state 1 is declared impossible"
        ):
            rmab.Arms(TWO[np.newaxis], support=support)

    def test_arms_of_other_phases_do_not_mix(self) -> None:
        with pytest.raises(ModelError, match=r"kernels\[1\] must have shape .* the same K phases"):
            rmab.Arms.of_sizes([TWO, KERNEL])

    @pytest.mark.parametrize(
        ("shape", "message"),
        [
            ((3, 3, 2, 2), r"reward must have shape \(N, K, S, 2\) = \(3, 2, 2, 2\), got \(3, 3, 2, 2\)"),
            ((3, 4, 2, 2), r"reward must have shape"),
            ((2, 2), r"reward must have shape"),
        ],
    )
    def test_rewards_of_other_phases(self, shape: tuple[int, ...], message: str) -> None:
        for use in (
            rmab.solvers.solve_fluid,
            rmab.planners.lagrangian_index,
            rmab.planners.finite_whittle_index,
            rmab.planners.LpUpdate,
            rmab.planners.myopic_index,
        ):
            with pytest.raises(ModelError, match=message):
                use(day(), np.zeros(shape))

    def test_a_timed_reward_for_a_plain_problem_says_what_to_do(self) -> None:
        plain = rmab.Problem(rmab.Arms.identical(KERNEL, 3), 0, 1, 4)
        with pytest.raises(ModelError, match=r"got \(3, 4, 2, 2\); .* the problem needs phase_of, for example"):
            rmab.solvers.solve_fluid(plain, np.zeros((3, 4, 2, 2)))

    def test_a_reward_that_is_no_number_names_the_phase(self) -> None:
        reward = np.zeros((3, 2, 2, 2))
        reward[2, 1, 0, 1] = np.inf
        with pytest.raises(ModelError, match="reward: arm 2, phase 1, state 0, action 1 is inf"):
            rmab.solvers.solve_fluid(day(), reward)

    def test_what_is_for_ever_has_no_phases(self) -> None:
        with pytest.raises(ModelError, match=r"whittle needs .* 2 phases; rmab\.planners\.finite_whittle_index supports"):
            rmab.planners.whittle_index(day(), np.zeros((3, 2, 2, 2)), discount=0.9)

    def test_policies(self) -> None:
        with pytest.raises(PolicyError, match=r"budget must be a number or have shape \(H,\) = \(4,\)"):
            rmab.IndexPolicy(np.zeros((3, 4, 2)), [1, 2, 1])
        with pytest.raises(PolicyError, match=r"step must be in 0\.\.1, got 2"):
            rmab.IndexPolicy(np.zeros((3, 2)), [1, 2]).act(2, np.zeros(3, dtype=int), np.random.default_rng(0))
        policy = rmab.IndexPolicy(np.zeros((3, 2)), [1, 0])
        with pytest.raises(PolicyError, match="a budget for 2 steps, the problem has 4"):
            rmab.simulate(day(), policy, np.zeros((3, 2, 2)), np.random.default_rng(0))

    def test_the_budget_that_was_broken_is_that_of_the_step(self) -> None:
        policy = rmab.IndexPolicy(np.ones((3, 2)), 2)
        with pytest.raises(rmab.errors.BudgetExceeded, match="step 2: the policy activates 2 arms, the budget is 1"):
            rmab.simulate(day(budget=[3, 2, 1, 0]), policy, np.zeros((3, 2, 2)), np.random.default_rng(0))

    def test_views(self) -> None:
        view = rewards_of(day(), 0).view()
        for wrong, message in (
            ({"horizon": 5}, r"horizon must be in 1\.\.4"),
            ({"horizon": 0}, r"horizon must be in 1\.\.4"),
            ({"start": [0, 2, 0]}, r"start\[1\] must be in 0\.\.1"),
            ({"budget": 7}, r"budget must be in 0\.\.3"),
            ({"horizon": 2, "budget": [1, 1, 1]}, r"budget must be a number or have shape \(H,\) = \(2,\)"),
        ):
            with pytest.raises(ModelError, match=message):
                view.situated(**wrong)  # type: ignore[arg-type]

    def test_steps_left(self) -> None:
        with pytest.raises(ModelError, match=r"step must be in 0\.\.3, got 4"):
            day().from_step(4, 0)


class TestEqual:
    def test_a_single_phase_is_none(self) -> None:
        assert rmab.Arms(KERNEL[np.newaxis, np.newaxis]) == rmab.Arms(KERNEL[np.newaxis])
        plain = rmab.Problem(rmab.Arms.identical(KERNEL, 3), 0, 1, 4)
        assert rmab.Problem(rmab.Arms.identical(KERNEL, 3), 0, [1] * 4, 4, [0] * 4) == plain
        assert plain.phases == 1
        assert rmab.RewardModel(np.ones((1, 3, 1, 2, 2)), 0, 2).base.shape == (3, 2, 2)

    def test_certain_probabilities_are_states(self) -> None:
        assert day(start=[[1, 0], [0, 1], [1, 0]]) == day(start=[0, 1, 0])

    def test_what_differs_is_not_equal(self) -> None:
        assert day() == day()
        for changes in ({"phase_of": [0, 1, 1, 1]}, {"budget": [1, 1, 1, 2]}, {"start": [[0.5, 0.5]] * 3}):
            assert day(**changes) != day()

    def test_kernels_by_step_need_no_phases(self) -> None:
        full = rmab.Arms.identical(np.stack([KERNEL] * 4), 3)
        np.testing.assert_array_equal(rmab.Problem(full, 0, 1, 4).phase_of, [0, 1, 2, 3])

    def test_plain_arms_in_phases_copy_nothing(self) -> None:
        many = rmab.Problem(rmab.Arms(np.stack([KERNEL] * 3)), 0, 1, 4, [0, 2, 1, 0])
        assert many.phases == 3
        assert many.arms.kernels.shape == (3, 3, 2, 2, 2)
        assert many.arms.kernels.strides[1] == 0

    def test_the_rest_of_an_episode(self) -> None:
        rest = day(budget=[3, 2, 1, 0]).from_step(1, [1, 0, 1])
        assert rest == day(start=[1, 0, 1], budget=[2, 1, 0], horizon=3, phase_of=[1, 0, 1])
        last = day().from_step(3, 0)
        assert last.phases == 2  # those of the arms, though only one is left
        assert last.budget == 1

    def test_a_window_wraps_the_day(self) -> None:
        whole = day(budget=[3, 2, 1, 0])
        assert whole.window(3, 3, [1, 0, 1]) == day(start=[1, 0, 1], budget=[0, 3, 2], horizon=3, phase_of=[1, 0, 1])
        assert whole.window(0, 4) == whole
        assert whole.window(2, 9).budgets.tolist() == [1, 0, 3, 2, 1, 0, 3, 2, 1]
        assert whole.window(1, 3, 0) == whole.from_step(1, 0)

    @pytest.mark.parametrize(("step", "length"), [(4, 1), (-1, 1), (0, 0), (0, -3), (0.5, 1), (0, 10**13)])
    def test_a_wrong_window_is_refused(self, step: float, length: int) -> None:
        with pytest.raises(ModelError, match=r"^(step|length|a window)") as error:
            day().window(step, length)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)

    def test_a_deadline_behind_midnight_counts(self) -> None:
        """At the last step of a day, a car that needs every slot until after midnight has an index above 0."""
        spots = rmab.make_task("deadline", arms=2, budget=1, horizon=4, episodes=1)
        state = list(spots.problem.arms.state_names).index("3,3")
        index = {}
        for name, ahead in (("rest", spots.problem.from_step(3, state)), ("window", spots.problem.window(3, 6, state))):
            index[name] = rmab.planners.lagrangian_index(ahead, spots.base_reward).table[0, 0, state]
        assert index["window"] > index["rest"]

    def test_words(self) -> None:
        assert repr(day(budget=[1, 2, 1, 1])) == (
            "Problem(Arms(3 arms, 2 states, 1 group, 2 phases), budget 1 to 2, horizon 4)"
        )
        assert "4 steps of 2 phases" in repr(rewards_of(day(), 0).view())
        assert words_of(2, "N", "S") == "(N, K, S)"
        assert place((1, 2, 3), 1) == "arm 1, state 2, action 3"
        assert place((4, 1, 2, 3), 2, ("episode",)) == "episode 4, arm 1, phase 2, state 3"


class TestShapes:
    @given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
    def test_cells_and_back(self, arms: int, phases: int, horizon: int) -> None:
        table = np.arange(arms * phases * 2, dtype=float).reshape((arms, phases, 2) if phases > 1 else (arms, 2))
        flat = cells(table, phases)
        assert flat.shape == (arms * phases, 2)
        np.testing.assert_array_equal(split_cells(flat, phases), table)
        phase_of = np.arange(horizon) % phases
        held = np.broadcast_to(by_step(flat, arms, phase_of), (arms, horizon, 2))
        for n in range(arms):
            for h in range(horizon):
                np.testing.assert_array_equal(held[n, h], flat[n * phases + phase_of[h]])

    def test_sums_by_phase(self) -> None:
        table = np.arange(12.0).reshape(2, 3, 2)
        np.testing.assert_array_equal(by_phase(table, np.array([1, 0, 1]), 3)[:, 1], table[:, 0] + table[:, 2])
        np.testing.assert_array_equal(by_phase(table, np.array([1, 0, 1]), 3)[:, 2], 0.0)
        np.testing.assert_array_equal(by_phase(table, np.zeros(3, dtype=int), 1), table.sum(axis=1))


class TestFiles:
    @pytest.mark.parametrize("suffix", [".json", ".npz"])
    @pytest.mark.parametrize("seed", range(3))
    def test_problems_and_tasks_are_kept_exactly(self, tmp_path, suffix: str, seed: int) -> None:
        problem, _ = timed_problem(seed, groups=[0, 1, 2])
        problem.save(tmp_path / f"p{suffix}")
        assert rmab.Problem.load(tmp_path / f"p{suffix}") == problem
        assert pickle.loads(pickle.dumps(problem)) == problem
        task = rewards_of(problem, seed)
        task.save(tmp_path / f"t{suffix}")
        again = rmab.Task.load(tmp_path / f"t{suffix}")
        assert again.problem == problem
        np.testing.assert_array_equal(again.reward(2), task.reward(2))

    @pytest.mark.parametrize("suffix", [".json", ".npz"])
    def test_policies_are_kept_exactly(self, tmp_path, suffix: str) -> None:
        problem, reward = timed_problem(1)
        policy = rmab.planners.lagrangian_index(problem, reward, rule="at-most")
        policy.save(tmp_path / f"p{suffix}")
        again = rmab.IndexPolicy.load(tmp_path / f"p{suffix}")
        np.testing.assert_array_equal(again.table, policy.table)
        np.testing.assert_array_equal(again.budget, policy.budget)
        assert (again.rule, again.rounding) == ("at-most", "top")
        played = [rmab.simulate(problem, p, reward, np.random.default_rng(3)).reward for p in (policy, again)]
        assert played[0] == played[1]

    def test_a_file_that_is_no_policy(self, tmp_path) -> None:
        day().save(tmp_path / "p.npz")
        with pytest.raises(FileError, match=r"contains a problem, not an index policy; read it with rmab\.Problem\.load"):
            rmab.IndexPolicy.load(tmp_path / "p.npz")
        (tmp_path / "p.json").write_text('{"kind": "rmab policy", "table": [[1, 2]], "budget": 3}')
        with pytest.raises(PolicyError, match=r"p\.json: budget must be in 0\.\.1"):
            rmab.IndexPolicy.load(tmp_path / "p.json")
        (tmp_path / "p.json").write_text('{"kind": "rmab policy", "table": [[1, 2]], "budget": 1, "rule": ["fill"]}')
        with pytest.raises(PolicyError, match=r"p\.json: rule must be"):
            rmab.IndexPolicy.load(tmp_path / "p.json")


class TestTasks:
    def test_rewards_without_phases_are_the_same_in_all(self) -> None:
        plain = np.random.default_rng(0).uniform(size=(2, 3, 2, 2))
        task = rmab.Task.from_rewards(day(), plain, low=0, high=1)
        assert task.reward(1).shape == (3, 2, 2, 2)
        for k in range(2):
            np.testing.assert_array_equal(task.reward(1)[:, k], plain[1])
            np.testing.assert_array_equal(task.base_reward[:, k], plain.mean(axis=0))

    def test_an_adaptive_adversary_counts_all_phases(self) -> None:
        model = rmab.RewardModel(np.ones((1, 3, 2, 2)), 0, 2)
        opponent = rmab.make_adversary("adaptive", model, 3, np.random.default_rng(0))
        task = rmab.Task("mine", day(), opponent)
        visits = np.random.default_rng(1).integers(0, 5, size=(3, 2, 2, 2))
        np.testing.assert_array_equal(task.reward(1, visits)[:, 0], opponent.reward(1, visits.sum(axis=1)))

    @pytest.mark.parametrize("name", ADVERSARIES)
    def test_adversaries_pay_by_phase(self, name: str) -> None:
        parts = np.random.default_rng(0).uniform(0.1, 1, size=(2, 3, 2, 2, 2))
        for units in (None, [0, 0, 1]):
            model = rmab.RewardModel(parts, 0, 4, units)
            opponent = rmab.make_adversary(name, model, 4, np.random.default_rng(0))
            flat = rmab.RewardModel(np.concatenate([parts[:, :, 0], parts[:, :, 1]], axis=2), 0, 4, units)
            twin = rmab.make_adversary(name, flat, 4, np.random.default_rng(0))  # phases as more states: the same factors
            visits = np.random.default_rng(2).integers(0, 9, size=(3, 2, 2, 2))
            joined = np.concatenate([visits[:, 0], visits[:, 1]], axis=1)
            paid = opponent.reward(3, visits)
            np.testing.assert_array_equal(np.concatenate([paid[:, 0], paid[:, 1]], axis=1), twin.reward(3, joined))

    def test_copies(self) -> None:
        problem, _ = timed_problem(0)
        twice = rewards_of(problem, 1).repeated(2)
        np.testing.assert_array_equal(twice.problem.budgets, 2 * problem.budgets)
        np.testing.assert_array_equal(twice.problem.start_masses[1], problem.start_masses[0])
        np.testing.assert_array_equal(twice.problem.phase_of, problem.phase_of)
