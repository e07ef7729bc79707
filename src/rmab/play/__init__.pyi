"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .feedback import Batch as Batch, Feedback as Feedback, Trajectory as Trajectory, pairs_of as pairs_of
from .policy import (
    LARGE as LARGE,
    IndexPolicy as IndexPolicy,
    Policy as Policy,
    Rounding as Rounding,
    Rule as Rule,
    begin_episode as begin_episode,
    checked_states as checked_states,
    decisions_of as decisions_of,
)
from .rounds import Rounds as Rounds
from .simulation import (
    play_episode as play_episode,
    random_streams as random_streams,
    simulate as simulate,
    simulate_many as simulate_many,
    simulate_visits as simulate_visits,
    visit_rates as visit_rates,
)
