"""What the things of a programme are called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """What an action, a period and a unit of reward are called in sentences.

    Attributes
    ----------
    action, period : str
        In the singular: 'call', 'week'.
    unit : str
        In the plural: 'weeks engaged', 'points'.

    Examples
    --------
    >>> Words(action="inspection").an_action
    'an inspection'
    """

    action: str = "action"
    period: str = "period"
    unit: str = "reward"

    @property
    def an_action(self) -> str:
        """An action with its article: 'a call', 'an inspection'."""
        return f"{'an' if self.action[:1] in 'aeiou' else 'a'} {self.action}"


PLAIN_WORDS = Words()
