"""Tasks and adversaries of one's own, by name; and the one place that decides which feedback a learner gets."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rmab
from own_parts import Pulsing, clinic
from rmab.cli import main
from rmab.study import LocalEngine, Results, Study, run_study
from rmab.testing import check_adversary

TINY = ("-t", "arms=4", "-t", "budget=2", "-t", "horizon=3", "--episodes", "2", "--json")
SMALL = {"arms": 4, "budget": 2, "horizon": 3, "episodes": 4}


def printed(*words: object) -> dict[str, Any]:
    outcome = CliRunner().invoke(main, [str(word) for word in words])
    assert outcome.exit_code == 0, outcome.output
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


class TestByName:
    def test_a_task(self) -> None:
        mine, same = rmab.make_task("own_parts:clinic", seed=7, patients=4), clinic(7, patients=4)
        assert (mine.name, mine.problem.arms.count, mine.feedback) == ("clinic", 4, "bandit")
        assert mine.reward(2).tobytes() == same.reward(2).tobytes()
        assert rmab.make_task("own_parts:clinic").reward(0).tobytes() == clinic(0).reward(0).tobytes()
        assert rmab.make_task("own_parts:clinic", copies=2).problem.arms.count == 6

    def test_feedback_is_the_maker_s_unless_asked_for_other(self) -> None:
        assert rmab.make_task("own_parts:clinic", feedback="full").feedback == "full"
        assert rmab.run("own_parts:clinic", "random", 3).reward.size == 4

    def test_a_problem_and_a_reward_model_meet_any_adversary(self) -> None:
        task = rmab.make_task("own_parts:ward@switching", seed=7, patients=4, episodes=6)
        assert (task.name, task.episodes, task.problem.arms.count) == ("own_parts:ward@switching", 6, 4)
        assert set(np.unique(task.adversary.factors)) == {0.1, 1.5}
        ramp = rmab.make_task("own_parts:ward", seed=7)
        assert (ramp.name, ramp.episodes) == ("own_parts:ward@ramp", 50)
        np.testing.assert_allclose(ramp.reward(0) * 3, ramp.reward(49))
        custom = rmab.make_task("own_parts:ward@own_parts:pulsing", seed=7)
        assert isinstance(custom.adversary, Pulsing)
        for against in rmab.list_adversaries():
            assert rmab.run(f"own_parts:ward@{against}", "random", 1).reward.size == 50

    def test_a_whole_task_meets_any_adversary_on_its_typical_reward(self) -> None:
        own, other = (rmab.make_task(f"own_parts:clinic{at}", seed=3, feedback="full") for at in ("", "@switching"))
        assert (other.name, other.episodes, other.feedback) == ("clinic@switching", own.episodes, "full")
        assert other.problem == own.problem
        low, high = np.minimum(own.base_reward * 0.1, 1), np.minimum(own.base_reward * 1.5, 1)
        reward = other.reward(0)
        assert (np.isclose(reward, low) | np.isclose(reward, high)).all()

    def test_an_adversary_of_a_built_in_task(self) -> None:
        game = rmab.make_task("cpap@own_parts:pulsing", seed=1, **SMALL)
        assert isinstance(game.adversary, Pulsing)
        assert game.name == "cpap@own_parts:pulsing"
        assert game.problem.arms.kernels.tobytes() == rmab.make_task("cpap", seed=1, **SMALL).problem.arms.kernels.tobytes()
        check_adversary(game.adversary)

    def test_on_the_command_line(self) -> None:
        small = ("-t", "arms=4", "-t", "budget=2", "-t", "horizon=3", "--episodes", 4, "--seed", 2, "--json")
        shown = printed("run", "cpap@own_parts:pulsing", "random", *small)
        assert (
            shown["reward"] == rmab.run(rmab.make_task("cpap@own_parts:pulsing", seed=2, **SMALL), "random", 2).reward.sum()
        )
        shown = printed("run", "own_parts:clinic", "random", "-t", "patients=2", "--json")
        assert shown["reward"] == rmab.run(clinic(0, patients=2), "random").reward.sum()
        assert printed("bound", "own_parts:clinic", "--seed", 3, "--json")["arms"] == 3

    def test_their_options_are_listed(self) -> None:
        shown = CliRunner().invoke(main, ["tasks", "own_parts:ward"]).stdout
        assert re.search(r"patients +3 +integer", shown)
        assert re.search(r"episodes +50 +integer >= 1", shown)
        schema = printed("tasks", "own_parts:clinic", "--json")["properties"]
        assert list(schema) == ["patients", "episodes", "feedback", "copies"]
        assert re.search(r"boldness +0.5 +number >= 0", CliRunner().invoke(main, ["learners", "own_parts:Mine"]).stdout)
        played = printed("run", "cpap", "ucmd", "-o", "estimator=own_parts:Fade", "-o", "estimator.speed=0.5", *TINY)
        assert played["learner"] == "ucmd"
        wrong = CliRunner().invoke(main, ["run", "cpap", "ucmd", "-o", "estimator=own_parts:Fade", "-o", "speed=-1"])
        assert "estimator.speed: Input should be greater than or equal to 0 (got -1)" in wrong.output

    @pytest.mark.slow
    def test_in_a_study(self, tmp_path: Path) -> None:
        file = tmp_path / "own.toml"
        options = "{ arms = 4, budget = 2, horizon = 3, episodes = 4 }"
        file.write_text(
            'name = "own"\nrounds = 2\n[[tasks]]\nname = "own_parts:clinic"\noptions = { patients = 2 }\n'
            f'[[tasks]]\nname = "cpap@own_parts:pulsing"\noptions = {options}\n[[learners]]\nname = "random"\n'
        )
        study = Study.load(file)
        assert run_study(study, tmp_path / "out", engine=LocalEngine(2)).complete
        results = Results.open(tmp_path / "out")
        rewards = results.to_pandas(["id", "reward"]).groupby("id").reward.apply(list)
        for job in study.jobs():
            game = rmab.make_task(job.task.name, seed=job.seed, **job.task.options)
            assert rewards[job.id] == rmab.run(game, "random", job.seed).reward.tolist()

    @pytest.mark.parametrize(
        ("name", "options", "said"),
        [
            ("no_such:maker", {}, "task no_such:maker: there is no module 'no_such'; is its folder on PYTHONPATH?"),
            ("own_parts:nothing", {}, "task own_parts:nothing: 'nothing' does not exist in module own_parts"),
            ("own_parts:NOT_CALLABLE", {}, "NOT_CALLABLE' is not a function or class in module own_parts"),
            ("own_parts:failing", {}, "task own_parts:failing: raised ValueError (no such clinic)"),
            ("own_parts:number", {}, "task own_parts:number: rejected: it declares that it returns int, not Task or tuple"),
            (
                "own_parts:clinic",
                {"beds": 3},
                "task own_parts:clinic: beds: no such option. Available: patients, episodes, feedback, copies",
            ),
            ("own_parts:clinic", {"patients": "x"}, "task own_parts:clinic: patients: Input should be a number (got 'x')"),
            ("own_parts:three", {}, "task own_parts:three: its function must return a Task, or (Problem, RewardModel)"),
            ("own_parts:ward@nobody", {}, "unknown adversary 'nobody'. `rmab tasks` lists them"),
            ("own_parts:ward", {"episodes": 0}, "task own_parts:ward: episodes: Input should be greater than or equal to 1"),
            ("cpap@no_such:maker", {}, "adversary no_such:maker: there is no module 'no_such'"),
            (
                "cpap@own_parts:number",
                {},
                "adversary own_parts:number: rejected: it declares that it returns int, not Adversary",
            ),
            (
                "cpap@own_parts:clinic",
                {},
                "adversary own_parts:clinic: rejected: it declares that it returns Task, not Adversary",
            ),
            ("cpap@own_parts:too_long", {}, "adversary own_parts:too_long: has 51 episodes, the task has 50"),
            ("nothing@own_parts:pulsing", {}, "unknown task 'nothing'"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, name: str, options: dict[str, int], said: str) -> None:
        with pytest.raises(rmab.errors.ModelError) as caught:
            rmab.make_task(name, **options)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_module_that_cannot_be_imported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
        (tmp_path / "wrong_code.py").write_text("def (:\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(
            rmab.errors.ModelError, match=r"cannot be imported \(No module named 'not_installed_anywhere'\)$"
        ):
            rmab.make_task("needs_more:maker")
        with pytest.raises(rmab.errors.ModelError, match=r"module 'wrong_code' cannot be imported \(SyntaxError: "):
            rmab.make_task("wrong_code:maker")


class TestFeedback:
    """A learner that is not defined without full feedback gets it everywhere, and the run says so."""

    TOLD = "sees all rewards of an episode"

    def test_by_names(self, tmp_path: Path) -> None:
        path = str(tmp_path / "task.json")
        rmab.make_task("cpap", **SMALL).save(path)
        assert rmab.run(path, "uc-o-reps").privileged == self.TOLD

    def test_of_a_task(self) -> None:
        played = rmab.run(rmab.make_task("cpap", **SMALL), "uc-o-reps")
        assert (played.task.feedback, played.privileged) == ("full", self.TOLD)

    def test_on_the_command_line(self) -> None:
        small = ("-t", "arms=4", "-t", "budget=2", "-t", "horizon=3", "--episodes", 4, "--json")
        shown = printed("run", "cpap", "uc-o-reps", *small)
        assert (shown["feedback"], shown["privileged"]) == ("full", self.TOLD)
        assert shown["reward"] == rmab.run(rmab.make_task("cpap", **SMALL), "uc-o-reps").reward.sum()

    @pytest.mark.slow
    def test_in_a_study(self, tmp_path: Path) -> None:
        whole = {
            "name": "s",
            "rounds": 1,
            "tasks": [{"name": "cpap", "options": SMALL}],
            "learners": [{"name": "uc-o-reps"}],
        }
        study = Study.model_validate(whole)
        run_study(study, tmp_path, engine=LocalEngine(1))
        table = Results.open(tmp_path).to_pandas()
        assert set(table.feedback) == {"full"}
        assert set(table.privileged) == {self.TOLD}
        seed = study.jobs()[0].seed
        played = rmab.run(rmab.make_task("cpap", seed=seed, **SMALL), "uc-o-reps", seed)
        assert table.reward.tolist() == played.reward.tolist()

    def test_what_is_asked_for_wins(self) -> None:
        game = rmab.make_task("cpap", **SMALL)
        assert rmab.run(game, "random", feedback="full").privileged == self.TOLD
        assert rmab.run(game, "random", feedback="active").task.feedback == "active"
        assert rmab.run(rmab.make_task("cpap", feedback="active", **SMALL), "random").task.feedback == "active"

    def test_unless_the_learner_is_not_defined_with_it(self) -> None:
        with pytest.raises(
            rmab.errors.ModelError, match=r"^uc-o-reps needs full feedback, got 'bandit'; leave feedback out"
        ):
            rmab.run(rmab.make_task("cpap", **SMALL), "uc-o-reps", feedback="bandit")


def test_a_run_has_a_short_repr() -> None:
    game = rmab.make_task("cpap", **SMALL)
    shown = repr(rmab.run(game, "random", 3))
    assert shown.startswith("Run(random on cpap@ramp, seed 3, 4 episodes, reward ")
    assert len(shown) < 100
    assert "privileged: sees all rewards" in repr(rmab.run(game, "random", feedback="full"))
