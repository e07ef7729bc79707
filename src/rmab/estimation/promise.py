"""The result of an evaluation: a benefit is stated only if the records show one.

There are four answers. *Problem*: a check found that the number may be far off, so that comes first, with the range under
selection of stated strengths instead of the number. *Not shown*: the records do not show that an action helps, so no
benefit is stated. *Conditional*: the records show a benefit if no unrecorded reason decided who got an action, which no log
can show; every number comes after this condition, and with its range. *Promised*: actions are known to have been drawn at
random (declared or recorded), so the benefits stand without the condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.estimation.effect_checks import Check
from rmab.estimation.gate import Gate
from rmab.estimation.one_step import OneStep
from rmab.estimation.repeats import Repeats
from rmab.estimation.sensitivity import Range
from rmab.estimation.significance import PROBLEM
from rmab.estimation.unseen import Unseen
from rmab.logs.words import Words


@dataclass(frozen=True)
class Estimate:
    """A value and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of a plan, as `rmab.data.evaluate` returns it.

    Attributes
    ----------
    budget, horizon : int
        Actions a period, and periods.
    unit : str
        The unit: 'weeks engaged'.
    plan : Estimate
        Value of the plan over the horizon.
    baselines : dict of str to Estimate
        Values of 'nothing', 'rotation', 'random' and 'as logged'.
    benefits : dict of str to Estimate
        Benefit of the plan over each.
    used : dict of str to float
        Actions per period of each.
    knowledge : float
        Mean gain of a plan that knew the truth: the value of better knowledge.
    noise : float
        Standard deviation of single runs of the plan: chance that no estimate can remove.
    one_step : OneStep
        A check one step ahead, in arms that the plan was not made from, or why there can be none.
    checks : tuple of Check
        Checks of the records, as `rmab.data.run_checks` returns them.
    gate : Gate
        Whether the records show that an action helps.
    ranges : dict of str to tuple of Range
        Ranges of the benefits if something unrecorded influenced who was acted on, by its strength.
    replicates : int
        Number of draws.
    logged : float and int
        Actions per period of the log: mean and maximum.
    design : str
        How it is known that actions were drawn at random: 'declared', 'recorded', or '' if it is not.
    undrawn : str
        Why recorded chances do not show that actions were drawn at random; empty if they do, or there are none.
    repeats : Repeats, optional
        Actions of the plan on arms that had more of them than the log shows, and what it loses if those change nothing.
    unseen : Unseen, optional
        Rivals that often act in states in which the log has no action: no benefit over them is stated.
    """

    budget: int
    horizon: int
    unit: str
    word: str
    period_word: str
    arms: int
    plan: Estimate
    baselines: dict[str, Estimate]
    benefits: dict[str, Estimate]
    used: dict[str, float]
    knowledge: float
    noise: float
    one_step: OneStep
    replicates: int
    checks: tuple[Check, ...]
    gate: Gate
    ranges: dict[str, tuple[Range, ...]]
    logged: tuple[float, int] = (0.0, 0)
    design: str = ""
    undrawn: str = ""
    repeats: Repeats | None = None
    unseen: Unseen | None = None

    def describe(self, one: Estimate, *, signed: bool = False) -> str:
        """Return '1,573 (1,310 to 1,840)'."""
        return "{} ({} to {})".format(*self._three(one, "+" if signed else ""))

    @staticmethod
    def _three(one: Estimate, sign: str = "") -> list[str]:
        """Return the value and the ends with as many digits as the width of the interval deserves."""
        width = max(one.high - one.low, abs(one.value) / 1000)
        digits = int(np.clip(np.ceil(1 - np.log10(width)), 0, 9)) if width > 0 else 1
        small = 0 < width < 1e-6
        return [f"{x:{sign}.3g}" if small else f"{x:{sign},.{digits}f}" for x in (one.value, one.low, one.high)]

    @property
    def problems(self) -> tuple[Check, ...]:
        """The checks whose verdict is 'problem'."""
        return tuple(one for one in self.checks if one.verdict == PROBLEM)

    @property
    def standing(self) -> str:
        """The conclusion: 'problem', 'not shown', 'conditional' on no unrecorded reasons, or 'promised'."""
        if self.problems or not self.gate.is_open:
            return "problem" if self.problems else "not shown"
        return "promised" if self.design else "conditional"

    @property
    def conclusion(self) -> str:
        """The standing in a sentence."""
        meaning = {
            "problem": "a check of the log failed, so no benefit is stated",
            "not shown": f"the log does not show that {self._an} helps",
            "conditional": f"the log shows that {self._an} helps, if no unrecorded reason decided who got one",
            "promised": f"the log shows that {self._an} helps, and {self.word}s were drawn at random",
        }
        return f"Standing: {self.standing}; {meaning[self.standing]}."

    @property
    def states_benefits(self) -> bool:
        """Whether benefits are stated at all, with the condition or without."""
        return self.standing in ("promised", "conditional")

    def promises(self, rival: str) -> bool:
        """Return whether a benefit over a rival is promised: no condition, and more than chance."""
        return self.standing == "promised" and self.shows(rival)

    def leaves_open(self, rival: str) -> bool:
        """Return whether a rival acts where the log never did, so that the benefit over it is not known."""
        return self.unseen is not None and rival in self.unseen.shares

    def shows(self, rival: str) -> bool:
        """Return whether a benefit over a rival is stated, with the condition or without: it is more than chance."""
        several = (self.benefits[rival], self.benefits["nothing"])
        return self.states_benefits and not self.leaves_open(rival) and all(one.low > 0 for one in several)

    def sentences(self) -> list[str]:
        """Return what it shows, in plain sentences: what is most important first."""
        if self.standing == "problem":
            found = [f"Problem: {one.name}: {one.words}." for one in self.problems]
            found += [f"What to do: {one.advice}." for one in self.problems if one.advice]
            if not self.gate.is_known:
                return [*found, *self._untold]
            found.append(f"So these records do not show what the plan brings. {self._range('rotation')}")
            return [*found, self._range("nothing")]
        if self.standing == "not shown":
            if not self.gate.is_known:
                return self._untold
            most, over = self._three(self.benefits["nothing"])[2], f"over no {self.word}s"
            shown = f"The records do not show that {self._an} helps (p = {self.gate.p:.2g}, however often you evaluate): "
            shown += "no benefit is promised."
            if self.benefits["nothing"].high <= 0:
                return [shown, f"By the model, {self.word}s bring no {self.unit} {over}, with 95% confidence."]
            shows = f"with 95% confidence, if {self.word}s show what they do by the next {self.period_word}"
            return [shown, f"If there is one, it is at most {most} {self.unit} {over}, {shows}."]
        found = [self._state(name) for name in ("rotation", "nothing", "random", "as logged")]
        more = f"{self.knowledge:,.0f}" if self.knowledge >= 10 else f"{self.knowledge:.2g}"
        known = "If the probabilities in each group were known exactly"
        found.append(f"{known}, a plan would bring {more} more {self.unit} than this one, on average.")
        return [*found, *self.caveats, self.one_step.words]

    @property
    def caveats(self) -> list[str]:
        """What stated benefits take for granted: that repeated actions work, no unrecorded reasons, and the rest."""
        found = []
        if self.undrawn and not self.design:
            found.append(
                f"The log has chances, but they do not show that {self.word}s were drawn at random: {self.undrawn}."
            )
        if self.repeats is not None and self.repeats.is_stated:
            found.append(self._again(self.repeats))
        needed = (
            f"From k = {self.gate.e_value:.1f} on, an unrecorded reason could explain the whole average effect of {self._an}"
        )
        least = f"; from k = {self.gate.e_low:.1f} on, the effect is no longer significant"
        needed += f"{least if self.gate.e_low > 1 else ''}."
        known = f"That {self.word}s were drawn at random is {self.design}. " if self.design else ""
        same = f"the {self.period_word}s to come are like those of the log"
        found.append(f"All of this assumes that {self._an} changes only the one who gets it, and that {same}.")
        return [*found, f"{known}{'' if self.standing == 'conditional' else self._range('nothing') + ' '}{needed}"]

    def describe_log(self) -> str:
        """Return how many actions 'as logged' assumes, and how many there were."""
        here, mean, most = self.used["as logged"], *self.logged
        now = f"{here:,.0f} {self.word}s a {self.period_word}; the log has {mean:,.0f} on average, {most:,} at most"
        return f"its rates by group and state for the {self.arms:,} arms of today: {now}"

    def _state(self, rival: str) -> str:
        """Return the benefit over a rival with its condition and range, or why it is not stated."""
        if self.unseen is not None and self.leaves_open(rival):
            return self.unseen.describe(rival)
        one, spread = self._compare(rival), f" {self._range(rival)}" if rival in self.ranges else ""
        return f"{self._condition}: {one[0].lower()}{one[1:]}{spread}" if self.standing == "conditional" else one

    def _compare(self, rival: str) -> str:
        """Return the benefit over a rival in a sentence."""
        logged = f"continuing as in the log ({self.describe_log()})"
        than, to = {
            "nothing": (f"than without any {self.word}", f"from making no {self.word}"),
            "rotation": ("than by rotation", "from rotation"),
            "random": ("than by drawing names at random", "from drawing names at random"),
            "as logged": (f"than by {logged}", f"from {logged}"),
        }[rival]
        one = self.benefits[rival]
        value, low, high = (x.lstrip("-") for x in self._three(one))
        if self.shows(rival):
            return f"{value} more {self.unit} ({low} to {high}) {than}."
        if one.high < 0:
            return f"{value} fewer {self.unit} ({high} to {low} fewer) {than}."
        return f"No significant difference in {self.unit} {to}: {self.describe(one, signed=True)}."

    def _range(self, rival: str) -> str:
        """Return the range of a benefit under selection in a sentence."""
        over = {"rotation": "rotation", "nothing": f"no {self.word}s"}[rival]
        several = [
            " and ".join(self._three(Estimate(one.low, one.low, one.high))[1:]) + f" for k = {one.strength:g}"
            for one in self.ranges[rival]
        ]
        return (
            f"Suppose that an unrecorded reason was up to k times as frequent among those who got {self._an} as among the "
            f"others, and made a good outcome up to k times as likely. Then the estimated gain over {over}, in {self.unit}, "
            f"would lie between {several[0]}, {several[1]}, and {several[2]} (these include the "
            "95% interval)."
        )

    def _again(self, one: Repeats) -> str:
        """Return what the plan does that the log hardly shows, in a sentence."""
        names = {"rotation": "rotation", "nothing": f"no {self.word}s"}
        less = {name: (self.benefits[name].value - lost, self.benefits[name].high) for name, lost in one.losses.items()}
        left = {names[name]: self._three(Estimate(value, value, high), "+")[0] for name, (value, high) in less.items()}
        if self.leaves_open("rotation"):
            del left["rotation"]
        return one.describe(Words(self.word, self.period_word, self.unit), self.horizon, left)

    @property
    def _untold(self) -> list[str]:
        """Return the sentences if nothing could be compared: neither a benefit nor a bound."""
        beside = f"of the same group and state in the same {self.period_word}"
        effect = f"The effect of {self._an} is unknown: hardly any has a record without one to compare with, {beside}."
        return [effect, "No benefit is promised, and none is ruled out."]

    @property
    def _condition(self) -> str:
        return f"If no unrecorded reason decided who got {self._an}"

    @property
    def _an(self) -> str:
        return Words(self.word, self.period_word).an_action

    def fields(self) -> dict[str, Any]:
        """Return everything as plain numbers and text by name.

        `benefits` is None unless they are promised, `conditional_benefits` unless they are conditional, and `ranges` where
        nothing could be compared.
        """
        own = {"budget": self.budget, "horizon": self.horizon, "unit": self.unit, "replicates": self.replicates}
        benefits = {name: vars(one) for name, one in self.benefits.items()}
        stated = {name: None if self.leaves_open(name) else one for name, one in benefits.items()}
        ranges = {name: [vars(one) for one in several] for name, several in self.ranges.items()}
        return {
            **own,
            "standing": self.standing,
            "sentences": self.sentences(),
            "condition": f"{self._condition}." if self.standing == "conditional" else None,
            "benefits": stated if self.standing == "promised" else None,
            "conditional_benefits": stated if self.standing == "conditional" else None,
            "design": self.design or None,
            "undrawn": self.undrawn or None,
            "model": {
                "plan": vars(self.plan),
                "baselines": {name: vars(one) for name, one in self.baselines.items()},
                "benefits": benefits,
            },
            "actions_per_period": self.used,
            "actions_in_the_log": {"mean": self.logged[0], "most": self.logged[1]},
            "knowledge": self.knowledge,
            "noise": self.noise,
            "gate": {**vars(self.gate), "is_open": self.gate.is_open, "is_known": self.gate.is_known},
            "ranges": ranges if self.gate.is_known else None,
            "unseen": None if self.unseen is None else vars(self.unseen),
            "repeats": None if self.repeats is None else vars(self.repeats),
            "checks": [vars(one) for one in self.checks],
            "one_step": vars(self.one_step),
        }

    def __repr__(self) -> str:
        if not self.states_benefits:
            return f"Evaluation({self.standing}: {self.sentences()[0]})"
        rival = "nothing" if self.leaves_open("rotation") else "rotation"
        over = self.describe(self.benefits[rival], signed=True)
        return f"Evaluation({self.standing}: {over} {self.unit} over {rival}, {self.replicates} replicates)"
