"""Learners, and the parts that they are made of.

`MirrorDescent` and `IndexLearner` are the two skeletons; `Ucmd` takes parts of your choice. docs/extending.md teaches how to
write your own.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
