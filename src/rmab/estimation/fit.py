"""A model fitted to a log: kernels of groups, rewards, and where everybody is now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray, ReadOnly, frozen
from rmab.common.checks import as_integer, expect
from rmab.common.forks import cached_property
from rmab.common.words import many
from rmab.errors import ModelError
from rmab.estimation.clusters import cluster_arms
from rmab.estimation.counting import counted
from rmab.estimation.rewards import Pay, pay_of
from rmab.estimation.shrinkage import Shrinkage, Tree, shrink
from rmab.estimation.situation import Situation, find_situation
from rmab.logs.findings import Note
from rmab.logs.log import Log
from rmab.model.arms import Arms
from rmab.model.problem import Problem

DEFAULT_HORIZON = 26


@dataclass(frozen=True, eq=False)
class Fit(ReadOnly):
    """A model of a programme, as `rmab.data.fit` returns it.

    Attributes
    ----------
    log : Log
        What it was fitted to.
    groups : tuple of str
        The G groups in words; one, 'everybody', where there are none.
    group_of : (N,) int array
        The group of every arm.
    tree : Tree
        How groups are nested.
    counts : (G, S, 2, S) int array
        The transitions that were seen.
    rows : Shrinkage
        Kernels (G, S, 2, S) shrink towards those of larger groups, how strongly, and what was never seen.
    pay : Pay
        Rewards (G, S, 2), and what they mean in words.
    situation : Situation
        Where everybody is now.
    present : (N',) int array
        The arms that are still there: all, unless some count as gone.
    notes : tuple of Note
        What is worth knowing: of the log, and what had to be assumed.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called", groups=["age"])
    >>> fitted = rmab.data.fit(log, reward={"engaged": 1})
    >>> fitted
    Fit(200 arms in 3 groups, 3 states, for 2024-W20)
    >>> fitted.problem(budget=10, horizon=12)
    Problem(Arms(200 arms, 3 states, 3 groups), budget 10, horizon 12)
    """

    log: Log
    groups: tuple[str, ...]
    group_of: IntArray
    tree: Tree
    counts: IntArray
    rows: Shrinkage
    pay: Pay
    situation: Situation
    present: IntArray
    notes: tuple[Note, ...]

    @property
    def kernels(self) -> FloatArray:
        """(G, S, 2, S) the kernel of every group."""
        return self.rows.kernels

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """(N',) the ids of the arms that are still there."""
        return tuple(self.log.arms[n] for n in self.present)

    @property
    def start(self) -> IntArray | FloatArray:
        """(N',) the state of every arm now; (N', S) probabilities, where some were not seen."""
        belief = self.situation.belief[self.present]
        return np.asarray(belief.argmax(axis=1)) if (belief.max(axis=1) == 1.0).all() else belief

    @property
    def reward(self) -> FloatArray:
        """(N', S, 2) the reward of every arm."""
        return np.asarray(self.pay.table[self.group_of[self.present]])

    @cached_property
    def usual_budget(self) -> int:
        """How many arms were acted on in a period of the log, on average; at least 1."""
        done = np.bincount(self.log.period, weights=self.log.action == 1, minlength=self.log.periods.count)
        known = np.bincount(self.log.period, weights=self.log.action >= 0, minlength=self.log.periods.count) > 0
        usual = max(1, round(float(done[known].mean()))) if known.any() else 1
        return min(usual, self.present.size)

    def problem(self, budget: int, horizon: int = DEFAULT_HORIZON) -> Problem:
        """Return the problem from here on: arms still there, in the order of `ids`, and where they are.

        Parameters
        ----------
        budget : int
            How many arms can be acted on in a period.
        horizon : int
            For how many periods to plan.

        Returns
        -------
        Problem
            Plan it with `rmab.plan(problem, fit.reward)`, for instance.
        """
        groups, group_of = np.unique(self.group_of[self.present], return_inverse=True)
        arms = Arms.of_groups(self.kernels[groups], group_of.reshape(-1), state_names=self.log.state_names)
        return Problem(arms, self.start, as_integer(budget, "budget"), as_integer(horizon, "horizon"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, with the records behind it, to one file `.npz` or `.json`; FileError if it cannot be written."""
        from rmab.estimation.storing import save_fit  # noqa: PLC0415  (it builds fits)

        save_fit(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Fit:
        """Read a model that `save` wrote; FileError if the file is none."""
        from rmab.estimation.storing import load_fit  # noqa: PLC0415

        return load_fit(path)

    def __repr__(self) -> str:
        groups = f" in {many(len(self.groups), 'group')}" if len(self.groups) > 1 else ""
        states = many(len(self.log.state_names), "state")
        return f"Fit({many(self.present.size, 'arm')}{groups}, {states}, for {self.situation.label})"


def fit(
    log: Log,
    *,
    reward: Mapping[str, float] | None = None,
    clusters: int | str | None = None,
    gone_after: int | None = None,
    seed: int = 0,
) -> Fit:
    """Fit a model to a log.

    Parameters
    ----------
    log : Log
        From `rmab.data.read_log`.
    reward : dict of str to float, optional
        What a period in a state is worth: ``{"engaged": 1}``; other states are worth 0. By default it is learned from the
        log's rewards. Where there are none, the best state is worth 1: the last one, where their order means something, or
        else the one that actions make more likely; `notes` says which.
    clusters : int or 'auto', optional
        Part the arms by how they behave, into so many clusters, or as many as BIC says, instead of by their groups.
    gone_after : int, optional
        Arms without a record in the last so many periods have left, and are not planned for. By default nobody has.
    seed : int
        Of the clusters.

    Returns
    -------
    Fit
        Kernels of every group, shrink towards those of larger groups as far as the data say; rewards; where everybody is.

    Raises
    ------
    ModelError
        Where an argument is wrong, or nothing can be learned from the log.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called")
    >>> rmab.data.fit(log, reward={"engaged": 1}).kernels.shape
    (1, 3, 2, 3)
    """
    expect(log, Log, "log", "; read one with rmab.data.read_log")
    if len(log.state_names) < 2:
        raise ModelError(f"the log has one state only, '{log.state_names[0]}': nothing can change")
    if log.transitions.arm.size == 0:
        known = (log.action >= 0).any()
        what = "known states in two periods that follow each other, with the action between them" if known else ""
        raise ModelError(f"the log shows no change: no arm has {what or 'a known action'}")
    notes: list[Note] = []
    if clusters is None:
        tree, group_of, levels = Tree.of(log.factor_of)
        groups = _labels(log, levels)
    else:
        group_of, groups, told = cluster_arms(log, clusters, as_integer(seed, "seed"))
        tree = Tree((np.arange(len(groups)),), (np.zeros(len(groups), dtype=np.int64),))
        notes.append(Note(told))
    counts = counted(log, group_of, len(groups))
    rows = shrink(counts.astype(np.float64), tree)
    pay = pay_of(log, reward, group_of, counts)
    situation = find_situation(log, rows.kernels, group_of)
    present = _present(log, situation, gone_after, notes)
    notes += [Note(one) for one in (*pay.notes, *_unseen(log, rows.unseen))]
    everything = (frozen(group_of), tree, frozen(counts), rows, pay, situation, frozen(present))
    return Fit(log, groups, *everything, (*log.notes, *notes))


def _labels(log: Log, levels: IntArray) -> tuple[str, ...]:
    values = list(log.factors.values())
    if not values:
        return ("everybody",)
    return tuple(", ".join(values[f][k] for f, k in enumerate(row)) for row in levels)


def _present(log: Log, situation: Situation, gone_after: int | None, notes: list[Note]) -> IntArray:
    """Return the arms that are still there, and note who may not be."""
    everyone = np.arange(len(log.arms))
    unit = log.periods.unit
    if gone_after is None:
        silent = int((situation.unseen_for > SILENT).sum())
        if silent:
            said = f"{many(silent, 'arm')} of {len(log.arms):,} {'has' if silent == 1 else 'have'} no record in the last"
            notes.append(Note(f"{said} {SILENT} {unit}s; if they have left, gone_after={SILENT} leaves them out"))
        return everyone
    limit = as_integer(gone_after, "gone_after")
    if limit < 1:
        raise ModelError(f"gone_after must be at least 1, got {limit}")
    there = everyone[situation.unseen_for <= limit]
    if there.size == 0:
        raise ModelError(f"gone_after={limit}: no arm has a record in the last {many(limit, unit)}")
    if there.size < everyone.size:
        gone = everyone.size - there.size
        notes.append(Note(f"{many(gone, 'arm')} without a record in the last {many(limit, unit)} are taken to have left"))
    return there


SILENT = 8  # periods without a record after which an arm may have left


def _unseen(log: Log, unseen: BoolArray) -> list[str]:
    """Say which actions were never seen in which states, and what is assumed."""
    told = []
    for s, name in enumerate(log.state_names):
        if unseen[s].all():
            told.append(f"nobody was ever seen leaving '{name}': nothing is known here; arms in it are taken to stay")
        elif unseen[s, 1]:
            told.append(f"no {log.word} was ever seen in '{name}': nothing is known here; it is taken to change nothing")
        elif unseen[s, 0]:
            told.append(f"'{name}' was never seen without {log.a_word}: its effect is not known, and taken to be none")
    return told


def fields_of(one: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name."""
    return {name: getattr(one, name) for name in one.__dataclass_fields__}
