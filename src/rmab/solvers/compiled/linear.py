"""Dense linear algebra on small and medium blocks, without calls into a library: no thread contention, no allocation.

Matrices are stored so that every inner loop runs along a row, and eight rows are combined at a time, which keeps the
processor busy with arithmetic instead of loads: about 30 GF/s on blocks of 120, where a threaded BLAS reached 5.

Loops that do not begin at 0 count in unsigned numbers. A signed index might be negative and then counts from the end: the
compiler cannot rule that out, and will not vectorise the loop, which costs a factor of three or four.
"""

import numpy as np

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled_contracting as compiled, compiled_contracting_inline as inline

GROUP = 8  # rows that `subtract_eight` combines


@inline
def subtract_eight(
    target: FloatArray, i: int, left: FloatArray, right: FloatArray, r: int, column: int, begin: int, width: int
) -> None:
    """target[i, j] -= sum over the eight rows r.. of left[., column] right[., j], for begin <= j < width."""
    a, b, c, d = left[r, column], left[r + 1, column], left[r + 2, column], left[r + 3, column]
    e, f, g, h = left[r + 4, column], left[r + 5, column], left[r + 6, column], left[r + 7, column]
    for j in range(np.uint64(begin), np.uint64(width)):
        target[i, j] -= (a * right[r, j] + b * right[r + 1, j] + c * right[r + 2, j] + d * right[r + 3, j]) + (
            e * right[r + 4, j] + f * right[r + 5, j] + g * right[r + 6, j] + h * right[r + 7, j]
        )


@compiled
def add_squares(target: FloatArray, rows: FloatArray, scale: FloatArray, count: int, width: int) -> None:
    """target[i, j] += sum over r < count of scale[r] rows[r, i] rows[r, j], for i <= j < width (upper half only)."""
    r = 0
    while r + 8 <= count:
        s0, s1, s2, s3 = scale[r], scale[r + 1], scale[r + 2], scale[r + 3]
        s4, s5, s6, s7 = scale[r + 4], scale[r + 5], scale[r + 6], scale[r + 7]
        for i in range(width):
            a, b, c, d = s0 * rows[r, i], s1 * rows[r + 1, i], s2 * rows[r + 2, i], s3 * rows[r + 3, i]
            e, f, g, h = s4 * rows[r + 4, i], s5 * rows[r + 5, i], s6 * rows[r + 6, i], s7 * rows[r + 7, i]
            for j in range(np.uint64(i), np.uint64(width)):
                target[i, j] += (a * rows[r, j] + b * rows[r + 1, j] + c * rows[r + 2, j] + d * rows[r + 3, j]) + (
                    e * rows[r + 4, j] + f * rows[r + 5, j] + g * rows[r + 6, j] + h * rows[r + 7, j]
                )
        r += 8
    if count - r == 3:
        s0, s1, s2 = scale[r], scale[r + 1], scale[r + 2]
        for i in range(width):
            a, b, c = s0 * rows[r, i], s1 * rows[r + 1, i], s2 * rows[r + 2, i]
            for j in range(np.uint64(i), np.uint64(width)):
                target[i, j] += a * rows[r, j] + b * rows[r + 1, j] + c * rows[r + 2, j]
        return
    while r < count:
        for i in range(width):
            a = scale[r] * rows[r, i]
            for j in range(np.uint64(i), np.uint64(width)):
                target[i, j] += a * rows[r, j]
        r += 1


@compiled
def subtract_products(target: FloatArray, left: FloatArray, right: FloatArray, count: int, height: int, width: int) -> None:
    """target[i, j] -= sum over r < count of left[r, i] right[r, j], for i < height, j < width."""
    r = 0
    while r + 8 <= count:
        for i in range(height):
            subtract_eight(target, i, left, right, r, i, 0, width)
        r += 8
    if count - r == 3:
        for i in range(height):
            a, b, c = left[r, i], left[r + 1, i], left[r + 2, i]
            for j in range(width):
                target[i, j] -= a * right[r, j] + b * right[r + 1, j] + c * right[r + 2, j]
        return
    while r < count:
        for i in range(height):
            a = left[r, i]
            for j in range(width):
                target[i, j] -= a * right[r, j]
        r += 1


@compiled
def factor(matrix: FloatArray, size: int, least: FloatArray) -> None:
    """Overwrite the upper half of a positive definite matrix with U, matrix = U'U. Pivots are at least `least` (size,)."""
    for i in range(size):
        pivot = matrix[i, i]
        if not pivot > least[i]:
            pivot = least[i]
        root = pivot**0.5
        matrix[i, i] = root
        for j in range(np.uint64(i + 1), np.uint64(size)):
            matrix[i, j] /= root
        # Rows are finished in groups, so that the rest is touched once per group.
        first = i - i % GROUP
        if i % GROUP < GROUP - 1 and i + 1 < size:
            for r in range(first, i + 1):
                a = matrix[r, i + 1]
                for j in range(np.uint64(i + 1), np.uint64(size)):
                    matrix[i + 1, j] -= a * matrix[r, j]
        elif i % GROUP == GROUP - 1:
            for k in range(i + 1, size):
                subtract_eight(matrix, k, matrix, matrix, first, k, k, size)


@compiled
def forward_solve(upper: FloatArray, target: FloatArray, size: int, width: int) -> None:
    """Overwrite target (size, width) with the solution of U'X = target."""
    for i in range(size):
        first = i - i % GROUP
        for r in range(first, i):
            a = upper[r, i]
            for j in range(width):
                target[i, j] -= a * target[r, j]
        for j in range(width):
            target[i, j] /= upper[i, i]
        if i % GROUP == GROUP - 1:
            for k in range(i + 1, size):
                subtract_eight(target, k, upper, target, first, k, 0, width)


@compiled
def forward_vector(upper: FloatArray, target: FloatArray, size: int) -> None:
    """Overwrite target (size,) with the solution of U'x = target."""
    for i in range(size):
        target[i] /= upper[i, i]
        a = target[i]
        for j in range(np.uint64(i + 1), np.uint64(size)):
            target[j] -= upper[i, j] * a


@compiled
def back_solve(upper: FloatArray, target: FloatArray, size: int) -> None:
    """Overwrite target (size,) with the solution of U x = target."""
    for i in range(size - 1, -1, -1):
        total = target[i]
        for j in range(np.uint64(i + 1), np.uint64(size)):
            total -= upper[i, j] * target[j]
        target[i] = total / upper[i, i]


@compiled
def solve_positive(matrix: FloatArray, target: FloatArray, least: FloatArray) -> None:
    """Overwrite target (n,) with the solution of a positive definite system; the upper half of matrix becomes its factor."""
    factor(matrix, target.size, least)
    forward_vector(matrix, target, target.size)
    back_solve(matrix, target, target.size)


@compiled
def solve_each(matrix: FloatArray, targets: FloatArray, least: FloatArray) -> None:
    """Apply `solve_positive` to every row of targets (m, n)."""
    size = targets.shape[1]
    factor(matrix, size, least)
    for k in range(targets.shape[0]):
        forward_vector(matrix, targets[k], size)
        back_solve(matrix, targets[k], size)
