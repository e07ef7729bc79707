"""Steps, executions and refresh rules that break one clause of their contract are caught by that clause."""

import numpy as np
import pytest

from contracts import broken
from rmab.learning import EveryEpisode, Execution, Kl, Lazy, Step, StepResult, TopB
from rmab.play.index_policy import IndexPolicy
from rmab.solvers import TransitionSets
from rmab.testing import check_execution, check_refresh, check_step


class Plans(Step):
    """Makes a plan that it was told to make, whatever is known."""

    def __init__(self, change):
        self.change = change

    def begin(self, pools, sets):
        return self.changed(Lazy().begin(pools, sets))

    def move(self, memory, episode, sets, estimate):
        return self.changed(Lazy().move(memory, episode, sets, estimate))

    def changed(self, plan):
        return StepResult(self.change(plan.mass), plan.iterations, plan.memory)


def too_small(mass):
    return mass[:, 1:]


def too_light(mass):
    return 0.9 * mass


def negative(mass):
    return mass + np.array([-1.0, 1.0])


def elsewhere(mass):
    return np.roll(mass, 1, axis=2)


def frozen(mass):
    """Everybody stays where they started, which the kernels of a later episode rule out."""
    return np.broadcast_to(mass[:, :1], mass.shape)


def unknown(mass):
    return np.full(mass.shape, np.nan)


class Stays(Step):
    """Sticks to the first plan, whatever is learned."""

    def move(self, memory, episode, sets, estimate):
        return StepResult(episode.mass)


class NoPlan(Step):
    def move(self, memory, episode, sets, estimate):
        return episode.mass


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (NoPlan(), "returns: NoPlan: a step must return a StepResult, got ndarray"),
        (Plans(too_small), "returns: Plans: the plan is (4, 3, 3, 2), not (4, 4, 3, 2)"),
        (Plans(too_light), "returns: Plans: the masses of a step of the plan must sum to 1; they are off by 1.0e-01"),
        (Plans(negative), "returns: Plans: the plan has a mass that is negative or not a number"),
        (Plans(unknown), "returns: Plans: the plan has a mass that is negative or not a number"),
        (Stays(), "sets: no kernel of the sets gives this mass"),
        (Plans(elsewhere), "returns: Plans: not all mass of the plan begins in the start state"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_broken_steps(part, line):
    assert broken(check_step, part).startswith(line)


def test_a_plan_that_no_kernel_of_the_sets_can_make():
    from rmab.testing.components import _WatchedStep

    sets = TransitionSets.known([[[[0.0, 1.0]] * 2, [[0.0, 1.0]] * 2]])
    mass = np.zeros((1, 2, 2, 2))
    mass[0, 0, 0, 0] = mass[0, 1, 1, 0] = 1.0
    watched = _WatchedStep(Lazy())
    assert watched.checked_plan(StepResult(mass), sets).mass is mass
    with pytest.raises(AssertionError, match="sets: no kernel of the sets gives this mass"):
        watched.checked_plan(StepResult(frozen(mass)), sets)


class Spends(Execution):
    def policy(self, pools, share):
        everybody = np.ones((pools.view.arms, pools.view.states))
        return IndexPolicy(everybody, min(pools.view.budget + 1, pools.view.arms))


class SpendsRarely(TopB):
    """Keeps to the budget in all plans that a learner makes."""

    def policy(self, pools, share):
        return Spends().policy(pools, share) if (share == 1).all() else super().policy(pools, share)


class NoPolicy(Execution):
    def policy(self, pools, share):
        return None


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (Spends(), "budget: 3 arms are active, the budget is 2"),
        (SpendsRarely(), "budget: 3 arms are active, the budget is 2"),
        (NoPolicy(), "policy: it must have a method act(h, states, rng)"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_broken_executions(part, line):
    assert broken(check_execution, part).startswith(line)


class Invents(EveryEpisode):
    def basis(self, memory, counts):
        return counts + 1


class Flattens(EveryEpisode):
    def basis(self, memory, counts):
        return counts.reshape(-1)


class Halves(EveryEpisode):
    def basis(self, memory, counts):
        return 0.5 * counts


class Owes(EveryEpisode):
    def basis(self, memory, counts):
        return counts - 5


class Forever(EveryEpisode):
    def until(self, pools, episode):
        return 10**6


class Late(EveryEpisode):
    def until(self, pools, episode):
        return -1


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (Invents(), "returns: Invents: the basis must be whole numbers, from 0 to"),
        (Flattens(), "returns: Flattens: the basis has shape (72,), not (4, 3, 2, 3)"),
        (Halves(), "returns: Halves: the basis must be whole numbers, from 0 to"),
        (Owes(), "returns: Owes: the basis must be whole numbers, from 0 to"),
        (Late(), "until: sets for episode 0 of 3 are used until -1"),
        (Forever(), "until: sets for episode 0 of 3 are used until 1000000"),
        (Kl(), "kind: Kl does not derive from Refresh"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_broken_refresh_rules(part, line):
    assert broken(check_refresh, part).startswith(line)
