"""The mirror step, the whole learner, the stationary LP and forecasts: literal twins, hand-computed numbers, Clarabel."""

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import instances
import literal
import oracle
import rmab
from episodes import ended, view_of
from rmab.learning import Active, Hoeffding, Lazy, RewardEstimate
from rmab.learning.components.steps import fitting_beta, paper_rate
from rmab.learning.pools import Observations, Pools
from rmab.learning.registry import ESTIMATORS
from rmab.model.arms import Arms
from rmab.model.problem import Problem
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.solvers.projection.project import Projection
from rmab.solvers.stationary.stationary import stationary_fluid

# ---------------------------------------------------------------- the mirror step, and the whole learner


def test_rate_of_the_paper() -> None:
    # S = 3, T = 50: sqrt(ln 18 / 50) = sqrt(2.890372 / 50) = 0.240431
    assert paper_rate(view_of(2, 3, episodes=50)) == pytest.approx(0.240431, abs=1e-6)
    assert paper_rate(view_of(2, 5, episodes=7)) == pytest.approx(literal.eta(5, 7), rel=1e-15)


def test_steps_by_hand() -> None:
    """One state, one step: two masses that sum to 1. Uniform first; then tilted by exp(eta r); then held by the budget."""
    view = view_of(2, 1, 1, budget=2)
    pools = Pools.of(view)
    nothing = Observations(np.zeros((2, 1, 2, 1), dtype=int), np.zeros((2, 1, 2)), np.zeros((2, 1, 2)))
    sets = Hoeffding().around(pools, nothing.counts, 0)
    step = Active(scale=2.0 / paper_rate(view))
    plan = step.begin(pools, sets)
    np.testing.assert_allclose(plan.mass, 0.5, rtol=1e-9)
    estimate = RewardEstimate(np.array([[[0.0, 1.0]], [[1.0, 0.5]]]))
    free = step.move(plan.memory, ended(pools, nothing, mass=plan.mass), sets, estimate)
    # e^2 / (1 + e^2) = 0.880797; e / (e + e^2) = 0.268941.
    np.testing.assert_allclose(free.mass[:, 0, 0, 1], [0.880797, 0.268941], atol=1e-6)
    tight = view_of(2, 1, 1, budget=1)
    held = step.move(plan.memory, ended(Pools.of(tight), nothing, mass=plan.mass), sets, estimate).mass[:, 0, 0, 1]
    # A price p lowers both log-odds alike: 2 - p and -1 - p, and the masses sum to 1 where they are opposite: p = 1/2.
    np.testing.assert_allclose(held, [1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(1.5))], atol=1e-7)


def test_the_bonus_of_an_episode_is_that_of_the_counts_before_it() -> None:
    """One arm, one state, always passive at 0.1, H = c = 50: r-hat is 0.1 + delta of the same episode, not of the next."""
    view = view_of(1, 1, 50, budget=0)
    learner = rmab.make_learner("ucmd-armab", epsilon=0.5)
    state, estimates = learner.begin(view), []
    for t in range(3):
        state = learner.learn(state, Feedback(t, np.zeros((51, 1)), np.zeros((50, 1)), [[[0.1, np.nan]]]))
        estimates.append(float(learner.estimate(state)[0, 0, 0]))
    # t = 1: C = 0, delta = 1. t = 2: C = 50, ln(4 * 2 * 1 * 50 / 0.5) = ln 800. t = 3: C = 100, ln(2 * 800).
    hand = [1.0, 0.1 + math.sqrt(math.log(800) / 100), 0.1 + math.sqrt(math.log(1600) / 200)]
    assert estimates == pytest.approx(hand, rel=1e-13)


CASES: dict[str, dict[str, Any]] = {
    "alone": {"arms": 2, "states": 3, "horizon": 3},
    "group": {"arms": 3, "states": 2, "horizon": 4, "groups": [0, 0, 1], "pooled": True},
    "dynamics only": {"arms": 3, "states": 2, "horizon": 3, "groups": [0, 0, 1]},
    "passive zero": {"arms": 2, "states": 2, "horizon": 4, "zero": True},  # estimated all the same, to the letter
    "declared zeros": {"arms": 2, "states": 2, "horizon": 4, "zero": True},
    "structural zeros": {"arms": 2, "states": 3, "horizon": 4, "sparse": True},
    "long, so that the sets bind": {"arms": 2, "states": 2, "horizon": 16},
    "active feedback": {"arms": 3, "states": 2, "horizon": 3, "feedback": "active", "budget": 2},
}
PAPER = {"estimator": {"name": "paper", "epsilon": 0.9}, "step": "active", "probes": {"every": 0}}
LEARNERS = [(case, "hoeffding") for case in CASES] + [(case, "l1") for case in ("group", "structural zeros")]


def game(
    arms: int,
    states: int,
    horizon: int,
    *,
    budget: int = 1,
    groups: list[int] | None = None,
    pooled: bool = False,
    zero: bool = False,
    sparse: bool = False,
    feedback: str = "bandit",
) -> tuple[View, Problem, np.ndarray]:
    """Return a view, the problem behind it, and the rewards (T,N,S,2) of four episodes in [-2, 3]."""
    rng = np.random.default_rng((arms, states, horizon))
    own = list(range(arms)) if groups is None else groups
    kernel = rng.dirichlet(np.full(states, 0.7), size=(max(own) + 1, states, 2))
    if sparse:
        kernel[:, 0, :, -1] = 0.0
        kernel /= kernel.sum(axis=3, keepdims=True)
    kernel = kernel[own]
    support = kernel > 0 if sparse else None
    problem = Problem(Arms(kernel, groups=groups, support=support), 0, budget, horizon)
    kinds = own if pooled else list(range(arms))
    rewards = rng.uniform(-2, 3, size=(4, arms, states, 2))[:, kinds]
    if zero:
        rewards[..., 0] = 0.0
    known = {"groups": problem.arms.groups, "support": support, "pooled_rewards": pooled, "passive_zero": zero}
    fields = {"budget": budget, "low": -2.0, "high": 3.0, "feedback": feedback, **known}
    return view_of(arms, states, horizon, **fields), problem, rewards


def posed(view: View, kind: str, counts: np.ndarray, t: int, reference: np.ndarray, first: list[int]) -> instances.Instance:
    """Return the programme of episode t by the literal formulas; first: an arm of every block."""
    own = list(range(view.arms)) if view.groups is None else [int(g) for g in view.groups]
    support = np.ones(counts.shape, dtype=bool)
    if view.support is not None:
        support = np.stack([view.support[own.index(g)] for g in range(max(own) + 1)])
    mean, low, high = literal.empirical(counts, support), np.zeros(counts.shape), np.zeros(counts.shape)
    radius = np.zeros(counts.shape[:3])
    log = literal.iota(states=view.states, blocks=len(counts), horizon=view.horizon, episodes=4, epsilon=0.9)
    for g, s, a in np.ndindex(counts.shape[:3]):
        c = int(counts[g, s, a].sum())
        delta = literal.hoeffding_delta(c, t, states=view.states, arms=view.arms, horizon=view.horizon, epsilon=0.9)
        radius[g, s, a] = literal.l1_radius(c, log, view.states)
        for y in range(view.states):
            possible = bool(support[g, s, a, y])
            low[g, s, a, y], high[g, s, a, y] = literal.box(float(mean[g, s, a, y]), delta, possible)
    group = [own[n] for n in first]
    weights = np.array([sum(own[m] == own[n] for m in range(view.arms)) if len(first) < view.arms else 1 for n in first])
    common = (view.start[first], view.budget)
    if kind == "l1":
        possible = reference * support[group][:, None]
        return instances.Instance(possible, mean[group], None, *common, radius[group], weights)
    return instances.Instance(reference, low[group], high[group], *common, weights=weights)


@pytest.mark.parametrize(("case", "kind"), LEARNERS)
def test_the_learner_solves_the_programme_of_the_paper(case: str, kind: str) -> None:
    view, problem, rewards = game(**CASES[case])
    if kind == "hoeffding":
        learner = rmab.make_learner("ucmd-armab", epsilon=0.9, zeros="declared" if case == "declared zeros" else "estimated")
    else:
        learner = rmab.make_learner("ucmd", **PAPER, confidence={"name": kind, "epsilon": 0.9})
    own = list(range(view.arms)) if view.groups is None else [int(g) for g in view.groups]
    kinds = own if view.pooled_rewards else list(range(view.arms))
    first = [kinds.index(k) for k in range(max(kinds) + 1)]
    rate = literal.eta(view.states, view.episodes)
    state, counts = learner.begin(view), np.zeros((max(own) + 1, view.states, 2, view.states), dtype=int)
    shape = (len(first), view.horizon, view.states, 2, view.states)
    before, estimate = np.full(shape, 1 / (2 * view.states**2)), np.zeros((len(first), view.states, 2))
    for t in range(1, 5):
        tilted = before * np.exp(rate * estimate)[:, None, :, :, None]
        instance = posed(view, kind, counts, t, tilted, first)
        answer = oracle.clarabel(instance.program).z
        z, plan = state.arrays["step.flow"], learner.plan(state)
        np.testing.assert_allclose(z, answer, atol=1e-4)
        np.testing.assert_allclose(plan.occupancy, answer.sum(axis=4), atol=1e-4)
        np.testing.assert_allclose(plan.policy.table, literal.rmi_index(z)[[kinds[n] for n in range(view.arms)]], atol=1e-12)
        if view.groups is None and view.support is None:  # no other feasible point has a better objective
            best = literal.omd_objective(z, before, estimate, rate)
            assert best >= literal.omd_objective(np.maximum(answer, 0.0), before, estimate, rate) - 1e-5
            for seed in range(3):
                other = instances.random_feasible(instance, seed)
                assert best > literal.omd_objective(other, before, estimate, rate)
        # One episode: who was where, what was seen.
        reward = rewards[t - 1]
        episode = rmab.simulate(problem, plan.policy, reward, np.random.default_rng(t))
        visits = literal.pair_visits(episode.states, episode.actions, view.states)
        for k, s, a in np.ndindex(estimate.shape):
            alike = [n for n in range(view.arms) if kinds[n] == k]
            c = sum(int(visits[n, s, a]) for n in alike)
            hidden = view.feedback == "active" and a == 0
            total = int(counts[own[alike[0]], s, a].sum())
            size = {"states": view.states, "arms": view.arms, "horizon": view.horizon}
            delta = literal.hoeffding_delta(total, t, **size, epsilon=0.9)
            scaled = (float(reward[alike[0], s, a]) + 2) / 5
            seen = c > 0 and not hidden
            estimate[k, s, a] = literal.reward_estimate(scaled, c / len(alike), delta, view.horizon, seen)
        if case == "declared zeros":
            estimate[..., 0] = 0.4
        counts = counts + literal.transition_counts(episode.states, episode.actions, own, view.states)
        if t < view.episodes:
            state = learner.learn(state, Feedback.reveal(view, t - 1, episode, reward))
            np.testing.assert_array_equal(state.arrays["sets.counts"], counts)
            np.testing.assert_allclose(learner.estimate(state), -2 + 5 * estimate[kinds], rtol=1e-12)
        before = np.maximum(z, 1e-12)


# ---------------------------------------------------------------- the stationary LP


def stationary_lp(instance: instances.Instance, reward: np.ndarray, mass: np.ndarray | None = None) -> float:
    """Return the optimum of the average-reward extended LP by CVXPY, constraint by constraint; with masses given, theirs."""
    blocks, states = reward.shape[:2]
    weights = np.ones(blocks) if instance.weights is None else np.asarray(instance.weights, dtype=float)
    z = {key: cp.Variable(states, nonneg=True) for key in np.ndindex(blocks, states, 2)}
    constraints, gain, spent = [], 0, 0
    for (c, s, a), row in z.items():
        total = cp.sum(row)
        constraints += [row <= instance.high[c, s, a] * total, row >= instance.low[c, s, a] * total]
        gain += weights[c] * reward[c, s, a] * total
        spent += weights[c] * a * total
        if mass is not None:
            constraints.append(cp.abs(total - mass[c, s, a]) <= 1e-7)
    for c in range(blocks):
        constraints.append(sum(cp.sum(z[c, s, a]) for s in range(states) for a in (0, 1)) == 1)
        for s in range(states):
            into = sum(z[c, x, a][s] for x in range(states) for a in (0, 1))
            constraints.append(cp.sum(z[c, s, 0]) + cp.sum(z[c, s, 1]) == into)
    problem = cp.Problem(cp.Maximize(gain), [*constraints, spent <= instance.budget])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    assert problem.status == cp.OPTIMAL
    return float(problem.value)


@pytest.mark.parametrize("weights", [None, [3, 1, 2]])
@pytest.mark.parametrize("budget", [0.0, 0.4, 1.0, 6.0])
def test_the_stationary_lp_has_the_optimum_of_cvxpy(budget: float, weights: list[int] | None) -> None:
    seed = int(10 * budget) + (weights is None)
    instance = instances.random_instance(seed, (3, 1, 3), budget=budget, weights=weights, support=0.8)
    reward = np.random.default_rng(seed).random((3, 3, 2))
    many = np.ones(3) if weights is None else np.array(weights, dtype=float)
    mass = stationary_fluid(instance.low, instance.high, reward, budget, many).mass
    value = float((many[:, None, None] * mass * reward).sum())
    assert value == pytest.approx(stationary_lp(instance, reward), abs=1e-6)
    assert stationary_lp(instance, reward, mass) == pytest.approx(value, abs=1e-5)  # these very masses are feasible
    assert many @ mass[:, :, 1].sum(axis=1) <= budget + 1e-7


@pytest.mark.parametrize("seed", range(5))
def test_the_stationary_lp_of_one_known_arm_is_the_best_stationary_policy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, reward = rng.dirichlet(np.ones(3), size=(3, 2)), rng.random((3, 2))
    best = -np.inf
    for policy in np.ndindex(2, 2, 2):
        moves = kernel[np.arange(3), list(policy)]
        law = np.linalg.lstsq(np.vstack([moves.T - np.eye(3), np.ones(3)]), np.array([0, 0, 0, 1.0]), rcond=None)[0]
        best = max(best, float(law @ reward[np.arange(3), list(policy)]))
    mass = stationary_fluid(kernel[None], kernel[None], reward[None], 1.0, np.ones(1)).mass
    assert (mass * reward).sum() == pytest.approx(best, abs=1e-8)


# ---------------------------------------------------------------- forecasts, and the beta of dual averaging


def forecast(paid: list[float | None], kind: str = "forecast") -> tuple[list[Any], View]:
    """Feed one pair (arm 0, state 0, active) what it paid, episode by episode; None: not visited. Return the estimates."""
    view = view_of(1, 1, 1, episodes=100)
    pools = Pools.of(view)
    part = ESTIMATORS.load(kind)()
    memory, estimates = part.begin(pools), []
    for t, value in enumerate(paid):
        values = np.array([[[np.nan, np.nan if value is None else value]]])
        seen = Observations(np.zeros((1, 1, 2, 1), dtype=int), values, np.ones((1, 1, 2)))
        estimates.append(part.learn(memory, ended(pools, seen, t)))
        memory = estimates[-1].memory
    return estimates, view


def test_a_constant_reward_is_forecast_without_optimism() -> None:
    estimates, _ = forecast([0.5, 0.5, 0.5, None, None])
    np.testing.assert_allclose(estimates[2].memory["errors"], 0.0, atol=1e-30)
    np.testing.assert_allclose(estimates[2].memory["checks"], 1.98)
    for estimate in estimates[2:]:
        assert estimate.ahead[0, 0, 1] == pytest.approx(0.5, rel=1e-14)
        assert estimate.gain[0, 0, 1] == pytest.approx(0.5, rel=1e-14)
        assert estimate.ahead[0, 0, 0] == 0.75  # never seen: half of what is missing to 1 is hoped for
        assert estimate.gain[0, 0, 0] == pytest.approx(0.5)  # but not expected


def test_before_a_forecast_could_be_checked_it_is_taken_to_be_unsure() -> None:
    estimates, _ = forecast([0.5, None])
    # Predictions of an error of 0.3, one episode old: 0.09 ln 4 each, and (1 - rate)^2 times how likely it is that values
    # move: e^-2 for each of three rates that forget, beside 1 for the one that does not, and e^-7 before it is proven.
    steady = 1 / (1 + 3 * math.exp(-2))
    moving = math.exp(-7) / (steady + math.exp(-7) * (1 - steady))
    moves = moving * steady * math.exp(-2) * sum((1 - rate) ** 2 for rate in (0.9, 0.7, 0.0))
    expected = 0.5 + 0.3 * math.sqrt(0.09 * math.log(4) + moves)
    assert estimates[1].ahead[0, 0, 1] == pytest.approx(expected, rel=1e-13)


def test_other_estimators_by_hand() -> None:
    paid = [0.2, 0.4, None, None]
    direct, fading, last = (forecast(paid, kind)[0] for kind in ("direct", "fading", "last"))
    assert [e.gain[0, 0, 1] for e in direct] == pytest.approx([0.2, 0.4, 1.0, 1.0])
    bonus = 0.3 * math.sqrt(math.log(100) / 4)  # T = 100, seen twice
    assert [e.gain[0, 0, 1] for e in fading] == pytest.approx([0.2, 0.4, 0.3 + bonus, 0.3 + bonus])
    assert [e.gain[0, 0, 1] for e in last] == pytest.approx([0.2, 0.4, 0.5, 0.4 + 0.1 * math.sqrt(2)])
    assert direct[3].ahead is None


def test_dual_averaging_goes_along_the_mean_where_nothing_is_forecast() -> None:
    pools = Pools.of(view_of(2, 1, 1, budget=1))
    nothing = Observations(np.zeros((2, 1, 2, 1), dtype=int), np.zeros((2, 1, 2)), np.zeros((2, 1, 2)))
    sets, step, gains = Hoeffding().around(pools, nothing.counts, 0), Lazy(), np.random.default_rng(0).random((4, 2, 1, 2))
    plan = step.begin(pools, sets)
    for t, gain in enumerate(gains):
        plan = step.move(plan.memory, ended(pools, nothing, t, mass=plan.mass), sets, RewardEstimate(gain))
        np.testing.assert_allclose(plan.memory["mean"], gains[: t + 1].mean(axis=0), rtol=1e-14)
    ahead = step.move(plan.memory, ended(pools, nothing, 4, mass=plan.mass), sets, RewardEstimate(gain, gains[0]))
    assert set(ahead.memory) == {"beta", "ahead"}
    np.testing.assert_array_equal(ahead.memory["ahead"], gains[0])


def test_forecasts_of_a_pair_that_was_not_seen_for_long() -> None:
    """The weight of what was seen shrinks to the smallest float there is; the mean must not."""
    estimates, _ = forecast([0.5, 0.5] + [None] * 2200 + [0.5])
    np.testing.assert_allclose(estimates[-1].memory["errors"], 0.0, atol=1e-12)


def fitted(active: list[float], direction: Any, part: float = 0.1, **changes: Any) -> float:
    """Return the fitting beta of a plan of one state and one step: the active mass of every block."""
    chance = np.array(active)
    mass = np.stack([1 - chance, chance], axis=1)[:, None, None]
    kernel = np.ones((*mass.shape, 1))
    nothing = np.zeros((len(active), 1, 1))
    plan = Projection(mass, kernel, np.zeros(1), nothing, 0.0, 0, 0.0, 0.0)
    view = view_of(**{"arms": len(active), "states": 1, "horizon": 1, **changes})
    return fitting_beta(Pools.of(view), plan, np.asarray(direction, dtype=float)[:, np.newaxis], part)


def test_the_fitting_beta_by_hand() -> None:
    """Two arms, one slot: random is 1/2 each. The plan 0.9 and 0.1 gains 0.4 * 0.4 = 0.16, and two such entropies."""
    entropy = 2 * (0.9 * math.log(1.8) + 0.1 * math.log(0.2))
    assert fitted([0.9, 0.1], [[[0, 0.4]], [[0, 0]]]) == pytest.approx(entropy / (0.1 * 0.16), rel=1e-13)
    assert fitted([0.9, 0.1], [[[0, 0.4]], [[0, 0]]], part=0.05) == pytest.approx(entropy / (0.05 * 0.16), rel=1e-13)


def test_the_fitting_beta_counts_the_arms_of_a_block() -> None:
    """Three arms, budget 1: random is 1/3. Two like arms at 0.5 and one at 0: gain 2 (1/2 - 1/3) 0.6 - (1/3) 0.3 = 0.1."""
    groups = {"arms": 3, "groups": np.array([0, 0, 1]), "pooled_rewards": True}
    gain = 2 * (1 / 2 - 1 / 3) * 0.6 - 0.3 / 3
    entropy = 2 * (0.5 * math.log(0.5 * 3) + 0.5 * math.log(0.5 * 3 / 2)) + math.log(3 / 2)
    assert fitted([0.5, 0.0], [[[0, 0.6]], [[0, 0.3]]], **groups) == pytest.approx(entropy / (0.1 * gain), rel=1e-12)


@given(st.floats(0.55, 0.95), st.floats(0.05, 1.0), st.floats(0.0, 0.9))
def test_differences_of_a_tenth_want_ten_times_the_beta(chance: float, gain: float, level: float) -> None:
    plan, direction = [chance, 1 - chance], np.array([[[0.0, gain]], [[0.0, 0.0]]])
    assert fitted(plan, level + 0.1 * direction) == pytest.approx(10 * fitted(plan, direction), rel=1e-7)


def test_where_nothing_is_gained_no_beta_is_enough() -> None:
    assert fitted([0.5, 0.5], np.full((2, 1, 2), 0.7)) == np.inf
    assert fitted([0.2, 0.8], [[[0, 0.4]], [[0, 0]]]) == np.inf  # worse than random
