"""What a contract's check says about a broken implementation."""

import pytest


def broken(check, part):
    """Return the line with which a check refuses a part."""
    with pytest.raises(AssertionError) as caught:
        check(part)
    return str(caught.value)
