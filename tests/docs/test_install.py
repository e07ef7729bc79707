"""What users install: a wheel and an sdist, in an environment of their own; and the base without any extra."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from lowest import lowest
from rmab import __version__
from rmab.common.extras import EXTRAS

ROOT = Path(__file__).parents[2]


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Run a program and return what it prints; what it complains of is shown where it fails."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run([*map(str, command)], cwd=cwd, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and of it the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel by itself; packages that it needs are lent by this environment, but for rmab, which is not seen."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--disable-pip-version-check", wheel, cwd=home)
    place = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (place / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def test_wheel_and_sdist_hold_what_they_should(built: Path) -> None:
    sources = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "rmab").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        about = wheel.read(f"rmab-{__version__}.dist-info/METADATA").decode()
    assert {name for name in names if name.startswith("rmab/")} == sources
    assert {"rmab/py.typed", "rmab/report/assets/report.js", "rmab/study/builtin/paper-cpap.toml"} <= names
    assert f"Version: {__version__}" in about
    assert all(f"Provides-Extra: {extra}" in about for extra in (*EXTRAS, "all"))
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tests/docs/test_install.py"} <= inside
    assert {f"src/{name}" for name in sources} <= inside
    assert not [name for name in inside if name.startswith((".venv", "out/"))]


def test_it_works_where_it_is_installed(installed: Path) -> None:
    rmab = installed / "venv" / "bin" / "rmab"
    assert run(rmab, "--version", cwd=installed) == f"rmab, version {__version__}\n"
    told = json.loads(run(rmab, "doctor", "--json", cwd=installed))
    assert told["place"].startswith(str(installed))
    assert told["compiled code"].startswith("works")
    assert told["problems"] == []
    assert "deadline-day" in run(rmab, "tasks", cwd=installed)
    assert "paper-cpap" in run(rmab, "study", "list", cwd=installed)
    python = installed / "venv" / "bin" / "python"
    code = """
import numpy, rmab
game = rmab.make_task("two-way", episodes=1)
print(rmab.simulate(game.problem, rmab.planners.random_policy(game.problem), game.reward(0), numpy.random.default_rng(0)))
"""
    assert run(python, "-c", code, cwd=installed).startswith("Trajectory(2 steps, 1 arm, reward ")


BLOCKED = sorted({package for _, packages in EXTRAS.values() for package in packages})
BLOCK = f"""
import sys
for name in {BLOCKED}:
    sys.modules[name] = None
"""


def test_the_base_needs_no_extra(tmp_path: Path) -> None:
    """Every module of planning, learning and simulating is imported, and used once, where no extra is installed."""
    code = f"""{BLOCK}
import importlib, pkgutil
import numpy as np
import rmab
for room in ("model", "play", "solvers", "planners", "tasks", "learning", "runs", "cli", "testing", "common"):
    home = importlib.import_module("rmab." + room)
    for found in pkgutil.walk_packages(home.__path__, home.__name__ + "."):
        importlib.import_module(found.name)
game = rmab.make_task("two-way", episodes=2)
print(len(rmab.run(game, "random").reward), rmab.solvers.solve_fluid(game.problem, game.base_reward).bound > 0)
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path) == "2 True\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("study list", "a study needs pyarrow: pip install 'rmab[study]'"),
        ("run two-way random --episodes 1 --save x.csv", "--save needs pyarrow: pip install 'rmab[study]'"),
        ("fit log.csv --arm a --period b --state c --action d", "pip install 'rmab[log]'"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(words: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b,c,d\n1,1,x,0\n")
    code = f"{BLOCK}\nfrom rmab.cli import main\nmain({words.split()!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert message in done.stderr


def test_logs_and_environments_name_their_extra_in_python_too(tmp_path: Path) -> None:
    code = f"""{BLOCK}
import rmab
for name in ("data", "gym", "study"):
    try:
        getattr(rmab, name)
    except rmab.errors.MissingExtra as error:
        print(error)
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path).splitlines() == [
        "rmab.data needs pyarrow and scipy: pip install 'rmab[log]'",
        "rmab.gym needs gymnasium: pip install 'rmab[gym]'",
        "a study needs pyarrow: pip install 'rmab[study]'",
    ]


def test_every_requirement_has_a_lowest_version() -> None:
    found = [line.partition("==") for line in lowest()]
    assert {"numpy", "numba", "highspy", "pyarrow", "gymnasium"} <= {name for name, _, _ in found}
    assert all(version for _, _, version in found)
    needed = {package for _, packages in EXTRAS.values() for package in packages}
    assert needed <= {name for name, _, _ in found}, "the extras of the code are those of pyproject.toml"


def test_the_doctor_says_what_is_missing(tmp_path: Path) -> None:
    code = f"""
import sys
from importlib import metadata
usual = metadata.version
def version(name):
    if name in {BLOCKED}:
        raise metadata.PackageNotFoundError(name)
    return usual(name)
metadata.version = version
from rmab.cli import main
main(["doctor"])
"""
    text = run(sys.executable, "-c", code, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "a file"), COLUMNS="140")
    assert "missing gymnasium: pip install 'rmab[gym]'" in text
    assert f"rmab {__version__} in " in text
    assert "compiled code: works" in text
    (tmp_path / "blocked").write_text("")
    text = run(sys.executable, "-m", "rmab", "doctor", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "blocked"))
    assert "compiled code: works, but cannot be cached" in text
    text = run(sys.executable, "-m", "rmab", "doctor", cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert "switched off (NUMBA_DISABLE_JIT)" in text


def test_the_page_says_only_what_works() -> None:
    """It is on no package index: every command of the page's block installs from the sources, and its extras exist."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    commands = [line.split("#")[0].split() for line in page.split("```")[1].strip().splitlines()]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert commands
    for words in commands:
        found = re.fullmatch(r"'?\.(?:\[([a-z]+)\])?'?", words[2])
        assert words[:2] == ["pip", "install"], words
        assert found, words
        assert found[1] is None or found[1] in extras
