"""The report for a manager: true numbers in plain words, opened in Chromium on a desk, on a phone and in the dark."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from browser import Tab
from logs import mothers
from rmab.data import Effect, Words, decide, estimate_effects, evaluate
from rmab.decisions.fairness import Fairness, write_warnings
from rmab.estimation.reach import estimate_reach
from rmab.report import programme_figures
from rmab.report.programme import _in_spite, _warnings, _why_not, render_programme, write_programme_report

NASTY = '<script>alert("x")</script> & $x$'


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    fitted = mothers(300, 30)
    calls, found = decide(fitted, 30), evaluate(fitted, 30, horizon=12, replicates=40)
    folder = tmp_path_factory.mktemp("report")
    return write_programme_report(fitted, calls, found, folder / "plan.html")


@pytest.mark.slow
def test_it_comes_with_its_figures_as_png(written: tuple[Path, ...]) -> None:
    assert [path.name for path in written] == ["plan.html", "benefit.png", "reach.png", "effects.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written[1:])


def test_it_says_what_a_manager_wants_to_know(written: tuple[Path, ...]) -> None:
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", written[0].read_text()))
    for words in (
        "weeks engaged", "than by rotation", "Per participant",
        "Effect that the plan uses", "than without any call", "Who gets a call, and who never does",
        "get no call under this plan", "Where a call works",
        "What the data cannot show", "The list for 2024-W30", "1st of 300",
    ):  # fmt: skip
        assert words in page, words
    assert not re.search(r"\bO1\b|Term|nan|None|StrictUndefined", page)


@pytest.mark.parametrize(
    ("model", "rise", "worth", "words"),
    [
        (0.05, 0.1, 0.3, "its records show +20.0, but with only 12 calls, so the plan uses +5.0"),
        (
            0.2,
            0.2,
            0.4999,
            "worth 0.5 weeks engaged, and the last place on the list 0.5; equal places go to whoever has waited",
        ),
        (0.2, 0.2, 0.7, "a rule keeps it off the list"),
        (0.2, 0.05, 0.3, "its participants are now in states in which a call changes less (+5.0)"),
        (0.2, 0.15, 0.3, "does not last as long as elsewhere"),
    ],
)
def test_it_explains_why_a_group_with_a_large_effect_gets_no_place(
    model: float, rise: float, worth: float, words: str
) -> None:
    effect = Effect("north", 30, 12, 0.2, 0.1, 0.3, model, "the chance", in_points=True)
    assert words in _why_not(mothers(60, 10), effect, rise, worth, 0.5)


def test_it_explains_why_a_group_without_an_average_effect_gets_places() -> None:
    fitted = mothers(300, 30)
    calls = decide(fitted, 30)
    effects = [replace(one, model=-0.003) for one in estimate_effects(fitted, replicates=40)]
    found = _in_spite(fitted, calls, effects, estimate_reach(fitted, 30, 12, calls.active))
    assert found
    assert all("though the plan's effect there is -0.3 on average: effects differ by state" in one for one in found)


def test_a_page_without_a_benefit_has_no_prices() -> None:
    unfair = Fairness("district=north", 9, 10, 0.5, 5, 0.5, 5.0, 0.1)
    words = Words("call", "week", "weeks engaged")
    notes = (*write_warnings(words, (unfair,)), "cap of a: one more place there would bring 1 more weeks", "standing: x; y")
    calls = SimpleNamespace(words=words, fairness=(unfair,), notes=notes)
    assert len(_warnings(calls, SimpleNamespace(states_benefits=True))) == 2  # type: ignore[arg-type]
    (found,) = _warnings(calls, SimpleNamespace(states_benefits=False))  # type: ignore[arg-type]
    assert found.endswith("it would get 5")


def test_nothing_in_a_figure_lies_outside_of_it() -> None:
    one = Effect(
        "a group with a very long name, of many words " * 3, 10, 5, 0.1, -0.1, 0.3, 0.2, f"the chance of {NASTY}", True
    )
    figure = programme_figures._effects([one, replace(one, group="b")])
    figure.draw_without_rendering()
    axes, edge = figure.axes[0], figure.bbox
    for text in (axes.xaxis.label, *axes.get_yticklabels()):
        box = text.get_window_extent()
        assert edge.x0 <= box.x0 < box.x1 <= edge.x1, text
        assert edge.y0 <= box.y0 < box.y1 <= edge.y1, text


def test_groups_that_are_not_shown_are_counted() -> None:
    fitted = mothers(120, 20, groups=("age",))
    calls, found = decide(fitted, 12), evaluate(fitted, 12, horizon=4, replicates=40)
    effects, reached = estimate_effects(fitted, replicates=40), estimate_reach(fitted, 12, 4, calls.active)
    several = (
        [replace(reached[0], group=f"group {k}") for k in range(50)],
        [replace(effects[0], group=f"group {k}") for k in range(50)],
    )
    page = render_programme(fitted, calls, found, several[1], several[0])
    assert "The first 40 of 50 groups, by calls per participant." in page
    assert "The first 40 of 50 groups, by their effect." in page


def test_reach_adds_up_to_the_budget() -> None:
    fitted = mothers(300, 30)
    reached = estimate_reach(fitted, 30, 26, decide(fitted, 30).active)
    assert sum(one.arms for one in reached) == 300
    assert sum(one.now for one in reached) == 30
    assert sum(one.each * one.arms for one in reached) == pytest.approx(30 * 26, rel=0.05)


def test_names_from_the_log_cannot_become_code() -> None:
    fitted = mothers(60, 15, groups=("age",))
    ids = (NASTY, *fitted.ids[1:])
    own = {"roster": replace(fitted.roster, ids=ids), "log": replace(fitted.log, arms=ids)}
    nasty = replace(fitted, groups=(NASTY, *fitted.groups[1:]), **own)
    calls, found = decide(nasty, 60), evaluate(nasty, 10, horizon=4, replicates=40)
    page = render_programme(
        nasty, calls, found, estimate_effects(nasty, replicates=40), estimate_reach(nasty, 60, 4, calls.active)
    )
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_opens_without_errors_without_the_network_and_without_scrolling_sideways(
    tab: Tab, written: tuple[Path, ...], width: int, dark: bool
) -> None:
    tab.open(written[0], width, 900, dark=dark)
    tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert tab.complaints == []
    assert tab.requests == [written[0].as_uri()]
    assert tab.value("document.documentElement.scrollWidth") <= width
    back = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3"
    )
    assert (tab.value(back) < 60) == dark
    tab.page.click("#theme")
    assert (tab.value(back) < 60) != dark


def test_bars_lie_where_their_numbers_say(tab: Tab, written: tuple[Path, ...]) -> None:
    tab.open(written[0], 1280, 900)
    look = """[...document.querySelectorAll('#benefits .track')].map((one) => {
      const b = (x) => one.querySelector(x).getBoundingClientRect();
      const d = b('.dot'), r = b('.range'), z = b('.zero'), t = one.getBoundingClientRect();
      return [d.x + d.width / 2, r.left, r.right, z.x + 1, t.left, t.right]; })"""
    texts = tab.value("[...document.querySelectorAll('#benefits .number')].map((one) => one.innerText)")
    numbers = [[float(x.replace(",", "")) for x in re.findall(r"[+-][\d,.]+", text)] for text in texts]
    boxes = tab.value(look)
    assert len(boxes) == len(numbers) == 4
    zero = boxes[0][3]
    scale = max((box[0] - zero) / one[0] for box, one in zip(boxes, numbers, strict=True) if abs(one[0]) > 5)
    for (dot, left, right, _, start, end), (value, low, high) in zip(boxes, numbers, strict=True):
        assert start <= left <= dot <= right <= end
        for x, number in ((dot, value), (left, low), (right, high)):
            assert x - zero == pytest.approx(scale * number, abs=max(4, 0.02 * (end - start)))
