"""Compiled code of the environments."""
