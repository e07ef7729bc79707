"""Cases that go wrong in every way there is, to see that the driver says so. It is played only on request."""

from __future__ import annotations

import ctypes
import faulthandler
import time

import numpy as np

from fuzz.cases import Case

KINDS = 7
FINE, WRONG, CRASH, HANG, DEEP, GREEDY, BUSY = range(KINDS)


def play(case: Case) -> None:
    """Go wrong as the seed says."""
    fault = case.seed % KINDS
    case.count("planted")
    if fault == WRONG:
        raise AssertionError("planted: a certificate\nthat does not hold")
    if fault == CRASH:
        faulthandler.disable()  # this crash is meant: no trace of it on the screen
        ctypes.string_at(0)
    if fault == HANG:
        time.sleep(3600)
    if fault == DEEP:
        ctypes.PyDLL(None).sleep(3600)  # holds the lock of the interpreter
    while fault == BUSY:
        pass
    if fault == GREEDY:
        np.ones(10**12)
