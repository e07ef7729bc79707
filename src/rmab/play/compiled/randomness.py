"""Random numbers inside compiled code: xoshiro256++ (Blackman & Vigna, ACM TOMS 2021), one state of four words per stream.

A stream is seeded with four words from a NumPy generator. Streams are cheap, so every round of a simulation has two, one
for the arms and one for the policy: the arms draw the same numbers whatever the policy draws.
"""

import numpy as np
from numpy.typing import NDArray

from rmab.common.compile import compiled

Word = np.uint64
Stream = NDArray[np.uint64]

_17, _19, _23, _41, _45, _11 = (np.uint64(shift) for shift in (17, 19, 23, 41, 45, 11))
_TWO_TO_MINUS_53 = 2.0**-53


@compiled
def drawn(s0: Word, s1: Word, s2: Word, s3: Word) -> tuple[float, Word, Word, Word, Word]:
    """Draw from [0, 1) and return the next state: for loops that keep the state in registers."""
    total = s0 + s3
    result = ((total << _23) | (total >> _41)) + s0
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _45) | (s3 >> _19)
    return (result >> _11) * _TWO_TO_MINUS_53, s0, s1, s2, s3


@compiled
def uniform(stream: Stream) -> float:
    """Draw from [0, 1) and advance the stream (4,) in place."""
    value, stream[0], stream[1], stream[2], stream[3] = drawn(stream[0], stream[1], stream[2], stream[3])
    return value


@compiled
def whole(stream: Stream, below: int) -> int:
    """Draw from 0..below-1 and advance the stream. (Its bias, below/2^53, is too small to notice.)"""
    return int(uniform(stream) * below)
