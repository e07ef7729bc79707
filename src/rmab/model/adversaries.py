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
from rmab.errors import ModelError
from rmab.model.adversary import Adversary, first_of
from rmab.model.registry import ADVERSARIES
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


def make_adversary(name: str, model: RewardModel, episodes: int, rng: np.random.Generator) -> Adversary:
    """Make an adversary by name.

    Parameters
    ----------
    name : str
        One of `rmab.list_adversaries()` (docs/cli.md has their formulas); or `module:maker` for a custom one, which is
        called with (model, episodes, rng) and returns an Adversary.
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
        If there is no such adversary, or a custom one cannot be built.

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
    if ":" in name:
        custom: Adversary = ADVERSARIES.call(name, model, number, rng)
        if custom.episodes != number:
            raise ModelError(f"adversary {name}: has {custom.episodes} episodes, the task has {number}")
        return custom
    declared = (number, model.low, model.high, model.passive_zero)
    implementation = ADVERSARIES.load(name)
    if isinstance(implementation, type):  # it answers to what is played
        answering: Adversary = implementation(*declared, model)
        return answering
    check_memory(f"adversary {name} of {number} episodes", 16.0 * number * model.shape[0] * model.shape[1])
    return Scripted(*declared, model, frozen(implementation(number, model.shape, rng)))
