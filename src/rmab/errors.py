"""Errors and notices: one line for people that says what is wrong and where; a code and a location for programs."""

import logging
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class RmabError(Exception):
    """Base class of all errors that the library raises on purpose.

    Parameters
    ----------
    *words : str
        The message. Several lines are joined into one, and a very long message is shortened.
    code : str, optional
        A short, stable name of the problem for programs, for example 'unknown-name'. By default that of the class.
    **location
        Location of the problem, as far as it is known: `path`, `line`, `field`, `option`, `task`, `learner`, `episode`,
        `step`, `arm`, `state` and others. Numbers and text only.

    Attributes
    ----------
    code : str
        As above. Messages may change between versions; codes do not.
    location : dict
        As above; empty if nothing is known.

    Examples
    --------
    >>> import rmab
    >>> try:
    ...     rmab.make_task("cpap", nurses=3)
    ... except rmab.RmabError as error:
    ...     print(error.code, error.location)
    unknown-option {'task': 'cpap', 'option': 'nurses'}
    """

    code: str = "error"

    def __init__(self, *words: object, code: str = "", **location: Any) -> None:
        super().__init__(*(_in_line(one) if isinstance(one, str) else one for one in words))
        self.code = code or type(self).code
        self.location = {name: one.item() if hasattr(one, "item") else one for name, one in location.items()}


LONGEST = 3000  # maximum length of a message, which may quote a file or list many problems


def _in_line(text: str) -> str:
    lines = text.splitlines()
    line = text if lines == [text] else " ".join(filter(None, map(str.strip, lines)))
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 2 // 3]} ... {line[-LONGEST // 4 :]}"


class ModelError(RmabError, ValueError):
    """A malformed problem, task, reward or option; nothing was built.

    Examples
    --------
    >>> import rmab
    >>> rmab.make_task("cpap", arms=3)
    Traceback (most recent call last):
    rmab.errors.ModelError: task cpap: arms: Input should be a multiple of 2 (got 3)
    """

    code = "bad-model"


class FileError(RmabError, ValueError):
    """A file that cannot be read or written, or has other content. The message starts with its path.

    Examples
    --------
    >>> import rmab
    >>> rmab.Problem.load("missing.npz")
    Traceback (most recent call last):
    rmab.errors.FileError: missing.npz: cannot be read (No such file or directory)
    """

    code = "bad-file"


class FeedbackError(RmabError, ValueError):
    """Feedback that no episode of the problem can give. The learner's state is unchanged.

    Examples
    --------
    >>> import rmab
    >>> rmab.Feedback(0, states=[[0], [1]], actions=[[2]], rewards=[[[0, 0], [0, 0]]])
    Traceback (most recent call last):
    rmab.errors.FeedbackError: step 0: the action of arm 0 must be 0 or 1, got 2
    """

    code = "bad-feedback"


class PolicyError(RmabError, ValueError):
    """A malformed table or decision of a policy.

    Examples
    --------
    >>> import rmab
    >>> rmab.IndexPolicy([[0.5, 0.2]], budget=2)
    Traceback (most recent call last):
    rmab.errors.PolicyError: budget must be in 0..1 (the number of arms), got 2
    """

    code = "bad-policy"


class BudgetExceeded(PolicyError):
    """A decision that exceeds the budget; the episode was stopped at that step.

    Parameters
    ----------
    step : int
        The step, from 0.
    count, budget : float
        Number of active arms, or their cost; and the budget.
    what : {'activates', 'costs'}
        Whether arms or costs are counted.

    Examples
    --------
    >>> import rmab
    >>> raise rmab.errors.BudgetExceeded(step=4, count=3, budget=2)
    Traceback (most recent call last):
    rmab.errors.BudgetExceeded: step 4: the policy activates 3 arms, the budget is 2
    """

    code = "budget-exceeded"

    def __init__(self, step: int, count: float, budget: float, what: str = "activates") -> None:
        words = f"activates {count} arms" if what == "activates" else f"activates arms that cost {count:g}"
        super().__init__(f"step {step}: the policy {words}, the budget is {budget:g}", step=step)
        self.step, self.count, self.budget, self.what = step, count, budget, what

    def __reduce__(self) -> tuple[type["BudgetExceeded"], tuple[int, float, float, str]]:
        """Pickle the arguments, so that the error can pass between processes."""
        return type(self), (self.step, self.count, self.budget, self.what)


class SolverError(RmabError, RuntimeError):
    """A solver without a certified answer. It returns nothing, not even an approximation."""

    code = "not-solved"


class StudyError(RmabError, RuntimeError):
    """A study that cannot continue, for example because no worker starts. It is resumable: finished runs are stored."""

    code = "study-stopped"


class StoreError(RmabError, RuntimeError):
    """A database of a live programme that cannot be reached, is damaged, or was exchanged. Nothing was changed."""

    code = "store"


class MissingExtra(RmabError, ImportError):
    """A missing package. The message names the extra of rmab that installs it.

    Examples
    --------
    >>> import rmab
    >>> raise rmab.errors.MissingExtra("rmab.gym needs gymnasium: pip install 'rmab[gym]'")
    Traceback (most recent call last):
    rmab.errors.MissingExtra: rmab.gym needs gymnasium: pip install 'rmab[gym]'
    """

    code = "missing-extra"


class LogError(ModelError):
    """A log with errors; the message lists all problems, with line numbers. Nothing was read.

    `location` has the `path`, and the first wrong `line` (of a table, `row`).

    Parameters
    ----------
    name : str
        The file or table.
    problems : sequence
        Problems, as objects whose text describes what and where.

    Examples
    --------
    >>> import rmab
    >>> rmab.errors.LogError("log.csv", ["line 7: action 'maybe' is neither yes nor no"])
    LogError("log.csv: line 7: action 'maybe' is neither yes nor no")
    """

    code = "bad-log"

    def __init__(self, name: str, problems: Sequence[Any]) -> None:
        first = {one.unit: one.at[0] for one in reversed(problems) if getattr(one, "at", ())}
        super().__init__(f"{name}: {'; '.join(map(str, problems))}", path=name, **first)
        self.name, self.problems = name, tuple(problems)

    def __reduce__(self) -> tuple[type["LogError"], tuple[str, tuple[object, ...]]]:
        """Pickle the arguments, so that the error can pass between processes."""
        return type(self), (self.name, self.problems)


@contextmanager
def raise_as(kind: type[RmabError] | None, where: str = "", *, code: str = "", **location: Any) -> Iterator[None]:
    """Raise errors of the library in the body as this kind, with `where` before the message, and the same code and location.

    None keeps the kind, or the nearest base class that takes only a message. code: for errors without a specific code.
    """
    try:
        yield
    except RmabError as error:
        plain = next(one for one in type(error).__mro__ if "__init__" not in vars(one) or one is RmabError)
        specific = error.code if error.code != type(error).code else code
        raise (kind or plain)(f"{where}{error}", code=specific, **{**error.location, **location}) from error


def wrong_shape(kind: type[RmabError], field: str, wanted: object, given: tuple[int, ...]) -> RmabError:
    """Return the error for an array of the wrong shape."""
    return kind(f"{field} must have shape {wanted}, got {given}", code="bad-shape", field=field)


_topics: set[str] = set()


def notify(message: str) -> None:
    """Write a line to the log."""
    logging.getLogger("rmab").warning("rmab: %s", message)


def notify_once(topic: str, message: str) -> None:
    """Write a line to the log, once per process and topic."""
    if topic not in _topics:
        _topics.add(topic)
        notify(message)


BIDIRECTIONAL = (
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # characters that change the direction of text
)


def many(count: int, word: str) -> str:
    """Format a count with its noun: '1 arm', '2 arms'."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def is_control(letter: str) -> bool:
    """Return whether this is a control character, or one that changes the direction of text."""
    return letter in BIDIRECTIONAL or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def escape(text: str) -> str:
    r"""Escape control characters other than line ends and tabs, as \x1b, so that text is safe on a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one.encode("unicode_escape").decode() if one not in "\n\t" and is_control(one) else one for one in text)
