"""The luck of a run: one generator for every purpose and episode, all from one seed."""

from __future__ import annotations

import numpy as np

SIMULATOR, REHEARSAL = 100, 101  # keys of the run's own streams; the task spawns its own from the same seed


def luck_of(seed: int, key: int, t: int, game: int = 0) -> np.random.Generator:
    """Return the generator of episode t for a purpose: the same for every learner.

    Where a task is played again and again, every game after the first has luck of its own.
    """
    again = (game,) if game else ()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, t, *again)))
