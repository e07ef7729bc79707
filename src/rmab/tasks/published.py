"""Published examples of other authors as tasks, with the kernels and rewards of their sources. Most have identical arms.

    conveyor        Hong, Xie, Chen & Wang 2024: eight states in a row; being active advances the first half, being passive
                    the second, and the last state pays. LP priorities that always use the whole budget never reach it.
    gast-1..3       Gast, Gaujal & Yan 2020: three states; the Whittle index does not attract the mean field.
    conveyor-bait   the same with reward .1/30 for being active in the first state: LP priorities stay there.
    dirichlet-355, dirichlet-582
                    Hong, Xie, Chen & Wang 2024: ten states drawn at random; LP priorities do not attract the mean field.
    non-indexable   used by Hong, Xie, Chen & Wang 2023: three states, no Whittle index.
    non-sa          Hong, Xie, Chen & Wang 2024: ten states that violate the synchronization assumption.
    circulant       Fu, Nazarathy, Moka & Taylor 2019; Avrachenkov & Borkar 2022: four states in a circle.
    restart         Avrachenkov & Borkar 2022: five states that decay; being active restarts, and pays nothing.
    cpap-dopl, armman-dopl
                    kernels published with the code of arXiv 2410.05527, by the group of Xiong & Li 2024: two types of ten
                    patients, and ten types of two mothers. All arms start in the first state, which is our choice.

The rewards of `restart`, 0.9^(s+1), are checked by its Whittle indices of average reward: renewal theory gives -.9, -.729,
-.50949, -.25879 and .00989, which are quoted as -.9, -.73, -.5, -.26 and -.01: the third is rounded coarsely there, and the
last differs in sign. The share of its arms that may be active is ours.

Published kernels are rounded, so rows are divided by their sum. Adversaries act equally on all arms of a type. The examples
of Hong et al. activate exactly B arms at each step (option `exact`).
"""

from __future__ import annotations

import json
from functools import cache, partial
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from rmab.common import ArmCount, Budget, FloatArray, Horizon
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, pose_identical

Exact = Annotated[
    bool, Field(description="whether exactly as many arms as the budget are active, instead of at most as many")
]
EachType = Annotated[int, Field(ge=1, description="number of arms of each type")]


class Example(NamedTuple):
    """One arm: passive and active kernels (S, S), rewards (S, 2), and the share of arms that may be active."""

    passive: FloatArray
    active: FloatArray
    reward: FloatArray
    share: float


def _conveyor(bait: float = 0.0) -> Example:
    """Return the conveyor: being active advances the first four states, being passive the others, with probability .1."""
    passive, active = np.zeros((8, 8)), np.zeros((8, 8))
    back = dict(zip(range(2, 8), (0.48, 0.47, 0.46, 0.45, 0.44, 0.43), strict=True))
    for s in range(8):
        right, wrong = (active, passive) if s < 4 else (passive, active)
        right[s, s], right[s, (s + 1) % 8] = 0.9, 0.1
        if s < 2:
            wrong[s, 0] = 1.0
        else:
            wrong[s, s - 1], wrong[s, s] = back[s], 1.0 - back[s]
    reward = np.zeros((8, 2))
    reward[7, 0], reward[0, 1] = 0.1, bait
    return Example(passive, active, reward, 0.5)


def _small(passive: list[list[float]], active: list[list[float]], reward: list[list[float]], share: float) -> Example:
    return Example(np.array(passive), np.array(active), np.array(reward), share)


def _non_sa() -> Example:
    passive, active, reward = np.zeros((10, 10)), np.zeros((10, 10)), np.zeros((10, 2))
    for s, to in enumerate((0, 0, 0, 4, 5, 6, 0, 0, None, 0)):
        if to is not None:
            passive[s, to] = 1.0
    passive[8, [6, 9]] = 0.5
    for s, to in enumerate((1, 2, 3, 0, 0, 0, 7, 8, 0, 8)):
        active[s, to] = 1.0
    reward[[6, 7, 9], 1] = reward[8, 0] = 1.0
    return Example(passive, active, reward, 0.6)


def _circulant() -> Example:
    stay = 0.5 * np.eye(4)
    reward = np.repeat([[-1.0], [0.0], [0.0], [1.0]], 2, axis=1)
    return Example(stay + 0.5 * np.roll(np.eye(4), -1, axis=1), stay + 0.5 * np.roll(np.eye(4), 1, axis=1), reward, 0.2)


def _restart() -> Example:
    passive, active, reward = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros((5, 2))
    passive[np.arange(5), [1, 2, 3, 4, 4]] = 0.9
    passive[:, 0] += 0.1
    active[:, 0] = 1.0
    reward[:, 0] = 0.9 ** np.arange(1, 6)
    return Example(passive, active, reward, 0.2)


EXAMPLES: dict[str, Example] = {
    "conveyor": _conveyor(),
    "gast-1": _small(
        [[0.5214073, 0.40392496, 0.07466774], [0.0158415, 0.21455666, 0.76960184], [0.53722329, 0.37651148, 0.08626522]],
        [[0.24639364, 0.23402385, 0.51958251], [0.49681581, 0.49509821, 0.00808597], [0.37826553, 0.15469252, 0.46704195]],
        [[0.0, 0.72232506], [0.0, 0.18844869], [0.0, 0.25752477]],
        0.4,
    ),
    "gast-2": _small(
        [[0.02232142, 0.10229283, 0.87538575], [0.03426605, 0.17175704, 0.79397691], [0.52324756, 0.45523298, 0.02151947]],
        [[0.14874601, 0.30435809, 0.54689589], [0.56845754, 0.41117331, 0.02036915], [0.25265570, 0.27310439, 0.4742399]],
        [[0.0, 0.37401552], [0.0, 0.11740814], [0.0, 0.07866135]],
        0.4,
    ),
    "gast-3": _small(
        [[0.47819592, 0.02090623, 0.50089785], [0.08063373, 0.15456935, 0.76479692], [0.66552514, 0.08481946, 0.2496554]],
        [[0.00279465, 0.37327924, 0.62392611], [0.51582335, 0.46333908, 0.02083756], [0.41875202, 0.17776712, 0.40348086]],
        [[0.0, 0.97658608], [0.0, 0.53014109], [0.0, 0.40394919]],
        0.4,
    ),
    "non-indexable": _small(
        [[0.1902, 0.4156, 0.3942], [0.5676, 0.4191, 0.0133], [0.0191, 0.1097, 0.8712]],
        [[0.7796, 0.0903, 0.1301], [0.1903, 0.1863, 0.6234], [0.2901, 0.3901, 0.3198]],
        [[0.458, 0.9631], [0.5308, 0.7963], [0.6873, 0.1057]],
        0.5,
    ),
    "non-sa": _non_sa(),
    "circulant": _circulant(),
    "restart": _restart(),
    "conveyor-bait": _conveyor(0.1 / 30),
}


@cache
def _read_examples() -> dict[str, Any]:
    """Read the examples with many numbers from their file."""
    found: dict[str, Any] = json.loads((files("rmab.tasks") / "published.json").read_text(encoding="utf-8"))
    return found


def example_of(name: str) -> Example:
    """Return an example by name."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    given = _read_examples()[name]
    kernel = np.array(given["kernel"])
    return Example(kernel[:, 0], kernel[:, 1], np.array(given["reward"]), given["share"])


def kernel_of(name: str) -> FloatArray:
    """(S, 2, S) kernel of an example, with rows divided by their sums."""
    example = example_of(name)
    table = np.stack([example.passive, example.active], axis=1)
    return np.asarray(table / table.sum(axis=2, keepdims=True))


def _build(
    name: str, *, arms: ArmCount = 100, budget: Budget | None = None, horizon: Horizon = 200, exact: Exact = False
) -> Posed:
    example = example_of(name)
    limit = round(example.share * arms) if budget is None else budget
    return pose_identical(kernel_of(name), example.reward, arms, limit, horizon, exact=exact)


conveyor, gast_1, gast_2, gast_3, non_indexable, non_sa, circulant, restart, conveyor_bait = (
    partial(_build, name) for name in EXAMPLES
)
dirichlet_355, dirichlet_582 = (partial(_build, name, exact=True) for name in ("dirichlet-355", "dirichlet-582"))


def cpap_dopl(*, arms: EachType = 10, budget: Budget = 8, horizon: Horizon = 100) -> Posed:
    """Two types of patients."""
    given = _read_examples()["cpap-dopl"]
    reward = np.repeat(np.array(given["reward_of_state"])[:, np.newaxis], 2, axis=1)
    return _of_types(given["kernels"], [reward] * len(given["kernels"]), arms, budget, horizon)


def armman_dopl(*, arms: EachType = 2, budget: Budget = 10, horizon: Horizon = 5) -> Posed:
    """Ten types of mothers."""
    given = _read_examples()["armman-dopl"]
    return _of_types(given["kernels"], given["rewards"], arms, budget, horizon)


def _of_types(kernels: Any, rewards: Any, arms: int, budget: int, horizon: int) -> Posed:
    """Return equally many arms of each type, with types as groups."""
    group_of, pays = np.repeat(np.arange(len(kernels)), arms), np.array(rewards, dtype=float)
    problem = Problem(Arms.of_groups(np.array(kernels), group_of), 0, budget, horizon)
    return problem, RewardModel(pays[np.newaxis, group_of], 0.0, 2 * float(pays.max()), units=group_of)
