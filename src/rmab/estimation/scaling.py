"""Tilts of nodes by generalised scaling (Darroch & Ratcliff 1972): what is seen over what is expected, until both agree."""

from __future__ import annotations

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.estimation.strength import FAINT

STEEPEST = 1e40  # a tilt, beyond which a chance is 0 or 1 for all purposes
PASSES, STILL = 20, 1e-3  # of one tilt, and when it has settled


def normal(rows: FloatArray) -> FloatArray:
    """Return rows (..., Y), each with the sum 1."""
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def gather(own: FloatArray, centre: FloatArray, node: IntArray) -> tuple[FloatArray, FloatArray]:
    """Two (n, S, Y): what was seen in every node, and the mean of the centres of its visits."""
    visits = own.sum(axis=2, keepdims=True)
    seen, expected = (add_up(one, node) for one in (own, (visits + 1e-9) * centre))
    return seen, normal(expected)


def add_up(several: FloatArray, node: IntArray) -> FloatArray:
    """(n, ...) the sums over the groups of every node."""
    total = np.zeros((int(node.max()) + 1, *several.shape[1:]))
    np.add.at(total, node, several)
    return total


def find_tilts(
    own: FloatArray, centre: FloatArray, node: IntArray, force: FloatArray, rng: np.random.Generator | None = None
) -> FloatArray:
    """(n, S, Y) the tilts of nodes, with a prior of force (S,) visits, by generalised scaling; 1 where nothing was seen."""
    seen, mean = gather(own, centre, node)
    prior = force[:, np.newaxis] * mean
    prior = prior if rng is None else np.maximum(rng.gamma(prior), FAINT * mean)
    size, visits = prior.sum(axis=2, keepdims=True), own.sum(axis=2, keepdims=True)
    known = (seen.sum(axis=2, keepdims=True) > 0) & (mean > 0)
    tilt = np.ones_like(mean)
    for _ in range(PASSES):
        expected = add_up(visits * normal(centre * tilt[node]), node) + size * normal(mean * tilt)
        with np.errstate(over="ignore"):  # what is seen though it is hardly expected: the tilt is bounded below
            factor = np.divide(seen + prior, expected, out=np.ones_like(tilt), where=known & (expected > 0))
        tilt = np.clip(tilt * np.clip(factor, 1.0 / STEEPEST, STEEPEST), 1.0 / STEEPEST, STEEPEST)
        if abs(factor - 1).max() < STILL:
            break
    return tilt


def find_common_tilt(
    own: FloatArray, centre: FloatArray, inverse: BoolArray, force: float, rng: np.random.Generator | None = None
) -> FloatArray:
    """(S, Y) the tilt of all states, with a prior of force visits; in some states (S,) its inverse.

    What is seen in those counts like what is expected elsewhere: generalised scaling with the two sides exchanged.
    """
    everybody, power = np.zeros(len(own), dtype=np.int64), np.where(inverse, -1.0, 1.0)[:, np.newaxis]
    visits = own.sum(axis=2, keepdims=True)
    mean = normal(((visits + 1e-9) * centre).sum(axis=(0, 1)))
    prior = force * mean
    prior = prior if rng is None else np.maximum(rng.gamma(prior), FAINT * mean)
    seen, tilt = own.sum(axis=0), np.ones_like(mean)
    for _ in range(PASSES):
        said = add_up(visits * normal(centre * tilt**power), everybody)[0]
        more, less = np.where(inverse[:, np.newaxis], (said, seen), (seen, said)).sum(axis=1)
        less = less + prior.sum() * normal(mean * tilt)
        factor = np.divide(more + prior, less, out=np.ones_like(tilt), where=(mean > 0) & (less > 0))
        tilt = np.clip(tilt * factor, 1.0 / STEEPEST, STEEPEST)
        if abs(factor - 1).max() < STILL:
            break
    return np.asarray(tilt**power)
