"""Adversaries by name.

A task says what is at stake, as a RewardModel: a sum of parts, each with a factor. A built-in adversary chooses the factors,
episode by episode: by a script that is fixed beforehand (factors.py), or in answer to what the learner does (answering.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rmab.common.arrays import FloatArray, IntArray, frozen
from rmab.common.checks import as_integer, check_rng, expect
from rmab.common.memory import check_memory
from rmab.common.own import is_own, made_by
from rmab.errors import ModelError
from rmab.model.adversary import Adversary, first_of
from rmab.model.answering import Adaptive, Answering, PlanAware
from rmab.model.factors import SCRIPTS
from rmab.model.rewards import RewardModel


@dataclass(frozen=True, eq=False)
class Scripted(Adversary):
    """Plays factors (T, J, U) that were fixed beforehand."""

    model: RewardModel
    factors: FloatArray

    @property
    def base(self) -> FloatArray:
        """The reward when every factor is 1."""
        return self.model.base

    def treats_alike(self, groups: IntArray) -> bool:
        """Compare the parts and the whole script of every arm with those of the first of its group."""
        first = first_of(groups)
        script = self.factors[:, :, self.model.unit_of]
        return np.array_equal(script, script[:, :, first]) and np.array_equal(self.model.parts, self.model.parts[:, first])

    def repeated(self, times: int) -> Scripted:
        """Return the same script for every copy of an arm."""
        return replace(self, model=self.model.repeated(times))

    def choose(self, t: int, visits: IntArray | None) -> FloatArray:  # noqa: ARG002
        """Return the parts under the factors of the script."""
        return self.model.combined(self.model.by_unit(self.factors[t]))


ANSWERS: dict[str, type[Answering]] = {"adaptive": Adaptive, "plan-aware": PlanAware}
ADVERSARIES = (*SCRIPTS, *ANSWERS)
STRONGER = frozenset(name for name, kind in ANSWERS.items() if kind.foresees)  # than the paper's: they see the plan


def make_adversary(name: str, model: RewardModel, episodes: int, rng: np.random.Generator) -> Adversary:
    """Make an adversary by name.

    Parameters
    ----------
    name : str
        `ramp`, `noisy`, `iid`, `switching`, `drifting`, `alternating`, `mixed`, `late`, `lock`, `adaptive` or `plan-aware`
        (docs/cli.md has their formulas); or `module:maker` of your own, which is called with (model, episodes, rng)
        and returns an Adversary.
    model : RewardModel
        What is at stake.
    episodes : int
        T, at least 1.
    rng : numpy.random.Generator
        Where all its randomness comes from.

    Returns
    -------
    Adversary

    Raises
    ------
    ModelError
        If there is no such adversary, or your own cannot be made.

    Examples
    --------
    >>> import numpy as np, rmab
    >>> model = rmab.RewardModel(np.ones((1, 2, 2, 2)), low=0, high=2)
    >>> ramp = rmab.make_adversary("ramp", model, episodes=5, rng=np.random.default_rng(0))
    >>> [float(ramp.reward(t)[0, 0, 1]) for t in range(5)]
    [0.5, 0.75, 1.0, 1.25, 1.5]
    """
    number = as_integer(episodes, "episodes")
    if number < 1:
        raise ModelError(f"episodes must be at least 1, got {number}")
    expect(name, str, "the name of an adversary")
    expect(model, RewardModel, "model")
    check_rng(rng)
    declared = (number, model.low, model.high, model.passive_zero)
    if is_own(name):
        made: Adversary = made_by("adversary", name, Adversary, model, number, rng)
        if made.episodes != number:
            raise ModelError(f"adversary {name}: is made for {made.episodes} episodes, the task has {number}")
        return made
    if name in ANSWERS:
        return ANSWERS[name](*declared, model)
    if name not in SCRIPTS:
        known = ", ".join(ADVERSARIES)
        hint = f"there are {known}, and module:maker or Task.from_rewards for your own"
        raise ModelError(f"unknown adversary {name!r}; {hint}", code="unknown-name", adversary=name)
    check_memory(f"adversary {name} of {number} episodes", 16.0 * number * model.shape[0] * model.shape[1])
    return Scripted(*declared, model, frozen(SCRIPTS[name](number, model.shape, rng)))
