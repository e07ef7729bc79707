"""Settings of the whole suite: no deadlines (code compiles on first use), the same examples on every run, no terminal."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("rmab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rmab")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the size of the terminal that a test runner claims to have."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
