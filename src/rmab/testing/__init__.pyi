"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .adversary import check_adversary as check_adversary
from .components import (
    check_execution as check_execution,
    check_refresh as check_refresh,
    check_rewards as check_rewards,
    check_sets as check_sets,
    check_step as check_step,
)
from .learner import check_learner as check_learner
from .policy import check_planner as check_planner, check_policy as check_policy
from .store import check_store as check_store
