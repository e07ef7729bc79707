"""Arms: the transition kernels of a restless bandit (paper, Section 3), checked once and never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common.arrays import BoolArray, FloatArray, IntArray, frozen
from rmab.common.checks import as_floats, as_integer
from rmab.errors import ModelError

__all__ = ["Arms"]

ROW_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Arms:
    """N arms with S states each: their transition kernels, and what is structurally known about them.

    kernels      (N, S, 2, S) floats: kernels[n, s, a, s'] is the probability that arm n moves from s to s' under action a.
    state_names  S names, or None.
    groups       N labels (any integers or strings), kept as integers 0, 1, ... in order of first appearance: arms of one
                 group share their dynamics. None means that every arm is its own group.
    support      (N, S, 2, S) bools, False where a transition is known to be impossible, or None.
    sizes        (N,) how many of the S states arm n really has; the rest is padding that it never reaches. None means S.
    """

    kernels: FloatArray
    state_names: tuple[str, ...] | None = None
    groups: IntArray | None = None
    support: BoolArray | None = None
    sizes: IntArray | None = None

    def __init__(
        self,
        kernels: ArrayLike,
        *,
        state_names: Sequence[str] | None = None,
        groups: Sequence[object] | NDArray[Any] | None = None,
        support: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ) -> None:
        table = as_floats(kernels, "kernels")
        if table.ndim != 4 or table.shape[1] != table.shape[3] or table.shape[2] != 2 or 0 in table.shape:
            raise ModelError(f"kernels must have shape (N, S, 2, S) with N, S >= 1, got {table.shape}")
        _check_rows(table)
        self._set(
            kernels=frozen(table),
            state_names=_checked_names(state_names, table.shape[1]),
            groups=_checked_groups(groups, table),
            support=_checked_support(support, table),
            sizes=_checked_sizes(sizes, table),
        )
        self._check_groups_agree()

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def identical(
        cls,
        kernel: ArrayLike,
        count: int,
        *,
        state_names: Sequence[str] | None = None,
        support: ArrayLike | None = None,
    ) -> "Arms":
        """Build `count` arms with the same (S, 2, S) kernel and support: one group, stored once."""
        one = as_floats(kernel, "kernel")
        number = as_integer(count, "count")
        if one.ndim != 3 or number < 1:
            raise ModelError(f"identical arms need a kernel (S, 2, S) and count >= 1, got {one.shape} and {number}")
        allowed = None if support is None else as_floats(support, "support")[np.newaxis]
        single = cls(one[np.newaxis], state_names=state_names, support=allowed)
        return single.repeated(number)

    @classmethod
    def of_sizes(cls, kernels: Sequence[ArrayLike], *, groups: Sequence[object] | None = None) -> "Arms":
        """Build arms of different size from kernels (S_n, 2, S_n), padded to the largest.

        A padded state is left by no one and entered by no one: it stays where it is, and the support says so.
        """
        tables = [as_floats(kernel, f"kernels[{n}]") for n, kernel in enumerate(kernels)]
        for n, table in enumerate(tables):
            if table.ndim != 3 or table.shape[0] != table.shape[2] or table.shape[1] != 2 or table.shape[0] < 1:
                raise ModelError(f"kernels[{n}] must have shape (S, 2, S) with S >= 1, got {table.shape}")
        if not tables:
            raise ModelError("kernels: at least one arm is needed")
        sizes = np.array([table.shape[0] for table in tables])
        width = int(sizes.max())
        padded = np.zeros((len(tables), width, 2, width))
        padded[:, np.arange(width), :, np.arange(width)] = 1.0
        support = padded > 0
        for n, table in enumerate(tables):
            padded[n, : sizes[n], :, : sizes[n]] = table
            support[n, : sizes[n], :, : sizes[n]] = True
        return cls(padded, groups=groups, support=support, sizes=sizes)

    def repeated(self, times: int) -> "Arms":
        """Return the same arms `times` times over: copies of arm n follow each other and share its group."""
        number = as_integer(times, "times")
        if number < 1:
            raise ModelError(f"times must be at least 1, got {number}")
        return _rebuilt_arms(
            self.kernels[self.representatives],
            frozen(np.repeat(self.group_of, number)),
            self.state_names,
            None if self.support is None else self.support[self.representatives],
            None if self.sizes is None else self.sizes[self.representatives],
        )

    @property
    def count(self) -> int:
        """N, the number of arms."""
        return len(self.kernels)

    @property
    def states(self) -> int:
        """S, the number of states of the largest arm."""
        return int(self.kernels.shape[1])

    @cached_property
    def group_of(self) -> IntArray:
        """(N,) the group of each arm: `groups`, or 0..N-1 where none were declared."""
        return frozen(np.arange(self.count)) if self.groups is None else self.groups

    @cached_property
    def representatives(self) -> IntArray:
        """(G,) the first arm of each group, so that kernels[representatives][group_of] is kernels."""
        return frozen(np.unique(self.group_of, return_index=True)[1])

    @property
    def real_states(self) -> IntArray:
        """(N,) the number of states of each arm without padding."""
        return np.full(self.count, self.states) if self.sizes is None else self.sizes

    @cached_property
    def cumulative(self) -> FloatArray:
        """(G, S, 2, S) running sums of each group's rows: the successor for u in [0, 1) is the first entry above u."""
        sums = np.cumsum(self.kernels[self.representatives], axis=3)
        # Rounding must not leave a gap below 1, nor let a u beyond the last sum reach an impossible state.
        sums[sums >= sums[..., -1:]] = 1.0
        return frozen(sums)

    def _check_groups_agree(self) -> None:
        if self.groups is None:
            return
        first = self.representatives[self.groups]
        for n in np.flatnonzero(first != np.arange(self.count)):
            m = first[n]
            pair = f"group {self.groups[n]}: arms {m} and {n} differ"
            if not np.array_equal(self.kernels[n], self.kernels[m]):
                s, a, y = np.argwhere(self.kernels[n] != self.kernels[m])[0]
                here, there = self.kernels[m, s, a, y], self.kernels[n, s, a, y]
                raise ModelError(f"{pair} at state {s}, action {a}, next state {y}: {here:.12g} and {there:.12g}")
            if self.support is not None and not np.array_equal(self.support[n], self.support[m]):
                raise ModelError(f"{pair} in their support")
            if self.sizes is not None and self.sizes[n] != self.sizes[m]:
                raise ModelError(f"{pair} in size: {self.sizes[m]} and {self.sizes[n]}")

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal, entry by entry."""
        if not isinstance(other, Arms):
            return NotImplemented
        return self.state_names == other.state_names and all(
            _same(getattr(self, name), getattr(other, name)) for name in ("kernels", "groups", "support", "sizes")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        groups = "" if self.groups is None else f", {len(self.representatives)} groups"
        return f"Arms({self.count} arms, {self.states} states{groups})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle one kernel per group: identical arms cost as much as one."""
        first = self.representatives
        support = None if self.support is None else self.support[first]
        sizes = None if self.sizes is None else self.sizes[first]
        return _rebuilt_arms, (self.kernels[first], self.groups, self.state_names, support, sizes)


def _rebuilt_arms(
    kernels: FloatArray,
    groups: IntArray | None,
    names: tuple[str, ...] | None,
    support: BoolArray | None,
    sizes: IntArray | None,
) -> Arms:
    """Build arms from one checked entry per group; a single group is broadcast, not copied."""

    def spread(values: Any) -> Any:
        if values is None or groups is None:
            return values if values is None else frozen(values)
        if len(values) == 1:
            return np.broadcast_to(values[0], (len(groups), *values.shape[1:]))
        return frozen(values[groups])

    arms = object.__new__(Arms)
    labels = None if groups is None else frozen(groups)
    arms._set(kernels=spread(kernels), groups=labels, state_names=names, support=spread(support), sizes=spread(sizes))
    return arms


def _check_rows(kernels: FloatArray) -> None:
    bad = ~(np.isfinite(kernels) & (kernels >= 0))
    if bad.any():
        n, s, a, y = np.argwhere(bad)[0]
        value = kernels[n, s, a, y]
        raise ModelError(f"kernels: arm {n}, state {s}, action {a}, next state {y} has probability {value}")
    sums = kernels.sum(axis=3)
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if off.any():
        n, s, a = np.argwhere(off)[0]
        raise ModelError(f"kernels: arm {n}, state {s}, action {a} has row sum {sums[n, s, a]:.12g}, not 1")


def _checked_names(names: Sequence[str] | None, states: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, Sequence | np.ndarray):
        raise ModelError(f"state_names must be a list of names, got {names!r}")
    result = tuple(str(name) for name in names)
    if len(result) != states or len(set(result)) != states:
        raise ModelError(f"state_names: {states} different names are needed, got {len(result)}: {', '.join(result)}")
    return result


def _checked_groups(groups: Sequence[object] | NDArray[Any] | None, kernels: FloatArray) -> IntArray | None:
    if groups is None:
        return None
    if not isinstance(groups, Sequence | np.ndarray):
        raise ModelError(f"groups must be a list of labels, one per arm, got {groups!r}")
    labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    if len(labels) != len(kernels):
        raise ModelError(f"groups: {len(kernels)} labels are needed, one per arm, got {len(labels)}")
    for n, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, int | str | np.integer):
            raise ModelError(f"groups: arm {n} has label {label!r}; labels are integers or strings")
    order = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return frozen(np.array([order[label] for label in labels], dtype=np.int64))


def _checked_support(support: ArrayLike | None, kernels: FloatArray) -> BoolArray | None:
    if support is None:
        return None
    given = as_floats(support, "support")
    if given.shape != kernels.shape:
        raise ModelError(f"support must have the shape of kernels, {kernels.shape}, got {given.shape}")
    if not np.isin(given, (0, 1)).all():
        raise ModelError("support must hold only True and False")
    allowed = given.astype(bool)
    clash = ~allowed & (kernels > 0)
    if clash.any():
        n, s, a, y = np.argwhere(clash)[0]
        where = f"arm {n}, state {s}, action {a}, next state {y}"
        raise ModelError(f"support: {where} is declared impossible but has probability {kernels[n, s, a, y]:.12g}")
    return frozen(allowed)


def _checked_sizes(sizes: ArrayLike | None, kernels: FloatArray) -> IntArray | None:
    if sizes is None:
        return None
    given = as_floats(sizes, "sizes")
    if given.shape != kernels.shape[:1]:
        raise ModelError(f"sizes must have shape ({len(kernels)},), got {given.shape}")
    for n, value in enumerate(given):
        size = as_integer(value, f"sizes[{n}]")
        if not 1 <= size <= kernels.shape[1]:
            raise ModelError(f"sizes[{n}] must be in 1..{kernels.shape[1]}, got {size}")
        entered = kernels[n, :size, :, size:]
        if entered.any():
            s, a, y = np.argwhere(entered > 0)[0]
            raise ModelError(f"sizes: arm {n} has {size} states but moves from {s} to {y + size} under action {a}")
    return frozen(given.astype(np.int64))


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
