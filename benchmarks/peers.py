"""What others would take for an episode of many separate arms: a table out. (`python benchmarks/peers.py [arms ...]`)

Arms have 3 states, episodes 50 steps, and half of the arms can be active. Beside one episode of `ucmd`, planning and
learning, stand:

HiGHS     one fluid LP of the same arms, which is what a learner that plans by an LP solves in every episode;
MABWiser  an episode of UCB1 over the same arms without states: in every step indices of all arms, and learning from half of
          them (`pip install mabwiser`; it is left out where it is not installed).

UCWhittle's code is no package, and is not measured. Seconds are of the processor, all threads counted. A peer that fails, or
takes more than half a minute, is not tried with more arms. The last column extends a power law through its last two sizes.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rmab
from rmab.solvers.fluid.blocks import Blocks
from rmab.solvers.fluid.highs import FluidLp

sys.path.append(str(Path(__file__).parent))

from priced import CONSOLE, table
from ucmd import episodes

SIZES, LONGEST, WISH = (30, 100, 300, 1_000, 3_000), 30.0, 100_000


def ours(task: rmab.Task) -> float:
    """One episode of `ucmd`: plan and learn."""
    return episodes(task, 1)[0]


def linear_program(task: rmab.Task) -> float:
    """One fluid LP of the task's arms, each with rewards of its own."""
    program = FluidLp(Blocks.of(task.problem, task.reward(0)))
    program.highs.setOptionValue("solver", "simplex")  # its interior point method fails on these from some 300 arms on
    return clocked(program.solve)


def wiser(task: rmab.Task) -> float:
    """One episode of UCB1 in MABWiser, after it has seen every arm once."""
    from mabwiser.mab import MAB, LearningPolicy

    rng, count = np.random.default_rng(0), task.problem.arms.count
    player = MAB(list(range(count)), LearningPolicy.UCB1(1.0))
    player.fit(list(range(count)), rng.random(count))

    def episode() -> None:
        for _ in range(task.problem.horizon):
            index = player.predict_expectations()
            chosen = sorted(index, key=index.__getitem__)[-count // 2 :]
            player.partial_fit(chosen, rng.random(len(chosen)))

    return clocked(episode)


def clocked(work: Callable[[], object]) -> float:
    """Return the processor seconds of some work."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def row(player: Callable[[rmab.Task], float], sizes: list[int]) -> list[str]:
    """Return the seconds at every size, and what a power law says of 100,000 arms."""
    taken: dict[int, float] = {}
    for arms in sizes:
        if taken and max(taken.values()) > LONGEST:
            break
        try:
            taken[arms] = player(rmab.make_task("cpap@noisy", arms=arms, budget=arms // 2, episodes=3))
        except rmab.errors.SolverError:
            break
    (one, first), (two, last) = list(taken.items())[-2:]
    power = np.log(last / first) / np.log(two / one)
    wish = f"{last * (WISH / two) ** power:,.0f} (power {power:.2f})"
    return [*(f"{taken[arms]:.3g}" if arms in taken else "-" for arms in sizes), wish]


def main() -> None:
    """Measure everybody who is here."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    players = {"ucmd": ours, "fluid LP in HiGHS": linear_program, "MABWiser, UCB1": wiser}
    rows = table("seconds an episode", "", *(f"{arms:,} arms" for arms in sizes), f"{WISH:,} arms, extended")
    ours(rmab.make_task("cpap@noisy", episodes=3))  # compile
    for name, player in players.items():
        try:
            rows.add_row(name, *row(player, sizes))
        except ModuleNotFoundError as error:
            rows.add_row(name, *["not installed" if error.name == "mabwiser" else str(error)])
    CONSOLE.print(rows)


if __name__ == "__main__":
    main()
