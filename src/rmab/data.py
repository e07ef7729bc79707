"""From a log to a list: read what a programme recorded, fit a model, plan, say why, and say how sure.

    log = rmab.data.read_log("log.csv", arm="id", period="week", state="state", action="called", groups=["age", "district"])
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    rmab.data.decide(fitted, budget=100).save("next-week.csv")
    print(rmab.data.evaluate(fitted, budget=100))

docs/log.md is the guide.
"""

from rmab.common.extras import require

require("log", "rmab.data")

from rmab.decisions.weekly import Decision, decide
from rmab.estimation.checks import Check, run_checks
from rmab.estimation.effects import Effect, estimate_effects
from rmab.estimation.evaluation import Evaluation, evaluate
from rmab.estimation.fit import Fit, fit
from rmab.logs.example import Truth, example_log, example_truth
from rmab.logs.log import Log
from rmab.logs.reading import read_log

__all__ = [
    "Check",
    "Effect",
    "Evaluation",
    "Fit",
    "Log",
    "Truth",
    "Decision",
    "run_checks",
    "estimate_effects",
    "evaluate",
    "example_log",
    "example_truth",
    "fit",
    "read_log",
    "decide",
]
