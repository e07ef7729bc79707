"""Options of the rivals: the parameters of their theory, or tuned ones; any of them can be set by hand."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from rmab.policy import Rounding

__all__ = ["Preset", "PresetOptions", "WeightedOptions"]

Preset = Literal["theory", "tuned"]


class PresetOptions(BaseModel):
    """What all rivals have. Their parameters are in units of the theory's, None meaning: as the preset says."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    TUNED: ClassVar[Mapping[str, float]] = {}
    preset: Preset = Field("theory", description="parameters of the paper, or those that studies/tuning_rivals.py found")
    epsilon: float = Field(0.05, gt=0, lt=1, description="probability with which a kernel may lie outside its set")
    rounding: Rounding = Field("top", description="the highest indices, or dependent rounding")

    def chosen(self, name: str) -> float:
        """Return a parameter: as it was set, or by the preset."""
        given: float | None = getattr(self, name)
        if given is not None:
            return given
        return self.TUNED[name] if self.preset == "tuned" else 1.0


class WeightedOptions(PresetOptions):
    """Rivals with importance weights must draw: arms that the highest indices leave out would never be seen to lose."""

    rounding: Rounding = Field("dependent", description="the highest indices, or dependent rounding")
