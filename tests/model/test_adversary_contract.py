"""`check_adversary`: every built-in adversary keeps the contract, and each clause catches an adversary that breaks it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import rmab
from rmab.common.arrays import frozen
from rmab.model.adversary import Adversary
from rmab.model.registry import ADVERSARIES
from rmab.model.trace import Trace
from rmab.testing import check_adversary

PAYS = np.zeros((2, 3, 2, 2))
PAYS[0, :, :, 1], PAYS[1, :, 1, 1] = 1.0, -0.5
MODEL = rmab.RewardModel(PAYS, low=-1, high=2)
TARIFF = rmab.RewardModel(PAYS, low=-1, high=2, units=[0, 0, 0])


@dataclass(frozen=True, eq=False)
class Good(Adversary):
    """Alternates; short, and right."""

    model: rmab.RewardModel

    @property
    def base(self) -> Any:
        return self.model.base

    def choose(self, t: int, visits: Any) -> Any:
        return self.model.combined(np.full(self.model.parts.shape, 0.5 if t % 2 else 1.5))


def made(kind: type[Adversary] = Good, model: rmab.RewardModel = MODEL) -> Adversary:
    return kind(6, model.low, model.high, model.passive_zero, model)


@pytest.mark.parametrize("model", [MODEL, TARIFF])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_built_in_adversaries_keep_it(name: str, model: rmab.RewardModel) -> None:
    check_adversary(rmab.make_adversary(name, model, 30, np.random.default_rng(3)))


def test_recorded_rewards_keep_it() -> None:
    check_adversary(Trace.of(np.random.default_rng(0).uniform(size=(4, 3, 2, 2))))


def test_a_short_own_adversary_keeps_it() -> None:
    check_adversary(made())
    assert not made().treats_alike(np.zeros(3, dtype=np.int64))
    with pytest.raises(
        rmab.errors.ModelError,
        match=r"^Good does not support copies of arms \(2 copies of each\); implement Good.repeated\(times\)$",
    ):
        made().repeated(2)


class Usage(Good):
    adaptive = True

    def choose(self, t: int, visits: Any) -> Any:
        return self.model.combined(np.where(visits > 2 * t, 0.5, 1.5))


def test_an_own_adaptive_adversary_keeps_it_and_cannot_be_saved(tmp_path: Any) -> None:
    check_adversary(made(Usage))
    arms = rmab.Arms(np.full((3, 2, 2, 2), 0.5))
    task = rmab.Task("mine", rmab.Problem(arms, 0, 1, 4), made(Usage))
    with pytest.raises(rmab.errors.ModelError, match="an adaptive adversary has no fixed rewards to save"):
        task.save(tmp_path / "task.npz")
    assert rmab.run(task, "oracle").reward.size == 6  # which is told the typical rewards
    with pytest.raises(rmab.errors.ModelError, match="needs the visits before episode 1"):
        task.reward(1)


class BeyondTheEnd(Good):
    def reward(self, t: int, visits: Any = None) -> Any:
        return super().reward(t % self.episodes, visits)


class WrongError(Good):
    def reward(self, t: int, visits: Any = None) -> Any:
        return [super(WrongError, self).reward(k) for k in range(self.episodes)][t]


class NoSuchKey(Good):
    def reward(self, t: int, visits: Any = None) -> Any:
        return {k: super(NoSuchKey, self).reward(k) for k in range(self.episodes)}[t]


class Raises(Good):
    def choose(self, t: int, visits: Any) -> Any:
        raise KeyError(t)


class ReadsVisits(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return self.model.combined(np.where(visits > 2, 0.5, 1.5))


class Narrow(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return self.model.base[:2]


class Words(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return np.full(self.model.base.shape, "a")


class Whole(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return self.model.base.astype(np.int64)


class TooMuch(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return 3.0 * self.model.base


class PaysPassive(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return np.full(self.model.base.shape, 0.25)


class Writable(Good):
    def reward(self, t: int, visits: Any = None) -> Any:
        return np.array(super().reward(t, visits))


class Chance(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return self.model.combined(np.full(self.model.parts.shape, np.random.default_rng().uniform()))


BUFFER = np.zeros((3, 2, 2))


class OneBuffer(Good):
    def choose(self, t: int, visits: Any) -> Any:
        BUFFER[...] = super().choose(t, visits)
        return BUFFER[:]


CALLS: list[int] = []


class Remembers(Good):
    def choose(self, t: int, visits: Any) -> Any:
        before, _ = (CALLS[-1] if CALLS else t), CALLS.append(t)
        return self.model.combined(np.full(self.model.parts.shape, 0.25 if before > t else 1.0))


class LooksAnyway(Good):
    def reward(self, t: int, visits: Any = None) -> Any:
        super().reward(t)  # refuses other episodes
        return frozen(Usage.choose(self, t, np.zeros((3, 2, 2)) if visits is None else visits))


class Unpicklable(Good):
    def __reduce__(self) -> Any:
        raise TypeError("not this one")


class Forgets(Good):
    def __reduce__(self) -> Any:
        return made, (Constant,)


class Constant(Good):
    def choose(self, t: int, visits: Any) -> Any:
        return self.model.base


class Unequal(Good):
    def treats_alike(self, groups: Any) -> bool:
        return True

    def choose(self, t: int, visits: Any) -> Any:
        return self.model.base * np.array([1.0, 1.0, 0.5])[:, None, None]


class WrongCopies(Good):
    def repeated(self, times: int) -> Adversary:
        return replace(self, model=rmab.RewardModel(0.5 * np.repeat(PAYS, times, axis=1), -1, 2))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (BeyondTheEnd, "episodes: episode -1 of 6 is accepted"),
        (WrongError, "episodes: episode -1 of 6 is accepted"),
        (NoSuchKey, r"episodes: episode -1 of 6 raises KeyError, not ModelError \(-1\)"),
        (Raises, "episodes: episode 0 raises KeyError: 0"),
        (ReadsVisits, r"episodes: episode 0 raises TypeError: .*\(visits are None unless the class has `adaptive = True`\)"),
        (Narrow, r"rewards: Narrow: the rewards of episode 0 must have shape \(N, S, 2\) = \(3, 2, 2\), got \(2, 2, 2\)"),
        (Words, r"rewards: Words: the rewards of episode 0: not an array of numbers \(found <U1\)"),
        (TooMuch, r"rewards: TooMuch: the rewards of episode 0: arm 0, state 0, action 1 is 3.0, outside \[-1, 2\]"),
        (PaysPassive, "passive_zero: episode 0, arm 0, state 0 has the passive reward 0.25"),
        (Writable, "read-only: the rewards of episode 0 can be written to"),
        (Chance, "determinism: two calls for episode 0 give different rewards"),
        (Remembers, "causality: episode 4 has other rewards after calls for later episodes"),
        (LooksAnyway, "causality: the visits change episode 5, but `adaptive` is False"),
        (Unpicklable, r"pickling: the adversary cannot be pickled \(not this one\)"),
        (Forgets, "pickling: a copy has other rewards in episode 0"),
        (
            Unequal,
            "alike: treats_alike returns True, but arms 0 and 2 are in one group and have different rewards in episode 0",
        ),
        (WrongCopies, r"copies: in episode 0 of repeated\(2\), copies do not have the rewards of their arm"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_broken_clause_is_named_in_one_line(kind: type[Adversary], said: str) -> None:
    CALLS.clear()
    with pytest.raises(AssertionError, match=f"^(?:{said})$"):
        check_adversary(made(kind))


def test_what_is_no_adversary_is_named() -> None:
    with pytest.raises(AssertionError, match=r"^kind: int is not a subclass of rmab.Adversary$"):
        check_adversary(3)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"^episodes: T must be a whole number, 1 or more, got 0$"):
        check_adversary(replace(made(), episodes=0))


@pytest.mark.parametrize("kind", [Whole, OneBuffer])
def test_whole_numbers_and_a_buffer_that_is_used_again_are_copied(kind: type[Good]) -> None:
    check_adversary(made(kind))
