"""Packages that come with an extra: where one is missing, the error names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rmab.errors import MissingExtra


@contextmanager
def needs(extra: str, what: str, *packages: str) -> Iterator[None]:
    """Import packages of an extra inside; where one of them is missing, raise MissingExtra, which says how to get it.

    Examples
    --------
    >>> with needs("moon", "a moon", "moonlight"):
    ...     import moonlight
    Traceback (most recent call last):
    rmab.errors.MissingExtra: a moon needs moonlight, which is not installed: pip install 'rmab[moon]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in packages:
            raise
        raise MissingExtra(f"{what} needs {missing}, which is not installed: pip install 'rmab[{extra}]'") from error
