"""Studies as data: what is wrong is said all at once, and ids never change."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import rmab
from rmab.study import BUILTIN, Study, play
from rmab.study.spec import builtin_names
from studies import TINY, small_study

WRONG = """
name = "wrong"
rounds = 0
colour = "red"

[[tasks]]
name = "cpap@noisy"
options = { arms = 7 }

[[tasks]]
name = "cpop"

[[tasks]]
name = "cpap"
options = { patients = 3, doctors = 2 }

[[learners]]
name = "ucmd"
options = { doubt = 2000000.0, speed = 3, rounding = "up" }

[[learners]]
name = "genius"

[[learners]]
name = "random"
feedback = "some"

[[learners]]
name = "oracle"
options = { rounding = "dependent" }

[[learners]]
name = "nowhere:Learner"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


class TestErrors:
    def test_all_are_named_at_once_with_their_places(self, tmp_path: Path) -> None:
        path = written(tmp_path, WRONG)
        with pytest.raises(rmab.errors.ModelError) as caught:
            Study.load(path)
        message = str(caught.value)
        assert "\n" not in message
        for part in (
            f"{path}: ",
            "rounds: Input should be greater than or equal to 1 (got 0)",
            "colour: Extra inputs are not permitted (got 'red')",
            "tasks[0].options.arms: Input should be a multiple of 2 (got 7)",
            "tasks[1].name: unknown task 'cpop'",
            "tasks[2].options.patients: no such option. Available: arms, budget, horizon, episodes, copies",
            "learners[0].options.estimator.doubt: Input should be less than or equal to 1000000 (got 2000000.0)",
            "learners[0].options.speed: no such option. Available: confidence, estimator, ",
            "learners[0].options.rounding: unknown rounding 'up'. `rmab learners ucmd` lists them (got 'up')",
            "learners[1].name: unknown learner 'genius'",
            "learners[2].feedback: Input should be 'bandit', 'active' or 'full' (got 'some')",
            "learners[3].options: learner oracle: dependent rounding needs index 'occupancy'",
            "learners[4].name: learner nowhere:Learner: there is no module 'nowhere'",
        ):
            assert part in message

    @pytest.mark.parametrize(
        ("learner", "faults"),
        [
            (
                {"name": "ucmd-armab", "options": {"epsilon": [1]}},
                ["learners[0].options.epsilon: Input should be a valid number"],
            ),
            ({"options": {}}, ["learners[0].name: Field required"]),
            ({"name": 3}, ["learners[0].name: Input should be a valid string (got 3)"]),
        ],
    )
    def test_one_mistake_is_one_fault(self, learner: dict[str, object], faults: list[str]) -> None:
        raw = {"name": "x", "rounds": 1, "tasks": [{"name": "cpap"}], "learners": [learner]}
        with pytest.raises(rmab.errors.ModelError) as caught:
            Study._checked(raw, "here")
        said = str(caught.value).removeprefix("here: ").split("; ")
        assert len(said) == len(faults)
        assert all(map(str.startswith, said, faults))

    def test_equal_labels_in_a_file(self, tmp_path: Path) -> None:
        path = written(tmp_path, 'name="x"\nrounds=1\ntasks=[{name="cpap"}, {name="cpap"}]\nlearners=[{name="random"}]')
        with pytest.raises(rmab.errors.ModelError, match=r"study.toml: tasks: duplicate label 'cpap'$"):
            Study.load(path)

    def test_of_a_learner_as_a_whole_are_said_plainly(self) -> None:
        with pytest.raises(rmab.errors.ModelError, match=r"^learner oracle: dependent rounding needs"):
            rmab.make_learner("oracle", rounding="dependent")

    def test_of_modules_of_ones_own_are_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "explosive.py").write_text("raise RuntimeError('bang\\nand smoke')\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(
            rmab.errors.ModelError,
            match=r"^learner explosive:Bomb: module 'explosive' cannot be imported \(RuntimeError: bang and smoke\)$",
        ):
            rmab.make_learner("explosive:Bomb")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("name = ", r"study.toml: not TOML \(Invalid value \(at"),
            ("", "rounds: Field required; tasks: Field required; learners: Field required"),
            (
                'name = "x"\nrounds = 1\ntasks = 3\nlearners = []',
                "tasks: Input should be a valid list .*learners: List should",
            ),
            ('name = "x"\nrounds = 1\ntasks = [1]\nlearners = [{name = "ucmd"}]', r"tasks\[0\]: must be a name, a Task or"),
            (
                'name = "x"\nrounds = 1\ntasks = [{name = "no.npz"}]\nlearners = [{name = "ucmd"}]',
                r"tasks\[0\]: /.*no.npz: cannot",
            ),
        ],
    )
    def test_of_other_kinds(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(rmab.RmabError, match=message):
            Study.load(written(tmp_path, text))

    def test_labels_must_differ(self) -> None:
        with pytest.raises(rmab.errors.ModelError, match="learners: duplicate label 'random'"):
            small_study(names=("random", "random"))

    def test_neither_a_file_nor_a_name(self) -> None:
        with pytest.raises(
            rmab.errors.FileError,
            match=r"paper-cpup: cannot be read .*available: asymptotic, decomposition, growth, .*paper-cpap",
        ):
            Study.load("paper-cpup")

    def test_rounds(self) -> None:
        with pytest.raises(rmab.errors.ModelError, match=r"rounds: .* \(got 0\)"):
            small_study().with_rounds(0)

    def test_a_learner_that_needs_more_than_it_gets(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "hungry.py").write_text(
            "from rmab.learning import RandomLearner\nclass Hungry(RandomLearner):\n    feedback = 'full'\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(
            rmab.errors.ModelError, match=r"learners\[0\].feedback: random needs full feedback, got 'bandit'"
        ):
            small_study(learners=[{"name": "hungry:Hungry", "feedback": "bandit"}]).check()
        study = small_study(1, ("hungry:Hungry",))
        study.check()
        table = play(study.jobs()[0])
        assert set(table["feedback"].to_pylist()) == {"full"}
        assert set(table["privileged"].to_pylist()) == {"sees all rewards of an episode"}


class TestIds:
    def test_never_change(self) -> None:
        """Results lie under these names: whoever changes them loses every study that is under way."""
        study = small_study()
        assert study.hash == "583a1c74e3f05459"
        assert study.jobs()[3].id == "cpap-noisy.ucmd.r00001.b3c3dc1c42"
        assert [job.seed for job in study.jobs()] == [
            4232842298785526,
            4232842298785526,
            2383740928328724,
            2383740928328724,
            8033538764449424,
            8033538764449424,
        ]

    def test_more_rounds_begin_with_the_same_jobs(self) -> None:
        few, many = small_study(2), small_study(2).with_rounds(5)
        assert few.hash == many.hash
        assert many.jobs()[:4] == few.jobs()
        assert len({job.id for job in many.jobs()}) == 10

    def test_a_round_has_one_seed_for_all_learners(self) -> None:
        jobs = small_study(4, ("random", "ucmd", "oracle")).jobs()
        assert len({job.seed for job in jobs}) == 4
        assert all(len({job.seed for job in jobs if job.round == k}) == 1 for k in range(4))
        assert all(0 <= job.seed < 2**53 for job in jobs)

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": 1},
            {"tasks": [{"name": "cpap@noisy", "options": {**TINY, "episodes": 4}}]},
            {"tasks": [{"name": "cpap@iid", "options": TINY, "label": "cpap@noisy"}]},
            {"learners": [{"name": "random", "feedback": "full", "label": "random"}]},
            {"learners": [{"name": "ucmd", "label": "random"}]},
        ],
    )
    def test_differ_where_results_would(self, change: dict[str, object]) -> None:
        plain, other = small_study(1, ("random",)), small_study(1, ("random",), **change)
        assert plain.hash != other.hash
        assert plain.jobs()[0].id != other.jobs()[0].id

    def test_of_a_task_file_follow_its_content_not_its_path(self, tmp_path: Path) -> None:
        task = rmab.make_task("cpap@iid", **TINY)
        text = 'name = "own"\nrounds = 1\ntasks = [{name = "own.npz"}]\nlearners = [{name = "random"}]'
        studies = []
        for place in ("one", "two"):
            (tmp_path / place).mkdir()
            task.save(tmp_path / place / "own.npz")
            studies.append(Study.load(written(tmp_path / place, text)))
        assert studies[0].jobs()[0].id == studies[1].jobs()[0].id
        assert studies[0].hash == studies[1].hash
        table = play(studies[0].jobs()[0])
        assert table["reward"].to_pylist() == rmab.run(task, "random", studies[0].jobs()[0].seed).reward.tolist()
        rmab.make_task("cpap@iid", seed=1, **TINY).save(tmp_path / "two" / "own.npz")
        with pytest.raises(rmab.errors.FileError, match=r"own.npz: the task file has changed since"):
            play(studies[1].jobs()[0])
        assert Study.load(tmp_path / "two" / "study.toml").hash != studies[0].hash

    def test_task_files_have_whole_paths(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rmab.make_task("cpap@iid", **TINY).save(tmp_path / "own.npz")
        written(tmp_path, 'name = "own"\nrounds = 1\ntasks = [{name = "own.npz"}]\nlearners = [{name = "random"}]')
        monkeypatch.chdir(tmp_path)
        study = Study.load("study.toml")
        monkeypatch.chdir("/")
        study.check()
        assert study.tasks[0].name == str(tmp_path / "own.npz")

    def test_of_labels_in_other_letters_are_no_hidden_files(self) -> None:
        tasks = [{"name": "cpap@noisy", "options": TINY, "label": "病人"}]
        (job,) = small_study(1, ("random",), tasks=tasks).jobs()
        assert job.id.startswith("x.random.r00000.")

    def test_are_names_of_files(self) -> None:
        for study in BUILTIN.values():
            for job in study.with_rounds(1).jobs():
                assert re.fullmatch(r"[a-zA-Z0-9.-]{10,110}", job.id)

    def test_jobs_cross_process_boundaries(self) -> None:
        job = small_study().jobs()[0]
        assert pickle.loads(pickle.dumps(job)) == job


class TestBuiltIn:
    def test_there_are_twelve(self) -> None:
        assert set(BUILTIN) == set(builtin_names()) == {
            "paper-cpap", "paper-deadline", "learning-table", "ucmd-parts",
            "asymptotic", "growth", "rivals", "rivals-growth", "rivals-long", "theorem", "decomposition", "rounding",
        }  # fmt: skip

    @pytest.mark.parametrize("name", builtin_names())
    def test_can_be_made(self, name: str) -> None:
        study = Study.load(name)
        assert study == BUILTIN[name]
        assert study.name == name
        assert study.title

    def test_the_papers_case_studies(self) -> None:
        for name, rounds, sizes in (("paper-cpap", 1000, (20, 10, 50, 50)), ("paper-deadline", 1000, (100, 30, 100, 100))):
            study = BUILTIN[name]
            assert study.rounds == rounds
            (spec,) = study.tasks
            task = rmab.make_task(spec.name, **spec.options)
            assert spec.name.endswith("@ramp")
            assert (task.problem.arms.count, task.problem.budget, task.problem.horizon, task.episodes) == sizes
            # By the letter, with declared zeros where there are any, and the rival by two conventions.
            papers = ["ucmd-armab"] * (2 if task.view().passive_zero else 1)
            assert [one.name for one in study.learners] == [*papers, "rmab-ucrl", "rmab-ucrl", "ucmd", "random"]
            assert not study.learners[0].options

    def test_asymptotic_grows_arms_and_budget_together(self) -> None:
        study = BUILTIN["asymptotic"]
        sizes = [rmab.make_task(one.name, **one.options).problem for one in study.tasks]
        assert [one.arms.count for one in sizes[:7]] == [6 * 2**k for k in range(7)]
        assert [one.budget for one in sizes[:7]] == [4 * 2**k for k in range(7)]
        assert [one.arms.count for one in sizes[7:]] == [24 * 2**k for k in range(7)]

    def test_asymptotic_plays_split_as_computed_by_hand(self) -> None:
        """The plan earns 16 per copy; top-B earns 14 at most, and 12.86 on average; dependent rounding comes near 16."""
        jobs = [job for job in BUILTIN["asymptotic"].with_rounds(1).jobs() if job.task.label == "split, rho = 16"]
        top, dependent = (play(job) for job in jobs)
        scale = np.linspace(0.5, 1.5, 50) * 16
        np.testing.assert_allclose(top["bound"].to_numpy(), 16 * scale, rtol=1e-9)
        assert (top["reward"].to_numpy() <= 14 * scale + 1e-9).all()
        assert (top["reward"].to_numpy() / scale).mean() == pytest.approx(18 * 10 / 14, abs=0.1)
        assert (dependent["reward"].to_numpy() / scale).mean() == pytest.approx(16, abs=0.8)
        assert (dependent["reward"].to_numpy() / scale).mean() > 15


def test_a_task_can_have_fewer_rounds_than_the_study() -> None:
    tasks = [{"name": "cpap", "rounds": 2}, {"name": "cpap@noisy"}]
    study = Study.model_validate({"name": "x", "rounds": 3, "tasks": tasks, "learners": [{"name": "random"}]})
    assert [(job.task.name, job.round) for job in study.jobs()] == [
        ("cpap", 0), ("cpap@noisy", 0), ("cpap", 1), ("cpap@noisy", 1), ("cpap@noisy", 2)
    ]  # fmt: skip
    without = Study.model_validate({**study.model_dump(), "tasks": [{"name": "cpap"}, {"name": "cpap@noisy"}]})
    assert without.hash == study.hash  # more rounds of a task extend a study, too
    assert {job.id for job in study.jobs()} < {job.id for job in without.jobs()}
    assert len(study.with_rounds(1).jobs()) == 2
