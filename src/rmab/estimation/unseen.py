"""Rivals that act where the log never did: what they bring there is unknown, and so is the lead of a plan over them.

An action that was never recorded in a state is assumed to change nothing. A plan does not act there; rotation and a random
draw do, and they would lose by an assumption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import BoolArray, FloatArray, sum_by_group
from rmab.estimation.fit import Fit
from rmab.estimation.values import World
from rmab.logs.findings import list_some, quote

MANY = 0.05  # of the actions of a rival: if more fall where the log has none, no benefit over it is stated


@dataclass(frozen=True)
class Unseen:
    """Rivals of which too many actions fall into states that the log does not have with an action and without one.

    shares: of the actions of these rivals; states: their names; word: what an action is called.
    """

    shares: dict[str, float]
    states: tuple[str, ...]
    word: str

    def describe(self, rival: str) -> str:
        """Return in a sentence why no benefit over a rival is stated."""
        over = {"as logged": "continuing as in the log", "random": "drawing names at random"}.get(rival, rival)
        where = f"go to {list_some([quote(one) for one in self.states])}, where the log cannot show what {self.word}s change"
        return f"The gain over {over} is not stated: {self.shares[rival]:.0%} of its {self.word}s {where}."


def find_unseen(fit: Fit, world: World, kernels: FloatArray) -> Unseen:
    """Return the rivals that often act where the log does not show what actions change; kernels are those of `world`."""
    never = np.zeros(world.belief.shape[1], dtype=bool)
    never[: len(fit.state_names)] = fit.rows.unseen.any(axis=1)
    names = tuple(fit.state_names[s] for s in np.flatnonzero(never[: len(fit.state_names)]))
    if not names:
        return Unseen({}, (), fit.words.action)
    chance = np.full(world.belief.shape, world.budget / world.belief.shape[0])
    rules = {
        "rotation": [np.broadcast_to(turn[:, np.newaxis], chance.shape) for turn in world.turn],
        "random": [chance] * world.horizon,
        "as logged": [world.rate[world.group]] * world.horizon,
    }
    shares = {name: _share(world, kernels, rule, never) for name, rule in rules.items()}
    return Unseen({name: one for name, one in shares.items() if one > MANY}, names, fit.words.action)


def _share(world: World, kernels: FloatArray, rule: list[FloatArray], never: BoolArray) -> float:
    """Return the part of the actions of a rule, chances (N, S) in every period, that falls into the states `never` (S,)."""
    belief, there, total = np.asarray(world.belief), 0.0, 0.0
    for chance in rule:
        acts = belief * chance
        there, total = there + float(acts[:, never].sum()), total + float(acts.sum())
        none, some = (
            sum_by_group("ns,nsy->ny", part, kernels[:, :, a], world.group) for a, part in enumerate((belief - acts, acts))
        )
        belief = none + some
    return there / max(total, 1e-12)
