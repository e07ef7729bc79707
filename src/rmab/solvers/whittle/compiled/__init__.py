"""Compiled code of the Whittle index: arrays and scalars in, arrays and a status out."""
