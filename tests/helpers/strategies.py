"""Random problems, rewards and policies for hypothesis, and plain seeded ones for statistics."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rmab.common.arrays import FloatArray
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.play.index_policy import IndexPolicy

RULES = ("fill", "at-most")
ROUNDINGS = ("top", "dependent")
MODES = [(rule, rounding) for rule in RULES for rounding in ROUNDINGS]

# Half of all weights are 0, so that rows with zeros and deterministic rows are common.
WEIGHTS = st.one_of(st.just(0.0), st.floats(0.01, 1.0))


@st.composite
def kernels(draw: st.DrawFn, count: int, states: int, sizes: Any = None) -> FloatArray:
    """(count, S, 2, S) kernels; states beyond sizes[n] are never entered from below."""
    weights = draw(arrays(np.float64, (count, states, 2, states), elements=WEIGHTS)).copy()
    for n, size in enumerate(sizes if sizes is not None else []):
        weights[n, :size, :, size:] = 0.0
    weights[..., 0] += weights.sum(axis=3) == 0  # a row of zeros leads to state 0 for sure
    return weights / weights.sum(axis=3, keepdims=True)


@st.composite
def some_arms(draw: st.DrawFn, max_arms: int = 6, max_states: int = 4) -> Arms:
    """Draw arms with optional names, groups, support and sizes."""
    count, states = draw(st.integers(1, max_arms)), draw(st.integers(1, max_states))
    classes = draw(st.none() | st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    own = np.arange(count) if classes is None else np.array(classes)
    sizes = draw(st.none() | arrays(np.int64, count, elements=st.integers(1, states)))
    table = draw(kernels(count, states, sizes))[own]
    support = None
    if draw(st.booleans()):
        support = (table > 0) | draw(arrays(bool, table.shape, elements=st.booleans()))[own]
    names = draw(st.none() | st.lists(st.text("abc é_", max_size=4), min_size=states, max_size=states, unique=True))
    return Arms(table, state_names=names, groups=classes, support=support, sizes=None if sizes is None else sizes[own])


@st.composite
def problems(draw: st.DrawFn, max_arms: int = 6, max_states: int = 4, max_horizon: int = 6) -> Problem:
    """Draw a problem with any budget from 0 to N and start states within each arm's real states."""
    some = draw(some_arms(max_arms, max_states))
    start = [draw(st.integers(0, int(size) - 1)) for size in some.real_states]
    return Problem(some, start, draw(st.integers(0, some.count)), draw(st.integers(1, max_horizon)))


def rewards(problem: Problem) -> st.SearchStrategy[FloatArray]:
    """(N, S, 2) rewards of either sign."""
    return arrays(np.float64, (problem.arms.count, problem.arms.states, 2), elements=st.floats(-2, 2))


@st.composite
def tables(draw: st.DrawFn, problem: Problem, elements: st.SearchStrategy[float]) -> FloatArray:
    """Draw a table (N, H, S) or (N, S) of `elements`."""
    count, states = problem.arms.count, problem.arms.states
    shape = draw(st.sampled_from([(count, problem.horizon, states), (count, states)]))
    return draw(arrays(np.float64, shape, elements=elements))


@st.composite
def policies(draw: st.DrawFn, problem: Problem) -> IndexPolicy:
    """Draw an index policy of any rule and rounding, with many ties, within the budget of the problem."""
    rule, rounding = draw(st.sampled_from(MODES))
    low = 0.0 if rounding == "dependent" else -1.0
    elements = st.sampled_from([low, 0.0, 0.5, 1.0]) | st.floats(low, 1.0)
    table = draw(tables(problem, elements))
    return IndexPolicy(table, draw(st.integers(0, problem.budget)), rule=rule, rounding=rounding)


def distinct(problem: Problem, seed: int) -> FloatArray:
    """(N, H, S) indices of either sign, all different: no ties."""
    shape = (problem.arms.count, problem.horizon, problem.arms.states)
    return np.random.default_rng(seed).permutation(np.prod(shape)).reshape(shape) - np.prod(shape) / 3 + 0.5


def random_problem(seed: int, count: int, states: int, horizon: int, budget: int) -> tuple[Problem, FloatArray]:
    """Return a seeded problem whose rows have all states, and a reward in [0, 1]."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(states), size=(count, states, 2))
    problem = Problem(Arms(table), rng.integers(states, size=count), budget, horizon)
    return problem, rng.random((count, states, 2))
