"""Views of any shape, and one tiny episode whose counts can be followed by hand."""

import dataclasses
from typing import Any

import numpy as np

import literal
from rmab.learning import Episode
from rmab.learning.pools import Observations, Pools
from rmab.learning.registry import CONFIDENCE
from rmab.model.view import View
from rmab.play.feedback import Feedback
from rmab.play.index_policy import IndexPolicy
from rmab.solvers import TransitionSets


def view_of(arms: int = 1, states: int = 2, horizon: int = 3, **changes: Any) -> View:
    fields: dict[str, Any] = {
        "arms": arms,
        "states": states,
        "horizon": horizon,
        "episodes": 4,
        "budget": 1,
        "start": np.zeros(arms, dtype=np.int64),
        "low": 0.0,
        "high": 1.0,
        "feedback": "bandit",
        "passive_zero": False,
        "pooled_rewards": False,
        "groups": None,
        "support": None,
        "sizes": None,
        "state_names": None,
    }
    return View(**{**fields, **changes})


# Three arms, the first two of one group. Arm 0 goes 0-1-1-0, arm 1 goes 0-0-1-1, arm 2 goes 1-1-1-0.
STATES = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 0]])
ACTIONS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
GROUPS = np.array([0, 0, 1])
REWARD = np.array([[[0.0, 1.0], [-2.0, 3.0]], [[0.0, 1.0], [-2.0, 3.0]], [[0.5, 0.5], [-1.0, 2.0]]])


def tiny(**changes: Any) -> tuple[View, Pools, Observations]:
    """Return the episode above, rewards in [-2, 3], as it is pooled."""
    fields = {"groups": GROUPS, "start": STATES[0], "low": -2.0, "high": 3.0, **changes}
    view = view_of(3, 2, 3, **fields)
    pools = Pools.of(view)
    visits = literal.pair_visits(STATES, ACTIONS, 2)
    return view, pools, pools.observe(Feedback(0, STATES, ACTIONS, np.where(visits > 0, REWARD, np.nan)))


def sets_of(name: str, view: View, counts: Any, support: Any, episode: int, epsilon: float = 0.05) -> TransitionSets:
    """Return the sets of every group by their name, with a support of one's own."""
    pools = dataclasses.replace(Pools.of(view), support=np.asarray(support))
    return CONFIDENCE.load(name)(epsilon=epsilon).around(pools, np.asarray(counts), episode)


def ended(pools: Pools, observed: Observations, number: int = 0, before: Any = None, **changes: Any) -> Episode:
    """Return an episode that ended, of which only what was observed matters; before: the counts (G,S,2,S) before it."""
    view = pools.view
    counts = np.zeros(pools.support.shape, dtype=np.int64) if before is None else before
    mass = changes.pop("mass", np.full((pools.start.size, view.horizon, view.states, 2), 0.5 / view.states))
    policy = changes.pop("policy", IndexPolicy(np.ones((view.arms, view.states)), view.budget))
    fields: dict[str, Any] = {
        "pools": pools,
        "number": number,
        "seed": 0,
        "feedback": None,
        "observed": observed,
        "before": counts,
        "counts": counts + observed.counts,
        "basis": counts,
        "in_force": lambda: None,
        "executed": lambda: (policy, mass),
    }
    return Episode(**{**fields, **changes})
