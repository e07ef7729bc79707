"""What the log shows of the effect that a list rests on: the standing of its evaluation, as far as it is known.

The test of the effect is repeated for every list. Checks take longer: `rmab fit` makes them, and stores which failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmab.estimation.draws import find_design
from rmab.estimation.fit import Fit
from rmab.estimation.gate import check_effect
from rmab.logs.findings import list_some, quote

OPENING = "standing: "  # how the note begins


@dataclass(frozen=True)
class Standing:
    """The standing: 'problem', 'not shown', 'conditional', 'promised', or '' if it is not known; and a note."""

    name: str = ""
    note: str = ""

    @property
    def is_denied(self) -> bool:
        """Whether no benefit may be stated, so that prices in units of the reward mean nothing."""
        return self.name in ("problem", "not shown")


def find_standing(fit: Fit) -> Standing:
    """Return the standing of a model; not known without a log, nor without checks if the test shows an effect."""
    if fit.log is None:
        return Standing()
    an, model = fit.words.an_action, "the reasons and the index are the model's estimates"
    if fit.problems:
        failed = list_some([quote(one) for one in fit.problems], 3)
        return _name("problem", f"a check of the log failed ({failed}), so {model}, and may be wrong")
    gate = check_effect(fit)
    if not gate.is_open:
        why = f"(p = {gate.p:.2g})" if gate.is_known else "(too few records can be compared)"
        return _name("not shown", f"the log does not show that {an} helps {why}; {model}")
    if fit.problems is None:
        return Standing()
    if find_design(fit):
        return _name("promised", f"the log shows that {an} helps, and actions were drawn at random")
    return _name("conditional", f"the log shows that {an} helps, if no unrecorded reason decided who got one")


def _name(name: str, words: str) -> Standing:
    return Standing(name, f"{OPENING}{name}; {words}")
