"""Forecasts of rewards: several predictions, weighted by their past errors, with optimism in units of these errors."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.errors import ModelError
from rmab.learning.compiled import forecasting
from rmab.learning.compiled.forecasting import look_ahead, take_in
from rmab.learning.compiled.patterns import OFTEN, UNSEEN, Patterns, add_others, add_patterns, check_patterns, in_proportion
from rmab.learning.components.base import RewardEstimate, RewardEstimator
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import MOST, ArraySpec, ArraySpecs, Memory, masses, whole

FADING = 0.98  # what is left of the weight of a squared error after the next one
SHRINK = 4.0  # checks of all rows together that count with those of a row
UNSURE = 0.3  # prediction error before the first check
HIGHEST = 1e6  # limit of a level: the reward of a row relative to its first observation

RATES = "discount factors of earlier observations; one prediction is made for each (1: plain mean, 0: last value)"
SEASONS = "season lengths to test for, in episodes; if the length is known, give only that one, for example [7]"
Passive = Literal["unknown", "zero", "as-active"]
PASSIVE = (
    "what passive arms pay where that is never revealed: nothing (zero), the same as active ones (as-active), or unknown"
)
HIDDEN = "what passive arms pay is never revealed, and cannot be learned; declare it: passive='zero' or 'as-active'"
LONGEST = 14  # longest season that can be found
DOUBT = (
    "if most rewards of an arm differ from their forecasts by more than this many standard errors, its unobserved rewards "
    "count as unknown again; 0: never"
)


@configured
class Forecast(RewardEstimator):
    """Forecast of the next rewards: predictions with several discount factors, weighted row by row by their errors.

    A row holds the rewards of one payoff in one phase. Every pair (state, action) of it has a mean for every
    rate: 1 never forgets, 0 keeps only the last value. With `together`, a row also has a profile, the rewards of its pairs
    relative to each other, and a mean of its level for every rate; so that one observed pair informs about all the
    others. If the pairs of an arm do not move together, these predictions are wrong, and lose their weight.

    Optimism about pairs that were not seen in the last episode is in units of the errors that forecasts of the pair have
    shown, or of the noisiest row if there were few checks, so that no arm is abandoned after one bad day. It fades with the
    number of observations if the past predicts well, and grows with the time since the last one if only recent values do.
    One arm reveals rewards of all with its payoff, so they share the optimism. Pairs that were never seen are expected to
    pay the mean of the known pairs of their row, plus optimism: 1 / (1 + number known) of the distance to the maximum.
    Predictions that forget begin with less weight, and old observations are discounted only after evidence that values
    move, so that plans are stable if nothing changes.

    Examples
    --------
    >>> from rmab.learning import Forecast, Ucmd
    >>> Ucmd(estimator=Forecast(rates=(1.0, 0.5), together=False)).estimator.rates
    (1.0, 0.5)
    """

    anywhere = True
    rates: tuple[float, ...] = option(default=(1.0, 0.9, 0.7, 0.0), help=RATES)
    together: bool = option(default=True, help="whether to try predictions in which all rewards of an arm move together")
    optimism: float = option(default=0.3, ge=0, le=100, help="optimism about rarely observed rewards, in standard errors")
    doubt: float = option(default=4.0, ge=0, le=1e6, help=DOUBT)
    seasons: tuple[int, ...] = option(default=tuple(range(2, 15)), help=SEASONS)
    shocks: bool = option(default=True, help="whether to remove shocks that are common to all arms")
    passive: Passive = option(default="unknown", help=PASSIVE)
    alike: bool = option(default=True, help="whether to predict unseen rewards of an arm from other arms")
    phases: bool = option(default=True, help="whether to try forecasts that pool all phases of an arm")

    def __post_init__(self) -> None:
        """Check the rates, too."""
        super().__post_init__()
        if not self.rates or not all(0 <= one <= 1 for one in self.rates):
            raise ModelError(f"Forecast: rates must be one or more numbers from 0 to 1, got {self.rates}")
        if not all(2 <= one <= LONGEST for one in self.seasons):
            raise ModelError(f"Forecast: seasons must be whole numbers from 2 to {LONGEST}, got {self.seasons}")

    def begin(self, pools: Pools) -> Memory:
        """Return the memory of `rmab.learning.compiled.forecasting` and `patterns`, before the first observation."""
        if self._hidden(pools) and self.passive == "unknown":
            warnings.warn(f"Forecast: {HIDDEN}; until then they are assumed to pay the minimum", stacklevel=2)
        kept = self.state_spec(pools)
        made = {
            name: np.zeros(one.shape or (), dtype=np.int64 if one.kind == "i" else np.float64) for name, one in kept.items()
        }
        first = {"likely": 1.0, "plain": 1.0, "spread": UNSURE, "ring": UNSEEN, "pool_likely": 1.0, "pool_spread": UNSURE}
        return {name: np.full_like(array, first.get(name, 0)) for name, array in made.items()}

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare the memory: that of every row, that of patterns, and that of arms without their phases."""
        pairs, phases = pools.zero.shape, pools.view.phases
        declared = self._rows(pairs)
        if self._patterned(pools):
            experts = 2 + len(self._lags) + 2 * self._pools(pools)
            declared |= {
                "plain": masses(*pairs),
                "ring": ArraySpec((pairs[0], 2 * max(self._lags, default=1)), "f", UNSEEN, HIGHEST),
                "quality": ArraySpec(pairs, "f", -HIGHEST, HIGHEST),
                "behind": ArraySpec(pairs, "f", 0, MOST),
                "pattern_errors": ArraySpec((experts, pairs[0]), "f", 0, MOST),
                "trials": ArraySpec(pairs[:1], "f", 0, MOST),
            }
        if self._pools(pools):
            declared |= {f"pool_{name}": one for name, one in self._rows((pairs[0] // phases, *pairs[1:])).items()}
        return declared

    @property
    def _lags(self) -> tuple[int, ...]:
        """The seasons that can be found; seasons are of levels, so they need `together`."""
        return self.seasons if self.together else ()

    def _hidden(self, pools: Pools) -> bool:
        """Whether rewards of passive arms are neither revealed nor declared by the view."""
        return pools.view.feedback == "active" and not pools.view.passive_zero

    def _pools(self, pools: Pools) -> bool:
        return self.phases and pools.view.phases > 1

    def _patterned(self, pools: Pools) -> bool:
        return bool(self._lags) or self.shocks or self.alike or self._pools(pools)

    def _rows(self, pairs: tuple[int, ...]) -> dict[str, ArraySpec]:
        rates, rows, experts = len(self.rates), pairs[:1], len(self.rates) * (2 if self.together else 1)
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
        """Check the last forecast, add the episode, and forecast the next."""
        pools = episode.pools
        seen, values = episode.revealed()
        if not self._hidden(pools):
            return self._learned(memory, episode, seen, values, pools.zero)
        if self.passive == "as-active":
            for table in (seen, values):
                table[..., 0] = table[..., 1]
            return self._learned(memory, episode, seen, values, pools.zero)
        zero, least = np.array(pools.zero), 0.0 if self.passive == "unknown" else min(max(pools.floor, 0.0), 1.0)
        zero[..., 0] = True
        found = self._learned(memory, episode, seen, values, zero)
        for expected in (found.gain, found.ahead, found.likely):
            if expected is not None:
                expected[..., 0] = least
        return found

    def _learned(
        self, memory: Memory, episode: Episode, seen: BoolArray, values: FloatArray, zero: BoolArray
    ) -> RewardEstimate:
        """Learn these values of the pairs seen (R, S, 2); zero (R, S, 2): pairs that need no forecast."""
        pools = episode.pools
        arrays = {name: np.array(one) for name, one in memory.items()}
        kept = forecasting.Memory(**{name: arrays[name] for name in forecasting.Memory._fields})
        shared = pools.arms_paid_alike.astype(np.float64)
        if not self._patterned(pools):
            surprised, ahead = self._forecast(kept, seen, values, zero, shared, episode.number)
            return RewardEstimate(np.where(seen, values, kept.likely), ahead, arrays, kept.likely, surprised)
        patterns = Patterns(*(arrays[name] for name in ("plain", "ring", "quality", "behind", "pattern_errors", "trials")))
        lags, none = np.array(self._lags, dtype=np.int64), np.zeros((0, 0, 0))
        pooled, hoped, times = none[np.newaxis][:0], none, np.zeros((0, 0, 0), dtype=np.int64)
        several = self._pools(pools)
        if several:
            pooled = _over_phases(patterns.plain, kept.times, arrays["pool_likely"])
        known = (kept.profile, kept.strength, kept.times)
        check_patterns(patterns, seen, values, episode.number, lags, self.shocks, *known, kept.leveled, pooled)
        surprised, ahead = self._forecast(kept, seen, values, zero, shared, episode.number)
        if self.alike:
            by_row = (len(zero), zero[0].size)
            add_others(kept.likely.reshape(by_row), ahead.reshape(by_row), kept.times.reshape(by_row), zero.reshape(by_row))
        if several:
            hoped, times = self._pooled(arrays, zero, seen, values, shared, episode.number, pools.view.phases)
            pooled = _over_phases(kept.likely, kept.times, arrays["pool_likely"])
        others = (pooled, hoped, times)
        made = (kept.likely, kept.spread, ahead)
        add_patterns(patterns, episode.number, lags, self.shocks, zero, *known, *others, *made)
        return RewardEstimate(np.where(seen, values, kept.likely), ahead, arrays, kept.likely, surprised)

    def _forecast(
        self, kept: forecasting.Memory, seen: BoolArray, values: FloatArray, zero: BoolArray, shared: FloatArray, number: int
    ) -> tuple[BoolArray, FloatArray]:
        """Add the observations; return which rows were surprising (R,), and the forecast with optimism (R, S, 2)."""
        rates, surprised = np.array(self.rates), np.empty(len(seen), dtype=bool)
        ahead: FloatArray = np.zeros(seen.shape)
        take_in(kept, seen, values, number, rates, FADING, self.doubt, surprised)
        look_ahead(kept, zero, shared, number, rates, FADING, self.optimism, SHRINK, UNSURE, ahead)
        return surprised, ahead

    def _pooled(
        self,
        arrays: dict[str, Any],
        zero: BoolArray,
        seen: BoolArray,
        values: FloatArray,
        shared: FloatArray,
        number: int,
        phases: int,
    ) -> tuple[FloatArray, IntArray]:
        """(R, S, 2) the forecast with optimism, pooled over phases, and the observations of each pair."""
        kept = forecasting.Memory(**{name: arrays[f"pool_{name}"] for name in forecasting.Memory._fields})
        by_phase = seen.reshape(-1, phases, *seen.shape[1:])
        many = by_phase.sum(axis=1)
        mean = np.where(by_phase, values.reshape(by_phase.shape), 0.0).sum(axis=1) / np.maximum(many, 1)
        _, ahead = self._forecast(kept, many > 0, mean, zero[::phases].copy(), shared[::phases].copy(), number)
        return np.repeat(ahead, phases, axis=0), np.repeat(kept.times, phases, axis=0)


def _over_phases(likely: FloatArray, times: IntArray, pooled: FloatArray) -> FloatArray:
    """(2, R, S, 2) forecasts of every phase from the arm's rewards in all phases: the same, or in proportion to the phase.

    likely (R, S, 2), pooled (R / K, S, 2): forecasts by phase, and of all phases as one.
    """
    value = likely.reshape(len(pooled), -1, pooled[0].size)
    number, same = times.clip(None, OFTEN).reshape(value.shape), pooled.reshape(len(pooled), 1, -1)
    fit, sure = np.empty(value.shape), np.empty(value.shape[1])
    for g in range(len(pooled)):
        in_proportion(value[g], number[g], same[g, 0], fit[g], sure)
    return np.stack([np.broadcast_to(same, value.shape), fit]).reshape(2, *likely.shape)
