"""Studies of names and objects: what they become, what is refused, and runs in other processes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from own_parts import Fade, Mine, Plain, greedy
from rmab.errors import ModelError
from rmab.learning import Fading, Kl, RandomLearner, Ucmd
from rmab.study import LearnerSpec, LocalEngine, Results, Study, TaskSpec, run_study
from rmab.study.build import learner_of, task_of

SMALL = {"arms": 4, "budget": 2, "horizon": 3, "episodes": 2}


def test_names_and_objects_are_entries() -> None:
    learners = ["ucmd", Mine(boldness=2), LearnerSpec(name="random"), {"name": "oracle"}]  # type: ignore[call-arg]
    study = Study(tasks=["cpap", TaskSpec(name="split")], learners=learners, rounds=3)  # type: ignore[call-arg]
    assert (study.name, [one.label for one in study.tasks]) == ("study", ["cpap", "split"])
    assert [one.label for one in study.learners] == ["ucmd", "mine, boldness=2.0", "random", "oracle"]
    assert (study.learners[1].name, study.learners[1].options) == ("own_parts:Mine", {"boldness": 2.0})


@pytest.mark.parametrize(
    ("learner", "name", "options"),
    [
        (RandomLearner(), "random", {}),
        (Ucmd(), "ucmd", {}),
        (Ucmd(estimator=Fading()), "ucmd", {"estimator": {"name": "fading"}}),
        (Ucmd(confidence=Kl(epsilon=0.1)), "ucmd", {"confidence": {"name": "kl", "epsilon": 0.1}}),
        (Ucmd(estimator=Fade(speed=2)), "ucmd", {"estimator": {"name": "own_parts:Fade", "speed": 2.0}}),
        (Ucmd(estimator={"rates": [1.0, 0.5]}), "ucmd", {"estimator": {"name": "forecast", "rates": [1.0, 0.5]}}),
    ],
)
def test_a_learner_is_its_name_and_the_options_that_were_set(learner: Any, name: str, options: Any) -> None:
    [spec] = Study(tasks=["cpap"], learners=[learner], rounds=1).learners
    assert (spec.name, spec.options) == (name, options)
    assert learner_of(spec).signature == learner.signature


def test_a_task_object_is_the_same_in_every_study_and_round() -> None:
    task = rmab.make_task("cpap@noisy", seed=3, **SMALL)
    one, same = (Study(tasks=[task], learners=["random"], rounds=2) for _ in range(2))
    other = Study(tasks=[rmab.make_task("cpap@noisy", seed=4, **SMALL)], learners=["random"], rounds=2)
    assert [job.id for job in one.jobs()] == [job.id for job in same.jobs()]
    assert one.hash == same.hash != other.hash
    for job in one.jobs():
        built = task_of(job.task, job.seed)
        assert (built.name, built.problem) == (task.name, task.problem)
        np.testing.assert_array_equal(built.reward(1), task.reward(1))


@pytest.mark.slow
def test_a_study_of_objects_runs_in_other_processes(tmp_path: Path) -> None:
    task = rmab.make_task("cpap@noisy", seed=3, **SMALL)
    entry = {"name": "cpap", "options": SMALL}
    study = Study(tasks=[task, entry], learners=["random", Mine(), Ucmd(estimator=Fade(speed=2))], rounds=1)
    status = run_study(study, tmp_path, engine=LocalEngine(1))
    assert status.complete, status.failures
    table = Results.open(tmp_path).table(["task", "learner", "reward"]).to_pandas()
    assert sorted(set(table["learner"])) == ["mine", "random", "ucmd, estimator=own_parts:Fade, estimator.speed=2.0"]
    seed = study.jobs()[0].seed
    played = table[(table["task"] == "cpap@noisy") & (table["learner"] == "random")]["reward"]
    np.testing.assert_array_equal(played, rmab.run(task, "random", seed).reward)
    assert run_study(study, tmp_path, engine=LocalEngine(1)).finished == 6


class Local(RandomLearner):
    """Of a module that cannot be imported by name."""


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"rounds": 0}, "study: rounds: Input should be greater than or equal to 1 (got 0)"),
        ({"learners": []}, "study: learners: List should have at least 1 item"),
        ({"tasks": [3]}, "study: tasks[0]: must be a name, a Task or a table, got int (got 3)"),
        ({"tasks": [rmab.make_task]}, "study: tasks[0]: must be a name, a Task or a table, got a function; give its"),
        ({"learners": [Mine]}, "study: learners[0]: must be a name, a Learner or a table, got a class; give an object"),
        ({"tasks": ["cpap", "cpap"]}, "study: tasks: duplicate label 'cpap'"),
        ({"colour": 1}, "study: colour: Extra inputs are not permitted (got 1)"),
        ({"learners": [Plain(3)]}, "study: learners[0]: learner Plain: cannot be rebuilt from its options"),
        ({"tasks": [rmab.make_task("cpap@adaptive", **SMALL)]}, "study: tasks[0]: task cpap@adaptive: cannot be sent to"),
    ],
)
def test_what_is_wrong_is_our_error_in_one_line(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        Study(**{"tasks": ["cpap"], "learners": ["random"], "rounds": 1, **entries})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_model_validate_raises_our_error() -> None:
    with pytest.raises(ModelError, match=r"study: rounds: Field required; tasks: List should have at least 1 item"):
        Study.model_validate({"tasks": [], "learners": ["random"]})
    with pytest.raises(ModelError, match="study: must be a table, got list"):
        Study.model_validate([])
    study = Study(tasks=["cpap"], learners=["random"], rounds=1)
    assert Study.model_validate(study.model_dump()) == study


def test_a_planner_function_plays_in_a_study() -> None:
    learner = rmab.make_learner("planner", planner=greedy)
    [spec] = Study(tasks=["cpap"], learners=[learner], rounds=1).learners
    assert spec.options == {"planner": "own_parts:greedy"}
    assert learner_of(spec).signature == learner.signature
    with pytest.raises(ModelError, match=r"planner <lambda>: other processes cannot import it from a function; move it"):
        Study(tasks=["cpap"], learners=[rmab.make_learner("planner", planner=lambda *_: None)], rounds=1)


def test_a_learner_of_a_function_or_script_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    class Inner(RandomLearner):
        pass

    with pytest.raises(ModelError, match=r"learner Inner: other processes cannot import it from a function; move it into"):
        Study(tasks=["cpap"], learners=[Inner()], rounds=1)
    monkeypatch.setattr(Local, "__module__", "__main__")
    with pytest.raises(ModelError, match=r"learner Local: other processes cannot import it from the script that runs; move"):
        Study(tasks=["cpap"], learners=[Local()], rounds=1)


def test_components_with_options_in_toml_and_on_the_command_line(tmp_path: Path) -> None:
    table = 'name = "x"\nrounds = 1\n[[tasks]]\nname = "cpap"\n[[learners]]\nname = "ucmd"\n'
    file = tmp_path / "x.toml"
    file.write_text(table + 'options = { estimator = {name = "own_parts:Fade", speed = 0.5}, probes.every = 0.0 }\n')
    [spec] = Study.load(file).learners
    assert spec.label == "ucmd, estimator=own_parts:Fade, estimator.speed=0.5, probes.every=0.0"
    learner: Any = learner_of(spec)
    assert (learner.estimator.speed, learner.probes.every) == (0.5, 0.0)
    file.write_text(table + 'options = { estimator = {name = "own_parts:Fade", speed = -1.0} }\n')
    with pytest.raises(
        ModelError, match=r"learners\[0\].options.estimator.speed: Input should be greater than or equal to 0"
    ):
        Study.load(file)
