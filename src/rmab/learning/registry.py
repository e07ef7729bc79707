"""Learners by name: `rmab.make_learner("ucmd")`, and `rmab.list_learners()` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from rmab.common.checks import expect
from rmab.common.own import made_by
from rmab.errors import ModelError
from rmab.learning.algorithms.colored_ucrl2 import ColoredUcrl2
from rmab.learning.algorithms.dilated_po import DilatedPo
from rmab.learning.algorithms.oracle import Chance, Oracle
from rmab.learning.algorithms.pdgd_ops import PdgdOps
from rmab.learning.algorithms.planned import PlannedLagrangian, PlannedMyopic, PlannedWhittle, RoundRobin
from rmab.learning.algorithms.q_whittle import QWhittle
from rmab.learning.algorithms.r2mab_ucb import R2mabUcb
from rmab.learning.algorithms.restless_ucb import RestlessUcb
from rmab.learning.algorithms.rmab_ucrl import RmabUcrl
from rmab.learning.algorithms.shifted_uc_o_reps import ShiftedUcOReps
from rmab.learning.algorithms.thompson import Thompson
from rmab.learning.algorithms.uc_o_reps import UcOReps
from rmab.learning.algorithms.uc_whittle import UcWhittle
from rmab.learning.algorithms.ucmd import NamedUcmd, Ucmd
from rmab.learning.algorithms.ucmd_armab import UcmdArmab
from rmab.learning.algorithms.ucpd import Ucpd
from rmab.learning.algorithms.uob_reps import UobReps
from rmab.learning.base import Learner
from rmab.learning.options import faults, in_line, schema


class Entry(NamedTuple):
    """A learner's class, one line on what it is, and its options by name, where they are not the class's own."""

    cls: type[Learner]
    summary: str
    named: type[NamedUcmd] | None = None

    def made(self, options: dict[str, object]) -> Learner:
        """Make the learner."""
        return self.cls(**options) if self.named is None else self.named(**options).make()  # type: ignore[arg-type]


LEARNERS: dict[str, Entry] = {
    "ucmd": Entry(
        Ucmd, "recommended: forecasts of the rewards, estimated kernels, a step in the prices, nothing to tune", NamedUcmd
    ),
    "ucmd-armab": Entry(UcmdArmab, "the paper's Algorithm 2 to the letter (Xiong & Li, ICML 2024)"),
    "rmab-ucrl": Entry(
        RmabUcrl, "its rival: mean rewards, optimistic kernels, extended LP (Xiong, Wang & Li, NeurIPS 2022)"
    ),
    "restless-ucb": Entry(RestlessUcb, "explore, one optimistic instance, commit (Wang, Huang & Lui, NeurIPS 2020)"),
    "r2mab-ucb": Entry(R2mabUcb, "extended LP over the steps of an episode (Xiong, Li & Singh, AAAI 2022)"),
    "colored-ucrl2": Entry(
        ColoredUcrl2, "UCRL2 on the joint process, small tasks only (Ortner, Ryabko, Auer & Munos, 2012)"
    ),
    "uc-whittle": Entry(UcWhittle, "Whittle indices of optimistic kernels (Wang, Xu, Taneja & Tambe, AAAI 2023)"),
    "thompson": Entry(Thompson, "the fluid LP of kernels drawn from the posterior (Jung & Tewari, NeurIPS 2019)"),
    "q-whittle": Entry(QWhittle, "Whittle indices by Q-learning on two time scales (Avrachenkov & Borkar, 2022)"),
    "uc-o-reps": Entry(UcOReps, "mirror descent on all losses: full information (Rosenberg & Mansour, ICML 2019)"),
    "shifted-uc-o-reps": Entry(
        ShiftedUcOReps, "its bandit version, with kernels mixed with chance (Rosenberg & Mansour, NeurIPS 2019)"
    ),
    "uob-reps": Entry(UobReps, "losses over upper occupancy bounds, mirror descent (Jin et al., ICML 2020)"),
    "dilated-po": Entry(DilatedPo, "policy optimisation with dilated bonuses (Luo, Wei & Lee, NeurIPS 2021)"),
    "ucpd": Entry(Ucpd, "the budget on average, by queues: full information (Qiu et al., NeurIPS 2020)"),
    "pdgd-ops": Entry(PdgdOps, "the budget on average, by prices: full information (Germano et al. 2023)"),
    "random": Entry(Chance, "a random set of arms at every step"),
    "round-robin": Entry(RoundRobin, "all arms in turn, B at every step"),
    "myopic": Entry(
        PlannedMyopic, "what activating pays now and next, of the true kernels and the summed rewards: privileged"
    ),
    "whittle": Entry(PlannedWhittle, "Whittle indices of every step, of the same: privileged"),
    "lagrangian": Entry(PlannedLagrangian, "what activating is worth at the fluid plan's prices, of the same: privileged"),
    "oracle": Entry(Oracle, "fixed index policy of the true kernels and the summed rewards: privileged"),
}


def list_learners() -> dict[str, str]:
    """List the learners that come with the library.

    Returns
    -------
    dict of str to str
        The name of every learner, with one line on what it is.

    Examples
    --------
    >>> import rmab
    >>> rmab.list_learners()["random"]
    'a random set of arms at every step'
    """
    return {name: entry.summary for name, entry in LEARNERS.items()}


def learner_options(name: str) -> type[BaseModel]:
    """Return the options of a learner as a pydantic model: their types, limits, defaults and descriptions."""
    entry = _entry(name)
    return schema(entry.named or entry.cls)


def option_faults(name: str, options: dict[str, object]) -> list[tuple[str, str]]:
    """Return the options of a learner by name that are wrong, and what is wrong with each; an empty name for all of them."""
    entry = _entry(name)
    try:
        learner_options(name).model_validate(options)
        entry.made(options)
    except ValidationError as error:
        return faults(entry.named or entry.cls, error)
    except ModelError as error:
        return [("", str(error))]
    return []


def own_parts(name: str, options: Mapping[str, object]) -> set[str]:
    """Return the options of a learner by name that are parts of the user's own, `module:Class`."""
    known = learner_options(name).model_fields if name in LEARNERS else {}
    given = {str(options[key]) for key, one in known.items() if one.json_schema_extra and key in options}
    return {one for one in given if ":" in one}


def make_learner(name: str, **options: object) -> Learner:
    """Make a learner by name.

    Parameters
    ----------
    name : str
        One of `rmab.list_learners()`, or `module:maker` for your own: a Learner class, or a function that returns a learner.
    **options
        As `rmab learners NAME` lists them; for your own, whatever the maker takes.

    Returns
    -------
    Learner

    Raises
    ------
    ModelError
        Where there is no such learner, or with all that is wrong with the options.

    Examples
    --------
    >>> import rmab
    >>> rmab.make_learner("ucmd-armab", epsilon=0.1)
    UcmdArmab(epsilon=0.1, scale=1.0, rule='fill', rounding='top', zeros='estimated')
    """
    expect(name, str, "the name of a learner")
    if ":" in name:
        made: Learner = made_by("learner", name, Learner, **options)
        return made
    if wrong := option_faults(name, options):
        raise ModelError(f"learner {name}: {in_line(wrong)}", code="bad-option", learner=name, option=wrong[0][0])
    return _entry(name).made(options)


def _entry(name: str) -> Entry:
    if name not in LEARNERS:
        wrong = f"unknown learner {name!r}; there are {', '.join(LEARNERS)}"
        raise ModelError(wrong, code="unknown-name", learner=name)
    return LEARNERS[name]
