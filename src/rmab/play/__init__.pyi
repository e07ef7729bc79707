"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .feedback import Feedback as Feedback
from .index_policy import IndexPolicy as IndexPolicy
from .policy import (
    LARGE as LARGE,
    Policy as Policy,
    Rounding as Rounding,
    Rule as Rule,
    begin_episode as begin_episode,
    checked_states as checked_states,
)
from .rounds import Rounds as Rounds, decisions_of as decisions_of
from .simulation import (
    play_episode as play_episode,
    random_streams as random_streams,
    simulate as simulate,
    simulate_many as simulate_many,
    simulate_visits as simulate_visits,
    visit_rates as visit_rates,
)
from .trajectory import Batch as Batch, Trajectory as Trajectory, pairs_of as pairs_of
