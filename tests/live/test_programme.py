"""What a programme means by its words: who is counted, believed, listed, with what probability, and what is refused."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.errors import LogError, ModelError
from rmab.live.deciding import make_decision
from rmab.live.events import unpack_numbers
from rmab.live.observing import Observer, believe
from rmab.live.periods import Rhythm
from rmab.live.planning import learn

IDS = [f"arm {k:02d}" for k in range(20)]
STATES = ["low", "high"]
WEEK = "2026-W47"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db", actor="test") as found:
        yield found


def begin(store: Any, name: str = "p", **options: Any) -> Any:
    given = {"budget": 4, "reward": {"high": 1}, **options}
    p = store.create(name, states=STATES, **given)
    p.join(IDS, group=["a", "b"] * 10, state=STATES * 10)
    return p


def report(p: Any, week: str, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    listed = set(p.decision(week).ids)
    high = [rng.random() < (0.9 if one in listed else 0.3) for one in IDS]
    rows = [
        {"arm": one, "state": STATES[up], "executed": "yes" if one in listed else ""}
        for one, up in zip(IDS, high, strict=True)
    ]
    p.tell(week, rows)


def test_what_is_counted(store: Any) -> None:
    p = begin(store)
    listed = p.ask(WEEK).ids
    other = next(one for one in IDS if one not in listed)
    p.tell(WEEK, [{"arm": listed[0], "state": "high"}, {"arm": other, "state": "high"}])
    assert p.statistics.counts.sum() == 1  # of the listed one it is not known whether it was executed
    assert p.statistics.counts[:, :, 0].sum() == 1
    p.tell(WEEK, [{"arm": listed[0], "executed": "no"}])
    assert p.statistics.counts[:, :, 0].sum() == 2
    p.tell("2026-W48", [{"arm": other, "state": "low"}])  # no decision: nobody knows what was done
    assert p.statistics.counts.sum() == 2
    p.tell("2026-W48", [{"arm": other, "executed": 1}])
    assert p.statistics.counts[:, 1, 1, 0].sum() == 1
    p.tell("2026-W50", [{"arm": other, "state": "low", "executed": 0}])  # no state before: a gap is not bridged
    assert p.statistics.counts.sum() == 3


def test_an_override_changes_what_is_counted(store: Any) -> None:
    p = begin(store)
    listed = p.ask(WEEK).ids
    p.tell(WEEK, [{"arm": listed[0], "state": "high"}])
    assert p.statistics.counts.sum() == 0  # it is on the list, and nobody says whether it was called
    p.override(WEEK, remove=listed[:1], reason="away")
    assert p.statistics.counts[:, :, 0].sum() == 1  # it is not on the list, so it was not called


def test_rewards_are_reported_or_missing_never_zero(store: Any) -> None:
    p = begin(store, reward=None)
    p.ask(WEEK)
    p.tell(WEEK, {"arm": IDS[:3], "reward": [2.5, None, 0], "executed": [0, 0, 0]})
    assert p.statistics.numbers.sum() == 2
    assert p.statistics.reward_sums.sum() == 2.5


def test_leaving_censors_and_a_return_begins_anew(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    report(p, WEEK)
    p.leave(IDS[:1], period="2026-W48", reason="moved")
    counted = p.statistics.counts.sum()
    with pytest.raises(LogError, match=r"not in the programme in 2026-W48: 'arm 00'"):
        p.tell("2026-W48", [{"arm": IDS[0], "state": "low"}])
    p.ask("2026-W48")
    with pytest.raises(LogError, match="was in group 'a' before"):
        p.join(IDS[:1], group="b", period="2026-W49")
    p.join(IDS[:1], group="a", state="high", period="2026-W49")
    p.ask("2026-W49")
    p.tell("2026-W49", [{"arm": IDS[0], "state": "low", "executed": "no"}])
    assert p.statistics.counts.sum() == counted + 1
    assert p.decision("2026-W48").arms == tuple(IDS[1:])


def test_beliefs_are_carried_forward(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    report(p, WEEK)
    p.ask("2026-W48")
    with p.ledger() as ledger:
        model = learn(ledger, Observer())
        now = ledger.declared.rhythm.number("2026-W49")
        found = believe(ledger, now, np.arange(20), np.asarray(model.rows.kernels), model.reach)
        listed = p.decision("2026-W48").ids
        for n, one in enumerate(IDS):
            state, group = ledger.cells[now - 2].states(20)[n], n % 2
            rows = model.rows.kernels[group, state]
            q = model.reach[group] if one in listed else 0.0
            np.testing.assert_allclose(found[n], (1 - q) * rows[0] + q * rows[1])


def test_both_sides_are_drawn_with_the_stored_probabilities(store: Any) -> None:
    """Over many seeds every arm is listed as often as its probability says, ties or not."""
    p = begin(store, random_share=0.5, control=0.2, engine="mean")
    p.ask(WEEK)
    report(p, WEEK)
    with p.ledger() as ledger:
        config, listed, expected = ledger.config, Counter[str](), Counter[str]()
        both = 0
        for seed in range(400):
            ledger.config = config.model_copy(update={"seed": seed})
            body = make_decision(ledger, Observer(), ledger.declared.rhythm.number("2026-W48"))
            listed.update(body.listed)
            chance = unpack_numbers(body.probability)
            expected.update(dict(zip(IDS, chance.tolist(), strict=True)))
            both += len(body.left_out) == 2 and body.rule.count("lot") == 2
            assert chance.sum() == pytest.approx(4) == len(body.listed)
        ledger.config = config
    assert both == 400
    sizes = np.array([listed[one] for one in IDS]), np.array([expected[one] for one in IDS])
    np.testing.assert_allclose(*sizes, atol=4 * np.sqrt(400 * 0.25))
    assert np.corrcoef(*sizes)[0, 1] > 0.95


def test_a_model_that_expects_nothing_keeps_trying_at_random(store: Any) -> None:
    counts = np.array([[[[5, 5], [9, 1]], [[5, 5], [9, 1]]]])  # an action does harm
    for share, size in ((0.0, 0), (0.5, 2)):
        p = begin(store, f"share {share}", random_share=share)
        p.warm_start(rmab.data.Statistics.from_counts(counts), trust=20)
        found = p.ask(WEEK)
        assert len(found.ids) == size
        assert found.notes == (f"{4 - size} of 4 places stay empty: the model expects no benefit from them",)
        np.testing.assert_allclose(found.probability, size / 20)


def test_draws_do_not_depend_on_who_joins(store: Any) -> None:
    plain, more = (begin(store, name, random_share=0.5) for name in ("one", "two"))
    more.join(["new"], state="low")
    first, second = (p.ask(WEEK) for p in (plain, more))
    with plain.ledger() as one, more.ledger() as two:
        a, b = (next(iter(ledger.decisions.values())) for ledger in (one, two))
        chosen = [np.isin(np.arange(20), [*record.by_index(), *record.left_out]) for record in (a, b)]
    same = chosen[0] == chosen[1]  # whom the index chose has another number, for leaving
    assert same.sum() > 10
    np.testing.assert_array_equal(a.draw[same], b.draw[:20][same])
    assert len(first.ids) == len(second.ids) == 4


def test_control_arms_are_listed_by_name_or_floor_only(store: Any) -> None:
    from rmab.live.choosing import is_control

    p = begin(store, control=0.5, random_share=0.5, floor=6, seed=3)
    control = {one for one, yes in zip(IDS, is_control(tuple(IDS), 3, 0.5), strict=True) if yes}
    assert 4 < len(control) < 16
    turns = Counter[str]()
    for k in range(12):
        week = Rhythm.of("week").label(Rhythm.of("week").number(WEEK) + k)
        found = p.ask(week)
        report(p, week, k)
        turns.update(found.ids)
        by = {one: rule for one, rule in zip(found.arms, found.rule, strict=True) if rule}
        assert {rule for one, rule in by.items() if one in control} <= {"floor"}
    assert min(turns[one] for one in IDS) >= 2  # everybody within 6 weeks


def test_a_floor_that_cannot_be_met_is_refused_when_it_is_declared(store: Any) -> None:
    p = store.create("p", states=STATES, budget=2, reward={"high": 1}, floor=5)
    with pytest.raises(ModelError, match="20 arms cannot each have a turn every 5 periods with 2 places a week"):
        p.join(IDS)
    p.join(IDS[:10])
    with pytest.raises(ModelError, match="cannot each have a turn"):
        p.set_budget(1)
    p.set_budget({WEEK: 1})  # one thin week is a warning, not a refusal
    assert any("cannot be met" in one for one in p.ask(WEEK).notes)


def test_a_floor_looks_ahead_at_the_budgets_of_the_calendar(store: Any) -> None:
    p = store.create("p", states=STATES, budget=8, reward={"high": 1}, floor=6, every="number", random_share=0.2)
    p.join(IDS, state="low")
    p.set_budget(dict.fromkeys(range(3, 9), 1))
    last = dict.fromkeys(IDS, -1)
    for t in range(6):
        listed = p.ask(t).ids
        last |= dict.fromkeys(listed, t)
        p.tell(t, [{"arm": one, "state": "high" if one in listed else "low", "executed": one in listed} for one in IDS[:18]])
    assert min(last.values()) >= 0  # everybody had a turn in six periods, although the later ones are thin


@pytest.mark.parametrize("fallback", ["rotation", "random", "last", "nothing"])
def test_fallbacks_are_recorded_as_such(store: Any, fallback: str) -> None:
    p = begin(store, fallback=fallback)
    found = p.ask(WEEK)
    assert found.notes[0] == f"fallback ({fallback}): no report shows the effect of an action yet"
    assert len(found.ids) == (0 if fallback == "nothing" else 4)
    if fallback == "random":
        np.testing.assert_allclose(found.probability, 0.2)
        assert set(found.rule) == {"", "lot"}
    else:
        np.testing.assert_allclose(found.probability, 0.0 if fallback == "nothing" else 0.2)  # all have waited equally long
    with p.ledger() as ledger:
        assert next(iter(ledger.decisions.values())).body.status == "fallback"


def test_a_plan_that_fails_falls_back(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmab.errors import SolverError
    from rmab.live import engines

    p = begin(store, fallback="last")
    p.ask(WEEK)
    report(p, WEEK)
    planned = p.ask("2026-W48")
    assert planned.notes == ()
    report(p, "2026-W48", 1)

    def fails(*_: object) -> None:
        raise SolverError("not certified")

    monkeypatch.setattr(engines, "plan_period", fails)
    found = p.ask("2026-W49")
    assert found.notes == ("fallback (last): no plan: not certified",)
    with p.ledger() as ledger:
        records = [one for _, one in sorted(ledger.decisions.items())]
        table = records[1].body.table
        index = [table["ab"[n % 2]][s] for n, s in enumerate(records[2].state)]
    np.testing.assert_allclose(found.index, index)


def test_wrong_periods_are_refused(store: Any) -> None:
    p = begin(store)
    p.ask("2026-W47")
    assert p.ask("2026-W47").ids == p.ask("2026-W47").ids
    p.ask("2026-W49")  # one was forgotten
    with pytest.raises(ModelError, match="2026-W48 was never decided, but 2026-W49 was"):
        p.ask("2026-W48")
    with pytest.raises(ModelError, match=r"2062-W47 is \d+ periods after 2026-W49"):
        p.ask("2062-W47")
    with pytest.raises(ModelError, match="must be an ISO week such as 2026-W47"):
        p.ask("2026-12-01")
    report, events = [{"arm": IDS[0], "state": "low"}], len(p.events)
    with pytest.raises(ModelError, match=r"2062-W47 is \d+ periods after 2026-W49, the last known one"):
        p.tell("2062-W47", report)
    with pytest.raises(ModelError, match="2025-W47 is 52 periods before 2026-W47, the first known one"):
        p.correct("2025-W47", report, reason="late")
    with pytest.raises(ModelError, match="2062-W47 is"):
        p.missing("2062-W47")
    with pytest.raises(ModelError, match="2026-W48 was never decided, but 2026-W49 was"):
        p.override("2026-W48", add=IDS[:1], reason="late")
    assert len(p.events) == events
    assert p.ask("2027-W20", skip=True).period == "2027-W20"


def test_labels_are_text_that_a_database_gives_back(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    report, events = [{"arm": IDS[0], "state": "low"}], len(p.events)
    for key in (5, "", "\ud800", "k" * 501):
        with pytest.raises(ModelError, match="key must be text of 1 to 500 printable characters"):
            p.tell(WEEK, report, key=key)
    with pytest.raises(ModelError, match="client_at must be text"):
        p.tell(WEEK, report, client_at=12)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="half a character"):
        p.join(["new"], group="\udcff", period="2026-W48")
    assert p.verify() == len(p.events) == events


def test_one_id_is_not_taken_letter_by_letter(store: Any) -> None:
    p = begin(store)
    calls = (
        lambda: p.join("abc", period=WEEK),
        lambda: p.leave("abc", period=WEEK),
        lambda: p.override(WEEK, add="abc", reason="ill"),
        lambda: p.missing(WEEK, "abc"),
    )
    for call in calls:
        with pytest.raises(ModelError, match="must be a list of ids, got 'abc'"):
            call()


def test_an_empty_first_period(store: Any) -> None:
    p = store.create("p", states=STATES, budget=3, reward={"high": 1})
    with pytest.raises(ModelError, match="the programme has no arms yet"):
        p.ask(WEEK)
    assert len(p.events) == 1
    p.join(IDS, period="2026-W48", state="low")
    assert p.ask(WEEK).ids == ()
    with pytest.raises(ModelError, match="give the first period"):
        p.join(["more"])
    assert len(p.ask("2026-W48").ids) == 3
    with pytest.raises(ModelError, match="programme 'p' already exists, with other settings"):
        store.create("p", states=STATES, budget=4, reward={"high": 1})


def test_a_budget_that_is_lowered_below_the_named_arms(store: Any) -> None:
    p = begin(store)
    p.override(WEEK, add=IDS[:4], reason="known")
    p.set_budget({WEEK: 2})
    found = p.ask(WEEK)
    assert set(found.ids) == set(IDS[:2])
    assert "2 of 4 arms that people added exceed the budget" in found.notes


def test_a_warm_start_counts_at_most_its_trust(store: Any) -> None:
    counts = np.zeros((2, 2, 2, 2), dtype=int)
    counts[:, 0, 0] = [900, 100]
    counts[:, 0, 1] = [200, 800]
    counts[:, 1] = [[3, 7], [1, 9]]
    p = begin(store)
    p.warm_start(rmab.data.Statistics.from_counts(counts), trust=20, groups=["a", "b"])
    with p.ledger() as ledger:
        model = learn(ledger, Observer())
    np.testing.assert_allclose(model.visits, [[[20, 20], [10, 10]]] * 2)
    found = p.ask(WEEK)
    assert found.notes == ()
    assert {found.states[found.arms.index(one)] for one in found.ids} == {"low"}


def test_all_rows_that_are_wrong_are_named(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    before = p.head
    rows = [{"arm": "arm 00", "state": "middle"}, {"arm": "arm 01", "executed": "perhaps"}, {"arm": "", "state": "low"}]
    with pytest.raises(LogError) as caught:
        p.tell(WEEK, rows)
    assert [str(one) for one in caught.value.problems] == [
        "row 0: 'middle' is not a state; available: low, high",
        "row 1: 'perhaps' is neither yes nor no",
        "row 2: an id is missing",
    ]
    with pytest.raises(LogError, match=r"rows 0, 2: 'arm 00' is given more than once.*row 1: unknown arm 'who'"):
        p.tell(WEEK, {"arm": ["arm 00", "who", "arm 00"], "state": ["low", "low", "low"]})
    with pytest.raises(LogError, match="unknown column 'stat', did you mean 'state'"):
        p.tell(WEEK, [{"arm": "arm 00", "stat": "low"}])
    assert p.head == before


def test_an_undo_that_others_build_on_is_refused(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    with pytest.raises(ModelError, match="undo of event 2: "):
        p.undo(2, reason="they did not join")
    with pytest.raises(ModelError, match="change a list with override"):
        p.undo(3, reason="I do not like it")


def test_every_kind_of_period(store: Any) -> None:
    for every, zone, first, second in (
        ("day", "", "2026-03-28", "2026-03-29"),
        ("month", "", "2026-12", "2027-01"),
        ("number", "", "9", "10"),
        ("hour", "Europe/Berlin", "2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"),
    ):
        p = begin(store, every, every=every, zone=zone)
        p.ask(first)
        report(p, first)
        assert p.ask(second).period == second
        assert p.statistics.counts.sum() == 20
        with p.ledger() as ledger:
            assert sorted(ledger.decisions)[1] - sorted(ledger.decisions)[0] == 1


def test_a_frozen_view_cannot_be_written_to(store: Any) -> None:
    p = begin(store)
    then = p.as_of(2)
    p.ask(WEEK)
    with pytest.raises(ModelError, match="not decided"):
        then.decision(WEEK)
    with pytest.raises(ModelError, match="which is read-only"):
        then.set_budget(3)


def test_replay_names_a_decision_that_would_be_made_otherwise(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmab.live import deciding

    p = begin(store)
    for week in (WEEK, "2026-W48"):
        p.ask(week)
        report(p, week)
    assert p.replay() == rmab.live.Replay(6, 2, ())
    monkeypatch.setattr(deciding, "fingerprint", lambda: "another machine")
    assert p.replay().differences == ()  # the list is the same: that is what counts
    usual = deciding.choose
    monkeypatch.setattr(deciding, "choose", lambda *a, **k: usual(*a[:3], -a[3], **k))
    assert p.replay().differences == ("2026-W48",)


def test_all_that_is_wrong_with_rows_is_named_at_once(store: Any) -> None:
    """Values, ids, who takes part and conflicts with earlier reports: one error has them all, also those of one row."""
    p = begin(store)
    p.ask(WEEK)
    p.tell(WEEK, [{"arm": "arm 00", "state": "low", "reward": 1.5}])
    p.leave(["arm 05"], period=WEEK)
    before = p.head
    rows = {
        "arm": ["arm 00", "who", "", "arm 05", "arm 01", "arm 02", "arm 02"],
        "state": ["high", "middle", "low", "low", "low", "low", "low"],
        "reward": [1.5, "x", None, 1, "x", None, None],
        "sate": [None] * 7,
    }
    with pytest.raises(LogError) as caught:
        p.tell(WEEK, rows)
    assert [str(one) for one in caught.value.problems] == [
        "row 0: 'arm 00' was reported with state 'low', now 'high'; use correct",
        "row 1: 'middle' is not a state; available: low, high",
        "rows 1, 4: reward 'x': not a number",
        "row 1: unknown arm 'who'",
        "row 2: an id is missing",
        f"row 3: not in the programme in {WEEK}: 'arm 05'",
        "rows 5, 6: 'arm 02' is given more than once",
        "unknown column 'sate', did you mean 'state'? Available: arm, state, executed, reward",
    ]
    assert p.head == before


def test_the_key_of_an_undone_event_is_refused(store: Any) -> None:
    p = begin(store)
    p.ask(WEEK)
    event = p.tell(WEEK, [{"arm": "arm 00", "state": "low"}], key="form 17")
    p.undo(event, reason="wrong form")
    with pytest.raises(ModelError, match=f"'form 17' belongs to event {event}, which was undone; use another key") as caught:
        p.tell(WEEK, [{"arm": "arm 00", "state": "low"}], key="form 17")
    assert caught.value.code == "key-undone"
    assert p.tell(WEEK, [{"arm": "arm 00", "state": "low"}], key="form 17 again") == event + 2


def test_status_names_the_first_period_that_is_due(store: Any) -> None:
    p = begin(store)
    assert p.status().due == ""  # nothing says where periods begin
    p.join(["late"], period="2026-W49", state="low")
    assert p.status().due == "2026-W49"
    p.tell("2026-W50", [{"arm": "late", "state": "low", "executed": 0}])
    assert (p.status().due, p.status().arms) == ("2026-W51", 21)


@pytest.mark.parametrize("fallback", ["rotation", "random"])
def test_whom_people_keep_off_a_list_that_is_not_made_is_not_on_it(store: Any, fallback: str) -> None:
    """By index, at random, by floor or by the fallback: without a place, and without a chance of one."""
    p = begin(store, random_share=0.5, floor=6, fallback=fallback)
    for week in (WEEK, "2026-W48", "2026-W49"):
        p.override(week, remove=IDS[:14], reason="away")
        found = p.ask(week)
        assert not set(found.ids) & set(IDS[:14])
        assert len(found.ids) == 4
        with p.ledger() as ledger:
            assert not ledger.decisions[ledger.last_period].probability[:14].any()
        report(p, week)


def test_plans_account_for_the_reach_rate(store: Any) -> None:
    """Two groups respond alike, but one is hardly ever reached: places go to the other."""
    p = begin(store, engine="mean")
    counts = np.broadcast_to([[7000, 3000], [4000, 6000]], (2, 2, 2, 2))
    p.warm_start(rmab.data.Statistics.from_counts(np.array(counts)), groups=["a", "b"], trust=1e6)
    p.override(WEEK, add=IDS[:4], reason="to see whom calls reach")
    p.ask(WEEK)
    p.tell(WEEK, [{"arm": one, "executed": one in IDS[1:4:2]} for one in IDS[:4]])
    assert p.reach["a"] < p.reach["b"]
    found = p.ask("2026-W48")
    assert {int(one[4:]) % 2 for one in found.ids} == {1}
    with p.ledger() as ledger:
        model = learn(ledger, Observer())
    kernels, reward = model.decided
    q = np.array([p.reach["a"], p.reach["b"]])[:, np.newaxis]
    np.testing.assert_allclose(
        kernels[:, :, 1, 1], (1 - q) * model.rows.kernels[:, :, 0, 1] + q * model.rows.kernels[:, :, 1, 1]
    )
    np.testing.assert_allclose(reward, kernels[..., 1])


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_was_known_does_not_change_with_a_later_undo(store: Any, snapshot: bool) -> None:
    """An undo compensates from then on, and the past stays as it was known: from the events, and from a snapshot."""
    p = begin(store)
    p.ask(WEEK)
    event = p.tell(WEEK, [{"arm": one, "state": "low", "executed": "no"} for one in IDS[:2]])
    then = p.as_of(event).statistics
    assert then.counts.sum() == 2
    if snapshot:
        p.snapshot()
    p.undo(event, reason="wrong week")
    p.ask("2026-W48")
    assert p.as_of(event).statistics == then
    assert p.as_of(event + 1).statistics.counts.sum() == 0 == p.statistics.counts.sum()


def test_far_is_a_day_if_periods_are_short(store: Any) -> None:
    """After an outage of an hour, twelve periods, reports and lists are taken; after two days only with skip."""
    p = store.create("t", states=["low", "high"], every="5 minutes", budget=1, reward={"high": 1})
    p.join(["a", "b"], state="low")
    report = [{"arm": "a", "state": "low", "executed": "no"}]
    p.ask("2026-11-16T08:00")
    p.tell("2026-11-16T09:00", report)
    p.ask("2026-11-16T20:00")
    p.tell("2026-11-17T20:00", report)  # a day after the last list
    p.tell("2026-11-18T19:00", report)  # less than a day after the last report
    for call in (
        lambda **options: p.tell("2026-11-22T08:00", report, **options),
        lambda **options: p.correct("2026-11-24T08:00", report, reason="late", **options),
        lambda **options: p.missing("2026-11-26T08:00", **options),
        lambda **options: p.ask("2026-11-28T08:00", **options),
    ):
        with pytest.raises(
            ModelError, match=r"periods after .*, the last known one; use skip=True \(--skip\) if"
        ) as refused:
            call()
        assert refused.value.code == "far"
        call(skip=True)
