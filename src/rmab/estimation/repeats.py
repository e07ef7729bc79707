"""What a plan does that the log hardly shows: actions on arms that had more of them than arms of the log ever had.

A plan acts on the same arms again and again where that pays by the model, in which the tenth action works like the first. A
log in which arms had two cannot show it. So actions of the plan are counted that come after more earlier ones, within as
many periods as are planned, than 30 actions of the log did. The plan is played once more as if those changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rmab.common import FloatArray, IntArray
from rmab.estimation.effect_checks import FEW_ACTIONS
from rmab.estimation.fit import Fit
from rmab.estimation.values import World
from rmab.logs.words import Words
from rmab.play import IndexPolicy

WORK, LEAST, MOST = 300_000, 2, 20  # arm-periods to simulate, and episodes
RARE = 0.05  # of the plan's actions, below which nothing is said


@dataclass(frozen=True)
class Repeats:
    """Actions of a plan that come after more earlier ones than the log shows.

    Attributes
    ----------
    most : int
        Earlier actions on the same arm, within as many periods as the horizon, after which the log has 30 actions or more.
    share : float
        Of the plan's actions, those that come after more.
    losses : dict of str to float
        By how much less the plan would bring over 'rotation' and 'nothing' if those changed nothing.
    """

    most: int
    share: float
    losses: dict[str, float]

    @property
    def is_stated(self) -> bool:
        """Whether the share is worth a sentence."""
        return self.share >= RARE

    def describe(self, words: Words, horizon: int, left: dict[str, str]) -> str:
        """Return this in words; left: what the plan brings over its rivals if actions beyond the log change nothing."""
        word, unit = words.action, words.period
        first, *more = (f"{gain} {{}}over {rival}" for rival, gain in left.items())
        gain = ", and ".join([first.format(f"{words.unit} "), *(one.format("") for one in more)])
        return (
            f"{self.share:.0%} of the planned {word}s go to arms that have had {self.most + 1} or more in the last "
            f"{horizon} {unit}s. The log has hardly any such {word}s; the model assumes that they work like the others. If "
            f"they changed nothing, the gain would be {gain}."
        )


def find_repeats(fit: Fit, world: World, policy: IndexPolicy, kernels: FloatArray, key: int) -> Repeats:
    """Return how often a plan repeats actions beyond the log, and what it loses if those change nothing.

    kernels (G, S, 2, S): those of `world`, for which the plan was made.
    """
    log, steps = fit.require_log(), world.horizon
    acted = np.zeros((len(log.arms), max(fit.situation.period, log.periods.count)), dtype=np.int64)
    done = log.action == 1
    acted[log.arm_of[done], log.period[done]] = 1
    numbers = np.bincount(_earlier(acted, steps)[acted == 1], minlength=1)
    most = int((np.cumsum(numbers[::-1])[::-1] >= FEW_ACTIONS).sum()) - 1
    past = acted[fit.present][:, max(fit.situation.period - steps, 0) : fit.situation.period]
    rows, found = kernels[world.group], []
    for k in range(int(np.clip(WORK // (len(past) * steps), LEAST, MOST))):
        chance = np.random.default_rng((key, 11, k)).random((steps + 1, len(past)))
        both = [
            [_play(world, one, rows, chance, past, most, rest=rest) for rest in (True, False)]
            for one in (policy, world.turn)
        ]
        found.append([both[0][0][1], *(one[0][0] - one[1][0] for one in both)])
    share, plan, rotation = (float(one) for one in np.mean(found, axis=0))
    return Repeats(most, share, {"rotation": plan - rotation, "nothing": plan})


def _earlier(acted: IntArray, window: int) -> IntArray:
    """(N, T) how many actions (N, T) an arm had in the `window` periods before each."""
    total = np.pad(np.cumsum(acted, axis=1), ((0, 0), (1, 0)))
    at = np.arange(acted.shape[1])
    return np.asarray(total[:, at] - total[:, np.maximum(at - window, 0)])


def _play(
    world: World,
    policy: IndexPolicy | FloatArray,
    rows: FloatArray,
    chance: FloatArray,
    past: IntArray,
    most: int,
    *,
    rest: bool,
) -> tuple[float, float]:
    """Return what an episode earns, and the share of its actions after more than `most`; rest: whether those work.

    policy: or actions (H, N). rows (N, S, 2, S), random numbers (H + 1, N), and actions of periods before (N, T).
    """
    every, steps, rng = np.arange(len(rows)), world.horizon, np.random.default_rng(0)
    acted, state = [*past.T], _draw(world.belief, chance[steps])
    total, beyond, pays = 0.0, 0, world.pays
    for h in range(steps):
        action = policy.act(h, state, rng) if isinstance(policy, IndexPolicy) else policy[h] > 0
        again = action & (np.sum(acted[-steps:], axis=0) > most)
        works = (action & (rest | ~again)).astype(np.int64)
        total, beyond = total + float(pays[every, state, works].sum()), beyond + int(again.sum())
        acted.append(action.astype(np.int64))
        state = _draw(rows[every, state, works], chance[h])
    return total, beyond / max(int(np.sum(acted[-steps:])), 1)


def _draw(rows: FloatArray, chance: FloatArray) -> IntArray:
    """(N,) states by their probabilities (N, S) and random numbers (N,)."""
    return np.asarray((chance[:, np.newaxis] >= np.cumsum(rows, axis=1)[:, :-1]).sum(axis=1))
