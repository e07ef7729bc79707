"""Patterns that forecasts of single rows do not see: seasons, shocks that are common to all, phases that are alike.

Every pattern is a further prediction of what a row pays. Its squared errors are compared with those of the forecast, row by
row, and determine its weight. A season of L episodes predicts the row's profile times its level L, 2 L, ...
episodes ago. A common shock predicts the quality of a pair, which is a mean of pay over the level of all other rows in the
same episode, times the level that the forecasts of all rows give. Two pooled forecasts take what an arm pays in all phases:
the same in every phase, or in proportion to what is known of the phase.
"""

from typing import NamedTuple

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline
from rmab.learning.compiled.forecasting import added

DIM = 1e-7  # sum of squared known profiles that a level estimate needs
PAID = 1e-2  # share of the range above which a row counts as paid: the range may be far too wide
LOW = 0.05  # smallest level that informs about a quality
LEAST = 1e-12  # smaller squared errors count as zero
SURE = 60.0  # most checks that count in the choice of a prediction
FADING = 0.98  # what is left of the weight of a squared error after the next one
SHRINK = 4.0  # checks of all rows together that count with those of a row
OLDER = 0.7  # what is left of the weight of a season's level after one season
SEASON, SHOCK = 3.0, 4.0  # prior log odds against seasons, or shocks
FAINT = 1e-12  # smaller weights count as zero
UNSEEN = -1.0  # the level of a row in an episode in which it was not seen
OFTEN = 20  # most observations of a pair that count in a fit
ALIKE, FEW = 2.0, 0.1  # prior observations: that all rows pay the same, and that a pair pays the mean
FITS = 4  # alternating fits of factors and rewards


class Patterns(NamedTuple):
    """Memory of R rows of S states: the arrays are updated in place.

    plain (R,S,2) the forecast of single rows. ring (R,W) levels of the last W episodes, by their number modulo W. quality
    (R,S,2), and behind (R,S,2), the squared levels behind it. errors (1+L+1+2,R) squared errors, fading: of the forecast, of
    L seasons, of quality times level, and of the pooled forecasts, if any. trials (R,) their number, fading, too.
    """

    plain: FloatArray
    ring: FloatArray
    quality: FloatArray
    behind: FloatArray
    errors: FloatArray
    trials: FloatArray


@compiled_inline
def _level_ago(ring: FloatArray, r: int, episode: int, lag: int) -> float:
    """Return the mean level of row r, one season ago, two seasons ago, ..., fading; UNSEEN where it was never seen."""
    total, weight, fresh, width = 0.0, 0.0, 1.0, ring.shape[1]
    for back in range(lag, width + 1, lag):
        if back > episode:
            break
        level = ring[r, (episode - back) % width]
        if level >= 0.0:
            total += fresh * level
            weight += fresh
            fresh *= OLDER
    return total / weight if weight > 0.0 else UNSEEN


@compiled
def check_patterns(
    kept: Patterns,
    seen: BoolArray,
    values: FloatArray,
    episode: int,
    lags: IntArray,
    common: bool,
    profile: FloatArray,
    strength: FloatArray,
    times: IntArray,
    leveled: IntArray,
    pooled: FloatArray,
) -> None:
    """Compare the observations (R,S,2) with all predictions, then store them. pooled: (2,R,S,2) forecasts, or none.

    profile, strength, times and leveled are those of the forecast, before this episode.
    """
    rows, states = seen.shape[:2]
    shock, pool, width = 1 + lags.size, 2 + lags.size, kept.ring.shape[1]
    squares, ago = np.empty(kept.errors.shape[0]), np.empty(lags.size)
    all_dots, all_norms = 0.0, 0.0
    for r in range(rows):
        for s in range(states):
            for a in range(2):
                if seen[r, s, a] and kept.behind[r, s, a] > 0.0:
                    all_dots += values[r, s, a] * kept.quality[r, s, a]
                    all_norms += kept.quality[r, s, a] ** 2
    for r in range(rows):
        known, dots, norms, own_dots, own_norms, most = 0, 0.0, 0.0, 0.0, 0.0, 0.0
        for s in range(states):
            for a in range(2):
                if not seen[r, s, a]:
                    continue
                value = values[r, s, a]
                most = max(most, value)
                if strength[r, s, a] > 0.0:
                    dots += value * profile[r, s, a]
                    norms += profile[r, s, a] ** 2
                if kept.behind[r, s, a] > 0.0:
                    own_dots += value * kept.quality[r, s, a]
                    own_norms += kept.quality[r, s, a] ** 2
        level = dots / norms if norms > DIM else UNSEEN
        if level < 0.0 and most > PAID and leveled[r] == 0:
            level = 1.0
        others = (all_dots - own_dots) / (all_norms - own_norms) if all_norms - own_norms > DIM else UNSEEN
        for i in range(lags.size):
            ago[i] = _level_ago(kept.ring, r, episode, lags[i])
        for k in range(squares.size):
            squares[k] = 0.0
        for s in range(states):
            for a in range(2):
                if not seen[r, s, a] or times[r, s, a] == 0:
                    continue
                value, plain = values[r, s, a], kept.plain[r, s, a]
                known += 1
                squares[0] += (value - plain) ** 2
                for i in range(lags.size):
                    fits = ago[i] >= 0.0 and strength[r, s, a] > 0.0
                    squares[1 + i] += (value - (min(profile[r, s, a] * ago[i], 1.0) if fits else plain)) ** 2
                fits = others >= 0.0 and kept.behind[r, s, a] > 0.0
                squares[shock] += (value - (min(kept.quality[r, s, a] * others, 1.0) if fits else plain)) ** 2
                for m in range(pooled.shape[0]):
                    squares[pool + m] += (value - pooled[m, r, s, a]) ** 2
        if known > 0:
            for k in range(squares.size):
                kept.errors[k, r] = FADING * kept.errors[k, r] + squares[k] / known
            kept.trials[r] = FADING * kept.trials[r] + 1.0
        kept.ring[r, episode % width] = level
        if not common:
            continue
        if all_norms <= DIM:
            others = 1.0  # what is first paid says what the common level is measured in
        if others <= LOW:
            continue
        for s in range(states):
            for a in range(2):
                if seen[r, s, a]:
                    kept.behind[r, s, a] += others * others
                    off = values[r, s, a] - others * kept.quality[r, s, a]
                    kept.quality[r, s, a] += off * others / kept.behind[r, s, a]


@compiled
def add_patterns(
    kept: Patterns,
    episode: int,
    lags: IntArray,
    common: bool,
    zero: BoolArray,
    profile: FloatArray,
    strength: FloatArray,
    times: IntArray,
    pooled: FloatArray,
    pooled_ahead: FloatArray,
    pooled_times: IntArray,
    likely: FloatArray,
    spread: FloatArray,
    ahead: FloatArray,
) -> None:
    """Write the forecast of episode + 1 with its patterns into likely (R,S,2) and ahead, and its error into spread (R,).

    pooled (2,R,S,2), pooled_ahead and pooled_times (R,S,2): pooled forecasts, the first with optimism, and how often pairs
    were seen; or none. The other forecasts are those of single rows; `plain` keeps them. The optimism beyond the
    forecast shrinks with its error.
    """
    rows, states = zero.shape[:2]
    experts, shock, pool = kept.errors.shape[0], 1 + lags.size, 2 + lags.size
    weight, all_errors = np.empty(experts), np.zeros(experts)
    trials, dots, norms = 0.0, 0.0, 0.0
    for r in range(rows):
        trials += kept.trials[r]
        for k in range(experts):
            all_errors[k] += kept.errors[k, r]
    for k in range(experts):
        all_errors[k] = all_errors[k] / trials if trials > 0.0 else 0.0
    for r in range(rows):
        for s in range(states):
            for a in range(2):
                kept.plain[r, s, a] = likely[r, s, a]
                if times[r, s, a] > 0 and kept.behind[r, s, a] > 0.0 and not zero[r, s, a]:
                    dots += likely[r, s, a] * kept.quality[r, s, a]
                    norms += kept.quality[r, s, a] ** 2
    level = dots / norms if norms > DIM else UNSEEN
    for r in range(rows):
        number, best, total, error = kept.trials[r] + SHRINK, np.inf, 0.0, 0.0
        for k in range(experts):
            weight[k] = (kept.errors[k, r] + SHRINK * all_errors[k]) / number
            if k == shock and not common:
                weight[k] = np.inf
            best = min(best, weight[k])
        plain = weight[0]
        for k in range(experts):
            prior = np.exp(-SHOCK) if k == shock else (np.exp(-SEASON) / lags.size if 0 < k < shock else 1.0)
            own = weight[k]
            weight[k] = prior * np.exp(-0.5 * min(number, SURE) * (own / max(best, LEAST) - 1.0)) if own < np.inf else 0.0
            total += weight[k]
            error += weight[k] * own if weight[k] > 0.0 else 0.0
        for k in range(experts):
            weight[k] /= total
        calmer = np.sqrt(min(error / total / plain, 1.0)) if plain > LEAST else 1.0
        spread[r] *= calmer
        for s in range(states):
            for a in range(2):
                if zero[r, s, a]:
                    continue
                base = likely[r, s, a]
                if times[r, s, a] == 0:
                    if pooled.shape[0] > 0 and pooled_times[r, s, a] > 0:  # for unseen pairs any pattern counts
                        one, other = weight[pool], weight[pool + 1]
                        trust = min((one + other) / max(weight[0], LEAST), 1.0) / max(one + other, LEAST)
                        news = trust * (one * (pooled[0, r, s, a] - base) + other * (pooled[1, r, s, a] - base))
                        extra = trust * (one + other) * (pooled_ahead[r, s, a] - pooled[0, r, s, a] - ahead[r, s, a] + base)
                        likely[r, s, a] += news
                        ahead[r, s, a] = min(max(ahead[r, s, a] + news + extra, likely[r, s, a]), 1.0)
                    continue
                guess = base  # plus the difference that patterns make: no rounding where they make none
                for i in range(lags.size):
                    if weight[1 + i] > FAINT and strength[r, s, a] > 0.0:
                        ago = _level_ago(kept.ring, r, episode + 1, lags[i])
                        if ago >= 0.0:
                            guess += weight[1 + i] * (min(profile[r, s, a] * ago, 1.0) - base)
                if level >= 0.0 and kept.behind[r, s, a] > 0.0:
                    guess += weight[shock] * (min(kept.quality[r, s, a] * level, 1.0) - base)
                for m in range(pooled.shape[0]):
                    guess += weight[pool + m] * (pooled[m, r, s, a] - base)
                guess = min(max(guess, 0.0), 1.0)
                likely[r, s, a] = guess
                hope = calmer * (ahead[r, s, a] - base)
                if pooled.shape[0] > 0:
                    extra = max(pooled_ahead[r, s, a] - pooled[0, r, s, a], 0.0)
                    hope += (weight[pool] + weight[pool + 1]) * (min(extra, hope) - hope)
                ahead[r, s, a] = min(guess + hope, 1.0)


@compiled
def in_proportion(value: FloatArray, number: IntArray, mean: FloatArray, fit: FloatArray, sure: FloatArray) -> None:
    """Write the fit factor x pay (K,P) to K rows of P values with these numbers of observations, and how sure (K,) it is.

    The rewards of all rows are shrunk to `mean` (P,), by a few prior observations, and factors to 1.
    """
    rows, pairs = value.shape
    factor, pays, terms = np.ones(rows), np.empty(pairs), np.empty(pairs)
    for _ in range(FITS):
        for p in range(pairs):
            weight, total = 0.0, 0.0
            for k in range(rows):
                weight += number[k, p] * (factor[k] * factor[k])
                total += number[k, p] * factor[k] * value[k, p]
            pays[p] = (total + FEW * mean[p]) / (weight + FEW)
            terms[p] = pays[p] * pays[p]
        even = ALIKE * (added(terms, 0, pairs) / pairs)
        for k in range(rows):
            for p in range(pairs):
                terms[p] = number[k, p] * (pays[p] * pays[p])
            weight = added(terms, 0, pairs)
            for p in range(pairs):
                terms[p] = number[k, p] * pays[p] * value[k, p]
            factor[k] = (added(terms, 0, pairs) + even) / max(weight + even, LEAST)
            sure[k] = weight / max(weight + even, LEAST)
    for k in range(rows):
        for p in range(pairs):
            fit[k, p] = min(factor[k] * pays[p], 1.0)


@compiled
def add_others(likely: FloatArray, ahead: FloatArray, times: IntArray, zero: BoolArray) -> None:
    """Predict unseen pairs (K,P) of an arm from other arms, in proportion; updates likely and ahead.

    The better that fits the observations, compared with the mean of the row, the larger its weight and the less optimism.
    """
    rows, pairs = likely.shape
    number, some, wanted = np.empty((rows, pairs), np.int64), np.zeros(pairs, np.int64), 0
    known, mean, own = np.zeros(rows, np.int64), np.zeros(pairs), np.empty(rows)
    for k in range(rows):
        for p in range(pairs):
            number[k, p] = 0 if zero[k, p] else min(times[k, p], OFTEN)
            some[p] += number[k, p]
            mean[p] += number[k, p] * likely[k, p]
            known[k] += number[k, p] > 0
    for k in range(rows):
        for p in range(pairs):
            wanted += number[k, p] == 0 and some[p] > 0 and known[k] > 0 and not zero[k, p]
    if wanted == 0:
        return
    for p in range(pairs):
        mean[p] /= max(some[p], 1)
    fit, sure, terms = np.empty((rows, pairs)), np.empty(rows), np.empty(pairs)
    off, plain = np.empty(rows * pairs), np.empty(rows * pairs)
    in_proportion(likely, number, mean, fit, sure)
    for k in range(rows):
        for p in range(pairs):
            terms[p] = likely[k, p] if number[k, p] > 0 else 0.0
        own[k] = added(terms, 0, pairs) / max(known[k], 1)
    for k in range(rows):
        for p in range(pairs):
            misses, apart = likely[k, p] - fit[k, p], likely[k, p] - own[k]
            times_seen = number[k, p] if known[k] > 1 else 0
            off[k * pairs + p], plain[k * pairs + p] = times_seen * (misses * misses), times_seen * (apart * apart)
    worse, worst = added(off, 0, off.size), added(plain, 0, plain.size)
    better = 1.0 - min(worse / worst, 1.0) if worst > LEAST else 0.0
    for k in range(rows):
        part = 1.0 - sure[k] * better
        for p in range(pairs):
            if number[k, p] == 0 and some[p] > 0 and known[k] > 0 and not zero[k, p]:
                hope = np.sqrt(part) * (ahead[k, p] - likely[k, p])
                likely[k, p] = part * likely[k, p] + (1.0 - part) * fit[k, p]
                ahead[k, p] = min(likely[k, p] + hope, 1.0)
