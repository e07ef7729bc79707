"""From a log to a model: counts, kernels of groups, effects with intervals, checks, and the value of a plan."""
