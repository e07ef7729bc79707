"""Each adversary does what its line says, and knows nothing of the future."""

import numpy as np
import pytest

from rmab.errors import ModelError
from rmab.rewards import ADVERSARIES, Adaptive, Adversary, RewardModel, Scripted, adversary

ARMS, STATES, EPISODES = 8, 2, 100


def model(units: object = None, parts: int = 1) -> RewardModel:
    table = np.zeros((parts, ARMS, STATES, 2))
    table[0, :, :, 1] = [1.0, 2.0]
    if parts == 2:
        table[1, :, 1, 0] = -3.0
    return RewardModel(table, -4.5, 3.0, units)


def made(name: str, seed: int = 0, **options: object) -> Adversary:
    return adversary(name, model(**options), EPISODES, np.random.default_rng(seed))  # type: ignore[arg-type]


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
    assert adversary("ramp", model(), 1, np.random.default_rng(0)).reward(0)[0, 0, 1] == 0.5


def test_noisy_has_a_fixed_quality_with_noise_around_it() -> None:
    quality = factors("noisy").mean(axis=0)
    assert ((quality > 0.05) & (quality < 1.1)).all()
    assert quality.std() > 0.1
    ratio = factors("noisy") / quality
    assert abs(ratio.mean() - 1) < 0.05
    assert ratio.min() > 0.2
    assert ratio.max() < 2.0


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


@pytest.mark.parametrize("name", [name for name in ADVERSARIES if name != "adaptive"])
def test_oblivious_adversaries_ignore_what_was_done(name: str) -> None:
    visits = np.random.default_rng(0).integers(0, 99, (ARMS, STATES, 2))
    np.testing.assert_array_equal(made(name).reward(5), made(name).reward(5, visits))


@pytest.mark.parametrize("name", ADVERSARIES)
def test_treats_alike_tells_whether_a_group_is_paid_alike(name: str) -> None:
    alone, together = np.arange(ARMS), np.zeros(ARMS, dtype=int)
    assert made(name).treats_alike(alone)
    assert made(name, units=together).treats_alike(together)
    assert made(name).treats_alike(together) == (name == "ramp")


def test_kinds() -> None:
    assert isinstance(made("adaptive"), Adaptive)
    assert isinstance(made("iid"), Scripted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((1, 2, 2)), 0, 1), r"parts must have shape \(K, N, S, 2\)"),
        ((np.full((1, 2, 2, 2), np.inf), 0, 1), "finite"),
        ((np.zeros((1, 2, 2, 2)), 1, 1), "low < high"),
        ((np.zeros((1, 2, 2, 2)), 0, np.nan), "low < high"),
        ((np.zeros((1, 2, 2, 2)), 0, 1, [0]), "2 labels are needed"),
    ],
)
def test_wrong_models_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        RewardModel(*arguments)  # type: ignore[arg-type]


def test_episodes_outside_and_visits_of_wrong_shape_are_refused() -> None:
    with pytest.raises(ModelError, match=r"episode must be in 0\.\.99, got 100"):
        made("ramp").reward(100)
    with pytest.raises(ModelError, match="visits must have shape"):
        made("adaptive").reward(1, np.zeros((2, 2)))
