"""Random numbers of lists: reproducible, and independent for every arm and purpose."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray

TIES = "ties"  # purpose of the random numbers that break ties


def draw_numbers(ids: Sequence[str], seed: int, about: str) -> FloatArray:
    """(N,) a number in [0, 1) for every arm, a hash of seed, topic and id."""
    salt = f"{seed}/{about}/".encode("utf-8", "surrogatepass")
    digests = [hashlib.blake2b(salt + one.encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids]
    return (np.frombuffer(b"".join(digests), dtype="<u8") >> np.uint64(11)).astype(np.float64) / 2.0**53


@dataclass(frozen=True)
class Randomness:
    """Random numbers in [0, 1), independent for every purpose: a hash of seed, period, purpose and id.

    Examples
    --------
    >>> source = Randomness(0, "2024-W11")
    >>> bool(source.numbers(["ann", "bea"], "ties")[0] == source.numbers(["ann"], "ties")[0] != source.number("ann"))
    True
    """

    seed: int = 0
    period: str = ""

    def numbers(self, ids: Sequence[str], purpose: str) -> FloatArray:
        """(N,) a number for every arm, unchanged when others join."""
        return draw_numbers(ids, self.seed, f"{self.period}/{purpose}")

    def number(self, purpose: str) -> float:
        """Return one number."""
        return float(self.numbers([""], purpose)[0])
