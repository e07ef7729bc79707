"""Contracts as suites to run on custom code: each check passes, or raises AssertionError and names the broken clause."""

from rmab.testing.adversary import check_adversary
from rmab.testing.components import check_execution, check_refresh, check_rewards, check_sets, check_step
from rmab.testing.learner import check_learner
from rmab.testing.planner import check_planner
from rmab.testing.policy import check_policy
from rmab.testing.store import check_store

__all__ = [
    "check_adversary",
    "check_execution",
    "check_learner",
    "check_planner",
    "check_policy",
    "check_refresh",
    "check_rewards",
    "check_sets",
    "check_step",
    "check_store",
]
