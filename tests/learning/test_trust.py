"""Trust in forecasts: judged by what was executed, lost and regained; against a twin in plain Python."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.learning import Pools
from rmab.play.simulation import play_episode
from rmab.runs.running import Game

SMALL = {"arms": 6, "budget": 2, "horizon": 10, "episodes": 40}


class Trust:
    """What was promised and paid for visited pairs, added up in loops."""

    def __init__(self, least: float, executed: bool) -> None:
        self.least, self.executed = least, executed
        self.believed, self.realised, self.broken, self.trusted = 0.0, 0.0, 0.0, True

    def after(self, number: int, lead: Any, likely: Any, paid: Any, visits: Any, free: Any) -> None:
        self.believed, self.realised = ((0.9 if number else 1.0) * one for one in (self.believed, self.realised))
        for pair in np.ndindex(lead.shape) if number else ():
            if not self.executed or visits[pair] > 0 or free[pair]:
                self.believed += lead[pair] * likely[pair]
                self.realised += lead[pair] * paid[pair]
        self.broken *= 0.99
        wanted = self.least
        if self.executed and self.broken > 1:
            wanted = 1 - (1 - self.least) / 2 ** (self.broken - 1)
        trusted = number < 2 or self.least == 0 or self.realised >= wanted * self.believed
        self.broken += self.trusted and not trusted
        self.trusted = trusted


@pytest.mark.compiled
@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("name", ["swim@plan-aware", "cpap@plan-aware"])
def test_trust_is_judged_by_executed_pairs(name: str, executed: bool) -> None:
    task = rmab.make_task(name, seed=2, **SMALL)
    learner = rmab.make_learner("ucmd", executed=executed)
    game, twin, seen = Game(task, [0]), Trust(0.3, executed), set()
    state, pools = learner.begin(game.view), Pools.of(game.view)
    for t in range(task.episodes):
        policy = learner.plan(state).policy
        streams = game.begin(t, policy)
        feedback = game.feedback(play_episode(task.problem, policy, game.reward(), streams[:, :2]))
        before = state.of("step")
        state = learner.learn(state, feedback)
        visits = pools.observe(feedback).visits
        known, paid = state.of("step"), state.arrays["estimate"]
        twin.after(t, before["lead"], before["likely"], paid, visits, pools.zero)
        for own in ("believed", "realised", "broken"):
            assert math.isclose(float(known[own]), getattr(twin, own), rel_tol=1e-9, abs_tol=1e-12), (t, own)
        assert bool(known["trusted"]) == twin.trusted
        seen.add((twin.trusted, twin.broken > 1))
    assert len(seen) >= 2, "trust was never lost: the test shows nothing"


@pytest.mark.compiled
def test_an_adversary_that_sees_the_plan_pays_no_less_than_to_random_decisions() -> None:
    """Ten rounds of chains: judged by the plan, rewards that are never reached keep up a trust that earns a third."""
    learners = ("ucmd", "random", rmab.make_learner("ucmd", executed=False))
    tasks = [rmab.make_task("swim@plan-aware", seed=seed) for seed in range(21, 31)]
    own, chance, planned = (sum(rmab.run(task, one, seed=1).reward.sum() for task in tasks) for one in learners)
    assert own > 0.8 * chance
    assert own > 1.5 * planned


@pytest.mark.compiled
def test_a_state_of_an_earlier_version_has_lost_no_trust() -> None:
    task, learner = rmab.make_task("cpap@noisy", **SMALL), rmab.make_learner("ucmd")
    state = rmab.run(task, learner).state
    arrays = {name: array for name, array in state.arrays.items() if name != "step.broken"}
    older = dataclasses.replace(state, arrays=arrays)
    np.testing.assert_array_equal(learner.plan(older).policy.table, learner.plan(state).policy.table)
