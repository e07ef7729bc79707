"""Arms: the transition kernels of a restless bandit (Xiong & Li 2024, Section 3), validated and immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmab.common import (
    BoolArray,
    FloatArray,
    IntArray,
    ReadOnly,
    as_floats,
    as_integer,
    cached_property,
    check_memory,
    frozen,
)
from rmab.errors import ModelError, many
from rmab.model.arm_checks import (
    check_groups_agree,
    checked_groups,
    checked_names,
    checked_rows,
    checked_sizes,
    checked_support,
)
from rmab.model.time import bare, check_phases


@dataclass(frozen=True, eq=False, init=False)
class Arms(ReadOnly):
    """N arms with S states each: their transition kernels, and what is known about their structure.

    Everything is validated at construction and stored as a read-only copy.

    Parameters
    ----------
    kernels : array_like of float, shape (N, S, 2, S) or (N, K, S, 2, S)
        ``kernels[n, s, a, y]`` is the probability that arm n moves from state s to state y under action a (0 passive,
        1 active). Every row sums to 1. A row whose sum is off by more than 1e-9 but at most 1e-6, as in printed or float32
        kernels, is divided by its sum, and a log message reports it once. If the kernels depend on the time, there is one
        table for each of K phases, and the problem assigns steps to phases (`rmab.Problem`).
    state_names : sequence of str, length S, optional
        Names of the states, all different.
    groups : sequence of int or str, length N, optional
        Arms with the same label share their dynamics. Labels are stored as integers 0, 1, ... in order of first
        appearance. By default, each arm is a separate group. `kernels`, `support` and `sizes` may have one entry per group
        (G) instead of one per arm: in the order 0, 1, ... if these are the labels, or in order of first appearance. Only
        the entries of the groups are stored.
    support : array_like of bool, shape of `kernels`, optional
        False for transitions that are known to be impossible.
    sizes : array_like of int, shape (N,), optional
        Number of states of each arm; the rest of S is padding that it never reaches. By default, all S.
    normalise : bool, optional
        Divide rows by their sums, even if these are far from 1, as long as they are positive and finite; a log message
        reports how many, and the largest deviation. By default such rows are an error.

    Raises
    ------
    ModelError
        If an argument is malformed; the message names the first wrong entry.

    Examples
    --------
    >>> import rmab
    >>> ill, well = [[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]  # rows: passive, active
    >>> rmab.Arms([[ill, well], [ill, ill]], state_names=["ill", "well"])
    Arms(2 arms, 2 states)

    A hundred thousand arms of two kinds cost no more than the two kernels:

    >>> rmab.Arms([[ill, well], [ill, ill]], groups=["young", "old"] * 50_000).group_kernels.shape
    (2, 2, 2, 2)
    """

    group_kernels: FloatArray  # (G, [K,] S, 2, S)
    state_names: tuple[str, ...] | None
    groups: IntArray | None
    group_support: BoolArray | None  # (G, [K,] S, 2, S)
    group_sizes: IntArray | None  # (G,)

    def __init__(
        self,
        kernels: ArrayLike,
        *,
        state_names: Sequence[str] | None = None,
        groups: Sequence[object] | NDArray[Any] | None = None,
        support: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
        normalise: bool = False,
    ) -> None:
        given = as_floats(kernels, "kernels")
        table = bare(given, 5)
        fits = table.ndim in (4, 5) and table.shape[-3] == table.shape[-1] and table.shape[-2] == 2
        if not fits or 0 in table.shape:
            wanted = "(N, S, 2, S), or (N, K, S, 2, S) for K phases, with N, K, S >= 1"
            raise ModelError(f"kernels must have shape {wanted}, got {given.shape}")
        table = checked_rows(table, normalise)
        names, labels = checked_names(state_names, table.shape[-1]), checked_groups(groups, len(table))
        tables: list[Any] = [table, checked_support(support, table), checked_sizes(sizes, table)]
        if labels is not None and len(table) == len(labels):
            first = np.unique(labels, return_index=True)[1]
            check_groups_agree(tables[0], tables[1], tables[2], labels, first)
            tables = [None if one is None else one[first] for one in tables]
        self._fill(labels, names, *tables)

    def _fill(
        self,
        groups: IntArray | None,
        names: tuple[str, ...] | None,
        kernels: FloatArray,
        support: BoolArray | None,
        sizes: IntArray | None,
    ) -> None:
        """Set all fields, from arrays by group."""
        for array in (groups, kernels, support, sizes):
            if array is not None:
                frozen(array)
        self._set(group_kernels=kernels, group_support=support, group_sizes=sizes, groups=groups, state_names=names)

    @classmethod
    def identical(
        cls,
        kernel: ArrayLike,
        count: int,
        *,
        state_names: Sequence[str] | None = None,
        support: ArrayLike | None = None,
        normalise: bool = False,
    ) -> Arms:
        """Build `count` arms with the same kernel and support, both (S, 2, S) or (K, S, 2, S): one group, stored once.

        With `normalise`, rows are divided by their sums, as in `Arms`.

        Examples
        --------
        >>> import rmab
        >>> rmab.Arms.identical([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]], 5)
        Arms(5 arms, 2 states, 1 group)
        """
        one = as_floats(kernel, "kernel")
        number = as_integer(count, "count")
        if one.ndim not in (3, 4) or number < 1:
            wanted = "a kernel (S, 2, S), or (K, S, 2, S) for K phases"
            raise ModelError(f"identical needs {wanted}, and count >= 1, got {one.shape} and {number}")
        allowed = None if support is None else as_floats(support, "support")[np.newaxis]
        single = cls(one[np.newaxis], state_names=state_names, support=allowed, normalise=normalise)
        return single.repeated(number)

    @classmethod
    def of_sizes(
        cls, kernels: Sequence[ArrayLike], *, groups: Sequence[object] | None = None, normalise: bool = False
    ) -> Arms:
        """Build arms of different sizes from kernels (S_n, 2, S_n) or (K, S_n, 2, S_n), padded to the largest.

        No arm enters a padded state; one that started there would stay. The support excludes these transitions, too. With
        `normalise`, rows are divided by their sums, as in `Arms`.
        """
        if not isinstance(kernels, Sequence | np.ndarray) or (isinstance(kernels, np.ndarray) and kernels.ndim == 0):
            raise ModelError(f"kernels must be a list of kernels, one per arm, got {type(kernels).__name__}")
        tables = [as_floats(kernel, f"kernels[{n}]") for n, kernel in enumerate(kernels)]
        for n, table in enumerate(tables):
            fits = table.ndim in (3, 4) and table.shape[-3] == table.shape[-1] and table.shape[-2] == 2
            if not fits or 0 in table.shape or table.shape[:-3] != tables[0].shape[:-3]:
                wanted = "(S, 2, S) with S >= 1, or (K, S, 2, S) with the same K phases for all arms"
                raise ModelError(f"kernels[{n}] must have shape {wanted}, got {table.shape}")
        if not tables:
            raise ModelError("kernels must have at least one arm")
        sizes = np.array([table.shape[-1] for table in tables])
        width = int(sizes.max())
        stay = np.repeat(np.eye(width)[:, np.newaxis], 2, axis=1)
        padded = np.broadcast_to(stay, (len(tables), *tables[0].shape[:-3], width, 2, width)).copy()
        support = padded > 0
        for n, table in enumerate(tables):
            padded[n, ..., : sizes[n], :, : sizes[n]] = table
            support[n, ..., : sizes[n], :, : sizes[n]] = True
        return cls(padded, groups=groups, support=support, sizes=sizes, normalise=normalise)

    @classmethod
    def of_groups(cls, kernels: ArrayLike, groups: ArrayLike, *, state_names: Sequence[str] | None = None) -> Arms:
        """Build arms from one kernel per group, (G, S, 2, S) or (G, K, S, 2, S), and the group of every arm (N,), 0..G-1.

        Only the kernels of the groups are checked and stored, so a hundred thousand arms cost no more than their groups.
        Every group needs an arm.
        """
        single = cls(kernels, state_names=state_names)
        of_arm = as_floats(groups, "groups")
        if of_arm.ndim != 1 or not np.array_equal(np.unique(of_arm), np.arange(single.count)):
            raise ModelError(f"groups must be numbers 0..{single.count - 1}, one per arm, and every number must be used")
        return single._with_groups(of_arm.astype(np.int64))

    @classmethod
    def trusted(cls, kernels: FloatArray, groups: IntArray) -> Arms:
        """Return the arms of `of_groups`, for arrays that need no check; nothing is copied, and they become read-only."""
        return _rebuild_arms(groups, None, kernels, None, None)

    def repeated(self, times: int) -> Arms:
        """Return arms with `times` copies of each; copies of an arm are consecutive and share its group."""
        number = as_integer(times, "times")
        if number < 1:
            raise ModelError(f"times must be at least 1, got {number}")
        check_memory(f"{number} copies of {many(self.count, 'arm')}", 32.0 * number * self.count)
        return self._with_groups(np.repeat(self.group_of, number))

    def _with_groups(self, groups: IntArray) -> Arms:
        """Return arms with these groups (N,), which share the arrays of the groups."""
        return _rebuild_arms(groups, self.state_names, self.group_kernels, self.group_support, self.group_sizes)

    @property
    def count(self) -> int:
        """N, the number of arms."""
        return len(self.group_kernels) if self.groups is None else len(self.groups)

    @property
    def states(self) -> int:
        """S, the number of states of the largest arm."""
        return int(self.group_kernels.shape[-1])

    @property
    def phases(self) -> int:
        """K, the number of phases; 1 if kernels do not depend on the time."""
        return int(self.group_kernels.shape[1]) if self.group_kernels.ndim == 5 else 1

    @property
    def kernels(self) -> FloatArray:
        """(N, [K,] S, 2, S) kernel of each arm, built on demand; raise ModelError if there is not enough memory.

        ``group_kernels[group_of[n]]`` is the kernel of arm n without a copy.
        """
        return self._by_arm(self.group_kernels)

    @property
    def support(self) -> BoolArray | None:
        """(N, [K,] S, 2, S) False for transitions that are known to be impossible, built on demand; or None."""
        return None if self.group_support is None else self._by_arm(self.group_support)

    @property
    def sizes(self) -> IntArray | None:
        """(N,) number of states of each arm; None if all have S."""
        return None if self.group_sizes is None else self._by_arm(self.group_sizes)

    def given(self) -> dict[str, Any]:
        """Return the arguments of the constructor by name, with one kernel per group if there are fewer groups than arms."""
        tables = [self.group_kernels, self.group_support, self.group_sizes]
        if len(self.group_kernels) == self.count:  # as many groups as arms: by arm, in any order
            tables = [self.kernels, self.support, self.sizes]
        names = ("kernels", "support", "sizes")
        return {**dict(zip(names, tables, strict=True)), "groups": self.groups, "state_names": self.state_names}

    def _by_arm(self, table: NDArray[Any]) -> NDArray[Any]:
        if self.groups is None:
            return table
        if len(table) == 1:
            return np.broadcast_to(table[0], (self.count, *table.shape[1:]))
        check_memory(f"a table for each of {many(self.count, 'arm')}", float(table[0].nbytes) * self.count)
        return frozen(table[self.groups])

    def in_phases(self, phases: int) -> Arms:
        """Return the same arms with K phases that share their kernels; nothing is copied."""
        if phases == self.phases:
            return self
        if self.phases > 1:
            raise ModelError(f"arms with {self.phases} phases cannot have {phases}")
        check_phases(phases, self.count, self.representatives.size, self.states)

        def spread(values: Any) -> Any:
            if values is None:
                return None
            return np.broadcast_to(values[:, np.newaxis], (len(values), phases, *values.shape[1:]))

        tables = spread(self.group_kernels), spread(self.group_support)
        return _rebuild_arms(self.groups, self.state_names, *tables, self.group_sizes)

    @cached_property
    def group_of(self) -> IntArray:
        """(N,) group of each arm: `groups`, or 0..N-1 if none were declared."""
        return frozen(np.arange(self.count)) if self.groups is None else self.groups

    @cached_property
    def representatives(self) -> IntArray:
        """(G,) first arm of each group."""
        return frozen(np.unique(self.group_of, return_index=True)[1])

    @property
    def real_states(self) -> IntArray:
        """(N,) number of states of each arm, without padding."""
        return np.full(self.count, self.states) if self.sizes is None else self.sizes

    @cached_property
    def cumulative(self) -> FloatArray:
        """(K, G, S, 2, S) cumulative sums of each group's rows: the successor for u in [0, 1) is the first entry above u."""
        rows = self.group_kernels
        sums = np.cumsum(rows[np.newaxis] if self.phases == 1 else rows.swapaxes(0, 1), axis=4)
        # Rounding must neither leave a gap below 1 nor let a u above the last sum reach an impossible state.
        sums[sums >= sums[..., -1:]] = 1.0
        return frozen(sums)

    def __eq__(self, other: object) -> bool:
        """Return whether all fields are equal, entry by entry."""
        if not isinstance(other, Arms):
            return NotImplemented
        compared = ("group_kernels", "groups", "group_support", "group_sizes")
        return self.state_names == other.state_names and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in compared
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        groups = "" if self.groups is None else f", {many(len(self.representatives), 'group')}"
        phases = f", {self.phases} phases" if self.phases > 1 else ""
        return f"Arms({many(self.count, 'arm')}, {many(self.states, 'state')}{groups}{phases})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays by group: identical arms cost as much as one."""
        known = (self.group_kernels, self.group_support, self.group_sizes)
        return _rebuild_arms, (self.groups, self.state_names, *known)


def _rebuild_arms(*known: Any) -> Arms:
    """Build arms from validated fields: groups, names, and kernels, support and sizes by group."""
    arms = object.__new__(Arms)
    arms._fill(*known)
    return arms
