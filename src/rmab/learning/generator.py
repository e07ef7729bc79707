"""A generator of transitions, which no real programme has: samples of every pair's next state, before the first episode."""

from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from rmab.common.arrays import FloatArray, IntArray, frozen
from rmab.errors import ModelError
from rmab.learning.base import Privileged, stream
from rmab.learning.indexed import IndexLearner
from rmab.learning.pools import Observed, Pools
from rmab.learning.presets import TunableOptions
from rmab.model.problem import Problem
from rmab.model.view import View

__all__ = ["FromGenerator", "GeneratorOptions", "drawn"]

SAMPLES = 200  # of every pair, unless told
KEY = 103  # of the stream that they are drawn from


class GeneratorOptions(TunableOptions):
    """What a learner asks of the generator."""

    version: str
    samples: int | None = Field(
        None, ge=1, le=10**9, description="next states that the generator draws for every pair of a group; None: 200"
    )

    @model_validator(mode="after")
    def _has_a_generator(self) -> Self:
        if self.samples is not None and self.version != "generator":
            raise ValueError(f"samples are drawn by version 'generator' only, this is {self.version!r}")
        return self


class FromGenerator(IndexLearner, Privileged):
    """Kernels are known through the generator's samples alone: what episodes show of them is not counted.

    Rewards that are chosen episode by episode cannot be sampled ahead: they are learned from feedback, as elsewhere.
    """

    privileged: ClassVar[str] = "is told samples of every pair's next state"
    settings: GeneratorOptions

    def __init__(self, options: GeneratorOptions, samples: IntArray | None = None) -> None:
        super().__init__(options)
        self.samples = samples

    def informed(self, problem: Problem, rewards: FloatArray, seed: int = 0) -> Self:  # noqa: ARG002
        """Return the learner that has drawn its samples from this problem's kernels; nothing else of it is kept."""
        return type(self)(self.settings, drawn(problem, self.settings.samples or SAMPLES, seed))

    def _first_counts(self, pools: Pools) -> IntArray:
        if self.samples is None:
            raise ModelError(f"{self.name}: the generator must be asked first: rmab.run does, or use `informed`")
        if self.samples.shape != pools.support.shape:
            raise ModelError(f"{self.name}: samples of shape {self.samples.shape} for a task of {pools.support.shape}")
        return self.samples

    def _counted(self, counts: IntArray, observed: Observed) -> IntArray:  # noqa: ARG002
        return counts

    def _counted_until(self, view: View, episode: int) -> int:  # noqa: ARG002
        return view.episodes  # no sample is added: one width holds in all episodes


def drawn(problem: Problem, samples: int, seed: int) -> IntArray:
    """(G, S, 2, S) how often each next state came up among `samples` draws of every pair of every group."""
    kernels = problem.arms.kernels[problem.arms.representatives]
    rows = kernels / kernels.sum(axis=3, keepdims=True)
    return frozen(stream(seed, KEY).multinomial(samples, rows).astype(np.int64))
