"""From a log to a decision: read what a programme recorded, fit a model, plan, say why, and say how sure.

    log = rmab.data.read_log("log.csv", arm="id", period="week", state="state", action="called", groups=["age", "district"])
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    rmab.data.decide(fitted, budget=100).save("next-week.csv")
    print(rmab.data.evaluate(fitted, budget=100))

docs/log.md is the guide.
"""

from rmab.common import require

require("log", "rmab.data")

from rmab.decisions.candidates import Candidates
from rmab.decisions.changes import Changes
from rmab.decisions.deciding import decide
from rmab.decisions.decision import Decision
from rmab.decisions.rules import Draft
from rmab.estimation.checks import run_checks
from rmab.estimation.effect_checks import Check
from rmab.estimation.effects import Effect, estimate_effects
from rmab.estimation.evaluation import evaluate
from rmab.estimation.fit import Fit
from rmab.estimation.fitting import fit, fit_statistics
from rmab.estimation.measure import measure
from rmab.estimation.measurement import Measurement
from rmab.estimation.power import Design, estimate_power
from rmab.estimation.promise import Evaluation
from rmab.estimation.statistics import Statistics
from rmab.logs.example import Truth, example_log, example_truth
from rmab.logs.lists import join_lists
from rmab.logs.log import Log
from rmab.logs.reading import read_log
from rmab.logs.words import Words

__all__ = [
    "Candidates",
    "Changes",
    "Check",
    "Decision",
    "Design",
    "Draft",
    "Effect",
    "Evaluation",
    "Fit",
    "Log",
    "Measurement",
    "Statistics",
    "Truth",
    "Words",
    "decide",
    "estimate_effects",
    "estimate_power",
    "evaluate",
    "example_log",
    "example_truth",
    "fit",
    "fit_statistics",
    "join_lists",
    "measure",
    "read_log",
    "run_checks",
]
