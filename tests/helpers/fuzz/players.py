"""Part 1b: policies, simulation, runs, comparators and adversaries on random models; what they say is recomputed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import rmab
import timed
from fuzz import draw
from fuzz.cases import Case
from fuzz.proofs import budgets, check_fluid, in_phases, masses, near, require, stake, written_out
from rmab.common.arrays import FloatArray
from rmab.errors import ModelError, SolverError
from rmab.planners.joint import few_joint_states
from rmab.planners.registry import CANDIDATES
from rmab.play.simulation import visit_rates
from rmab.testing import check_adversary

SMALL = 2000  # joint states times sets of arms whose optimum is computed in plain Python


class Wrapped:
    """The same policy as any object with `act`: the simulator must ask it step by step."""

    def __init__(self, policy: rmab.Policy) -> None:
        self.policy = policy

    def act(self, h: int, states: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Ask the policy."""
        return self.policy.act(h, states, rng)  # type: ignore[arg-type,return-value]


def policy_of(case: Case, problem: rmab.Problem, *, ties: bool = True) -> rmab.IndexPolicy:
    """Draw an index policy of any rule and rounding."""
    shape = (problem.arms.count, problem.horizon, problem.arms.states)
    rule, rounding = case.pick(["fill", "at-most"]), case.pick(["top", "dependent"]) if ties else "top"
    if not ties:
        table = case.rng.permutation(int(np.prod(shape))).reshape(shape) - np.prod(shape) / 3 + 0.5
    elif rounding == "dependent":
        table = case.pick([case.rng.random(shape), case.rng.integers(2, size=shape).astype(float), np.zeros(shape)])
    else:
        table = case.pick([case.rng.integers(-1, 2, size=shape).astype(float), draw.stakes(case, shape), np.ones(shape)])
    budget = problem.budget
    if case.chance(0.3):  # less than there is, at some steps
        less = case.rng.integers(0, budgets(budget, problem.horizon).astype(int) + 1)
        budget = less if case.chance(0.5) else int(less.min())
    if np.ndim(budget) == 1 and case.chance(0.2) and ties:
        table = table[:, 0]  # of no step in particular, under budgets that are
    policy = rmab.IndexPolicy(table, budget, rule=rule, rounding=rounding)
    if case.chance(0.2):
        path = case.folder / case.pick(["policy.npz", "policy.json"])
        policy.save(path)
        loaded = rmab.IndexPolicy.load(path)
        same = np.array_equal(loaded.table, policy.table) and np.array_equal(loaded.budget, policy.budget)
        require(same and repr(loaded) == repr(policy), "policy: another one after loading")
        return loaded
    return policy


def check_trajectory(problem: rmab.Problem, reward: FloatArray, seen: rmab.Trajectory) -> None:
    """Require an episode to begin at the start, to move as kernels can, within the budget, and to be paid as it is."""
    states, actions, arms = seen.states, seen.actions, problem.arms
    require(states.shape == (problem.horizon + 1, arms.count), "trajectory: shape")
    law, (kernels, gains) = masses(problem.start, arms.states), written_out(problem, reward)
    require((law[np.arange(arms.count), states[0]] > 0).all(), "trajectory: start")
    require((actions.sum(axis=1) <= budgets(problem.budget, problem.horizon)).all(), "trajectory: the budget is broken")
    total = 0.0
    for h, n in np.ndindex(problem.horizon, arms.count):
        now, a, then = int(states[h, n]), int(actions[h, n]), int(states[h + 1, n])
        require(kernels[n, h, now, a, then] > 0, f"trajectory: step {h}, arm {n}: {now} to {then} is impossible")
        total += float(gains[n, h, now, a])
    near(seen.reward, total, stake(problem, reward), "trajectory: reward")


def check_choice(policy: rmab.IndexPolicy, seen: rmab.Trajectory) -> None:
    """Require the decisions to be those of the rule."""
    count, table, limits = len(policy.table), policy.table, budgets(policy.budget, len(seen.actions))
    for h, active in enumerate(seen.actions):
        now, limit = seen.states[h], int(limits[h])
        index = table[np.arange(count), now] if table.ndim == 2 else table[np.arange(count), h, now]
        used = int(active.sum())
        require(used <= limit, "policy: more than its own budget")
        if policy.rule == "fill":
            require(used == limit, f"policy: fills {used} of {limit}")
        else:
            require((index[active] > 0).all(), "policy: an arm of index 0 is active")
        if policy.rounding == "top" and active.any() and not active.all():
            require(index[active].min() >= index[~active].max() or policy.rule == "at-most", "policy: not the highest")
        if policy.rounding == "top" and policy.rule == "at-most":
            require(used == min(limit, int((index > 0).sum())), "policy: leaves a slot that would pay")


def simulate(case: Case) -> None:
    """Simulated episodes: legal, the same again, the same in a batch and in any number of threads."""
    problem = draw.problem(case)
    reward, policy = draw.reward(case, problem), policy_of(case, problem)
    seed = case.whole(0, 2**40)
    seen = rmab.simulate(problem, policy, reward, np.random.default_rng(seed))
    check_trajectory(problem, reward, seen)
    check_choice(policy, seen)
    rounds, threads = case.whole(1, 40), case.whole(1, 4)
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds, threads=threads)
    alone = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds, threads=1)
    require(batch.rewards[0] == seen.reward and batch.activations[0] == seen.actions.sum(), "batch: another first episode")
    require((batch.rewards == alone.rewards).all(), "batch: depends on the threads")
    rates = visit_rates(problem, policy, np.random.default_rng(seed), rounds)
    gains = written_out(problem, reward)[1]
    near(float((rates * gains).sum()), float(batch.mean), stake(problem, reward), "visit rates")
    law, first = masses(problem.start, problem.arms.states), rates[:, 0].sum(axis=2)
    # A share of `rounds` tosses is this far off with a chance below 1e-12 (Hoeffding).
    require(np.abs(first - law).max() <= np.sqrt(14.0 / rounds), "visit rates: begin elsewhere")
    check_feedback(case, problem, reward, seen)
    step_by_step = rmab.simulate(problem, Wrapped(policy), reward, np.random.default_rng(seed))
    check_trajectory(problem, reward, step_by_step)
    check_choice(policy, step_by_step)


def check_feedback(case: Case, problem: rmab.Problem, reward: FloatArray, seen: rmab.Trajectory) -> None:
    """Require feedback from the reward of each step to be that from the table, and what is shown to be what was paid."""
    low, high = float(reward.min()), float(reward.max())
    mode = case.pick(["bandit", "active", "full"])
    full = in_phases(problem, reward)
    table = np.stack([reward, reward])
    task = rmab.Task.from_rewards(problem, table, low=low - (abs(low) or 1.0), high=high + (abs(high) or 1.0), feedback=mode)
    view = task.view()
    told = rmab.Feedback.reveal(view, 0, seen, full)
    told.check(view, 0)
    shown = ~np.isnan(told.rewards)
    require((told.rewards[shown] == full[shown]).all(), "feedback: another reward than was paid")
    if mode == "bandit":
        arm, step = np.arange(problem.arms.count), np.arange(problem.horizon)[:, np.newaxis]
        paid = written_out(problem, reward)[1][arm, step, seen.states[:-1], seen.actions.astype(int)]
        steps = rmab.Feedback.of_steps(view, 0, seen.states, seen.actions, paid)
        require(np.array_equal(steps.rewards, told.rewards, equal_nan=True), "feedback: of steps and of tables differ")


def expectation(case: Case) -> None:
    """Without ties: step by step and compiled are one and the same, and the mean is the exact expectation."""
    problem = draw.problem(case, 3, 3, 4)
    lead = (problem.phases,) if problem.phases > 1 else ()
    reward = case.rng.random((problem.arms.count, *lead, problem.arms.states, 2))
    policy = policy_of(case, problem, ties=False)
    seed = case.whole(0, 2**40)
    one = rmab.simulate(problem, policy, reward, np.random.default_rng(seed))
    two = rmab.simulate(problem, Wrapped(policy), reward, np.random.default_rng(seed))
    require((one.states == two.states).all() and (one.actions == two.actions).all(), "simulate: step by step differs")
    rounds = 2000
    batch = rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), rounds)
    asked = rmab.Problem(problem.arms, problem.start, policy.budget, problem.horizon, problem.phase_of)
    expected = timed.expected(asked, policy.table, policy.rule, reward)
    # A mean of bounded numbers is this far off with a chance below 1e-12 (Hoeffding).
    room = problem.arms.count * problem.horizon * np.sqrt(14.0 / rounds)
    require(abs(batch.mean - expected) <= room, f"simulate: mean {batch.mean}, expected {expected}")
    require(expected <= timed.optimum(problem, reward) + 1e-9, "policy: earns more than the optimum")


def simple_policies(case: Case) -> None:
    """Round robin, chance, and LP-update: within the budget, in turn, and the same again."""
    problem = draw.problem(case, 5, 4, 5)
    reward, seed = draw.reward(case, problem), case.whole(0, 2**40)
    robin = rmab.planners.round_robin(problem, episode=case.whole(0, 5))
    turns = rmab.simulate(problem, robin, reward, np.random.default_rng(seed)).actions
    limits = budgets(problem.budget, problem.horizon)
    require((turns.sum(axis=1) == limits).all(), "round robin: not the whole budget")
    spread = turns.sum(axis=0)
    require(spread.max() - spread.min() <= 1, f"round robin: arms had {spread.tolist()} turns")
    chance = rmab.simulate(problem, rmab.planners.random_policy(problem), reward, np.random.default_rng(seed))
    require((chance.actions.sum(axis=1) == limits).all(), "random policy: not the whole budget")
    anew = rmab.planners.LpUpdate(problem, reward)
    try:
        seen = [rmab.simulate(problem, anew, reward, np.random.default_rng(seed)) for _ in range(2)]
    except SolverError:
        case.count("LP-update unsolved")
        return
    for one in seen:
        check_trajectory(problem, reward, one)
    require((seen[0].actions == seen[1].actions).all(), "LP-update: another decision the second time")


def planned(case: Case) -> None:
    """Some candidates of `rmab.plan`: the winner is legal, asked for, and the same again; the bound holds."""
    problem = draw.problem(case, 4, 3, 4)
    reward, seed = draw.reward(case, problem), case.whole(0, 1000)
    names = [name for name in CANDIDATES if case.chance(0.4)] or None
    try:
        made = [rmab.plan(problem, reward, candidates=names, episodes=4, seed=seed) for _ in range(2)]
    except SolverError:
        case.count("plan unsolved")
        return
    except ModelError as error:  # none of those asked for applies
        require("candidate" in str(error), f"plan: {error}")
        return
    best = made[0]
    require(best.name in (names or CANDIDATES), "plan: a candidate that nobody asked for")
    require((best.name, best.value) == (made[1].name, made[1].value), "plan: another one the second time")
    check_fluid(problem, reward, rmab.solvers.solve_fluid(problem, reward))
    check_trajectory(problem, reward, rmab.simulate(problem, best.policy, reward, np.random.default_rng(seed)))


def comparators(case: Case) -> None:
    """Comparators and the table of a run, recomputed from the rewards that were chosen."""
    task = draw.task(case, feedback=case.pick(["bandit", "active", "full"]))
    seed, name = case.whole(0, 1000), case.pick(["random", "random", "ucmd", "ucmd-armab", "r2mab-ucb"])
    try:
        run = rmab.run(task, name, seed=seed)
        table = run.to_table()
    except SolverError:
        case.count("comparators unsolved")
        return
    problem, rewards = task.problem, run.rewards
    scale = float(np.abs(rewards).max()) * problem.arms.count * problem.horizon * task.episodes
    limits = budgets(problem.budget, problem.horizon)
    require((run.activations <= limits.sum()).all(), "run: the budget is broken")
    bounds = run.comparators
    near(float(bounds.o1().sum()), bounds.plan.value, scale, "O1")
    check_fluid(problem, rewards.sum(axis=0), bounds.plan)
    gains = np.stack([written_out(problem, one)[1] for one in rewards])
    each = np.einsum("nhsa,tnhsa->t", bounds.plan.occupancy, gains)
    require(np.abs(each - bounds.o1()).max() <= 1e-9 * scale, "O1: an episode earns something else")
    check_executable(problem, rewards, bounds, scale)
    terms = run.terms()  # they may be large where all rewards are 0: estimates are not
    missing, size = terms.sum(axis=0) - (bounds.o1() - run.reward), scale + np.nan_to_num(np.abs(terms)).max()
    require(np.isnan(missing).all() or np.abs(missing).max() <= 1e-9 * size, "terms: do not add up to the regret")
    total = float(bounds.o1().sum())
    if total:
        lost, rounding = (total - float(run.reward.sum())) / abs(total), scale / abs(total)
        near(run.relative_regret("O1"), lost, max(abs(lost), rounding), "relative regret")
    require(bounds.o3().sum() >= bounds.o1().sum() - 1e-6 * scale, "O3 is below O1")
    for which in ("O1", "O2", "O3"):
        lost = float(bounds.per_episode(which).sum() - run.reward.sum())  # type: ignore[arg-type]
        near(float(table[f"regret_{which}"][-1]), lost, scale, f"regret to {which}")
    require(np.isfinite(rmab.runs.theory_curve(task.view())).all(), "theory curve: not finite")
    again = rmab.run(task, name, seed=seed)
    require((again.reward == run.reward).all(), "run: another one the second time")
    require(set(run.summary()) >= {"reward", "regret", "terms"}, "run: summary")


def check_executable(problem: rmab.Problem, rewards: FloatArray, bounds: rmab.runs.Comparators, scale: float) -> None:
    """Require O2 to be the optimum where joint states are few, and else what an index policy earns, in 200 episodes."""
    total, earned = rewards.sum(axis=0), bounds.o2()
    if few_joint_states(problem):
        require(earned.sum() <= bounds.o1().sum() + 1e-6 * scale, "O2: above the bound")
        if (2 * problem.arms.states) ** problem.arms.count <= SMALL:
            near(float(earned.sum()), timed.optimum(problem, total), scale, "O2: not the optimum")
        return
    for make in (rmab.planners.occupancy_index, rmab.planners.lagrangian_index):
        policy = make(problem, total, fluid=bounds.plan)
        each = [rmab.simulate(problem, policy, rewards[0], np.random.default_rng((2, r))).reward for r in range(200)]
        if abs(float(np.mean(each)) - earned[0]) <= 1e-9 * scale + 5e-324:
            return
    raise AssertionError("O2: neither of its policies earns that")


def adversaries(case: Case) -> None:
    """Tasks and adversaries: rewards within the range, the same again, copies paid alike, and saved as they are."""
    task = draw.task(case)
    against, shape = task.adversary, task.base_reward.shape
    lead = (task.problem.phases,) if task.problem.phases > 1 else ()
    require(shape == (task.problem.arms.count, *lead, task.problem.arms.states, 2), "task: shape of the reward")
    for t in range(task.episodes):
        visits = case.rng.integers(0, 9, size=shape)
        paid = task.reward(t, visits)
        slack = 1e-9 * (against.high - against.low)
        require(paid.min() >= against.low - slack and paid.max() <= against.high + slack, "adversary: out of range")
        require((paid == task.reward(t, visits)).all(), "adversary: pays differently the second time")
        require(not against.passive_zero or not paid[..., 0].any(), "adversary: passive pairs pay")
    check_adversary(against)
    times = case.whole(1, 3)
    twice = task.repeated(times)
    require((twice.base_reward == np.repeat(task.base_reward, times, axis=0)).all(), "copies: paid differently")
    limits = [budgets(one.problem.budget, one.problem.horizon) for one in (task, twice)]
    require((limits[1] == times * limits[0]).all(), "copies: budget")
    law = [masses(one.problem.start, one.problem.arms.states) for one in (task, twice)]
    require((law[1] == np.repeat(law[0], times, axis=0)).all(), "copies: start")
    if against.adaptive:
        return
    path = case.folder / case.pick(["task.npz", "task.json"])
    task.save(path)
    loaded = rmab.Task.load(path)
    require(loaded.problem == task.problem, "task: another problem after loading")
    require(all((loaded.reward(t) == task.reward(t)).all() for t in range(task.episodes)), "task: other rewards")
    own, read = replace(task.view(), pooled_rewards=False), replace(loaded.view(), pooled_rewards=False)
    require(repr(own) == repr(read) and (own.low, own.high) == (read.low, read.high), "task: another view")
    task.problem.save(path)
    require(rmab.Problem.load(path) == task.problem, "problem: another one after loading")


CHECKS: dict[str, Callable[[Case], None]] = {
    one.__name__: one for one in (simulate, expectation, simple_policies, comparators, adversaries, planned)
}


def play(case: Case) -> None:
    """Check one kind of play, chosen by the seed."""
    name = list(CHECKS)[case.seed % len(CHECKS)]
    CHECKS[name](case)
    case.count(name)
