"""Policies that are stored as a question: a problem, a reward, and the numbers of a plan that are not recomputed.

They are pickled and stored as that question, so that a copy makes exactly the same decisions on any machine.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, Self

import numpy as np

from rmab.common import BoolArray, FloatArray, Format, IntArray, ReadOnly, Stored, as_floats, frozen
from rmab.errors import ModelError
from rmab.model import Problem, cells, split_cells
from rmab.play.compiled.selection import add_drawn
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.blocks import Blocks, too_dear

ROUNDING = 1e-6  # tolerance of numbers of a plan outside their range


class QuestionPolicy(ReadOnly, Stored):
    """Base of policies for one problem and reward. `ANSWER` names the attributes that are stored with the question.

    A subclass calls `_hold` in its constructor, and computes everything else in `_prepare`.
    """

    problem: Problem
    reward: FloatArray  # (N, S, 2), or (N, K, S, 2) with phases
    blocks: Blocks

    ANSWER: ClassVar[tuple[str, ...]] = ()

    def _hold(self, problem: Problem, table: FloatArray, **answer: Any) -> None:
        """Set the question, its reward by cell (N * K, S, 2), and the answer."""
        reward = frozen(split_cells(table, problem.phases))
        self._set(problem=problem, reward=reward, blocks=Blocks.of(problem, table), **answer)
        self._prepare()

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _prepare(self) -> None:
        """Override: check the answer, which may come from a file, and derive what decisions need."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.problem!r})"

    def to_fields(self) -> dict[str, Any]:
        """Return the question and the answer by name."""
        return {**self.problem.to_fields(), "reward": self.reward, **{name: getattr(self, name) for name in self.ANSWER}}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Build the policy from the question and the answer, without solving anything; ModelError if they do not fit."""
        own = {"reward", *cls.ANSWER}
        problem = Problem.from_fields({name: value for name, value in fields.items() if name not in own})
        table = checked_table(problem, fields["reward"], f"planners.{cls.__name__}")
        policy: Self = _restore(cls, problem, table, {name: fields[name] for name in cls.ANSWER})
        return policy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the question and the answer, not a solver's memory of it."""
        table = cells(self.reward, self.problem.phases)
        return _restore, (type(self), self.problem, table, {name: getattr(self, name) for name in self.ANSWER})

    def round_shares(self, share: FloatArray, h: int, states: IntArray, rng: np.random.Generator) -> BoolArray:
        """(N,) which arms to activate: shares (C, S) of the arms in every state, rounded within the budget."""
        block_of, problem = self.blocks.block_of, self.problem
        own = share[block_of, states]
        if (cost := problem.costs_at(h, states)) is not None:
            return draw_within(own * ~too_dear(cost, problem.budgets[h]), cost, float(problem.budgets[h]), rng)
        place = block_of * problem.arms.states + states
        return systematic(own, place, int(problem.slots[h]), rng, exact=problem.exact)


def _restore(cls: Any, problem: Problem, table: FloatArray, answer: dict[str, Any]) -> Any:
    policy = cls.__new__(cls)
    policy._hold(problem, table, **answer)
    return policy


def question_format(kind: str, *answer: str) -> Format:
    """Return the format of a policy that is stored as its question and these numbers."""
    form = Problem.FORMAT
    return Format(kind, form.version, form.required | {"reward", *answer}, form.optional, upgrades=form.upgrades)


def checked_answer(
    values: Any, name: str, shape: tuple[int, ...], most: float = np.inf, *, least: float = 0.0
) -> FloatArray:
    """Return numbers of a plan as a read-only array; ModelError unless they have this shape, about in [least, most]."""
    given = as_floats(values, name)
    if given.shape != shape:
        raise ModelError(f"{name} must have shape {shape}, got {given.shape}")
    for at in np.argwhere(~((given >= least - ROUNDING) & (given <= most + ROUNDING) & np.isfinite(given)))[:1]:
        raise ModelError(f"{name}[{', '.join(map(str, at))}] must be in [{least:g}, {most:g}], got {given[tuple(at)]}")
    return frozen(given)


def systematic(
    share: FloatArray, place: IntArray, budget: int, rng: np.random.Generator, *, exact: bool = False
) -> BoolArray:
    """(N,) which arms are active, each with probability share (N,): arms with the same place (N,) are adjacent.

    The number of active arms of every place, and of all, is the sum of their shares rounded up or down, and never more than
    the budget. Which arms of a place they are is drawn. exact: the largest shares get the rest of the budget.
    """
    order = np.lexsort((rng.random(share.size), place))
    reached = np.floor(np.cumsum(share[order]) + rng.random())
    active = np.zeros(share.size, dtype=bool)
    active[order[np.diff(np.minimum(reached, budget), prepend=0.0) > 0]] = True
    if exact and (left := budget - int(active.sum())) > 0:
        ranks = order[np.argsort(-share[order] + active[order], kind="stable")]
        active[ranks[~active[ranks]][:left]] = True
    return active


def draw_within(share: FloatArray, cost: FloatArray, limit: float, rng: np.random.Generator) -> BoolArray:
    """(N,) which arms are active, each with probability share (N,) except one: their costs (N,) stay within the limit."""
    active, stream = np.zeros(share.size, dtype=bool), rng.integers(0, 2**64, size=4, dtype=np.uint64)
    work = (np.empty(share.size), np.empty(share.size, dtype=np.int64))
    add_drawn(np.ascontiguousarray(share), np.asarray(cost), limit, stream, active, *work)
    return active
