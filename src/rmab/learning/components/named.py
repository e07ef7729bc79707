"""Parts by name, for the command line and study files; your own is `module:Class`."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from rmab.common.own import called, imported
from rmab.learning.components.base import Part
from rmab.learning.components.execution import DependentRounding, TopB
from rmab.learning.components.forecasts import Forecast
from rmab.learning.components.priced import Priced
from rmab.learning.components.refresh import Doubling, EveryEpisode, Refresh
from rmab.learning.components.remembering import Fading, LastSeen
from rmab.learning.components.rewards import Direct, ImplicitExploration, PaperEstimator, Rewards
from rmab.learning.components.sets import L1, Bernstein, Estimated, Hoeffding, Kl, Sets, TrueKernels, WideBernstein
from rmab.learning.components.steps import Active, Lazy, Step

Kind = TypeVar("Kind", bound=Part)
SETS: Mapping[str, type[Sets]] = {
    "estimated": Estimated,
    "hoeffding": Hoeffding,
    "bernstein": Bernstein,
    "wide-bernstein": WideBernstein,
    "kl": Kl,
    "l1": L1,
    "true": TrueKernels,
}
ESTIMATORS: Mapping[str, type[Rewards]] = {
    "paper": PaperEstimator,
    "direct": Direct,
    "fading": Fading,
    "last": LastSeen,
    "forecast": Forecast,
    "implicit": ImplicitExploration,
}
STEPS: Mapping[str, type[Step]] = {"active": Active, "lazy": Lazy, "priced": Priced}
EXECUTIONS: Mapping[str, type[TopB] | type[DependentRounding]] = {"top": TopB, "dependent": DependentRounding}
REFRESHES: Mapping[str, type[Refresh]] = {"every-episode": EveryEpisode, "doubling": Doubling}


def part(option: str, name: str, known: Mapping[str, type[Kind]], base: Any, **shared: Any) -> Kind:
    """Make the part of this name, which is known, or one's own. Of the shared options it gets those that it has."""
    cls: type[Kind] = imported(option, name, base) if ":" in name else known[name]
    own: list[str] = [one.name for one in fields(cls)] if is_dataclass(cls) else []
    taken = {key: value for key, value in shared.items() if key in own}
    return called(option, name, cls, **taken) if ":" in name else cls(**taken)
