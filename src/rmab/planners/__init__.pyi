"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .contract import Planner as Planner, check_states as check_states
from .expansion import SetExpansion as SetExpansion
from .indices import (
    lagrangian_index as lagrangian_index,
    myopic_index as myopic_index,
    occupancy_index as occupancy_index,
    random_policy as random_policy,
    round_robin as round_robin,
)
from .infinite import Ftva as Ftva, IdPolicy as IdPolicy, stationary_index as stationary_index
from .plan import load_policy as load_policy
from .race import Candidate as Candidate
from .registry import list_planners as list_planners, make_planner as make_planner
from .rolling import LpUpdate as LpUpdate, Rolling as Rolling
from .whittle import (
    WhittleResult as WhittleResult,
    finite_whittle_index as finite_whittle_index,
    whittle_index as whittle_index,
)
