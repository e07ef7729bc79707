"""One way in and out: versions, kinds, files of the past, and files with one field wrong."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

import rmab
from golden_runs import LEARNERS
from mutants import as_bytes, check_mutants, same
from rmab.common.storage import KINDS, Format, Stored, decode, encode, kind_of, load_any, parse
from rmab.errors import FileError, ModelError, PolicyError
from rmab.learning import Learner
from stored import COMPUTED, FOLDER, SAMPLES

WARD = Format("ward", 3, {"beds"}, {"name"}, upgrades={2: lambda fields: {"beds": fields["places"]}}, remedy="count again")
REFUSED = ("rmab-fit.0.2.0", "rmab-fit.2")  # files of the past that are refused, with what to do


@dataclass
class Ward(Stored):
    """Something that can be stored, and is no bandit."""

    FORMAT = WARD
    beds: int

    def to_fields(self) -> dict[str, Any]:
        return {"beds": self.beds}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        if fields["beds"] < 0:
            raise PolicyError("beds must be 0 or more")
        return cls(fields["beds"])


class TestVersions:
    def test_the_present_one_is_written_and_read(self) -> None:
        content = Ward(3).to_bytes(".json")
        assert content == b'{\n  "kind": "ward",\n  "format": 3,\n  "beds": 3\n}\n'
        assert Ward.from_bytes(content) == Ward.from_bytes(Ward(3).to_bytes()) == Ward(3)

    def test_an_older_one_is_upgraded(self) -> None:
        assert Ward.from_bytes(b'{"kind": "ward", "format": 2, "places": 4}') == Ward(4)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ('"format": 4, "beds": 1', "written by a newer rmab (format 4, this one reads up to 3); update rmab"),
            ('"format": 1, "beds": 1', "written by an older rmab (format 1, this one reads format 3); count again"),
            ('"beds": 1', "written by an older rmab (format 1, this one reads format 3); count again"),
            ('"format": 2, "beds": 1', "missing places"),
            ('"format": 0, "beds": 1', "format must be a whole number, 1 or more, got 0"),
            ('"format": true, "beds": 1', "format must be a whole number, 1 or more, got True"),
            ('"format": "3", "beds": 1', "format must be a whole number, 1 or more, got '3'"),
            ('"format": null, "beds": 1', "format must be a whole number, 1 or more, got None"),
            (
                f'"format": {10**60}, "beds": 1',
                "written by a newer rmab (format 1{}, this one reads up to 3); update rmab".format("0" * 39),
            ),
            ('"format": 3', "missing beds"),
            ('"format": 3, "beds": null', "missing beds"),
            ('"format": 3, "beds": 1, "bed": 1', "unknown bed (known: beds, name)"),
        ],
    )
    def test_others_are_refused_in_one_line(self, text: str, line: str) -> None:
        with pytest.raises(FileError) as caught:
            Ward.from_bytes(f'{{"kind": "ward", {text}}}'.encode())
        assert str(caught.value) == f"Ward: {line}"

    def test_errors_of_construction_keep_their_class_and_get_the_path_once(self, tmp_path: Path) -> None:
        path = tmp_path / "ward.json"
        path.write_bytes(Ward(-1).to_bytes(".json"))
        with pytest.raises(PolicyError) as caught:
            Ward.load(path)
        assert str(caught.value) == f"{path}: beds must be 0 or more"


class TestValues:
    @pytest.mark.parametrize("suffix", [".npz", ".json"])
    def test_what_is_written_is_read(self, suffix: str) -> None:
        form = Format("x", 1, frozenset(), prefix="")
        fields = {"a": np.array([1 / 3, 1e-300, np.pi]), "b": ["é", ""], "c": "text", "d": 3, "e": 0.1, "f": True, "g": None}
        again = decode(form, encode(form, fields, suffix), "x", suffix)
        assert again.pop("a") is not None
        assert again == {"b": ["é", ""], "c": "text", "d": 3, "e": 0.1, "f": True}
        assert [type(again[name]) for name in "cdef"] == [str, int, float, bool]
        assert np.array_equal(decode(form, encode(form, fields, suffix), "x", suffix)["a"], fields["a"])

    def test_numbers_that_python_does_not_have_keep_their_type(self) -> None:
        form = Format("x", 1, {"a"})
        again = decode(form, encode(form, {"a": np.float32(0.1)}, ".npz"), "x", ".npz")
        assert again["a"].dtype == np.float32

    @pytest.mark.parametrize("odd", [np.array([1j]), np.array("2020", dtype="M8[ns]"), np.array([b"x"])])
    def test_what_is_neither_number_nor_text_is_refused(self, odd: Any) -> None:
        content = as_bytes({"kind": "ward", "format": 3, "beds": odd}, ".npz")
        with pytest.raises(
            FileError, match=r"^Ward: not a readable \.npz archive \('beds' is not an array of numbers or text\)$"
        ):
            Ward.from_bytes(content or b"")

    @pytest.mark.parametrize("wrong", [np.float16, np.longdouble])
    def test_numbers_that_compiled_code_does_not_know_are_refused(self, wrong: Any) -> None:
        if np.dtype(wrong) == np.float64:
            pytest.skip("longdouble is float64 here")
        content = as_bytes({"kind": "ward", "format": 3, "beds": np.ones(2, dtype=wrong)}, ".npz")
        with pytest.raises(FileError, match=r"'beds' holds numbers of type float(16|96|128), .* use float64"):
            parse(content, "Ward", ".npz")

    def test_a_state_is_not_written_as_json(self) -> None:
        for attempt in (lambda: SAMPLES["rmab learner state"]().to_bytes(".json"), lambda: rmab.State.from_bytes(b"{}")):
            with pytest.raises(FileError, match=r"must end in \.npz$"):
                attempt()


class TestKinds:
    @pytest.mark.parametrize("kind", SAMPLES)
    def test_every_kind_is_read_by_its_class_and_by_any(self, kind: str, tmp_path: Path) -> None:
        stored = SAMPLES[kind]()
        for suffix in stored.FORMAT.suffixes:
            path = tmp_path / f"x{suffix}"
            stored.save(path)
            assert kind_of(path) == kind
            for loaded in (load_any(path), type(stored).load(path)):
                assert type(loaded) is type(stored)
                assert same(loaded.to_fields(), stored.to_fields())

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_has_a_class_a_sample_and_a_file(self, kind: str) -> None:
        module, _, name = KINDS[kind].place.partition(":")
        found = getattr(import_module(module), name)
        assert issubclass(found, Stored)
        assert found.FORMAT.kind == kind
        assert kind in SAMPLES
        assert list(FOLDER.glob(f"{kind.replace(' ', '-')}.{found.FORMAT.version}.*"))

    def test_the_wrong_class_says_which_is_right(self, tmp_path: Path) -> None:
        SAMPLES["rmab policy"]().save(tmp_path / "x.npz")
        with pytest.raises(FileError) as caught:
            rmab.View.load(tmp_path / "x.npz")
        line = "the file contains an index policy, not a view; read it with rmab.IndexPolicy.load"
        assert str(caught.value) == f"{tmp_path / 'x.npz'}: {line}"

    @pytest.mark.parametrize(
        ("kind", "said"), [('"ward"', "has kind 'ward'"), ("null", "has no field 'kind'"), ("[]", r"has kind \[\]")]
    )
    def test_an_unknown_kind_is_refused(self, kind: str, said: str, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(f'{{"kind": {kind}}}')
        with pytest.raises(FileError, match=f"x.json: the file {said}; known kinds: rmab problem, rmab task"):
            load_any(tmp_path / "x.json")


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_files_of_the_past_are_read(path: Path) -> None:
    kind = str(kind_of(path))
    assert path.name.startswith(f"{kind.replace(' ', '-')}.")
    if path.name.startswith(REFUSED):
        with pytest.raises(FileError, match=f"^{path}: written by an older rmab .*; .+$"):
            load_any(path)
    else:
        loaded = load_any(path)
        assert same(loaded.to_fields(), type(loaded).from_bytes(loaded.to_bytes()).to_fields())
        if kind not in COMPUTED:
            assert same(loaded.to_fields(), SAMPLES[kind]().to_fields())


def use(thing: Any) -> None:
    """Do with an object what leads to compiled code or to indexing, where it is small enough."""
    rng = np.random.default_rng(0)
    if isinstance(thing, rmab.Task):
        thing.reward(0)
        thing.view()
        use(thing.problem)
    elif isinstance(thing, rmab.Problem):
        reward = np.zeros((thing.arms.count, thing.arms.states, 2))
        rmab.simulate(thing, rmab.planners.random_policy(thing), reward, rng)
    elif isinstance(thing, rmab.View):
        learner = rmab.make_learner("q-whittle" if thing.phases == 1 else "random")
        learner.plan(learner.begin(thing))
    elif isinstance(thing, rmab.Policy):
        player = thing.begin(np.zeros(2, dtype=np.int64), rng) if hasattr(thing, "begin") else thing
        player.act(0, np.zeros(2, dtype=np.int64), rng)
    elif isinstance(thing, rmab.PlanResult):
        use(thing.policy)
    elif isinstance(thing, rmab.data.Fit):
        rmab.data.decide(thing, 1, horizon=2)
    elif isinstance(thing, rmab.data.Decision):
        thing.rows(2)


INSIDE = {
    "rmab task": rmab.Problem.FORMAT.required | rmab.Problem.FORMAT.optional,
    "rmab learner state": {f"view_{name}" for name in rmab.View.FORMAT.required | rmab.View.FORMAT.optional}
    - {"view_start"},
}


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("kind", SAMPLES)
def test_one_wrong_field_is_one_line_or_another_object(kind: str, suffix: str) -> None:
    stored = SAMPLES[kind]()
    if suffix in stored.FORMAT.suffixes:
        names = {"kind", "format", *stored.to_fields()}
        again = INSIDE.get(kind, set())  # fields that are those of another kind
        every = 3 if (kind, suffix) == ("rmab fit", ".json") else 1  # fifty fields; the .npz has every change of each
        counts = check_mutants(stored, suffix, use, tuple(names - again), every)
        assert counts["refused"] > counts["loaded"] > 0


def play(learner: Learner) -> tuple[Learner, rmab.State, rmab.Feedback]:
    """Return the learner, its state after two episodes, and the feedback of the third."""
    task = rmab.make_task("cpap", arms=2, budget=1, horizon=3, episodes=4, feedback=learner.feedback)
    view, state = task.view(), learner.begin(task.view())
    for t in range(3):
        episode = rmab.simulate(task.problem, learner.plan(state).policy, task.reward(t), np.random.default_rng(t))
        feedback = rmab.Feedback.reveal(view, t, episode, task.reward(t))
        if t < 2:
            state = learner.learn(state, feedback)
    return learner, state, feedback


EDITED = ("thompson", "q-whittle", "uc-whittle", "colored-ucrl2", "dilated-po")
CASES = [one for one in LEARNERS if one[0] in EDITED or one[1].get("estimator") == "last"]


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("name", "options"), CASES, ids=lambda one: one if isinstance(one, str) else "-".join(map(str, one.values()))
)
def test_an_edited_state_is_refused_or_can_be_planned_and_learned_from(name: str, options: dict[str, Any]) -> None:
    learner, state, feedback = play(rmab.make_learner(name, **options))

    def go_on(edited: rmab.State) -> None:
        learner.plan(edited).policy.act(0, feedback.states[0], np.random.default_rng(0))
        learner.learn(edited, feedback)

    counts = check_mutants(state, ".npz", go_on, tuple(f"array_{one}" for one in state.arrays))
    assert counts["refused"] > counts["loaded"] > 0


def test_a_mutant_that_is_not_refused_is_found() -> None:
    class Careless(Ward):
        """Reads a bed that is not there."""

        @classmethod
        def from_fields(cls, fields: dict[str, Any]) -> Self:
            return cls(np.arange(5)[fields["beds"]])

    with pytest.raises(AssertionError, match="Careless, beds: change"):
        check_mutants(Careless(3), ".npz", lambda _: None)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    for kind, sample in SAMPLES.items():
        whole = sample().to_bytes()
        for length in range(0, len(whole), len(whole) // 20):
            with pytest.raises(FileError, match="not a readable"):
                parse(whole[:length], kind, ".npz")


def test_a_model_error_of_a_file_begins_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(
        as_bytes({**parse(rmab.make_task("cpap").problem.to_bytes(), "x", ".npz"), "budget": -1}, ".json") or b""
    )
    with pytest.raises(ModelError, match=f"^{tmp_path / 'x.json'}: budget must be in"):
        load_any(tmp_path / "x.json")


@pytest.mark.parametrize("wrong", [None, 5, "text", [b"x"]])
def test_what_is_no_path_and_no_bytes_is_refused_in_one_line(wrong: Any) -> None:
    with pytest.raises(FileError, match="expected bytes of to_bytes"):
        rmab.Problem.from_bytes(wrong)
    if not isinstance(wrong, str):
        for load in (rmab.Problem.load, rmab.planners.load_policy, load_any, kind_of):
            with pytest.raises(FileError, match="a path must be text or a pathlib object"):
                load(wrong)


@pytest.mark.parametrize("names", [[1, 2], [["a"], "b"], [None, "b"], [{}, {}], [1.5, "b"]])
def test_names_of_states_are_text(names: list[Any]) -> None:
    fields = {"kernels": np.full((1, 2, 2, 2), 0.5), "start": 0, "budget": 1, "horizon": 2, "state_names": names}
    with pytest.raises(ModelError, match="state_names: the name of state 0 must be text"):
        rmab.Problem.from_fields(fields)
