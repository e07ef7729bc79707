"""Forecasts of rewards: several predictions, weighed by how they have come true, with optimism in units of their errors."""

from __future__ import annotations

import numpy as np

from rmab.common import FloatArray
from rmab.errors import ModelError
from rmab.learning.compiled import forecasting
from rmab.learning.compiled.forecasting import look_ahead, take_in
from rmab.learning.components.base import Episode
from rmab.learning.components.rewards import RewardEstimate, RewardEstimator, revealed
from rmab.learning.options import configured, option
from rmab.learning.pools import Pools
from rmab.learning.state import MOST, ArraySpec, ArraySpecs, Memory, masses, whole

FADING = 0.98  # what is left of the weight of a squared error after the next one
SHRINK = 4.0  # checks of all rows together that count with those of a row
UNSURE = 0.3  # how far predictions are off, before the first one could be checked
HIGHEST = 1e6  # of a level: what a row pays, in units of what it paid when it was first seen

RATES = "what is left of the weight of earlier values when a pair is seen again"
DOUBT = "standard errors; where most of what is seen of an arm is farther off, the rest of it is unknown again; 0: never"


@configured
class Forecast(RewardEstimator):
    """What the next episode pays: predictions at several rates of forgetting, weighed row by row by their own errors.

    A row is what arms that are paid alike are paid, in one phase. Every pair (state, action) of it has a mean for every
    rate: 1 never forgets, 0 keeps the last value alone. With `together`, a row has a profile besides, what its pairs pay
    relative to each other, and a mean of its level for every rate; so that one pair that is seen tells about all the
    others. Where the pairs of an arm do not move together, these predictions err, and lose their weight.

    Optimism about pairs that were not seen in the last episode is in units of the errors that forecasts of the pair have
    shown, or of the noisiest row where it was checked little: so no arm is given up for one bad day. It fades with the
    number of times that a pair was seen where the past predicts, and grows with the time since where only the present does.
    What one arm reveals serves all that are paid alike: they share the optimism. Pairs that were never seen are expected to
    pay the mean of what is known of their row; hoped for is a part 1 / (1 + number known) of what is missing to the most.
    Predictions that forget begin with less weight, and what was seen long ago is doubted only where it is proven that values
    move: so plans are calm where nothing changes.

    Examples
    --------
    >>> from rmab.learning import Forecast, Ucmd
    >>> Ucmd(estimator=Forecast(rates=(1.0, 0.5), together=False)).estimator.rates
    (1.0, 0.5)
    """

    anywhere = True
    rates: tuple[float, ...] = option(default=(1.0, 0.9, 0.7, 0.0), help=RATES)
    together: bool = option(
        default=True, help="whether predictions that take the pairs of an arm to move together are tried"
    )
    optimism: float = option(default=0.3, ge=0, le=100, help="hope for pairs that were seen little, in standard errors")
    doubt: float = option(default=4.0, ge=0, le=1e6, help=DOUBT)

    def __post_init__(self) -> None:
        """Check the rates, too."""
        super().__post_init__()
        if not self.rates or not all(0 <= one <= 1 for one in self.rates):
            raise ModelError(f"Forecast: rates must be one or more numbers from 0 to 1, got {self.rates}")

    def begin(self, pools: Pools) -> Memory:
        """Return the memory of `rmab.learning.compiled.forecasting`, before anything was seen."""
        kept = self.state_spec(pools)
        made = {
            name: np.zeros(one.shape or (), dtype=np.int64 if one.kind == "i" else np.float64) for name, one in kept.items()
        }
        rows = len(pools.zero)
        return {**made, "likely": np.ones(pools.zero.shape), "spread": np.full(rows, UNSURE)}

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the memory."""
        rates, pairs = len(self.rates), pools.zero.shape
        rows, experts = pairs[:1], len(self.rates) * (2 if self.together else 1)
        return {
            "means": masses(rates, *pairs),
            "times": whole(*pairs),
            "when": whole(*pairs),
            "profile": ArraySpec(pairs, "f", -HIGHEST, HIGHEST),
            "strength": ArraySpec(pairs, "f", 0, MOST),
            "level": ArraySpec((rates, *rows), "f", 0, HIGHEST),
            "leveled": whole(*rows),
            "level_when": whole(*rows),
            "errors": ArraySpec((experts, *rows), "f", 0, MOST),
            "checks": ArraySpec(rows, "f", 0, MOST),
            "pair_errors": ArraySpec(pairs, "f", 0, MOST),
            "likely": masses(*pairs),
            "spread": ArraySpec(rows, "f", 0, MOST),
        }

    def learn(self, memory: Memory, episode: Episode) -> RewardEstimate:
        """Check the last forecast, take in the episode, and look ahead."""
        pools, rates = episode.pools, np.array(self.rates)
        seen, values = revealed(episode)
        arrays = {name: np.array(memory[name]) for name in forecasting.Memory._fields}
        kept, surprised = forecasting.Memory(**arrays), np.empty(len(seen), dtype=bool)
        ahead: FloatArray = np.zeros(seen.shape)
        take_in(kept, seen, values, episode.number, rates, FADING, self.doubt, surprised)
        numbers = (episode.number, rates, FADING, self.optimism, SHRINK, UNSURE)
        look_ahead(kept, pools.zero, pools.arms_paid_alike.astype(np.float64), *numbers, ahead)
        gain = np.where(seen, values, kept.likely)
        return RewardEstimate(gain, ahead, arrays, kept.likely, surprised)
