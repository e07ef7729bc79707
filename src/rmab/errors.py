"""The errors of the library. Every message is one line that says what is wrong, and where."""

from collections.abc import Sequence


class RmabError(Exception):
    """Base class of all errors that the library raises on purpose.

    Parameters
    ----------
    *words : str
        The message; where it quotes something of several lines, they are joined, and what is very long is cut.

    Examples
    --------
    >>> import rmab
    >>> try:
    ...     rmab.Arms([0.5, 0.5])
    ... except rmab.RmabError as error:
    ...     print(error)
    kernels must have shape (N, S, 2, S), or (N, K, S, 2, S) for K phases, with N, K, S >= 1, got (2,)
    """

    def __init__(self, *words: object) -> None:
        """Keep the message in one line, whatever it quotes."""
        super().__init__(*(_in_line(one) if isinstance(one, str) else one for one in words))


LONGEST = 3000  # characters of a message: it may quote what a file says, or list many problems


def _in_line(text: str) -> str:
    lines = text.splitlines()
    line = text if lines == [text] else " ".join(filter(None, map(str.strip, lines)))
    return line if len(line) <= LONGEST else f"{line[: LONGEST * 2 // 3]} ... {line[-LONGEST // 4 :]}"


class ModelError(RmabError, ValueError):
    """A problem, task, reward or option is malformed; nothing was built.

    Examples
    --------
    >>> import rmab
    >>> rmab.make_task("cpap", arms=3)
    Traceback (most recent call last):
    rmab.errors.ModelError: task cpap: arms: Input should be a multiple of 2 (got 3)
    """


class FileError(RmabError, ValueError):
    """A file cannot be read or written, or holds something else. The message starts with its path.

    Examples
    --------
    >>> import rmab
    >>> rmab.Problem.load("missing.npz")
    Traceback (most recent call last):
    rmab.errors.FileError: missing.npz: cannot be read (No such file or directory)
    """


class FeedbackError(RmabError, ValueError):
    """No episode of the problem can give this feedback. The learner's state is unchanged.

    Examples
    --------
    >>> import rmab
    >>> rmab.Feedback(0, states=[[0], [1]], actions=[[2]], rewards=[[[0, 0], [0, 0]]])
    Traceback (most recent call last):
    rmab.errors.FeedbackError: step 0: the action of arm 0 must be 0 or 1, got 2
    """


class PolicyError(RmabError, ValueError):
    """The table or a decision of a policy is malformed.

    Examples
    --------
    >>> import rmab
    >>> rmab.IndexPolicy([[0.5, 0.2]], budget=2)
    Traceback (most recent call last):
    rmab.errors.PolicyError: budget must be in 0..1 (the number of arms), got 2
    """


class BudgetExceeded(PolicyError):
    """A policy activated more arms than the budget allows; the episode was stopped at that step.

    Parameters
    ----------
    step, count, budget : int
        The step (from 0), how many arms the policy activated, and how many it may activate.

    Examples
    --------
    >>> import rmab
    >>> raise rmab.errors.BudgetExceeded(step=4, count=3, budget=2)
    Traceback (most recent call last):
    rmab.errors.BudgetExceeded: step 4: the policy activates 3 arms, the budget is 2
    """

    def __init__(self, step: int, count: int, budget: int) -> None:
        super().__init__(f"step {step}: the policy activates {count} arms, the budget is {budget}")
        self.step, self.count, self.budget = step, count, budget

    def __reduce__(self) -> tuple[type["BudgetExceeded"], tuple[int, int, int]]:
        """Pickle its numbers, so that it can pass between processes."""
        return type(self), (self.step, self.count, self.budget)


class SolverError(RmabError, RuntimeError):
    """A solver found no answer that it could certify. It returns none, not even an approximate one."""


class StudyError(RmabError, RuntimeError):
    """A study cannot go on, for instance because no worker starts. Finished runs are kept, and the study can be resumed."""


class MissingExtra(RmabError, ImportError):
    """Something needs a package that is not installed. The message names the extra of rmab that brings it.

    Examples
    --------
    >>> import rmab
    >>> raise rmab.errors.MissingExtra("rmab.gym needs gymnasium: pip install 'rmab[gym]'")
    Traceback (most recent call last):
    rmab.errors.MissingExtra: rmab.gym needs gymnasium: pip install 'rmab[gym]'
    """


class LogError(ModelError):
    """A log of a programme is wrong; the message lists everything that is, with line numbers. Nothing was read.

    Parameters
    ----------
    name : str
        The file or table.
    problems : sequence
        What is wrong: objects whose text says what and where.

    Examples
    --------
    >>> import rmab
    >>> rmab.errors.LogError("log.csv", ["line 7: action 'maybe' is neither yes nor no"])
    LogError("log.csv: line 7: action 'maybe' is neither yes nor no")
    """

    def __init__(self, name: str, problems: Sequence[object]) -> None:
        super().__init__(f"{name}: {'; '.join(map(str, problems))}")
        self.name, self.problems = name, tuple(problems)

    def __reduce__(self) -> tuple[type["LogError"], tuple[str, tuple[object, ...]]]:
        """Pickle its parts, so that it can pass between processes."""
        return type(self), (self.name, self.problems)
