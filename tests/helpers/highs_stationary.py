"""The stationary extended LP as one programme in HiGHS, constraint by constraint: an oracle for `stationary_fluid`."""

import highspy
import numpy as np
from scipy import sparse


def highs_value(low, high, reward, budget, weights, real=None):
    """Return the optimum over z[c,s,a,y] >= 0, weighted, for boxes (C,S,2,S), reward (C,S,2), weights (C,), real (C,S)."""
    blocks, states = low.shape[:2]
    c, s, a, y = np.nonzero(high > 0 if real is None else (high > 0) & real[:, :, np.newaxis, np.newaxis])
    size, column, one = c.size, np.arange(c.size), np.ones(c.size)
    row = np.ravel_multi_index((c, s, a), (blocks, states, 2))
    total = sparse.coo_array((one, (row, column)), shape=(blocks * states * 2, size)).tocsr()
    out = sparse.coo_array((one, (c * states + s, column)), shape=(blocks * states, size))
    into = sparse.coo_array((one, (c * states + y, column)), shape=(blocks * states, size))
    whole = sparse.coo_array((one, (c, column)), shape=(blocks, size))
    spent = sparse.coo_array((weights[c] * a, (np.zeros(size, dtype=int), column)), shape=(1, size))
    within = sparse.eye_array(size) - sparse.diags_array(high[c, s, a, y]) @ total[row]
    beyond = sparse.diags_array(low[c, s, a, y]) @ total[row] - sparse.eye_array(size)
    matrix = sparse.vstack([out - into, whole, spent, within, beyond]).tocsc()
    free = np.full(2 * size + 1, -np.inf)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = size, matrix.shape[0], highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = weights[c] * reward[c, s, a], np.zeros(size), np.full(size, np.inf)
    lp.row_lower_ = np.concatenate([np.zeros(blocks * states), np.ones(blocks), free])
    lp.row_upper_ = np.concatenate([np.zeros(blocks * states), np.ones(blocks), [float(budget)], np.zeros(2 * size)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    highs = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("primal_feasibility_tolerance", 1e-10)):
        assert highs.setOptionValue(option, value) == highspy.HighsStatus.kOk
    assert highs.passModel(lp) != highspy.HighsStatus.kError
    assert highs.run() != highspy.HighsStatus.kError
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return highs.getObjectiveValue()
