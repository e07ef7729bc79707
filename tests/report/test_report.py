"""The report of studies that were really played: its numbers, its words, its files."""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import report_data
from report_data import cell, page
from rmab.errors import FileError, ModelError, RmabError
from rmab.report import Report, write_report
from rmab.report.charts import choose_episodes, payload
from rmab.report.figures import _scaling, _Styles, draw
from rmab.report.headlines import headline
from rmab.report.numbers import number, percent, share, spread
from rmab.report.page import render
from rmab.report.scalings import Scaling
from rmab.report.sentences import coverage, page_words, scaling_words
from rmab.report.statistics import Interval, interval
from rmab.report.summary import COLUMNS, Summary, summarise
from rmab.study import Results, Study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return report_data.results(report_data.learning(), folder / "learning")


@pytest.fixture(scope="module")
def summary(results: Results) -> Summary:
    return summarise(results.study, results.table(COLUMNS))


@pytest.fixture(scope="module")
def report(results: Results, folder: Path) -> Report:
    return write_report(results, folder / "out")


@pytest.fixture(scope="module")
def grown(folder: Path) -> Summary:
    found = report_data.results(report_data.growth(), folder / "growth")
    return summarise(found.study, found.table(COLUMNS))


def test_cells_have_what_the_runs_had(results: Results, summary: Summary) -> None:
    frame = results.to_pandas()
    assert [one.task for one in summary.pages] == ["cpap@noisy", "cpap@switching"]
    for one in (one for found in summary.pages for one in found.cells):
        own = frame[(frame["task"] == one.task) & (frame["learner"] == one.learner)]
        assert one.columns["reward"].shape == (4, 12)
        assert one.totals == pytest.approx(own.groupby("round")["reward"].sum().to_numpy())
        last = own[own["episode"] == 11].sort_values("round")
        assert one.regret("O2")[:, -1] == pytest.approx(last["regret_O2"].to_numpy())
        bounds = own.groupby("round")["bound"].sum().to_numpy()
        assert one.relative("O1").mean == pytest.approx(np.mean(last["regret_O1"].to_numpy() / np.abs(bounds)))


def test_the_four_sources_add_up_to_the_regret(summary: Summary) -> None:
    with_sources = [one for page in summary.pages for one in page.cells if one.terms is not None]
    assert {one.learner for one in with_sources} == {"ucmd-armab", "ucmd", "ucmd, full feedback"}
    for one in with_sources:
        assert sum(term.mean for term in one.terms or ()) == pytest.approx(one.regret("O1")[:, -1].mean())


def test_privileged_learners_are_no_rivals(summary: Summary) -> None:
    told = {one.learner for one in summary.pages[0].cells if one.privileged}
    assert told == {"ucmd, full feedback", "oracle"}
    assert {one.learner for one in summary.pages[0].rivals} == {"ucmd-armab", "ucmd", "random"}
    assert sum("for comparison only" in line for line in page_words(summary.pages[0])) == 2


def test_pairs_are_made_of_common_rounds_only(folder: Path) -> None:
    study = report_data.learning()
    part = report_data.results(study, folder / "part", without=2)  # oracle and full feedback miss the last task's last round
    found = summarise(study, part.table(COLUMNS))
    assert (found.finished, found.expected) == (38, 40)
    assert found.missing == [("cpap@switching", "ucmd, full feedback", 1, 4), ("cpap@switching", "oracle", 1, 4)]
    counts = {(one.first, one.second): one.difference.count for one in found.pages[1].pairs}
    assert counts["ucmd", "oracle"] == 3
    assert counts["ucmd-armab", "ucmd"] == 4
    assert "38 of 40 runs are finished" in coverage(found)
    html = render(found, part.provenance())
    assert "2 runs are missing" in html
    assert "1 of 4" in html


def test_a_difference_is_said_with_its_uncertainty() -> None:
    words = page_words(page(cell("slow", [5.0, 5.2, 4.9, 5.1]), cell("fast", [6.0, 6.2, 5.9, 6.2])))
    # 4.1 / 20.2 = 0.203; what is left of each difference: -.0149, -.0554, .0054, .0649; 3.182 x .0251 / 5.05 = 0.0158
    assert words[0] == "fast earned 20.3% more than slow (95%: 18.7 to 21.9; ahead in 4 of 4 rounds)."
    level = page_words(page(cell("one", [5.0, 6.2, 4.9, 5.1]), cell("other", [6.0, 5.2, 5.9, 4.2])))
    assert " are not significantly different: the difference is " in level[0]
    assert "ahead in 2 of 4 rounds" in level[0]


def test_one_round_tells_nothing() -> None:
    words = page_words(page(cell("one", [5.0]), cell("other", [6.0])))
    assert "other and one cannot be compared: they have only one common round." in words
    assert "With one round there are no intervals and no comparisons." in words


def test_negative_regret_is_explained_and_zero_is_not_claimed() -> None:
    ahead = page_words(page(cell("one", [12.0, 12.1, 12.2])))[0]
    assert ahead.startswith(
        "one earned 21.0% more than O1, the most that a fixed policy can earn on average; a random policy earned 100.0% "
        "less: regret relative to the random policy is -21.0% (95%: -23.5 to -18.5). "
    )
    assert "Negative regret is not an error" in ahead
    assert " is not significantly different from O1" in page_words(page(cell("one", [9.0, 10.1, 11.2])))[0]
    lost = page_words(page(cell("one", [8.0, 8.1, 8.2])))[0]
    assert lost.startswith(
        "one earned 19.0% less than O1, the most that a fixed policy can earn on average; a random policy earned 100.0% less"
    )
    assert ": regret relative to the random policy is 19.0% (95%: " in lost
    half = page_words(page(cell("one", [8.0, 8.1, 8.2], chance=5.0)))[0]  # chance loses 5, not 10
    assert "; a random policy earned 50.0% less: regret relative to the random policy is 38.0% (95%: " in half
    nothing = page_words(page(cell("one", [8.0, 8.1, 8.2], chance=10.0)))[0]
    assert "has no percentage: a random policy earns as much as O1" in nothing
    once = cell("one", [8.0, 8.1, 8.2])
    once.columns["random"][1] = 10.0 - 1e-12  # up to rounding
    assert np.isnan(once.relative_by_round("O1")).tolist() == [False, True, False]
    assert page_words(page(once))[0].startswith(
        "The regret of one has no percentage: in some rounds a random policy earns as much as O1"
    )


def test_who_cannot_be_drawn_is_named_in_the_legend() -> None:
    """A logarithmic axis has no place for a regret that is never positive, which may be the best result of all."""
    sizes = np.array([10.0, 20.0])
    members = [
        Scaling("task", "one", sizes, np.full((2, 2), 3.0), None),
        Scaling("task", "two", sizes, -np.ones((2, 2)), None),
    ]
    found = Summary(
        Study(name="x", rounds=2, tasks=[{"name": "cpap"}], learners=[{"name": "one"}, {"name": "two"}]), (), (), 0, 0
    )
    styles = _Styles(replace(found, pages=(page(cell("one", [1.0]), cell("two", [2.0])),)))
    (legend,) = _scaling(members, "growth", styles).legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two: never positive"]


def test_the_time_of_an_episode_is_that_of_the_median_one() -> None:
    """The first one compiles, which takes seconds."""
    slow = cell("one", [8.0, 9.0])
    columns = {**slow.columns, "seconds": np.array([[7.0, 0.1, 0.3], [9.0, 0.2, 0.4]])}
    found = replace(slow, columns=columns).seconds
    assert (found.mean, found.count) == (pytest.approx(0.35), 2)


def test_rewards_are_compared_where_the_adversary_answers_to_play() -> None:
    cells = [cell(name, [first, first + 0.1, first + 0.2], adaptive=True) for name, first in (("one", 8.0), ("two", 7.0))]
    said = page_words(page(*cells))
    assert any("compare rewards, not regrets" in line for line in said)
    assert not any("relative to the random policy" in line for line in said)
    assert any(line.startswith("one earned") for line in said)
    learners = [{"name": "random", "label": one.learner} for one in cells]
    study = Study(name="told", rounds=3, tasks=["cpap@adaptive"], learners=learners)
    text = render(Summary(study, (page(*cells),), (), 6, 6), [])
    assert text.count("<td>-</td><td>-</td><td>-</td><td>-</td>") == 2


def test_the_theorem_is_held_against_the_paper_s_learner_only() -> None:
    below = page_words(page(cell("paper", [8.0, 9.0], published=True)))
    assert (
        "After 1 episode the regret of paper against O1 is 30.0% of the theorem's bound, "
        "and stayed below it in all 2 rounds." in below
    )
    above = page_words(page(cell("paper", [4.0, 9.0], published=True)))
    assert any("exceeded it in 1 of 2 rounds" in line for line in above)
    assert not any("theorem" in line for line in page_words(page(cell("other", [4.0, 9.0]))))


def test_the_headline_has_three_sentences(summary: Summary, grown: Summary, report: Report) -> None:
    assert len(report.headline) == len(headline(grown)) == 3
    assert report.headline == tuple(headline(summary))
    assert report.headline[2] == "All 40 runs are finished (2 tasks, 5 learners, 4 rounds)."
    assert all(line.endswith(".") and "nan" not in line for line in (*report.headline, *headline(grown)))


def test_growth_is_gathered_by_family(grown: Summary) -> None:
    assert {one.group for one in grown.scalings} == {"cpap@noisy", "cpap@switching"}
    assert len(grown.scalings) == 6
    one = grown.scalings[0]
    assert one.sizes.tolist() == [6, 12, 24]
    long = next(page for page in grown.pages if page.task == "cpap@noisy, T=24").cells[0]
    assert one.values[2] == pytest.approx(long.regret("O2")[:, -1])
    for scaling in grown.scalings:
        fitted = scaling.fit is not None
        assert fitted == bool((scaling.values.mean(axis=1) > 0).all())
        assert fitted or "no power law fits" in scaling_words(scaling, "growth")
    assert any(scaling.fit is None for scaling in grown.scalings)


def test_many_arms_are_measured_per_arm_and_episode(folder: Path) -> None:
    found = report_data.results(report_data.asymptotic(), folder / "asymptotic")
    summary = summarise(found.study, found.table(COLUMNS))
    chance = next(one for one in summary.scalings if one.learner == "random")
    assert chance.sizes.tolist() == [4, 8, 16]
    assert chance.values[1] == pytest.approx(summary.pages[1].cells[1].regret("O1")[:, -1] / 8 / 5)
    assert "arms" in render(summary, found.provenance())
    written = write_report(found, folder / "asymptotic-out")
    assert {path.name for path in written.figures} == {"asymptotic-cpap.png", "asymptotic-cpap.pdf"}


class Tags(HTMLParser):
    """Collects what a page consists of."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_is_one_file_that_loads_nothing(report: Report) -> None:
    text = report.html.read_text()
    tags = Tags()
    tags.feed(text)
    assert not [one for one in tags.found if one[0] in ("img", "iframe", "object", "embed", "video", "audio")]
    assert all("src" not in attributes for _, attributes in tags.found)
    links = [attributes["href"] for tag, attributes in tags.found if tag in ("a", "link")]
    assert all(href is not None and href.startswith(("#", "data:")) for href in links)
    policy = next(attributes["content"] for tag, attributes in tags.found if attributes.get("http-equiv"))
    assert policy is not None
    script = re.findall(r"<script>(.*?)</script>", text, re.S)[0]
    assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "The MIT License" in text
    assert len(text) < 300_000


def test_every_table_has_a_caption_and_heads(report: Report) -> None:
    tables = re.findall(r"<table.*?</table>", report.html.read_text(), re.S)
    assert len(tables) >= 10
    for table in tables:
        heads = len(re.findall(r'scope="col"', table))
        rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.S)
        assert "<caption>" in table
        assert {len(re.findall(r"<t[hd]", row)) for row in rows} == {heads}


def test_names_are_text_not_markup(folder: Path) -> None:
    named = report_data.learning().model_dump()
    evil = "</script><script>alert(1)</script>"
    study = Study.model_validate(
        {**named, "rounds": 1, "tasks": [{**named["tasks"][0], "label": evil}], "learners": named["learners"][:1]}
    )
    found = report_data.results(study, folder / "evil")
    text = render(summarise(study, found.table(COLUMNS)), found.provenance())
    assert evil not in text
    assert text.count("<script") == 2


def test_the_curves_of_the_page_are_those_of_the_runs(summary: Summary) -> None:
    data = json.loads(json.dumps(payload(summary), allow_nan=False))
    entry, own = data["tasks"][1]["learners"][0], summary.pages[1].cells[0]
    mean, half = entry["reward"]
    assert data["tasks"][1]["episodes"] == list(range(1, 13))
    assert mean == pytest.approx(np.cumsum(own.columns["reward"], axis=1).mean(axis=0), rel=1e-4)
    assert half[-1] == pytest.approx(interval(own.totals).half, rel=1e-4)
    assert data["tasks"][1]["theory"] == pytest.approx(own.theory, rel=1e-4)
    assert [one["stroke"] for one in data["learners"]] == ["solid", "solid", "solid", "dashed", "dashed"]


@pytest.mark.parametrize(("episodes", "curves"), [(1, 8), (50, 18 * 8 * 8), (1600, 70 * 8), (100_000, 16), (30, 10**6)])
def test_long_curves_are_thinned_out(episodes: int, curves: int) -> None:
    shown = choose_episodes(episodes, curves)
    assert (shown[0], shown[-1]) == (0, episodes - 1)
    assert shown == sorted(set(shown))
    assert len(shown) <= min(episodes, 400)
    assert len(shown) * curves <= max(150_000, 20 * curves)


def test_figures_are_there_in_both_formats_and_the_same_again(report: Report, summary: Summary) -> None:
    names = {path.name for path in report.figures}
    parts = ("reward", "regret", "theory", "sources")
    stems = {f"cpap-{task}-{part}" for task in ("noisy", "switching") for part in parts} | {"overview"}
    assert names == {f"{stem}.{suffix}" for stem in stems for suffix in ("png", "pdf")}
    for path in report.figures:
        head = path.read_bytes()[:4]
        assert head == (b"\x89PNG" if path.suffix == ".png" else b"%PDF")
    again = dict(draw(replace(summary, pages=summary.pages[:1])))
    assert len(again) == 8
    assert all((report.html.parent / "figures" / name).read_bytes() == content for name, content in again.items())


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: number(1234567.0), "1,234,567"),
        (lambda: number(0.0012345), "0.001234"),
        (lambda: number(float("nan")), "-"),
        (lambda: percent(-0.244), "-24.4%"),
        (lambda: percent(0.00012), "0.012%"),
        (lambda: percent(np.nan), "-"),
        (lambda: spread(Interval(np.nan, np.nan, np.nan, 0)), "-"),
        (lambda: spread(Interval(12.345, 11.9, 12.79, 9)), "12.3 (11.9 to 12.8)"),
        (lambda: spread(Interval(1e-14, -1e-14, 3e-14, 9)), "0 (0 to 0)"),
        (lambda: spread(Interval(80308.2, 79914.1, 80702.3, 9)), "80,308 (79,914 to 80,702)"),
        (lambda: share(Interval(-0.244, -0.261, -0.227, 20)), "-24.4% (-26.1 to -22.7)"),
        (lambda: share(Interval(0.5, float("nan"), float("nan"), 1)), "50.0%"),
    ],
)
def test_numbers_are_readable(made: Callable[[], str], text: str) -> None:
    assert made() == text


def test_nothing_to_report_is_an_error(folder: Path) -> None:
    empty = report_data.results(report_data.learning(), folder / "empty", without=40)
    with pytest.raises(ModelError, match="small: no run is finished"):
        write_report(empty, folder / "empty-out")
    assert not (folder / "empty-out").exists()


def test_rounds_of_different_length_are_an_error(results: Results) -> None:
    table = results.table(COLUMNS)
    with pytest.raises(ModelError, match="its rounds have different numbers of episodes; run the damaged ones again"):
        summarise(results.study, table.slice(1))


def test_a_missing_library_is_named_with_what_to_do(results: Results, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(RmabError, match=r"a report needs jinja2: pip install 'rmab\[report\]'"):
        write_report(results, folder / "without")


def test_a_folder_that_cannot_be_made_is_one_clear_line(results: Results, folder: Path) -> None:
    (folder / "a file").write_text("")
    with pytest.raises(FileError, match="a file/figures: cannot be written"):
        write_report(results, folder / "a file")
