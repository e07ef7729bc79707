"""Upload of custom modules to the workers of a Dask cluster, including workers that join later."""

import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from distributed.diagnostics.plugin import UploadFile

from rmab.common import is_installed


class CustomModule(UploadFile):  # type: ignore[misc]
    """A module file, or a package as an archive. It replaces a module of the same name on the worker."""

    def __init__(self, top: str, path: Path) -> None:
        super().__init__(str(path))
        self.top = top

    async def setup(self, worker: Any) -> None:
        """Install the module on a worker."""
        for name in [one for one in sys.modules if one == self.top or one.startswith(f"{self.top}.")]:
            del sys.modules[name]
        await super().setup(worker)


def send(client: Any, top: str) -> None:
    """Send a top-level module or package to all workers, unless it is an installed package."""
    place = _place(top)
    if place is None:
        return
    if place.is_file():
        client.register_plugin(CustomModule(top, place), name=f"rmab-{top}")
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / f"{top}.zip"
        with zipfile.ZipFile(archive, "w") as content:
            for file in sorted(place.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    content.write(file, Path(top) / file.relative_to(place))
        client.register_plugin(CustomModule(top, archive), name=f"rmab-{top}")


def _place(top: str) -> Path | None:
    """Return the file of a module or the folder of a package; None if it is installed or has no source."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    if top == "rmab" or spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    file = Path(spec.origin).resolve()
    if is_installed(file):
        return None
    return file.parent if spec.submodule_search_locations else file
