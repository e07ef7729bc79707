"""From a log to a list: read what a programme recorded, fit a model, plan, say why, and say how sure.

    log = rmab.data.read_log("log.csv", arm="id", period="week", state="state", action="called", groups=["age", "district"])
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    rmab.data.weekly_list(fitted, budget=100).save("next-week.csv")
    print(rmab.data.evaluate(fitted, budget=100))

docs/log.md is the guide.
"""

from rmab.common.extras import require

require("log", "rmab.data")

from rmab.data.checks import Check, checks_of
from rmab.data.effects import Effect, effects_of
from rmab.data.evaluation import Evaluation, evaluate
from rmab.data.example import Truth, example_log, example_truth
from rmab.data.fit import Fit, fit
from rmab.data.log import Log
from rmab.data.reading import read_log
from rmab.data.weekly import WeeklyList, weekly_list

__all__ = [
    "Check",
    "Effect",
    "Evaluation",
    "Fit",
    "Log",
    "Truth",
    "WeeklyList",
    "checks_of",
    "effects_of",
    "evaluate",
    "example_log",
    "example_truth",
    "fit",
    "read_log",
    "weekly_list",
]
