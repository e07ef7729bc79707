"""CPAP adherence (Xiong & Li 2024, case study 1): choose which patients with a breathing device to call.

Three states of adherence: low, intermediate, acceptable. Half of the patients come from an adherent cluster, half from a
non-adherent one. Passive kernels are the paper's figures with a small noise per patient. One printed row sums to 1.0003; we
use .7424 for .7427. The paper does not specify the effect of a call. Here it multiplies the probability of moving up (of
staying, at the top) by 1 + u, with u uniform on [.05, .5] per patient, and shrinks the rest in proportion. The same group
published kernels of calls with later code, for two types of patients: task `cpap-dopl`.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from rmab.common import Budget, FloatArray, Horizon, check_memory
from rmab.model import Arms, Problem, RewardModel
from rmab.tasks.definition import Posed, model_rng

STATES = ("low", "intermediate", "acceptable")
LEVELS = np.array([1.0, 2.0, 3.0])
ADHERENT = np.array([[0.0385, 0.0, 0.9615], [0.0, 0.0, 1.0], [0.0257, 0.0245, 0.9498]])
NON_ADHERENT = np.array([[0.7424, 0.0741, 0.1835], [0.3399, 0.1634, 0.4967], [0.2323, 0.1020, 0.6657]])
NOISE = 0.1
EFFECT = (0.05, 0.5)
RANGE = (0.0, 4.5)

Patients = Annotated[int, Field(ge=2, multiple_of=2, description="number of patients: half usually adhere, half do not")]


def cpap(seed: int, *, arms: Patients = 20, budget: Budget = 10, horizon: Horizon = 50) -> Posed:
    """Build CPAP as in the paper: called patients pay by their adherence level, others nothing."""
    pays = np.zeros((3, 2))
    pays[:, 1] = LEVELS
    return _build(seed, pays, arms, budget, horizon)


def cpap_adherence(seed: int, *, arms: Patients = 20, budget: Budget = 10, horizon: Horizon = 50) -> Posed:
    """Build CPAP with the aim of a real programme: all patients pay by their adherence level, called or not."""
    return _build(seed, np.repeat(LEVELS[:, np.newaxis], 2, axis=1), arms, budget, horizon)


def _build(seed: int, pays: FloatArray, arms: int, budget: int, horizon: int) -> Posed:
    check_memory(f"a task of {arms} arms", 500.0 * arms)  # kernels, single and stacked, and rewards
    patients = Arms(_patients(arms, model_rng(seed)), state_names=STATES)
    return Problem(patients, 0, budget, horizon), RewardModel(np.broadcast_to(pays, (1, arms, 3, 2)), *RANGE)


def _patients(arms: int, rng: np.random.Generator) -> FloatArray:
    """(N, S, 2, S) kernels of all patients, half from each cluster."""
    noise, effect = np.empty((arms, 3, 3)), np.empty(arms)
    for n in range(arms):  # in sequence, so that a patient does not depend on the number of patients
        noise[n], effect[n] = rng.normal(0.0, NOISE, (3, 3)), rng.uniform(*EFFECT)
    cluster = np.where(np.arange(arms)[:, np.newaxis, np.newaxis] < arms // 2, ADHERENT, NON_ADHERENT)
    passive = cluster * np.exp(noise)
    passive /= passive.sum(axis=2, keepdims=True)
    active = np.stack([_active_rows(passive[:, s], s, effect) for s in range(3)], axis=1)
    return np.stack([passive, active], axis=2)


def _active_rows(row: FloatArray, s: int, effect: FloatArray) -> FloatArray:
    """(N, S) rows of state s if the patients are called."""
    top = row.shape[1] - 1
    better = np.arange(top + 1) > s if s < top else np.arange(top + 1) == top
    upward = row[:, better].sum(axis=1)
    raised = np.minimum(1.0, upward * (1.0 + effect))
    # If a row only leads upwards, there is nothing to shrink, and raised is 1 as well.
    shrink = np.divide(1.0 - raised, 1.0 - upward, out=np.zeros_like(upward), where=upward < 1.0)
    return np.asarray(np.where(better, row * (raised / upward)[:, np.newaxis], row * shrink[:, np.newaxis]))
