"""Programs of studies, loaded as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

STUDIES = Path(__file__).parents[2] / "studies"


def load_study(name: str) -> ModuleType:
    """Return the program studies/<name>.py as a module; it may import its neighbours."""
    if str(STUDIES) not in sys.path:
        sys.path.append(str(STUDIES))
    spec = importlib.util.spec_from_file_location(f"{name}_study", STUDIES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
