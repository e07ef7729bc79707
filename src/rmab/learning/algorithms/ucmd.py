"""`ucmd`, the recommended learner: the paper's skeleton with parts that won (docs/learning.md), each open to exchange."""

from __future__ import annotations

from rmab.learning.algorithms.ucmd_armab import ROUNDING
from rmab.learning.mirror_descent import MirrorDescent, Parts
from rmab.learning.options import Configured, configured, option
from rmab.learning.parts import (
    EPSILON,
    ESTIMATORS,
    EXECUTIONS,
    REFRESHES,
    RULE,
    SETS,
    STEPS,
    EveryEpisode,
    Execution,
    Forecast,
    Kl,
    Lazy,
    Refresh,
    Rewards,
    Sets,
    Step,
    TopB,
    part,
)
from rmab.play.policy import Rule


@configured
class Ucmd(MirrorDescent):
    """Mirror descent with parts of your choice: by default KL sets, forecasts of the rewards, dual averaging, top-B.

    Examples
    --------
    >>> import rmab
    >>> from rmab.learning import Direct, Ucmd
    >>> Ucmd(rewards=Direct()).draws
    False
    """

    name = "ucmd"
    paper = "Xiong & Li, ICML 2024"
    sets: Sets = option(default=Kl(), help="where the kernels may lie")
    rewards: Rewards = option(default=Forecast(), help="what the last episode paid, and what the next is expected to pay")
    step: Step = option(default=Lazy(), help="from one plan to the next")
    execute: Execution = option(default=TopB(), help="from a plan to decisions within the budget")
    refresh: Refresh = option(default=EveryEpisode(), help="when the sets are made anew")

    @property
    def parts(self) -> Parts:
        """The parts as they were given."""
        return Parts(self.sets, self.rewards, self.step, self.execute, self.refresh)


@configured
class NamedUcmd(Configured):
    """The options of `rmab.learner("ucmd")`: parts by their names, or yours as module:Class."""

    epsilon: float = option(default=0.05, ge=1e-12, lt=1, help=EPSILON)
    scale: float = option(
        default=1.0, ge=1e-12, le=1e6, help="how greedy: the learning rate, or beta, in units of the rule's"
    )
    rule: Rule = option(default="fill", help=RULE)
    rounding: str = option(default="top", names=EXECUTIONS, help=f"the execution: {ROUNDING}")
    confidence: str = option(default="kl", names=SETS, help="the transition sets")
    estimator: str = option(default="forecast", names=ESTIMATORS, help="the reward estimator")
    step: str = option(default="lazy", names=STEPS, help="from one plan to the next")
    refresh: str = option(default="every-episode", names=REFRESHES, help="when the sets are made anew")

    def make(self) -> Ucmd:
        """Return the learner; ModelError where a part cannot be made."""
        return Ucmd(
            sets=part("confidence", self.confidence, SETS, Sets, epsilon=self.epsilon),
            rewards=part("estimator", self.estimator, ESTIMATORS, Rewards, epsilon=self.epsilon),
            step=part("step", self.step, STEPS, Step, scale=self.scale),
            execute=part("rounding", self.rounding, EXECUTIONS, Execution, rule=self.rule),
            refresh=part("refresh", self.refresh, REFRESHES, Refresh),
        )
