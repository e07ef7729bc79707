"""From a log to a model: counts, kernels of groups, effects with intervals, checks, and what a plan would bring."""
