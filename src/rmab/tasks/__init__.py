"""Tasks: a problem, an adversary, and the feedback of a learner.

`make_task("cpap@switching")` builds a task by name; the modules contain the families of tasks and their heuristic policies.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
