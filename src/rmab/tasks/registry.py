"""Names of the tasks; `rmab.tasks.making` builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmab.common import Entry, Registry
from rmab.model import ADVERSARIES

if TYPE_CHECKING:
    from pydantic import BaseModel

GAST, HONG = "Gast, Gaujal & Yan 2020", "Hong, Xie, Chen & Wang 2024"
CIRCULANT = "Fu et al. 2019; Avrachenkov & Borkar 2022"
DOPL = "arXiv 2410.05527"
XIONG = "Xiong & Li, ICML 2024"


@dataclass(frozen=True)
class TaskEntry(Entry):
    """A family of tasks.

    Parameters
    ----------
    episodes : int, optional
        Default number of episodes; families with fixed rewards have their own option.
    fixed : bool, optional
        Whether the rewards are fixed, so that the task takes no adversary.
    """

    episodes: int = 50
    fixed: bool = False


class TaskRegistry(Registry[TaskEntry]):
    """Registry of task families. A task function returns a problem and a reward model, or a whole task."""

    def schema(self, name: str) -> type[BaseModel]:
        """Return the options of a task: those of its function, and those that all tasks have."""
        from pydantic import Field, create_model

        from rmab.common import Episodes

        model = super().schema(name)
        more: dict[str, Any] = {
            "copies": (int, Field(1, ge=1, description="number of copies of each arm; multiplies the budget"))
        }
        if "episodes" not in model.model_fields:
            number = self[name].episodes if name in self else TaskEntry.episodes
            more = {"episodes": (Episodes, number), **more}
        return create_model(model.__name__, __base__=model, **more)


def _entry(module: str, name: str, summary: str, paper: str = "", **facts: Any) -> TaskEntry:
    """Return an entry; the function of `cpap-adherence` is `cpap_adherence`."""
    return TaskEntry(name, f"rmab.tasks.{module}:{name.replace('-', '_')}", summary, paper, **facts)


TASKS = TaskRegistry(
    "task",
    [
        _entry(
            "cpap",
            "cpap",
            "Patients with a breathing device (CPAP): calls to patients who adhere earn more (Xiong & Li 2024).",
            XIONG,
        ),
        _entry("cpap", "cpap-adherence", "CPAP where all patients who adhere earn more, called or not."),
        _entry("charging", "deadline", "Electric-vehicle charging: 100 identical spots, 30 chargers.", XIONG, episodes=100),
        _entry(
            "charging",
            "deadline-day",
            "A day at a fast charger: two peaks of arrivals, a tariff, and less power for some hours.",
            episodes=20,
        ),
        _entry(
            "counterexamples",
            "split",
            "Ranking arms by the plan's activation shares stays suboptimal, however many arms there are.",
        ),
        _entry("kinds", "swim", "Chains that pay only at the far end, after several right actions in a row.", episodes=60),
        _entry(
            "published", "conveyor", "Eight states in a row; priorities that fill the budget never reach the last.", HONG
        ),
        _entry(
            "published",
            "gast-1",
            "Three states; the Whittle index policy does not converge to its fixed point, example 1.",
            GAST,
        ),
        _entry(
            "published",
            "gast-2",
            "Three states; the Whittle index policy does not converge to its fixed point, example 2.",
            GAST,
        ),
        _entry(
            "published",
            "gast-3",
            "Three states; the Whittle index policy does not converge to its fixed point, example 3.",
            GAST,
        ),
        _entry("published", "non-indexable", "Three states without a Whittle index.", "Hong, Xie, Chen & Wang 2023"),
        _entry("published", "non-sa", "Ten states that violate the synchronization assumption.", HONG),
        _entry("published", "circulant", "Four states in a circle, Whittle indices -.5, .5, 1, -1.", CIRCULANT),
        _entry("published", "restart", "Five states that decay and can be started again.", "Avrachenkov & Borkar 2022"),
        _entry("published", "conveyor-bait", "The conveyor with a small reward for staying at its start.", HONG),
        _entry("published", "dirichlet-355", "Ten states drawn at random; exactly 64% of the arms are active.", HONG),
        _entry("published", "dirichlet-582", "Ten states drawn at random; exactly 87% of the arms are active.", HONG),
        _entry(
            "published",
            "cpap-dopl",
            "CPAP with published effects of calls: two types of ten patients each.",
            DOPL,
            episodes=1600,
        ),
        _entry("published", "armman-dopl", "Calls to mothers: ten types of two each, five steps.", DOPL, episodes=20_000),
        _entry(
            "costs",
            "machine",
            "Machine repair: machines wear out, and a few can be repaired.",
            "Glazebrook, Mitchell & Ansell 2005",
        ),
        _entry("costs", "queue", "Queues of impatient customers, of which a few can be served.", "Larrañaga et al. 2015"),
        _entry("drawn", "random-dense", "Random arms, all different: all transitions are possible."),
        _entry("drawn", "random-sparse", "Random arms, all different: few transitions are possible."),
        _entry("drawn", "random-types", "A few random types of arms, with many arms of each."),
        _entry("drawn", "good-bad", "A good and a bad state, with constant rewards.", "Wang et al. 2023", fixed=True),
        _entry(
            "counterexamples", "greener", "Two arms, one of which pays: a counterexample to the paper's theorem.", fixed=True
        ),
        _entry(
            "counterexamples", "turns", "Two arms that pay in turns: a counterexample to the paper's theorem.", fixed=True
        ),
        _entry("kinds", "harm", "Activation hurts some arms: the best policy leaves budget unused."),
        _entry("kinds", "drift", "The dynamics change half-way: activation helps other arms.", fixed=True),
        _entry("kinds", "clock", "Declared phases that, by default, do not differ."),
        _entry("counterexamples", "two-way", "One arm that should be active in one of its two states.", fixed=True),
    ],
    listed_by="rmab tasks",
    returns=("rmab.tasks.definition:Task", "builtins:tuple"),
    given=("seed",),
)


def list_tasks() -> dict[str, str]:
    """List the built-in tasks.

    Returns
    -------
    dict of str to str
        Name of each task, with a one-line description.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_tasks()["cpap@switching"]
    'Patients with a breathing device (CPAP): calls to patients who adhere earn more (Xiong & Li 2024).'
    """
    return {one: entry.summary for entry in TASKS.entries() for one in names_of(entry)}


def names_of(entry: TaskEntry) -> list[str]:
    """Return the names of the tasks of a family, with each adversary unless its rewards are fixed."""
    return [entry.name] if entry.fixed else [f"{entry.name}@{against}" for against in ADVERSARIES]
