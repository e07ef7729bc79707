"""Compiled kernels: arrays and scalars in, arrays and a status out; the caller turns a status into an exception.

Nothing here imports the rest of the library but the names of array types. Shapes are checked by the caller: compiled code
does not check bounds.
"""
