"""Compiled code of the simulator: arrays and scalars in, arrays and a status out. Callers check shapes."""
