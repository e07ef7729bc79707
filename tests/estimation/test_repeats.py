"""Actions of a plan on arms that had more of them than the log shows."""

from dataclasses import replace

import numpy as np
import pytest

from logs import mothers
from rmab.estimation.evaluation import evaluate
from rmab.estimation.repeats import _earlier, find_repeats
from rmab.estimation.values import World


def test_earlier_actions_are_counted_within_the_window() -> None:
    acted = np.array([[1, 0, 1, 1, 0, 1]])
    assert _earlier(acted, 2).tolist() == [[0, 1, 1, 1, 2, 1]]
    assert _earlier(acted, 99).tolist() == [[0, 1, 1, 2, 3, 3]]


@pytest.mark.slow
def test_what_the_log_hardly_shows_is_counted_and_stated() -> None:
    fitted = mothers(200, 25)
    world = World.of(fitted, 10, 12)
    kernels = world.kernels(fitted, np.asarray(fitted.kernels))
    policy = world.policy(kernels)
    found = find_repeats(fitted, world, policy, kernels, 0)
    log = fitted.require_log()
    acted = np.zeros((200, log.periods.count), dtype=int)
    acted[log.arm_of[log.action == 1], log.period[log.action == 1]] = 1
    before = _earlier(acted, 12)[acted == 1]
    assert (before >= found.most).sum() >= 30 > (before > found.most).sum()
    assert 0 < found.share < 1
    benefit = world.play(policy, kernels, (0, 0)).mean - world.baselines(kernels)["nothing"]
    assert 0 < found.losses["rotation"] <= found.losses["nothing"] < benefit
    everything = find_repeats(replace(fitted, log=replace(log, action=np.minimum(log.action, 0))), world, policy, kernels, 0)
    assert (everything.most, everything.share) == (-1, 1.0)
    assert everything.losses["nothing"] == pytest.approx(benefit, rel=0.15)  # all actions change nothing
    outcome = evaluate(fitted, 10, horizon=12, replicates=40, checks=())
    assert outcome.repeats is not None
    assert outcome.standing == "conditional"
    assert any("The log has hardly any such calls" in one for one in outcome.sentences())
    assert outcome.fields()["repeats"]["share"] == outcome.repeats.share
