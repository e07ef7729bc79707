"""Compiled code of the stationary LP: arrays and scalars in, arrays and a status out."""
