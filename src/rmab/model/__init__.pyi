"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .adversaries import FACTOR_HIGH as FACTOR_HIGH, make_adversary as make_adversary
from .adversary import Adversary as Adversary, RewardModel as RewardModel, checked_range as checked_range
from .arms import Arms as Arms
from .costs import (
    check_exact as check_exact,
    checked_cost as checked_cost,
    costs_in as costs_in,
    rows_of as rows_of,
    slots_of as slots_of,
    table_of as table_of,
    weights_of as weights_of,
)
from .problem import Problem as Problem, checked_reward as checked_reward
from .registry import ADVERSARIES as ADVERSARIES, FORESEES as FORESEES
from .time import (
    Limit as Limit,
    bare as bare,
    by_phase as by_phase,
    by_step as by_step,
    cells as cells,
    checked_limits as checked_limits,
    checked_phases as checked_phases,
    checked_start as checked_start,
    describe_budget as describe_budget,
    format_limit as format_limit,
    is_list as is_list,
    limits_of as limits_of,
    location as location,
    masses_of as masses_of,
    place as place,
    shape_of as shape_of,
    split_cells as split_cells,
    words_of as words_of,
)
from .view import FeedbackMode as FeedbackMode, View as View
