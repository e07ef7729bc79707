"""The result of a measurement: the benefit of lists, with intervals, for whom, and under which assumptions."""

from __future__ import annotations

from dataclasses import dataclass

from rmab.common import BoolArray, FloatArray, ReadOnly
from rmab.errors import many
from rmab.logs.words import Words

LEAST = 10  # least number of outcomes on either side


@dataclass(frozen=True, eq=False)
class Gain(ReadOnly):
    """Benefit of places, after each of T periods: total, low and high (T,), and the expected number of places (T,)."""

    total: FloatArray
    low: FloatArray
    high: FloatArray
    places: FloatArray

    def describe(self, unit: str) -> str:
        """Return the last total with its interval, and what it is for one place."""
        last = [float(one[-1]) for one in (self.total, self.low, self.high)]
        each = [one / max(float(self.places[-1]), 1e-12) for one in last]
        return f"{_form(last)} {unit}, {_form(each, 3)} for each of {self.places[-1]:,.0f} places"


@dataclass(frozen=True, eq=False)
class Measurement(ReadOnly):
    """The benefit of lists, as `rmab.data.measure` returns it.

    Attributes
    ----------
    periods : tuple of str
        The T periods that could be measured.
    all, chosen, others : Gain
        Benefit of all places; of arms with a chance of at least one half (most were chosen by the index), and of the others
        (drawn from the rest, or tied for the last places). No results if there are `problems`.
    listed, left_out : int
        Recorded outcomes of arms that the draw gave a place, and of those it did not.
    enough : (T,) bool array
        Whether there were enough outcomes, up to each period.
    certain, excluded, unknown, unrecorded : int
        Decisions that cannot be measured: of chance 1, of chance 0, without a chance, and without an outcome.
    pending : int
        Randomised decisions whose outcome is outstanding.
    problems : tuple of str
        Reasons not to use the result; empty if there are none.
    unit : str
        The unit: 'weeks engaged', or 'reward'.
    words : Words
        Names of an action and a period.
    effective : float
        As how many outcomes of equal weight those of `left_out` count: an arm with a small chance of a place counts little.
    """

    periods: tuple[str, ...]
    all: Gain
    chosen: Gain
    others: Gain
    listed: int
    left_out: int
    enough: BoolArray
    certain: int
    excluded: int
    unknown: int
    unrecorded: int
    pending: int
    problems: tuple[str, ...]
    unit: str
    words: Words
    effective: float = 0.0

    @property
    def verdict(self) -> str:
        """'more', 'less', or 'unknown'."""
        sure = not self.problems and bool(self.periods) and bool(self.enough[-1])
        if sure and self.all.low[-1] > 0:
            return "more"
        return "less" if sure and self.all.high[-1] < 0 else "unknown"

    def sentences(self) -> list[str]:
        """Return the result in words: the benefit, for whom, the interval, and the assumptions."""
        found = [f"problem: {one}" for one in self.problems]
        if self.problems:
            found.append("The benefit of the lists is unknown: with this problem, no estimate or interval is valid")
        elif not self.periods:
            found.append(f"The benefit of the lists is unknown: {self._why()}")
        elif not self.enough[-1]:
            small = "an arm with a small chance of a place counts little"
            sides = f"{self.listed:,} of arms with a place, and {self.left_out:,} of arms in the draw without one, which "
            sides += f"count as {int(self.effective):,} ({small}); {LEAST} of each are needed"
            found.append(f"The benefit of the lists is not known yet, because there are too few outcomes: {sides}")
        else:
            found += self._numbers()
        return [*found, *self._limits()]

    def _why(self) -> str:
        if self.unrecorded:
            return f"no outcome is recorded of the {self.unrecorded:,} arms that took part in a draw"
        if self.pending:
            return (
                f"the outcomes of the last draw will be known in the {self.words.period} after it, for {self.pending:,} "
                f"arms with a record of the draw's {self.words.period}"
            )
        if self.certain + self.excluded:
            return "nobody was drawn: every chance is 0 or 1; make lists with random_share (--random-share)"
        return "no chance is recorded; keep the column 'chance' of the lists, and name it (--chance)"

    def _numbers(self) -> list[str]:
        heads = {"more": "The lists helped", "less": "The lists did harm"}
        head = heads.get(self.verdict, "It is not known yet whether the lists helped")
        found = [f"{head}: {self.all.describe(self.unit)} ({many(len(self.periods), self.words.period)})"]
        parts = {"at least one half": self.chosen, "less than one half (drawn, or tied for the last places)": self.others}
        for name, one in parts.items():
            if one.places[-1] > 0:
                found.append(f"Of them, where the chance of a place was {name}: {one.describe(self.unit)}")
        return found

    def _limits(self) -> list[str]:
        found = []
        if self.periods and not self.problems:
            found.append(
                f"Measured in {self.listed:,} outcomes of arms with a place and {self.left_out:,} of arms in the draw "
                f"without one, one {self.words.period} later; effects after that are not included"
            )
            found.append(
                "This assumes that recording does not depend on the draw, and that one arm's place does not "
                "change another's outcome. The interval is valid however often you look"
            )
        rest = {
            "certain of a place": self.certain,
            "certain of none": self.excluded,
            "without a recorded chance of a place": self.unknown,
            "drawn, but without an outcome": self.unrecorded,
            "whose outcome is still to come": self.pending,
        }
        kinds = ", ".join(f"{number:,} {name}" for name, number in rest.items() if number)
        return [*found, *([f"Decisions that are not measured: {kinds}"] if kinds else [])]

    def __repr__(self) -> str:
        return f"Measurement({self.verdict}: {self.sentences()[0]})"


def _form(values: list[float], digits: int | None = None) -> str:
    """Return an estimate with its interval."""
    places = digits if digits is not None else 0 if max(map(abs, values)) >= 100 else 1
    value, low, high = (f"{one + 0.0:,.{places}f}" for one in values)
    return f"{value} ({low} to {high})"
