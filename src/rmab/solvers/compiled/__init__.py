"""Compiled code that several solvers share: arrays and scalars in, arrays out. Callers check shapes."""
