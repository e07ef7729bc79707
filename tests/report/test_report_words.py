"""What the report says of small results made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from report_data import cell, page, summary
from rmab.model.registry import FORESEES
from rmab.report.figures import _Slugs, draw
from rmab.report.headlines import headline
from rmab.report.page import render
from rmab.report.scalings import Scaling
from rmab.report.sentences import coverage, page_words, scaling_caution
from rmab.report.statistics import power
from rmab.report.summary import Summary


def scaling(learner: str, exponent: float, *, group: str = "family", rounds: int = 3) -> Scaling:
    """A loss that grows with this power, and a little luck of each round."""
    sizes = np.array([10.0, 20, 40])
    values = sizes[:, np.newaxis] ** exponent * (1 + np.outer([1, 0, -1], np.linspace(-0.01, 0.01, rounds)))
    return Scaling(group, learner, sizes, values, power(sizes, values))


def grown(*scalings: Scaling, privileged: tuple[str, ...] = ()) -> Summary:
    """A study of growth, of which `paper` is the paper's learner."""
    names = dict.fromkeys(one.learner for one in scalings)
    cells = [
        cell(name, [5.0, 5.1], privileged="knows all" if name in privileged else "", published=name == "paper")
        for name in names
    ]
    found = summary(page(*cells))
    return replace(found, scalings=scalings, study=found.study.model_copy(update={"kind": "growth"}))


def test_few_rounds_are_a_caution_for_exponents_too() -> None:
    few, many = grown(scaling("ucmd", 0.5)), grown(scaling("ucmd", 0.5, rounds=10))
    assert scaling_caution(few)[0].startswith("Only 3 rounds: ")
    assert scaling_caution(few)[0] in headline(few)
    assert f'<p class="warning">{scaling_caution(few)[0]}</p>' in render(few, [])
    assert scaling_caution(many) == []


def test_one_learner_and_a_yardstick_are_not_compared() -> None:
    pages = [
        page(cell("oracle", [9.0, 9.1], task=task, privileged="knows all"), cell("ucmd", [worst, worst + 0.1], task=task))
        for task, worst in (("calm", 8.0), ("hard", 6.0))
    ]
    said = headline(summary(*pages))
    assert said[0] == "2 tasks with one learner without privileges each: nothing to compare."
    assert said[1].startswith("Regret of ucmd relative to a random policy: from 19.5% ")
    assert " on calm to 39.5% " in said[1]
    foe = page(cell("ucmd", [5.0, 5.1], task="foe", adaptive=True))
    assert headline(summary(pages[0], foe))[1].startswith("Regret of ucmd relative to a random policy: 19.5% ")
    alone = [page(cell("oracle", [9.0, 9.1], task=task, privileged="knows all")) for task in ("calm", "hard")]
    assert headline(summary(*alone))[0] == "2 tasks with one learner each: nothing to compare."


def test_no_regret_is_as_much_not_more() -> None:
    equal = "one earned as much as O1, the most that a fixed policy can earn on average."
    assert page_words(page(cell("one", [10.0])))[0] == equal
    assert page_words(page(cell("one", [10.0 + 1e-12])))[0] == equal
    assert page_words(page(cell("one", [10.0 + 1e-12, 10.0 + 2e-12])))[0] == equal
    assert " is not significantly different from O1" in page_words(page(cell("one", [9.0, 11.0])))[0]
    assert "Negative regret is not an error" in page_words(page(cell("one", [10.1])))[0]


def test_negative_regret_over_tasks_is_explained_where_there_is_some() -> None:
    def said(total: float) -> str:
        pages = [page(cell("one", [total, total], task=task)) for task in ("calm", "hard")]
        return headline(summary(*pages))[1]

    assert said(12.0).endswith("; negative regret means that the learner earned more than O1.")
    assert "negative" not in said(10.0 + 1e-12)


@pytest.mark.slow
def test_figures_of_different_tasks_have_different_names() -> None:
    tasks = ["ρ = 1", "σ = 1", "a b", "A-b", "a-b-2", "!"]
    pages = [page(cell("one", [5.0], task=task)) for task in tasks]
    names = [name.removesuffix("-reward.png") for name, _ in draw(summary(*pages)) if name.endswith("-reward.png")]
    assert names == ["ρ-1", "σ-1", "a-b", "A-b-2", "a-b-2-2", "task"]
    assert _Slugs().new("温" * 99) == "温" * 50


def test_a_task_may_have_fewer_rounds_than_the_study() -> None:
    found = summary(page(cell("one", [5.0] * 8, task="full")), page(cell("one", [5.0], task="short")))
    full, short = found.study.tasks
    study = found.study.model_copy(update={"tasks": (full, short.model_copy(update={"rounds": 5}))})
    part = replace(found, study=study, pages=found.pages[:1], expected=13, finished=8)
    assert part.missing == [("short", "one", 5, 5)]
    assert "<td>5 of 5</td>" in render(part, [])
    assert "(2 tasks, 1 learner, up to 8 rounds)" in coverage(part)
    both = [task.model_copy(update={"rounds": 5}) for task in study.tasks]
    assert "(2 tasks, 1 learner, 5 rounds)" in coverage(replace(part, study=study.model_copy(update={"tasks": both})))


def test_the_headline_shows_the_largest_exponent_of_learners_without_privileges() -> None:
    def powers(*names: tuple[str, float]) -> list[Scaling]:
        return [scaling(name, found - k / 5, group=group) for name, found in names for k, group in enumerate("ab")]

    said = headline(grown(*powers(("oracle", 0.1), ("paper", 0.9), ("good", 0.5), ("bad", 1.0)), privileged=("oracle",)))
    assert said[0].startswith("a: the regret against O2 of paper grows as T^0.90 ")
    assert said[0].endswith("; its exponents range from 0.70 to 0.90 over all 2 families.")
    assert said[1].startswith("a: the regret against O2 of good grows as T^0.50 ")
    without = headline(grown(*powers(("oracle", 0.1), ("good", 0.5), ("bad", 1.0)), privileged=("oracle",)))
    assert [line.partition(" grows")[0].split()[-1] for line in without[:2]] == ["good", "bad"]
    assert " T^1.00 " in without[1]


def test_the_headline_says_which_families_have_no_exponent() -> None:
    negative = replace(scaling("one", 0.5, group="b"), fit=None)
    said = headline(grown(scaling("one", 0.5, group="a"), negative))[0]
    assert said.endswith("; its other families have no exponent with an interval.")
    several = headline(grown(scaling("one", 0.5, group="a"), scaling("one", 0.4, group="c"), negative))[0]
    assert several.endswith("; its exponents range from 0.40 to 0.50 over the 2 of 3 families with one.")


def test_learners_without_a_common_round_are_not_told_apart() -> None:
    early, late = cell("early", [8.0, 8.1, 8.2]), cell("late", [5.0, 5.1, 5.2], first=3)
    found = page(early, late)
    assert found.level(late)
    assert page_words(found)[0] == "early and late cannot be compared: they have no common round."
    other = replace(found, task="other")
    assert headline(summary(found, other))[0].endswith(" on 2 of 2 tasks (significantly more than all others on 0).")


def test_runs_of_different_versions_are_a_warning() -> None:
    found = summary(page(cell("one", [5.0, 5.1])))
    runs = [{"version": "1.0", "revision": "aaa"}, {"version": "1.0", "revision": "bbb"}]
    text = render(found, iter(runs))
    assert '<p class="warning"><strong>The runs used 2 revisions of rmab (aaa, bbb).</strong>' in text
    assert "2 revisions of rmab (aaa, bbb): differences between learners or tasks" in text
    both = render(found, [*runs, {"version": "1.1"}])
    assert "The runs used 2 versions of rmab (1.0, 1.1) and 3 revisions of rmab (aaa, bbb, unknown).</strong>" in both
    assert "The runs used" not in render(found, runs[:1] * 2)


def test_one_of_a_thing_is_not_many() -> None:
    one = summary(page(cell("paper", [8.0], published=True)))
    theory = (
        "After 1 episode the regret of paper against O1 is 40.0% of the theorem's bound, "
        "and stayed below it in the one round."
    )
    assert theory in headline(one)
    assert coverage(one) == "The one run is finished (1 task, 1 learner, 1 round)."
    assert "2 arms, budget 1, 3 steps, 1 episode." in render(one, [])
    above = page_words(page(cell("paper", [2.0], published=True)))
    assert any(line.endswith("and exceeded it in the one round.") for line in above)
    part = summary(page(cell("one", [5.0])), rounds=2)
    assert coverage(part).startswith("1 of 2 runs is finished (1 task, 1 learner, 2 rounds): ")
    assert "<strong>1 run is missing.</strong>" in render(part, [])
    assert "correction for 1 pair<" in render(summary(page(cell("one", [5.0, 6.0]), cell("two", [6.0, 6.5]))), [])


def test_brackets_are_announced_where_there_are_some() -> None:
    def said(*totals: float) -> str:
        pages = [page(cell("one", list(totals), task=task)) for task in ("calm", "hard")]
        return headline(summary(*pages))[1]

    assert "bracket" not in said(5.0)
    assert said(5.0, 6.0).partition(". 0% is O1, ")[0].endswith(" (95% intervals in brackets)")


def test_a_stronger_adversary_is_said_first() -> None:
    plain = page(cell("ucmd", [5.0, 5.1]), cell("random", [4.0, 4.1]))
    said = page_words(replace(plain, stronger=FORESEES))
    assert said[0] == f"The adversary of {plain.task} {FORESEES}."
    assert said[1:] == page_words(plain)


def test_the_headline_of_several_tasks_names_the_learner_that_matters() -> None:
    """Who is never clearly beaten leads before who is first more often, and is held against the paper's learner."""
    steady = [[8.0, 8.1, 8.2, 8.3], [8.0, 8.1, 8.2, 8.3], [8.0, 8.1, 8.2, 8.3]]
    moody = [[8.1, 8.15, 8.25, 8.2], [8.2, 8.0, 8.3, 8.2], [4.0, 4.1, 4.2, 4.3]]
    pages = [
        page(
            cell("moody", b, task=task),
            cell("steady", a, task=task),
            cell("paper", [5.0, 5.1, 5.2, 5.4], task=task, published=True),
            cell("oracle", [9.9] * 4, task=task, privileged="knows all"),
        )
        for task, a, b in zip("abc", steady, moody, strict=True)
    ]
    said = headline(summary(*pages))
    assert [one.rivals[0].learner for one in pages] == ["moody", "moody", "steady"]
    assert said[0] == (
        "steady earned the most of the learners without privileges on 1 of 3 tasks (significantly more than all others on "
        "1), and is not significantly different from the best on 2 more. Compared with paper, the paper's learner, it "
        "earned significantly more on 3 of 3 tasks and significantly less on 0."
    )
    assert said[1].startswith("Regret of steady relative to a random policy: from ")
