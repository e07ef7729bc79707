"""Learners by name (`rmab.make_learner("ucmd")`), and components by the option of `ucmd` that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from rmab.common import Entry, Problems, Registry
from rmab.errors import ModelError, raise_as

if TYPE_CHECKING:
    from rmab.learning.base import Learner

XIONG = "Xiong & Li, ICML 2024"
GERMANO = "Germano, Stradi, Genalti, Castiglioni, Marchesi & Gatti, 2023"
ALL = "knows the kernels and the rewards of all episodes"


@dataclass(frozen=True)
class LearnerEntry(Entry):
    """A learner; feedback: what it needs; privileged: what it knows that no real programme does."""

    feedback: str = "bandit"
    privileged: str = ""


def _entry(name: str, summary: str, paper: str = "", target: str = "", **facts: str) -> LearnerEntry:
    """Return an entry; the target of `uc-whittle` is `uc_whittle:UcWhittle` by default."""
    usual = f"{name.replace('-', '_')}:{''.join(word.capitalize() for word in name.split('-'))}"
    return LearnerEntry(name, f"rmab.learning.algorithms.{target or usual}", summary, paper, **facts)


LEARNERS = Registry(
    "learner",
    [
        _entry("ucmd", "recommended; this library's own: forecasts, estimated kernels, plans by budget prices"),
        _entry("ucmd-armab", "Algorithm 2 of Xiong & Li, exactly as published", XIONG),
        _entry("rmab-ucrl", "mean rewards, optimistic kernels, extended LP", "Xiong, Wang & Li, NeurIPS 2022"),
        _entry("restless-ucb", "explore, build one optimistic instance, commit", "Wang, Huang & Lui, NeurIPS 2020"),
        _entry("r2mab-ucb", "extended LP over the steps of an episode", "Xiong, Li & Singh, AAAI 2022"),
        _entry("colored-ucrl2", "UCRL2 on the joint process, small tasks only", "Ortner, Ryabko, Auer & Munos, ALT 2012"),
        _entry("uc-whittle", "Whittle indices of optimistic kernels", "Wang, Xu, Taneja & Tambe, AAAI 2023"),
        _entry("thompson", "the fluid LP of kernels drawn from the posterior", "Jung & Tewari, NeurIPS 2019"),
        _entry("q-whittle", "Whittle indices by Q-learning on two time scales", "Avrachenkov & Borkar, Automatica 2022"),
        _entry("uc-o-reps", "mirror descent on fully revealed losses", "Rosenberg & Mansour, ICML 2019", feedback="full"),
        _entry("shifted-uc-o-reps", "uc-o-reps for bandit feedback", "Rosenberg & Mansour, NeurIPS 2019"),
        _entry("uob-reps", "losses over upper occupancy bounds, mirror descent", "Jin, Jin, Luo, Sra & Yu, ICML 2020"),
        _entry("dilated-po", "policy optimisation with dilated bonuses", "Luo, Wei & Lee, NeurIPS 2021"),
        _entry("ucpd", "budget kept on average, by queues", "Qiu, Wei, Yang, Ye & Wang, NeurIPS 2020", feedback="full"),
        _entry("pdgd-ops", "budget kept on average, by prices", GERMANO, feedback="full"),
        _entry("random", "a random set of arms at every step", target="oracle:RandomLearner"),
        _entry("round-robin", "all arms in turn, B at every step", target="planned:RoundRobin"),
        _entry("myopic", "gain in this and the next reward", target="planned:MyopicLearner", privileged=ALL),
        _entry(
            "whittle",
            "Whittle indices of every step (the planner whittle-finite)",
            target="planned:WhittleLearner",
            privileged=ALL,
        ),
        _entry("lagrangian", "gain at the fluid plan's prices", target="planned:LagrangianLearner", privileged=ALL),
        _entry("planner", "any planner of `rmab planners`", target="planned:PlannerLearner", privileged=ALL),
        _entry("oracle", "fixed index policy of the fluid plan", privileged=ALL),
    ],
    listed_by="rmab learners",
    returns="rmab.learning.base:Learner",
)
COMPONENTS = "rmab.learning.components"
JIN = "Jin, Jin, Luo, Sra & Yu, ICML 2020"


def _components(kind: str, base: str, *entries: Entry) -> Registry[Entry]:
    return Registry(kind, entries, listed_by="rmab learners ucmd", returns=f"{COMPONENTS}.{base}")


CONFIDENCE = _components(
    "confidence",
    "base:ConfidenceSets",
    Entry("estimated", f"{COMPONENTS}.estimated:Estimated", "estimated kernels, without a confidence set"),
    Entry("hoeffding", f"{COMPONENTS}.sets:Hoeffding", "boxes of one width per row", XIONG),
    Entry("bernstein", f"{COMPONENTS}.sets:Bernstein", "boxes that are tighter for rare transitions", JIN),
    Entry("wide-bernstein", f"{COMPONENTS}.sets:WideBernstein", "wider Bernstein boxes", "Luo, Wei & Lee, NeurIPS 2021"),
    Entry("kl", f"{COMPONENTS}.sets:Kl", "boxes by the divergence of Bernoulli variables"),
    Entry("l1", f"{COMPONENTS}.sets:L1", "L1 balls", "Rosenberg & Mansour, ICML 2019"),
    Entry("true", f"{COMPONENTS}.sets:TrueKernels", "the true kernels: privileged"),
)
ESTIMATORS = _components(
    "estimator",
    "base:RewardEstimator",
    Entry("paper", f"{COMPONENTS}.rewards:PaperEstimator", "the paper's estimator, exactly as published", XIONG),
    Entry("direct", f"{COMPONENTS}.rewards:Direct", "the observed value; 1 if there is none"),
    Entry("fading", f"{COMPONENTS}.remembering:Fading", "the mean of the past, plus optimism that fades"),
    Entry("last", f"{COMPONENTS}.remembering:LastSeen", "the last value, plus optimism that grows with its age"),
    Entry("forecast", f"{COMPONENTS}.forecasts:Forecast", "several predictions, weighted by their errors"),
    Entry("implicit", f"{COMPONENTS}.rewards:ImplicitExploration", "implicit exploration over expected visits", JIN),
)
STEPS = _components(
    "step",
    "base:Step",
    Entry("active", f"{COMPONENTS}.steps:Active", "online mirror descent from the last plan", XIONG),
    Entry("lazy", f"{COMPONENTS}.steps:Lazy", "dual averaging from the uniform occupancy"),
    Entry(
        "priced",
        f"{COMPONENTS}.priced:Priced",
        "plan found in the prices of the budget; uses forecasts while they come true",
    ),
)
ROUNDINGS = _components(
    "rounding",
    "execution:Execution",
    Entry("top", f"{COMPONENTS}.execution:TopB", "the arms with the highest shares", XIONG),
    Entry("dependent", f"{COMPONENTS}.execution:DependentRounding", "each arm with the plan's probability"),
)
REFRESHES = _components(
    "refresh",
    "base:Refresh",
    Entry("every-episode", f"{COMPONENTS}.base:EveryEpisode", "new sets before every episode"),
    Entry("doubling", f"{COMPONENTS}.sets:Doubling", "new sets when the count of some pair has doubled"),
)
PROBES = _components(
    "probes", "execution:Probes", Entry("overdue", f"{COMPONENTS}.execution:Probes", "arms that were not observed for long")
)


def list_learners() -> dict[str, str]:
    """List the learners that come with the library.

    Returns
    -------
    dict of str to str
        The name of every learner, with a one-line description.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_learners()["random"]
    'a random set of arms at every step'
    """
    return LEARNERS.summaries()


def make_learner(name: str, **options: object) -> Learner:
    """Build a learner by name.

    Parameters
    ----------
    name : str
        One of `rmab.list_learners()`; or `module:function` for a custom one: a Learner class, or a function that returns a
        learner.
    **options
        As `rmab learners NAME` lists them. A component is an object, a name, or a dictionary with its name and options:
        ``estimator={"name": "mine:Fade", "speed": 0.5}``. Without a name, options of the default component are changed. An
        option that just one of the components has may be given by itself: ``doubt=2`` stands for
        ``estimator={"doubt": 2}``.

    Returns
    -------
    Learner

    Raises
    ------
    ModelError
        If the learner is unknown, or options are wrong; names all of them.

    Examples
    --------
    >>> import rmab
    >>> rmab.make_learner("ucmd-armab", epsilon=0.1)
    UcmdArmab(epsilon=0.1, scale=1.0, rule='fill', rounding='top', zeros='estimated')
    >>> rmab.make_learner("ucmd", estimator="fading", rounding={"rule": "at-most"}).estimator
    Fading()
    """
    if not isinstance(name, str):
        raise ModelError(f"the name of a learner must be text, got {type(name).__name__}")
    taken = LEARNERS.checked_options(name, full_options(name, options))
    with raise_as(ModelError, "" if ":" in name else f"learner {name}: ", learner=name):
        learner: Learner = LEARNERS.call(name, **taken)
    return learner


def option_problems(name: str, options: Mapping[str, object]) -> Problems:
    """Return the options of a learner that are wrong, and why; an empty name for all of them."""
    try:
        found = LEARNERS.problems(name, full_options(name, options))
        if not found:
            make_learner(name, **options)
    except ModelError as error:
        return [("", str(error))]
    return found


def full_options(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return the options, each with its component: `doubt` becomes an option of the estimator, which alone has it."""
    taken, known = dict(options), LEARNERS.schema(name).model_fields
    kinds = component_options(LEARNERS.load(name))
    for option in options.keys() - known.keys() if kinds else ():
        owners = [kind for kind, registry in kinds.items() if option in _options_of(registry, taken.get(kind), known[kind])]
        if len(owners) > 1:
            places = " or ".join(f"{kind}.{option}" for kind in owners)
            raise ModelError(f"learner {name}: {option}: several components have this option; write {places}")
        for kind in owners:
            given = taken.get(kind, {})
            table = {"name": given} if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else None
            if table is not None:
                taken[kind] = {**table, option: taken.pop(option)}
    return taken


def component_options(cls: Any) -> dict[str, Registry[Entry]]:
    """Return the options of a class that are components, with the available ones."""
    known = fields(cls) if is_dataclass(cls) else ()
    return {one.name: one.metadata["registry"] for one in known if "registry" in one.metadata}


def component_names(name: str, options: Mapping[str, object]) -> set[str]:
    """Return the names of the components, and of the planner, in the options of a learner, as given."""
    kinds = {"planner", *component_options(LEARNERS.load(name))} if name in LEARNERS else set()
    given = [options[kind] for kind in kinds & options.keys()]
    names = [one.get("name") if isinstance(one, Mapping) else one for one in given]
    return {one for one in names if isinstance(one, str)}


def _options_of(registry: Registry[Entry], given: Any, field: Any) -> set[str]:
    """Return the options of a component: the one that was given, or the default."""
    from rmab.common import schema

    name = given.get("name") if isinstance(given, Mapping) else given
    try:
        return set((schema(type(field.default)) if name is None else registry.schema(name)).model_fields)
    except (ModelError, TypeError):  # no such component: reported where it is built
        return set()
