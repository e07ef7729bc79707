"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .exact import (
    ExactAverage as ExactAverage,
    ExactOptimum as ExactOptimum,
    solve_exact as solve_exact,
    solve_exact_average as solve_exact_average,
)
from .fluid.fluid import Fluid as Fluid, solve_fluid as solve_fluid
from .fluid.optimistic import OptimisticFluid as OptimisticFluid, solve_optimistic_fluid as solve_optimistic_fluid
from .priced.soften import SoftPlan as SoftPlan, soften as soften
from .projection.project import Projection as Projection, project as project, project_ball as project_ball
from .stationary.average import AverageFluid as AverageFluid, solve_average_fluid as solve_average_fluid
from .transitions import TransitionSets as TransitionSets
