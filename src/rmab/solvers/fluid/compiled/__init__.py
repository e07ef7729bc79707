"""Compiled code of the fluid LP: arrays and scalars in, arrays out. Callers check shapes."""
