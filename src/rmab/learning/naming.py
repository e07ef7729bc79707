"""What a learner or a part is called: the same text in every process, another for other options."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np

from rmab.learning.options import Configured


def ours(thing: Configured) -> bool:
    """Return whether it and its parts are of this library, so that none can change once it is made."""
    components = (one for one in vars(thing).values() if isinstance(one, Configured))
    return type(thing).__module__.startswith("rmab.") and all(map(ours, components))


def described(value: object) -> str:
    """Return a text for an option that is no plain value: the same in every process, another for another value."""
    if isinstance(value, Configured):
        own = ", ".join(f"{key}={json.dumps(one, default=described)}" for key, one in value.options.items())
        return f"{named(type(value))}({own})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]}"
    return named(value) if isinstance(value, type) else f"{named(type(value))} {value!r}".partition(" at 0x")[0]


def named(cls: type) -> str:
    """Return the name of a class, with its module where it is not of this library."""
    return cls.__qualname__ if cls.__module__.startswith("rmab.") else f"{cls.__module__}.{cls.__qualname__}"
