"""Groups whose number of actions follows from their own earlier outcomes: weights by the chances take half of the bias."""

import numpy as np
import pytest

import rmab
from rmab.estimation import balance as module
from rmab.logs.log import Log
from rmab.logs.periods import Periods


def make_log(action: np.ndarray, state: np.ndarray, chance: np.ndarray | None, group: np.ndarray) -> Log:
    """A log of tables (N, T) of two states."""
    arm, period = (one.reshape(-1) for one in np.indices(state.shape))
    return Log(
        arms=tuple(f"a{n}" for n in range(len(state))),
        state_names=("bad", "good"),
        periods=Periods("number", 1, 1, state.shape[1], "week"),
        arm_of=arm,
        period=period,
        state=state.reshape(-1),
        action=action.reshape(-1),
        reward=None,
        factors={"site": tuple(f"s{g:03d}" for g in range(int(group.max()) + 1))},
        factor_of=group[:, np.newaxis],
        ordered=True,
        word="call",
        notes=(),
        chance=None if chance is None else chance.reshape(-1),
        listed=None if chance is None else action.reshape(-1),
    )


def adaptive(groups: int, weeks: int, rng: np.random.Generator) -> Log:
    """Calls change nothing; a group whose calls did worse than even so far gets 1 of its 12 arms a week, else 6."""
    group, size = np.repeat(np.arange(groups), 12), 12 * groups
    state = (rng.random((size, weeks + 1)) < 0.5).astype(np.int64)  # the next state is a coin, whatever is done
    action, chance = np.zeros_like(state), np.zeros(state.shape)
    good, calls = np.zeros(groups), np.zeros(groups)
    for t in range(weeks):
        chance[:, t] = np.where(good >= 0.5 * calls, 0.5, 1 / 12)[group]
        action[:, t] = rng.random(size) < chance[:, t]
        calls += np.bincount(group, weights=action[:, t])
        good += np.bincount(group, weights=action[:, t] * state[:, t + 1])
    return make_log(action, state, chance, group)


def test_a_group_that_did_badly_by_chance_is_not_held_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call changes nothing; the plain means of groups say that it harms."""
    fitted = rmab.data.fit(adaptive(300, 8, np.random.default_rng(0)), reward={"good": 1})

    def error() -> float:
        return float(np.nanmean([one.value for one in rmab.data.estimate_effects(fitted, replicates=40)]))

    half = error()
    monkeypatch.setattr(module, "POWER", 0.0)
    plain = error()
    monkeypatch.setattr(module, "POWER", 1.0)
    whole = error()
    assert plain < -0.025
    assert abs(whole) < 0.4 * abs(plain)
    assert (half - plain) / (whole - plain) == pytest.approx(0.5, abs=0.1)


def test_weights_by_hand() -> None:
    """Two weeks before the first list with 3 calls, then weeks in which 1 and 4 calls are expected; all are in one state."""
    chance = np.full((8, 5), np.nan)
    chance[:, 2], chance[:, 3] = 1 / 8, 1 / 2
    action = np.zeros((8, 5), dtype=np.int64)
    action[:2, 0] = action[0, 1] = action[0, 2] = 1
    action[:5, 3] = 1
    state = np.zeros((8, 5), dtype=np.int64)
    state[:, 4] = 1  # so that the log has both states
    fitted = rmab.data.fit(make_log(action, state, chance, np.zeros(8, dtype=np.int64)), reward={"good": 1})
    found = module.balance(fitted)
    moves = fitted.log.transitions
    usual, once, four = 1.5**-0.5, 1.0, 4**-0.5
    total, squares = 3 * usual + once + 5 * four, 3 * usual**2 + once**2 + 5 * four**2
    want = np.array([usual, usual, once, four])[moves.period] * total / squares
    assert np.allclose(found, np.where(moves.action == 1, want, 1.0))
    acted = moves.action == 1
    assert found[acted].sum() == pytest.approx(total**2 / squares)  # as many records would tell as much


def test_a_log_without_chances_is_as_it_is() -> None:
    rng = np.random.default_rng(0)
    fitted = rmab.data.fit(make_log(*(rng.integers(2, size=(20, 9)) for _ in range(2)), None, np.zeros(20, dtype=np.int64)))
    assert (module.balance(fitted) == 1).all()
