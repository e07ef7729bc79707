"""How far unrecorded influences could mislead: bounds on rows with an action, under selection of a stated strength.

Something unrecorded may be up to k times as frequent, or as rare, among those acted on as among others, and make any
outcome up to k times as likely. (That is not how many times as likely it makes an action: where actions are frequent, it
may be more frequent by a larger factor among those acted on.) Then a chance T that is seen after actions is T / B to T B
without that selection, with B = k^2 / (2 k - 1), and so is that of the contrary (Ding & VanderWeele 2016, "Sensitivity
analysis without assumptions"). States are ranked by what they are worth in the end, and the bounds are applied to the
chance of every state or a better one. They hold for each row at once, which is more than one such thing could do.

Only rows with an action are moved. As long as actions are rare, rows without one are close to what everybody would do
without one, and the range is on the safe side; where most arms are acted on, it need not be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, IntArray

STRENGTHS = (1.25, 1.5, 2.0)


@dataclass(frozen=True)
class Range:
    """What a plan may bring more than a rival under selection of up to a strength, with the 95% error of estimation."""

    strength: float
    low: float
    high: float


def bound_rows(kernels: FloatArray, rank: IntArray, strength: float, *, upper: bool) -> FloatArray:
    """(G, S, 2, S) kernels with the worst rows after an action that selection of a strength allows, or the best ones.

    rank (S,): the states, the worst first.

    Examples
    --------
    >>> kernels = np.full((1, 2, 2, 2), 0.5)
    >>> bound_rows(kernels, np.array([0, 1]), 2.0, upper=False)[0, 0, 1].round(3)
    array([0.625, 0.375])
    """
    factor = strength**2 / (2 * strength - 1)
    rows = np.asarray(kernels[:, :, 1])[..., rank]
    above = np.cumsum(rows[..., ::-1], axis=-1)[..., ::-1]  # the chance of this state or a better one
    if upper:
        moved = np.minimum(above * factor, 1 - (1 - above) / factor)
    else:
        moved = np.maximum(above / factor, 1 - (1 - above) * factor)
    moved = np.concatenate([np.clip(moved, 0.0, 1.0), np.zeros((*moved.shape[:-1], 1))], axis=-1)
    moved[..., 0] = 1.0
    found = np.array(kernels)
    found[:, :, 1][..., rank] = np.maximum(moved[..., :-1] - moved[..., 1:], 0.0)
    found[:, :, 1] /= found[:, :, 1].sum(axis=-1, keepdims=True)
    return found


def rank_states(kernel: FloatArray, worth: FloatArray, steps: int) -> IntArray:
    """(S,) the states, the worst first, by what they bring over some steps without an action: kernel (S, S), worth (S,)."""
    value = np.zeros(worth.size)
    for _ in range(steps):
        value = worth + kernel @ value
    return np.asarray(np.argsort(value, kind="stable"))
