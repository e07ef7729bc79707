"""What must hold in a process that was forked: the threads of its parent are gone, and what they had locked stays locked."""

import functools
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

Value = TypeVar("Value")


def in_child(renew: Callable[[], object]) -> None:
    """Call `renew` at the start of every forked child of this process, where there are forks at all."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


class cached_property(functools.cached_property[Value]):  # noqa: N801  (it stands for the one of functools)
    """The one of functools, always without a lock: before Python 3.12, all instances share one, and a fork may keep it.

    Threads may compute the value twice; whatever is cached here comes out the same.
    """

    def __init__(self, func: Callable[[Any], Value]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
