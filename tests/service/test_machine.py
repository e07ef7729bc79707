"""A state machine: any order of calls over HTTP, repeated, late or out of date, is answered as a small model says."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from services import STATES, Service, service

ARMS = ["a", "b", "c", "d", "e", "f"]
WEEKS = ["2026-W40", "2026-W41", "2026-W42"]
arms, weeks, states = st.sampled_from(ARMS), st.integers(0, 2), st.sampled_from(STATES)
NUMBER = itertools.count()


class Calls(RuleBasedStateMachine):
    """Calls of two operators, one of whom sends everything twice."""

    running: ClassVar[Service]
    verified: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        self.name = f"p{next(NUMBER)}"
        self.call = self.running.caller()
        body = {"name": self.name, "states": STATES, "budget": 2, "reward": {"engaged": 1}}
        assert self.call("POST", "programmes", body).status == 201
        assert self.call("POST", f"programmes/{self.name}/arms", {"arms": ARMS, "state": "lapsed"}).status == 200
        self.events = 2
        self.told: dict[tuple[int, str], str] = {}
        self.corrected: dict[tuple[int, str], list[tuple[int, str]]] = {}
        self.reports: dict[int, tuple[int, str]] = {}  # events that can be undone
        self.decided = -1
        self.tag = ""
        self.requests: list[tuple[str, dict[str, Any], str, int]] = []

    def send(self, path: str, body: dict[str, Any], *, expected: int, **headers: str) -> Any:
        key = f"k{len(self.requests)}"
        found = self.call("POST", f"programmes/{self.name}/{path}", body, idempotency_key=key, **headers)
        assert found.status == expected, found.content
        if expected == 200:
            self.events += 1
            assert found.json["event"] == self.events
            self.requests.append((path, body, key, self.events))
        return found

    @rule(week=weeks, arm=arms, state=states)
    def tell(self, week: int, arm: str, state: str) -> None:
        body = {"period": WEEKS[week], "rows": [{"arm": arm, "state": state}]}
        differs = self.told.get((week, arm), state) != state
        found = self.send("observations", body, expected=409 if differs else 200)
        if differs:
            assert found.json["problems"][0]["at"] == [0]
        elif (week, arm) not in self.told:
            self.told[week, arm] = state
            self.reports[self.events] = (week, arm)

    @rule(week=weeks, arm=arms, state=states)
    def correct(self, week: int, arm: str, state: str) -> None:
        body = {"period": WEEKS[week], "rows": [{"arm": arm, "state": state}], "reason": "misread"}
        self.send("observations", body, expected=200)
        self.corrected.setdefault((week, arm), []).append((self.events, state))

    @rule()
    def ask(self) -> None:
        week = min(self.decided + 1, 2)
        found = self.call("PUT", f"programmes/{self.name}/decisions/{WEEKS[week]}")
        assert found.status == (201 if week > self.decided else 200)
        assert len(found.json["ids"]) <= 2
        self.events += week > self.decided
        self.decided, self.tag = week, found.headers["etag"]

    @precondition(lambda self: self.decided >= 0)
    @rule(arm=arms, fresh=st.booleans())
    def override(self, arm: str, fresh: bool) -> None:
        where = f"programmes/{self.name}/decisions/{WEEKS[self.decided]}"
        now = self.call("GET", where)
        listed = arm in now.json["ids"]
        body = {"period": WEEKS[self.decided], "remove" if listed else "add": [arm], "reason": "by hand"}
        tag = now.headers["etag"] if fresh else self.tag
        full = not listed and all(one["by"] == "name" for one in now.json["rows"]) and len(now.json["ids"]) == 2
        expected = 412 if tag != now.headers["etag"] else 409 if full else 200
        self.send("overrides", body, expected=expected, if_match=tag)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def send_again(self, data: st.DataObject) -> None:
        path, body, key, event = data.draw(st.sampled_from(self.requests))
        found = self.call("POST", f"programmes/{self.name}/{path}", body, idempotency_key=key)
        assert (found.status, found.json["event"]) == (200, event)

    @precondition(lambda self: self.corrected)
    @rule(data=st.data())
    def undo_a_correction(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted(self.corrected)))
        number, _ = self.corrected[place].pop()
        if not self.corrected[place]:
            del self.corrected[place]
        self.send("undo", {"event": number, "reason": "it was right"}, expected=200)

    @invariant()
    def the_journal_is_what_the_model_says(self) -> None:
        part = self.call("GET", f"programmes/{self.name}/events?after={max(self.events - 1, 0)}").json
        assert [one["sequence"] for one in part["events"]] == [self.events]

    def teardown(self) -> None:
        if not hasattr(self, "name"):
            return
        rows = self.call("GET", f"programmes/{self.name}/export").json["rows"]
        for one in rows:
            place = (WEEKS.index(one["period"]), one["arm"])
            last = self.corrected.get(place, [(0, self.told.get(place))])[-1][1]
            assert one["next_state"] == last
        assert self.call("GET", f"programmes/{self.name}/verify").json["events"] == self.events
        Calls.verified += 1


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path: Path = tmp_path_factory.mktemp("machine")
    with service(path) as found:
        yield found


@pytest.mark.slow
def test_any_order_of_calls(running: Service) -> None:
    Calls.running, Calls.verified = running, 0
    run_state_machine_as_test(Calls, settings=settings(max_examples=12, stateful_step_count=14, deadline=None))
    assert Calls.verified >= 1  # journals that were held against the model to the end
