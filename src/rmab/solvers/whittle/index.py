"""Whittle indices of one arm: the price of activation at which a state's two actions are worth the same.

Infinite horizon: one sweep from the lowest price to the highest, O(S^3), with a verdict on indexability (after Gast, Gaujal
& Khun 2023). Finite horizon: values as functions of the price, piecewise linear and exact.
"""

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError
from rmab.solvers.whittle.compiled.sweep import sweep

BLOCK = 64  # states that become passive between two products of matrices
ROUNDING = 1e-10  # of slopes, and of gains relative to the largest: smaller ones say nothing about indexability
TOUCH = 1e-11  # relative to the total reward of an episode: smaller advantages may be rounding errors
SINGULAR = 1e-11  # smaller pivots: the arm has two recurrent classes


def arm_whittle(kernel: FloatArray, reward: FloatArray, discount: float) -> tuple[FloatArray, bool]:
    """(S,) indices of one arm, kernel (S,2,S) and reward (S,2), and whether it is indexable.

    x = M^-1 r and y = M^-1 1_active give the value x - price y of a policy; U = discount (P1 - P0); all active at first.
    """
    states, reward = len(reward), reward - reward.min()  # a constant only changes rounding
    change = discount * (kernel[:, 1] - kernel[:, 0])
    system = np.eye(states) - discount * kernel[:, 1]
    if discount == 1.0:  # the gain replaces the first state's value, which is 0
        system[:, 0], change[:, 0] = 1.0, 0.0
    try:
        response = np.ascontiguousarray(np.linalg.solve(system.T, change.T).T)  # U M^-1
    except np.linalg.LinAlgError as error:
        raise ModelError("more than one recurrent class if always active; give a discount below 1") from error
    gain = reward[:, 1] - reward[:, 0] + response @ reward[:, 1]
    slope, index, active = np.ones(states), np.empty(states), np.ones(states, dtype=bool)  # 1 + U M^-1 1, and U 1 = 0
    scale = float(np.abs(gain).max()) or 1.0
    block = min(BLOCK, states)
    columns, rows = np.empty((block, states)), np.empty((block, states))
    price, indexable, least = float(gain.min()), True, np.inf
    for start in range(0, states, block):
        if start:
            response -= columns.T @ rows
        limits = (ROUNDING, ROUNDING * scale)
        price, fits, pivot = sweep(response, gain, slope, active, price, *limits, columns, rows, index)
        indexable, least = indexable and fits, min(least, pivot)
    if not (np.isfinite(index).all() and least > SINGULAR):
        raise ModelError("more than one recurrent class under some policy; give a discount below 1")
    return index, indexable


def arm_whittle_finite(kernels: FloatArray, rewards: FloatArray, phase_of: IntArray) -> tuple[FloatArray, bool]:
    """(H, S) indices of one arm, kernels (K,S,2,S) and rewards (K,S,2), and whether it is indexable at every step (H,).

    Values are linear in the price between the kinks found so far: on the grid of these kinks they are exact, and so are the
    roots of Q(s,1) - Q(s,0), which are the kinks that this step adds. An arm is not indexable where that difference is
    negative at some price and positive at a higher one; if it only returns to 0, being passive stays optimal.
    """
    above = rewards - rewards.min(axis=(1, 2), keepdims=True)  # a constant reward changes no index
    states, horizon = rewards.shape[1], phase_of.size
    most = float(above[np.unique(phase_of)].max())  # a phase without a step has no effect
    reach = (horizon + 1) * (most or 1.0)  # beyond it, every state is passive, or active
    prices, values = np.array([-reach, reach]), np.zeros((states, 2))
    index, indexable = np.empty((horizon, states)), True
    fuzz, loose = 1e-13 * reach, TOUCH * reach
    for h in range(horizon - 1, -1, -1):
        kernel, pays = kernels[phase_of[h]], above[phase_of[h]]
        passive = pays[:, 0, np.newaxis] + kernel[:, 0] @ values
        active = pays[:, 1, np.newaxis] - prices + kernel[:, 1] @ values
        better = active - passive
        last = better.shape[1] - 1 - np.argmax(better[:, ::-1] > loose, axis=1)  # where being active still pays
        below = better < -fuzz
        first = np.argmax(below & (np.arange(prices.size) > last[:, np.newaxis]), axis=1)  # where it costs, from then on
        index[h] = _roots(prices, better, np.arange(states), first - 1)
        indexable = indexable and not bool((below & (np.arange(prices.size) < last[:, np.newaxis])).any())
        state, cell = np.nonzero((better[:, :-1] > -fuzz) != (better[:, 1:] > -fuzz))
        roots = np.sort(_roots(prices, better, state, cell))
        prices, values = _refine_grid(prices, passive, active, roots, fuzz)
    return index, indexable


def _roots(prices: FloatArray, better: FloatArray, state: IntArray, cell: IntArray) -> FloatArray:
    """Return the prices at which better[state] is 0 within these cells of the grid."""
    left, right = better[state, cell], better[state, cell + 1]
    share = np.clip(left / (left - right), 0.0, 1.0)
    return np.asarray(prices[cell] + share * (prices[cell + 1] - prices[cell]))


def _refine_grid(
    prices: FloatArray, passive: FloatArray, active: FloatArray, roots: FloatArray, fuzz: float
) -> tuple[FloatArray, FloatArray]:
    """Return the grid with the roots that are not next to one of its points, and the values (S, L) of the better action."""
    fresh = roots[np.diff(roots, prepend=-np.inf) > fuzz]
    place = np.clip(np.searchsorted(prices, fresh), 1, prices.size - 1)
    apart = (fresh - prices[place - 1] > fuzz) & (prices[place] - fresh > fuzz)
    fresh, place = fresh[apart], place[apart]
    part = (fresh - prices[place - 1]) / (prices[place] - prices[place - 1])
    between = [worth[:, place - 1] + part * (worth[:, place] - worth[:, place - 1]) for worth in (passive, active)]
    values = np.insert(np.maximum(passive, active), place, np.maximum(*between), axis=1)
    return np.insert(prices, place, fresh), values
