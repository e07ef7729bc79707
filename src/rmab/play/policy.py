"""Policies: which arms to activate at step h, given the states of all arms.

Any object with `act` is a policy; the common one is `rmab.play.index_policy.IndexPolicy`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import PolicyError

Rule = Literal["fill", "at-most", "auto"]
Rounding = Literal["top", "dependent"]
LARGE = 1_000_000  # tables with more numbers are checked step by step, to save memory


@runtime_checkable
class Policy(Protocol):
    """Anything with a method `act`, which decides one step at a time.

    A policy takes all random numbers from the generator passed to `act`. It has no memory, as rounds and threads share it. A
    policy that needs memory has a second method, ``begin(states, rng)``, which returns a new object with `act`: this object
    plays a single episode from these states, is called once at each step, and may store anything.

    Examples
    --------
    >>> import numpy as np
    >>> import rmab
    >>> class FirstArm:
    ...     def act(self, h, states, rng):
    ...         return np.arange(len(states)) == 0
    >>> isinstance(FirstArm(), rmab.Policy)
    True
    """

    def act(self, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """Return which arms to activate, (N,) bools, at step h in states (N,)."""
        ...


def begin_episode(policy: Policy, states: IntArray, rng: np.random.Generator) -> Policy:
    """Return the object that plays an episode from these states (N,): the result of `begin`, or the policy itself."""
    begin = getattr(policy, "begin", None)
    if not callable(begin):
        return policy
    player = begin(states, rng)
    if not isinstance(player, Policy):
        what = f"{type(policy).__name__}.begin(states, rng) must return an object with a method act(h, states, rng)"
        raise PolicyError(f"{what}, not {type(player).__name__}")
    return player


def checked_states(h: int, states: ArrayLike, arms: int, steps: int | None, most: int) -> IntArray:
    """Return the states (N,) of all arms; raise PolicyError unless they are integers below `most`, and h is below `steps`.

    steps: None for any number.
    """
    try:
        now: IntArray = np.asarray(states)
    except ValueError as error:
        raise PolicyError(f"states: not an array ({error})", code="not-numbers", field="states") from error
    if now.shape != (arms,) or now.dtype.kind not in "iu":
        wrong = f"states must be {arms} integers, one per arm, got shape {now.shape} of {now.dtype}"
        raise PolicyError(wrong, code="bad-shape", field="states")
    for n in np.flatnonzero((now < 0) | (now >= most))[:1]:
        raise PolicyError(f"arm {n} is in state {now[n]}, expected 0..{most - 1}", arm=n)
    if steps is not None and (isinstance(h, bool) or not isinstance(h, int | np.integer) or not 0 <= h < steps):
        raise PolicyError(f"step must be in 0..{steps - 1}, got {h!r:.40}", field="step")
    return now


def check_table(table: FloatArray, rounding: Rounding) -> None:
    """Raise PolicyError unless the table (N, H, S) or (N, S) has finite indices, or probabilities to be rounded."""
    parts = table.transpose(1, 0, 2) if table.ndim == 3 and table.size > LARGE else table[np.newaxis]
    if not all(_fine(part, rounding).all() for part in parts):
        where = tuple(int(i) for i in np.argwhere(~_fine(table, rounding))[0])
        names = ("arm", "step", "state") if table.ndim == 3 else ("arm", "state")
        location: dict[str, Any] = dict(zip(names, where, strict=True))
        place = ", ".join(f"{name} {i}" for name, i in location.items())
        need = "a finite index" if rounding == "top" else "a probability in [0, 1]"
        raise PolicyError(f"table: {place} needs {need}, got {table[where]}", field="table", **location)


def _fine(table: FloatArray, rounding: Rounding) -> BoolArray:
    return np.isfinite(table) if rounding == "top" else (table >= 0) & (table <= 1)
