"""What can go wrong, by name. Every message is one line that says what and where."""

__all__ = [
    "BudgetExceeded",
    "FeedbackError",
    "FileError",
    "ModelError",
    "PolicyError",
    "RmabError",
    "SolverError",
    "StudyError",
]


class RmabError(Exception):
    """Base of every error that this library raises on purpose."""


class ModelError(RmabError, ValueError):
    """A problem, task or reward that is not well formed. Nothing was built."""


class FileError(RmabError, ValueError):
    """A file that cannot be read as what it should be. The message starts with its path."""


class FeedbackError(RmabError, ValueError):
    """Feedback that no episode of the problem can give. The learner's state is as it was before."""


class PolicyError(RmabError, ValueError):
    """A policy whose table or decision is not well formed."""


class BudgetExceeded(PolicyError):
    """A policy activated more arms than the budget allows; the episode was stopped at that step.

    Attributes: step (from 0), count (arms it wanted to activate) and budget.
    """

    def __init__(self, step: int, count: int, budget: int) -> None:
        super().__init__(f"step {step}: the policy activates {count} arms, the budget is {budget}")
        self.step, self.count, self.budget = step, count, budget

    def __reduce__(self) -> tuple[type["BudgetExceeded"], tuple[int, int, int]]:
        """Pickle by its numbers, so that it crosses process boundaries."""
        return type(self), (self.step, self.count, self.budget)


class SolverError(RmabError, RuntimeError):
    """A solver did not reach an answer that could be certified. There is no answer, not an approximate one."""


class StudyError(RmabError, RuntimeError):
    """A study that cannot go on, for instance because no worker starts. What is finished stays, and can be resumed."""
