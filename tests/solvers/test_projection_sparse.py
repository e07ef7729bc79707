"""Arms with few successors."""

import numpy as np
import pytest

from instances import Instance, faults, random_instance, timed_instance
from rmab.tasks.deadline import kernel as deadline_kernel

pytestmark = pytest.mark.compiled

INSTANCES = {
    "one arm": random_instance(0, (1, 12, 30), support=0.05, weights=[3.0]),
    "one arm, idle and free steps": random_instance(1, (1, 5, 30), support=0.05, budget=[0.2, 0.0, 9.0, 0.1, 0.0]),
    "three arms": random_instance(2, (3, 12, 30), support=0.05, weights=[1.0, 2.0, 0.5]),
    "one of two": random_instance(3, (2, 6, 20), support=0.05),
    "one step": random_instance(4, (1, 1, 20), support=0.05),
    "ball": random_instance(5, (2, 6, 20), support=0.05, radius=0.3),
    "phases": timed_instance(6, (1, 12, 30), 3, support=0.01, weights=[3.0]),
    "phases, idle and free steps": timed_instance(7, (1, 5, 30), 2, support=0.02, budget=[0.2, 0.0, 9.0, 0.1, 0.0]),
    "phases, three arms": timed_instance(8, (3, 12, 30), 3, support=0.01, weights=[1.0, 2.0, 0.5]),
    "phases, ball": timed_instance(9, (2, 6, 30), 2, support=0.02, radius=0.3),
}
full = random_instance(3, (2, 6, 20))
INSTANCES["one of two"] = INSTANCES["one of two"].but(
    low=np.stack([INSTANCES["one of two"].low[0], full.low[1]]),
    high=np.stack([INSTANCES["one of two"].high[0], full.high[1]]),
    reference=np.stack([INSTANCES["one of two"].reference[0], full.reference[1]]),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
def test_answers_are_right(name: str) -> None:
    assert not faults(INSTANCES[name], INSTANCES[name].solve(), most=40)


@pytest.mark.parametrize("seed", range(4))
def test_references_over_200_orders(seed: int) -> None:
    instance = random_instance(seed, (1 + seed % 2, 6, 16), support=0.05)
    powers = np.random.default_rng(seed).uniform(-200, 0, size=instance.reference.shape)
    hard = instance.but(reference=np.where(instance.reference > 0, 10.0**powers, 0.0))
    assert not faults(hard, hard.solve(), most=80)


def test_deadlines_that_are_known() -> None:
    """Wide boxes around the deadline kernel: rows of 1 successor, and of 109."""
    true = deadline_kernel()[None]
    low, high = np.maximum(true - 0.05, 0), np.where(true > 0, np.minimum(true + 0.05, 1), 0)
    table = np.broadcast_to(np.where(true > 0, 0.01, 0.0)[:, None], (1, 15, *true.shape[1:])).copy()
    instance = Instance(table, low, high, [0], 30.0, weights=[100.0])
    assert not faults(instance, instance.solve(), most=30)
