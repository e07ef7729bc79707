"""Validation of arguments: numbers, arrays and available memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.errors import ModelError

try:
    import resource
except ImportError:  # not on this system
    resource = None  # type: ignore[assignment]

SMALL = 2**28  # smaller sizes in bytes are not checked
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def check_memory(what: str, size: float) -> None:
    """Raise ModelError if `what` needs more bytes than are available: 'simulate would need 745 GB of memory (...)'."""
    if size > SMALL and size > (there := available()):
        raise ModelError(f"{what} would need {in_words(size)} of memory; {in_words(there)} are available")


def available() -> float:
    """Return the number of bytes available to this process; infinite if the system does not report it."""
    return min(_of_machine(), _of_group(), _of_process())


def in_words(size: float) -> str:
    """Format a number of bytes with at most three digits: '745 GB'."""
    power = min(max(int(math.log10(max(size, 1.0)) // 3), 0), len(UNITS) - 1)
    value = size / 1000**power
    return f"{value:.3g} {UNITS[power]}" if value < 1e4 else f"{value:.0e} {UNITS[power]}"


def _of_machine() -> float:
    """Return the available memory of the machine; the total if only that is known."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return math.inf


def _of_group() -> float:
    """Return the available memory of the container; infinite outside of one."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        most, used = ((folder / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        return max(float(most) - float(used), 0.0)
    return math.inf


def _of_process() -> float:
    """Return the rest of the limit on this process's address space; infinite without a limit."""
    if resource is None:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with suppress(OSError, ValueError, IndexError):
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        return max(float(limit - used), 0.0)
    return float(limit)


LARGEST = 1e150  # limit of sums whose squares must be finite
SUMMED = 1e300  # limit of sums that are not squared


def as_floats(values: ArrayLike, name: str) -> FloatArray:
    """Copy `values` into a C-ordered float64 array; raise ModelError if they are not numbers, masked, or too many."""
    check_unmasked(values, name)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise TypeError(f"found {given.dtype}")
        check_memory(f"{name}, {given.shape}", 8.0 * given.size)
        return np.array(given, dtype=np.float64, order="C")
    except ModelError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{name}: not an array of numbers ({error})", code="not-numbers", field=name) from error
    except MemoryError as error:
        size = 8 * int(np.size(values)) / 1e9
        raise ModelError(
            f"{name} needs {size:,.1f} GB of memory, more than is available", code="no-memory", field=name
        ) from error


def expect(value: object, kind: type, name: str, hint: str = "") -> None:
    """Raise ModelError, with a hint, unless the value has this type."""
    if not isinstance(value, kind):
        wanted = _with_article(kind.__name__)
        raise ModelError(f"{name} must be {wanted}, got {type(value).__name__}{hint}", code="wrong-type", field=name)


def _with_article(name: str) -> str:
    return {"str": "text"}.get(name, f"an {name}" if name[0] in "AEIO" else f"a {name}")


def check_rng(rng: object) -> None:
    """Raise ModelError unless this is a NumPy generator."""
    if not isinstance(rng, np.random.Generator):
        raise ModelError(f"rng must be a numpy.random.Generator, for example default_rng(0), got {type(rng).__name__}")


def is_number(value: object) -> TypeGuard[float]:
    """Return whether this is a number, and not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_several(values: object) -> bool:
    """Return whether this is an iterable of values: not a string, and not an array without a dimension.

    Examples
    --------
    >>> is_several(["ann", "bea"]), is_several("ann"), is_several(np.array("ann"))
    (True, False, False)
    """
    return isinstance(values, Iterable) and not isinstance(values, str) and getattr(values, "ndim", 1) > 0


def is_builtin(thing: object) -> bool:
    """Return whether the class of an object belongs to this library."""
    return type(thing).__module__.startswith("rmab.")


def as_share(value: object, name: str) -> float:
    """Return `value` as a float; raise ModelError unless it is a number from 0 to 1."""
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise ModelError(f"{name} must be in [0, 1], got {value!r:.40}", field=name)
    return float(value)


def check_unmasked(values: object, name: str) -> None:
    """Raise ModelError for masked arrays, also in a list: masked values would be used as data."""
    several = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(one, np.ma.MaskedArray) for one in several):
        raise ModelError(f"{name} must not be a masked array; replace masked values with .filled(...)", field=name)


def as_integer(value: object, name: str) -> int:
    """Return `value` as an int; raise ModelError unless it is a whole number below 2^53 (2.0, but not 2.5, True or '2')."""
    value = value.item() if isinstance(value, np.generic) else value  # float16 has no 2^53
    if not is_number(value) or not -(2**53) < value < 2**53 or value != int(value):
        limit = " below 2^53" if is_number(value) and abs(value) >= 2**53 else ""
        raise ModelError(f"{name} must be a whole number{limit}, got {value!r:.40}", field=name)
    return int(value)


def as_mask(values: ArrayLike, name: str, size: int) -> BoolArray:
    """Return bools (size,); raise ModelError unless all are True or False, or 0 or 1."""
    given = np.asarray(as_floats(values, name))
    if given.shape != (size,) or not np.isin(given, (0.0, 1.0)).all():
        raise ModelError(f"{name} must be {size} values True or False, got shape {given.shape}", field=name)
    return given.astype(bool)


def as_amount(value: object, name: str) -> float:
    """Return `value` as a float; raise ModelError unless it is a finite number, 0 or more."""
    if not is_number(value) or not 0.0 <= value < np.inf:
        raise ModelError(f"{name} must be a finite number, 0 or more, got {value!r:.40}", field=name)
    return float(value)


def as_seed(seed: object, *, any_size: bool = False) -> int:
    """Return a seed; raise ModelError unless it is a whole number, 0 or more, and below 2^53 unless any_size."""
    large = any_size and isinstance(seed, int) and not isinstance(seed, bool)
    if (number := int(seed) if large else as_integer(seed, "seed")) < 0:  # type: ignore[call-overload]
        raise ModelError(f"seed must be 0 or more, got {number}", field="seed")
    return number


def check_magnitude(values: FloatArray, name: str, times: float = 1.0, what: str = "", limit: float = LARGEST) -> None:
    """Raise ModelError if the largest finite value, multiplied by `times`, may overflow."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= limit / max(times, 1.0):
        wrong = f"{largest:.3g}{what} is too large; the limit is {limit:.0e}"
        raise ModelError(f"{name}: {wrong}", code="too-large", field=name)


def as_tolerance(value: object, name: str) -> float:
    """Return `value` as a float; raise ModelError unless it is a positive number of at most 1e300."""
    if not is_number(value) or not 0.0 < value <= SUMMED:
        raise ModelError(f"{name} must be a positive number, got {value!r:.40}", field=name)
    return float(value)


def as_states(start: ArrayLike, sizes: IntArray, *, one_for_all: bool = False) -> IntArray:
    """Return the state (N,) of each arm, or raise ModelError unless 0 <= start < sizes (N,).

    one_for_all: whether a single number is allowed, for all arms.
    """
    given = as_floats(start, "start")
    if one_for_all and given.ndim == 0:
        given = np.full(sizes.size, given)
    if given.shape != sizes.shape:
        wanted = "be one state or have" if one_for_all else "have"
        raise ModelError(f"start must {wanted} shape ({sizes.size},), got {given.shape}", code="bad-shape", field="start")
    for n in np.flatnonzero(~((given >= 0) & (given < sizes) & (given == np.floor(given))))[:1]:
        wrong = f"start[{n}] must be in 0..{sizes[n] - 1} (the states of arm {n}), got {given[n]:g}"
        raise ModelError(wrong, field="start", arm=n)
    return frozen(given.astype(np.int64))


def as_table(
    values: ArrayLike, name: str, shape: tuple[int, ...], low: float = -LARGEST, high: float = LARGEST
) -> FloatArray:
    """Copy `values` into a read-only float64 array; raise ModelError unless they have this shape and range."""
    given = as_floats(values, name)
    given = given.reshape(shape) if given.size == 0 == math.prod(shape) else given
    if given.shape != shape:
        raise ModelError(f"{name} must have shape {shape}, got {given.shape}")
    for at in np.argwhere(~((given >= low) & (given <= high)))[:1]:
        place = ", ".join(map(str, at))
        raise ModelError(f"{name}[{place}] must be in {low:g}..{high:g}, got {given[tuple(at)]:g}")
    return frozen(given)


def as_indices(values: ArrayLike, name: str, shape: tuple[int, ...], stop: int, start: int = 0) -> IntArray:
    """Copy `values` into a read-only int64 array; raise ModelError unless they have this shape and are in start..stop-1."""
    given = as_table(values, name, shape, start, stop - 1)
    for at in np.argwhere(given != np.floor(given))[:1]:
        raise ModelError(f"{name}[{', '.join(map(str, at))}] must be a whole number, got {given[tuple(at)]:g}")
    return frozen(given.astype(np.int64))


def checked_text(text: str, name: str) -> str:
    """Return a text without NUL characters, which files cannot store, or raise ModelError."""
    if "\0" in text:
        raise ModelError(f"{name} must not contain a NUL character, got {text!r:.60}", field=name)
    return text
