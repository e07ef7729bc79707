"""The shape of the package: data flows one way, public names exist, importing is cheap and has no side effects."""

import ast
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rmab

SOURCE = Path(rmab.__file__).parent

ROOT = Path(__file__).parents[2]
LAST = 'raise SystemExit(lint_imports(config_filename="pyproject.toml", no_logo=True, cache_dir=None))'


def checked(folder: Path) -> str:
    """Return what import-linter says of the package in a folder, by the contracts of its pyproject.toml."""
    code = f"from importlinter.cli import lint_imports\n{LAST}"
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_imports_keep_to_the_contracts() -> None:
    assert "4 kept, 0 broken" in checked(ROOT)


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("model/arms.py", "import rmab.solvers", "imports go one way"),
        ("learning/base.py", "import rmab.tasks", "imports go one way"),
        ("study/spec.py", "import rmab.logs", "do not read logs"),
        ("estimation/fit.py", "import rmab.learning", "knows no learners"),
        ("play/index_policy.py", "import rmab.common.compile", "folders named compiled"),
        ("novel/__init__.py", "", "imports go one way"),
    ],
)
def test_an_import_against_the_contracts_is_found(tmp_path: Path, module: str, line: str, contract: str) -> None:
    shutil.copytree(SOURCE, tmp_path / "src" / "rmab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "rmab" / module
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{line}\n{path.read_text() if path.exists() else ''}")
    broken = [one for one in checked(tmp_path).splitlines() if one.endswith("BROKEN")]
    assert [contract in one for one in broken].count(True) == 1


@pytest.mark.parametrize("path", sorted(SOURCE.glob("**/compiled/*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_compiled_code_calls_into_compiled_code_only(path: Path) -> None:
    """The name of the cache folder hashes these files; a constant from elsewhere could change unnoticed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rmab."):
            assert node.module in ("rmab.common.arrays", "rmab.common.compile") or ".compiled." in str(node.module)


@pytest.mark.parametrize("name", [name for name in rmab.__all__ if name != "__version__"])
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(rmab, name).__doc__
    assert name in dir(rmab)


@pytest.mark.slow
def test_the_package_has_no_type_errors() -> None:
    done = subprocess.run([sys.executable, "-m", "mypy"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_strict_type_checker_accepts_code_of_a_user(tmp_path: Path) -> None:
    """Names are exported, classes can be derived from, and a component of the wrong kind is found."""
    code = """
import numpy as np
import rmab
from rmab.learning import Direct, RewardEstimate, Kl, RewardEstimator, Ucmd


class Mine(rmab.Learner):
    name = "mine"

    def initial(self, view: rmab.View, seed: int) -> dict[str, np.ndarray]:
        return {}

    def decide(self, state: rmab.State) -> rmab.EpisodePlan:
        return rmab.EpisodePlan(rmab.IndexPolicy(np.ones((state.view.arms, state.view.states)), state.view.budget))

    def update(self, state: rmab.State, feedback: rmab.Feedback) -> dict[str, np.ndarray]:
        return {}


run: rmab.RunResult = rmab.run(rmab.make_task("cpap", episodes=2), Mine())
total: float = run.relative_regret("O1")
fine = Ucmd(estimator=Direct(), confidence=Kl(epsilon=0.1))
"""
    (tmp_path / "fine.py").write_text(code)
    (tmp_path / "wrong.py").write_text("from rmab.learning import Kl, Ucmd\nwrong = Ucmd(estimator=Kl())\n")
    # With the settings and the cache of the whole package: without them it takes 15 seconds.
    words = ["--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "fine.py"), str(tmp_path / "wrong.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    found, summary = done.stdout.splitlines()
    assert found.partition("wrong.py")[2].startswith(':2: error: Argument "estimator" to "Ucmd" has incompatible type "Kl"')
    assert summary == "Found 1 error in 1 file (checked 2 source files)"


def test_no_module_hides_a_public_function() -> None:
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert all(inspect.ismodule(getattr(rmab, name)) for name in modules & set(rmab.__all__))
    tasks = {path.stem for path in (SOURCE / "tasks").glob("*.py")} & set(rmab.tasks.__all__)
    assert all(inspect.ismodule(getattr(rmab.tasks, name)) for name in tasks)
    assert callable(rmab.tasks.deadline.least_laxity_first)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="attribute nonsense"):
        rmab.nonsense  # noqa: B018


def run_python(code: str, **environment: str) -> str:
    outcome = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return outcome.stdout.strip()


def test_importing_is_cheap() -> None:
    assert run_python("import rmab, sys; print(sorted({'numpy', 'numba', 'highspy'} & sys.modules.keys()))") == "[]"


def test_using_the_library_leaves_numpy_s_and_numba_s_settings_alone() -> None:
    code = """
import numpy, numba
before = numpy.geterr(), numba.config.CACHE_DIR, numpy.random.get_state()[1].tolist()
import rmab
rmab.simulate, rmab.solvers.solve_fluid, rmab.make_task
print(before == (numpy.geterr(), numba.config.CACHE_DIR, numpy.random.get_state()[1].tolist()))
"""
    assert run_python(code) == "True"


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    code = """
import numpy
from rmab.play.compiled.selection import uniform
print(uniform(numpy.arange(1, 5, dtype=numpy.uint64)) > 0)
"""
    assert run_python(code, XDG_CACHE_HOME=str(blocked)) == "True"


def test_no_home_folder_does_not_matter() -> None:
    code = """
import pathlib
def homeless(path):
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.expanduser = homeless
import numpy
from rmab.common import compile as module
from rmab.play.compiled.selection import uniform
print(module._FOLDER, uniform(numpy.arange(1, 5, dtype=numpy.uint64)) > 0)
"""
    assert run_python(code, XDG_CACHE_HOME="") == "None True"


def test_the_cache_follows_all_compiled_sources(tmp_path: Path) -> None:
    code = "from rmab.common import compile as module; print(module._FOLDER)"
    folder = run_python(code, XDG_CACHE_HOME=str(tmp_path))
    assert folder.startswith(str(tmp_path / "rmab" / "compiled-"))
    assert run_python(code, XDG_CACHE_HOME=str(tmp_path), NUMBA_BOUNDSCHECK="1") != folder


@pytest.mark.parametrize(("allowed", "most"), [("1", 1), ("100000", None), ("", None), ("many", None), ("0", None)])
def test_cores_are_those_given_and_allowed(monkeypatch: pytest.MonkeyPatch, allowed: str, most: int | None) -> None:
    from rmab.common.processes import cores

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    given = cores()
    monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert cores() == (given if most is None else most)
