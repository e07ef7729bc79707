"""The page in a browser: a week as a coordinator lives it, two people, lost connections, sessions that end, and axe-core."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Tab
from coordinator import Screen
from rmab.service import Settings, revoke_token
from services import IDS, Service, fill, rows, service

pytestmark = pytest.mark.browser


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path, Settings(token_seconds=0.0)) as found:
        p = fill(found.store)
        p.ask("2026-W46")
        p.tell("2026-W46", rows())
        yield found


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_week(running: Service, tab: Tab, tmp_path: Path, size: str) -> None:
    screen = Screen(tab, running.url, size, dark=size == "phone", token=running.caller("operator", "ann").token)
    page, p = screen.page, running.store.programme("mothers")
    assert "List for 2026-W46" in screen.text()
    page.get_by_role("button", name="Make the list for 2026-W47").click()
    page.get_by_role("heading", name="List for 2026-W47").wait_for()
    assert "Final" in screen.text()
    out = p.decision("2026-W47").ids[0]
    page.get_by_role("link", name=f"Cross out {out}").click()
    page.get_by_role("heading", name=f"Cross out {out}").wait_for()
    page.get_by_label("Reason").first.fill("in <b>hospital</b>")
    page.get_by_role("button", name="Cross out").click()
    page.get_by_text("The list is changed.").wait_for()
    assert "in <b>hospital</b>" in screen.text()
    assert out not in p.decision("2026-W47").ids
    new = next(one for one in IDS if one not in p.decision("2026-W47").ids and one != out)
    page.get_by_label("Id", exact=True).fill(new)
    page.locator("form.card.stack").get_by_label("Reason").fill("asked")
    page.get_by_role("button", name="Add to the list").click()
    page.get_by_text(f"added {new}").wait_for()
    assert new in p.decision("2026-W47").ids
    assert p.events[-1].actor == "ann"

    page.get_by_role("link", name="Reports").click()
    page.get_by_role("heading", name="What came back").wait_for()
    bad = tmp_path / "week.csv"
    bad.write_text("arm,executed,state\nm00,yes,engaged\nm01,perhaps,lapsed\nm02,no,asleep\nm03,,engaged\n")
    page.get_by_label("File").set_input_files(bad)
    page.get_by_role("button", name="Send").click()
    page.get_by_text("Nothing was stored.").wait_for()
    assert screen.serious() == []
    assert page.get_by_role("row").filter(has=page.locator("input")).count() == 2
    page.get_by_label("Line 3, executed").fill("no")
    page.get_by_label("Line 4, state").fill("lapsed")
    page.get_by_role("button", name="Check again").click()
    page.get_by_text("4 reports are fine.").wait_for()
    count = len(p.events)
    page.locator("form.note").get_by_role("button", name="Send").click()
    page.get_by_text("The reports are stored.").wait_for()
    assert len(p.events) == count + 1
    assert p.events[-1].parse().arms == ["m00", "m03", "m01", "m02"]

    page.get_by_role("link", name="Undo", exact=True).click()
    page.locator("#undo").get_by_label("Reason").fill("wrong week")
    page.locator("#undo").get_by_role("button").click()
    page.get_by_text(f"Event {count + 1} is undone.").wait_for()
    for name, what in (("Evidence", "What the lists have brought"), ("People", "waited longest"), ("Budget", "Ahead")):
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("heading", name=what).wait_for()
    screen.close()


@pytest.mark.parametrize(("size", "dark"), [("desk", False), ("phone", True)])
def test_no_page_has_a_serious_finding_of_axe(running: Service, tab: Tab, size: str, dark: bool) -> None:
    screen = Screen(tab, running.url, size, dark=dark)
    for path in ("", "/reports", "/evidence", "/people", "/person?arm=m01", "/journal", "/budget", "?remove=m01"):
        screen.go(f"/p/mothers{path}")
        assert screen.serious() == [], path
        wide = screen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} is wider than the screen"
    for path in ("/", "/new", "/sign-in", "/p/unknown"):
        screen.go(path)
        assert screen.serious() == [], path
    screen.close()


def test_two_people_on_one_list(running: Service, tab: Tab) -> None:
    ann, bea = (Screen(tab, running.url, token=running.caller("operator", one).token) for one in ("ann", "bea"))
    p = running.store.programme("mothers")
    first, second = p.decision("2026-W46").ids[:2]
    for screen, arm in ((ann, first), (bea, second)):
        screen.go(f"/p/mothers?remove={arm}")
        screen.page.get_by_label("Reason").first.fill("away")
    ann.page.get_by_role("button", name="Cross out").click()
    ann.page.get_by_text("The list is changed.").wait_for()
    bea.page.get_by_role("button", name="Cross out").click()
    bea.page.get_by_text("Somebody else changed this list").wait_for()
    assert second in p.decision("2026-W46").ids, "nothing was saved"
    assert bea.page.get_by_label("Reason").first.input_value() == "away", "what was typed is still there"
    bea.page.get_by_role("button", name="Cross out").click()
    bea.page.get_by_text("The list is changed.").wait_for()
    assert not {first, second} & set(p.decision("2026-W46").ids)
    ann.close()
    bea.close()


def test_a_connection_that_is_lost_in_the_middle_of_a_save(running: Service, tab: Tab) -> None:
    screen = Screen(tab, running.url)
    p = running.store.programme("mothers")
    arm = p.decision("2026-W46").ids[0]
    screen.go(f"/p/mothers?remove={arm}")
    screen.page.get_by_label("Reason").first.fill("away")
    lost = []

    def lose(route: object) -> None:  # the request arrives, its answer does not
        route.fetch(max_redirects=0)  # type: ignore[attr-defined]
        lost.append(1)
        route.abort()  # type: ignore[attr-defined]

    screen.page.route("**/override", lose)
    screen.page.get_by_role("button", name="Cross out").click()
    screen.page.get_by_text("No connection").wait_for()
    assert lost == [1]
    screen.page.unroute("**/override")
    count = len(p.events)
    screen.page.get_by_role("button", name="Cross out").click()
    screen.page.get_by_text("The list is changed.").wait_for()
    assert len(p.events) == count, "sent twice, written once"
    screen.complaints.clear()
    screen.close()


def test_a_session_that_has_ended(running: Service, tab: Tab) -> None:
    token = running.caller("operator", "ann").token
    screen = Screen(tab, running.url, token=token)
    p = running.store.programme("mothers")
    screen.go(f"/p/mothers?remove={p.decision('2026-W46').ids[0]}")
    screen.page.get_by_label("Reason").first.fill("away")
    count = len(p.events)
    revoke_token(running.store.engine, token.split("_")[1])
    screen.page.get_by_role("button", name="Cross out").click()
    screen.page.get_by_text("Your session has ended, and nothing was saved.").wait_for()
    assert len(p.events) == count
    screen.sign_in(running.caller("viewer", "ann").token)
    assert "Cross out" not in screen.text(), "a viewer has no buttons"
    screen.close()


def test_by_keyboard_alone(running: Service, tab: Tab) -> None:
    p = running.store.programme("mothers")
    p.ask("2026-W47")  # a planned list, after that of the fallback
    p.tell("2026-W47", rows())
    screen = Screen(tab, running.url)
    screen.go("/p/mothers")
    screen.page.keyboard.press("Tab")
    assert screen.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    screen.page.get_by_role("link", name="Evidence").focus()
    screen.page.keyboard.press("Enter")
    screen.page.get_by_role("heading", name="What the lists have brought").wait_for()
    screen.page.locator("#benefit canvas").wait_for()
    screen.close()
