"""Numbers written down: what a seed means. A change of these changes every published number, so it must be meant."""

import numpy as np
import pytest

import rmab
from rmab.common.arrays import FloatArray
from rmab.model.registry import ADVERSARIES
from rmab.play.index_policy import IndexPolicy
from rmab.tasks.deadline import STATES

DIGITS = 1e-10  # exp and sin may differ in the last bits between machines


@pytest.mark.parametrize("family", ["cpap", "cpap-adherence"])
@pytest.mark.parametrize(
    ("seed", "arm", "state", "action", "row"),
    [
        (0, 19, 0, 0, [0.757908088995, 0.0677882890042, 0.174303622]),
        (0, 13, 2, 1, [0.217462021965, 0.0913095412082, 0.691228436826]),
        (7, 19, 0, 0, [0.732777538541, 0.0786739354153, 0.188548526044]),
        (7, 13, 2, 1, [0.0762393312183, 0.0314923421711, 0.892268326611]),
    ],
)
def test_patients(family: str, seed: int, arm: int, state: int, action: int, row: list[float]) -> None:
    kernels = rmab.make_task(family, seed=seed).problem.arms.kernels
    np.testing.assert_allclose(kernels[arm, state, action], row, rtol=DIGITS)


def visits(shape: tuple[int, ...]) -> FloatArray:
    """Return how often each pair was visited, as an adaptive adversary is told."""
    return np.arange(np.prod(shape)).reshape(shape) % 7


# What arms 0, 13 and 19 pay when called in states 0, 1 and 2, in episodes 0, 20 and 49.
CPAP = {
    (0, "ramp"): [[0.5, 1.0, 1.5], [0.908163265306, 1.81632653061, 2.72448979592], [1.5, 3.0, 4.5]],
    (0, "noisy"): [
        [0.557248861962, 2.66071074552, 1.7381609008],
        [0.632134816419, 0.862156538099, 0.741703779789],
        [0.754232891535, 0.730045113651, 2.11269502896],
    ],
    (0, "iid"): [
        [1.01579528546, 2.3454967512, 2.31539927168],
        [1.36356490876, 2.04259594598, 1.95226324386],
        [0.579658506958, 2.88429778343, 2.95272287736],
    ],
    (0, "switching"): [[0.1, 0.2, 4.5], [0.1, 0.2, 4.5], [1.5, 3.0, 0.3]],
    (0, "drifting"): [
        [0.0771090048873, 0.0299024958623, 2.04482753974],
        [0.857090007775, 0.762285160853, 4.31756005135],
        [0.180624314366, 0.00197483361808, 2.60849440311],
    ],
    (0, "alternating"): [[0.1, 0.2, 4.5], [0.1, 0.2, 4.5], [1.5, 3.0, 0.3]],
    (0, "mixed"): [
        [0.0393073440971, 0.0147194633085, 0.0],
        [0.302495292437, 1.24038622317, 4.5],
        [0.00204492175854, 0.113513358453, 0.0],
    ],
    (0, "late"): [[0.0, 0.0, 2.34308754106], [1.5, 3.0, 0.447028533744], [1.5, 3.0, 3.05575122953]],
    (0, "lock"): [[1.5, 0.0, 0.9], [0.0, 3.0, 0.9], [0.0, 3.0, 0.9]],
    (0, "weekly"): [[0.1, 0.2, 0.3], [0.1, 3.0, 0.3], [0.1, 0.2, 0.3]],
    (0, "ninth"): [[0.1, 0.2, 4.5], [0.1, 0.2, 0.3], [0.1, 3.0, 4.5]],
    (0, "weather"): [
        [0.436163365905, 0.926748638457, 1.18158560178],
        [1.09189859764, 2.32003789817, 2.95800097491],
        [0.78950079366, 1.67751086583, 2.1387921208],
    ],
    (0, "adaptive"): [[0.5, 13 / 7, 4.5]] * 3,
    (0, "plan-aware"): [[0.0, 3.0, 4.5], [0.0, 3.0, 4.5], [0.0, 3.0, 4.5]],
    (7, "noisy"): [
        [0.497157901254, 1.76096571515, 1.89701356316],
        [0.410869637352, 2.30087028173, 3.09982308963],
        [0.266507374046, 2.12131215654, 3.0472103163],
    ],
    (7, "switching"): [[0.1, 0.2, 0.3], [1.5, 3.0, 0.3], [1.5, 0.2, 4.5]],
}


@pytest.mark.parametrize(("seed", "against"), CPAP)
def test_what_patients_pay(seed: int, against: str) -> None:
    task = rmab.make_task(f"cpap@{against}", seed=seed)
    rewards = [task.reward(t, visits((20, 3, 2))) for t in (0, 20, 49)]
    np.testing.assert_allclose([r[[0, 13, 19], [0, 1, 2], 1] for r in rewards], CPAP[seed, against], rtol=DIGITS)


# What charging pays in state (5, 3), and what a vehicle costs that leaves from (1, 4), in episodes 0, 37 and 99.
DEADLINE = {
    (0, "ramp"): [[0.25, -1.6], [0.436868686869, -2.79595959596], [0.75, -4.8]],
    (0, "noisy"): [[0.410244289085, -0.910009727193], [0.136044151211, -1.27911403631], [0.16848132172, -0.568169880603]],
    (0, "iid"): [[0.507897642731, -1.16633639301], [0.747600489505, -2.21388689743], [0.5583766981, -4.14299911427]],
    (0, "switching"): [[0.75, -0.32], [0.05, -4.8], [0.05, -0.32]],
    (0, "drifting"): [
        [0.0385545024437, -4.79767024889],
        [0.561417095416, -2.14393454222],
        [0.0619649549843, -4.76551328263],
    ],
    (0, "alternating"): [[0.05, -0.32], [0.75, -4.8], [0.75, -4.8]],
    (0, "mixed"): [[0.748880861244, -4.52058231148], [0.322630968286, -1.14517441905], [0.742304303827, -4.36300001119]],
    (0, "late"): [[0.0, 0.0], [0.0, 0.0], [0.75, -4.8]],
    (0, "lock"): [[0.0, 0.0], [0.75, 0.0], [0.75, -4.8]],
    (0, "weekly"): [[0.05, -4.8], [0.05, -0.32], [0.05, -4.8]],
    (0, "ninth"): [[0.05, -0.32], [0.05, -4.8], [0.05, -0.32]],
    (0, "weather"): [[0.384768118651, -1.82499430096], [0.327484921624, -1.55329427425], [0.451344456298, -2.14077263834]],
    (0, "adaptive"): [[0.500191570881, -4.65185185185]] * 3,
    (0, "plan-aware"): [[0.375287356322, -2.4], [0.375287356322, -2.4], [0.375287356322, -2.4]],
    (7, "noisy"): [[0.162889583958, -0.239330020856], [0.131872749867, -0.750708855014], [0.262599615304, -0.187997621386]],
    (7, "switching"): [[0.75, -4.8], [0.05, -4.8], [0.75, -4.8]],
}


@pytest.mark.parametrize(("seed", "against"), DEADLINE)
def test_what_vehicles_pay(seed: int, against: str) -> None:
    task = rmab.make_task(f"deadline@{against}", seed=seed, arms=2, budget=1)
    rewards = [task.reward(t, visits((2, 120, 2))) for t in (0, 37, 99)]
    pairs = [[r[0, STATES.index((5, 3)), 1], r[1, STATES.index((1, 4)), 0]] for r in rewards]
    np.testing.assert_allclose(pairs, DEADLINE[seed, against], rtol=DIGITS)


def test_every_adversary_is_written_down() -> None:
    for table in (CPAP, DEADLINE):
        assert {against for _, against in table} == set(ADVERSARIES)


@pytest.mark.parametrize(
    ("family", "planner", "active", "last", "reward", "mean"),
    [
        ("cpap", "myopic", "05 01 23 04 01 12 12 01", [2, 2, 2, 2, 0, 0], 30.9795918367, 30.9795918367),
        ("cpap", "random", "05 23 45 34 35 02 25 05", [2, 2, 2, 2, 0, 0], 20.4183673469, 25.4877551020),
        ("cpap-adherence", "myopic", "24 45 45 45 24 24 24 05", [2, 2, 2, 2, 0, 0], 73.2244897959, 77.97),
        (
            "deadline",
            "laxity",
            " 13 13 13 13 34 35 45",
            [22, 46, 46, 2, 2, 12],
            4.20707070707,
            -1.62753535354,
        ),  # at first no car
        ("deadline", "random", "05 23 45 34 35 02 25 05", [21, 46, 44, 5, 2, 11], 1.38232323232, -6.80944444444),
    ],
)
def test_episodes(family: str, planner: str, active: str, last: list[int], reward: float, mean: float) -> None:
    """One word per step: the two arms that are active. Then the last states, the reward, and the mean of 50 rounds."""
    task = rmab.make_task(family, seed=3, arms=6, budget=2, horizon=8)
    problem, pays = task.problem, task.reward(10)
    policy: IndexPolicy = {
        "myopic": lambda: rmab.planners.myopic_index(problem, pays),
        "random": lambda: rmab.planners.random_policy(problem),
        "laxity": lambda: rmab.tasks.deadline.least_laxity_first(problem),
    }[planner]()
    run = rmab.simulate(problem, policy, pays, np.random.default_rng(1))
    assert " ".join("".join(map(str, np.flatnonzero(step))) for step in run.actions) == active
    assert run.states[-1].tolist() == last
    assert run.reward == pytest.approx(reward, rel=DIGITS)
    batch = rmab.simulate_many(problem, policy, pays, np.random.default_rng(1), 50)
    assert batch.mean == pytest.approx(mean, rel=DIGITS)
