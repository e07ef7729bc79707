"""What `help()` and the prompt show: docstrings with sections, signatures that can be read, reprs of one line."""

import inspect
import pydoc
import re
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import rmab
from rmab import learning
from rmab.report.statistics import interval

MODULES = (rmab, rmab.solvers, rmab.planners, rmab.runs, rmab.tasks.deadline)
ERRORS = [one for one in vars(rmab.errors).values() if isinstance(one, type) and issubclass(one, rmab.RmabError)]
PUBLIC = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
PUBLIC = {name: thing for name, thing in PUBLIC.items() if not inspect.ismodule(thing)}
PUBLIC |= {f"rmab.errors.{one.__name__}": one for one in ERRORS}
ABSTRACT = {"rmab.errors.SolverError", "rmab.errors.StoreError", "rmab.errors.StudyError"}  # no tiny example raises them


def own_methods(owner: type) -> list[str]:
    return [name for name, one in vars(owner).items() if not name.startswith("_") and not isinstance(one, type)]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_the_sections_of_numpydoc(name: str) -> None:
    thing = PUBLIC[name]
    said = inspect.getdoc(thing) or ""
    sections = {line for line, under in zip(said.splitlines(), said.splitlines()[1:], strict=False) if set(under) == {"-"}}
    assert name in ABSTRACT or "Examples" in sections
    given = (
        [] if name == "rmab.Policy" or (isinstance(thing, type) and "__init__" not in vars(thing)) else _parameters(thing)
    )
    for one in given:
        described = said.partition("Parameters\n")[2] or said.partition("Attributes\n")[2]
        assert one in described, f"{name}: {one} is not described"
    if not isinstance(thing, type):
        assert "Returns" in sections


@pytest.mark.parametrize("name", PUBLIC)
def test_methods_of_public_classes_are_documented(name: str) -> None:
    thing = PUBLIC[name]
    for method in own_methods(thing) if isinstance(thing, type) else []:
        found = inspect.getattr_static(thing, method)
        if callable(found) or isinstance(found, (property, classmethod)):
            assert inspect.getdoc(getattr(thing, method)), f"{name}.{method}"


@pytest.mark.parametrize("name", PUBLIC)
def test_signatures_can_be_read(name: str) -> None:
    shown = pydoc.render_doc(PUBLIC[name], renderer=pydoc.plaintext)
    assert not re.search(r"numpy\._typing|ndarray\[|typing\.Union", shown)


@pytest.mark.parametrize("name", [name for name in learning.__all__ if name not in rmab.__all__])
def test_learners_and_parts_say_what_they_are_and_list_their_options(name: str) -> None:
    thing = getattr(learning, name)
    said = inspect.getdoc(thing) or ""
    assert len(said.splitlines()[0]) > 20
    for option in fields(thing) if is_dataclass(thing) else ():
        assert option.name in said.partition("Parameters\n")[2], f"{name}: {option.name} is not described"
    if isinstance(thing, type) and issubclass(thing, learning.Component | learning.Learner):
        for method in own_methods(thing):
            found = inspect.getattr_static(thing, method)
            if callable(found) or isinstance(found, property):
                assert inspect.getdoc(found), f"{name}.{method}"


def _parameters(thing: object) -> list[str]:
    return [one for one in inspect.signature(thing).parameters if one not in ("args", "kwargs")]  # type: ignore[arg-type]


def test_reprs_are_one_short_line_without_arrays() -> None:
    game = rmab.make_task("cpap", episodes=3)
    policy, rng = rmab.planners.random_policy(game.problem), np.random.default_rng(0)
    episode = rmab.simulate(game.problem, policy, game.base_reward, rng)
    shown = {
        repr(episode): "Trajectory(50 steps, 20 arms, reward ",
        repr(rmab.simulate_many(game.problem, policy, game.base_reward, rng, 5)): "Batch(5 episodes, mean reward ",
        repr(rmab.Feedback.reveal(game.view(), 0, episode, game.base_reward)): "Feedback(episode 0, 50 steps, 20 arms, ",
        repr(game.view()): "View(20 arms, 3 states, budget 10, 50 steps, 3 episodes, bandit feedback)",
        repr(policy): "IndexPolicy(20 arms, any step, 3 states, budget 10, rule 'fill', rounding 'top')",
        repr(rmab.planners.lagrangian_index(game.problem, game.base_reward)): "IndexPolicy(20 arms, 50 steps, 3 states, ",
        repr(rmab.run(game, "random").comparators): "Comparators(Problem(Arms(20 arms, 3 states), budget 10, ",
        repr(interval(np.arange(3.0))): "Interval(1, 95%: -1.48414 to 3.48414, 3 rounds)",
    }
    for line, start in shown.items():
        assert line.startswith(start)
        assert len(line) < 110
        assert "array" not in line
