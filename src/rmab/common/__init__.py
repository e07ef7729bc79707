"""Used by all folders: array types, checks of arguments, files, the number of cores, and the compiler's options."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
