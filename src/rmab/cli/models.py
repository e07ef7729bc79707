"""The model of a planning command: a problem and a reward, from a named task or from files."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rmab.cli.names import TASK, keep_apart, pairs_option, seed_option
from rmab.cli.program import BadInput
from rmab.cli.screen import alone_on_stdout
from rmab.common import SUFFIXES, parse_json

if TYPE_CHECKING:
    from rmab.model import Problem


class Model(NamedTuple):
    """Input of a planning command: name, seed, problem, and reward (N, S, 2) or (N, K, S, 2)."""

    name: str
    seed: int
    problem: "Problem"
    reward: Any


def model_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Add the argument PROBLEM and its options, passed as `model`, and --json, passed as `machine`."""

    @wraps(command)
    def call(
        problem: str, reward: Path | None, seed: int, task_option: dict[str, Any], machine: bool, **options: Any
    ) -> None:
        keep_apart(options.get("save"), problem, reward)
        with alone_on_stdout(machine):
            model = Model(problem, seed, *_model(problem, reward, seed, task_option))
        command(model=model, machine=machine, **options)

    arguments = (
        click.argument("problem", type=TASK),
        click.option(
            "--reward",
            type=click.Path(path_type=Path),
            help="File with the rewards, .json or .npy: an array arms x states x 2 actions; states x 2 if they are the same "
            "for all arms; arms x phases x states x 2 with phases (docs/time.md).",
        ),
        seed_option("Random seed."),
        pairs_option("-t", "--task-option", help="Option of a named task; may be repeated."),
        click.option("--json", "machine", is_flag=True, help="Print JSON."),
    )
    for argument in reversed(arguments):
        call = argument(call)
    return call


def _model(name: str, reward: Path | None, seed: int, options: dict[str, Any]) -> "tuple[Problem, Any]":
    """Return the problem and the reward (N, S, 2), or (N, K, S, 2), to plan for."""
    import numpy as np

    from rmab.common import kind_of
    from rmab.model import Problem, shape_of
    from rmab.tasks.making import find_task

    from_file = Path(name).suffix in SUFFIXES
    if from_file and kind_of(name) == "rmab problem":
        if reward is None:
            raise BadInput(f"{name}: a problem file has no rewards; add --reward FILE")
        if options:
            raise BadInput(f"{name}: a problem file takes no task options; remove -t")
        model = Problem.load(name)
    else:
        game = find_task(name, seed, **options)
        if reward is None:
            return game.problem, game.base_reward
        model = game.problem
    given, shape = _read_array(reward), (model.arms.count, model.arms.states, 2)
    timed = shape_of(model.phases, *shape)
    if given.shape not in (timed, shape, shape[1:]):
        phased = f"(N, K, S, 2) = {timed}, " if model.phases > 1 else ""
        raise BadInput(f"{reward}: the reward must have shape {phased}(N, S, 2) = {shape} or (S, 2), got {given.shape}")
    return model, given if given.shape == timed else np.broadcast_to(given, shape)


def _read_array(path: Path) -> Any:
    import numpy as np

    from rmab.common import as_floats
    from rmab.errors import FileError

    try:
        values = np.load(path, allow_pickle=False) if path.suffix == ".npy" else parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, EOFError) as error:
        raise FileError(f"{path}: neither a .npy array nor JSON ({error})") from error
    return as_floats(values, str(path))
