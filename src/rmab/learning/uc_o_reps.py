"""UC-O-REPS (Rosenberg and Mansour, ICML 2019): mirror descent on the true losses, which all are revealed.

Knowledge: nothing of the kernels; L1 balls around the empirical ones, rebuilt when a pair's count doubles. Feedback: full;
in bandit mode it is not defined. It is what `ucmd-armab` would be with the true rewards in the place of its estimates.
Hard budget: the budget is a constraint of the projection, for all arms together; then the B highest indices are activated.
Parameters: eta = sqrt(ln(S^2 A) / T), the minimiser of the regret bound (the constant of the paper in our reading). Tuned:
64 eta (studies/tuning_rivals.py, docs/tuning.md).
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, State
from rmab.learning.mirror import paper_rate
from rmab.learning.occupancy import FullInformation
from rmab.learning.presets import PresetOptions

__all__ = ["UcOReps", "UcORepsOptions"]


class UcORepsOptions(PresetOptions):
    """Options of `uc-o-reps`."""

    TUNED: ClassVar[Mapping[str, float]] = {"rate": 64.0}
    rate: float | None = Field(None, gt=0, le=1e6, description="the learning rate, in units of the theory's")


class UcOReps(FullInformation):
    """Online mirror descent with the true losses."""

    name = "uc-o-reps"
    paper = "Rosenberg & Mansour, ICML 2019"

    def _direction(self, state: State, rewards: FloatArray) -> tuple[FloatArray, Arrays]:
        return self.settings.chosen("rate") * paper_rate(state.view) * rewards, {}
