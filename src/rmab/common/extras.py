"""Optional packages: the error for a missing one names the extra to install."""

from __future__ import annotations

from importlib.util import find_spec

from rmab.errors import MissingExtra

EXTRAS = {  # purpose and packages
    "study": ("studies, and runs saved to files", ("pyarrow",)),
    "report": ("reports of studies", ("pyarrow", "jinja2", "matplotlib", "scipy")),
    "log": ("from a log to a list", ("pyarrow", "scipy")),
    "live": ("live programmes", ("pyarrow", "scipy", "sqlalchemy")),
    "postgres": ("live programmes in PostgreSQL", ("pyarrow", "scipy", "sqlalchemy", "psycopg")),
    "server": ("the service and its page", ("pyarrow", "scipy", "sqlalchemy", "fastapi", "jinja2", "uvicorn")),
    "excel": ("logs and reports in .xlsx files", ("openpyxl",)),
    "gym": ("Gymnasium environments", ("gymnasium",)),
    "dask": ("studies on a cluster", ("pyarrow", "distributed")),
    "pandas": ("results as data frames", ("pyarrow", "pandas")),
    "xarray": ("results as arrays with axes", ("pyarrow", "xarray")),
}


def require(extra: str, what: str) -> None:
    """Raise MissingExtra, with the command to install them, if packages of an extra are missing."""
    missing = [name for name in EXTRAS[extra][1] if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{what} needs {' and '.join(missing)}: pip install 'rmab[{extra}]'")


def as_missing_extra(error: Exception) -> Exception:
    """Return MissingExtra for a failed import of an optional package, and any other error unchanged.

    If several extras have the package, it names the one for logs; the others are checked by `require`.
    """
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    found = [extra for extra, (_, packages) in EXTRAS.items() if package in packages]
    if not found:
        return error
    return MissingExtra(f"this needs {package}: pip install 'rmab[{'log' if 'log' in found else found[0]}]'")
