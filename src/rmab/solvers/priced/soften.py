"""Plans softened by the entropy of their decisions: the priced step.

    max over flows z  <z, r> - (1 / beta) sum over arms, steps and states of z(h,s) KL(z(.|h,s) || uniform_h)
    subject to the budget at every step, on average,

where the uniform policy activates every arm at the same rate: the budget over the number of arms. With prices of the budget
this is backward induction with a softened maximum, and the share of a state that is activated is a logistic function of its
advantage, in every state, visited or not. What remains is a smooth convex function of H prices (`search.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rmab.common import FloatArray, as_tolerance, frozen
from rmab.model import Problem
from rmab.solvers.checks import checked_table
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.priced.blocks import Priced, soften_blocks


@dataclass(frozen=True, eq=False, repr=False)
class SoftPlan(Priced):
    """A softened plan, as `rmab.solvers.soften` returns it.

    Attributes
    ----------
    value : float
        Reward of the plan less the cost of entropy: the objective, at a flow within the budget.
    bound : float
        The dual value: no flow within the budget has more.
    gap : float
        bound - value, relative to the larger of the bound and the widest range of one arm's rewards, all counted from each
        arm's least reward (in a phase): certified. A constant added to the rewards of an arm does not change it.
    prices : (H,) float array
        Price of an activation at each step: the most that one more can add to the bound.
    use : (H,) float array
        Mean number of active arms at each step: at most the budget, up to rounding (1e-9, relative).
    share : (C, H, S) float array
        For each block of identical arms, the active share of the mass by step and state, also in states that are never
        visited. `shares` has it for every arm.
    beta : float
        The inverse temperature.
    passes, curvatures : int
        Number of evaluations of all plans (a backward and a forward pass each), and of second-derivative matrices.
    curvature : (H, H) float array, or None
        Approximate derivative of the use of each step in each price, for the next solve.
    units : Units
        Normalised rewards.
    program : Program
        The programme, in the layout of compiled code.
    discounts : (H,) float array
        Weight of the rewards of every step.
    problem : Problem
        The problem.
    blocks : Blocks
        The arms that were planned together; `blocks.block_of` (N,) is the block of each.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms.identical([[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]]], 3)
    >>> plan = rmab.solvers.soften(rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3, beta=3)
    >>> plan.share[0].round(2)  # state 0 gains more by an activation: but not at the last step, which comes too late
    array([[0.33, 0.05],
           [0.45, 0.1 ],
           [0.48, 0.17],
           [0.33, 0.33]])
    >>> plan.use.round(4)
    array([1., 1., 1., 1.])
    """

    problem: Problem
    blocks: Blocks

    @property
    def shares(self) -> FloatArray:
        """(N, H, S) the share of every arm."""
        return frozen(self.share[self.blocks.block_of])

    @property
    def occupancy(self) -> FloatArray:
        """(N, H, S, 2) probability of arm n being in state s under action a at step h; built on demand."""
        blocks, start = self.blocks, np.array(self.problem.start_masses)
        if (weighed := blocks.by_state) is None:
            found = self._occupancy(np.array(blocks.block_of), start)
        else:
            cost = weighed.cost[blocks.block_of]
            found = self._occupancy(np.array(blocks.block_of), start * cost[:, blocks.phase_of[0]])
            found = found / cost[:, blocks.phase_of, :, np.newaxis]
        return frozen(found / np.maximum(self.discounts, 1e-300)[:, np.newaxis, np.newaxis])

    @property
    def values(self) -> FloatArray:
        """(C, H, S) the softened value of every state from each step on, prices paid; with costs, per unit of cost."""
        values, weighed = super().values, self.blocks.by_state
        if weighed is None:
            return values
        least, found = weighed.least[:, self.blocks.phase_of], np.array(values)
        rest = np.zeros(len(least))
        for h in range(self.prices.size - 1, -1, -1):
            rest = least[:, h] + self.problem.discount * rest
            found[:, h] += rest[:, np.newaxis] / weighed.cost[:, self.blocks.phase_of[h]]
        return frozen(found)


def soften(
    problem: Problem, reward: ArrayLike, beta: float, *, warm: Priced | ArrayLike | None = None, tolerance: float = 1e-6
) -> SoftPlan:
    """Compute a plan softened at inverse temperature beta, with the budget on average, and a certificate.

    The plan maximises the reward less 1 / beta times the entropy of decisions over the uniform policy, which activates
    every arm at the rate B / N. As beta grows it becomes a fluid plan; as beta goes to 0, uniform. Unlike a fluid plan it is
    unique, depends smoothly on the rewards, and is defined in every state.

    Parameters
    ----------
    problem : Problem
        Arms, start, budget and horizon. Arms that share group and reward are planned together.
    reward : (N, S, 2) or (N, K, S, 2) array
        Reward of each arm, state and action; in each phase, if it depends on time.
    beta : float
        The inverse temperature, per unit of reward; times the range of the rewards from 1e-200 to 1e10.
    warm : Softened or (H,) array, optional
        An earlier plan for similar rewards, or its prices, to start from. Of longer plans the last steps are used, as
        when the rest of an episode is planned again. It changes the run time, not the result.
    tolerance : float
        Largest certified gap, relative.

    Returns
    -------
    Softened
        Value, bound, prices and shares.

    Raises
    ------
    ModelError
        If an argument is wrong.
    SolverError
        If the gap cannot be certified.

    Notes
    -----
    With costs, the entropy of an arm counts in proportion to its cost, that of the mean cost once, and the plan's `beta` is
    per unit of reward and cost: the unit of the costs has no effect.

    If the budget of a step is 0, no arm is active, and its price is 0. If it is enough for all arms the price is 0,
    too, and the uniform policy activates at the rate 0.99, so that arms can be passive; the same applies if B / N is
    above that.

    Examples
    --------
    >>> import rmab
    >>> arms = rmab.Arms.identical([[[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]]], 3)
    >>> problem, reward = rmab.Problem(arms, 0, 1, 4), [[[0, 0], [1, 1]]] * 3
    >>> plan = rmab.solvers.soften(problem, reward, beta=10)
    >>> round(plan.value, 2), round(rmab.solvers.solve_fluid(problem, reward).value, 2)
    (4.1, 4.25)
    >>> rmab.solvers.soften(problem, reward, beta=10, warm=plan).passes
    1
    """
    blocks = Blocks.of(problem, checked_table(problem, reward, "solvers.soften"))
    tables = (blocks.kernels, blocks.reward, blocks.start, blocks.budget)
    given: dict[str, Any] = {"phase_of": blocks.phase_of, "discounts": problem.discounts, "exact": problem.exact}
    if blocks.weights is not None:  # masses are costs, in any unit
        beta = as_tolerance(beta, "beta") * blocks.unit
        tolerance = as_tolerance(tolerance, "tolerance") * min(blocks.unit, 1.0)
    answer = soften_blocks(*tables, beta, **given, everywhere=True, warm=warm, tolerance=tolerance, most=blocks.most)
    own = {one.name: getattr(answer, one.name) for one in fields(answer)}
    if (base := blocks.base(problem.discounts)) != 0.0:
        own |= {"value": answer.value + base, "bound": answer.bound + base}
    return SoftPlan(**own, problem=problem, blocks=blocks)
