"""Options of components and learners: keywords that are checked, with their defaults and limits, and names."""

import math
import re
from typing import Any

import numpy as np
import pytest

import rmab
from episodes import view_of
from rmab.errors import ModelError
from rmab.learning import (
    L1,
    Active,
    Bernstein,
    Component,
    DependentRounding,
    Direct,
    Hoeffding,
    ImplicitExploration,
    Kl,
    Lazy,
    PaperEstimator,
    Refresh,
    RewardEstimate,
    RewardEstimator,
    TopB,
    Ucmd,
    WideBernstein,
    configured,
    option,
)
from rmab.learning.components import Centred, ConfidenceSets, Exploration
from rmab.learning.options import Preset
from rmab.learning.pools import Pools
from rmab.solvers import TransitionSets
from rmab.testing import check_rewards

TINY = 5e-324  # the smallest number above 0
LEAST, LESS = 1e-12, math.nextafter(1e-12, 0.0)  # of options that are above 0
BELOW_ONE = 1 - 2.0**-53
CHANCE = (0.05, [LEAST, 0.5, BELOW_ONE], [0.0, LESS, 1.0])
FACTOR = (1.0, [LEAST, 1e6], [0.0, LESS, math.nextafter(1e6, 2e6)])
OPTIONS: list[tuple[type[Component], str, tuple[float, list[float], list[float]]]] = [
    *[
        (cls, "epsilon", CHANCE)
        for cls in (Hoeffding, Bernstein, WideBernstein, Kl, L1, PaperEstimator, ImplicitExploration)
    ],
    (Hoeffding, "scale", (1.0, [0.0, 100.0], [-TINY, math.nextafter(100.0, 200.0)])),
    *[(cls, "scale", FACTOR) for cls in (Active, Centred, Lazy)],
    (Exploration, "scale", (1.0, [LEAST, 100.0], [0.0, LESS, math.nextafter(100.0, 200.0)])),
]


@pytest.mark.parametrize(("cls", "name", "values"), OPTIONS)
def test_defaults_and_limits(cls: type[Component], name: str, values: tuple[float, list[float], list[float]]) -> None:
    default, allowed, refused = values
    assert cls().options[name] == default
    for value in allowed:
        assert cls(**{name: value}).options[name] == value
    for value in refused:
        with pytest.raises(ModelError, match=f"^{cls.__name__}: {name}: Input should be "):
            cls(**{name: value})


@pytest.mark.parametrize("cls", [TopB, DependentRounding])
def test_executions_fill_the_budget_unless_told_otherwise(cls: type[TopB]) -> None:
    pools, share = Pools.of(view_of(3, 2, budget=2)), np.full((3, 3, 2), 0.5)
    rounding = "top" if cls is TopB else "dependent"
    for made, rule in ((cls(), "fill"), (cls(rule="at-most"), "at-most")):
        policy: Any = made.policy(pools, share)
        assert (policy.budget, policy.rule, policy.rounding) == (2, rule, rounding)
        np.testing.assert_array_equal(policy.table, 0.5)


def test_components_by_name_object_or_table_are_the_same() -> None:
    learners = [
        rmab.make_learner("ucmd", confidence="hoeffding"),
        rmab.make_learner("ucmd", confidence={"name": "hoeffding"}),
        rmab.make_learner("ucmd", confidence=Hoeffding()),
        Ucmd(confidence="hoeffding"),  # type: ignore[arg-type]
        Ucmd(confidence=Hoeffding()),
    ]
    assert len({one.signature for one in learners}) == 1
    made: Any = rmab.make_learner("ucmd", confidence={"name": "hoeffding", "epsilon": 0.2, "scale": 3.0})
    assert made.confidence.options == {"epsilon": 0.2, "scale": 3.0}
    changed: Any = rmab.make_learner("ucmd", estimator={"doubt": 2, "together": False}, rounding="dependent")
    assert (changed.estimator.doubt, changed.estimator.together) == (2.0, False)
    assert type(changed.rounding) is DependentRounding


def test_an_option_of_one_component_may_stand_by_itself() -> None:
    made: Any = rmab.make_learner("ucmd", doubt=2, trust=0.0, rule="at-most", rounding="dependent", every=0)
    assert (made.estimator.doubt, made.step.trust, made.rounding.rule, made.probes.every) == (2.0, 0.0, "at-most", 0.0)
    with pytest.raises(ModelError, match=r"epsilon: several components have this option; write confidence"):
        rmab.make_learner("ucmd", confidence="kl", estimator="paper", epsilon=0.2)
    with pytest.raises(
        ModelError, match=r"^learner ucmd: epsilon: no such option. Available: confidence, estimator, step, "
    ):
        rmab.make_learner("ucmd", epsilon=0.2)


class Asked(Hoeffding):
    """Has the options of its base."""


class Everything(ConfidenceSets):
    """Has no options, and is told none."""

    def around(self, pools: Pools, counts: Any, episode: int) -> TransitionSets:
        return TransitionSets.boxes(np.zeros(counts.shape), pools.support)


def test_custom_components_by_name() -> None:
    learner: Any = rmab.make_learner("ucmd", confidence=f"{__name__}:Everything")
    assert type(learner.components.confidence) is Everything
    asked: Any = rmab.make_learner("ucmd", confidence={"name": f"{__name__}:Asked", "epsilon": 0.2})
    assert (type(asked.confidence), asked.confidence.epsilon) == (Asked, 0.2)
    with pytest.raises(ModelError, match=r"confidence .*:Tunable: rejected: a class of .* derives from ConfidenceSets"):
        rmab.make_learner("ucmd", confidence=f"{__name__}:Tunable")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": "hop"}, "learner ucmd: step: unknown step 'hop'. `rmab learners ucmd` lists them (got 'hop')"),
        ({"step": 3}, "learner ucmd: step: Input should be Step, its name, or a table of its name and options (got 3)"),
        ({"estimator": {"doubt": -1}}, "learner ucmd: estimator.doubt: Input should be greater than or equal to 0 (got -1)"),
        ({"estimator": {"name": "fading", "speed": 1}}, "learner ucmd: estimator.speed: no such option (got 1)"),
        ({"estimator": {"name": 3}}, "learner ucmd: estimator: Input should be RewardEstimator, its name, or a table"),
    ],
)
def test_what_is_wrong_with_a_component_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=f"^{re.escape(message)}"):
        rmab.make_learner("ucmd", **options)


def test_a_wrong_option_gets_those_that_there_are_and_the_command_that_lists_them() -> None:
    with pytest.raises(
        ModelError, match=r"^learner ucmd-armab: rate: no such option. Available: epsilon, scale, rule, "
    ) as caught:
        rmab.make_learner("ucmd-armab", rate=1)
    assert str(caught.value).endswith("(got 1); `rmab learners ucmd-armab` lists the options")
    with pytest.raises(ModelError, match=r"^learner random: rate: no such option \(got 1\); `rmab learners random` lists"):
        rmab.make_learner("random", rate=1)


def test_values_are_kept_as_the_type_that_was_declared() -> None:
    assert repr(Hoeffding(epsilon=0.25, scale=2)) == "Hoeffding(epsilon=0.25, scale=2.0)"
    for wrong in ("0.25", True):
        with pytest.raises(ModelError, match=r"^Hoeffding: epsilon: Input should be a number \(got "):
            Hoeffding(epsilon=wrong)  # type: ignore[arg-type]


@configured
class Tunable(Component):
    """Two parameters, one of which was tuned."""

    TUNED = {"rate": 8.0}
    preset: Preset = option(default="theory", help="theory or tuned")
    rate: float | None = option(default=None, help="of learning")
    bonus: float | None = option(default=None, help="for what is unknown")


def test_presets_by_hand() -> None:
    assert (Tunable().parameter("rate"), Tunable().parameter("bonus")) == (1.0, 1.0)
    assert (Tunable(preset="tuned").parameter("rate"), Tunable(preset="tuned").parameter("bonus")) == (8.0, 1.0)
    assert (Tunable(preset="tuned", rate=0.0).parameter("rate"), Tunable(bonus=3.0).parameter("bonus")) == (0.0, 3.0)


@configured
class Mine(RewardEstimator):
    """An estimator with options."""

    memory: int = option(default=10, ge=1, help="episodes that count")

    def learn(self, memory, episode):
        return RewardEstimate(np.full(episode.pools.zero.shape, 1 / self.memory))


def test_options_are_keywords_that_are_checked():
    assert repr(Mine(memory=3)) == "Mine(memory=3)"
    assert Mine().options == {"memory": 10}
    with pytest.raises(ModelError, match=r"^Mine: memory: Input should be greater than or equal to 1 \(got 0\)$"):
        Mine(memory=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'age'"):
        Mine(age=3)
    with pytest.raises(AttributeError, match="cannot assign to field"):
        Mine().memory = 4
    check_rewards(Mine())


def test_help_lists_the_options():
    assert "memory : int, default 10\n    Episodes that count (at least 1)." in Mine.__doc__
    assert str(__import__("inspect").signature(Mine)) == "(*, memory: int = 10) -> None"


def test_a_learner_takes_parts_of_the_right_kind_only():
    with pytest.raises(
        ModelError, match=r"^Ucmd: confidence: Input should be ConfidenceSets, its name, .* \(got Direct\(\)\)$"
    ):
        Ucmd(confidence=Direct())
    assert issubclass(Refresh, object)


def test_states_of_other_parts_are_refused():
    import rmab

    view = rmab.make_task("cpap", arms=2, budget=1, horizon=2).view()
    state = Ucmd(estimator=Mine(memory=2)).begin(view)
    assert state.learner.startswith("ucmd ")
    assert "test_options.Mine(memory=2)" in state.learner
    with pytest.raises(ModelError, match="this state belongs to ucmd"):
        Ucmd(estimator=Mine(memory=3)).plan(state)


@pytest.mark.parametrize(("name", "options"), [("ucpd", {"alpha": 1e-12}), ("dilated-po", {"gamma": 1e-12, "rate": 1e-12})])
@pytest.mark.filterwarnings("error")
def test_the_smallest_legal_options_run(name: str, options: dict[str, float]) -> None:
    run = rmab.run(rmab.make_task("cpap", arms=4, budget=2, horizon=5, episodes=4), rmab.make_learner(name, **options))
    assert np.isfinite(run.reward).all()
    wrong = dict.fromkeys(options, 1e-320)
    with pytest.raises(rmab.errors.ModelError, match=rf"learner {name}: .*greater than or equal to 0\.000000000001"):
        rmab.make_learner(name, **wrong)
