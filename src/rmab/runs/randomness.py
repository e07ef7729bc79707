"""Random streams of a run: every purpose and every episode has its own, all from one seed and the same for every learner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIMULATOR, REHEARSAL = 100, 101  # keys of a run's streams; the task spawns its own from the same seed


def sequence_of(seed: int, key: int, t: int, game: int = 0) -> np.random.SeedSequence:
    """Return the seeds of episode t for a purpose; where a task is played again, every further game has others."""
    return np.random.SeedSequence(seed, spawn_key=(key, t, game) if game else (key, t))


def streams_of(seeds: Sequence[int], t: int, game: int = 0) -> NDArray[np.uint64]:
    """(R, 3, 4) streams of episode t for every seed: of the arms, of the policy, and of draws under a budget."""
    words = [np.random.PCG64(sequence_of(seed, SIMULATOR, t, game)).random_raw(12) for seed in seeds]
    return np.stack(words).reshape(-1, 3, 4)
