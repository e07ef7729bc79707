"""What makes the lists: plans, drawn plans and learners; another one beside them; lists ahead; programmes in episodes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.decisions.candidates import Candidates
from rmab.decisions.filling import fill_places
from rmab.decisions.randomness import Randomness
from rmab.decisions.rules import Rules
from rmab.errors import ModelError
from rmab.live.cohorts import _lessons, _view, lesson_of
from rmab.live.engines import is_order_free
from rmab.live.events import unpack_numbers
from rmab.live.observing import Observer
from rmab.live.planning import learn, sample_model

IDS = [f"arm {k:02d}" for k in range(12)]
STATES = ["low", "high"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    with rmab.live.open(f"sqlite:///{tmp_path}/x.db") as found:
        yield found


def begin(store: Any, name: str = "p", **options: Any) -> Any:
    given = {"budget": 3, "reward": {"high": 1}, "every": "number", "lookahead": 4, **options}
    p = store.create(name, states=STATES, **given)
    p.join(IDS, group=["a", "b"] * 6, state="low")
    return p


def play(p: Any, periods: range, *, without: int = 0) -> None:
    """Ask and report; the last arms do not report."""
    for t in periods:
        on = set(p.ask(t).ids)
        rng = np.random.default_rng(t)
        up = {one: rng.random() < (0.9 if one in on and one in IDS[::2] else 0.3) for one in p.decision(t).arms}
        rows = [{"arm": one, "state": STATES[yes], "executed": one in on} for one, yes in up.items()]
        p.tell(t, rows[: len(rows) - without])


def test_a_drawn_model_is_spread_like_the_posterior(store: Any) -> None:
    """Draws have the mean of the estimate, and spread less the more was seen."""
    p = begin(store)
    spread = []
    for size in (10, 1000):
        counts = np.array([[[[7, 3], [4, 6]], [[5, 5], [2, 8]]]]) * size // 10
        q = begin(store, f"size {size}")
        q.warm_start(rmab.data.Statistics.from_counts(np.repeat(counts, 2, axis=0)), groups=["a", "b"], trust=1e6)
        with q.ledger() as ledger:
            model = learn(ledger, Observer())
        rng = np.random.default_rng(0)
        drawn = np.array([sample_model(model, rng).rows.kernels for _ in range(300)])
        np.testing.assert_allclose(drawn.mean(axis=0), model.rows.kernels, atol=0.1)
        np.testing.assert_allclose(drawn.sum(axis=-1), 1.0)
        spread.append(drawn.std(axis=0).mean())
    assert spread[1] < spread[0] / 3
    assert p.ask(0).notes[0].startswith("fallback")


def test_what_is_drawn_can_be_drawn_again_and_another_seed_draws_otherwise(store: Any) -> None:
    lists = []
    for seed in (1, 1, 2, 3, 4):
        p = begin(store, f"{len(lists)}", seed=seed)
        play(p, range(6))
        assert p.replay().differences == ()
        lists.append([p.decision(t).index.tolist() for t in range(1, 6)])
    assert lists[0] == lists[1]
    assert lists[0] not in lists[2:]


def test_a_group_that_is_not_known_is_tried(store: Any) -> None:
    """The estimate prefers the group that it knows for ever; draws find the better one."""
    counts = np.zeros((2, 2, 2, 2), dtype=int)
    counts[:, :, 0] = [70, 30]
    counts[0, :, 1] = [60, 40]  # known to do a little
    counts[1, :, 1] = [2, 1]  # hardly known
    shares = {}
    for engine in ("mean", "sampled"):
        got = 0
        for seed in range(30):
            p = begin(store, f"{engine} {seed}", engine=engine, seed=seed)
            p.warm_start(rmab.data.Statistics.from_counts(counts), groups=["a", "b"], trust=1e6)
            got += sum(one in IDS[1::2] for one in p.ask(0).ids)
        shares[engine] = got / 90
    assert shares["mean"] in (0.0, 1.0)  # all or nothing, whatever the seed
    assert 0.15 < shares["sampled"] < 0.85


@pytest.mark.parametrize("engine", ["thompson", "rmab-ucrl", {"name": "thompson", "prior": 3.0}])
def test_a_learner_with_order_free_counts_is_an_engine(store: Any, engine: Any) -> None:
    one, other = (begin(store, name, engine=engine) for name in ("one", "other"))
    for t in range(4):
        on = set(one.ask(t).ids)
        assert set(other.ask(t).ids) == on
        rows = [{"arm": arm, "state": STATES[(k * t) % 2], "executed": arm in on} for k, arm in enumerate(IDS)]
        one.tell(t, rows)
        for row in reversed(rows):
            other.tell(t, [row])
    assert one.replay().differences == ()
    again = begin(store, "by object", engine=rmab.make_learner("thompson"))
    assert again.ask(0).ids


def test_what_is_not_order_free_needs_episodes(store: Any) -> None:
    assert not is_order_free(rmab.make_learner("ucmd"))
    assert not is_order_free(rmab.make_learner("rmab-ucrl", version="window"))
    with pytest.raises(ModelError, match="ucmd depends on the order of reports"):
        begin(store, engine="ucmd")
    with pytest.raises(ModelError, match="which no programme has"):
        begin(store, engine="whittle")
    with pytest.raises(ModelError, match="a programme in episodes needs rewards of states"):
        begin(store, horizon=3, reward=None)
    assert store.programmes == []


@pytest.mark.parametrize("engine", ["ucmd", "ucmd-armab", "thompson", "q-whittle", "uob-reps"])
def test_a_programme_in_episodes_is_rebuilt_from_its_journal(store: Any, engine: str) -> None:
    p = begin(store, engine=engine, horizon=3, episodes=10, random_share=0.4)
    play(p, range(8))
    p.snapshot()
    play(p, range(8, 10))
    with p.ledger() as ledger:
        assert {record.body.status for record in ledger.decisions.values()} == {"plan"}
    fresh = rmab.live.open(str(store.engine.url)).programme("p")
    assert fresh.ask(10).ids == p.ask(10).ids
    assert p.replay().differences == ()
    assert p.shadow(engine).agreement.min() == 1.0
    assert engine == "q-whittle" or p.shadow("random").agreement.mean() < 1.0  # it begins at random, too


def test_the_learner_learns_what_simulation_would_have_taught_it(store: Any) -> None:
    """Without missing reports the state is the one of `learn` called by hand, episode after episode."""
    learner = rmab.make_learner("ucmd")
    p = begin(store, engine="ucmd", horizon=3, episodes=10)
    play(p, range(6))
    with p.ledger() as ledger:
        lessons = [lesson_of(ledger, episode) for episode in range(2)]
        states, actions = lessons[0]
        assert states.shape == (4, 12)
        assert actions.sum(axis=1).tolist() == [3, 3, 3]
        order = [*range(0, 12, 2), *range(1, 12, 2)]  # by group, then in order of joining
        for t in range(3):
            listed = [n in ledger.decisions[t].rules for n in order]
            np.testing.assert_array_equal(actions[t], listed)
            np.testing.assert_array_equal(states[t + 1], ledger.cells[t].states(12)[order])
    view = rmab.View(12, 2, 3, 10, 3, np.zeros(12, dtype=int), 0.0, 1.0, "bandit", False, True,
                     np.repeat([0, 1], 6), None, None, ("low", "high"))  # fmt: skip
    state = learner.begin(view, 0)
    for episode, (where, active) in enumerate(lessons):
        state = learner.learn(state, rmab.Feedback.of_steps(view, episode, where, active, where[:-1].astype(float)))
    policy = learner.plan(state, start=lessons[1][0][-1]).policy
    index = np.asarray(policy.table)[:, 0][np.arange(12), lessons[1][0][-1]]
    np.testing.assert_allclose(p.ask(6).index[order], index)


@pytest.mark.parametrize("engine", ["thompson", "ucmd"])
def test_late_reports_count_where_the_learner_is_order_free(store: Any, engine: str) -> None:
    p = begin(store, engine=engine, horizon=2, episodes=10)
    play(p, range(2), without=4)
    before = p.ask(2).ids  # the first episode is closed
    for t in (0, 1):
        on = p.decision(t).ids
        p.tell(t, [{"arm": one, "state": "high", "executed": one in on} for one in IDS[8:]])
    assert p.ask(2).ids == before  # a decision is a fact
    p.tell(2, [{"arm": one, "state": "low", "executed": one in before} for one in IDS])
    assert p.ask(3).ids
    assert p.replay().differences == ()
    with p.ledger() as ledger:
        learner = rmab.make_learner(engine)
        used, _ = _lessons(ledger, learner, _view(ledger, 3, learner), 1)[0]
        then = unpack_numbers(ledger.decisions[2].body.lesson)[: used.size].reshape(used.shape)
        now, _ = lesson_of(ledger, 0)
    assert (then != now).any()
    np.testing.assert_array_equal(used, now if engine == "thompson" else then)


def test_a_cohort_of_other_people(store: Any) -> None:
    p = begin(store, engine="ucmd", horizon=2, episodes=5)
    play(p, range(2))
    p.leave(IDS, period=2)
    new = [f"new {k:02d}" for k in range(12)]
    p.join(new, group=["b", "a"] * 6, state="high", period=2)
    assert set(p.ask(2).ids) <= set(new)
    p.leave(new[:1], period=4)
    p.tell(2, [{"arm": one, "state": "low", "executed": "no"} for one in new])
    p.ask(3)
    assert "other groups than the first" in p.ask(4).notes[0]  # and the fallback decides


def test_lists_ahead_are_replaced_and_the_one_that_was_used_is_recorded(store: Any) -> None:
    p = begin(store, random_share=0.3)
    with pytest.raises(ModelError, match="decide the first one with ask"):
        p.ask_ahead(2)
    play(p, range(3))
    first = p.ask_ahead(3)
    assert [one.decision.period for one in first] == ["3", "4", "5"]
    assert p.ask_ahead(3) == first or [one.event for one in p.ask_ahead(3)] == [one.event for one in first]
    assert len({one.decision.ids for one in first}) > 1  # the later ones know who had a turn
    p.correct(2, [{"arm": one, "state": "high"} for one in first[0].decision.ids], reason="late")
    second = p.ask_ahead(3)
    assert second[0].event > first[-1].event
    with pytest.raises(ModelError, match=r"event \d+ issued no list for 3"):
        p.ask(3, issued=second[1].event)
    p.leave([first[0].decision.ids[0]], period=3)
    p.join(["late"], group="a", state="low", period=3)
    found = p.ask(3, issued=first[0].event)  # nobody had heard of the newer one
    assert found.ids == first[0].decision.ids[1:]
    assert found.notes == (f"this list was issued ahead, in event {first[0].event}",)
    assert found.probability[found.arms.index("late")] == 0
    with pytest.raises(ModelError, match="3 is already decided, by another list"):
        p.ask(3, issued=second[0].event)
    with pytest.raises(ModelError, match="issued no list"):
        p.ask(4, issued=12345)
    assert p.replay().differences == ()
    assert rmab.live.open(str(store.engine.url)).programme("p").ask(3).notes == found.notes
    assert p.as_of(first[-1].event).statistics.counts.sum() > 0


def test_a_shadow_changes_nothing(store: Any) -> None:
    p = begin(store)
    play(p, range(5))
    head = p.head
    same, other = p.shadow("sampled"), p.shadow("mean")
    assert same.agreement.tolist() == [1.0] * 5
    assert same.listed == tuple(tuple(one for one in p.decision(t).arms if one in p.decision(t).ids) for t in range(5))
    assert other.periods == tuple("01234")
    assert (other.agreement <= 1).all()
    assert p.head == head
    p.undo(4, reason="it was wrong")
    assert len(p.shadow("mean").periods) == 5
    with pytest.raises(ModelError, match="depends on the order of reports"):
        p.shadow("ucmd")


def test_the_report_is_a_page(store: Any, tmp_path: Path) -> None:
    p = begin(store, "a <b> & c", random_share=0.4)
    empty = p.report(tmp_path / "empty.html").read_text()
    assert "Nothing can be shown yet" in empty
    play(p, range(5), without=2)
    page = p.report(tmp_path / "r.html").read_text()
    assert "<title>a &lt;b&gt; &amp; c</title>" in page
    assert "<polygon" in page
    assert f"shown so far {p.benefit().shown[-1]:,.1f}" in page
    assert page.count("<script>") == 1
    with pytest.raises(rmab.errors.FileError):
        p.report(tmp_path / "no" / "folder" / "r.html")


def test_one_draw_leaves_no_place_empty(store: Any) -> None:
    """With few reports many draws expect harm of a call. Places stay empty only where the estimate does so, too."""
    counts = np.zeros((2, 2, 2, 2), dtype=int)
    counts[:, :, 0], counts[:, :, 1] = [6, 4], [5, 5]  # a call helps a little, as far as ten records can say
    known = rmab.data.Statistics.from_counts(counts)
    for seed in range(8):
        p = begin(store, f"p{seed}", seed=seed)
        p.warm_start(known, groups=["a", "b"])
        assert len(p.ask(0).ids) == 3, seed
    harm = begin(store, "harm", seed=0)
    harm.warm_start(rmab.data.Statistics.from_counts(100 * counts[:, :, ::-1]), trust=900, groups=["a", "b"])
    found = harm.ask(0)
    assert len(found.ids) == 0
    assert "3 of 3 places stay empty: the model expects no benefit from them" in found.notes


def vague(store: Any, name: str, **options: Any) -> Any:
    """Return a programme of 200 arms in four groups, of which hardly anything is known."""
    p = store.create(name, states=STATES, budget=40, reward={"high": 1}, every="number", lookahead=4, **options)
    p.join([f"arm {k:03d}" for k in range(200)], group=list("abcd") * 50, state="low")
    counts = np.broadcast_to([[70, 30], [3, 2]], (4, 2, 2, 2))
    p.warm_start(rmab.data.Statistics.from_counts(np.array(counts)), groups=list("abcd"), trust=1e6)
    return p


def test_several_draws_share_a_list(store: Any) -> None:
    """Arms of one group and state have one of eight indices, by a hash of their own; who joins changes nobody's."""
    p, other = vague(store, "p", seed=1), vague(store, "other", seed=1)
    other.join(["new"], group="a", state="low")
    index = {one: found.index[: len(found.arms)] for one, found in (("p", p.ask(0)), ("other", other.ask(0)))}
    for group in range(4):
        several, sizes = np.unique(index["p"][group::4], return_counts=True)
        assert several.size == 8
        assert sizes.max() <= 17  # of 50
    same = [np.unique(one[:200:4], return_inverse=True)[1].tolist() for one in index.values()]
    parts = [{tuple(np.flatnonzero(np.array(one) == k)) for k in range(8)} for one in same]
    assert parts[0] == parts[1]
    assert p.replay().differences == ()


def test_several_draws_swing_less_than_one(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    swing = {}
    for draws in (1, 8):
        monkeypatch.setattr("rmab.live.engines.DRAWS", draws)
        shares = []
        for seed in range(12):
            ids = vague(store, f"{draws} {seed}", seed=seed).ask(0).ids
            shares.append(np.bincount([int(one[4:]) % 4 for one in ids], minlength=4) / 40)
        swing[draws] = np.abs(np.diff(shares, axis=0)).sum(axis=1).mean() / 2
    assert swing[8] < 0.6 * swing[1]


def test_the_probabilities_of_a_drawn_list_are_true(store: Any) -> None:
    """With the indices as they are, places are drawn again and again: as often as the stored probabilities say."""
    p = vague(store, "p", random_share=0.3, seed=4)
    p.override(0, add=["arm 007"], remove=["arm 003"], reason="known")
    found = p.ask(0)
    forced, aside = (np.isin(found.arms, [one]) for one in ("arm 007", "arm 003"))
    rules = Rules(40, forced, aside, random=12)
    candidates = Candidates.of(found.index, ids=found.arms, waited=np.ones(200), least=0.0)
    listed = np.mean([fill_places(candidates, rules, Randomness(k, "0")).rule != "" for k in range(800)], axis=0)
    with p.ledger() as ledger:
        stored = ledger.decisions[0].probability
    assert stored.sum() == pytest.approx(40)
    np.testing.assert_allclose(listed, stored, atol=5 * np.sqrt(0.25 / 800))
    assert np.unique(stored.round(9)).size > 3


def test_a_learner_makes_lists_or_is_refused_when_the_programme_is_created(tmp_path: Path) -> None:
    engines, codes = [], set()
    with rmab.live.open(f"sqlite:///{tmp_path}/all.db") as store:
        for name in rmab.list_learners():
            options: Any = {"states": ["low", "high"], "every": "number", "budget": 1, "reward": {"high": 1}, "engine": name}
            try:
                p = store.create(name, **options)
            except ModelError as error:
                codes.add(error.code)
                continue
            engines.append(name)
            p.join(["a", "b", "c"], state="low")
            assert len(p.ask(1).ids) == 1
    assert codes == {"not-order-free", "privileged", "no-index", "full-feedback"}
    assert sorted(engines) == ["r2mab-ucb", "rmab-ucrl", "thompson"]  # as docs/live.md says


@pytest.mark.parametrize(("engine", "code"), [("oracle", "privileged"), ("uc-o-reps", "full-feedback")])
def test_engines_in_episodes_know_what_a_programme_can_know(store: Any, engine: str, code: str) -> None:
    with pytest.raises(rmab.errors.ModelError, match=f"engine: {engine} .* which no programme") as caught:
        store.create("p", states=["low", "high"], every="number", budget=1, reward={"high": 1}, horizon=3, engine=engine)
    assert caught.value.code == code
