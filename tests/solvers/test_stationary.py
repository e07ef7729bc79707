"""The stationary extended LP: HiGHS, hand-computed chains, and proofs of every answer that believe no solver."""

import numpy as np
import pytest

import rmab
from highs_stationary import highs_value
from rmab.solvers.stationary import stationary
from rmab.solvers.stationary.compiled import gains
from rmab.solvers.stationary.stationary import stationary_fluid

pytestmark = pytest.mark.compiled

WIDTHS = [0.0, 1e-3, 0.05, 0.3, 1.0]


def random_boxes(rng, blocks, states, *, width, support):
    """Boxes around random kernels; a transition is possible with chance support."""
    kernel = rng.dirichlet(np.full(states, rng.choice([0.1, 1.0, 5.0])), size=(blocks, states, 2))
    possible = rng.random(kernel.shape) < support
    np.put_along_axis(possible, rng.integers(states, size=(blocks, states, 2, 1)), True, axis=3)
    kernel = np.where(possible, np.maximum(kernel, 1e-2), 0.0)
    kernel /= kernel.sum(axis=3, keepdims=True)
    reach = width * rng.random((blocks, states, 2, 1))
    low, high = np.maximum(kernel - reach, 0.0), np.minimum(kernel + reach, 1.0)
    return np.where(possible, low, 0.0), np.where(possible, high, 0.0)


def random_case(seed, width, support):
    """Some blocks, some of them alike; rewards of few values (ties) or many; budgets from none to more than all."""
    rng = np.random.default_rng(seed)
    blocks, states = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    low, high = random_boxes(rng, blocks, states, width=width, support=support)
    table = rng.integers(-2, 3, size=(blocks, states, 2)).astype(float)
    reward = rng.random(table.shape) if rng.random() < 0.5 else table
    if rng.random() < 0.3:
        reward[..., 0] = 0.0
    weights = rng.integers(1, 6, size=blocks).astype(float)
    if rng.random() < 0.3:
        low, high, reward = (
            low[:1].repeat(blocks, axis=0),
            high[:1].repeat(blocks, axis=0),
            reward[:1].repeat(blocks, axis=0),
        )
    return low, high, reward, float(rng.choice([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.3]) * weights.sum()), weights


def check_feasible(plan, low, high, budget, weights):
    z, mass = plan.z, plan.mass[..., np.newaxis]
    np.testing.assert_allclose(plan.mass.sum(axis=2), z.sum(axis=(1, 2)), atol=1e-9)
    np.testing.assert_allclose(plan.mass.sum(axis=(1, 2)), 1.0, atol=1e-9)
    assert (z >= 0).all()
    assert (z <= high * mass + 1e-9).all()
    assert (z >= low * mass - 1e-9).all()
    assert weights @ plan.mass[:, :, 1].sum(axis=1) <= budget + 1e-9


class TestAgainstHighs:
    @pytest.mark.slow
    @pytest.mark.parametrize("support", [0.2, 0.5, 1.0])
    @pytest.mark.parametrize("width", WIDTHS)
    def test_value_feasibility_and_order_of_the_blocks(self, width, support):
        for seed in range(30):
            low, high, reward, budget, weights = random_case(seed, width, support)
            plan = stationary_fluid(low, high, reward, budget, weights)
            check_feasible(plan, low, high, budget, weights)
            assert plan.value == pytest.approx((weights[:, None, None] * plan.mass * reward).sum(), abs=1e-9)
            assert plan.value <= plan.bound + 1e-9
            assert plan.gap <= 1e-9
            assert plan.value == pytest.approx(highs_value(low, high, reward, budget, weights), rel=1e-6, abs=1e-6)
            order = np.random.default_rng(seed).permutation(weights.size)
            moved = stationary_fluid(low[order], high[order], reward[order], budget, weights[order])
            np.testing.assert_array_equal(moved.z, plan.z[order])
            np.testing.assert_array_equal(moved.share, plan.share[order])
            assert moved.price == plan.price

    @pytest.mark.parametrize("blocks", [1, 2])
    def test_at_deadline_size_with_few_successors(self, blocks):
        rng = np.random.default_rng(blocks)
        low, high = random_boxes(rng, blocks, 120, width=0.2, support=0.02)
        reward, weights = rng.random((blocks, 120, 2)), np.full(blocks, 50.0)
        reward[..., 0] *= 0.5
        plan = stationary_fluid(low, high, reward, 15.0 * blocks, weights)
        assert plan.price > 0
        check_feasible(plan, low, high, 15.0 * blocks, weights)
        assert plan.value == pytest.approx(highs_value(low, high, reward, 15.0 * blocks, weights), rel=1e-6)

    @pytest.mark.parametrize("seed", range(6))
    def test_padding_is_never_used(self, seed):
        """Blocks of one to four states; what padding would pay is a temptation."""
        rng = np.random.default_rng(seed)
        real = np.arange(4) < rng.integers(1, 5, size=(3, 1))
        low, high, reward = np.zeros((3, 4, 2, 4)), np.zeros((3, 4, 2, 4)), rng.random((3, 4, 2))
        low[:], high[:] = np.eye(4)[:, np.newaxis], np.eye(4)[:, np.newaxis]
        for c in range(3):
            many = int(real[c].sum())
            inside = np.ix_([c], range(many), range(2), range(many))
            low[inside], high[inside] = random_boxes(rng, 1, many, width=0.3, support=1.0)
        reward[~real] = 50.0
        plan = stationary_fluid(low, high, reward, 1.0, np.ones(3), real)
        assert plan.mass[~real].sum() == 0
        assert plan.value == pytest.approx(highs_value(low, high, reward, 1.0, np.ones(3), real), abs=1e-6)


def iterated_bound(low, high, reward, price):
    """Return an upper bound on the gain of one block at a price, by value iteration in NumPy: max over s of (T v - v)(s)."""
    paid, values = reward - price * np.array([0.0, 1.0]), np.zeros(len(reward))
    for _ in range(300):
        order = np.argsort(-values, kind="stable")
        room = (high - low)[..., order]
        before = np.cumsum(room, axis=2) - room
        given = np.clip(1.0 - low.sum(axis=2, keepdims=True) - before, 0.0, room)
        better = (paid + low @ values + given @ values[order]).max(axis=1)
        bound = float((better - values).max())
        values = 0.5 * (values + better) - values[0]
    return bound


def test_dense_boxes_at_deadline_size_by_value_iteration():
    rng = np.random.default_rng(0)
    low, high = random_boxes(rng, 1, 120, width=0.02, support=1.0)
    reward = rng.random((1, 120, 2)) * [0.5, 1.0]
    plan = stationary_fluid(low, high, reward, 30.0, np.array([100.0]))
    check_feasible(plan, low, high, 30.0, np.array([100.0]))
    bound = 100.0 * iterated_bound(low[0], high[0], reward[0], plan.price) + 30.0 * plan.price
    assert plan.value == pytest.approx(bound, rel=1e-9)
    assert plan.mass[0, :, 1].sum() == pytest.approx(0.3, abs=1e-12)


class TestByHand:
    def chain(self, *moves):
        """Known moves: kernel (1,S,2,S) from the next state of every pair, both actions alike."""
        return np.eye(len(moves))[list(moves)][np.newaxis, :, np.newaxis].repeat(2, axis=2)

    def test_a_periodic_cycle(self):
        """0 -> 1 -> 2 -> 0; active pays 3 in state 1 and 1 elsewhere: mass 1/3 each, all of the budget to state 1."""
        kernel = self.chain(1, 2, 0)
        reward = np.array([[[0.0, 1.0], [0.0, 3.0], [0.0, 1.0]]])
        plan = stationary_fluid(kernel, kernel, reward, 1.0, np.array([3.0]))
        np.testing.assert_allclose(plan.mass[0], [[1 / 3, 0], [0, 1 / 3], [1 / 3, 0]], atol=1e-12)
        assert plan.value == pytest.approx(3.0)
        tight = stationary_fluid(kernel, kernel, reward, 2.0, np.array([3.0]))
        assert tight.value == pytest.approx(4.0)
        assert tight.price == pytest.approx(1.0)
        np.testing.assert_allclose(tight.share[0], [0.5, 1.0, 0.5], atol=1e-12)

    def test_the_best_of_several_classes(self):
        """States 0 and 1 are traps that pay 0 and 2, state 2 leads to 0: all mass in 1, whatever the start."""
        kernel = self.chain(0, 1, 0)
        reward = np.array([[[0.0, 0.5], [2.0, 0.0], [9.0, 9.0]]])
        plan = stationary_fluid(kernel, kernel, reward, 1.0, np.ones(1))
        np.testing.assert_allclose(plan.mass[0], [[0, 0], [1, 0], [0, 0]])
        np.testing.assert_array_equal(plan.share[0], [1.0, 0.0, 0.0])  # in the poor trap, activating is still worth it
        assert plan.value == pytest.approx(2.0)
        assert plan.price == 0.0

    def test_a_class_that_is_left_one_time_in_ten_thousand(self):
        """Jumps back would be worth their first cost: 1 per step for 10000 steps. In the model proper, only 0 lasts."""
        kernel = np.zeros((1, 2, 2, 2))
        kernel[0, 0] = [1.0, 0.0]
        kernel[0, 1] = [1e-4, 1 - 1e-4]
        plan = stationary_fluid(kernel, kernel, np.array([[[0.0, 0.0], [1.0, 1.0]]]), 1.0, np.ones(1))
        assert plan.value == pytest.approx(0.0, abs=1e-9)
        np.testing.assert_allclose(plan.mass[0, 0].sum(), 1.0)

    def test_tied_blocks_share_the_budget(self):
        """Three like arms, one unit of budget, worth 1 to each: a third each; nothing where it is worth less."""
        kernel = self.chain(0).repeat(4, axis=0)
        reward = np.array([[[0.0, 1.0]], [[0.0, 0.5]], [[0.0, 1.0]], [[0.0, 1.0]]])
        plan = stationary_fluid(kernel, kernel, reward, 1.0, np.ones(4))
        np.testing.assert_allclose(plan.share[:, 0], [1 / 3, 0, 1 / 3, 1 / 3], atol=1e-12)
        assert plan.price == pytest.approx(1.0)

    @pytest.mark.parametrize(("budget", "value", "price"), [(0.0, 0.0, 1.0), (2.0, 2.0, 0.0), (5.0, 2.0, 0.0)])
    def test_nothing_and_everything_to_spend(self, budget, value, price):
        kernel = self.chain(0)
        plan = stationary_fluid(kernel, kernel, np.array([[[0.0, 1.0]]]), budget, np.array([2.0]))
        assert (plan.value, plan.price) == pytest.approx((value, price))

    def test_nothing_to_choose(self):
        plan = stationary_fluid(np.zeros((1, 3, 2, 3)), np.ones((1, 3, 2, 3)), np.ones((1, 3, 2)), 4.0, np.array([9.0]))
        assert (plan.value, plan.price) == (9.0, 0.0)
        assert stationary_fluid(self.chain(0), self.chain(0), np.zeros((1, 1, 2)), 0.0, np.ones(1)).gap == 0.0

    def test_a_pair_without_kernels_is_not_used(self):
        """State 0 cannot be passive, state 1 cannot be active: with half the budget, half the time in each."""
        low, high = np.zeros((1, 2, 2, 2)), np.ones((1, 2, 2, 2))
        high[0, 0, 0] = high[0, 1, 1] = 0.3
        reward = np.array([[[7.0, 1.0], [0.0, 7.0]]])
        plan = stationary_fluid(low, high, reward, 0.5, np.ones(1))
        np.testing.assert_allclose(plan.mass[0], [[0, 0.5], [0.5, 0]], atol=1e-12)

    def test_a_rest_of_rounding_is_no_way_out(self):
        """Boxes of a run where 1 - 0.895... - 0.104... = 5.6e-17 went to a state that could not be reached otherwise."""
        low = np.zeros((1, 3, 2, 3))
        low[0, :, :, 2] = [
            [0.4290463453032094, 0.4725460636932628],
            [0.12893849252952239] * 2,
            [0.8653755645444069, 0.8960231838330648],
        ]
        high = np.ones((1, 3, 2, 3))
        high[0, ..., :2] = [
            [[0.5709536546967906, 0.536470896076101], [0.5274539363067372] * 2],
            [[0.8710615074704776] * 2] * 2,
            [[0.1125582368598057, 0.11356124588688694], [0.10397681616693516] * 2],
        ]
        reward = np.array([[[0.6614763237484153, 0.6677797246111716], [1.0, 1.0], [0.4687413562217689, 0.4914590739243613]]])
        plan = stationary_fluid(low, high, reward, 99.0, np.ones(1))
        assert plan.value == pytest.approx(highs_value(low, high, reward, 99.0, np.ones(1)), abs=1e-8)


class TestErrors:
    def test_every_plan_uses_more_than_the_budget(self):
        low, high = np.zeros((1, 1, 2, 1)), np.ones((1, 1, 2, 1))
        high[0, 0, 0] = 0.0
        with pytest.raises(rmab.errors.SolverError, match="every plan uses 3 or more, but the budget is 1"):
            stationary_fluid(low, high, np.ones((1, 1, 2)), 1.0, np.array([3.0]))

    def test_nowhere_to_stay(self):
        with pytest.raises(rmab.errors.SolverError, match="block 1 has no recurrent states"):
            stationary_fluid(
                np.zeros((2, 2, 2, 2)),
                np.array([1.0, 0.0])[:, None, None, None] * np.ones((2, 2, 2, 2)),
                np.ones((2, 2, 2)),
                1.0,
                np.ones(2),
            )

    def test_a_wrong_answer_is_refused(self, monkeypatch):
        low, high, reward, budget, weights = random_case(3, 0.05, 1.0)
        whole = stationary.best_gains

        def lazy(*arguments):
            whole(*arguments)
            arguments[-1][:] += 0.01  # the bound

        def leaky(*arguments):
            whole(*arguments)
            arguments[-4][:] += 1e-6  # the law

        for wrong, line in ((lazy, "the certified gap is"), (leaky, "the plan violates a constraint by")):
            monkeypatch.setattr(stationary, "best_gains", wrong)
            with pytest.raises(rmab.errors.SolverError, match=line):
                stationary_fluid(low, high, reward, budget, weights)


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_s_law_and_values(seed):
    """Evaluation by elimination against linear algebra, on a chain with two classes: the poorer one jumps."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((6, 6))
    rows[:3, :3], rows[3:5, 3:5], rows[5] = rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(2), 2), 1 / 6
    reward = rng.random((6, 2))
    reward[3:5, 0] += 1.0
    action, law, values = np.zeros(6, dtype=int), np.zeros(6), np.zeros(6)
    spare = np.zeros(6), np.zeros((6, 6)), np.zeros(6), np.zeros(6)
    gain, ref = gains.evaluate(rows, action, reward, 0.0, np.ones(6), 1e3, 0, *spare, law, values)
    assert ref in (3, 4)
    assert (action == gains.JUMP).sum() == 1
    assert np.flatnonzero(action == gains.JUMP) < 3
    paid = np.where(action == gains.JUMP, -1e3, reward[:, 0])
    np.testing.assert_allclose(law @ rows, law, atol=1e-14)
    assert law.sum() == pytest.approx(1.0)
    assert gain == pytest.approx(law @ paid)
    np.testing.assert_allclose(values + gain, paid + rows @ values, atol=1e-9)
    assert values[ref] == 0.0
