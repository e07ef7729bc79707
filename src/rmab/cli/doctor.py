"""`rmab doctor`: installed and missing packages, and whether compiled code works and is cached."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from rmab import __version__
from rmab.cli.program import Failure, command
from rmab.cli.screen import print_json, say

BASE = ("numpy", "numba", "llvmlite", "highspy", "pydantic", "click", "rich")


@command(
    ("rmab doctor", "the first thing to run when something does not work"),
    ("rmab doctor --json", "to attach to a bug report"),
)
@click.option("--json", "machine", is_flag=True, help="Print JSON.")
def doctor(machine: bool) -> None:
    """Show versions, cores, memory, the cache of machine code, and missing extras.

    The exit code is 0 if planning, learning and simulation work, otherwise 1.
    """
    from rmab.common import EXTRAS, available, cores

    packages = {name: _version(name) for name in (*BASE, *(name for _, names in EXTRAS.values() for name in names))}
    problems = [f"{name} is not installed: pip install rmab" for name in BASE if packages[name] is None]
    code = "not tried" if problems else _try_compiled_code(problems)
    missing = {extra: [name for name in names if packages[name] is None] for extra, (_, names) in EXTRAS.items()}
    found: dict[str, Any] = {
        "rmab": __version__,
        "place": str(Path(__file__).parents[1]),
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": f"{cores()} of {os.cpu_count()} (OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', '')})",
        "memory": f"{available() / 1e9:.1f} GB available",
        "packages": {name: version for name, version in packages.items() if version is not None},
        "compiled code": code,
        "missing": {extra: names for extra, names in missing.items() if names},
        "problems": problems,
    }
    if machine:
        print_json(found)
    else:
        say(f"rmab {__version__} in {found['place']}")
        for name in ("python", "system", "cores", "memory", "compiled code"):
            say(f"{name}: {found[name]}")
        say("packages: " + ", ".join(f"{name} {version}" for name, version in found["packages"].items()))
        for extra, names in found["missing"].items():
            say(f"{EXTRAS[extra][0]}: missing {', '.join(names)}: pip install 'rmab[{extra}]'")
    if problems:
        raise Failure("; ".join(problems))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _try_compiled_code(problems: list[str]) -> str:
    """Run a compiled function and describe the cache; append what does not work to problems."""
    try:
        import numba
        import numpy as np

        from rmab.common import compile as compiling
        from rmab.play.compiled.selection import uniform

        if not 0.0 <= uniform(np.arange(1, 5, dtype=np.uint64)) < 1.0:
            problems.append("compiled code gives wrong numbers")
    except Exception as error:  # noqa: BLE001  (any error is a finding)
        problems.append(f"compiled code does not run ({type(error).__name__}: {error})")
        return "does not run"
    if numba.config.DISABLE_JIT:
        return "switched off (NUMBA_DISABLE_JIT), so everything is slow"
    folder = compiling._FOLDER
    if folder is None:
        return "works, but cannot be cached: every process compiles (see rmab warm --help)"
    sizes = [one.stat().st_size for one in folder.glob("*.code")]
    return f"works; {len(sizes)} functions cached in {folder}, {sum(sizes) / 1e6:.1f} MB"
