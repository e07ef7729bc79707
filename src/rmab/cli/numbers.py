"""Numbers on the command line: plain messages, and what to write for 0,15 and 20%."""

import math
from typing import Any

import click


class Number(click.FloatRange):
    """A finite number in a range, written with a point.

    Examples
    --------
    >>> Number(0, 1).convert("0.15", None, None)
    0.15
    """

    name = "float"

    def _describe_range(self) -> str:
        """Return the limits for the help; empty if there are none."""
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail and say what to write."""
        try:
            found = float(value)
        except (TypeError, ValueError):
            hint = suggest_number(str(value))
            self.fail(f"expected a number{f'; write {hint} for {value}' if hint else f', got {value!r}'}", param, ctx)
        if not math.isfinite(found):
            self.fail(f"expected a finite number, got {value}", param, ctx)
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            share = self.max == 1 and 1 < found <= 100
            hint = f"; for {found:g}% write {found / 100:g}" if share else ""
            self.fail(f"expected a number {self._in_words()}, got {found:g}{hint}", param, ctx)

    def _in_words(self) -> str:
        """Describe the range: 'above 0 and below 1', 'from 0 to 1'."""
        low, high = self.min, self.max
        if low is not None and high is not None and not (self.min_open or self.max_open):
            return f"from {low:g} to {high:g}"
        words = [] if low is None else [f"{'above' if self.min_open else 'of at least'} {low:g}"]
        words += [] if high is None else [f"{'below' if self.max_open else 'of at most'} {high:g}"]
        return " and ".join(words)


def suggest_number(text: str) -> str:
    """Return a number as it has to be written: 0.15 for '0,15', and 0.2 for '20%'; empty if the text is none."""
    bare = text.strip().replace(",", ".")
    percent = bare.endswith("%")
    try:
        found = float(bare.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        return ""
    return f"{found:g}" if math.isfinite(found) else ""
