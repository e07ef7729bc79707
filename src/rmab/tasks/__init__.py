"""Tasks: a problem, an adversary, and what a learner gets to see.

`make_task("cpap@switching")` builds one by name; the modules hold the families, and the rules that belong to them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
