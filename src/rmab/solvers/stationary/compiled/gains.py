"""Average reward over confidence boxes: the best stationary policy of every block separately, by policy iteration.

A policy is an action per state and a kernel of its box. There is a third action, the jump: to any state, at a cost
so high that no good plan pays it. A state that cannot reach the best class jumps there: so there is always one
class only, and every state has a value. A plan whose class has no jumps is a plan of the original model.

Policies are evaluated by eliminating state after state (Grassmann, Taksar and Heyman 1985): probabilities are only added,
multiplied and divided, so nothing cancels; and a class that cannot be left appears as a state with no way out.
"""

import numpy as np

from rmab.common.arrays import BoolArray, FloatArray, IntArray
from rmab.common.compile import compiled, compiled_contracting, compiled_inline
from rmab.solvers.compiled.optimism import Rows, best_mean, rank

JUMP, NEW = 2, -1  # actions: the third one, and the mark of a policy that is not chosen yet
ROUNDING = 1e-13  # smaller improvements, relative to the values and to UNIT, are ignored
UNIT = 1e-3  # of the cost of a jump: about the largest reward or price
LEAST = 1e-14  # smaller probabilities are rounding errors, and would connect separate classes
FREQUENT = 10.0  # the reference state: no other is visited this many times more often
ROUNDS = 200  # of policy iteration; the certificate shows if they are not enough


@compiled_contracting
def eliminate(
    rows: FloatArray, paid: FloatArray, cost: float, ref: int, work: FloatArray, total: FloatArray, time: FloatArray
) -> tuple[float, int]:
    """Eliminate the states of a policy, rows (S,S), paid (S,): all but ref, which takes the place of state 0 and stays.

    Writes the reward (total) and the time from state k until a state below k, and where that is (work[k,:k]);
    work[k,k] is the probability to leave immediately, or -1 if k had to jump to ref. Returns the best gain of a
    class and one of its states: ref, unless another one is better by more than rounding.
    """
    states = paid.size
    best, better, unit = -np.inf, ref, UNIT * cost
    for i in range(states):
        s = ref if i == 0 else (0 if i == ref else i)
        total[i], time[i] = paid[s], 1.0
        for y in range(states):
            work[i, y] = rows[s, y]
        work[i, 0], work[i, ref] = rows[s, ref], rows[s, 0]
    for k in range(states - 1, 0, -1):
        leaving = 0.0
        for y in range(k):
            leaving += work[k, y]
        stuck = leaving <= 0.0
        if stuck:
            if total[k] / time[k] > best:
                best, better = total[k] / time[k], (0 if k == ref else k)
            total[k], time[k], work[k, 0], leaving = -cost, 1.0, 1.0, 1.0
        total[k] /= leaving
        time[k] /= leaving
        for y in range(k):
            work[k, y] /= leaving
        for i in range(k):
            into = work[i, k]
            if into > 0.0:
                for y in range(k):
                    work[i, y] += into * work[k, y]
                total[i] += into * total[k]
                time[i] += into * time[k]
        work[k, k] = -1.0 if stuck else leaving
    gain = total[0] / time[0]
    if best > gain + ROUNDING * unit:
        return best, better
    return gain, ref


@compiled
def stationary_law(work: FloatArray, law: FloatArray) -> None:
    """Write the law (S,) of the eliminated chain, states in the order of their elimination."""
    law[0] = 1.0
    whole = 1.0
    for k in range(1, law.size):
        mass = 0.0
        for y in range(k):
            mass += law[y] * work[y, k]
        law[k] = mass / abs(work[k, k])
        whole += law[k]
    for k in range(law.size):
        law[k] /= whole


@compiled
def evaluate(
    rows: FloatArray,
    action: IntArray,
    reward: FloatArray,
    price: float,
    charge: FloatArray,
    cost: float,
    ref: int,
    paid: FloatArray,
    work: FloatArray,
    total: FloatArray,
    time: FloatArray,
    law: FloatArray,
    values: FloatArray,
) -> tuple[float, int]:
    """Write law (S,) and values (S,) of a policy; return its gain and the state of its class whose value is 0.

    States that cannot get there jump: action (S,) and rows (S,S) change.
    """
    states = action.size
    for s in range(states):
        paid[s] = -cost if action[s] == JUMP else reward[s, action[s]] - price * charge[s] * action[s]
    gain, found = 0.0, -1
    while found != ref:
        ref = ref if found < 0 else found
        gain, found = eliminate(rows, paid, cost, ref, work, total, time)
        if found == ref:
            stationary_law(work, law)
            often = int(np.argmax(law))
            if law[often] > FREQUENT * law[0]:
                found = 0 if often == ref else often
    values[0] = 0.0
    for k in range(1, states):
        value = total[k] - gain * time[k]
        for y in range(k):
            value += work[k, y] * values[y]
        values[k] = value
        if work[k, k] < 0.0:
            s = 0 if k == ref else k
            action[s] = JUMP
            for y in range(states):
                rows[s, y] = 1.0 if y == ref else 0.0
    values[0], values[ref] = values[ref], values[0]
    law[0], law[ref] = law[ref], law[0]
    return gain, ref


@compiled_inline
def take(rows: Rows, n: int, s: int, a: int, order: IntArray, chosen: FloatArray) -> None:
    """Write into chosen[n,s] the kernel of the box that `best_mean` takes."""
    low, high, spare, _, _ = rows
    rest = spare[n, s, a]
    for i in range(order.size):
        y = order[i]
        more = min(high[n, s, a, y] - low[n, s, a, y], rest)
        chosen[n, s, y] = low[n, s, a, y] + more
        rest = rest - more if rest - more > LEAST else 0.0


@compiled
def best_gains(
    rows: Rows,
    usable: BoolArray,
    reward: FloatArray,
    price: float,
    charge: FloatArray,
    cost: float,
    action: IntArray,
    chosen: FloatArray,
    law: FloatArray,
    values: FloatArray,
    advantage: FloatArray,
    bound: FloatArray,
) -> None:
    """Plan every block separately when activating costs price times charge (C,S), and a jump cost, from the current policy.

    usable (C,S,2), reward (C,S,2). The policy: action (C,S), with NEW in state 0 if there is none, and its kernel, chosen
    (C,S,S). Writes its law (C,S) and values (C,1,S); advantage (C,S), the gain of activating less its price; and bound
    (C,), the largest q(s,a) - values(s), an upper bound on any policy without jumps. It differs from the policy's
    reward only by rounding, unless the policy jumps.
    """
    blocks, states = action.shape
    order, paid, total, time = np.arange(states), np.empty(states), np.empty(states), np.empty(states)
    work, worth = np.empty((states, states)), np.empty(2)
    for n in range(blocks):
        for s in range(states):
            order[s] = s
        fresh, rounds = action[n, 0] == NEW, 0
        gain, ref, unit = 0.0, int(np.argmax(law[n])), UNIT * cost
        if fresh:
            values[n, 0], ref = 0.0, 0
        changed = True
        while changed and rounds < ROUNDS:
            if not fresh:
                gain, ref = evaluate(
                    chosen[n],
                    action[n],
                    reward[n],
                    price,
                    charge[n],
                    cost,
                    ref,
                    paid,
                    work,
                    total,
                    time,
                    law[n],
                    values[n, 0],
                )
            rank(values, n, 0, order)
            changed, bound[n] = fresh, -np.inf
            for s in range(states):
                for a in range(2):
                    worth[a] = -np.inf
                    if usable[n, s, a]:
                        later = best_mean(rows, n, s, a, values, n, 0, order)
                        worth[a] = reward[n, s, a] - price * charge[n, s] * a + later
                advantage[n, s] = worth[1] - worth[0] if usable[n, s].all() else 0.0
                now = values[n, 0, s]
                bound[n] = max(bound[n], worth[0] - now, worth[1] - now)
                least = -np.inf if fresh else now + gain + ROUNDING * (unit + abs(now))
                a = 1 if worth[1] > worth[0] else 0
                jump = values[n, 0, order[0]] - cost
                if jump > max(worth[a], least) or (fresh and not usable[n, s].any()):
                    action[n, s], changed = JUMP, True
                    for y in range(states):
                        chosen[n, s, y] = 1.0 if y == order[0] else 0.0
                elif worth[a] > least:
                    action[n, s], changed = a, True
                    take(rows, n, s, a, order, chosen)
            fresh, rounds = False, rounds + 1
