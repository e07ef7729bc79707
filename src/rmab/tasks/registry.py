"""The names of tasks; `rmab.tasks.making` builds them."""

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
        How many there are by default; families with fixed rewards have an option of their own.
    fixed : bool, optional
        Whether the rewards are fixed: such a task takes no adversary.
    """

    episodes: int = 50
    fixed: bool = False


class TaskRegistry(Registry[TaskEntry]):
    """The families of tasks. A maker returns a problem and a reward model, which any adversary plays, or a whole task."""

    def schema(self, name: str) -> type[BaseModel]:
        """Return the options of a task: those of its maker, and those that all tasks have."""
        from pydantic import Field, create_model

        from rmab.common import Episodes

        model = super().schema(name)
        more: dict[str, Any] = {"copies": (int, Field(1, ge=1, description="copies of every arm, under as many budgets"))}
        if "episodes" not in model.model_fields:
            number = self[name].episodes if name in self else TaskEntry.episodes
            more = {"episodes": (Episodes, number), **more}
        return create_model(model.__name__, __base__=model, **more)


def _entry(module: str, name: str, summary: str, paper: str = "", **facts: Any) -> TaskEntry:
    """Return an entry; the maker of `cpap-adherence` is `cpap_adherence`."""
    return TaskEntry(name, f"rmab.tasks.{module}:{name.replace('-', '_')}", summary, paper, **facts)


TASKS = TaskRegistry(
    "task",
    [
        _entry("cpap", "cpap", "CPAP as in the paper: only patients who are called pay, by their adherence level.", XIONG),
        _entry("cpap", "cpap-adherence", "CPAP where the adherence level of every patient counts, called or not."),
        _entry("charging", "deadline", "Electric-vehicle charging: 100 identical spots, 30 chargers.", XIONG, episodes=100),
        _entry("charging", "deadline-day", "A day at a fast charger: two peaks, a tariff, less power.", episodes=20),
        _entry("counterexamples", "split", "Top-B keeps its loss: the best plan splits a step between two kinds of arm."),
        _entry("kinds", "swim", "Chains that pay at the far end alone: several right moves in a row.", episodes=60),
        _entry("published", "conveyor", "Eight states in a row; priorities that fill the budget do not climb them.", HONG),
        _entry("published", "gast-1", "Three states whose Whittle index is no attractor, example 1.", GAST),
        _entry("published", "gast-2", "Three states whose Whittle index is no attractor, example 2.", GAST),
        _entry("published", "gast-3", "Three states whose Whittle index is no attractor, example 3.", GAST),
        _entry("published", "non-indexable", "Three states without a Whittle index.", "Hong, Xie, Chen & Wang 2023"),
        _entry("published", "non-sa", "Ten states without the synchronization assumption.", HONG),
        _entry("published", "circulant", "Four states in a circle, Whittle indices -.5, .5, 1, -1.", CIRCULANT),
        _entry("published", "restart", "Five states that decay and can be started again.", "Avrachenkov & Borkar 2022"),
        _entry("published", "conveyor-bait", "The conveyor, with a little pay for staying at its beginning.", HONG),
        _entry("published", "dirichlet-355", "Ten states drawn at random; exactly 64% of the arms are active.", HONG),
        _entry("published", "dirichlet-582", "Ten states drawn at random; exactly 87% of the arms are active.", HONG),
        _entry("published", "cpap-dopl", "CPAP with published effects of calls: two types of ten.", DOPL, episodes=1600),
        _entry("published", "armman-dopl", "Calls to mothers: ten types of two, five steps.", DOPL, episodes=20_000),
        _entry("costs", "machine", "Machines that wear out, and who is repaired.", "Glazebrook, Mitchell & Ansell 2005"),
        _entry("costs", "queue", "Queues of impatient customers, and which are served.", "Larrañaga et al. 2015"),
        _entry("drawn", "random-dense", "Arms drawn at random, all different: every move is possible."),
        _entry("drawn", "random-sparse", "Arms drawn at random, all different: few moves are possible."),
        _entry("drawn", "random-types", "A few types of arms drawn at random, and many arms of each."),
        _entry("drawn", "good-bad", "A good and a bad state, rewards that never change.", "Wang et al. 2023", fixed=True),
        _entry("counterexamples", "greener", "Two arms, one pays: where the paper's theorem fails.", fixed=True),
        _entry("counterexamples", "turns", "Two arms that pay in turns: where the paper's theorem fails.", fixed=True),
        _entry("kinds", "harm", "Activation hurts some arms: the best policy leaves budget unused."),
        _entry("kinds", "drift", "Dynamics that change half-way: other arms answer to activation.", fixed=True),
        _entry("kinds", "clock", "Phases that are declared and, by default, do not differ."),
        _entry("counterexamples", "two-way", "One arm that should be active in one of its two states.", fixed=True),
    ],
    listed_by="rmab tasks",
    returns=("rmab.tasks.definition:Task", "builtins:tuple"),
    given=("seed",),
)


def list_tasks() -> dict[str, str]:
    """List the tasks that come with the library.

    Returns
    -------
    dict of str to str
        The name of every task, with one line on what it is.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_tasks()["cpap@switching"]
    'CPAP as in the paper: only patients who are called pay, by their adherence level.'
    """
    return {one: entry.summary for entry in TASKS.entries() for one in names_of(entry)}


def names_of(entry: TaskEntry) -> list[str]:
    """Return the names of the tasks of a family: with every adversary, unless its rewards are fixed."""
    return [entry.name] if entry.fixed else [f"{entry.name}@{against}" for against in ADVERSARIES]
