"""Random models: sizes, kernels, rewards, problems, boxes and tasks, legal all of them, and many of them nasty."""

from __future__ import annotations

import numpy as np

import rmab
from fuzz.cases import Case
from rmab.common.arrays import BoolArray, FloatArray
from rmab.model.registry import ADVERSARIES

CHAINS = ("dense", "sparse", "periodic", "nearly periodic", "absorbing", "slow", "rare", "alike", "certain")
STAKES = ("unit", "few", "signed", "offset", "zero", "active", "one", "large", "small", "mixed")
FAMILIES = ("cpap", "cpap-adherence", "restart", "machine", "swim", "random-dense", "random-sparse", "random-types")


def rows(case: Case, count: int, states: int) -> FloatArray:
    """(count, S, 2, S) kernels of one kind of chain."""
    rng, kind = case.rng, case.pick(CHAINS)
    table = rng.dirichlet(np.full(states, case.pick([0.1, 1.0, 10.0])), size=(count, states, 2))
    turn = np.eye(states)[rng.permuted(np.tile(np.arange(states), (count, 2, 1)), axis=2)].transpose(0, 2, 1, 3)
    if kind == "sparse":
        possible = rng.random(table.shape) < 0.4
        np.put_along_axis(possible, rng.integers(states, size=(count, states, 2, 1)), True, axis=3)
        table = np.where(possible, table + 1e-6, 0.0)
    elif kind == "periodic":
        table = turn
    elif kind == "nearly periodic":
        table = turn + case.pick([1e-12, 1e-9, 1e-6, 1e-3]) * table
    elif kind == "absorbing":
        table[:, case.whole(0, states - 1)] = np.eye(states)[case.whole(0, states - 1)]
    elif kind == "slow":
        table = np.eye(states)[:, np.newaxis] + case.pick([1e-9, 1e-6, 1e-3]) * table
    elif kind == "rare":
        table = table ** case.pick([5, 20, 60])
    elif kind == "alike":
        table[:, :, 1] = table[:, :, 0]
    elif kind == "certain":
        table = np.eye(states)[rng.integers(states, size=(count, states, 2))]
    table[..., 0] += table.sum(axis=3) == 0
    return np.asarray(table / table.sum(axis=3, keepdims=True))


def stakes(case: Case, shape: tuple[int, ...]) -> FloatArray:
    """Return rewards of one kind."""
    rng, kind = case.rng, case.pick(STAKES)
    table = rng.random(shape)
    if kind == "few":
        table = rng.integers(-1, 3, size=shape).astype(float)
    elif kind == "signed":
        table = rng.normal(size=shape)
    elif kind == "offset":
        table = table + case.pick([1e3, -1e6, 1e9])
    elif kind == "zero":
        table = np.zeros(shape)
    elif kind == "active":
        table = table * (np.arange(shape[-1]) > 0)
    elif kind == "one":
        table = np.zeros(shape)
        table.reshape(-1)[case.whole(0, table.size - 1)] = case.pick([1.0, -1.0])
    elif kind == "large":
        table = (table - 0.5) * case.pick([1e6, 1e30, 1e120])
    elif kind == "small":
        table = (table - 0.5) * case.pick([1e-6, 1e-30, 1e-120])
    elif kind == "mixed":
        table = table * 10.0 ** rng.integers(-8, 9, size=shape)
    return table


def arms(case: Case, most_arms: int = 7, most_states: int = 5, phases: int | None = None) -> rmab.Arms:
    """Draw arms: alone, in groups, of different sizes, with or without support and names; phases: with an axis for them."""
    count, states = case.whole(1, most_arms), case.whole(1, most_states)
    lead = () if phases is None else (phases,)

    def tables(width: int) -> FloatArray:
        drawn = np.concatenate([rows(case, 1, width) for _ in range(phases or 1)])
        return drawn.reshape(*lead, width, 2, width)

    if case.chance(0.15):
        return rmab.Arms.of_sizes([tables(case.whole(1, states)) for _ in range(count)])
    own = case.rng.integers(count, size=count) if case.chance(0.4) else np.arange(count)
    table = np.stack([tables(states) for _ in range(count)])[own]
    support = (table > 0) | (case.rng.random(table.shape) < 0.5)[own] if case.chance(0.3) else None
    names = [f"s{k}" for k in range(states)] if case.chance(0.2) else None
    groups = own if len(set(own)) < count or case.chance(0.2) else None
    return rmab.Arms(table, groups=groups, support=support, state_names=names)


def phases_of(case: Case, horizon: int) -> tuple[int, list[int]]:
    """Draw how many phases there are, 1..H or one more, and which step is of which: in any order, some without a step."""
    count = case.pick([1, 2, horizon, case.whole(1, horizon), horizon + 1])
    return count, case.rng.integers(case.whole(1, count), size=horizon).tolist()


def problem(
    case: Case, most_arms: int = 7, most_states: int = 5, most_steps: int = 10, *, phased: bool = True
) -> rmab.Problem:
    """Draw a problem, its budget often nothing, one, or all; half of them with time: phases, budgets and starts."""
    horizon = case.whole(1, most_steps)
    if case.chance(0.5):
        some = arms(case, most_arms, most_states)
        return rmab.Problem(some, states_of(case, some), budget_of(case, some.count), horizon)
    count, phase_of = phases_of(case, horizon) if phased else (1, [0] * horizon)
    own = case.pick([None, count])  # the kernels are the same in all phases, or they are not
    some = arms(case, most_arms, most_states, own)
    left_out = own in (1, horizon) and case.chance(0.5)
    start = starts_of(case, some) if case.chance(0.6) else states_of(case, some)
    budget = budget_of(case, some.count, horizon if case.chance(0.7) else None)
    return rmab.Problem(some, start, budget, horizon, None if left_out else phase_of)


def states_of(case: Case, some: rmab.Arms) -> list[int]:
    """Draw where arms are."""
    return [case.whole(0, int(size) - 1) for size in some.real_states]


def starts_of(case: Case, some: rmab.Arms) -> FloatArray:
    """(N, S) probabilities of where arms are: of any kind, some of them 0, some of them certain."""
    table = np.zeros((some.count, some.states))
    for n, size in enumerate(some.real_states):
        kind = case.pick(["any", "any", "zeros", "rare", "certain"])
        odds = case.rng.dirichlet(np.ones(int(size)))
        if kind == "zeros":
            odds = odds * (case.rng.random(int(size)) < 0.5)
        elif kind == "rare":
            odds = odds ** case.pick([5, 20])
        elif kind == "certain":
            odds = np.zeros(int(size))
        odds[case.whole(0, int(size) - 1)] += odds.sum() == 0
        table[n, : int(size)] = odds / odds.sum()
    return table


def budget_of(case: Case, count: int, horizon: int | None = None) -> int | list[int]:
    """Draw a budget, often nothing, one, or all; of every step, where a horizon is given."""
    if horizon is None:
        return int(case.pick([0, 1, count, case.whole(0, count), max(1, count // 2)]))
    return [int(budget_of(case, count)) for _ in range(horizon)]  # type: ignore[arg-type]


def reward(case: Case, given: rmab.Problem) -> FloatArray:
    """(N, S, 2), or (N, K, S, 2) rewards of a problem; arms of a group are often paid alike."""
    lead = (given.phases,) if given.phases > 1 and case.chance(0.7) else ()
    table = stakes(case, (given.arms.count, *lead, given.arms.states, 2))
    return table[given.arms.representatives][given.arms.group_of] if case.chance(0.4) else table


def boxes(case: Case, count: int, states: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(C, S, 2, S) lower and upper bounds around kernels, and what is possible."""
    kernel = rows(case, count, states)
    width = case.pick([0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0])
    possible = (kernel > 0) | (case.rng.random(kernel.shape) < case.pick([0.0, 0.5, 1.0]))
    low = np.maximum(kernel - width * case.rng.random(kernel.shape), 0.0)
    high = np.minimum(kernel + width * case.rng.random(kernel.shape), 1.0)
    return low, np.where(possible, np.maximum(high, low), 0.0), possible


def task(case: Case, *, feedback: str = "bandit", most_arms: int = 5, most_steps: int = 6, phased: bool = True) -> rmab.Task:
    """Draw a task: rewards of one's own, a built-in adversary on a random problem, or a built-in family."""
    episodes = case.whole(2, 6)
    if case.chance(0.25):
        count = 2 * case.whole(1, most_arms // 2)
        sizes = {"arms": count, "budget": case.whole(0, count), "horizon": case.whole(1, most_steps), "episodes": episodes}
        family = case.pick(FAMILIES)
        sizes |= {"types": case.whole(1, count)} if family == "random-types" else {}
        name = f"{family}@{case.pick(list(ADVERSARIES))}"
        return rmab.make_task(name, seed=case.whole(0, 10**6), feedback=feedback, **sizes)  # type: ignore[arg-type]
    given = problem(case, most_arms, 4, most_steps, phased=phased)
    lead = (given.phases,) if given.phases > 1 and case.chance(0.7) else ()  # or the same in all phases
    shape = (episodes, given.arms.count, *lead, given.arms.states, 2)
    table = stakes(case, shape)
    if case.chance(0.5):
        table = table[:, given.arms.representatives[given.arms.group_of]]
    low, high = float(table.min()), float(table.max())
    if low == high or case.chance(0.3):
        low, high = low - (abs(low) or 1.0), high + (abs(high) or 1.0)
    if case.chance(0.3):
        model = rmab.RewardModel(table[:1], min(low, 0.0), max(high, 0.0) + (high == 0 == low))
        against = rmab.make_adversary(case.pick(list(ADVERSARIES)), model, episodes, case.rng)
        return rmab.Task("drawn", given, against, feedback)  # type: ignore[arg-type]
    silent = bool(not table[..., 0].any() and low <= 0 <= high)
    return rmab.Task.from_rewards(given, table, low=low, high=high, passive_zero=silent, feedback=feedback)  # type: ignore[arg-type]
