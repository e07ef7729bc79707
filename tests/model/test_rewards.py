"""Each adversary does what its line says, and knows nothing of the future."""

import numpy as np
import pytest

import rmab
from rmab.errors import ModelError
from rmab.model.adversaries import Scripted, make_adversary
from rmab.model.adversary import Adversary, RewardModel
from rmab.model.answering import Adaptive
from rmab.model.registry import ADVERSARIES
from rmab.model.trace import Trace
from rmab.tasks.deadline import STATES as SPOTS

ARMS, STATES, EPISODES = 8, 2, 100


def model(units: object = None, parts: int = 1) -> RewardModel:
    table = np.zeros((parts, ARMS, STATES, 2))
    table[0, :, :, 1] = [1.0, 2.0]
    if parts == 2:
        table[1, :, 1, 0] = -3.0
    return RewardModel(table, -4.5, 3.0, units)


def made(name: str, seed: int = 0, **options: object) -> Adversary:
    return make_adversary(name, model(**options), EPISODES, np.random.default_rng(seed))  # type: ignore[arg-type]


def factors(name: str) -> np.ndarray:
    """(T, N) factor of each arm, read off the rewards of state 0."""
    return np.stack([made(name).reward(t)[:, 0, 1] for t in range(EPISODES)])


@pytest.mark.parametrize("name", ADVERSARIES)
def test_same_seed_same_rewards_read_only_and_in_range(name: str) -> None:
    one, other = made(name), made(name)
    visits = np.random.default_rng(0).integers(0, 50, (ARMS, STATES, 2))
    for t in (0, 50, 99):
        reward = one.reward(t, visits)
        np.testing.assert_array_equal(reward, other.reward(t, visits))
        assert not reward.flags.writeable
        assert reward.min() >= -4.5
        assert reward.max() <= 3.0


def test_ramp_rises_from_a_half_to_one_and_a_half_on_all_alike() -> None:
    assert (factors("ramp") == np.linspace(0.5, 1.5, EPISODES)[:, np.newaxis]).all()


def test_one_episode_needs_no_ramp() -> None:
    assert make_adversary("ramp", model(), 1, np.random.default_rng(0)).reward(0)[0, 0, 1] == 0.5


def test_noisy_has_a_fixed_quality_with_noise_around_it() -> None:
    quality = factors("noisy").mean(axis=0)
    assert ((quality > 0.05) & (quality < 1.1)).all()
    assert quality.std() > 0.1
    ratio = factors("noisy") / quality
    assert abs(ratio.mean() - 1) < 0.05
    assert ratio.min() > 0.2
    assert ratio.max() < 2.0


def test_noise_spans_its_range_for_each_arm_on_its_own() -> None:
    script = make_adversary("noisy", model(), 1000, np.random.default_rng(0)).factors[:, 0]  # type: ignore[attr-defined]
    span = script.max(axis=0) / script.min(axis=0)
    assert ((span > 5.4) & (span < 1.7 / 0.3)).all()
    assert np.abs(np.corrcoef(script.T) - np.eye(ARMS)).max() < 4 / np.sqrt(1000)
    np.testing.assert_allclose(script.mean(axis=0), script.max(axis=0) / 1.7, rtol=0.06)


def test_what_exceeds_the_range_is_clipped() -> None:
    task = rmab.make_task("cpap@noisy", seed=0)
    most = [task.reward(t).max() for t in range(task.episodes)]
    assert max(most) == 4.5
    np.testing.assert_allclose(model(parts=2).combined(np.full((2, 1, 1, 1), 10.0))[0], [[0, 3.0], [-4.5, 3.0]])


def test_iid_uses_the_whole_span_without_memory() -> None:
    drawn = factors("iid")
    assert drawn.min() < 0.02
    assert drawn.max() > 1.48
    lagged = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    assert abs(lagged) < 4 / np.sqrt(drawn.size)


def test_switching_lets_half_of_the_arms_pay_in_blocks_of_ten() -> None:
    drawn = factors("switching")
    assert set(np.unique(drawn)) == {0.1, 1.5}
    assert ((drawn == 1.5).sum(axis=1) == ARMS // 2).all()
    blocks = drawn.reshape(10, 10, ARMS)
    assert (blocks == blocks[:, :1]).all()
    assert len(np.unique(blocks[:, 0], axis=0)) > 5


def test_a_lone_tariff_switches_by_a_coin_for_each_part() -> None:
    task = rmab.make_task("deadline@switching", arms=2, budget=1, episodes=2500)
    stretches = [task.reward(t)[0] for t in range(0, 2500, 50)]
    pay = np.array([r[SPOTS.index((5, 3)), 1] for r in stretches]) > 0.4  # 0.75 or 0.05
    penalty = np.array([r[SPOTS.index((1, 2)), 0] for r in stretches]) < -0.4  # -1.2 or -0.08
    for often in (pay, penalty, pay == penalty):
        assert abs(often.mean() - 0.5) < 4 * 0.5 / np.sqrt(50)


def test_drifting_is_two_smooth_periods_with_a_phase_per_arm() -> None:
    drawn = factors("drifting")
    np.testing.assert_allclose(drawn[:50], drawn[50:], atol=1e-9)
    assert np.abs(np.diff(drawn, axis=0)).max() < 0.1
    assert drawn.min() >= 0
    assert drawn.max() <= 1.5
    assert len(np.unique(drawn.argmax(axis=0))) > 4


def test_adaptive_lowers_the_pairs_that_were_used_most() -> None:
    visits = np.zeros((ARMS, STATES, 2), dtype=int)
    visits[0, 0] = [0, 10]
    visits[1, 0] = [10, 0]
    visits[2, 0] = [5, 5]
    reward = made("adaptive").reward(3, visits)
    np.testing.assert_allclose(reward[:4, 0, 1], [0.5, 1.5, 1.0, 1.5])
    np.testing.assert_allclose(reward[:, 1, 1], 3.0)  # not visited: full pay


def test_adaptive_tariffs_pool_over_the_unit_and_raise_costs() -> None:
    visits = np.zeros((ARMS, STATES, 2), dtype=int)
    visits[0, 0] = [0, 30]  # arm 0 always active, arm 1 never: the unit used half of its chances to earn the pay
    visits[1, 0] = [30, 0]
    visits[2, 1] = [6, 2]  # state 1: the cost was met in 6 of 8 visits
    reward = made("adaptive", units=np.zeros(ARMS), parts=2).reward(1, visits)
    pay = 1.5 - 32 / 68
    np.testing.assert_allclose(reward[:, 0, 1], pay)
    np.testing.assert_allclose(reward[:, 1, 0], -3 * (0.5 + 6 / 8))


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name not in ("adaptive", "plan-aware")])
def test_oblivious_adversaries_ignore_what_was_done(name: str) -> None:
    visits = np.random.default_rng(0).integers(0, 99, (ARMS, STATES, 2))
    np.testing.assert_array_equal(made(name).reward(5), made(name).reward(5, visits))


@pytest.mark.parametrize("name", ADVERSARIES)
def test_treats_alike_tells_whether_a_group_is_paid_alike(name: str) -> None:
    alone, together = np.arange(ARMS), np.zeros(ARMS, dtype=int)
    assert made(name).treats_alike(alone)
    assert made(name, units=together).treats_alike(together)
    assert made(name).treats_alike(together) == (name == "ramp")


@pytest.mark.parametrize("name", ["ramp", "adaptive"])
def test_arms_with_different_stakes_are_not_alike(name: str) -> None:
    together = np.zeros(ARMS, dtype=int)
    parts = np.ones((1, ARMS, STATES, 2))
    assert make_adversary(name, RewardModel(parts, 0, 3, together), 5, np.random.default_rng(0)).treats_alike(together)
    parts[0, -1, 1, 1] = 2.0
    assert not make_adversary(name, RewardModel(parts, 0, 3, together), 5, np.random.default_rng(0)).treats_alike(together)


def test_a_trace_is_alike_where_its_numbers_are() -> None:
    rewards = np.random.default_rng(0).random((3, 1, 2, 2)).repeat(4, axis=1)
    together = np.zeros(4, dtype=int)
    assert Trace.of(rewards).treats_alike(together)
    rewards[2, 3, 1, 0] += 0.1
    assert not Trace.of(rewards).treats_alike(together)
    assert Trace.of(rewards).treats_alike(np.array([0, 0, 0, 1]))


def test_kinds() -> None:
    assert isinstance(made("adaptive"), Adaptive)
    assert isinstance(made("iid"), Scripted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((1, 2, 2)), 0, 1), r"parts must have shape \(J, N, S, 2\)"),
        ((np.full((1, 2, 2, 2), np.inf), 0, 1), "finite"),
        ((np.zeros((1, 2, 2, 2)), 1, 1), "low < high"),
        ((np.zeros((1, 2, 2, 2)), 0, np.nan), "low < high"),
        ((np.zeros((1, 2, 2, 2)), 0, 1, [0]), "units must be 2 labels"),
        ((np.full((2, 1, 1, 2), 0.75), 0, 1), r"parts: arm 0, state 0, action 0 sum to 1\.5, outside \[0\.0, 1\.0\]"),
        ((np.full((2, 1, 1, 2), -0.75), -1, 1), r"parts: arm 0, state 0, action 0 sum to -1\.5, outside"),
    ],
)
def test_wrong_models_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        RewardModel(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "t", "visits", "message"),
    [
        ("ramp", 100, None, r"episode must be in 0\.\.99, got 100"),
        ("ramp", -1, None, r"episode must be in 0\.\.99, got -1"),
        ("ramp", 0.5, None, r"episode must be a whole number, got 0\.5"),
        ("adaptive", 1, np.zeros((2, 2)), "visits must have shape"),
        ("adaptive", 1, None, "an adaptive adversary needs the visits before episode 1"),
        ("plan-aware", 0, None, "an adversary that foresees needs the visits of rehearsals of episode 0"),
        ("adaptive", 1, np.full((ARMS, STATES, 2), -1), "visits must be whole numbers, 0 or more"),
        ("adaptive", 1, np.full((ARMS, STATES, 2), 0.5), "visits must be whole numbers, 0 or more"),
        ("adaptive", 1, np.full((ARMS, STATES, 2), np.nan), "visits must be whole numbers, 0 or more"),
        ("adaptive", 1, np.full((ARMS, STATES, 2), np.inf), "visits must be whole numbers, 0 or more"),
    ],
)
def test_wrong_episodes_and_visits_are_refused(name: str, t: float, visits: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        made(name).reward(t, visits)  # type: ignore[arg-type]


def test_the_first_episode_needs_no_visits() -> None:
    np.testing.assert_array_equal(made("adaptive").reward(0), made("adaptive").reward(0, np.zeros((ARMS, STATES, 2))))


@pytest.mark.parametrize(
    ("entry", "options", "message"),
    [
        (np.inf, {}, "rewards: episode 1, arm 0, state 1, action 0 is inf"),
        (-np.inf, {"low": 0, "high": 1}, "rewards: episode 1, arm 0, state 1, action 0 is -inf"),
        (np.inf, {"low": 0, "high": np.inf}, "rewards: episode 1, arm 0, state 1, action 0 is inf"),
        (1.0, {"low": 0, "high": np.inf}, r"the range needs low < high, both finite, got \[0, inf\]"),
        (1.0, {"low": -np.inf}, "the range needs low < high, both finite"),
        (0.0, {}, r"the range needs low < high, both finite, got \[0\.0, 0\.0\]; declare it with low= and high="),
        (1.0, {"low": [0, 0], "high": [1, 1]}, "the range needs low < high"),
    ],
)
def test_wrong_traces_are_refused(entry: float, options: dict[str, float], message: str) -> None:
    rewards = np.zeros((2, 2, 2, 2))
    rewards[1, 0, 1, 0] = entry
    with pytest.raises(ModelError, match=message):
        Trace.of(rewards, **options)  # type: ignore[arg-type]
