"""Execution: from a plan to decisions within the budget, probes, which activate arms to see them, and replay."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TypeGuard

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray
from rmab.learning.components.base import Component, RewardEstimate
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, Memory, whole
from rmab.model import Arms, Problem, parted
from rmab.play import LARGE, IndexPolicy, Policy, Rounding, Rule
from rmab.play.simulation import episode_rewards, random_streams

KEY = 8  # of the stream that they draw from
FIRST = 2.0  # an index above all shares
SETTLED = 0.5  # part of the arms that need not be where the others are
ENOUGH = 0.25  # part of where activation leads that must have been seen of an arm, where it may pay at all
TRIED = 5  # activations in a state before an arm may rest there
RESTING = 4  # one in so many arms is passive at every step of the first episode, where there is budget for most
REPLAY_KEY = 9  # of the stream that replays draw from
REPLAYS = 2  # by either execution
CHEAP = 0.1  # part of the steps, the cheapest ones, in which looks are made


@configured
class Probes(Component):
    """Activate every arm now and then, to see what it pays: a rule without which a plan never learns that it was wrong.

    An arm is due when its pay for being active was not revealed during the last `every` * sqrt(k) * t episodes: k the steps
    that a look takes, t the episodes since the last surprise. So looks are frequent at first and after a change, and ever
    rarer while nothing happens: their number grows as the logarithm of T. What counts is pay in the states where activation
    leads: who was touched at the near end of a chain has not been seen.

    A due arm is activated for k steps on end, up to one at which the plan's prices say that activations are worth least. It
    takes k steps until half of the arms that are always active are where activation leads: what a chain pays at its far end
    is not seen in one step. Looks take the part `most` of all activations at most, on average; those of longest ago come
    first.
    """

    anywhere = True
    every: float = option(
        default=0.1,
        ge=0,
        le=1e6,
        help="episodes without observation before a probe, as a fraction of those since the last surprise; 0: no probes",
    )
    most: float = option(default=0.025, ge=0, le=1, help="maximum share of activations used for probes")

    @property
    def draws(self) -> bool:  # type: ignore[override]  # an attribute of other parts
        """Whether there are any: who comes first among equals is drawn."""
        return self.every > 0

    def begin(self, pools: Pools) -> Memory:
        """Return for how many episodes each arm was not seen, and how long nothing has surprised."""
        if self.every == 0:
            return {}
        return {"unseen": np.zeros(pools.view.arms, dtype=np.int64), "calm": np.array(0), "steps": np.array(1)}

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare them."""
        steps = ArraySpec((), "i", 1, pools.view.horizon)
        return {"unseen": whole(pools.view.arms), "calm": whole(), "steps": steps} if self.every else {}

    def learn(self, memory: Memory, episode: Episode, estimate: RewardEstimate) -> Memory:
        """Note who was seen, and whether an arm that had not been surprised."""
        if self.every == 0:
            return {}
        pools = episode.pools
        end, steps = _led_to(pools, episode.counts)
        paid = ~np.isnan(episode.observed.values[..., 1]) & ~pools.zero[..., 1]
        seen = _by_arm(pools, (paid @ end >= ENOUGH * (~pools.zero[..., 1] @ end)) & paid.max(axis=1))
        surprised = None if estimate.surprised is None else _by_arm(pools, estimate.surprised)
        new = surprised is not None and bool((surprised & (memory["unseen"] > 0)).any())
        calm, unseen = np.array(0 if new else memory["calm"] + 1), np.where(seen, 0, memory["unseen"] + 1)
        return {"unseen": unseen, "calm": calm, "steps": np.array(steps)}

    def added(
        self, memory: Memory, policy: Policy, pools: Pools, prices: FloatArray | None, draw_key: tuple[int, int]
    ) -> Policy:
        """Return the policy with its looks; prices (H,): what an activation is worth at each step, where that is known."""
        if self.every == 0 or not isinstance(policy, IndexPolicy) or policy.table.ndim != 3:
            return policy
        rng = np.random.default_rng((KEY, *draw_key))
        budgets = pools.view.slots
        length = int(memory["steps"])
        due = np.flatnonzero(memory["unseen"] >= max(1.0, self.every * float(memory["calm"]) * np.sqrt(length)))
        oldest = np.argsort(-(memory["unseen"][due] + rng.random(due.size)))
        arms = due[oldest][: int(self.most * float(budgets.sum()) / length + rng.random())]
        if arms.size == 0:
            return policy
        steps = _cheapest(budgets, prices, arms.size, rng)
        drawn = policy.rounding == "dependent"
        table = np.array(policy.by_step(budgets.size), order="C")
        for more in range(length):
            table[np.maximum(steps - more, 0), arms] = 1.0 if drawn else FIRST
        kind = (policy.rule, policy.rounding, policy.cost)
        return IndexPolicy.of_steps(table, policy.budget, rule=kind[0], rounding=kind[1], cost=kind[2])


def _led_to(pools: Pools, counts: IntArray) -> tuple[FloatArray, int]:
    """Return where arms are at the end (S,) that are always active, and in how many steps half of them are there.

    All arms are taken together, with what was counted (G, S, 2, S); states from which nobody was activated are not left.
    """
    moves = counts[:, :, 1].sum(axis=0) + 1e-9 * np.eye(pools.view.states)
    moves = moves / moves.sum(axis=1, keepdims=True)
    path = np.empty((pools.view.horizon, pools.view.states))
    path[0] = pools.weights @ pools.begins / pools.weights.sum()
    for here, after in itertools.pairwise(path):
        np.dot(here, moves, out=after)
    return path[-1], int(np.argmax(0.5 * np.abs(path - path[-1]).sum(axis=1) <= SETTLED)) + 1


def _by_arm(pools: Pools, rows: BoolArray) -> BoolArray:
    """(N,) whether it holds of the payoff of an arm in some phase, given (R,)."""
    return np.asarray(rows.reshape(-1, pools.view.phases).max(axis=1)[pools.payoff_of])


def _cheapest(budgets: IntArray, prices: FloatArray | None, number: int, rng: np.random.Generator) -> IntArray:
    """Draw so many steps among the cheapest, as many of them as have room, and a tenth at least."""
    order = rng.permutation(np.flatnonzero(budgets > 0))
    if prices is not None:
        order = order[np.argsort(prices[-budgets.size :][order], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(budgets[order]), number)) + 1
    return np.asarray(rng.permutation(np.resize(order[: max(enough, int(np.ceil(CHEAP * order.size)))], number)))


ROUNDING = "the highest indices (top), or dependent rounding of the plan's shares"
RULE = "always activate the full budget (fill), or leave arms of index 0 (at-most) or below (auto) passive"


class Execution(Component, ABC):
    """A part that says who is activated. Override `policy`; every policy must keep the budget."""

    anywhere = True

    @abstractmethod
    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that executes a plan: the share (C, H, S) of every block that is active in a state at a step."""

    def drawing(self) -> Execution:
        """Return the execution for plans whose shares must be drawn as they are."""
        return DependentRounding()


@configured
class TopB(Execution):
    """Activate the arms with the highest share of active mass in their state: the paper's index policy."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the index policy of the shares."""
        return _of_shares(pools, share, self.rule, "top")

    def drawing(self) -> Execution:
        """Return dependent rounding, with the same rule."""
        return DependentRounding(rule=self.rule)


@configured
class DependentRounding(Execution):
    """Activate each arm with the plan's own probability, as far as the budget allows."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that draws."""
        return _of_shares(pools, share, self.rule, "dependent")

    def drawing(self) -> Execution:
        """Return itself."""
        return self


def rested_first(policy: Policy, pools: Pools, draw_key: tuple[int, int]) -> Policy:
    """Return the policy of the first episode: where more than half may be active, a random quarter of the arms rests.

    Otherwise nobody would see what passivity is like. Who rests is drawn at every step.
    """
    view = pools.view
    if 2 * pools.budget.max() <= view.arms or not _may_rest(policy):
        return policy
    rng = np.random.default_rng((KEY, *draw_key))
    table = np.array(policy.by_step(view.horizon), order="C")
    for h in np.flatnonzero(2 * pools.budget > view.arms):
        table[h, rng.permutation(view.arms)[: view.arms // RESTING]] = -1.0
    return IndexPolicy.of_steps(table, policy.budget, rule="auto", cost=policy.cost)


def rested(policy: Policy, worthless: FloatArray, tried: IntArray) -> Policy:
    """Return the policy that leaves arms passive whose share is below `worthless` (H,), and was tried often enough.

    tried (N, 1 or H, S): how often an arm was active in a state. Shares that are drawn are drawn as they are.
    """
    if not _may_rest(policy):
        return policy
    table: FloatArray | None = None
    steps = policy.by_step(worthless.size)
    often = np.broadcast_to((tried >= TRIED).transpose(1, 0, 2), steps.shape)
    many = max(LARGE // steps[0].size, 1)  # steps at a time, so that nothing else is as large as the table
    for some in (slice(first, first + many) for first in range(0, worthless.size, many)):
        rests = (steps[some] < worthless[some, np.newaxis, np.newaxis]) & often[some]
        if rests.any():
            table = np.array(steps, order="C") if table is None else table
            table[some][rests] = -1.0
    return policy if table is None else IndexPolicy.of_steps(table, policy.budget, rule="auto", cost=policy.cost)


def _may_rest(policy: Policy) -> TypeGuard[IndexPolicy]:
    """Whether it fills the budget with the highest shares."""
    if not isinstance(policy, IndexPolicy):
        return False
    return policy.table.ndim == 3 and (policy.rule, policy.rounding) == ("fill", "top")


def _of_shares(pools: Pools, share: FloatArray, rule: Rule, rounding: Rounding) -> IndexPolicy:
    """Return the policy of shares (C, H, S) under the budget of the view: an exact one is always spent."""
    view = pools.view
    given: Rule = "fill" if view.exact else rule
    return IndexPolicy.of_steps(_of_arms(pools, share), view.budget, rule=given, rounding=rounding, cost=view.cost)


def _of_arms(pools: Pools, share: FloatArray) -> FloatArray:
    """(H, N, S) the share of every arm, from that of its block (C, H, S): laid out as policies are, in one copy."""
    if share.size <= LARGE:
        return np.array(share[pools.block_of].transpose(1, 0, 2), order="C")
    table = np.empty((share.shape[1], pools.block_of.size, share.shape[2]))
    for h, step in enumerate(table):
        np.take(share[:, h], pools.block_of, axis=0, out=step)
    return table


def gain_of_drawing(
    pools: Pools,
    share: FloatArray,
    worthless: FloatArray | None,
    kernels: FloatArray,
    paid: FloatArray,
    draw_key: tuple[int, int],
) -> float:
    """Return what drawn shares earn more than the highest ones, in a mean of two replays that see the same arms.

    share (C, H, S) of a plan, worthless (H,) the share below which arms rest, kernels (C * K, S, 2, S) of every block and
    phase, paid (R, S, 2) by payoff and phase.
    """
    view, highest = pools.view, share
    if worthless is not None:
        highest = np.where(share < worthless[:, np.newaxis], -1.0, share)
    arms = Arms(parted(kernels, view.phases)[pools.block_of])
    problem = Problem(arms, view.start, view.budget, view.horizon, view.phase_of, exact=view.exact, cost=view.cost)
    policies = TopB(rule="auto").policy(pools, highest), DependentRounding().policy(pools, share)
    reward = pools.of_arms(paid, pools.payoff_of)
    streams = random_streams(np.random.default_rng((REPLAY_KEY, *draw_key)), REPLAYS)
    highest_earned, drawn_earned = (episode_rewards(problem, one, reward, streams).mean() for one in policies)
    return float(drawn_earned - highest_earned)
