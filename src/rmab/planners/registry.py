"""Planners by name: `rmab.make_planner("rolling", window=5)`, and `rmab.list_planners()` lists them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rmab.common import Entry, Registry
from rmab.errors import ModelError

if TYPE_CHECKING:
    from rmab.planners.contract import Planner

HONG = "Hong, Xie, Chen & Wang"
CANDIDATES = (
    "lagrangian",
    "occupancy",
    "whittle",
    "whittle-finite",
    "rolling",
    "stationary",
    "id",
    "ftva",
)  # of `rmab.plan`
PLANNERS = Registry(
    "planner",
    [
        Entry("lagrangian", "rmab.planners.indices:lagrangian_index", "gain of activating at the fluid plan's prices"),
        Entry("occupancy", "rmab.planners.indices:sample_occupancy", "shares of the fluid plan", "Xiong & Li, ICML 2024"),
        Entry("whittle", "rmab.planners.whittle:plan_whittle", "Whittle indices of an infinite horizon", "Whittle, 1988"),
        Entry(
            "whittle-finite", "rmab.planners.whittle:plan_whittle_finite", "Whittle indices of every step", "Whittle, 1988"
        ),
        Entry("rolling", "rmab.planners.rolling:Rolling", "a plan of the next steps, solved again at every step"),
        Entry("lp-update", "rmab.planners.rolling:LpUpdate", "the fluid LP at every step", "Gast, Gaujal & Yan, 2023"),
        Entry("stationary", "rmab.planners.infinite:stationary_index", "an index for an infinite horizon", "Verloop, 2016"),
        Entry(
            "id", "rmab.planners.infinite:IdPolicy", "actions drawn from the plan, in a fixed order of arms", f"{HONG}, 2024"
        ),
        Entry("ftva", "rmab.planners.infinite:Ftva", "arms follow simulated twins without a budget", f"{HONG}, 2023"),
        Entry(
            "set-expansion",
            "rmab.planners.expansion:SetExpansion",
            "a growing set of arms follows the plan, the others yield",
            f"{HONG}, 2024",
        ),
        Entry("myopic", "rmab.planners.indices:myopic_index", "what activating adds to this reward and the next one"),
        Entry("round-robin", "rmab.planners.indices:round_robin", "all arms in turn"),
        Entry("random", "rmab.planners.indices:random_policy", "a random set of arms at every step"),
    ],
    listed_by="rmab planners",
    returns="rmab.play.policy:Policy",
    given=("problem", "reward", "fluid", "average"),
)


def list_planners() -> dict[str, str]:
    """List the planners that come with the library.

    Returns
    -------
    dict of str to str
        The name of every planner, with a one-line description.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_planners()["round-robin"]
    'all arms in turn'
    """
    return PLANNERS.summaries()


def make_planner(name: str, **options: object) -> Planner:
    """Return a planner by name: a function of a problem and a reward that returns a policy.

    Parameters
    ----------
    name : str
        One of `rmab.list_planners()`, or `module:planner` for a custom one: a function of a problem and a reward, or a class
        of policies whose constructor takes them.
    **options
        Keywords of the planner, such as `window` of `rolling`.

    Returns
    -------
    Planner

    Raises
    ------
    ModelError
        If the planner is unknown, or options are wrong; names all of them.

    Examples
    --------
    >>> import rmab
    >>> task = rmab.make_task("cpap", arms=4, budget=2, horizon=5)
    >>> rmab.make_planner("rolling", window=3)(task.problem, task.base_reward)
    Rolling(Problem(Arms(4 arms, 3 states), budget 2, horizon 5), window 3)
    """
    if not isinstance(name, str):
        raise ModelError(f"the name of a planner must be text, got {type(name).__name__}")
    return partial(PLANNERS.load(name), **(PLANNERS.checked_options(name, options) if options else {}))
