"""`ucmd`, the recommended learner: the paper's skeleton with parts that won (docs/learning.md), each open to exchange."""

from __future__ import annotations

from rmab.learning.algorithms.ucmd_armab import ROUNDING
from rmab.learning.components import (
    DOUBT,
    EPSILON,
    ESTIMATORS,
    EXECUTIONS,
    REFRESHES,
    RULE,
    SETS,
    STEPS,
    TRUST,
    Estimated,
    EveryEpisode,
    Execution,
    Forecast,
    Looks,
    Priced,
    Refresh,
    Rewards,
    Sets,
    Step,
    TopB,
    part,
)
from rmab.learning.mirror_descent import MirrorDescent, Parts
from rmab.learning.options import Configured, configured, option
from rmab.play.policy import Rule


@configured
class Ucmd(MirrorDescent):
    """Parts of your choice. By default: estimated kernels, forecasts, the priced step, top-B, and looks at arms long unseen.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import Direct, Looks, Ucmd
    >>> Ucmd(rewards=Direct(), looks=Looks(every=0)).draws
    False
    """

    name = "ucmd"
    paper = "Xiong & Li, ICML 2024"
    sets: Sets = option(default=Estimated(), help="what the kernels are, or where they may lie")
    rewards: Rewards = option(default=Forecast(), help="what the last episode paid, and what the next is expected to pay")
    step: Step = option(default=Priced(), help="from one plan to the next")
    execute: Execution = option(default=TopB(), help="from a plan to decisions within the budget")
    refresh: Refresh = option(default=EveryEpisode(), help="when the sets are made anew")
    looks: Looks = option(default=Looks(), help="who is activated to be seen")

    @property
    def parts(self) -> Parts:
        """The parts as they were given."""
        return Parts(self.sets, self.rewards, self.step, self.execute, self.refresh, self.looks)


@configured
class NamedUcmd(Configured):
    """The options of `rmab.make_learner("ucmd")`: parts by their names, or yours as module:Class."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    scale: float = option(
        default=1.0, ge=1e-12, le=1e6, help="how greedy: the learning rate, or beta, in units of the rule's"
    )
    rule: Rule = option(default="fill", help=RULE)
    rounding: str = option(default="top", names=EXECUTIONS, help=f"the execution: {ROUNDING}")
    confidence: str = option(default="estimated", names=SETS, help="the kernels, or sets of them")
    estimator: str = option(default="forecast", names=ESTIMATORS, help="the reward estimator")
    step: str = option(default="priced", names=STEPS, help="from one plan to the next")
    refresh: str = option(default="every-episode", names=REFRESHES, help="when the sets are made anew")
    together: bool = option(default=True, help="whether forecasts may take the pairs of an arm to move together")
    doubt: float = option(default=4.0, ge=0, le=1e6, help=DOUBT)
    trust: float = option(default=0.3, ge=0, le=1, help=TRUST)
    looks: float = option(
        default=0.1, ge=0, le=1e6, help="how long an arm may be unseen, as a part of the calm; 0: no looks"
    )

    def make(self) -> Ucmd:
        """Return the learner; ModelError where a part cannot be made."""
        forecast = {"together": self.together, "doubt": self.doubt}
        return Ucmd(
            sets=part("confidence", self.confidence, SETS, Sets, epsilon=self.epsilon),
            rewards=part("estimator", self.estimator, ESTIMATORS, Rewards, epsilon=self.epsilon, **forecast),
            step=part("step", self.step, STEPS, Step, scale=self.scale, trust=self.trust),
            execute=part("rounding", self.rounding, EXECUTIONS, Execution, rule=self.rule),
            refresh=part("refresh", self.refresh, REFRESHES, Refresh),
            looks=Looks(every=self.looks),
        )
