"""Contract test of adversaries: `check_adversary(mine)` passes, or names the broken clause."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.errors import ModelError
from rmab.model import Adversary, place
from rmab.testing.games import copy_of, require, require_refusal

STEPS = 6  # steps of an episode, for simulated visits
MOST = 20  # maximum number of checked episodes, evenly spread


def check_adversary(adversary: Adversary) -> None:
    """Check the rewards of up to 20 episodes against the contract of an adversary.

    episodes      rewards exist for episodes 0..T-1, and other episodes raise ModelError.
    rewards       base and rewards are arrays of one shape, (N, S, 2) or (N, K, S, 2), finite and within [low, high].
    passive_zero  passive rewards are 0 if that is declared.
    read-only     returned rewards are read-only, and do not change later.
    determinism   the same episode and visits give the same rewards, byte for byte.
    causality     the order of calls does not matter; visits matter only if `adaptive` is True.
    pickling      a copy from another process gives the same rewards.
    alike         arms of a group have equal rewards if `treats_alike` returns True.
    copies        `repeated` gives copies of an arm equal rewards (those of the arm, unless adaptive), or raises ModelError.

    Parameters
    ----------
    adversary : Adversary
        The adversary to check.

    Raises
    ------
    AssertionError
        In one line, with the broken clause.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> from rmab.testing import check_adversary
    >>> model = rmab.RewardModel(np.ones((1, 2, 2, 2)), low=0, high=2)
    >>> check_adversary(rmab.make_adversary("noisy", model, 10, np.random.default_rng(0)))
    """
    require(isinstance(adversary, Adversary), f"kind: {type(adversary).__name__} is not a subclass of rmab.Adversary")
    rounds = _check_episodes(adversary)
    _check_values("base", adversary, _rewards_of(adversary, "base"))
    given = {t: _visits(adversary.base, t, 0) for t in rounds}
    rewards, expected = dict[int, FloatArray](), dict[int, bytes]()
    for t in rounds:
        reward = rewards[t] = _rewards_of(adversary, t, given[t])
        _check_values(f"episode {t}", adversary, reward)
        require(not reward.flags.writeable, f"read-only: the rewards of episode {t} can be written to")
        expected[t] = reward.tobytes()
        same = _rewards_of(adversary, t, given[t]).tobytes() == expected[t]
        require(same, f"determinism: two calls for episode {t} give different rewards")
    for t in rounds:
        require(
            rewards[t].tobytes() == expected[t], f"read-only: the rewards of episode {t} changed after they were returned"
        )
    _check_causality(adversary, given, expected)
    _check_copy(adversary, given, expected)
    _check_alike(adversary, rounds)
    _check_repeated(adversary, rounds)


def _check_episodes(adversary: Adversary) -> list[int]:
    """Return the episodes to check."""
    number = adversary.episodes
    require(isinstance(number, int) and number >= 1, f"episodes: T must be a whole number, 1 or more, got {number!r}")
    for t in (-1, number):
        require_refusal("episodes", f"episode {t} of {number}", partial(adversary.reward, t), ModelError)
    return sorted({int(t) for t in np.linspace(0, number - 1, min(number, MOST))})


def _rewards_of(adversary: Adversary, what: str | int, visits: IntArray | None = None) -> FloatArray:
    """Return the rewards of an episode, or the base; raise AssertionError for any exception."""
    try:
        found = adversary.base if isinstance(what, str) else adversary.reward(what, visits)
    except ModelError as error:
        raise AssertionError(f"rewards: {error}") from error
    except Exception as error:
        when = "base" if isinstance(what, str) else f"episode {what}"
        no_visits = not adversary.adaptive and isinstance(error, TypeError | AttributeError)  # visits are None
        hint = " (visits are None unless the class has `adaptive = True`)" if no_visits else ""
        raise AssertionError(f"episodes: {when} raises {type(error).__name__}: {error}{hint}".replace("\n", " ")) from error
    require(isinstance(found, np.ndarray), f"rewards: {what} is a {type(found).__name__}, not an array")
    return found


def _check_values(when: str, adversary: Adversary, reward: FloatArray) -> None:
    shape = adversary.base.shape
    wanted = "(N, S, 2), or (N, K, S, 2) with phases"
    require(len(shape) in (3, 4) and shape[-1] == 2, f"rewards: base must have shape {wanted}, got {shape}")
    (low, high), phases = (adversary.low, adversary.high), len(shape) - 2
    for at in np.argwhere(~((reward >= low) & (reward <= high)))[:1]:
        value = reward[tuple(at)]
        raise AssertionError(f"rewards: {when}, {place(at, phases)} is {value}, outside [{low}, {high}]")
    if adversary.passive_zero:
        for at in np.argwhere(reward[..., 0] != 0)[:1]:
            value = reward[(*at, 0)]
            raise AssertionError(f"passive_zero: {when}, {place(at, phases)} has the passive reward {value}")


def _visits(base: FloatArray, t: int, key: int) -> IntArray:
    """(N, S, 2), or with phases, random visits of t episodes."""
    rng = np.random.default_rng((t, key))
    drawn = rng.multinomial(t * STEPS, rng.dirichlet(np.ones(base[0].size), size=len(base)))
    return np.asarray(drawn.reshape(base.shape), dtype=np.int64)


def _check_causality(adversary: Adversary, given: dict[int, IntArray], expected: dict[int, bytes]) -> None:
    for t in reversed(given):
        same = _rewards_of(adversary, t, given[t]).tobytes() == expected[t]
        require(same, f"causality: episode {t} has other rewards after calls for later episodes")
        if not adversary.adaptive:
            for visits in (None, _visits(adversary.base, t, 1)):
                same = _rewards_of(adversary, t, visits).tobytes() == expected[t]
                require(same, f"causality: the visits change episode {t}, but `adaptive` is False")


def _check_copy(adversary: Adversary, given: dict[int, IntArray], expected: dict[int, bytes]) -> None:
    copied = copy_of(adversary, "the adversary")
    for t, visits in given.items():
        require(
            _rewards_of(copied, t, visits).tobytes() == expected[t], f"pickling: a copy has other rewards in episode {t}"
        )


def _groupings(arms: int) -> Iterator[IntArray]:
    yield np.zeros(arms, dtype=np.int64)
    yield np.arange(arms) * 2 // arms
    yield np.arange(arms) % 2
    yield np.arange(arms)


def _check_alike(adversary: Adversary, rounds: list[int]) -> None:
    for groups in _groupings(adversary.base.shape[0]):
        if not adversary.treats_alike(groups):
            continue
        first = np.unique(groups, return_index=True)[1][groups]
        for t in rounds:
            reward = _rewards_of(adversary, t, _visits(adversary.base, t, 2))
            for n in np.flatnonzero((reward != reward[first]).reshape(len(reward), -1).any(axis=1))[:1]:
                other = f"arms {first[n]} and {n} are in one group"
                raise AssertionError(
                    f"alike: treats_alike returns True, but {other} and have different rewards in episode {t}"
                )


def _check_repeated(adversary: Adversary, rounds: list[int]) -> None:
    try:
        double = adversary.repeated(2)
    except ModelError:
        return
    for t in rounds:
        seen = _visits(adversary.base, t, 3)
        paid, copies = _rewards_of(adversary, t, seen), _rewards_of(double, t, np.repeat(seen, 2, axis=0))
        require(copies.shape[0] == 2 * len(paid), f"copies: repeated(2) has {copies.shape[0]} arms, not {2 * len(paid)}")
        require(np.array_equal(copies[::2], copies[1::2]), f"copies: in episode {t} of repeated(2), copies of an arm differ")
        if not adversary.adaptive:
            same = np.array_equal(copies[::2], paid)
            require(same, f"copies: in episode {t} of repeated(2), copies do not have the rewards of their arm")
