"""Contract tests for custom code: each check passes, or raises AssertionError that names the broken clause."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
