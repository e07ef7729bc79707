"""Whole numbers on the command line, refused in plain words."""

import click

__all__ = ["AT_LEAST_0", "AT_LEAST_1"]


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A whole number, so large or more."""

    name = "integer"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or say what is expected."""
        try:
            number = int(str(value))
        except ValueError:
            self.fail(f"expected a whole number, got {str(value)!r:.40}", param, ctx)
        if number < self.least:
            self.fail(f"must be {self.least} or more, got {number}", param, ctx)
        return number


AT_LEAST_0, AT_LEAST_1 = WholeNumber(0), WholeNumber(1)
