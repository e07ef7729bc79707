"""What a first run compiles: a list, so that it does not grow unseen. (Times are in benchmarks/startup.py.)"""

import json
import subprocess
import sys
from collections.abc import Callable

import numba
import numpy as np
import pytest

from rmab.common.machine_code import Dispatcher, InnerFunction

FIRST = [
    "learning.compiled.changes.fit_priors",
    "learning.compiled.changes.judge_common",
    "learning.compiled.changes.mix",
    "learning.compiled.changes.pool_groups",
    "learning.compiled.changes.take_in",
    "learning.compiled.changes.weigh_changes",
    "learning.compiled.forecasting.look_ahead",
    "learning.compiled.forecasting.take_in",
    "learning.compiled.observing.led_to",
    "learning.compiled.observing.pool",
    "learning.compiled.observing.show",
    "learning.compiled.patterns.add_others",
    "learning.compiled.patterns.add_patterns",
    "learning.compiled.patterns.check_patterns",
    "play.compiled.episodes.index_episodes",
    "solvers.compiled.dynamics.backward",
    "solvers.compiled.dynamics.forward",
    "solvers.compiled.linear.solve_each",
    "solvers.compiled.optimism.best_values",
    "solvers.fluid.compiled.sensitivity.curve",
    "solvers.fluid.compiled.soft.follow",
    "solvers.fluid.compiled.soft.soft_values",
    "solvers.priced.compiled.curvature.curve",
    "solvers.priced.compiled.passes.evaluate",
    "solvers.priced.compiled.passes.tally",
    "solvers.priced.compiled.program.lay_out",
    "solvers.priced.compiled.program.mark",
    "solvers.priced.compiled.program.pack",
    "solvers.priced.compiled.program.reach",
    "solvers.priced.compiled.quadratic.learn",
    "solvers.priced.compiled.steps.judge",
    "solvers.priced.compiled.steps.propose",
    "solvers.priced.compiled.steps.standing",
]


# A task of the usual size: small problems are solved without compiled code.
RUN = """
import contextlib, json, sys
from rmab.cli import main
from rmab.common.machine_code import Dispatcher, InnerFunction

with contextlib.suppress(SystemExit):
    main(["run", "cpap", "ucmd", "--episodes", "2"])
modules = [module for name, module in sys.modules.items() if name.startswith("rmab.") and ".compiled." in name]
compiled = {one for module in modules for one in vars(module).values() if isinstance(one, Dispatcher)}
full = lambda one: [made for made in one.overloads.values() if not isinstance(made.entry_point, InnerFunction)]
json.dump({f"{one.__module__}.{one.__name__}": len(full(one)) for one in compiled if full(one)}, sys.stderr)
"""


@pytest.mark.slow
def test_a_first_run_compiles_what_it_uses_once_and_nothing_else() -> None:
    """What has machine code after the run: compiled by it, or by an earlier one and loaded from the store."""
    done = subprocess.run([sys.executable, "-c", RUN], check=True, capture_output=True, text=True)
    made = {name.removeprefix("rmab."): count for name, count in json.loads(done.stderr.splitlines()[-1]).items()}
    assert set(made) <= set(FIRST), "new: is it needed before the first result?"
    assert set(made) == set(FIRST), "no longer compiled: take it from the list"
    assert max(made.values()) == 1, "compiled for arrays of several kinds: see rmab.common.arrays.sealed"


def kernel(function: Callable[..., float]) -> Dispatcher:
    """Compile without a store: what it keeps goes by name, and these may change."""
    return Dispatcher(function, targetoptions=numba.njit(function).targetoptions)


def test_what_compiled_code_calls_has_no_machine_code_until_python_calls_it_too() -> None:
    times = kernel(lambda x, count: count * x)
    outer = kernel(lambda x: times(x[0], 2) + times(x[0], x.size))
    assert outer(np.array([3.0])) == 9.0
    (inner,) = times.overloads.values()  # 2, and a number that is not known beforehand, are one kind
    assert isinstance(inner.entry_point, InnerFunction)
    assert times(1.5, 2) == 3.0
    (full,) = times.overloads.values()
    assert not isinstance(full.entry_point, InnerFunction)
    assert outer(np.array([5.0])) == 15.0
    again = kernel(lambda x: times(x[0], x.size) - 1.0)  # which links what there is in full
    assert again(np.array([5.0])) == 4.0
    assert list(times.overloads.values()) == [full]
