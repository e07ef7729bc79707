"""From a log to a decision: read what a programme recorded, fit a model, plan, say why, and say how sure.

    log = rmab.data.read_log("log.csv", arm="id", period="week", state="state", action="called", groups=["age", "district"])
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    rmab.data.decide(fitted, budget=100).save("next-week.csv")
    print(rmab.data.evaluate(fitted, budget=100))

docs/log.md is the guide.
"""

from rmab.common.extras import require

require("log", "rmab.data")

from rmab.decisions.candidates import Candidates as Candidates
from rmab.decisions.decision import Decision as Decision
from rmab.decisions.rules import Draft as Draft
from rmab.decisions.sources import decide as decide
from rmab.estimation.checks import Check as Check, run_checks as run_checks
from rmab.estimation.effects import Effect as Effect, estimate_effects as estimate_effects
from rmab.estimation.evaluation import Evaluation as Evaluation, evaluate as evaluate
from rmab.estimation.fit import Fit as Fit, fit as fit, fit_statistics as fit_statistics
from rmab.estimation.statistics import Statistics as Statistics
from rmab.logs.example import Truth as Truth, example_log as example_log, example_truth as example_truth
from rmab.logs.log import Log as Log
from rmab.logs.reading import read_log as read_log
from rmab.logs.words import Words as Words

__all__ = [name for name in dir() if not name.startswith("_") and name != "require"]
