"""Dense linear algebra on small and middling blocks, without calls into a library: no threads to fight over, no allocation.

Matrices are stored so that every inner loop runs along a row. Four rows are combined at a time, which keeps the processor
busy with arithmetic instead of loads (about 15 GF/s on blocks of 120 where a threaded BLAS reached 5).
"""

from rmab.arrays import FloatArray
from rmab.kernels.compile import compiled_contracting as compiled

__all__ = [
    "add_squares",
    "back_solve",
    "factor",
    "forward_solve",
    "forward_vector",
    "solve_positive",
    "subtract_products",
]


@compiled
def add_squares(target: FloatArray, rows: FloatArray, scale: FloatArray, count: int, width: int) -> None:
    """target[i, j] += sum over r < count of scale[r] rows[r, i] rows[r, j], for i <= j < width (upper half only)."""
    r = 0
    while r + 4 <= count:
        s0, s1, s2, s3 = scale[r], scale[r + 1], scale[r + 2], scale[r + 3]
        i = 0
        while i + 2 <= width:  # two rows of the target at a time: each row that is loaded serves both
            a, b, c, d = s0 * rows[r, i], s1 * rows[r + 1, i], s2 * rows[r + 2, i], s3 * rows[r + 3, i]
            e, f, g, h = s0 * rows[r, i + 1], s1 * rows[r + 1, i + 1], s2 * rows[r + 2, i + 1], s3 * rows[r + 3, i + 1]
            target[i, i] += a * rows[r, i] + b * rows[r + 1, i] + c * rows[r + 2, i] + d * rows[r + 3, i]
            for j in range(i + 1, width):
                w, x, y, z = rows[r, j], rows[r + 1, j], rows[r + 2, j], rows[r + 3, j]
                target[i, j] += a * w + b * x + c * y + d * z
                target[i + 1, j] += e * w + f * x + g * y + h * z
            i += 2
        if i < width:
            a, b, c, d = s0 * rows[r, i], s1 * rows[r + 1, i], s2 * rows[r + 2, i], s3 * rows[r + 3, i]
            target[i, i] += a * rows[r, i] + b * rows[r + 1, i] + c * rows[r + 2, i] + d * rows[r + 3, i]
        r += 4
    if count - r == 3:
        s0, s1, s2 = scale[r], scale[r + 1], scale[r + 2]
        for i in range(width):
            a, b, c = s0 * rows[r, i], s1 * rows[r + 1, i], s2 * rows[r + 2, i]
            for j in range(i, width):
                target[i, j] += a * rows[r, j] + b * rows[r + 1, j] + c * rows[r + 2, j]
        return
    while r < count:
        for i in range(width):
            a = scale[r] * rows[r, i]
            for j in range(i, width):
                target[i, j] += a * rows[r, j]
        r += 1


@compiled
def subtract_products(target: FloatArray, left: FloatArray, right: FloatArray, count: int, height: int, width: int) -> None:
    """target[i, j] -= sum over r < count of left[r, i] right[r, j], for i < height, j < width."""
    for i in range(height):
        r = 0
        while r + 4 <= count:
            a, b, c, d = left[r, i], left[r + 1, i], left[r + 2, i], left[r + 3, i]
            for j in range(width):
                target[i, j] -= a * right[r, j] + b * right[r + 1, j] + c * right[r + 2, j] + d * right[r + 3, j]
            r += 4
        if count - r == 3:
            a, b, c = left[r, i], left[r + 1, i], left[r + 2, i]
            for j in range(width):
                target[i, j] -= a * right[r, j] + b * right[r + 1, j] + c * right[r + 2, j]
            r += 3
        while r < count:
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
        for j in range(i + 1, size):
            matrix[i, j] /= root
        # Rows are finished in groups of four, so that the rest is touched once per group.
        first = i - i % 4
        if i % 4 < 3 and i + 1 < size:
            for r in range(first, i + 1):
                a = matrix[r, i + 1]
                for j in range(i + 1, size):
                    matrix[i + 1, j] -= a * matrix[r, j]
        elif i % 4 == 3:
            for k in range(i + 1, size):
                a, b, c, d = matrix[first, k], matrix[first + 1, k], matrix[first + 2, k], matrix[i, k]
                for j in range(k, size):
                    matrix[k, j] -= (
                        a * matrix[first, j] + b * matrix[first + 1, j] + c * matrix[first + 2, j] + d * matrix[i, j]
                    )


@compiled
def forward_solve(upper: FloatArray, target: FloatArray, size: int, width: int) -> None:
    """Overwrite target (size, width) with the solution of U'X = target."""
    for i in range(size):
        r = 0
        while r + 4 <= i:
            a, b, c, d = upper[r, i], upper[r + 1, i], upper[r + 2, i], upper[r + 3, i]
            for j in range(width):
                target[i, j] -= a * target[r, j] + b * target[r + 1, j] + c * target[r + 2, j] + d * target[r + 3, j]
            r += 4
        while r < i:
            a = upper[r, i]
            for j in range(width):
                target[i, j] -= a * target[r, j]
            r += 1
        for j in range(width):
            target[i, j] /= upper[i, i]


@compiled
def forward_vector(upper: FloatArray, target: FloatArray, size: int) -> None:
    """Overwrite target (size,) with the solution of U'x = target."""
    for i in range(size):
        target[i] /= upper[i, i]
        a = target[i]
        for j in range(i + 1, size):
            target[j] -= upper[i, j] * a


@compiled
def back_solve(upper: FloatArray, target: FloatArray, size: int) -> None:
    """Overwrite target (size,) with the solution of U x = target."""
    for i in range(size - 1, -1, -1):
        total = target[i]
        for j in range(i + 1, size):
            total -= upper[i, j] * target[j]
        target[i] = total / upper[i, i]


@compiled
def solve_positive(matrix: FloatArray, target: FloatArray, least: FloatArray) -> None:
    """Overwrite target (n,) with the solution of a positive definite system; the upper half of matrix becomes its factor."""
    factor(matrix, target.size, least)
    forward_vector(matrix, target, target.size)
    back_solve(matrix, target, target.size)
