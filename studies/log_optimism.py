"""Does a plan look better in the model that it was made for than it is, and can that be corrected?

    python studies/log_optimism.py --repetitions 60
    python studies/log_optimism.py --repetitions 60 --arms 150 --weeks 20 --budget 8

Made-up logs, of which the truth is known. What the estimate of the plan's benefit over rotation misses the truth by, as it
is, and after two corrections:

parametric bootstrap: transitions are drawn from the fitted model, the model is fitted to them and planned for again, and
what the new plan earns more in its own model than in the first one is taken off (15 draws).

cross-fitting: a plan made from one half of the arms earns less in the model of the other half than in its own; half of
that is taken off, because the whole log has twice the arms (8 splits).

The last line is the error for the plan of one who knew the true kernels of every group: it was not chosen by the log, so no
optimism is in it.
"""

import argparse
import math
from dataclasses import replace
from typing import Any

import numpy as np

import rmab
from rmab.estimation.resampling import Resampler
from rmab.estimation.shrinkage import shrink
from rmab.estimation.values import World

HORIZON = 26
WORK, LESS = 1_000_000, 200_000  # arm-periods that are simulated for a value, and for one of many
DRAWS, SPLITS = 15, 8


def repetition(number: int, options: argparse.Namespace) -> dict[str, float]:
    """Return the errors of one log."""
    made: dict[str, Any] = {"arms": options.arms, "seed": 90_000 + number}
    columns = {"arm": "id", "period": "week", "state": "state", "action": "called"}
    table = rmab.data.example_log("mothers", weeks=options.weeks, **made)
    log = rmab.data.read_log(table, **columns, groups=["age", "district"], states=["lapsed", "wavering", "engaged"])
    fitted = rmab.data.fit(log, reward={"engaged": 1})
    truth = rmab.data.example_truth("mothers", **made).kernels[[int(one[1:]) - 1 for one in log.arms]]
    world, kernels = World.of(fitted, options.budget, HORIZON), np.asarray(fitted.kernels)
    single = replace(world, group=np.arange(len(truth)), reward=world.pays, rate=world.rate[world.group])
    mean = np.stack([truth[fitted.group_of == g].mean(axis=0) for g in range(len(kernels))])
    found = {}
    for name, policy in (("as it is", world.policy(kernels)), ("plan of one who knew", world.policy(mean))):
        found[name] = gain(world, policy, kernels, (number, 9), WORK) - gain(single, policy, truth, (number, 9), WORK)
    found["parametric bootstrap"] = found["as it is"] - bootstrapped(fitted, world, number)
    found["cross-fitting"] = found["as it is"] - crossed(fitted, world, number) / 2
    return found


def gain(world: World, policy: Any, kernels: np.ndarray, key: tuple[int, ...], work: int) -> float:
    """Return what a policy earns more than rotation."""
    return world.earned(policy, kernels, key, work)[0] - world.baselines(kernels)["rotation"]


def bootstrapped(fitted: Any, world: World, number: int) -> float:
    """Return how much better plans look in the models that they were made for, in logs drawn from the fitted model."""
    rng, kernels, more = np.random.default_rng((number, 3)), np.asarray(fitted.kernels), []
    for k in range(DRAWS):
        counts = rng.multinomial(fitted.counts.sum(axis=3), kernels)
        own = np.asarray(shrink(counts.astype(float), fitted.levels).kernels)
        policy = world.policy(own)
        more.append(np.subtract(*(gain(world, policy, one, (number, k), LESS) for one in (own, kernels))))
    return float(np.mean(more))


def crossed(fitted: Any, world: World, number: int) -> float:
    """Return how much better plans of one half of the arms look in its model than in that of the other half."""
    rng, resampler, more = np.random.default_rng((number, 4)), Resampler(fitted), []
    for k in range(SPLITS):
        half = rng.permutation(len(fitted.roster.ids)) % 2
        models = [np.asarray(shrink(resampler.counts((half == h).astype(float)), fitted.levels).kernels) for h in (0, 1)]
        for own, other in (models, models[::-1]):
            policy = world.policy(own)
            more.append(np.subtract(*(gain(world, policy, one, (number, k), LESS) for one in (own, other))))
    return float(np.mean(more))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--arms", type=int, default=600)
    parser.add_argument("--weeks", type=int, default=40)
    parser.add_argument("--budget", type=int, default=30)
    options, several = parser.parse_args(), []
    for number in range(options.repetitions):
        several.append(repetition(number, options))
        print(f"{number + 1} done", flush=True)  # noqa: T201
    print("| estimate of the benefit over rotation | mean error | its spread |\n|---|---:|---:|")  # noqa: T201
    for name in ("as it is", "parametric bootstrap", "cross-fitting", "plan of one who knew"):
        errors = np.array([one[name] for one in several])
        spread = errors.std(ddof=1)
        print(f"| {name} | {errors.mean():+.0f} ± {1.96 * spread / math.sqrt(errors.size):.0f} | {spread:.0f} |")  # noqa: T201


if __name__ == "__main__":
    main()
