"""Pages of docs/ are made from the folders of studies, by one command."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rmab.study import BUILTIN, Study, run_study
from studies import TINY, Inline, small_study

ROOT = Path(__file__).parents[2]
STUDIES, DOCS = ROOT / "studies", ROOT / "docs"


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what studies/pages.py defines; its neighbours are imported for this test only."""
    monkeypatch.syspath_prepend(STUDIES)
    yield runpy.run_path(str(STUDIES / "pages.py"))
    for name in (one.stem for one in STUDIES.glob("*.py")):
        sys.modules.pop(name, None)


def played(folder: Path, name: str, rounds: int, tasks: list[str], learners: list[dict[str, Any]]) -> None:
    """Play a small study into a folder."""
    games = [{"name": one, "options": TINY} for one in tasks]
    run_study(small_study(rounds, name=name, tasks=games, learners=learners), folder / name, engine=Inline())


def test_the_learning_tables(tmp_path: Path, pages: dict[str, Any]) -> None:
    learners = [{"name": "ucmd"}, {"name": "random"}, {"name": "oracle", "label": "oracle (privileged)"}]
    tasks = ["cpap@ramp", "cpap@adaptive", "cpap-adherence@iid"]
    played(tmp_path, "learning-table", 2, tasks, learners)
    parts = [{"name": "ucmd"}, {"name": "ucmd", "label": "fading, lazy", "options": {"estimator": "fading"}}]
    played(tmp_path, "ucmd-parts", 2, tasks[:1], parts)
    marked = [f"<!-- made: {one} -->\n<!-- end -->\n" for one in ("learning-table", "ucmd-parts")]
    (tmp_path / "learning_tables.md").write_text("# Learning tables\n" + "\n".join(marked) + "## By hand\n")
    pages["written"]("learning_tables", pages["PAGES"]["learning_tables"], tmp_path, tmp_path)
    page = (tmp_path / "learning_tables.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == ["## cpap", "## cpap-adherence", "## By hand"]
    assert "| regret against O1, % of random | ramp | rounds |" in page
    assert "| regret against O3, % of random | ramp | rounds |" in page
    assert "| reward | adaptive | rounds |" in page  # whose regrets cannot be compared
    differences = page.partition("percentage points above `ucmd`")[2].partition("\n\n")[0]
    assert "| random |" in differences
    assert "oracle" not in differences
    assert page.count("| fading, lazy |") == 3  # regret against O1 and to O3, what it costs and buys
    assert "`learning-table` (18 of 18 runs, 0.0 hours of computing)" in page
    assert "with rmab " in page


def test_the_comparison(tmp_path: Path, pages: dict[str, Any]) -> None:
    learners = [{"name": "ucmd"}, {"name": "uc-whittle", "label": "uc-whittle, theory"}, {"name": "random"}]
    played(tmp_path, "rivals", 2, ["cpap@ramp", "swim@noisy"], learners)
    played(tmp_path, "rounding", 2, ["cpap@ramp"], learners)
    played(tmp_path, "rivals-long", 2, ["cpap@ramp"], learners)
    played(tmp_path, "authors", 2, ["cpap@ramp"], learners)
    import kept  # type: ignore[import-not-found]

    program = pages["uc_whittle"]
    earned = {name: [3.0, 4.0, 5.0] for name in program.NAMES} | {"as published": [1.0, 2.0, 4.0]}
    path = tmp_path / program.FILE
    path.write_text(json.dumps({"source": kept.source_of(path), "versions": ["rmab 0.0.1, revision none"], "found": earned}))
    for name in ("rivals-growth", "process"):
        tasks = [{"name": "cpap", "label": f"T = {size}", "options": {**TINY, "episodes": size}} for size in (2, 4)]
        study = small_study(2, name=name, kind="growth", tasks=tasks, learners=learners)
        run_study(study, tmp_path / name, engine=Inline())
    pages["written"]("comparison", pages["PAGES"]["comparison"], tmp_path, tmp_path)
    page = (tmp_path / "comparison.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    studies = [
        "## Dependent rounding or the highest indices",
        "## 400 episodes",
        "## Examples of other authors",
        "## A single decision process",
    ]
    assert heads == ["## Findings", "## Table 1 with measurements", "## cpap", "## swim", *studies]
    assert page.count("<details>") == page.count("</details>") == 3
    assert page.count("| regret against O1, % of random | ramp |") == 2  # of cpap, and of the authors' examples
    assert "| as published | 2 ± 4 | -2 ± 1" in page
    first = page.partition("\n\n| learner | paper |")[2].partition("\n\n")[0]
    assert first.count("| `uc-whittle`, theory | Wang et al. 2023 * |") == 1
    assert "{" not in page
    assert "`studies/uc_whittle.py`, with rmab 0.0.1, revision none; rmab " in page
    assert "**These are several versions: run the studies again.**" in page


def test_parts_of_a_page_are_put_between_their_marks(pages: dict[str, Any]) -> None:
    text = "head\n<!-- made: one -->\nold\n<!-- end -->\ntail\n"
    assert pages["replaced"](text, "one", "new") == "head\n<!-- made: one -->\n\nnew\n<!-- end -->\ntail\n"
    assert pages["replaced"](pages["replaced"](text, "one", "x"), "one", "new") == pages["replaced"](text, "one", "new")
    with pytest.raises(ValueError, match="no part between <!-- made: two -->"):
        pages["replaced"](text, "two", "new")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nosuch"], "there is no page 'nosuch'"),
        (["growth", "--studies", "nosuch"], "there is no study 'nosuch' behind these pages, but growth"),
        (["growth", "--tiny"], "--tiny needs --docs"),
        (["growth", "--tiny", "--docs", "made"], "--tiny needs --out"),
        (["growth", "--rounds", "0"], "must be at least 1"),
        (["growth", "--workers", "0"], "must be at least 1"),
        (["reproduction", "--docs", "made"], "there is no such file, and only parts of it are made"),
    ],
)
def test_bad_arguments_are_told_before_anything_is_run(
    pages: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pages.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        pages["main"]()
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_study_without_a_finished_run_is_no_reason_to_fail(
    tmp_path: Path, pages: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    played(tmp_path, "growth", 1, ["cpap@ramp"], [{"name": "random"}])
    for shard in (tmp_path / "growth" / "runs").iterdir():
        shard.unlink()
    pages["written"]("growth", pages["PAGES"]["growth"], tmp_path, tmp_path)
    assert "growth: study growth: no run is finished" in capsys.readouterr().out
    assert not (tmp_path / "growth.md").exists()


def test_every_page_has_its_studies_and_marks(pages: dict[str, Any]) -> None:
    for name, page in pages["PAGES"].items():
        for study in page.studies:
            assert isinstance(pages["study_of"](study), Study)
            tiny = pages["study_of"](study, tiny=True)
            assert [one.label for one in tiny.tasks] == [one.label for one in pages["study_of"](study).tasks]
        for mark, _ in page.parts:
            assert f"<!-- made: {mark} -->" in (DOCS / f"{name}.md").read_text(), mark


def test_every_learner_of_the_studies_has_a_row_in_the_learning_tables() -> None:
    page = (DOCS / "learning_tables.md").read_text()
    for study in ("learning-table", "ucmd-parts"):
        for learner in BUILTIN[study].learners:
            assert f"| {learner.label} |" in page, learner.label


def test_tuning_is_one_protocol_for_all(pages: dict[str, Any]) -> None:
    import tuning  # type: ignore[import-not-found]

    study = tuning.tuning()
    assert study.rounds >= 10
    others = {job.seed for one in BUILTIN.values() for job in one.with_rounds(20).jobs()}
    assert not others & {job.seed for job in study.jobs()}
    for name, points in tuning.GRIDS.items():
        assert len(points) == len({tuple(point.items()) for point in points}) == tuning.POINTS
        assert all(value == 1.0 for value in points[0].values()), name  # the theory's comes first


def test_points_of_a_privileged_learner_are_told_apart_too(tmp_path: Path, pages: dict[str, Any]) -> None:
    rates = [{"name": "uc-o-reps", "label": f"uc-o-reps: rate {rate:g}", "options": {"rate": rate}} for rate in (1.0, 64.0)]
    game = {"name": "cpap@ramp", "options": {"arms": 4, "budget": 2, "horizon": 10, "episodes": 20}}
    run_study(small_study(4, name="tuning", tasks=[game], learners=rates), tmp_path / "tuning", engine=Inline())
    page = pages["contents"].tuning(pages["Found"].of(tmp_path / "tuning"), {"uc-o-reps": {"rate": 64.0}})
    assert "Preset: rate 64. Significantly different from the theory's on ramp." in page


def test_presets_are_the_points_that_won() -> None:
    assert "Not the best point" not in (DOCS / "tuning.md").read_text()


def test_who_is_told_apart_is_corrected_for_the_whole_table(pages: dict[str, Any]) -> None:
    import tables  # type: ignore[import-not-found]

    from report_data import cell

    luck = np.linspace(0.0, 1.0, 12)
    better = {("one", "ucmd"): cell("ucmd", list(5 + luck), task="one")}
    better |= {("one", "near"): cell("near", list(5 + luck[::-1]), task="one")}
    better |= {("one", "far"): cell("far", list(3 + luck), task="one")}
    better |= {("one", "told"): cell("told", list(3 + luck), task="one", privileged="knows")}
    better |= {("one", "as told"): cell("as told", list(2 + luck), task="one", privileged="knows")}
    assert {key[1]: pair.is_significant for key, pair in tables.told_from(better, "told").items()} == {
        "ucmd": True,
        "near": True,
        "far": False,
        "as told": True,  # it has the same privilege
    }
    found = tables.told_from(better, "ucmd")
    assert {key[1]: pair.is_significant for key, pair in found.items()} == {"near": False, "far": True}
    assert tables.standing(better["one", "near"], "O1", found["one", "near"]).endswith(tables.LEVEL)
    assert not tables.standing(better["one", "far"], "O1", found["one", "far"]).endswith(tables.LEVEL)


def test_what_rounding_costs_is_told_learner_by_learner(tmp_path: Path, pages: dict[str, Any]) -> None:
    import comparison_page  # type: ignore[import-not-found]
    import tables

    two = [{"name": "uc-o-reps", "label": one, "options": {"rounding": one}} for one in ("dependent", "top")]
    games = [{"name": "turns", "options": {"episodes": 40}}]
    study = small_study(4, name="rounding", tasks=games, learners=[*two, {"name": "random"}])
    run_study(study, tmp_path / "rounding", engine=Inline())
    table = comparison_page.rounding(tables.Found.of(tmp_path / "rounding"))
    first, second = table.split("\n\n")
    assert "| random |" in first
    (line,) = second.strip().splitlines()[2:]
    assert line.startswith("| dependent | -")  # in turns the highest indices are always late
    assert not line.endswith(f"{tables.LEVEL} |")


def test_tuning_tells_learners_of_one_privilege_apart_and_knows_its_preset(tmp_path: Path, pages: dict[str, Any]) -> None:
    import contents  # type: ignore[import-not-found]
    import tables

    points = [{"name": "uc-o-reps", "label": f"uc-o-reps: rate {rate:g}", "options": {"rate": rate}} for rate in (1.0, 64.0)]
    games = [{"name": "greener", "options": {"episodes": 60}}]
    run_study(small_study(3, name="tuning", tasks=games, learners=points), tmp_path / "tuning", engine=Inline())
    found = tables.Found.of(tmp_path / "tuning")
    page = contents.tuning(found, {"uc-o-reps": {"rate": 64.0, "other": 1.0}})
    assert "Preset: rate 64, other 1. Significantly different from the theory's on greener." in page
    assert "Not the best point" not in page
    assert "**Not the best point, which is rate 64.**" in contents.tuning(found, {"uc-o-reps": {"rate": 8.0}})


def test_growth_has_intervals_and_marks(tmp_path: Path, pages: dict[str, Any]) -> None:
    import contents
    import tables

    tasks = [{"name": "greener", "label": f"T = {size}", "options": {"episodes": size}} for size in (10, 40)]
    learners = [{"name": "ucmd"}, {"name": "random"}, {"name": "random", "label": "again"}]
    study = small_study(3, name="growth", kind="growth", tasks=tasks, learners=learners)
    run_study(study, tmp_path / "growth", engine=Inline())
    table = contents.scalings(tables.Found.of(tmp_path / "growth"), "random")
    again, ucmd = ([line for line in table.splitlines() if f"| {name} |" in line] for name in ("again", "ucmd"))
    assert again[0].count(" ± ") == 2
    assert again[0].count(tables.LEVEL) == 2
    assert not ucmd[0].rpartition(" ± ")[2].count(tables.LEVEL)
    assert "not significantly different from `random`" in table
    assert tables.LEVEL not in contents.scalings(tables.Found.of(tmp_path / "growth"))


def test_what_parts_of_ucmd_cost_and_buy_is_said_where_it_can_be_told(tmp_path: Path, pages: dict[str, Any]) -> None:
    import tables
    import ucmd_page  # type: ignore[import-not-found]

    parts = [{"name": "ucmd", "label": "ucmd (default)"}, {"name": "random", "label": "blind"}]
    games = [{"name": one, "options": {"episodes": 20}} for one in ("cpap@ramp", "cpap@adaptive", "swim@ramp")]
    run_study(small_study(3, name="ucmd-parts", tasks=games, learners=parts), tmp_path / "ucmd-parts", engine=Inline())
    found = tables.Found.of(tmp_path / "ucmd-parts")
    table = ucmd_page.exchanged(found)
    (line,) = (one for one in table.splitlines() if one.startswith("| blind |"))
    _, label, costs, buys, _ = (one.strip() for one in line.split("|"))
    assert label == "blind"
    assert [one.split()[0] for one in costs.split("; ")] == ["ramp", "adaptive", "swim@ramp"]
    assert "adaptive -" in costs
    assert "% earned" in costs
    assert buys == "nothing"
