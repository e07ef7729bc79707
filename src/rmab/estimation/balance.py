"""Weights of actions that a programme chose by its own earlier records.

A group that did badly by chance gets fewer places afterwards, and stays underestimated: means of records that were collected
adaptively are too low (Nie, Tian, Taylor & Zou 2018). The cause is the number of records, which depends on earlier outcomes;
given the past, each of them is fair. So let e be the number of actions expected in a group, state and period, as the chances
of the lists say, and weigh each action there by e^-POWER. With 1, every period counts alike, whatever happened before, and
nothing is biased, but periods with few actions make the mean unsure; with 0 it is the plain mean. 1/2 makes the variance of
all periods equal (Hadad, Hirshberg, Zhan, Wager & Athey 2021), and takes half of the bias. Where no chance is recorded, e is
the mean of such periods. Weights are scaled to the number of records that would tell as much.
"""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray
from rmab.estimation.fit import Fit

POWER = 0.5
LEAST = 0.05  # actions expected in a period, at least: no record counts for more than five


def balance(fit: Fit) -> FloatArray:
    """(M,) the weight of every transition: 1, but for actions of a log with chances."""
    log = fit.require_log()
    moves, weights = log.transitions, np.ones(log.transitions.arm.size)
    if log.chance is None:
        return weights
    count, states = log.periods.count, len(log.state_names)
    row = np.searchsorted(log.arm_of * count + log.period, moves.arm * count + moves.period)
    chance, acted = log.chance[row], np.flatnonzero(moves.action == 1)
    cell, drawn = fit.group_of[moves.arm] * states + moves.state, ~np.isnan(chance)
    cells, place = len(fit.groups) * states, cell * count + moves.period
    listed, seen = (np.bincount(one, minlength=count) > 0 for one in (moves.period[drawn], moves.period))
    expected = np.bincount(place, weights=np.where(drawn, chance, 0.0), minlength=cells * count).reshape(cells, count)
    usual = np.bincount(cell[acted], weights=~listed[moves.period[acted]], minlength=cells) / max((seen & ~listed).sum(), 1)
    expected = np.where(listed, expected, usual[:, np.newaxis])
    weights[acted] = np.maximum(expected[cell[acted], moves.period[acted]], LEAST) ** -POWER
    total, squares = (np.bincount(cell[acted], weights=weights[acted] ** k, minlength=cells) for k in (1, 2))
    weights[acted] *= (total / np.maximum(squares, LEAST))[cell[acted]]
    return weights
