"""Bounds and plans for known dynamics, and projections onto occupancy measures, each with a certificate."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
