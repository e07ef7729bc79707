"""The state of a learner: kept in a file and read again, and what cannot be reached from it."""

import pickle
import types

import numpy as np
import pytest

import rmab
from rmab.learning import State
from small import EPISODES, small_task


class TestState:
    def state(self):
        return rmab.run(small_task(), "ucmd").state

    def test_arrays_are_read_only(self):
        assert all(not array.flags.writeable for array in self.state().arrays.values())

    def test_arrays_are_read_only_after_pickling(self):
        again = pickle.loads(pickle.dumps(self.state()))
        assert all(not array.flags.writeable for array in again.arrays.values())

    def test_goes_on_after_a_file(self, tmp_path):
        state, player = self.state(), rmab.make_learner("ucmd")
        state.save(tmp_path / "state.npz")
        again = State.load(tmp_path / "state.npz")
        assert (again.learner, again.seed, again.episode) == (state.learner, state.seed, state.episode)
        assert {k: (v.dtype, v.tobytes()) for k, v in again.arrays.items()} == {
            k: (v.dtype, v.tobytes()) for k, v in state.arrays.items()
        }
        assert all(not array.flags.writeable for array in (*again.arrays.values(), again.view.start))
        np.testing.assert_array_equal(player.plan(again).policy.table, player.plan(state).policy.table)

    @pytest.mark.parametrize("refresh", ["every-episode", "doubling"])
    def test_plans_of_a_loaded_state_are_those_of_the_state(self, refresh):
        """After every number of episodes: also right after sets were renewed, when two arrays of the state are equal."""
        player = rmab.make_learner("ucmd", refresh=refresh)
        for episodes in range(1, 7):
            state = rmab.run(rmab.make_task("cpap", episodes=episodes), player, seed=1).state
            again = State.from_bytes(state.to_bytes())
            tables = [player.plan(one, budget=3).policy.table for one in (state, again)]  # sets are made again
            np.testing.assert_array_equal(*tables)

    def test_only_npz_keeps_a_state(self, tmp_path):
        with pytest.raises(rmab.errors.FileError, match="npz"):
            self.state().save(tmp_path / "state.json")
        assert not list(tmp_path.iterdir())

    def test_names_groups_and_sizes_survive(self, tmp_path):
        kernels = [np.full((2, 2, 2), 0.5), np.ones((1, 2, 1))]
        problem = rmab.Problem(rmab.Arms.of_sizes(kernels, groups=["a", "b"]), 0, 1, 2)
        view = rmab.Task.from_rewards(problem, np.zeros((2, 2, 2, 2)), low=0, high=1, passive_zero=True).view()
        rmab.make_learner("random").begin(view).save(tmp_path / "state.npz")
        again = State.load(tmp_path / "state.npz").view
        for name, value in vars(view).items():
            np.testing.assert_array_equal(getattr(again, name), value)
            assert type(getattr(again, name)) is type(value)

    def test_a_file_without_its_view_is_refused(self, tmp_path):
        path = tmp_path / "state.npz"
        np.savez(path, kind="rmab learner state", learner="random {}", seed=0, episode=0)
        with pytest.raises(rmab.errors.FileError, match="missing view_arms"):
            State.load(path)

    def test_a_file_whose_learner_has_no_name_is_refused(self, tmp_path):
        path = tmp_path / "state.npz"
        self.state().save(path)
        with np.load(path) as fields:
            np.savez(path, **{**fields, "learner": np.array(3)})
        with pytest.raises(rmab.errors.ModelError, match=r"state\.npz: a state needs the signature of its learner"):
            State.load(path)


def test_a_plan_has_a_short_repr():
    state = rmab.make_learner("ucmd").begin(small_task().view())
    shown = repr(rmab.make_learner("ucmd").plan(state))
    assert shown == f"Plan(IndexPolicy, {int(state.arrays['iterations'])} iterations)"


def reachable(*roots):
    """Yield every array that attributes, items, closures, defaults and bases lead to; modules and code lead nowhere."""
    left, known = list(roots), {}
    while left:
        thing = left.pop()
        if id(thing) in known or isinstance(thing, types.ModuleType | str | bytes | int | float | type(None)):
            continue
        known[id(thing)] = thing  # kept alive, so that no other thing gets its id
        if isinstance(thing, np.ndarray):
            yield thing
            left.append(thing.base)
            continue
        if isinstance(thing, dict | types.MappingProxyType):
            left += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            left += thing
        elif isinstance(thing, types.MethodType):
            left += [thing.__self__, thing.__func__]
        elif isinstance(thing, types.FunctionType):
            left += [cell.cell_contents for cell in thing.__closure__ or ()]
            left += [thing.__defaults__, thing.__kwdefaults__]
        else:
            left += vars(thing).values() if hasattr(thing, "__dict__") else []
            left += [getattr(thing, slot, None) for slot in getattr(type(thing), "__slots__", ())]
            left += [thing.func, thing.args, thing.keywords] if hasattr(thing, "func") else []


def leaks(game, rewards, *roots):
    """Return the names of what can be reached, among the kernels and these rewards (T, N, S, 2)."""
    arms = game.problem.arms
    secrets = {"kernels": arms.kernels, "cumulative": arms.cumulative, "all rewards": rewards}
    secrets |= {f"rewards {t}": reward for t, reward in enumerate(rewards)}
    found = set()
    for array in reachable(*roots):
        for name, secret in secrets.items():
            same = array.size == secret.size and array.dtype.kind == "f" and np.allclose(array.ravel(), secret.ravel())
            if same or np.shares_memory(array, secret):
                found.add(name)
    return found


class Spy(rmab.Learner):
    """Collects everything that a learner is ever handed."""

    name = "spy"

    def __init__(self, real):
        self.real, self.seen = real, []

    def begin(self, view, seed=0):
        self.seen.append((-1, self.real.begin(view, seed), view))
        return self.seen[-1][1]

    def plan(self, state):
        plan = self.real.plan(state)
        self.seen.append((state.episode - 1, state, plan))
        return plan

    def learn(self, state, feedback):
        after = self.real.learn(state, feedback)
        self.seen.append((feedback.episode, feedback, after))
        return after

    def estimate(self, state):
        return self.real.estimate(state)

    initial = decide = update = lambda self, *_: {}


class TestSecrets:
    @pytest.mark.parametrize("name", ["ucmd", "ucmd-armab", "rmab-ucrl", "random"])
    def test_no_learner_reaches_kernels_or_rewards(self, name):
        game = small_task()
        rewards = game.adversary.rewards
        spy = Spy(rmab.make_learner(name))
        rmab.run(game, spy)
        assert len(spy.seen) == 1 + 2 * EPISODES
        for _, *things in spy.seen:
            # Under bandit feedback the rewards of past episodes are not fully known, either.
            assert leaks(game, rewards, *things, spy.real) == set()

    def test_full_feedback_shows_the_past_but_not_the_future(self):
        game = small_task(feedback="full")
        rewards = game.adversary.rewards
        spy = Spy(rmab.make_learner("ucmd"))
        rmab.run(game, spy)
        for episode, *things in spy.seen:
            assert leaks(game, rewards, *things) <= {f"rewards {episode}"}
        assert leaks(game, rewards, spy.seen[2]) == {"rewards 0"}

    def test_the_walk_finds_what_is_hidden(self):
        game = small_task()
        rewards = game.adversary.rewards
        arms, last = game.problem.arms, rewards[-1].copy()
        everything = {"kernels", "all rewards", *(f"rewards {t}" for t in range(EPISODES))}
        holder = types.SimpleNamespace(inner=[{"x": (arms.kernels.copy().reshape(-1),)}])
        assert leaks(game, rewards, holder) == {"kernels"}
        assert leaks(game, rewards, lambda: last + 1) == {f"rewards {EPISODES - 1}"}
        assert leaks(game, rewards, arms.kernels[0, 0]) == {"kernels"}
        assert leaks(game, rewards, lambda x=game: x) >= everything
        assert leaks(game, rewards, game.reward) >= everything
