"""Fit a model to a log, or to statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, IntArray, as_floats, as_indices, as_seed, expect
from rmab.errors import ModelError, many
from rmab.estimation.clusters import cluster_arms
from rmab.estimation.fit import Fit
from rmab.estimation.gaps import find_missing, weigh_states
from rmab.estimation.leaving import find_leaving, find_silence
from rmab.estimation.rewards import make_pay
from rmab.estimation.shrinkage import Levels, shrink
from rmab.estimation.situation import Situation, find_situation
from rmab.estimation.statistics import Statistics
from rmab.logs.findings import Note
from rmab.logs.log import Log
from rmab.logs.roster import Roster
from rmab.logs.words import PLAIN_WORDS, Words
from rmab.model.arm_checks import checked_names


def fit(
    log: Log,
    *,
    reward: Mapping[str, float] | None = None,
    clusters: int | str | None = None,
    gone_after: int | None = None,
    randomised: bool = False,
    seed: int = 0,
) -> Fit:
    """Fit a model to a log.

    Parameters
    ----------
    log : Log
        From `rmab.data.read_log`.
    reward : dict of str to float, optional
        Reward of a period in a state: ``{"engaged": 1}``; 0 for other states. By default it is estimated from the
        log's rewards. If there are none, the best state has reward 1: the last one, if states are ordered, or
        the one that actions make more likely; see `notes`.
    clusters : int or 'auto', optional
        Number of clusters of arms by behaviour, or 'auto' to choose it by BIC, instead of groups by columns.
    gone_after : int, optional
        Arms without a record in so many last periods have left, and are not in the plan; the rate of leaving is part
        of the model. By default it is longer than gaps in the log usually are.
    randomised : bool
        Whether actions were drawn at random within groups, states and periods. Benefits are then stated without the
        condition that nothing unrecorded influenced the choice. Not needed if the log has chances that groups, states and
        periods explain.
    seed : int
        Random seed of the clusters.

    Returns
    -------
    Fit
        Kernels of every group, shrunk towards those of larger groups as far as the data say; rewards; where everybody is.

    Raises
    ------
    ModelError
        If an argument is wrong, or the log has too few records.

    Examples
    --------
    >>> import rmab
    >>> table = rmab.data.example_log("mothers", arms=200, weeks=20)
    >>> log = rmab.data.read_log(table, arm="id", period="week", state="state", action="called")
    >>> rmab.data.fit(log, reward={"engaged": 1}).kernels.shape
    (1, 3, 2, 3)
    """
    expect(log, Log, "log", "; read one with rmab.data.read_log")
    number = as_seed(seed)
    if len(log.state_names) < 2:
        raise ModelError(f"the log has only one state, '{log.state_names[0]}'; it needs at least two")
    if log.transitions.arm.size == 0:
        known = (log.action >= 0).any()
        what = "known states in two periods that follow each other, with the action between them" if known else ""
        raise ModelError(f"the log shows no change: no arm has {what or 'a known action'}")
    notes: list[Note] = []
    if clusters is None:
        columns = _columns(log)
        levels, group_of, values = Levels.of(log.factor_of[:, columns])
        groups = _labels(log, values[:, np.argsort(columns)])
    else:
        group_of, groups, sentence = cluster_arms(log, clusters, number)
        levels = Levels(np.arange(len(groups))[np.newaxis])
        notes.append(Note(sentence))
    statistics = Statistics.from_log(log, group_of, len(groups))
    if reward is None and log.reward is not None and not len(statistics.numbers):
        raise ModelError("reward: no record has a reward, a state and an action")
    missing = find_missing(log)
    rows = shrink(statistics.counts * weigh_states(missing, statistics.counts), levels)
    pay = make_pay(statistics, log.state_names, log.words, reward, ordered=log.ordered)
    situation = find_situation(log, rows.kernels, group_of, missing=missing)
    silence = find_silence(log, gone_after)
    present = _present(log, situation, silence, gone_after is None, notes)
    notes += [Note(one) for one in (*pay.notes, *_unseen(log.state_names, log.words, rows.unseen))]
    words = replace(log.words, unit=pay.unit)
    model = (groups, group_of, levels, statistics, rows, pay, situation, present, (*log.notes, *notes))
    leaving = find_leaving(log, silence)
    return Fit(log.roster, log.state_names, words, *model, log, bool(randomised), clusters is not None, leaving, missing)


def fit_statistics(
    statistics: Statistics,
    *,
    group_of: ArrayLike,
    states: ArrayLike,
    ids: Sequence[object] | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    state_names: Sequence[str] | None = None,
    reward: Mapping[str, float] | None = None,
    waited: ArrayLike | None = None,
    words: Words = PLAIN_WORDS,
    period: str = "now",
) -> Fit:
    """Fit a model to statistics, without a log: for example of a live programme, or of runs.

    Parameters
    ----------
    statistics : Statistics
        Of G groups and S states.
    group_of : array_like of int, shape (N,)
        The group of every arm, as in the statistics. Each is shrunk towards all of them.
    states : array_like, shape (N,) or (N, S)
        Current states of the arms, or probabilities of states.
    ids : sequence, optional
        The ids of the arms; by default '0', '1', ...
    groups : dict of str to sequence of str, optional
        Columns of groups in words, each (N,): caps and fairness use them.
    state_names : sequence of str, optional
        The states; by default '0', '1', ...
    reward : dict of str to float, optional
        As in `fit`.
    waited : array_like of int, shape (N,), optional
        Periods since the last action of every arm; by default 0.
    words : Words
        Names of an action and a period.
    period : str
        Label of the planned period.

    Returns
    -------
    Fit
        A model for plans and decisions. Checks, effects and evaluations need single records and raise an error.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> counts = np.array([[[[8, 2], [4, 6]], [[3, 7], [1, 9]]]])
    >>> seen = rmab.data.Statistics.from_counts(counts)
    >>> found = rmab.data.fit_statistics(seen, group_of=[0, 0], states=[0, 1], reward={"1": 1})
    >>> rmab.data.decide(found, budget=1).ids
    ('0',)
    """
    expect(statistics, Statistics, "statistics")
    expect(words, Words, "words")
    expect(period, str, "period")
    size, count = statistics.counts.shape[1], len(statistics.counts)
    given = as_floats(states, "states")
    arms = len(given) if given.ndim else 0
    belief = given if given.ndim == 2 else np.eye(size)[as_indices(given, "states", (arms,), size)]
    names = checked_names(state_names, size) or tuple(map(str, range(size)))
    levels = Levels(np.arange(count)[np.newaxis][: count > 1])
    rows = shrink(statistics.counts, levels)
    pay = make_pay(statistics, names, words, reward, ordered=False)
    notes = tuple(Note(one) for one in (*pay.notes, *_unseen(names, words, rows.unseen)))
    labels = tuple(f"group {k + 1}" for k in range(count)) if count > 1 else ("everybody",)
    return Fit(
        roster=Roster.of(range(arms) if ids is None else ids, groups),
        state_names=names,
        words=replace(words, unit=pay.unit),
        groups=labels,
        group_of=as_indices(group_of, "group_of", (arms,), count),
        levels=levels,
        statistics=statistics,
        rows=rows,
        pay=pay,
        situation=Situation.of_belief(period, belief, waited),
        present=np.arange(arms),
        notes=notes,
    )


def _columns(log: Log) -> IntArray:
    """(F,) the columns of groups, the coarsest first, and by name: results do not depend on their order in the file."""
    names = list(log.factors)
    return np.array(sorted(range(len(names)), key=lambda f: (len(log.factors[names[f]]), names[f])), dtype=np.int64)


def _labels(log: Log, levels: IntArray) -> tuple[str, ...]:
    values = list(log.factors.values())
    if not values:
        return ("everybody",)
    return tuple(", ".join(values[f][k] for f, k in enumerate(row)) for row in levels)


def _present(log: Log, situation: Situation, silence: int, found: bool, notes: list[Note]) -> IntArray:
    """Return the arms that are still there, and note who is not; found: whether the silence is that of the log."""
    everyone = np.arange(len(log.arms))
    there = everyone[situation.unseen_for <= silence]
    last = f"more than {many(silence, log.periods.unit)} before the next list"
    if there.size == 0:
        raise ModelError(f"gone_after={silence}: the last record of every arm is {last}")
    if there.size < everyone.size:
        why = "; nearly all gaps in this log are shorter. gone_after (--gone-after) sets another limit" if found else ""
        gone = many(everyone.size - there.size, "arm")
        notes.append(
            Note(f"{gone} whose last record is {last} {'is' if gone == '1 arm' else 'are'} taken to have left{why}")
        )
    return there


def _unseen(names: Sequence[str], words: Words, unseen: BoolArray) -> list[str]:
    """Return sentences on actions that were never seen in a state, and what is assumed."""
    found = []
    for s, name in enumerate(names):
        if unseen[s].all():
            found.append(f"no arm was ever seen leaving '{name}'; arms in it are assumed to stay")
        elif unseen[s, 1]:
            found.append(f"the log has no {words.action} in '{name}': its effect there is assumed to be zero")
        elif unseen[s, 0]:
            found.append(
                f"the log has no record of '{name}' without {words.an_action}: its effect there is assumed to be zero"
            )
    return found
