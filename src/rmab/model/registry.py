"""The names of adversaries; `rmab.model.adversaries` builds them."""

from dataclasses import dataclass
from typing import Any

from rmab.common import Entry, Registry

FORESEES = "sees the plan of the episode to come: stronger than the paper's adversary"


@dataclass(frozen=True)
class AdversaryEntry(Entry):
    """An adversary; foresees: whether it sees the plan of the episode to come, which the paper's adversary does not."""

    foresees: bool = False


def _entry(name: str, summary: str, target: str = "", **facts: Any) -> AdversaryEntry:
    return AdversaryEntry(name, f"rmab.model.{target or f'adversaries:{name}'}", summary, **facts)


ADVERSARIES = Registry(
    "adversary",
    [
        _entry("ramp", "the paper's: a factor that grows from 0.5 to 1.5, the same for all"),
        _entry("noisy", "a fixed quality of every unit, times independent noise"),
        _entry("iid", "a fresh factor for every unit and episode"),
        _entry("switching", "a random half of the units pays more, for about sqrt(T) episodes"),
        _entry("drifting", "two periods of a sinusoid, with a phase per unit"),
        _entry("alternating", "two fixed halves of the units pay more in turns"),
        _entry("mixed", "half of the units are coins, the others drift"),
        _entry("late", "half of the units pay nothing in the first 2T/5 episodes"),
        _entry("lock", "half of the units pay little for sure, the others much at random"),
        _entry("weekly", "every unit pays more in 2 episodes of 7, of its own"),
        _entry("ninth", "every unit pays more in 3 episodes of 9, of its own"),
        _entry("weather", "a fixed quality of every unit, times a factor of the episode that is common to all"),
        _entry("adaptive", "lowers what was used often in the episodes so far", "answering:Adaptive"),
        _entry("plan-aware", "lowers what the coming plan will use", "answering:PlanAware", foresees=True),
    ],
    listed_by="rmab tasks",
    returns="rmab.model.adversary:Adversary",
    given=("model", "episodes", "rng"),
)


def list_adversaries() -> dict[str, str]:
    """List the adversaries that come with the library.

    Returns
    -------
    dict of str to str
        The name of every adversary, with one line on how it chooses rewards.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_adversaries()["alternating"]
    'two fixed halves of the units pay more in turns'
    """
    return ADVERSARIES.summaries()
