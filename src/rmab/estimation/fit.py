"""A model fitted to a log, or to statistics: kernels of groups, rewards, and the current state of every arm."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import (
    Fields,
    FloatArray,
    Format,
    IntArray,
    ReadOnly,
    Stored,
    as_indices,
    as_integer,
    as_table,
    cached_property,
    pack,
    unpack,
)
from rmab.errors import ModelError, many
from rmab.estimation.arm_rows import ArmRows, find_arm_rows
from rmab.estimation.gaps import weigh_states
from rmab.estimation.leaving import LEFT, Leaving, add_leaving
from rmab.estimation.rewards import Pay
from rmab.estimation.shrinkage import Levels, Shrinkage
from rmab.estimation.situation import Situation, find_situation
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import Note
from rmab.logs.log import Log
from rmab.logs.roster import Roster
from rmab.logs.words import Words
from rmab.model import Arms, Problem

DEFAULT_HORIZON = 26


@dataclass(frozen=True, eq=False)
class Fit(ReadOnly, Stored):
    """A model of a programme, as `rmab.data.fit` and `rmab.data.fit_statistics` return it; checked on construction.

    Attributes
    ----------
    roster : Roster
        All N arms: ids, and columns of groups.
    state_names : tuple of str
        The S states.
    words : Words
        Names of an action, a period and a unit of reward.
    groups : tuple of str
        The G groups in words; one, 'everybody', if there are none.
    group_of : (N,) int array
        The group of every arm.
    levels : Levels
        What groups have in common: their columns, which may be crossed or nested.
    statistics : Statistics
        Observed transitions `counts` (G, S, 2, S), and rewards.
    rows : Shrinkage
        Kernels (G, S, 2, S) shrunk towards those of larger groups, their strengths, and rows that were never seen.
    pay : Pay
        Rewards (G, S, 2), and what they mean in words.
    situation : Situation
        The current state of every arm.
    present : (N',) int array
        The current arms: all, unless some have left.
    notes : tuple of Note
        Notes about the log, and assumptions.
    log : Log or None
        The single records, which checks, effects and evaluations need; None for a model of statistics only.
    randomised : bool or None
        Whether actions were declared to be drawn at random, within groups, states and periods at least.
    clustered : bool or None
        Whether groups are clusters, which every replicate draws again.
    leaving : Leaving or None
        How arms leave; None if none has.
    missing : (2, S) float array or None
        Probability that a record is missing, by the action before and the state of the arm; None if it depends on neither.
    problems : tuple of str or None
        Names of checks that failed, as `rmab fit` stores them; None if checks were not made.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> fitted = rmab.data.fit(log, reward={"engaged": 1})
    >>> fitted
    Fit(186 arms in 3 groups, 3 states, for 2024-W20)
    >>> fitted.problem(budget=10, horizon=12)
    Problem(Arms(186 arms, 4 states, 3 groups), budget 10, horizon 12)
    """

    FORMAT = Format("rmab fit", 3, {"roster.ids", "groups", "group_of"}, prefix="", remedy="fit the log again")

    roster: Roster
    state_names: tuple[str, ...]
    words: Words
    groups: tuple[str, ...]
    group_of: IntArray
    levels: Levels
    statistics: Statistics
    rows: Shrinkage
    pay: Pay
    situation: Situation
    present: IntArray
    notes: tuple[Note, ...]
    log: Log | None = None
    randomised: bool | None = None
    clustered: bool | None = None
    leaving: Leaving | None = None
    missing: FloatArray | None = None
    problems: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        arms, groups, states = len(self.roster.ids), len(self.groups), len(self.state_names)
        object.__setattr__(self, "group_of", as_indices(self.group_of, "group_of", (arms,), groups))
        object.__setattr__(self, "present", as_indices(self.present, "present", (np.size(self.present),), arms))
        sizes = {
            "statistics": (self.counts.shape, (groups, states, 2, states)),
            "kernels": (self.kernels.shape, (groups, states, 2, states)),
            "rewards": (self.pay.table.shape, (groups, states, 2)),
            "belief": (self.situation.belief.shape, (arms, states)),
            "levels": (self.levels.nodes.shape, (len(self.rows.strength) - 1, groups)),
            "log": ((arms, states) if self.log is None else (len(self.log.arms), len(self.log.state_names)), (arms, states)),
        }
        for name, (found, wanted) in sizes.items():
            if found != wanted:
                raise ModelError(
                    f"{name} must have shape {wanted} in a model of {arms} arms and {groups} groups, got {found}"
                )
        if self.missing is not None:
            object.__setattr__(self, "missing", as_table(self.missing, "missing", (2, states), 0.0, 1.0 - 1e-9))
        if self.leaving is not None and len(self.leaving.rates) != states:
            raise ModelError(f"leaving: rates of {len(self.leaving.rates)} states, of {states}", field="leaving")
        if (np.diff(self.present) <= 0).any():
            raise ModelError("present must name arms in their order, each once", field="present")
        log = self.log
        if log is not None and (log.arms, log.state_names, log.factors) != (*self._names, self.roster.factors):
            raise ModelError("the log has other arms, states or groups than the model", field="log")
        if log is not None and self.situation.label != log.periods.label(self.situation.period):
            raise ModelError(f"the period {self.situation.period} of the log is not {self.situation.label}", field="period")

    @property
    def _names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.roster.ids, self.state_names

    @property
    def counts(self) -> IntArray:
        """(G, S, 2, S) the transitions that were seen."""
        return self.statistics.counts

    @property
    def kernels(self) -> FloatArray:
        """(G, S, 2, S) the kernel of every group."""
        return self.rows.kernels

    @cached_property
    def arm_rows(self) -> ArmRows | None:
        """Estimates of single arms beyond their groups; None if arms of a group do not differ, or there is no log."""
        return None if self.log is None else find_arm_rows(self.log, self.group_of, self.kernels, self.state_weights)

    @property
    def is_by_arm(self) -> bool:
        """Whether arms have individual kernels in an evaluation: they differ within groups, or clusters are drawn."""
        return self.arm_rows is not None or bool(self.clustered)

    def arm_kernels(
        self, groups: FloatArray, rng: np.random.Generator | None = None, group_of: IntArray | None = None
    ) -> FloatArray:
        """(N, S, 2, S) the kernel of every arm, by those of groups (G, S, 2, S): their means, or drawn where arms differ."""
        own = self.group_of if group_of is None else group_of
        return (
            np.asarray(groups[own]) if self.arm_rows is None else replace(self.arm_rows, group_of=own).kernels(groups, rng)
        )

    def with_leaving(self, kernels: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
        """Return kernels (..., S, 2, S) with a state for those who leave, where some do; rates are drawn if asked."""
        if self.leaving is None:
            return kernels
        return add_leaving(kernels, np.asarray(self.leaving.rates) if rng is None else self.leaving.draw(rng))

    @cached_property
    def state_weights(self) -> FloatArray:
        """(2, S) how much transitions count, by action and where they lead: more where records are often missing."""
        return weigh_states(self.missing, self.counts)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """(N',) the ids of the arms that are still there."""
        return tuple(self.roster.ids[n] for n in self.present)

    @property
    def start(self) -> IntArray | FloatArray:
        """(N',) the state of every arm now; (N', S) probabilities, where some were not seen."""
        belief = self.belief
        return np.asarray(belief.argmax(axis=1)) if (belief.max(axis=1) == 1.0).all() else belief

    @property
    def belief(self) -> FloatArray:
        """(N', S) where every arm may be; with one more state, in which nobody is, where arms leave."""
        found = self.situation.belief[self.present]
        return found if self.leaving is None else np.pad(found, ((0, 0), (0, 1)))

    @property
    def reward(self) -> FloatArray:
        """(N', S, 2) the reward of every arm; with one more state, worth nothing, where arms leave."""
        found = np.asarray(self.pay.table[self.group_of[self.present]])
        return found if self.leaving is None else np.pad(found, ((0, 0), (0, 1), (0, 0)))

    @property
    def names_ahead(self) -> tuple[str, ...]:
        """The states of the problem: those of the log, and one for those who leave, where some do."""
        return self.state_names if self.leaving is None else (*self.state_names, LEFT)

    @cached_property
    def usual_budget(self) -> int:
        """Mean number of actions per period of the log; at least 1."""
        log = self.require_log()
        done = np.bincount(log.period, weights=log.action == 1, minlength=log.periods.count)
        known = np.bincount(log.period, weights=log.action >= 0, minlength=log.periods.count) > 0
        usual = max(1, round(float(done[known].mean()))) if known.any() else 1
        return min(usual, self.present.size)

    def problem(self, budget: float, horizon: int = DEFAULT_HORIZON, *, cost: ArrayLike | None = None) -> Problem:
        """Return the problem from now on: the current arms, in the order of `ids`, and their states.

        If arms of a group differ (`arm_rows`), each has its own kernel. If arms leave (`leaving`), there is one
        more state, from which nobody returns.

        Parameters
        ----------
        budget : int or float
            Number of places per period; with costs, the amount to spend.
        horizon : int
            Number of periods to plan.
        cost : float or array_like, optional
            Cost of acting on each arm, as in `Problem`.

        Returns
        -------
        Problem
            For example, plan it with `rmab.plan(problem, fit.reward)`.
        """
        if self.arm_rows is None:
            groups, group_of = np.unique(self.group_of[self.present], return_inverse=True)
            kernels = self.with_leaving(self.kernels[groups])
            arms = Arms.of_groups(kernels, group_of.reshape(-1), state_names=self.names_ahead)
        else:
            arms = Arms(self.with_leaving(self.arm_rows.kernels(self.kernels))[self.present], state_names=self.names_ahead)
        return Problem(arms, self.start, budget, as_integer(horizon, "horizon"), cost=cost)

    def at(self, period: str) -> Fit:
        """Return the model as of a period, written as in the log: the last one or a later one."""
        planned = self.require_log().periods.find(period)
        there = find_situation(self.require_log(), self.kernels, self.group_of, planned, missing=self.missing)
        return replace(self, situation=there)

    def require_log(self) -> Log:
        """Return the log; ModelError if the model was fitted to statistics."""
        if self.log is None:
            raise ModelError(
                "this needs single records, but the model was fitted to statistics; fit a log with rmab.data.fit"
            )
        return self.log

    def to_fields(self) -> Fields:
        """Return the model, with the records behind it, as plain arrays and text by name."""
        return pack(self)

    @classmethod
    def from_fields(cls, fields: Fields) -> Fit:
        """Build the model from its fields, checked as on construction; ModelError if they are not valid."""
        found = unpack(cls, fields)
        if found.log is not None and found.statistics != Statistics.from_log(found.log, found.group_of, len(found.groups)):
            raise ModelError("statistics are not those of the log", field="statistics")
        return found

    def __repr__(self) -> str:
        groups = f" in {many(len(self.groups), 'group')}" if len(self.groups) > 1 else ""
        states = many(len(self.state_names), "state")
        return f"Fit({many(self.present.size, 'arm')}{groups}, {states}, for {self.situation.label})"
