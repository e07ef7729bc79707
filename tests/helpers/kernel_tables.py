"""Tables of kernels, with one row changed."""

import numpy as np


def table(count=3, states=2):
    return np.full((count, states, 2, states), 1 / states)


def changed(where, value, count=3, states=2):
    kernels = table(count, states)
    kernels[where] = value
    return kernels
