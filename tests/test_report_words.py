"""What the report says of small results made by hand."""

from report_data import cell, page, summary
from rmab.report.words import headline


def test_one_learner_and_a_yardstick_are_not_compared() -> None:
    pages = [
        page(
            cell("oracle", [9.0, 9.1], task=task, privileged="knows all"),
            cell("ucmd", [worst, worst + 0.1], task=task),
        )
        for task, worst in (("calm", 8.0), ("hard", 6.0))
    ]
    said = headline(summary(*pages))
    assert said[0] == "2 tasks with one learner without privileges each: there is nothing to compare."
    assert said[1].startswith("The regret of ucmd to O1 runs from 19.5% ")
    assert " on calm to 39.5% " in said[1]
    alone = [page(cell("oracle", [9.0, 9.1], task=task, privileged="knows all")) for task in ("calm", "hard")]
    assert headline(summary(*alone))[0] == "2 tasks with one learner each: there is nothing to compare."
