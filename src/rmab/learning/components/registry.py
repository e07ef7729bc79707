"""The names of components, by the option of `ucmd` that takes them. Custom ones are `module:Class`."""

from rmab.common import Entry, Registry

HERE = "rmab.learning.components"
XIONG = "Xiong & Li, ICML 2024"
JIN = "Jin, Jin, Luo, Sra & Yu, ICML 2020"


def _registry(kind: str, base: str, *entries: Entry) -> Registry[Entry]:
    return Registry(kind, entries, listed_by="rmab learners ucmd", returns=f"{HERE}.{base}")


CONFIDENCE = _registry(
    "confidence",
    "sets:ConfidenceSets",
    Entry("estimated", f"{HERE}.estimated:Estimated", "the kernels as they are estimated: no set at all"),
    Entry("hoeffding", f"{HERE}.sets:Hoeffding", "boxes of one width per row", XIONG),
    Entry("bernstein", f"{HERE}.sets:Bernstein", "boxes that are tighter for rare transitions", JIN),
    Entry("wide-bernstein", f"{HERE}.sets:WideBernstein", "the same, wider", "Luo, Wei & Lee, NeurIPS 2021"),
    Entry("kl", f"{HERE}.sets:Kl", "boxes by the divergence of Bernoulli variables"),
    Entry("l1", f"{HERE}.sets:L1", "L1 balls", "Rosenberg & Mansour, ICML 2019"),
    Entry("true", f"{HERE}.sets:TrueKernels", "the true kernels: privileged"),
)
ESTIMATORS = _registry(
    "estimator",
    "rewards:RewardEstimator",
    Entry("paper", f"{HERE}.rewards:PaperEstimator", "the paper's estimator to the letter", XIONG),
    Entry("direct", f"{HERE}.rewards:Direct", "the value that was seen; 1 where nothing was"),
    Entry("fading", f"{HERE}.remembering:Fading", "the mean of the past, plus optimism that fades"),
    Entry("last", f"{HERE}.remembering:LastSeen", "the last value, plus optimism that grows with its age"),
    Entry("forecast", f"{HERE}.forecasts:Forecast", "several predictions, weighed by their errors"),
    Entry("implicit", f"{HERE}.rewards:ImplicitExploration", "implicit exploration over expected visits", JIN),
)
STEPS = _registry(
    "step",
    "steps:Step",
    Entry("active", f"{HERE}.steps:Active", "online mirror descent from the last plan", XIONG),
    Entry("lazy", f"{HERE}.steps:Lazy", "dual averaging from the uniform occupancy"),
    Entry("priced", f"{HERE}.priced:Priced", "plans in the prices of the budget, with forecasts as long as they come true"),
)
ROUNDINGS = _registry(
    "rounding",
    "execution:Execution",
    Entry("top", f"{HERE}.execution:TopB", "the arms with the highest shares", XIONG),
    Entry("dependent", f"{HERE}.execution:DependentRounding", "each arm with the plan's probability"),
)
REFRESHES = _registry(
    "refresh",
    "sets:Refresh",
    Entry("every-episode", f"{HERE}.sets:EveryEpisode", "new sets before every episode"),
    Entry("doubling", f"{HERE}.sets:Doubling", "new sets when the count of some pair has doubled"),
)
PROBES = _registry(
    "probes", "execution:Probes", Entry("overdue", f"{HERE}.execution:Probes", "arms whose pay was not seen for long")
)
