"""Split: a small problem whose best plan takes a part of each of two like-ranked kinds of arm at the same step.

Two steps, budget 10, and the best plan earns 16: 0.6 of A and 0.4 of B at the first step.

10 arms A: activated in state 0 they go to state 2, where activating pays 1; otherwise to state 1, where nothing pays.
10 arms B: activating in state 0 pays 0.5 at once, and that is all.   4 arms C: they go to state 2, which pays 2.

So the second step has room for 6 of A beside the 4 of C: more of A is of no use, and B is worth 0.5. Top-B ranks the shares
and takes all of A: 14 is then the most. As A and C have index 1 both, ties leave 2 * 4 * 10/14 + 10 * 10/14 = 12.86, however
many copies of the arms there are: Theorem 1 needs dependent rounding here.
"""

import numpy as np

from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed

COUNTS = (10, 10, 4)
BUDGET, HORIZON = 10, 2
RANGE = (0.0, 3.0)


def split() -> Posed:
    """Where top-B keeps its loss: the best plan splits a step between two kinds of arm (Theorem 1)."""
    kind = np.repeat([0, 1, 2], COUNTS)
    kernels, pays = np.zeros((3, 3, 2, 3)), np.zeros((3, 3, 2))
    kernels[:, 1:, :, 1] = 1.0
    kernels[0, 0, 0, 1] = kernels[0, 0, 1, 2] = 1.0
    kernels[1, 0, :, 1] = kernels[2, 0, :, 2] = 1.0
    pays[0, 2, 1], pays[1, 0, 1], pays[2, 2, 1] = 1.0, 0.5, 2.0
    problem = Problem(Arms(kernels[kind], groups=kind), 0, BUDGET, HORIZON)
    return problem, RewardModel(pays[kind][np.newaxis], *RANGE)
