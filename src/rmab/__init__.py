"""rmab: online learning in restless multi-armed bandits, under a budget that is never broken.

State a problem with `Arms` and `Problem`, find a good policy with `plan`, let a learner play a task with `run`. Solvers are
in `rmab.solvers`, policies for known dynamics in `rmab.planners`, learners and their components in `rmab.learning`, logs of
real programmes in `rmab.data`, grids of runs in `rmab.study`. Names are loaded on first use, so `import rmab` is quick.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are in __init__.pyi
