"""The paper's Algorithm 2, and what its rivals put in the place of its parts, to the letter: loops over scalars.

Episodes count from t = 1, as in the paper. Counts (G,S,2,S) are of groups; without groups every arm is its own.
"""

import math
from collections.abc import Sequence

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray


def pair_visits(states: IntArray, actions: IntArray, count: int) -> IntArray:
    """(N,S,2) c_n(s,a): how often each arm visits each pair in one episode, states (H+1,N) and actions (H,N)."""
    horizon, arms = np.shape(actions)
    visits = np.zeros((arms, count, 2), dtype=int)
    for h in range(horizon):
        for n in range(arms):
            visits[n, states[h][n], int(actions[h][n])] += 1
    return visits


def transition_counts(states: IntArray, actions: IntArray, groups: Sequence[int], count: int) -> IntArray:
    """(G,S,2,S) what one episode adds to C(s,a,s'), arms of one group together."""
    horizon, arms = np.shape(actions)
    counts = np.zeros((max(groups) + 1, count, 2, count), dtype=int)
    for h in range(horizon):
        for n in range(arms):
            counts[groups[n], states[h][n], int(actions[h][n]), states[h + 1][n]] += 1
    return counts


def empirical(counts: IntArray, support: BoolArray) -> FloatArray:
    """P-hat of eq. empirical_est_P; uniform over what is possible where C = 0."""
    mean = np.zeros(counts.shape)
    for g, s, a, y in np.ndindex(counts.shape):
        visits = sum(counts[g, s, a])
        if visits == 0:
            mean[g, s, a, y] = 1 / sum(support[g, s, a]) if support[g, s, a, y] else 0.0
        else:
            mean[g, s, a, y] = counts[g, s, a, y] / max(visits, 1)
    return mean


def hoeffding_delta(visits: int, t: int, *, states: int, arms: int, horizon: int, epsilon: float) -> float:
    """Delta of episode t, the paper's width with N arms and |A| = 2."""
    if visits == 0:
        return 1.0
    log = math.log(4 * states * 2 * arms * max(t - 1, 1) * horizon / epsilon)
    return min(1.0, math.sqrt(log / (2 * max(visits, 1))))


def iota(*, states: int, blocks: int, horizon: int, episodes: int, epsilon: float) -> float:
    """ln(T |X| |A| N / epsilon) with |X| = S H states of a loop-free model."""
    return math.log(episodes * states * horizon * 2 * blocks / epsilon)


def bernstein_width(mean: float, visits: int, log: float) -> float:
    """Return the width of UOB-REPS."""
    less = max(1, visits - 1)
    return min(1.0, 2 * math.sqrt(mean * log / less) + 14 * log / (3 * less))


def wide_bernstein_width(mean: float, visits: int, log: float) -> float:
    """Return the width of Luo et al. 2021."""
    return min(1.0, 4 * math.sqrt(mean * log / max(1, visits)) + 28 * log / (3 * max(1, visits)))


def l1_radius(visits: int, log: float, states: int) -> float:
    """Return the radius of UC-O-REPS; two distributions are never farther apart than 2."""
    return min(2.0, math.sqrt(2 * states * log / max(1, visits)))


def bernoulli_kl(mean: float, other: float) -> float:
    """kl(mean, other), with 0 ln 0 = 0."""
    total = 0.0
    for p, q in ((mean, other), (1 - mean, 1 - other)):
        if p > 0:
            total += math.inf if q == 0 else p * math.log(p / q)
    return total


def kl_end(mean: float, limit: float, side: int) -> float:
    """Return the lower (side 0) or upper (side 1) end of {p: kl(mean, p) <= limit}, by bisection."""
    if bernoulli_kl(mean, float(side)) <= limit:
        return float(side)
    inside, outside = mean, float(side)
    for _ in range(200):
        middle = (inside + outside) / 2
        if bernoulli_kl(mean, middle) <= limit:
            inside = middle
        else:
            outside = middle
    return outside


def box(mean: float, width: float, possible: bool) -> tuple[float, float]:
    """Eq. confidence_ball within [0, 1]; an impossible transition has none."""
    return (max(mean - width, 0.0), min(mean + width, 1.0)) if possible else (0.0, 0.0)


def reward_estimate(reward: float, visits: float, delta: float, horizon: int, visited: bool) -> float:
    """Eq. reward_estimator: min((r H / max(c, 1) + delta) 1, 1) + 1 - 1, with 1 the indicator of a visit."""
    indicator = 1 if visited else 0
    scaled = reward / (max(visits, 1) / horizon) if visited else 0.0
    return min((scaled + delta) * indicator, 1.0) + 1 - indicator


def eta(states: int, episodes: int) -> float:
    """Return the learning rate of Theorem regret: sqrt(ln(|S|^2 |A|) / T)."""
    return math.sqrt(math.log(states**2 * 2) / episodes)


def omd_objective(z: FloatArray, before: FloatArray, estimate: FloatArray, rate: float) -> float:
    """Eq. UCB_extended: sum of eta z r-hat minus the unnormalised divergence, over all n, h, s, a, s'."""
    total = 0.0
    for n, h, s, a, y in np.ndindex(z.shape):
        new, old = float(z[n, h, s, a, y]), float(before[n, h, s, a, y])
        total += rate * new * estimate[n, s, a]
        total -= (new * math.log(new / old) if new > 0 else 0.0) - new + old
    return total


def rmi_index(z: FloatArray) -> FloatArray:
    """(N,H,S) eq. importance-index; 0 where the state has no mass (problem.md: less than 1e-12)."""
    index = np.zeros(z.shape[:3])
    for n, h, s in np.ndindex(index.shape):
        mass = z[n, h, s].sum()
        if mass > 1e-12:
            index[n, h, s] = z[n, h, s, 1].sum() / mass
    return index


def ucrl_estimate(episodes: Sequence[tuple[float | None, float]], delta: float) -> float:
    """RMAB-UCRL: mean of all rewards seen, one per visit, plus optimism; episodes are (reward or None, visits)."""
    paid, number = 0.0, 0.0
    for reward, visits in episodes:
        if reward is not None:
            paid, number = paid + visits * reward, number + visits
    return min((paid / number if number > 0 else 1.0) + delta, 1.0)


def fit_by_hand(value: np.ndarray, number: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fit factor x pay to K rows of P values with these numbers of observations, and how sure it is of each."""
    rows, pairs = value.shape
    factor = [1.0] * rows
    for _ in range(4):
        pays = []
        for p in range(pairs):
            above = sum(number[k, p] * factor[k] * value[k, p] for k in range(rows)) + 0.1 * mean[p]
            pays.append(above / (sum(number[k, p] * factor[k] ** 2 for k in range(rows)) + 0.1))
        even = 2.0 * sum(one**2 for one in pays) / pairs
        weight = [sum(number[k, p] * pays[p] ** 2 for p in range(pairs)) for k in range(rows)]
        factor = [
            (sum(number[k, p] * pays[p] * value[k, p] for p in range(pairs)) + even) / (weight[k] + even)
            for k in range(rows)
        ]
    fit = np.array([[min(factor[k] * pays[p], 1.0) for p in range(pairs)] for k in range(rows)])
    return fit, np.array([one / (one + even) for one in weight])
