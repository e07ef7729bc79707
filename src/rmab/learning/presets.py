"""Options of the rivals: the parameters of their theory, or tuned ones; any of them can be set by hand."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from rmab.play.policy import Rounding

__all__ = ["Preset", "PresetOptions", "TunableOptions", "WeightedOptions"]

Preset = Literal["theory", "tuned"]


class TunableOptions(BaseModel):
    """Options with presets. Tunable parameters are in units of the theory's; None means: as the preset says."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    TUNED: ClassVar[Mapping[str, float]] = {}
    preset: Preset = Field("theory", description="parameters of the theory, or tuned ones (docs/tuning.md)")

    def chosen(self, name: str) -> float:
        """Return a parameter: as it was set, or by the preset."""
        given: float | None = getattr(self, name)
        if given is not None:
            return given
        return self.TUNED[name] if self.preset == "tuned" else 1.0


class PresetOptions(TunableOptions):
    """What the rivals in occupancies have."""

    epsilon: float = Field(0.05, gt=0, lt=1, description="probability with which a kernel may lie outside its set")
    rounding: Rounding = Field("top", description="the highest indices, or dependent rounding")


class WeightedOptions(PresetOptions):
    """Rivals with importance weights must draw: arms that the highest indices leave out would never be seen to lose."""

    rounding: Rounding = Field("dependent", description="the highest indices, or dependent rounding")
