"""Compiled code of the priced step: arrays and scalars in, arrays out. Callers check shapes."""
