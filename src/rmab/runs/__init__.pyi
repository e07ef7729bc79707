"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .comparators import Comparators as Comparators, theory_curve as theory_curve
from .record import RunResult as RunResult
from .running import run as run
