"""The report in a headless Chromium: drawn without errors, without the network, for phones, in the dark, and alive."""

import base64
import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

import report_data
from browser import REQUIRED, Tab, executable
from rmab.report.page import render
from rmab.report.summary import COLUMNS, summarise


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, tab: Tab) -> dict[str, Path]:  # no tab, no runs
    folder = tmp_path_factory.mktemp("pages")
    studies = {"learning": report_data.learning(), "growth": report_data.growth()}
    pages = {}
    for name, study in studies.items():
        found = report_data.results(study, folder / name)
        pages[name] = folder / f"{name}.html"
        pages[name].write_text(render(summarise(study, found.table(COLUMNS)), found.provenance()))
    return pages


# Opaque colours of a canvas, by how many pixels they have; read from a copy, because Chromium warns of frequent reading.
INK = """
(id) => {
  const canvas = document.querySelector(`#${id} canvas`), { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const pixels = copy.getImageData(0, 0, width, height).data, found = {};
  for (let k = 0; k < pixels.length; k += 4) {
    if (pixels[k + 3] < 250) continue;
    const key = "#" + [0, 1, 2].map((i) => pixels[k + i].toString(16).padStart(2, "0")).join("");
    found[key] = (found[key] || 0) + 1;
  }
  return found;
}
"""
STYLE = "getComputedStyle(document.documentElement)"
COLOURS = f"report.data.learners.map((one) => {STYLE}.getPropertyValue(`--c${{one.colour}}`).trim())"
SHOWN = "report.charts.map(({ u, owners }) => u.series.filter((one, k) => owners[k] === 0).map((one) => one.show))"
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def ink(tab: Tab, chart: str, colour: str) -> int:
    """Return how many pixels of a chart have this colour, or nearly."""
    wanted = bytes.fromhex(colour[1:])
    found = tab.value(f"({INK})({json.dumps(chart)})")
    return sum(
        n for key, n in found.items() if max(abs(a - b) for a, b in zip(bytes.fromhex(key[1:]), wanted, strict=True)) < 16
    )


@pytest.mark.parametrize("name", ["learning", "growth"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_without_errors_and_asks_for_nothing_but_itself(
    tab: Tab, reports: dict[str, Path], name: str, dark: bool
) -> None:
    tab.open(reports[name], dark=dark)
    tab.value(FRAMES)
    assert tab.complaints == []
    assert tab.requests == [reports[name].as_uri()]


def test_requests_would_be_refused_and_seen(tab: Tab, reports: dict[str, Path]) -> None:
    """The two checks above can fail: a page that tries to load something is stopped, and says so."""
    tab.open(reports["learning"])
    refused = tab.value("fetch('http://127.0.0.1:9/').then(() => 'loaded', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in one for one in tab.complaints)


def test_every_learner_s_curve_is_drawn(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    for chart in ("reward", "regret"):
        for colour in tab.value(COLOURS):
            assert ink(tab, chart, colour) > 100, f"{chart}: no line in {colour}"
    assert tab.value("document.querySelectorAll('#terms rect').length") == 4 * 3


def test_switching_a_learner_off_hides_it_everywhere(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    colour = tab.value(COLOURS)[0]
    assert all(all(one) and len(one) == 3 for one in tab.value(SHOWN))  # mean and both edges of the band
    tab.page.click("#learners input[value='0']")
    tab.value(FRAMES)
    assert len(tab.value(SHOWN)) == 3
    assert not any(any(one) for one in tab.value(SHOWN))
    for chart in ("reward", "regret", "theory"):
        assert ink(tab, chart, colour) == 0
    assert tab.value("document.querySelectorAll('#terms rect').length") == 4 * 2
    tab.page.click("#learners input[value='0']")
    tab.value(FRAMES)
    assert all(all(one) for one in tab.value(SHOWN))
    assert ink(tab, "reward", colour) > 100
    assert tab.complaints == []


def test_pointing_shows_the_values_in_all_charts(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    tab.page.hover("#reward .u-over")
    tab.until("!document.querySelector('#reward .tip').hidden")
    text = tab.value("document.querySelector('#reward .tip').innerText")
    assert text.startswith("episode ")
    assert all(name in text for name in ("ucmd-armab: ", "random: ", "oracle: "))
    assert "±" in text
    tab.until("!document.querySelector('#regret .tip').hidden")
    assert tab.value("document.querySelector('#regret .tip b').innerText") == text.splitlines()[0]


def test_another_task_and_another_comparator_change_what_is_shown(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    curve = "report.charts[1].u.data[report.charts[1].u.series.findIndex((one) => one.label === 'ucmd-armab')].at(-1)"
    first = tab.value(curve)
    assert first == pytest.approx(tab.value("report.data.tasks[0].learners[0].O1[0].at(-1)"))
    tab.value(
        "(() => { const s = document.getElementById('task'); s.value = '1'; s.dispatchEvent(new Event('change')); })()"
    )
    assert tab.value(curve) == pytest.approx(tab.value("report.data.tasks[1].learners[0].O1[0].at(-1)"))
    assert tab.value("[...document.querySelectorAll('section.page')].map((one) => one.hidden)") == [True, False]
    assert tab.value("document.getElementById('task-name').textContent") == "cpap@switching"
    tab.page.click(".choice label:nth-child(2)")
    assert tab.value(curve) == pytest.approx(tab.value("report.data.tasks[1].learners[0].O2[0].at(-1)"))
    assert tab.complaints == []


@pytest.mark.parametrize("name", ["learning", "growth"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_scrolls_sideways(tab: Tab, reports: dict[str, Path], name: str, width: int) -> None:
    tab.open(reports[name], width, 800)
    tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value("document.querySelector('#reward canvas').getBoundingClientRect().right") <= width
    assert tab.complaints == []


def test_charts_follow_the_window(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"], 1280, 900)
    wide = tab.value("report.charts[0].u.width")
    tab.page.set_viewport_size({"width": 500, "height": 900})
    tab.until(f"report.charts[0].u.width !== {wide}")
    tab.until("report.charts.every(({ u, element }) => u.width === element.clientWidth)")
    assert tab.value("report.charts[0].u.width") < wide


def test_dark_is_dark_and_the_button_switches(tab: Tab, reports: dict[str, Path]) -> None:
    back = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3"
    )
    tab.open(reports["learning"], dark=True)
    dark = tab.value(COLOURS)
    assert tab.value(back) < 60
    assert ink(tab, "reward", dark[1]) > 100
    tab.page.click("#theme")
    light = tab.value(COLOURS)
    assert tab.value(back) > 200
    assert light != dark
    tab.value(FRAMES)
    assert ink(tab, "reward", light[1]) > 100
    tab.page.click("#theme")
    assert tab.value(back) < 60


def test_lines_are_labelled_at_their_ends_apart_from_each_other(tab: Tab, reports: dict[str, Path]) -> None:
    """What the charts write beside their axes is recorded as it is drawn; a learner that is switched off has no label."""
    spy = """
        window.written = [];
        const own = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
          const beside = this.canvas.closest("#reward") && this.textAlign === "left";
          if (beside) window.written.push([text, x, y, this.canvas.width]);
          return own.apply(this, arguments);
        };
        report.charts[0].u.redraw();
    """
    for width in (390, 1280):
        tab.open(reports["learning"], width, 900)
        tab.value(f"(() => {{ {spy} }})()")
        tab.value(FRAMES)
        written = tab.value("window.written")
        assert sorted(one[0] for one in written) == sorted(
            name if len(name) <= (11 if width == 390 else 20) else f"{name[: 10 if width == 390 else 19]}…"
            for name in ("ucmd-armab", "ucmd", "random", "ucmd, full feedback", "oracle")
        )
        heights = sorted(one[2] for one in written)
        assert all(after - before >= 12.9 for before, after in pairwise(heights))
        assert all(one[1] < one[3] - 20 for one in written)
        tab.value("window.written = []; document.querySelector(`#learners input[value='0']`).click()")
        tab.value(FRAMES)
        assert "ucmd-armab" not in {one[0] for one in tab.value("window.written")}
        assert tab.complaints == []


def test_all_tasks_at_a_glance(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    assert tab.value("document.querySelectorAll('#overview-chart circle').length") == 2 * 5
    first = "document.querySelector('#overview-chart g title').textContent"
    assert tab.value(first).startswith("ucmd-armab on cpap@noisy: ")
    expected = tab.value("report.data.overview[0].dots[0][1]")
    shown = tab.value("document.querySelector('table.overview tbody td').innerText").split("%")[0]
    assert float(shown) == pytest.approx(expected, abs=0.06)
    tab.page.click("#learners input[value='0']")
    assert tab.value("document.querySelectorAll('#overview-chart circle').length") == 2 * 4


def test_tables_are_sorted_by_a_click_on_a_head(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    column = "[...document.querySelectorAll('#task-0 table')[0].tBodies[0].rows].map((row) => row.cells[2].innerText)"
    before = tab.value(column)
    for order in ("ascending", "descending"):
        tab.page.click("#task-0 thead th:nth-child(3) button")
        numbers = [float(one.split(" ")[0].replace(",", "")) for one in tab.value(column)]
        assert numbers == sorted(numbers, reverse=order == "descending")
        head = "document.querySelector('#task-0 thead th:nth-child(3)').getAttribute('aria-sort')"
        assert tab.value(head) == order
    assert sorted(tab.value(column)) == sorted(before)
    names = "[...document.querySelectorAll('#task-0 table')[0].tBodies[0].rows].map((row) => row.cells[0].innerText.trim())"
    tab.page.click("#task-0 thead th:nth-child(1) button")
    assert [one.split("\n")[0].split()[0] for one in tab.value(names)] == ["oracle", "random", "ucmd", "ucmd-armab", "ucmd,"]


def test_tables_are_saved_as_csv_and_charts_as_png(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    text = tab.value("report.csv(document.querySelectorAll('#task-0 table')[0])")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][:5] == ["Learner", "Rounds", "Total reward", "Total reward: low", "Total reward: high"]
    assert [row[0] for row in rows[1:]] == ["ucmd-armab", "ucmd", "random", "ucmd, full feedback", "oracle"]
    assert all(len(row) == len(rows[0]) for row in rows)
    for row in rows[1:]:
        mean, low, high = map(float, row[2:5])
        assert low < mean < high
    assert tab.value("report.csv(document.querySelector('table.overview'))").startswith("Task,ucmd-armab [%],")
    for chart in ("reward", "terms", "overview-chart"):
        find = f"document.getElementById('{chart}').closest('figure')"
        read = (
            "new Promise((done) => { const f = new FileReader(); f.onload = () => done(f.result); f.readAsDataURL(blob); })"
        )
        picture = base64.b64decode(tab.value(f"report.png({find}).then((blob) => {read})").partition(",")[2])
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(picture) > 5000
    saved = set()
    for selector in ("#task-0 caption .save", "figure:has(#reward) .save"):
        with tab.page.expect_download() as download:
            tab.page.click(selector)
        saved.add(download.value.suggested_filename)
    assert "Five-learners-on-two-tasks-Learners-on-cpap-noisy-mean-95-interval.csv" in saved
    assert "Five-learners-on-two-tasks-cpap-noisy-Accumulated-reward.png" in saved
    assert tab.complaints == []
    assert tab.requests[0] == reports["learning"].as_uri()
    assert all(one.startswith(("file:", "blob:", "data:")) for one in tab.requests)


def test_labels_that_a_spreadsheet_would_run_are_saved_as_text(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    cell = "document.querySelector('#task-0 tbody th')"
    text = tab.value(f"{cell}.textContent = '=1+1, \"x\"', report.csv(document.querySelectorAll('#task-0 table')[0])")
    assert list(csv.reader(io.StringIO(text)))[1][0] == '\'=1+1, "x"'


def test_contents_stand_on_the_left_and_lead_to_tasks(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"])
    nav, main = (tab.value(f"document.querySelector('{one}').getBoundingClientRect().toJSON()") for one in ("nav", "main"))
    assert nav["right"] <= main["left"]
    targets = tab.value("[...document.querySelectorAll('nav a')].map((one) => one.getAttribute('href'))")
    assert targets == ["#shows", "#read", "#overview", "#curves", "#task-0", "#task-1", "#made"]
    assert tab.value(f"{json.dumps(targets)}.every((one) => document.querySelector(one))")
    tab.page.click("nav a[data-task='1']")
    assert tab.value("[...document.querySelectorAll('section.page')].map((one) => one.hidden)") == [True, False]
    assert tab.value("document.getElementById('task').value") == "1"
    tab.open(reports["learning"], 390, 800)
    assert not tab.value("document.getElementById('contents').open")


def test_the_legend_folds_on_a_phone_and_has_room_for_a_finger(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["learning"], 390, 800)
    assert not tab.value("document.getElementById('legend').open")
    tab.page.click("#legend summary")
    boxes = tab.value("[...document.querySelectorAll('#learners label')].map((one) => one.getBoundingClientRect().toJSON())")
    assert all(one["height"] >= 40 and one["left"] >= 0 and one["right"] <= 390 for one in boxes)
    tab.page.click("#learners label:nth-of-type(2)")
    assert tab.value("document.getElementById('shown').textContent") == "(4 of 5 shown)"


def test_growth_has_its_charts_on_logarithmic_axes(tab: Tab, reports: dict[str, Path]) -> None:
    tab.open(reports["growth"])
    assert tab.value("document.querySelectorAll('#scaling-charts canvas').length") == 2
    scaling = "report.charts.filter((one) => one.element.closest('#scaling-charts'))"
    assert tab.value(f"{scaling}.every((one) => one.u.scales.x.distr === 3 && one.u.scales.y.distr === 3)")
    assert tab.value(f"{scaling}.every((one) => one.u.data.slice(1).flat().every((v) => v === null || v > 0))")
    assert tab.value(f"{scaling}[0].u.data[0]") == [6, 12, 24]


def test_without_a_browser_tests_are_skipped_unless_one_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no browser found"):
        executable()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="RMAB_REQUIRE_BROWSER=1 asks for one"):
        executable()
