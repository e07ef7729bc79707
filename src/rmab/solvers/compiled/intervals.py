"""Whether tables of intervals leave every row a distribution."""

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled


@compiled
def intervals_fit(low: FloatArray, high: FloatArray, rounding: float) -> bool:
    """Return whether all intervals [low, high] lie within [0, 1], and every row (M,S) of them admits a distribution."""
    for m in range(low.shape[0]):
        bottom, top = 0.0, 0.0
        for y in range(low.shape[1]):
            if not 0.0 <= low[m, y] <= high[m, y] <= 1.0:
                return False
            bottom += low[m, y]
            top += high[m, y]
        if bottom > 1.0 + rounding or top < 1.0 - rounding:
            return False
    return True
