"""Learners, and the components that they are built from.

`MirrorDescent` and `IndexLearner` are the two skeletons; `Ucmd` takes any components. docs/extending.md shows how to
write a custom learner.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
