"""The parts of `ucmd` around its forecasts: estimated kernels, the priced step, trust, and looks."""

from typing import Any

import numpy as np
import pytest

import rmab
from episodes import ended, tiny, view_of
from rmab.learning import Estimated, Kl, Observations, Pools, Priced, Probes, Revealed, RewardEstimate, TopB, Ucmd
from rmab.learning.components.priced import FORECAST, PAST
from rmab.solvers.priced.blocks import soften_blocks
from rmab.tasks.kinds import chains
from softened import some_case


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(8))
def test_visits_are_sums_of_masses(seed: int) -> None:
    case = some_case(seed)
    plan = case.solve()
    visits, blocks = plan.visits(), len(plan.share)
    phases = len(visits) // blocks
    expected = np.zeros((blocks, phases, *visits.shape[1:]))
    np.add.at(expected, (slice(None), plan.program.phase_of), plan.mass)
    np.testing.assert_allclose(visits.reshape(expected.shape), expected, atol=1e-9 * case.start.sum())
    uniform = plan.visits(uniform=True).reshape(expected.shape)
    rates = np.bincount(plan.program.phase_of, plan.program.uniform * plan.discounts, minlength=phases)
    np.testing.assert_allclose(uniform[..., 1].sum(axis=(0, 2)), rates * case.start.sum(), rtol=1e-9, atol=1e-12)


def test_kernels_are_frequencies_with_a_share_of_everybody() -> None:
    """Arms 0 and 1 are one group. From state 0, passive: arm 1 once to 0 and nobody else; see `episodes`."""
    _, pools, observed = tiny()
    sets = Estimated(priors=(2.0,)).around(pools, observed.counts, 1)
    np.testing.assert_array_equal(sets.low, sets.high)
    everybody = observed.counts.sum(axis=0)
    common = (everybody + 0.5) / (everybody.sum(axis=2, keepdims=True) + 1)
    expected = (observed.counts + 2 * common) / (observed.counts.sum(axis=3, keepdims=True) + 2)
    np.testing.assert_allclose(sets.low, expected)
    many = Estimated().around(pools, 20 * observed.counts, 1).low
    never = (observed.counts.sum(axis=0) == 0) & (everybody.sum(axis=2, keepdims=True) > 0)
    assert (many[:, never] == 0).all()  # rows that were seen often hold nothing that never happened
    np.testing.assert_allclose(many.sum(axis=3), 1.0)


def test_a_prior_so_small_that_rows_are_no_distributions_is_refused() -> None:
    with pytest.raises(rmab.errors.ModelError, match="priors must be one or more numbers from 1e-12"):
        Estimated(priors=(5e-324,))
    pools = Pools.of(view_of(2, 3, 4))
    rows = Estimated(priors=(1e-12,)).around(pools, np.zeros(pools.support.shape, dtype=np.int64), 0).low.sum(axis=3)
    np.testing.assert_allclose(rows, 1.0, rtol=1e-12)


def told(pools: Pools, paid: Any) -> Observations:
    return Observations(
        np.zeros(pools.support.shape, dtype=np.int64), np.asarray(paid, dtype=float), np.ones(pools.zero.shape)
    )


def moved(part: Priced, memory: Any, pools: Pools, t: int, gain: Any, ahead: Any) -> Any:
    sets = Estimated().around(pools, np.ones(pools.support.shape, dtype=np.int64), t).take(pools.group)
    estimate = RewardEstimate(np.asarray(gain, dtype=float), np.asarray(ahead, dtype=float))
    return part.move(memory, ended(pools, told(pools, gain), t), sets, estimate)


@pytest.mark.compiled
def test_forecasts_that_do_not_come_true_are_no_longer_trusted() -> None:
    """Two arms of one state; arm 0 is forecast to pay, and pays or does not."""
    pools = Pools.of(view_of(2, 1, 3))
    believed, other = [[[0.0, 0.8]], [[0.0, 0.2]]], [[[0.0, 0.1]], [[0.0, 0.7]]]
    for paid, trusted in ((believed, True), (other, False)):
        part = Priced()
        step = part.begin(
            pools, Estimated().around(pools, np.zeros(pools.support.shape, dtype=np.int64), 0).take(pools.group)
        )
        for t in range(5):
            step = moved(part, step.memory, pools, t, paid, believed)
        assert bool(step.memory["trusted"]) is trusted
        assert step.drawn is not trusted
        assert (step.share[0] > step.share[1]).all() == trusted
        again = part.again(step.memory, pools, Estimated().around(pools, np.ones(pools.support.shape, dtype=np.int64), 5))
        np.testing.assert_allclose(again.share, step.share, atol=1e-9)
        assert again.iterations == 1  # prices that are the answer are found to be
    assert step.memory[f"{PAST}.beta"] <= np.sqrt(5 * np.log(2))  # guaranteed play is no greedier than the root of t
    always = Priced(trust=0.0)
    assert moved(always, step.memory, pools, 5, other, believed).drawn is False


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_the_rule_for_beta_is_free_of_scale(scale: float) -> None:
    """Entropy costs a tenth of the gain, whatever the units of rewards, after a few episodes."""
    rng = np.random.default_rng(3)
    pools = Pools.of(view_of(4, 3, 6, budget=2, low=0.0, high=scale))
    reward = rng.random((4, 3, 2))
    part = Priced()
    step = part.begin(pools, Estimated().around(pools, np.zeros(pools.support.shape, dtype=np.int64), 0).take(pools.group))
    for t in range(12):
        step = moved(part, step.memory, pools, t, reward, reward)
    memory, sets = step.memory, Estimated().around(pools, np.ones(pools.support.shape, dtype=np.int64), 0)
    beta = float(memory[f"{FORECAST}.beta"])
    start = pools.begins * pools.weights[:, np.newaxis]
    plan = soften_blocks(sets.low, reward, start, np.full(6, 2.0), beta)
    earned, uniform = ((plan.visits(uniform=one) * reward).sum() for one in (False, True))
    assert earned - plan.value == pytest.approx(0.1 * (earned - uniform), rel=0.02)


@pytest.mark.parametrize("paid", ["arm", "everybody", "almost nothing"])
def test_where_decisions_change_nothing_beta_is_not_led_by_rounding(paid: str) -> None:
    rng = np.random.default_rng(5)
    kernels = rng.dirichlet(np.ones(2), size=(10, 2, 2))
    reward = {"arm": rng.random((10, 1, 1)), "everybody": np.array(1.0), "almost nothing": 1e-310 * rng.random((10, 2, 2))}
    rewards = np.broadcast_to(reward[paid], (60, 10, 2, 2))
    task = rmab.Task.from_rewards(rmab.Problem(rmab.Arms(kernels), 0, 3, 7), rewards, low=0, high=1)
    learner, least = Ucmd(), np.inf
    state = learner.begin(task.view())
    for t in range(60):
        episode = rmab.simulate(task.problem, learner.plan(state).policy, task.reward(t), np.random.default_rng((0, t)))
        state = learner.learn(state, rmab.Feedback.reveal(task.view(), t, episode, task.reward(t)))
        least = min(least, float(state.arrays["step.forecast.fitting"]))
    assert least >= 10


def test_confidence_sets_choose_hopeful_kernels() -> None:
    """After the same first episode, plans in sets promise at least as much of what both hope for."""
    for seed in range(5):
        game = rmab.make_task("cpap@noisy", arms=4, budget=2, horizon=6, episodes=1, seed=seed)
        promised = []
        for sets in (Kl(), Estimated()):
            learner = Ucmd(confidence=sets, probes=Probes(every=0))
            run = rmab.run(game, learner)
            assert (run.activations == 12).all()
            hoped = run.state.arrays["step.forecast.reward"]
            promised.append((run.reward[0], (visits_of(learner, run.state) * hoped).sum()))
        (earned, hopeful), (same, plain) = promised
        assert earned == same
        assert hopeful > plain


def visits_of(learner: Ucmd, state: rmab.State) -> Any:
    plan = learner.plan(state)
    assert plan.counted is not None
    return plan.counted()


@pytest.mark.compiled
def test_the_guaranteed_play_is_no_worse_than_chance() -> None:
    """Against an adversary that sees the plan it loses no more than random decisions would, and less than without trust."""
    game = rmab.make_task("cpap@plan-aware", seed=4, episodes=40)
    own, chance, trusting = (
        rmab.run(game, learner).relative_regret() for learner in ("ucmd", "random", rmab.make_learner("ucmd", trust=0.0))
    )
    assert own < chance + 0.02
    assert own < trusting


@pytest.mark.compiled
def test_turns_that_are_found_need_no_guarantee() -> None:
    """Halves that alternate, made for those who follow the leader: with seasons it beats every fixed policy, else chance."""
    game = rmab.make_task("cpap@alternating", seed=4, episodes=40)
    own, without = (rmab.run(game, rmab.make_learner("ucmd", **one)) for one in ({}, {"seasons": ()}))
    assert own.relative_to_random() < -1
    assert without.relative_to_random() < 1


@pytest.mark.compiled
def test_top_b_alone_loses_half_where_rewards_alternate() -> None:
    """Two arms take turns: full information and top-B earn next to nothing, the guaranteed play next to half."""
    problem = rmab.Problem(rmab.Arms(np.ones((2, 1, 2, 1))), 0, 1, 2)
    rewards = np.zeros((60, 2, 1, 2))
    rewards[::2, 0, 0, 1] = rewards[1::2, 1, 0, 1] = 1.0
    game = rmab.Task.from_rewards(problem, rewards, low=0, high=1)
    following = Ucmd(estimator=Revealed(), rounding=TopB(), step=Priced(trust=0.0), probes=Probes(every=0))
    assert rmab.run(game, following, feedback="full").reward[10:].mean() < 0.35 * 2
    assert rmab.run(game, "ucmd", feedback="full").reward[10:].mean() > 0.43 * 2


def looking(part: Probes, memory: Any, seed: int = 0, **changes: Any) -> Any:
    pools = Pools.of(view_of(4, 2, 5, budget=2, **changes))
    policy = rmab.IndexPolicy(np.full((4, 5, 2), 0.5), 2)
    return part.added(memory, policy, pools, np.array([5.0, 4.0, 3.0, 0.1, 2.0]), (seed, 7))


def test_looks_are_made_at_the_cheapest_step() -> None:
    memory = {"unseen": np.array([0, 3, 1, 9]), "calm": np.array(20), "steps": np.array(1)}
    table = looking(Probes(most=0.2), memory).table  # two of ten activations; unseen for two episodes are due
    np.testing.assert_array_equal(table[1, :, 0], [0.5, 0.5, 0.5, 2.0, 0.5])
    np.testing.assert_array_equal(table[3, :, 0], [0.5, 0.5, 0.5, 2.0, 0.5])
    assert (table[[0, 2]] == 0.5).all()
    only = looking(Probes(most=0.1), memory).table
    assert (only[3] == 2.0).any(axis=0).all()  # the one that was not seen for longest comes first
    assert (only[:3] == 0.5).all()
    assert looking(Probes(every=0), {}).table.max() == 0.5
    assert looking(Probes(every=0.5), {**memory, "unseen": np.zeros(4, dtype=np.int64)}).table.max() == 0.5


def test_looks_last_until_activation_has_led_where_it_leads() -> None:
    """An active arm moves up a chain of two states: with certainty, with probability .1, or never."""
    memory = {"unseen": np.array([0, 3, 1, 9]), "calm": np.array(5), "steps": np.array(3)}
    table = looking(Probes(most=0.3), memory).table  # three of ten activations are one look
    np.testing.assert_array_equal(table[3, :, 0], [0.5, 2.0, 2.0, 2.0, 0.5])
    assert (table[:3] == 0.5).all()
    part, pools = Probes(), Pools.of(view_of(3, 2, 20))
    for up, steps in ((10, 2), (1, 6), (0, 1)):  # .9^k is at most .5 above .9^19, first at k = 5
        counts = np.zeros((3, 2, 2, 2), dtype=np.int64)
        counts[0, 0, 1], counts[1, 1, 1, 1] = (10 - up, up), 7
        end = ended(pools, told(pools, np.full((3, 2, 2), np.nan)), 0, counts=counts)
        assert part.learn(part.begin(pools), end, RewardEstimate(np.zeros((3, 2, 2))))["steps"] == steps


def test_looks_are_frequent_again_after_a_surprise() -> None:
    part, pools = Probes(), Pools.of(view_of(3, 1, 2))
    memory: Any = part.begin(pools)
    nothing, paid = np.full((3, 1, 2), np.nan), np.full((3, 1, 2), 0.5)
    for t, (values, surprised, unseen, calm) in enumerate(
        [(nothing, [0, 0, 0], 1, 1), (nothing, [0, 0, 0], 2, 2), (paid, [1, 0, 0], 0, 0), (paid, [1, 0, 0], 0, 1)]
    ):
        estimate = RewardEstimate(np.zeros((3, 1, 2)), surprised=np.array(surprised, dtype=bool))
        memory = part.learn(memory, ended(pools, told(pools, values), t), estimate)
        np.testing.assert_array_equal(memory["unseen"], unseen)
        assert memory["calm"] == calm


def test_looks_grow_as_the_logarithm_of_t() -> None:
    """One arm is worth nothing: it is looked at ever more rarely."""
    problem = rmab.Problem(rmab.Arms(np.ones((3, 1, 2, 1))), 0, 2, 4)
    reward = np.zeros((400, 3, 1, 2))
    reward[:, :2, 0, 1] = 1.0
    game = rmab.Task.from_rewards(problem, reward, low=0, high=1)
    run = rmab.run(game, Ucmd(probes=Probes(most=0.2)))
    lost = game.problem.budget * 4 - run.reward
    assert (lost[:20] > 0).sum() >= 8
    assert (lost[200:] > 0).sum() <= 12


@pytest.mark.compiled
def test_what_is_learned_does_not_depend_on_the_order_within_an_episode() -> None:
    """Arms of a group that are paid alike, seen in another order: the same statistics."""
    _, pools, observed = tiny(pooled_rewards=True)
    part = Ucmd().estimator
    first = part.learn(part.begin(pools), ended(pools, observed))
    swapped, view = np.array([1, 0, 2]), pools.view
    feedback = rmab.Feedback(0, *_feedback(swapped))
    second = part.learn(part.begin(pools), ended(pools, Pools.of(view).observe(feedback)))
    np.testing.assert_array_equal(first.ahead, second.ahead)
    np.testing.assert_array_equal(observed.counts, Pools.of(view).observe(feedback).counts)


def _feedback(order: np.ndarray) -> tuple[Any, Any, Any]:
    import literal
    from episodes import ACTIONS, REWARD, STATES

    visits = literal.pair_visits(STATES, ACTIONS, 2)
    return STATES[:, order], ACTIONS[:, order], np.where(visits > 0, REWARD, np.nan)[order]


def lost(game: rmab.Task, seed: int, begin: int = 0) -> float:
    """Return the part of O1 that `ucmd` lost from an episode on."""
    run = rmab.run(game, "ucmd", seed=seed)
    bound = run.comparators.o1()[begin:].sum()
    return float((bound - run.reward[begin:].sum()) / bound)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [200, 204])
def test_what_chains_pay_at_their_far_ends_is_found(seed: int) -> None:
    """Eight states, and every arm pays something else at the end: who was touched at the near end has not been seen."""
    rng = np.random.default_rng(seed)
    moves, rewards = chains(8, rng.uniform(0.5, 0.7, 8), 0.4), np.zeros((120, 8, 8, 2))
    rewards[:, :, -1, 1] = rng.uniform(0.2, 1.0, 8)
    game = rmab.Task.from_rewards(rmab.Problem(rmab.Arms(moves), 0, 2, 40), rewards, low=0, high=1)
    assert lost(game, seed, begin=80) < 0.05


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [200, 203])
def test_a_range_far_wider_than_pay_costs_little(seed: int) -> None:
    """Pay is a thousandth of what was declared: what is hoped for in vain must not cost the forecasts their trust."""
    rng = np.random.default_rng(seed)
    moves, rewards = rng.dirichlet(np.ones(3), (10, 3, 2)), np.zeros((60, 10, 3, 2))
    rewards[..., 1] = 1e-3 * rng.uniform(size=(10, 3)) * rng.uniform(0.8, 1.2, (60, 10, 3))
    assert lost(rmab.Task.from_rewards(rmab.Problem(rmab.Arms(moves), 0, 3, 20), rewards, low=0, high=1), seed) < 0.1
