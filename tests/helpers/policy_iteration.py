"""The advantage of acting, by policy iteration."""

import numpy as np

from rmab.common.arrays import FloatArray


def advantage(kernel: FloatArray, reward: FloatArray, discount: float, price: float) -> FloatArray:
    """(S,) Q(s,1) - Q(s,0) at this price, by policy iteration."""
    priced, states = reward - price * np.array([0.0, 1.0]), np.arange(len(reward))
    policy = np.zeros(len(reward), dtype=np.int64)
    while True:
        value = np.linalg.solve(np.eye(states.size) - discount * kernel[states, policy], priced[states, policy])
        quality = priced + discount * kernel @ value
        better = np.where(quality.max(axis=1) > quality[states, policy] + 1e-12, quality.argmax(axis=1), policy)
        if (better == policy).all():
            return np.asarray(quality[:, 1] - quality[:, 0])
        policy = better
