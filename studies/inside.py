"""A look inside some runs: what learners believe, plan and do on their way, which no study records. A table each.

    python studies/inside.py [--out results]

It writes inside.json into the folder, which docs/details.md is made of; rounds that are there are not played again.

`cpap`       whom the paper's learner activates in the middle of its CPAP study, and what it believes then
`plans`      what the plans of mirror descent earn at the beginning, with sets and with the true kernels, rewards known
`deadline`   how many rewards and indices of `rmab-ucrl` with means plus width are 1 on deadline scheduling, and its price
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kept import Kept, asked
from tables import per_cent, rows

import rmab
from rmab.common.arrays import FloatArray
from rmab.learning.algorithms.rmab_ucrl import RmabUcrl
from rmab.learning.index_learner import Knowledge
from rmab.learning.state import Arrays
from rmab.planners.joint import joint_visits
from rmab.report.statistics import interval
from rmab.solvers.stationary.stationary import stationary_fluid

FILE, ROUNDS = "inside.json", 10
EPISODES = 20_000  # simulated for what a plan earns
STATE = ("paid", "believed active", "clipped", "believed passive", "active")
Found = dict[str, float]


class Episode(NamedTuple):
    """One episode of a run: its number, the plan, what happened, and the state after it."""

    number: int
    plan: rmab.EpisodePlan
    path: rmab.Trajectory
    state: rmab.State


def played(game: rmab.Task, player: rmab.Learner, seed: int) -> Iterator[Episode]:
    """Let a learner play a task, and yield every episode."""
    view = game.view()
    state = player.begin(view, seed)
    for t in range(game.episodes):
        plan, reward = player.plan(state), game.reward(t)
        path = rmab.simulate(game.problem, plan.policy, reward, np.random.default_rng([seed, t]))
        state = player.learn(state, rmab.Feedback.reveal(view, t, path, reward))
        yield Episode(t, plan, path, state)


def cpap(seed: int) -> Found:
    """Return, for episodes 21 to 30 and every state, what activation pays, what activation and passivity are believed to
    pay, as parts of the declared range, for how many arms that of activation is clipped, and how often they are active.
    """
    game, player = rmab.make_task("cpap", seed=seed), rmab.make_learner("ucmd-armab")
    top, states = game.adversary.high, np.arange(game.problem.arms.states)
    paid = np.mean([game.reward(t)[:, :, 1].mean(axis=0) for t in range(20, 30)], axis=0) / top
    there, active, clipped, believed = (
        np.zeros(shape) for shape in (states.size, states.size, states.size, (states.size, 2))
    )
    for episode in played(game, player, seed):
        if 20 <= episode.number < 30:
            now, estimate = episode.path.states[:-1], player.estimate(episode.state)
            assert estimate is not None
            there += [np.count_nonzero(now == s) for s in states]
            active += [np.count_nonzero((now == s) & episode.path.actions) for s in states]
            believed += estimate.mean(axis=0) / top / 10
            clipped += (estimate[:, :, 1] >= top).mean(axis=0) / 10
    each = zip(paid, believed[:, 1], clipped, believed[:, 0], active / there, strict=True)
    return {f"{word}, state {s}": float(x) for s, found in enumerate(each) for word, x in zip(STATE, found, strict=True)}


def plans(seed: int) -> Found:
    """Return what the plans after 0, 10 and 200 episodes lose to the optimum, as a part of what chance loses."""
    game = rmab.make_task("cpap@noisy", seed=seed, arms=4, budget=2, horizon=10, episodes=201, feedback="full")
    problem = game.problem
    reward = np.mean([game.reward(t) for t in range(200)], axis=0)
    best = float((joint_visits(problem, reward) * reward).sum())
    gap = best - float(rmab.runs.Comparators(problem, reward[np.newaxis]).random()[0])

    def lost(policy: rmab.Policy) -> float:
        return (best - rmab.simulate_many(problem, policy, reward, np.random.default_rng(seed), EPISODES).mean) / gap

    told = rmab.make_learner("ucmd", confidence="true", estimator="paper", step="active", probes={"every": 0})
    found = {"myopic": lost(rmab.planners.myopic_index(problem, reward))}
    learners = {"sets": rmab.make_learner("ucmd-armab"), "true kernels": told.inform(problem, 200 * reward)}
    for name, player in learners.items():
        for episode in played(game, player, seed):
            if episode.number in (0, 10, 200):
                found[f"{name}, after {episode.number} episodes"] = lost(episode.plan.policy)
    return found


class Watched(RmabUcrl):
    """RMAB-UCRL, which keeps what its LP is like before ties are broken."""

    def prepare(self, known: Knowledge) -> Arrays:
        """Solve the LP once more; keep its price, and the parts of rewards and of indices that are as `WATCHED` says."""
        pools, (sets, estimate) = known.pools, self.optimistic(known)
        blocks, size = sets.take(pools.group), (int(known.task.budget), pools.weights, pools.real[pools.group])
        plan = stationary_fluid(blocks.low, blocks.high, estimate[pools.payoff], *size)
        empty = plan.z.sum(axis=(2, 3)) <= 1e-9
        parts = ((estimate == 1.0).mean(), empty.mean(), (plan.share == 1.0).mean())
        return {**super().prepare(known), "watched": np.array([plan.price, *parts])}


WATCHED = ("price", "rewards that are 1", "states without mass", "indices that are 1")
AT = (10, 40, 70, 99)


def deadline(seed: int) -> Found:
    """Return the price of an activation in parts of the range, and the parts of rewards and of indices that are 1."""
    game, player = rmab.make_task("deadline", seed=seed, episodes=100, grouped=True), Watched(rewards="optimistic")
    kept = [episode.state.arrays["watched"] for episode in played(game, player, seed)]
    return {f"{word}, episode {t}": float(kept[t][k]) for k, word in enumerate(WATCHED) for t in AT}


LOOKS: dict[str, Callable[[int], Found]] = {"cpap": cpap, "plans": plans, "deadline": deadline}
NAMES = list(LOOKS)


def play(folder: Path, rounds: int = ROUNDS) -> None:
    """Look at what is missing of these rounds in the folder's file."""
    kept = Kept.of(folder / FILE)
    for name, look in LOOKS.items():
        for seed in range(len(kept.found.setdefault(name, [])), rounds):
            kept.found[name].append(look(seed))
            kept.write()


def values(kept: Kept, name: str) -> dict[str, FloatArray]:
    """Return what a look found in all rounds, by key."""
    each = kept.found[name]
    return {key: np.array([one[key] for one in each]) for key in each[0]}


def table(kept: Kept, name: str) -> str:
    """Return the means of a look and their 95% intervals, in per cent, in Markdown."""
    found = {key: interval(each) for key, each in values(kept, name).items()}
    return rows(["what", "per cent", "rounds"], [[key, per_cent(one), str(one.count)] for key, one in found.items()], 1)


def main() -> None:
    """Look, and print the tables."""
    folder, rounds = asked(__doc__ or "", ROUNDS)
    play(folder, rounds)
    kept = Kept.of(folder / FILE)
    for name in LOOKS:
        sys.stdout.write(f"{name}\n{table(kept, name)}\n")


if __name__ == "__main__":
    main()
