"""Contracts as suites to run on your own code: each check passes, or raises AssertionError and names the broken clause."""

from rmab.testing.adversary import check_adversary
from rmab.testing.components import check_execution, check_refresh, check_rewards, check_sets, check_step
from rmab.testing.learner import check_learner

__all__ = [
    "check_adversary",
    "check_execution",
    "check_learner",
    "check_refresh",
    "check_rewards",
    "check_sets",
    "check_step",
]
