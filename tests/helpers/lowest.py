"""Print the lowest versions that pyproject.toml admits, one requirement a line: `make test-lowest` installs these."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

BOUND = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)>=(?P<version>[0-9.]+)(,<[0-9.]+)?")


def lowest() -> Iterator[str]:
    """Yield `name==version` of everything that the package and its extras need, but not of tools."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = (some for extra, some in project["optional-dependencies"].items() if extra not in ("dev", "docs", "api-tests"))
    wanted = [*project["dependencies"], *(one for some in extras for one in some)]
    for one in dict.fromkeys(wanted):
        if one.startswith("rmab["):
            continue
        found = BOUND.fullmatch(one)
        if found is None:
            sys.exit(f"{one}: a requirement needs a lower bound, and at most an upper bound besides")
        yield f"{found['name']}=={found['version']}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
