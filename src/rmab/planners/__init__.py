"""Planners: policies and bounds for a problem whose kernels and reward are known."""
