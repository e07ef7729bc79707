"""UCWhittle as its authors' published program plays it, beside ours, on their synthetic domain: a table out.

    python studies/uc_whittle.py [--rounds 30] [--out results]

It writes uc_whittle.json into the folder, which docs/comparison.md is made of; rounds that are there are not played again.

The domain is `good-bad` with its default sizes (8 arms, budget 3, 20 steps, 30 episodes), which are the program's. Before
every step it takes the interval est ± sqrt(2 S ln(2 S A N k^4 / .001) / m) for the chance of a good next state (k counts
episodes, m visits; 1/2 ± 1 where there are none), one kernel of these intervals, and the Whittle indices of that kernel at
discount .9. Two of its versions need no solver:

    value      the kernel that promises most. Values rise with the chance of a good state, so that all of these are as large
               as may be: the quadratic program of the original has this solution.
    extreme    as large as may be for active arms, as small as may be for passive ones.

As published, what an arm did is counted for both of its states, under the action of the arm whose number is the state's
(read on GitHub, lily-x/online-rmab, revision 8ddae30, in 2026). "Mended" counts the state that it was in, and its action.
"""

import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from kept import Kept, asked
from tables import LEVEL, amount, rows

import rmab
from rmab.common.arrays import FloatArray, IntArray
from rmab.report.statistics import compare_pair, holm, interval

FILE, ROUNDS = "uc_whittle.json", 30
LEARNERS = ("uc-whittle", "ucmd", "thompson", "whittle", "random")  # whittle knows the kernels
NAMES = list(LEARNERS)  # what the file must have, besides the program's own versions
DISCOUNT, DELTA = 0.9, 1e-3
Chosen = Callable[[FloatArray, FloatArray], FloatArray]  # the chance (N,S,2) of a good state, from the ends of intervals


def value(_: FloatArray, high: FloatArray) -> FloatArray:
    """Take the largest chances, in order: neither being active nor having been good may harm."""
    passive = np.minimum(high[..., 0], high[..., 1])
    both = np.stack([passive, high[..., 1]], axis=2)
    return np.stack([np.minimum(both[:, 0], both[:, 1]), both[:, 1]], axis=1)


def extreme(low: FloatArray, high: FloatArray) -> FloatArray:
    """Take the largest chances where active, the smallest where passive."""
    return np.stack([low[..., 0], high[..., 1]], axis=2)


def intervals(good: IntArray, visits: IntArray, episode: int) -> tuple[FloatArray, FloatArray]:
    """Return both ends (N,S,2), given how many of the visits (N,S,2) a good state followed."""
    arms, states, actions = visits.shape
    log = np.log(2 * states * actions * arms * (episode + 1) ** 4 / DELTA)
    middle = np.where(visits > 0, good / np.maximum(visits, 1), 0.5)
    wide = np.where(visits > 0, np.minimum(np.sqrt(2 * states * log / np.maximum(visits, 1)), 1.0), 1.0)
    return np.maximum(middle - wide, 0.0), np.minimum(middle + wide, 1.0)


def played(task: rmab.Task, seed: int, chosen: Chosen, *, corrected: bool) -> float:
    """Return what the program earns in all episodes: an arm that is good pays 1 at every step."""
    rng, kernels = np.random.default_rng([seed, 7]), task.problem.arms.kernels
    arms, budget, everybody = len(kernels), int(task.problem.budgets[0]), np.arange(len(kernels))
    good, visits, earned = np.zeros((arms, 2, 2), dtype=int), np.zeros((arms, 2, 2), dtype=int), 0.0
    reward = np.zeros((arms, 2, 2))
    reward[:, 1] = 1.0
    for episode in range(task.episodes):
        states = rng.integers(2, size=arms)
        for _ in range(task.problem.horizon):
            chance = chosen(*intervals(good, visits, episode))
            problem = rmab.Problem(rmab.Arms(np.stack([1.0 - chance, chance], axis=3)), 0, budget, 2)
            index = rmab.planners.whittle_index(problem, reward, discount=DISCOUNT).index[everybody, states]
            active = np.zeros(arms, dtype=int)
            active[np.lexsort((rng.random(arms), -index))[:budget]] = 1
            following = (rng.random(arms) < kernels[everybody, states, active, 1]).astype(int)
            if corrected:
                np.add.at(visits, (everybody, states, active), 1)
                np.add.at(good, (everybody, states, active), following)
            else:
                for s in range(2):
                    visits[:, s, active[s]] += 1
                    good[:, s, active[s]] += following
            earned += float(states.sum())
            states = following
    return earned


def play(folder: Path, rounds: int = ROUNDS) -> None:
    """Play what is missing of these rounds in the folder's file: what everybody earned, by name."""
    kept = Kept.of(folder / FILE)
    earned = kept.found
    for seed in range(min(map(len, earned.values()), default=0), rounds):
        task = rmab.make_task("good-bad", seed=seed)
        for name in LEARNERS:
            earned.setdefault(name, []).append(float(rmab.run(task, name, seed).reward.sum()))
        for chosen, corrected in product((value, extreme), (True, False)):
            label = f"authors' program, {chosen.__name__}, {'corrected' if corrected else 'as published'}"
            earned.setdefault(label, []).append(played(task, seed, chosen, corrected=corrected))
        kept.write()


def table(kept: Kept) -> str:
    """Return what everybody earned and how much more than the first learner, in Markdown."""
    earned = {name: np.array(each) for name, each in kept.found.items()}
    ours, *others = earned
    told = {
        one.first: one.is_significant
        for one in holm([compare_pair(name, ours, earned[name], earned[ours]) for name in others])
    }
    lines = [[ours, amount(interval(earned[ours])), "", str(earned[ours].size)]]
    for name in others:
        more = amount(interval(earned[name] - earned[ours])) + ("" if told[name] else LEVEL)
        label = "whittle, kernels known (privileged)" if name == "whittle" else name
        lines.append([label, amount(interval(earned[name])), more, str(earned[name].size)])
    return rows(["learner", "reward in all", f"more than `{ours}`", "rounds"], lines, 1)


def main() -> None:
    """Play all rounds and print what everybody earned."""
    folder, rounds = asked(__doc__ or "", ROUNDS)
    play(folder, rounds)
    sys.stdout.write(table(Kept.of(folder / FILE)))


if __name__ == "__main__":
    main()
