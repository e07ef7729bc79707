"""R(MA)^2B-UCB (Xiong, Li and Singh, AAAI 2022): extended LP over the steps of an episode, index from its occupancy.

Versions: `online` solves again before every episode, rewards averaged over all of them; `generator` learns kernels from
samples of every pair, as published (privileged); `explore` puts an exploration of T^(2/3) episodes in the generator's place
and commits to the index that it then finds.

Knowledge: nothing of the kernels; Hoeffding boxes around the empirical ones. Feedback: bandit. Hard budget: the LP's holds
on average; the B highest indices are activated. The index is chi, the share of a state's mass that is active; `weighted` is
chi times the reward of being active, which the paper's name for it suggests (our reading). Theory: kernels and rewards
within delta; tuned: within 0.3 delta (studies/tuning.py, held-out seeds, version `online`; docs/tuning.md).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field

from rmab.common.arrays import FloatArray
from rmab.learning.base import Arrays, Plan, State
from rmab.learning.generator import FromGenerator
from rmab.learning.indexed import ExploreThenCommit, IndexLearner
from rmab.learning.pools import Pools
from rmab.learning.ucrl import ExtendedLearner, ExtendedOptions, finite_plan
from rmab.model.view import View
from rmab.play.policy import IndexPolicy

__all__ = ["R2mabUcb", "R2mabUcbExplore", "R2mabUcbGenerator", "R2mabUcbOptions"]


class R2mabUcbOptions(ExtendedOptions):
    """Options of `r2mab-ucb`."""

    TUNED: ClassVar[Mapping[str, float]] = {"optimism": 0.3}
    version: Literal["online", "generator", "explore"] = Field("online", description="where kernels are known from")
    index: Literal["share", "weighted"] = Field("share", description="chi, or chi times the reward")


class R2mabUcb(ExtendedLearner):
    """The online version: the extended LP before every episode."""

    name: ClassVar[str] = "r2mab-ucb"
    paper: ClassVar[str] = "Xiong, Li & Singh, AAAI 2022"
    settings: R2mabUcbOptions

    def _prepare(self, view: View, pools: Pools, arrays: Arrays, episode: int, seed: int) -> dict[str, NDArray[Any]]:  # noqa: ARG002
        return self._solved(view, pools, arrays, episode)

    def _solved(self, view: View, pools: Pools, arrays: Arrays, episode: int) -> dict[str, NDArray[Any]]:
        kernels, estimate = self._model(view, pools, arrays, episode)
        mass = finite_plan(view, pools, kernels, estimate)
        return {"estimate": estimate, "mass": mass, "table": self._table(pools, mass, estimate)}

    def _table(self, pools: Pools, mass: FloatArray, estimate: FloatArray) -> FloatArray:
        share = pools.index_of(mass)
        return share * estimate[pools.kind_of, :, 1][:, None] if self.settings.index == "weighted" else share

    def _plan(self, state: State) -> Plan:
        policy = IndexPolicy(state.arrays["table"], state.view.budget)
        return Plan(policy, state.arrays["mass"], Pools.of(state.view).block_of)


class R2mabUcbGenerator(FromGenerator, R2mabUcb):
    """As published: kernels from the generator's samples. Ours: 200 per pair; rewards are learned as they come."""

    settings: R2mabUcbOptions


class R2mabUcbExplore(ExploreThenCommit, R2mabUcb):
    """Exploration in the generator's place, then one plan for good."""

    def _exploration(self) -> float:
        return 1.0

    def _commit(self, view: View, pools: Pools, arrays: Arrays, episode: int) -> dict[str, NDArray[Any]]:
        return self._solved(view, pools, arrays, episode)

    def _plan(self, state: State) -> Plan:
        return super()._plan(state) if state.arrays["committed"] else IndexLearner._plan(self, state)
