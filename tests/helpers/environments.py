"""What tests of the Gymnasium environments share: a small task, some steps, and what two of them said."""

from typing import Any

import numpy as np

SMALL: dict[str, Any] = {"arms": 4, "budget": 2, "horizon": 6, "episodes": 5}


def steps(env: Any, rng: np.random.Generator, count: int) -> list[Any]:
    """Return what an environment says to so many random actions."""
    return [env.step((rng.random(env.action_space.shape) < 0.5).astype(np.int8)) for _ in range(count)]


def assert_alike(one: Any, other: Any) -> None:
    """Compare what two environments said: numbers, arrays and dicts of them, to the last bit."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_alike(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_alike(a, b)
    else:
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)
