"""The extended LP of endless horizon and average reward (RMAB-UCRL as published), in HiGHS.

Variables z[c,s,a,y] >= 0 with z = mass times a kernel of the box; masses sum to 1 per block and do not change from step to
step; the weighted active mass is at most the budget.
"""

import highspy
import numpy as np
from scipy import sparse

from rmab.arrays import BoolArray, FloatArray
from rmab.errors import SolverError

__all__ = ["stationary_fluid"]


def stationary_fluid(
    low: FloatArray, high: FloatArray, reward: FloatArray, budget: float, weights: FloatArray, real: BoolArray | None = None
) -> FloatArray:
    """Return the optimal masses (C,S,2) for boxes low..high (C,S,2,S), reward (C,S,2) and weights (C,).

    real (C,S): the states that a block has; it may be in no other.
    """
    blocks, states = low.shape[:2]
    c, s, a, y = np.nonzero(high > 0 if real is None else (high > 0) & real[:, :, np.newaxis, np.newaxis])
    size, column = c.size, np.arange(c.size)
    row = np.ravel_multi_index((c, s, a), (blocks, states, 2))
    total = sparse.coo_array((np.ones(size), (row, column)), shape=(blocks * states * 2, size)).tocsr()
    flow = sparse.coo_array((np.ones(size), (c * states + s, column)), shape=(blocks * states, size)) - sparse.coo_array(
        (np.ones(size), (c * states + y, column)), shape=(blocks * states, size)
    )
    whole = sparse.coo_array((np.ones(size), (c, column)), shape=(blocks, size))
    spent = sparse.coo_array((weights[c] * a, (np.zeros(size, dtype=int), column)), shape=(1, size))
    rows, lower, upper = [flow, whole, spent], [np.zeros(blocks * states), np.ones(blocks)], [np.zeros(blocks * states)]
    lower.append(np.array([-np.inf]))
    upper += [np.ones(blocks), np.array([float(budget)])]
    for bound, sign, binds in ((high, 1.0, high[c, s, a, y] < 1), (low, -1.0, low[c, s, a, y] > 0)):
        k = np.flatnonzero(binds)
        limit = sparse.diags_array(bound[c, s, a, y][k]) @ total[row[k]]
        rows.append(sign * (sparse.eye_array(size).tocsr()[k] - limit))
        lower.append(np.full(k.size, -np.inf))
        upper.append(np.zeros(k.size))
    matrix = sparse.vstack([part.tocsr() for part in rows]).tocsc()
    z = _solved(matrix, np.concatenate(lower), np.concatenate(upper), weights[c] * reward[c, s, a])
    mass = np.zeros((blocks, states, 2))
    np.add.at(mass, (c, s, a), np.maximum(z, 0.0))
    # A vertex tells like blocks apart by their order alone: their mean is as good, and fair.
    like = np.concatenate([low.reshape(blocks, -1), high.reshape(blocks, -1), reward.reshape(blocks, -1)], axis=1)
    _, kind = np.unique(np.column_stack([like, weights]), axis=0, return_inverse=True)
    summed = np.zeros((int(kind.max()) + 1, states, 2))
    np.add.at(summed, kind.reshape(-1), mass)
    return np.asarray((summed / np.bincount(kind.reshape(-1))[:, np.newaxis, np.newaxis])[kind.reshape(-1)])


def _solved(matrix: sparse.csc_array, lower: FloatArray, upper: FloatArray, gain: FloatArray) -> FloatArray:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = matrix.shape[1], matrix.shape[0]
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.row_lower_, lp.row_upper_ = gain, lower, upper
    lp.col_lower_, lp.col_upper_ = np.zeros(gain.size), np.full(gain.size, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    highs = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("solver", "ipm" if gain.size > 5000 else "choose")):
        if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
            raise SolverError(f"stationary LP: option {option} = {value} was refused")
    if highs.passModel(lp) == highspy.HighsStatus.kError or highs.run() == highspy.HighsStatus.kError:
        raise SolverError("stationary LP: HiGHS failed")
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"stationary LP: HiGHS ended with {highs.modelStatusToString(status)}")
    return np.asarray(highs.getSolution().col_value)
