"""Random sequences of all operations against a model in plain dictionaries."""

import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import rmab
from rmab.errors import LogError, ModelError

STATES = ["low", "high"]
IDS = [f"arm {k}" for k in range(6)]
ARMS = st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True)
FACTS = st.sampled_from([(s, e) for s in ("low", "high", None) for e in (1, 0, None) if (s, e) != (None, None)])


class Model:
    """A programme as anybody would write it down first: dictionaries, and the whole story told again for every question."""

    def __init__(self) -> None:
        self.story: list[tuple[str, Any]] = []

    def told(self) -> tuple[dict[Any, Any], dict[int, set[str]], dict[str, list[list[Any]]]]:
        undone = {body for kind, body in self.story if kind == "undo"}
        reported: dict[Any, Any] = {}
        corrected: dict[Any, Any] = {}
        lists: dict[int, set[str]] = {}
        stays: dict[str, list[list[Any]]] = {}
        for k, (kind, body) in enumerate(self.story):
            if k in undone:
                continue
            if kind in ("tell", "correct"):
                period, arms, facts = body
                for one in arms:
                    for name, value in zip(("state", "executed"), facts, strict=True):
                        if value is not None:
                            (corrected if kind == "correct" else reported)[period, one, name] = value
            elif kind in ("decide", "override"):
                lists[body[0]] = set(body[1])
            elif kind == "join":
                for one in body[1]:
                    stays.setdefault(one, []).append([body[0], 10**9, body[2]])
            elif kind == "leave":
                for one in body[1]:
                    stays[one][-1][1] = body[0]
        return {**reported, **corrected}, lists, stays

    def counts(self) -> np.ndarray[Any, Any]:
        facts, lists, stays = self.told()
        first = min([*lists, *(period for period, _, _ in facts)], default=0)
        found = np.zeros((2, 2, 2), dtype=int)
        for (period, one, name), state in facts.items():
            if name != "state":
                continue
            entry = [start for begin, _, start in stays.get(one, []) if (first if begin is None else begin) == period]
            before = entry[-1] if entry and entry[-1] is not None else facts.get((period - 1, one, "state"))
            done = facts.get((period, one, "executed"))
            if done is None and period in lists and one not in lists[period]:
                done = 0
            if before is not None and done is not None:
                found[STATES.index(before), done, STATES.index(state)] += 1
        return found


class Machine(RuleBasedStateMachine):
    """The programme and its model, side by side."""

    @initialize(seed=st.integers(0, 3), floor=st.sampled_from([None, 6]))
    def begin(self, seed: int, floor: int | None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{self.folder.name}/x.db"
        self.store = rmab.live.open(self.url)
        options: dict[str, Any] = {"every": "number", "random_share": 0.5, "control": 0.2, "lookahead": 3}
        self.p = self.store.create("p", states=STATES, budget=2, reward={"high": 1}, seed=seed, floor=floor, **options)
        self.p.join(IDS[:4], state="low")
        self.model = Model()
        self.model.story = [("create", None), ("join", (None, IDS[:4], "low"))]
        self.period = 0  # the next one to be decided
        self.seen: list[tuple[int, Any]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert not self.p.replay().differences
            self.p.verify()
            for sequence, statistics in self.seen:
                assert self.p.as_of(sequence).statistics == statistics, "as_of saw the future"
            with rmab.live.open(self.url) as other:
                assert other.programme("p").statistics == self.p.statistics
            self.store.close()
            self.folder.cleanup()

    def attempt(self, entry: tuple[str, Any], call: Any) -> None:
        """Call, and note it in the model; what is refused must change nothing."""
        before = self.p.head
        try:
            call()
        except (ModelError, LogError):
            assert self.p.head == before
        else:
            self.model.story.append(entry)
            assert len(self.p.events) == len(self.model.story)

    @rule()
    def ask(self) -> None:
        found = self.p.ask(self.period)
        assert found.ids == self.p.ask(self.period).ids
        self.model.story.append(("decide", (self.period, found.ids)))
        self.period += 1

    @rule(back=st.integers(1, 3), arms=ARMS, facts=FACTS)
    @precondition(lambda self: self.period > 0)
    def tell(self, back: int, arms: list[str], facts: Any) -> None:
        period = max(self.period - back, 0)
        rows = [{"arm": one, "state": facts[0], "executed": facts[1]} for one in arms]
        known = self.model.told()[0]
        plain = {key: value for key, value in known.items() if key[0] == period}
        self.attempt(("tell", (period, arms, facts)), lambda: self.p.tell(period, rows))
        if self.model.story[-1][0] == "tell" and not any(kind == "correct" for kind, _ in self.model.story):
            for one in arms:
                for name, value in zip(("state", "executed"), facts, strict=True):
                    assert value is None or plain.get((period, one, name), value) == value, "a conflict was accepted"

    @rule(back=st.integers(1, 3), arms=ARMS, facts=FACTS)
    @precondition(lambda self: self.period > 0)
    def correct(self, back: int, arms: list[str], facts: Any) -> None:
        period = max(self.period - back, 0)
        rows = [{"arm": one, "state": facts[0], "executed": facts[1]} for one in arms]
        self.attempt(("correct", (period, arms, facts)), lambda: self.p.correct(period, rows, reason="r"))

    @rule(arms=ARMS, state=st.sampled_from(["low", "high", None]))
    def join(self, arms: list[str], state: str | None) -> None:
        self.attempt(("join", (self.period, arms, state)), lambda: self.p.join(arms, state=state, period=self.period))

    @rule(arms=ARMS)
    def leave(self, arms: list[str]) -> None:
        self.attempt(("leave", (self.period, arms)), lambda: self.p.leave(arms, period=self.period))

    @rule(add=ARMS, remove=ARMS)
    @precondition(lambda self: self.period > 0)
    def override(self, add: list[str], remove: list[str]) -> None:
        period = self.period - 1
        entry = ["override", None]
        self.attempt(tuple(entry), lambda: self.p.override(period, add=add, remove=remove, reason="r"))  # type: ignore[arg-type]
        if self.model.story[-1] == ("override", None):
            self.model.story[-1] = ("override", (period, self.p.decision(period).ids))

    @rule(budget=st.integers(1, 3))
    def budget(self, budget: int) -> None:
        self.attempt(("budget", budget), lambda: self.p.set_budget(budget))

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        undone = {body for kind, body in self.model.story if kind == "undo"}
        able = [k for k, (kind, _) in enumerate(self.model.story) if kind in ("tell", "correct") and k not in undone]
        if able:
            event = data.draw(st.sampled_from(able))
            self.attempt(("undo", event), lambda: self.p.undo(event + 1, reason="r"))

    @rule()
    def snapshot_and_start_again(self) -> None:
        self.p.snapshot()
        self.store.close()
        self.store = rmab.live.open(self.url)
        self.p = self.store.programme("p")

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "p"):
            return
        statistics = self.p.statistics
        np.testing.assert_array_equal(statistics.counts.sum(axis=0), self.model.counts())
        self.seen.append((len(self.model.story), statistics))
        with self.p.ledger() as ledger:
            for record in ledger.decisions.values():
                assert len(record.rules) <= record.body.budget, "over budget"


Machine.TestCase.settings = settings(max_examples=12, stateful_step_count=15)


@pytest.mark.slow
class TestMachine(Machine.TestCase):  # type: ignore[misc, name-defined]
    """Run by pytest."""
