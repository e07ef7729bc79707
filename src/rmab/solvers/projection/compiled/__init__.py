"""Compiled code of the projection: arrays and scalars in, arrays and a status out. Callers check shapes."""
