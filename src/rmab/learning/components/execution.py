"""Execution: from a plan to decisions within the budget, probes (forced exploration), and replay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeGuard

import numpy as np

from rmab.common import BoolArray, FloatArray, IntArray, frozen, sealed
from rmab.learning.compiled.observing import led_to, show
from rmab.learning.components.base import Component, RewardEstimate
from rmab.learning.options import configured, option
from rmab.learning.pools import Episode, Pools
from rmab.learning.state import ArraySpec, ArraySpecs, Memory, whole
from rmab.model import Arms, split_cells
from rmab.play import LARGE, IndexPolicy, Policy, Rounding, Rule
from rmab.play.index_policy import floor_of
from rmab.play.simulation import Ranking, rankings_rewards

KEY = 8  # key of the random stream of probes
FIRST = 2.0  # an index above all shares
SETTLED = 0.5  # share of the arms that may be elsewhere
ENOUGH = 0.25  # share of the states that activation leads to, and that may pay, which must have been observed
TRIED = 5  # activations in a state before an arm may rest there
RESTING = 4  # one in so many arms is passive at every step of the first episode, if the budget covers most arms
REPLAY_KEY = 9  # key of the random stream of replays
REPLAYS = 2  # by either execution
CHEAP = 0.1  # part of the steps, the cheapest ones, in which probes are made


@configured
class Probes(Component):
    """Forced exploration: activate every arm now and then to observe its rewards, so that a wrong plan is corrected.

    An arm is due when its pay for being active was not revealed during the last `every` * sqrt(k) * t episodes: k the steps
    that a probe takes, t the episodes since the last surprise. So probes are frequent at first and after a change, and ever
    rarer while nothing happens: their number grows as the logarithm of T. What counts is pay in the states where activation
    leads: one activation at the start of a chain does not show its end.

    A due arm is activated for k steps in a row, ending at one of the steps at which activations are cheapest. It
    takes k steps until half of the arms that are always active are where activation leads: the reward at the end of a chain
    is not seen in one step. Probes use at most the fraction `most` of all activations, on average; the longest overdue come
    first.
    """

    anywhere = True
    every: float = option(
        default=0.1,
        ge=0,
        le=1e6,
        help="an arm is probed when it was not observed for about this fraction of the episodes since a probed arm last "
        "paid something unexpected; 0: no probes",
    )
    most: float = option(default=0.025, ge=0, le=1, help="maximum share of activations used for probes")

    @property
    def draws(self) -> bool:  # type: ignore[override]  # an attribute of other parts
        """Whether there are probes: ties are broken at random."""
        return self.every > 0

    def begin(self, pools: Pools) -> Memory:
        """Return the episodes since each arm was observed, and since the last surprise."""
        if self.every == 0:
            return {}
        return {"unseen": np.zeros(pools.view.arms, dtype=np.int64), "calm": np.array(0), "steps": np.array(1)}

    def state_spec(self, pools: Pools) -> ArraySpecs:
        """Declare them."""
        steps = ArraySpec((), "i", 1, pools.view.horizon)
        return {"unseen": whole(pools.view.arms), "calm": whole(), "steps": steps} if self.every else {}

    def learn(self, memory: Memory, episode: Episode, estimate: RewardEstimate) -> Memory:
        """Record which arms were observed, and whether an overdue one was a surprise."""
        if self.every == 0:
            return {}
        pools = episode.pools
        end, shown = np.empty(pools.view.states), np.empty(len(pools.zero), dtype=bool)
        steps = led_to(episode.counts, pools.weights @ pools.begins / pools.weights.sum(), pools.view.horizon, SETTLED, end)
        show(episode.observed.values, pools.zero, end, ENOUGH, shown)
        seen = _by_arm(pools, shown)
        surprised = None if estimate.surprised is None else _by_arm(pools, estimate.surprised)
        new = surprised is not None and bool((surprised & (memory["unseen"] > 0)).any())
        calm, unseen = np.array(0 if new else memory["calm"] + 1), np.where(seen, 0, memory["unseen"] + 1)
        return {"unseen": unseen, "calm": calm, "steps": np.array(steps)}

    def added(
        self, memory: Memory, policy: Policy, pools: Pools, prices: FloatArray | None, draw_key: tuple[int, int]
    ) -> Policy:
        """Return the policy with its probes; prices (H,): the price of an activation at each step, if known."""
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
        is_random = policy.rounding == "dependent"
        table = np.array(policy.by_step(budgets.size), order="C")
        for more in range(length):
            table[np.maximum(steps - more, 0), arms] = 1.0 if is_random else FIRST
        kind = (policy.rule, policy.rounding, policy.cost)
        return IndexPolicy.of_steps(table, policy.budget, rule=kind[0], rounding=kind[1], cost=kind[2])


def _by_arm(pools: Pools, rows: BoolArray) -> BoolArray:
    """(N,) whether it is true of the arm's payoff in some phase, given (R,)."""
    return np.asarray(rows.reshape(-1, pools.view.phases).max(axis=1)[pools.payoff_of])


def _cheapest(budgets: IntArray, prices: FloatArray | None, number: int, rng: np.random.Generator) -> IntArray:
    """Draw steps among the cheapest ones, which are as many as needed and at least a tenth."""
    order = rng.permutation(np.flatnonzero(budgets > 0))
    if prices is not None:
        order = order[np.argsort(prices[-budgets.size :][order], kind="stable")]
    enough = int(np.searchsorted(np.cumsum(budgets[order]), number)) + 1
    cheapest = order[: max(enough, int(np.ceil(CHEAP * order.size)))]
    return np.asarray(rng.permutation(cheapest[np.arange(number) % cheapest.size]))


ROUNDING = "the highest indices (top), or dependent rounding of the plan's shares"
RULE = (
    "fill: use the full budget, except on arms that must stay passive (step.rest); "
    "at-most: leave arms of index 0 or less passive, too; auto: those of an index below 0"
)


class Execution(Component, ABC):
    """A component that chooses the arms to activate. Override `policy`; every policy must keep the budget."""

    anywhere = True

    @abstractmethod
    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that executes a plan, given as the active share (C, H, S) of every block, step and state."""

    def drawing(self) -> Execution:
        """Return the execution for plans whose shares must be drawn unchanged."""
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
    """Activate each arm with the plan's probability, as far as the budget allows."""

    rule: Rule = option(default="fill", help=RULE)

    def policy(self, pools: Pools, share: FloatArray) -> Policy:
        """Return the policy that draws."""
        return _of_shares(pools, share, self.rule, "dependent")

    def drawing(self) -> Execution:
        """Return itself."""
        return self


def rest_in_first_episode(policy: Policy, pools: Pools, draw_key: tuple[int, int]) -> Policy:
    """Return the policy of the first episode: if more than half may be active, a random quarter of the arms is passive.

    Otherwise passive transitions would not be observed. The passive arms are drawn at every step.
    """
    view = pools.view
    if 2 * pools.budget.max() <= view.arms or not _may_rest(policy):
        return policy
    rng = np.random.default_rng((KEY, *draw_key))
    table = np.array(policy.by_step(view.horizon), order="C")
    for h in np.flatnonzero(2 * pools.budget > view.arms):
        table[h, rng.permutation(view.arms)[: view.arms // RESTING]] = -1.0
    return IndexPolicy.of_steps(table, policy.budget, rule="auto", cost=policy.cost)


def rest_worthless(policy: Policy, worthless: FloatArray, tried: IntArray) -> Policy:
    """Return the policy that leaves arms passive whose share is below `worthless` (H,), and that were tried often enough.

    tried (N, 1 or H, S): how often an arm was active in a state. Shares to draw stay unchanged.
    """
    if not _may_rest(policy):
        return policy
    table: FloatArray | None = None
    steps = policy.by_step(worthless.size)
    often = np.broadcast_to((tried >= TRIED).transpose(1, 0, 2), steps.shape)
    many = max(LARGE // steps[0].size, 1)  # step by step, to save memory
    for some in (slice(first, first + many) for first in range(0, worthless.size, many)):
        rests = steps[some] < worthless[some, np.newaxis, np.newaxis]
        if rests.any() and (rests := rests & often[some]).any():
            table = np.array(steps, order="C") if table is None else table
            np.copyto(table[some], -1.0, where=rests)
    return policy if table is None else IndexPolicy.of_steps(table, policy.budget, rule="auto", cost=policy.cost)


def _may_rest(policy: Policy) -> TypeGuard[IndexPolicy]:
    """Whether it fills the budget with the highest shares."""
    if not isinstance(policy, IndexPolicy):
        return False
    return policy.table.ndim == 3 and (policy.rule, policy.rounding) == ("fill", "top")


def _of_shares(pools: Pools, share: FloatArray, rule: Rule, rounding: Rounding) -> IndexPolicy:
    """Return the policy of shares (C, H, S) under the budget of the view: an exact budget is always spent."""
    view = pools.view
    given: Rule = "fill" if view.exact else rule
    return IndexPolicy.of_steps(_of_arms(pools, share), view.budget, rule=given, rounding=rounding, cost=view.cost)


def _of_arms(pools: Pools, share: FloatArray) -> FloatArray:
    """(H, N, S) the share of every arm, from that of its block (C, H, S): in the layout of policies."""
    steps = share.swapaxes(0, 1).astype(np.float64, copy=False)  # edited states may have others
    table = np.empty((share.shape[1], pools.block_of.size, share.shape[2]))
    many = max(LARGE // table[0].size, 1)  # steps at a time, to save memory: NumPy copies what it takes from
    for first in range(0, len(table), many):  # "clip" writes to the table directly; the blocks are valid
        some = slice(first, first + many)
        np.take(steps[some], pools.block_of, axis=1, out=table[some], mode="clip")
    return table


def gain_of_drawing(
    pools: Pools,
    share: FloatArray,
    worthless: FloatArray | None,
    kernels: FloatArray,
    paid: FloatArray,
    draw_key: tuple[int, int],
) -> float:
    """Return how much more drawn shares earn than the highest ones, the mean of two replays with the same arms.

    share (C, H, S) of a plan, worthless (H,) the share of passive arms, kernels (C * K, S, 2, S) of every block and
    phase, paid (R, S, 2) by payoff and phase.
    """
    view, shares = pools.view, np.ascontiguousarray(share.swapaxes(0, 1), dtype=np.float64)  # steps first, as in policies
    highest = shares if worthless is None else np.where(shares < worthless[:, np.newaxis, np.newaxis], -1.0, shares)
    rule: Rule = "fill" if view.exact else "auto"
    ranked = Ranking(frozen(highest), floor_of(highest, rule), dependent=False)
    drawn = Ranking(frozen(shares), floor_of(shares, "fill"), dependent=True)
    problem = view.problem(Arms.trusted(sealed(split_cells(kernels, view.phases)), pools.block_of))
    reward = pools.of_arms(paid, pools.payoff_of)
    streams = np.random.PCG64((REPLAY_KEY, *draw_key)).random_raw(8 * REPLAYS).reshape(REPLAYS, 2, 4)  # as random_streams
    earned = rankings_rewards(problem, (ranked, drawn), pools.block_of, reward, streams).mean(axis=1)
    return float(earned[1] - earned[0])
