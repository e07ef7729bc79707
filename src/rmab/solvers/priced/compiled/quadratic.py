"""The step of a quasi-Newton method with bounds, and the update of its matrix."""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled
from rmab.solvers.compiled.linear import solve_positive

TRIES, SWEEPS = 3, 50  # rounds of simultaneous changes without progress, and sweeps as the last resort
DAMPING = 1e-12  # relative ridge on the diagonal


@compiled
def bounded_step(
    matrix: FloatArray, gradient: FloatArray, low: FloatArray, high: FloatArray, extra: FloatArray, step: FloatArray
) -> float:
    """Write the step (H,) that minimises gradient step + step matrix step / 2, low <= step <= high; return the decrease.

    The matrix (H,H) has a positive ridge `extra` (H,) on its diagonal.
    """
    if not swapped(matrix, gradient, low, high, extra, step):
        settle(matrix, gradient, low, high, extra, step)
    fall = 0.0
    for h in range(step.size):
        push = gradient[h]
        for j in range(step.size):
            push += 0.5 * matrix[h, j] * step[j]
        fall -= step[h] * push
    return fall


@compiled
def swapped(
    matrix: FloatArray, gradient: FloatArray, low: FloatArray, high: FloatArray, extra: FloatArray, step: FloatArray
) -> bool:
    """Write the step by block principal pivoting (Judice & Pires 1994); return whether it ended.

    Places that would leave their bounds are bound there, and freed again if that is wrong: all together as long as fewer
    and fewer are wrong, otherwise one at a time, which ends up to rounding.
    """
    size = gradient.size
    bound, place, better = np.zeros(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    fewest, tries = size + 1, TRIES
    for h in range(size):
        bound[h] = -1 if low[h] == high[h] else 0  # -1 at its lower bound, 0 free, 1 at its upper bound
    for _ in range(20 + 4 * size):
        count = 0
        for h in range(size):
            step[h] = low[h] if bound[h] < 0 else high[h] if bound[h] > 0 else 0.0
            if bound[h] == 0:
                place[count] = h
                count += 1
        small, answer, unit = np.empty((count, count)), np.empty(count), np.empty(count)
        for i in range(count):
            unit[i] = 1.0 / np.sqrt(max(matrix[place[i], place[i]], 0.0) + extra[place[i]])
        for i in range(count):
            answer[i] = -gradient[place[i]]
            for h in range(size):
                answer[i] -= matrix[place[i], h] * step[h]
            answer[i] *= unit[i]
            for j in range(i, count):
                small[i, j] = matrix[place[i], place[j]] * unit[i] * unit[j]
            small[i, i] = 1.0 + DAMPING
        solve_positive(small, answer, np.full(count, DAMPING))
        for i in range(count):
            step[place[i]] = answer[i] * unit[i]
        wrong, last = 0, 0
        for h in range(size):
            better[h] = bound[h]
            if bound[h] == 0:
                better[h] = -1 if step[h] < low[h] else 1 if step[h] > high[h] else 0
            elif low[h] < high[h]:
                push = gradient[h]
                for j in range(size):
                    push += matrix[h, j] * step[j]
                better[h] = bound[h] if bound[h] * push <= 0.0 else 0
            if better[h] != bound[h]:
                wrong, last = wrong + 1, h
        if wrong == 0:
            return True
        if wrong < fewest:
            fewest, tries = wrong, TRIES
        else:
            tries -= 1
        if tries >= 0:
            for h in range(size):
                bound[h] = better[h]
        else:
            bound[last] = better[last]
    return False


@compiled
def settle(
    matrix: FloatArray, gradient: FloatArray, low: FloatArray, high: FloatArray, extra: FloatArray, step: FloatArray
) -> None:
    """Write an approximate step: the best value of each place within its bounds, in many sweeps."""
    push = gradient.copy()
    step[:] = 0.0
    for _ in range(SWEEPS):
        for h in range(step.size):
            change = min(max(step[h] - push[h] / (max(matrix[h, h], 0.0) + extra[h]), low[h]), high[h]) - step[h]
            if change != 0.0:
                step[h] += change
                for j in range(step.size):
                    push[j] += matrix[h, j] * change


@compiled
def learn(matrix: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """Change a matrix (H,H) by the formula of BFGS, so that it maps the step (H,) to the change of the gradient (H,)."""
    size = step.size
    mapped, curved, along = np.empty(size), 0.0, 0.0
    for h in range(size):
        mapped[h] = 0.0
        for j in range(size):
            mapped[h] += matrix[h, j] * step[j]
        curved += step[h] * mapped[h]
        along += step[h] * change[h]
    if not (along > 0.0 and curved > 0.0):
        return  # rounding: a convex function curves upward
    for h in range(size):
        for j in range(size):
            matrix[h, j] += change[h] * change[j] / along - mapped[h] * mapped[j] / curved
