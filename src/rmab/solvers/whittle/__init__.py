"""Whittle indices of one arm."""
