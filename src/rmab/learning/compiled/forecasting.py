"""Forecasts of rewards, row by row: a row is what the arms of one payoff are paid, in one phase.

Every pair of a row has K means, each with its own discount factor, and the row has a profile (what its pairs pay, in
units of a common level) with K means of its level. So there are 2 K predictions of every pair: K of its own, and K of its
profile times the level. Each is weighted by its past errors in the row.
"""

from typing import NamedTuple

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_inline

DIM = 1e-7  # sum of squared known profiles that a level estimate needs
PAID = 1e-2  # share of the range above which a row counts as paid: the range may be far too wide
LOW = 0.05  # smallest level that informs about a profile
LEAST = 1e-12  # smaller squared errors count as zero
CLEARLY = 2.0  # factor on the squared error of separate pairs that shows that they do not move together
SURE = 60.0  # most checks that count in the choice of a prediction
STEADY = 2.0  # prior log odds that nothing changes: predictions that forget need evidence
PROVEN = 7.0  # further log odds before old observations count as uncertain
PLAIN = 0.02  # smaller differences are no surprise


class Memory(NamedTuple):
    """Memory of R rows of S states: the arrays are updated in place.

    means (K,R,S,2), and times (R,S,2) and when (R,S,2): how often, and in which episode last, a pair was seen. profile
    (R,S,2), and strength (R,S,2), the squared levels behind it. level (K,R), leveled (R,) how often and level_when (R,) when
    last it was seen. errors (2K,R) squared errors of the predictions, fading, and checks (R,) their number, fading, too.
    pair_errors (R,S,2) mean squared errors of the forecast. likely (R,S,2) the forecast, and spread (R,) its error by row.
    """

    means: FloatArray
    times: IntArray
    when: IntArray
    profile: FloatArray
    strength: FloatArray
    level: FloatArray
    leveled: IntArray
    level_when: IntArray
    errors: FloatArray
    checks: FloatArray
    pair_errors: FloatArray
    likely: FloatArray
    spread: FloatArray


@compiled_inline
def number_of(times: int, rate: float) -> float:
    """Return the weight of so many observations, where each fades at the rate when the next one comes."""
    return float(times) if rate == 1.0 else (1.0 - rate**times) / (1.0 - rate)


@compiled
def added(values: FloatArray, first: int, count: int) -> float:
    """Return the sum of values[first : first + count], added in pairs, in the order in which NumPy adds."""
    if count > 128:
        half = count // 2 - count // 2 % 8
        return added(values, first, half) + added(values, first + half, count - half)
    total, done = 0.0, 0
    if count >= 8:
        a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
        e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
        for i in range(first + 8, first + count - count % 8, 8):
            a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
            e, f, g, h = e + values[i + 4], f + values[i + 5], g + values[i + 6], h + values[i + 7]
        total, done = ((a + b) + (c + d)) + ((e + f) + (g + h)), count - count % 8
    for i in range(first + done, first + count):
        total += values[i]
    return total


@compiled_inline
def _least(errors: FloatArray, first: int, last: int, r: int) -> float:
    """Return the least error of some predictions in row r."""
    least = errors[first, r]
    for k in range(first + 1, last):
        least = min(least, errors[k, r])
    return least


@compiled
def take_in(
    memory: Memory,
    seen: BoolArray,
    values: FloatArray,
    episode: int,
    rates: FloatArray,
    fading: float,
    doubt: float,
    surprised: BoolArray,
) -> None:
    """Process the observations (R,S,2) of an episode. Writes surprised (R,): most of what was seen is far from the forecast.

    doubt: number of standard errors that counts as far; 0: never. The other pairs of a surprising row become unknown, unless
    its pairs move together, so that observations inform about them.
    """
    rows, states = seen.shape[:2]
    several, together = rates.size, memory.errors.shape[0] > rates.size
    squares = np.empty(memory.errors.shape[0])
    for r in range(rows):
        known, far, dots, norms, most = 0, 0, 0.0, 0.0, 0.0
        for k in range(squares.size):
            squares[k] = 0.0
        for s in range(states):
            for a in range(2):
                if not seen[r, s, a]:
                    continue
                value, times = values[r, s, a], memory.times[r, s, a]
                most = max(most, value)
                if memory.strength[r, s, a] > 0.0:
                    dots += value * memory.profile[r, s, a]
                    norms += memory.profile[r, s, a] ** 2
                if times == 0:
                    continue
                known += 1
                off = abs(value - memory.likely[r, s, a])
                if doubt > 0.0 and off > doubt * memory.spread[r] * np.sqrt(1.0 + 1.0 / times) + PLAIN:
                    far += 1
                memory.pair_errors[r, s, a] += (off * off - memory.pair_errors[r, s, a]) / number_of(times, fading)
                for k in range(several):
                    squares[k] += (value - memory.means[k, r, s, a]) ** 2
                if together:
                    for k in range(several):
                        guess = min(max(memory.profile[r, s, a] * memory.level[k, r], 0.0), 1.0)
                        if memory.strength[r, s, a] == 0.0:  # seen at times when nothing was paid: no profile is known
                            guess = memory.means[k, r, s, a]
                        squares[several + k] += (value - guess) ** 2
        if known > 0:
            for k in range(squares.size):
                memory.errors[k, r] = fading * memory.errors[k, r] + squares[k] / known
            memory.checks[r] = fading * memory.checks[r] + 1.0
        surprised[r] = 2 * far > known > 0
        own = _least(memory.errors, 0, several, r)
        moves_as_one = together and _least(memory.errors, several, 2 * several, r) <= CLEARLY * own
        level = dots / norms if norms > DIM else -1.0
        if level < 0.0 and most > PAID and memory.leveled[r] == 0:
            level = 1.0  # what is first paid of a row says what its level is measured in
        if level >= 0.0:
            memory.leveled[r] += 1
            memory.level_when[r] = episode
            for k in range(several):
                memory.level[k, r] += (level - memory.level[k, r]) / number_of(memory.leveled[r], rates[k])
        for s in range(states):
            for a in range(2):
                if seen[r, s, a]:
                    _see(memory, r, s, a, values[r, s, a], level, episode, rates)
                elif surprised[r] and not moves_as_one:
                    memory.times[r, s, a] = 0


@compiled_inline
def _see(memory: Memory, r: int, s: int, a: int, value: float, level: float, episode: int, rates: FloatArray) -> None:
    """Process the value of one pair, of a row with this level."""
    fresh = memory.times[r, s, a] == 0
    memory.times[r, s, a] += 1
    memory.when[r, s, a] = episode
    for k in range(rates.size):
        before = 0.0 if fresh else memory.means[k, r, s, a]
        memory.means[k, r, s, a] = before + (value - before) / number_of(memory.times[r, s, a], rates[k])
    if level > LOW:  # below, it says nothing about the profile
        memory.strength[r, s, a] += level * level
        memory.profile[r, s, a] += (value - level * memory.profile[r, s, a]) * level / memory.strength[r, s, a]


@compiled_inline
def _weigh(memory: Memory, r: int, rates: FloatArray, common: FloatArray, shrink: float, weight: FloatArray) -> float:
    """Write the weights of all predictions in row r, by their errors there and in all rows; return the least mean error.

    Those that forget begin with less: if nothing changes they are nearly as good, but make plans unstable.
    """
    best, trials, total = np.inf, memory.checks[r] + shrink, 0.0
    for k in range(weight.size):
        weight[k] = (memory.errors[k, r] + shrink * common[k]) / trials
        best = min(best, weight[k])
    for k in range(weight.size):
        weight[k] = np.exp(-0.5 * min(trials, SURE) * (weight[k] / max(best, LEAST) - 1.0))
        if rates[k % rates.size] < 1.0:
            weight[k] *= np.exp(-STEADY)
        total += weight[k]
    for k in range(weight.size):
        weight[k] /= total
    return best


@compiled_inline
def _moving(rates: FloatArray, weight: FloatArray) -> float:
    """Return by how much the weights of predictions that forget shrink, unless there is evidence that values move."""
    steady, rest = 0.0, np.exp(-PROVEN)
    for k in range(weight.size):
        if rates[k % rates.size] == 1.0:
            steady += weight[k]
    return rest / (steady + rest * (1.0 - steady))


@compiled_inline
def _predict(
    memory: Memory, r: int, s: int, a: int, episode: int, rates: FloatArray, optimism: float, weight: FloatArray, hope: float
) -> tuple[float, float]:
    """Return the forecast of a pair that is known, and how uncertain it is, in units of its squared error.

    A pair that was seen only at times when its row paid nothing has no profile: optimism applies, as if it had never been
    seen. A row that never paid has no level, and its pairs are predicted by themselves.

    What was seen in this episode is certain. Otherwise means of fewer observations are less certain; and if there is
    evidence that only recent values predict well, older ones are less certain. The
    process of a local level, for which forgetting at a rate is best, moves by (1 - rate) errors of prediction from episode
    to episode.
    """
    several, guess, doubt = rates.size, 0.0, 0.0
    moving = _moving(rates, weight)
    for k in range(weight.size):
        rate, own = rates[k % several], k < several or memory.leveled[r] == 0
        if not own and memory.strength[r, s, a] == 0.0:
            guess += weight[k] * hope
            continue
        value = memory.means[k % several, r, s, a] if own else memory.profile[r, s, a] * memory.level[k - several, r]
        guess += weight[k] * min(max(value, 0.0), 1.0)
        age = episode - (memory.when[r, s, a] if own else memory.level_when[r])
        if age > 0:
            seldom = number_of(memory.times[r, s, a] if own else memory.leveled[r], rate)
            doubt += weight[k] * (optimism**2 * np.log(episode + 3.0) / seldom + moving * (1.0 - rate) ** 2 * age)
    return guess, doubt


@compiled
def look_ahead(
    memory: Memory,
    zero: BoolArray,
    shared_by: FloatArray,
    episode: int,
    rates: FloatArray,
    fading: float,
    optimism: float,
    shrink: float,
    unsure: float,
    ahead: FloatArray,
) -> None:
    """Write the forecast (R,S,2) into memory.likely, and with optimism into ahead, after this episode.

    zero (R,S,2): pairs that need none. shared_by (R,): number of arms with this payoff. shrink: how many checks of all rows
    together count with those of a row. unsure: the error before the first check.
    """
    experts, rows = memory.errors.shape
    together = experts > rates.size
    checks, noisiest = 0.0, 0.0
    weight, common = np.empty(experts), np.empty(experts)
    for r in range(rows):
        checks += memory.checks[r]
    for k in range(experts):
        errors = 0.0
        for r in range(rows):
            errors += memory.errors[k, r]
        common[k] = errors / checks if checks > 0.0 else unsure * unsure
    for r in range(rows):
        if memory.checks[r] > 0.0 or checks == 0.0:
            noisiest = max(noisiest, _weigh(memory, r, rates, common, shrink, weight))
    for r in range(rows):
        best = _weigh(memory, r, rates, common, shrink, weight)
        # A row with few checks may be as noisy as any other, so it is tried again.
        noise = (memory.checks[r] * best + shrink * noisiest) / (memory.checks[r] + shrink)
        memory.spread[r] = np.sqrt(noise)
        known, mean, hope, alone = 0, 0.0, 1.0, not together or memory.leveled[r] == 0
        for turn in range(2):  # first the pairs that inform about their row, then the others
            for s in range(zero.shape[1]):
                for a in range(2):
                    informs = memory.times[r, s, a] > 0 and (alone or memory.strength[r, s, a] > 0.0)
                    if zero[r, s, a] or informs != (turn == 0):
                        continue
                    if memory.times[r, s, a] == 0:
                        memory.likely[r, s, a], ahead[r, s, a] = mean, hope  # optimism is not part of the expectation
                        continue
                    guess, doubt = _predict(memory, r, s, a, episode, rates, optimism, weight, hope)
                    trials = number_of(memory.times[r, s, a] - 1, fading)
                    error = (trials * memory.pair_errors[r, s, a] + noise) / (trials + 1.0)
                    memory.likely[r, s, a] = guess
                    ahead[r, s, a] = min(guess + np.sqrt(error * doubt) / shared_by[r], 1.0)
                    if informs:
                        known, mean = known + 1, mean + guess
            if turn == 0:
                mean = mean / known if known > 0 else 0.0
                # The probability that one more is the best of all: the more are known, the less optimism.
                hope = mean + (1.0 - mean) / (known + 1.0)
