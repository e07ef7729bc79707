"""Reward estimators: what the last episode paid, also where nobody looked. All values are in [0, 1]."""

from dataclasses import dataclass

import numpy as np

from rmab.arrays import FloatArray, IntArray
from rmab.learning.pools import Observed
from rmab.problem import View

__all__ = ["paper_estimate"]


def paper_estimate(view: View, observed: Observed, width: FloatArray) -> FloatArray:
    """r-hat (R,S,2) of eq. reward_estimator: min(r H / c + delta, 1) where visited, 1 elsewhere; width (R,S,2) is delta.

    Where H / c is large, and it mostly is, the estimate is 1 whatever was seen: kept as published.
    """
    seen = ~np.isnan(observed.values)
    scaled = observed.values * view.horizon / np.maximum(observed.visits, 1.0)
    return np.where(seen, np.minimum(scaled + width, 1.0), 1.0)
