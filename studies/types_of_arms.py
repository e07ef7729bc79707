"""Does `ucmd` lose by types of arms where there are none, few, many, or others than it looks for?

    python studies/types_of_arms.py [--rounds 6] [--first 200]

Plays every world with and without types, same rounds. Prints regret against O1 in per cent of the random policy's, and the
difference with its standard error. Some two minutes on one core.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from worlds import EVEN, HELPED, HURT, by_state, chain

import rmab

SAY = Console(highlight=False, soft_wrap=True, markup=False)
SIZES = ((64, 5), (64, 40), (200, 5), (200, 20), (2000, 3), (2000, 8))  # arms and episodes
SEVEN = [HELPED, (0.5, 0.15), (0.45, 0.3), EVEN, (0.25, 0.35), (0.2, 0.45), HURT]
KINDS: dict[str, dict[str, Any]] = {
    "one type": {"active": [(0.45, 0.2)]},
    "one type, four of pay": {"active": [(0.45, 0.2)], "pays": [0.2, 0.5, 0.8, 1.0]},
    "two types": {"active": [HELPED, EVEN]},
    "two types, one of 5%": {"active": [EVEN, HELPED], "shares": [0.95, 0.05]},
    "four types": {"active": [HELPED, (0.45, 0.2), EVEN, (0.2, 0.4)]},
    "seven types": {"active": SEVEN},
    "all different": {"active": []},
    "types of passive moves": {"active": [(0.45, 0.2)] * 3, "passive": [(0.1, 0.5), (0.3, 0.3), (0.5, 0.2)]},
}


def world(
    seed: int,
    arms: int,
    episodes: int,
    active: list[tuple[float, float]],
    passive: list[tuple[float, float]] | None = None,
    pays: list[float] | None = None,
    shares: list[float] | None = None,
) -> rmab.Task:
    """Return a task of 20 steps in which a fifth of the arms may be active; no active type: all arms differ."""
    rng = np.random.default_rng(seed)
    type_of = rng.choice(max(len(active), 1), size=arms, p=shares)
    moves = np.array(active)[type_of] if active else rng.uniform((0.05, 0.05), (0.6, 0.3), (arms, 2))
    kernels = chain(rng, moves)
    if passive is not None:
        kernels[:, :, 0] = chain(rng, np.array(passive)[type_of])[:, :, 1]
    quality = np.ones(arms) if pays is None else rng.choice(pays, size=arms)
    rewards = by_state(quality * rng.uniform(0.9, 1.1, arms) * rng.uniform(0.7, 1.3, (episodes, arms)))
    problem = rmab.Problem(rmab.Arms(kernels), 1, arms // 5, 20)
    return rmab.Task.from_rewards(problem, rewards, low=0.0, high=float(rewards.max()))


def main() -> None:
    """Play, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--first", type=int, default=200)
    args = parser.parse_args()
    learners = [rmab.make_learner("ucmd", types=types) for types in (True, False)]
    SAY.print("| arms, episodes | kind | with types | without | difference |\n| --- | --- | ---: | ---: | ---: |")
    for arms, episodes in SIZES:
        for kind, options in KINDS.items():
            lost = []
            for seed in range(args.first, args.first + args.rounds):
                task = world(seed, arms, episodes, **options)
                lost.append([100 * rmab.run(task, one, seed=seed).relative_to_random() for one in learners])
            (on, off), more = np.mean(lost, axis=0), np.subtract(*np.transpose(lost))
            error = more.std(ddof=1) / len(more) ** 0.5
            SAY.print(f"| {arms:,}, {episodes} | {kind} | {on:.1f} | {off:.1f} | {more.mean():+.1f} ({error:.1f}) |")


if __name__ == "__main__":
    main()
