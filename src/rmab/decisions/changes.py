"""What changed since the last list, in counts and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rmab.logs.findings import list_some

UNSEEN = "not in the last list's file"  # reason of a new arm if the last list does not show one


@dataclass(frozen=True)
class Changes:
    """What changed since the last list.

    Attributes
    ----------
    period : str
        The period of the last list.
    words : tuple of str
        (N,) for each arm 'again', 'new: why', 'dropped: why', or empty if it is on neither list.
    gone : tuple of str
        Ids on the last list that are no longer in the programme.
    """

    period: str
    words: tuple[str, ...]
    gone: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """How many are 'again', 'new' and 'dropped', by the reason without its details."""
        found: dict[str, Counter[str]] = {"again": Counter(), "new": Counter(), "dropped": Counter()}
        for one in filter(None, self.words):
            kind, _, why = one.partition(": ")
            found[kind][why.partition(" (")[0]] += 1
        if self.gone:
            found["dropped"]["left"] = len(self.gone)
        return {kind: dict(several.most_common()) for kind, several in found.items()}

    def sentences(self) -> list[str]:
        """Return what changed in words: how many again, new and dropped, and why."""
        again, new, dropped = self.counts.values()
        parts = [f"{sum(again.values()):,} again"]
        for name, several in (("new", new), ("dropped", dropped)):
            why = ", ".join(f"{reason}: {number:,}" for reason, number in several.items())
            parts.append(f"{sum(several.values()):,} {name}" + (f" ({why})" if why else ""))
        found = [f"Since the list for {self.period or 'the last period'}: {'; '.join(parts)}"]
        if self.gone:
            found.append(f"On the last list, but no longer in the programme: {list_some(self.gone, 5)}")
        if UNSEEN in new:
            found.append("The file of the last list is not complete, so some reasons are missing; write it with --all")
        return found
