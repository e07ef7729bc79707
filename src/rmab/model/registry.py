"""Names of the adversaries; `rmab.model.adversaries` builds them."""

from dataclasses import dataclass
from typing import Any

from rmab.common import Entry, Registry

FORESEES = "sees the plan of the next episode, which makes it stronger than the paper's adversary"


@dataclass(frozen=True)
class AdversaryEntry(Entry):
    """An adversary; foresees: whether it sees the plan of the next episode, unlike the paper's adversary."""

    foresees: bool = False


def _entry(name: str, summary: str, target: str = "", **facts: Any) -> AdversaryEntry:
    return AdversaryEntry(name, f"rmab.model.{target or f'adversaries:{name}'}", summary, **facts)


ADVERSARIES = Registry(
    "adversary",
    [
        _entry("ramp", "as in the paper: a factor that grows from 0.5 to 1.5, the same for all units"),
        _entry("noisy", "a fixed quality per unit, times independent noise"),
        _entry("iid", "an independent factor for each unit and episode"),
        _entry("switching", "a random half of the units pays more, for about sqrt(T) episodes"),
        _entry("drifting", "two periods of a sinusoid, with a phase per unit"),
        _entry("alternating", "two fixed halves of the units pay more in turns"),
        _entry("mixed", "half of the units are coin tosses, the others drift"),
        _entry("late", "half of the units pay nothing in the first 2T/5 episodes"),
        _entry("lock", "half of the units always pay little, the others pay much at random"),
        _entry("weekly", "each unit pays more in 2 of every 7 episodes"),
        _entry("ninth", "each unit pays more in 3 of every 9 episodes"),
        _entry("weather", "a fixed quality per unit, times a factor per episode that is common to all"),
        _entry("adaptive", "lowers the rewards of state-action pairs that have been used often", "answering:Adaptive"),
        _entry(
            "plan-aware", "lowers the rewards of units that the next plan will use", "answering:PlanAware", foresees=True
        ),
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
        Name of each adversary, with one line on how it sets rewards.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_adversaries()["alternating"]
    'two fixed halves of the units pay more in turns'
    """
    return ADVERSARIES.summaries()
