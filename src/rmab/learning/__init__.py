"""Learners by name, with their options: `rmab.learner("ucmd")`, and `rmab.learners()` lists them."""

from collections.abc import Callable
from importlib import import_module

from pydantic import BaseModel, ConfigDict, ValidationError

from rmab.errors import ModelError
from rmab.learning.base import Learner
from rmab.learning.colored_ucrl2 import ColoredUcrl2, ColoredUcrl2Options
from rmab.learning.descent import MirrorDescent, UcmdArmabOptions, UcmdOptions
from rmab.learning.dilated_po import DilatedPo, DilatedPoOptions
from rmab.learning.oracle import Chance, Oracle, OracleOptions
from rmab.learning.pdgd_ops import PdgdOps, PdgdOpsOptions
from rmab.learning.q_whittle import QWhittle, QWhittleOptions
from rmab.learning.r2mab_ucb import R2mabUcb, R2mabUcbExplore, R2mabUcbGenerator, R2mabUcbOptions
from rmab.learning.restless_ucb import RestlessUcb, RestlessUcbOptions
from rmab.learning.shifted_uc_o_reps import ShiftedUcOReps, ShiftedUcORepsOptions
from rmab.learning.thompson import Thompson, ThompsonOptions
from rmab.learning.uc_o_reps import UcOReps, UcORepsOptions
from rmab.learning.uc_whittle import UcWhittle, UcWhittleOptions
from rmab.learning.ucpd import Ucpd, UcpdOptions
from rmab.learning.ucrl import RmabUcrl, RmabUcrlGenerator, RmabUcrlOptions
from rmab.learning.uob_reps import UobReps, UobRepsOptions

__all__ = ["LEARNERS", "learner", "learners"]


class NoOptions(BaseModel):
    """A learner without options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


R2MAB_UCB = {"online": R2mabUcb, "generator": R2mabUcbGenerator, "explore": R2mabUcbExplore}
Entry = tuple[str, type[BaseModel], Callable[..., Learner]]
LEARNERS: dict[str, Entry] = {
    "ucmd": (
        "recommended: forecasts of the rewards, confidence sets by KL, dual averaging at a heat of its own finding",
        UcmdOptions,
        lambda options: MirrorDescent("ucmd", options),
    ),
    "ucmd-armab": (
        "the paper's Algorithm 2 to the letter (Xiong & Li, ICML 2024)",
        UcmdArmabOptions,
        lambda options: MirrorDescent("ucmd-armab", options),
    ),
    "rmab-ucrl": (
        "its rival: mean rewards with optimism, extended LP (Xiong, Wang & Li, NeurIPS 2022)",
        RmabUcrlOptions,
        lambda options: RmabUcrlGenerator(options) if options.version == "generator" else RmabUcrl(options),
    ),
    "restless-ucb": (
        "explore, one optimistic instance, commit (Wang, Huang & Lui, NeurIPS 2020)",
        RestlessUcbOptions,
        RestlessUcb,
    ),
    "r2mab-ucb": (
        "extended LP over the steps of an episode (Xiong, Li & Singh, AAAI 2022)",
        R2mabUcbOptions,
        lambda options: R2MAB_UCB[options.version](options),
    ),
    "colored-ucrl2": (
        "UCRL2 on the joint process, small tasks only (Ortner, Ryabko, Auer & Munos, 2012)",
        ColoredUcrl2Options,
        ColoredUcrl2,
    ),
    "uc-whittle": (
        "Whittle indices of optimistic kernels (Wang, Xu, Taneja & Tambe, AAAI 2023)",
        UcWhittleOptions,
        UcWhittle,
    ),
    "thompson": (
        "the fluid LP of kernels drawn from the posterior (Jung & Tewari, NeurIPS 2019)",
        ThompsonOptions,
        Thompson,
    ),
    "q-whittle": (
        "Whittle indices by Q-learning on two time scales (Avrachenkov & Borkar, 2022)",
        QWhittleOptions,
        QWhittle,
    ),
    "uc-o-reps": (
        "mirror descent on all losses: full information (Rosenberg & Mansour, ICML 2019)",
        UcORepsOptions,
        UcOReps,
    ),
    "shifted-uc-o-reps": (
        "its bandit version, with kernels mixed with chance (Rosenberg & Mansour, NeurIPS 2019)",
        ShiftedUcORepsOptions,
        ShiftedUcOReps,
    ),
    "uob-reps": ("losses over upper occupancy bounds, mirror descent (Jin et al., ICML 2020)", UobRepsOptions, UobReps),
    "dilated-po": ("policy optimisation with dilated bonuses (Luo, Wei & Lee, NeurIPS 2021)", DilatedPoOptions, DilatedPo),
    "ucpd": ("the budget on average, by queues: full information (Qiu et al., NeurIPS 2020)", UcpdOptions, Ucpd),
    "pdgd-ops": ("the budget on average, by prices: full information (Germano et al. 2023)", PdgdOpsOptions, PdgdOps),
    "random": ("a random set of arms at every step", NoOptions, lambda _: Chance()),
    "oracle": ("fixed index policy of the true kernels and the summed rewards: privileged", OracleOptions, Oracle),
}


def learners() -> dict[str, str]:
    """Return every learner's name with one line on what it is."""
    return {name: entry[0] for name, entry in LEARNERS.items()}


def learner(name: str, **options: object) -> Learner:
    """Make a learner by name; wrong options are all named in one error.

    Your own is `module:maker`: what the maker, a class or a function, returns for the options.
    """
    if ":" in name:
        return _own(name, options)
    if name not in LEARNERS:
        raise ModelError(f"unknown learner {name!r}; there are {', '.join(LEARNERS)}")
    _, schema, make = LEARNERS[name]
    try:
        return make(schema.model_validate(options))
    except ValidationError as error:
        known = ", ".join(schema.model_fields) or "none"
        places = [".".join(map(str, one["loc"])) for one in error.errors()]
        faults = "; ".join(
            f"{place}{': ' if place else ''}{one['msg'].removeprefix('Value error, ')} (got {one['input']!r})"
            for place, one in zip(places, error.errors(), strict=True)
        )
        raise ModelError(f"learner {name}: {faults} [options: {known}]") from error


def _own(name: str, options: dict[str, object]) -> Learner:
    module, _, maker = name.partition(":")
    try:
        made = getattr(import_module(module), maker)(**options)
    except Exception as error:  # the module is the user's, and may raise anything
        reason = " ".join(f"{error or type(error).__name__}".split())
        raise ModelError(f"learner {name}: cannot be made ({reason})") from error
    if not isinstance(made, Learner):
        raise ModelError(f"learner {name}: made a {type(made).__name__}, not a Learner")
    return made
