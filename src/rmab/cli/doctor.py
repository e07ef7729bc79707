"""`rmab doctor`: what is installed here, what is missing, and whether compiled code works and is kept."""

import math
import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from rmab import __version__
from rmab.cli.program import Failure, examples
from rmab.cli.screen import print_json, print_table, say
from rmab.common.words import many

BASE = ("numpy", "numba", "llvmlite", "highspy", "pydantic", "click", "rich")


@click.command(
    epilog=examples(
        ("rmab doctor", "what to look at first when something is odd"),
        ("rmab doctor --json", "to go with a report of a fault"),
    )
)
@click.option("--json", "machine", is_flag=True, help="Print as JSON.")
def doctor(machine: bool) -> None:
    """Say what is installed: versions, cores, memory, the cache of machine code, and extras that are missing.

    The exit code is 0 if all that planning, learning and simulating need is there and works, otherwise 1.
    """
    found = examined()
    if machine:
        print_json(found)
    else:
        _print(found)
    if found["faults"]:
        raise Failure("; ".join(found["faults"]))


def examined() -> dict[str, Any]:
    """Return what there is, as plain values; `faults` lists what keeps the library from working."""
    packages = {name: _version(name) for name in BASE}
    faults = [f"{name} is not installed: pip install rmab" for name, found in packages.items() if found is None]
    code = {"works": False} if faults else _compiled(faults)
    return {
        "rmab": __version__,
        "place": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": _cores(),
        "memory": _memory(),
        "packages": packages,
        "code": code,
        "extras": _extras(),
        "faults": faults,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cores() -> dict[str, Any]:
    from rmab.common.cores import cores

    return {"usable": cores(), "all": os.cpu_count(), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}


def _memory() -> float | None:
    from rmab.common.memory import available

    found = available()
    return round(found / 1e9, 1) if math.isfinite(found) else None


def _compiled(faults: list[str]) -> dict[str, Any]:
    """Run a compiled function, and look at what is kept of them; what is wrong is added to the faults."""
    begin = time.perf_counter()
    try:
        import numba
        import numpy as np

        from rmab.common import compile as compiling
        from rmab.common.machine_code import home
        from rmab.play.compiled.randomness import uniform

        works = 0.0 <= uniform(np.arange(1, 5, dtype=np.uint64)) < 1.0
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what the reader wants to know)
        faults.append(f"compiled code does not run ({type(error).__name__}: {error})")
        return {"works": False}
    if not works:
        faults.append("compiled code gives wrong numbers")
    folder, jit = compiling._FOLDER, not numba.config.DISABLE_JIT
    try:
        place: str | None = str(home())
    except RuntimeError:
        place = None
    sizes = [] if folder is None else [one.stat().st_size for one in folder.glob("*.code")]
    seconds = round(time.perf_counter() - begin, 2)
    return {
        "works": bool(works),
        "seconds": seconds,
        "compiling": jit,
        "folder": place,
        "usable": folder is not None,
        "functions": len(sizes),
        "megabytes": round(sum(sizes) / 1e6, 1),
    }


def _extras() -> dict[str, Any]:
    from rmab.common.extras import EXTRAS

    return {
        extra: {"for": what, "packages": {name: _version(name) for name in packages}}
        for extra, (what, packages) in EXTRAS.items()
    }


def _print(found: dict[str, Any]) -> None:
    cores, code = found["cores"], found["code"]
    limited = f" (OMP_NUM_THREADS={cores['OMP_NUM_THREADS']})" if cores["OMP_NUM_THREADS"] else ""
    say(f"rmab {found['rmab']} in {found['place']}")
    say(f"Python {found['python']} ({sys.executable}), {found['system']}")
    memory = "" if found["memory"] is None else f", {found['memory']:g} GB of memory available"
    say(f"{cores['usable']} of {cores['all']} cores usable{limited}{memory}")
    say(", ".join(f"{name} {version or 'MISSING'}" for name, version in found["packages"].items()))
    say(_code_words(code))
    rows = []
    for extra, entry in found["extras"].items():
        missing = [name for name, version in entry["packages"].items() if version is None]
        there = ", ".join(f"{name} {version}" for name, version in entry["packages"].items() if version is not None)
        how = f"missing {', '.join(missing)}: pip install 'rmab[{extra}]'" if missing else there
        rows.append([extra, entry["for"], how])
    print_table("Extras", ["extra", "for", "installed"], rows, left=3)


def _code_words(code: dict[str, Any]) -> str:
    if not code["works"]:
        return "compiled code: does not run"
    if not code["compiling"]:
        return "compiled code: switched off (NUMBA_DISABLE_JIT), so everything is slow"
    if not code["usable"]:
        return f"compiled code: works, but cannot be kept in {code['folder']}: every process compiles (see rmab warm --help)"
    held = f"{many(code['functions'], 'function')} of this version kept in {code['folder']}, {code['megabytes']:g} MB"
    hint = "" if code["functions"] > 100 else "; the first runs compile, or rmab warm does it now"
    return f"compiled code: works; {held}{hint}"
